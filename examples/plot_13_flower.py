"""
Sites that keep their rows
==========================

Five laboratories cannot send their rows away. Each answers questions from its own rows: how well
some models do on them, and in which direction they would change a model. From the answers comes
the same kind of model as from rows.

Here all sites are in this process. ``sourcewise federated demo`` shows the same with real processes
that talk over Flower. Needs the extra ``flower``.
"""

# %%
import sys
import textwrap
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.datasets import vendor_digits

if find_spec("flwr") is None or find_spec("pyarrow") is None:
    print("Needs flwr and pyarrow: the extra flower.")
    sys.exit(77)

from sourcewise.engines.flower import FlowerSources, LocalCarrier, Policy, Site

# %%
# Vendors of digits play the sites; the labels of one of them are shuffled. A policy belongs to the
# owner of the rows: this one answers nothing from fewer than fifty.
digits = vendor_digits(n_bad=1, kind="shuffled", n_vendors=5, rows_per_vendor=150, trusted_rows=100)
ours = digits.vendor == "gold"
names = [name for name in np.unique(digits.vendor) if name != "gold"]
sites = [
    Site.of_arrays(
        name,
        digits.X[digits.vendor == name],
        digits.y[digits.vendor == name],
        Policy(least_rows=50),
    )
    for name in names
]

# %%
# In a server app of Flower it is ``FlowerSources(grid, ...)``; all else stays the same.
sources = FlowerSources(LocalCarrier(sites), digits.X[ours], digits.y[ours])
apart = sw.SourceWeightedClassifier(reference="gold", random_state=0).fit_sources(sources)
print(apart.report())

facts = sources.facts
print(f"{len(facts.rounds)} rounds, mode {facts.mode}:")
print(textwrap.fill(facts.rule, 80))

# %%
# Beside it a fit with all rows in memory. By default the sites are told models only, and the
# weights are an approximation; ``mode="shared-reference"`` is closer, if the trusted rows may
# travel.
together = sw.SourceWeightedClassifier(reference="gold", random_state=0)
together.fit(digits.X, digits.y, sources=digits.vendor)
weights = {
    title: dict(zip(model.sources_.tolist(), model.source_weights_, strict=True))
    for title, model in (("at their sites", apart), ("in memory", together))
}
order = ["gold", *names]
for name in order:
    shown = "  ".join(f"{found[name]:.3f}" for found in weights.values())
    print(f"{name:10} {shown}  {digits.spoiled.get(name, '')}")
(bad,) = digits.spoiled
assert weights["at their sites"][bad] < 0.02
assert (
    max(abs(weights["at their sites"][name] - weights["in memory"][name]) for name in order) < 0.05
)

# %%
for k, (title, found) in enumerate(weights.items()):
    plt.bar(np.arange(len(order)) + 0.4 * k, [found[name] for name in order], 0.38, label=title)
plt.xticks(np.arange(len(order)) + 0.2, order, rotation=30)
plt.ylabel("weight")
plt.legend(title="rows")
plt.tight_layout()
plt.show()
