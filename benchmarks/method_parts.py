"""A picture of the three parts of the default's discrepancy, on the demo's vendors.

``python -m benchmarks.method_parts -o docs/method-parts.png`` fits the default to the data of
``sourcewise demo`` and stacks what pull, agreement and features each say of every vendor.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np

from sourcewise import SourceWeightedClassifier
from sourcewise.core.choices import DEFAULT
from sourcewise.core.discrepancy.combined import combined_parts
from sourcewise.core.discrepancy.methods import know_nothing_loss
from sourcewise.core.losses import brier_loss
from sourcewise.datasets import vendor_digits

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

PARTS = (("pull", "#3b6ea5"), ("agreement", "#d98032"), ("features", "#7a9a4a"))


def parts_of_the_demo() -> tuple[list[str], np.ndarray, float]:
    """Names of the vendors with what is wrong, the three parts of each, and the cut-off."""
    digits = vendor_digits(n_bad=6, random_state=0)
    model = SourceWeightedClassifier(reference="gold", random_state=0)
    model.fit(digits.X, digits.y, sources=digits.vendor)
    pool = model._kept_pool(model._training)
    nothing = know_nothing_loss(pool.reference, brier_loss)
    parts = combined_parts(model._training.findings, nothing, DEFAULT)[:, 0]
    names = [name for name in model.sources_.tolist() if name != "gold"]
    words = [f"{name}\n{digits.spoiled.get(name, 'as it is')}" for name in names]
    return words, parts, model.cutoff_


def draw(path: Path) -> None:
    """Write the picture."""
    names, parts, cutoff = parts_of_the_demo()
    order = np.argsort(parts.sum(axis=0))
    figure, axes = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
    above, below = np.zeros(len(names)), np.zeros(len(names))
    for part, (words, colour) in zip(parts[:, order], PARTS, strict=True):
        start = np.where(part >= 0.0, above, below)
        axes.bar(range(len(names)), part, bottom=start, color=colour, label=words)
        above, below = above + np.maximum(part, 0.0), below + np.minimum(part, 0.0)
    axes.axhline(cutoff, color="black", linewidth=1.0, linestyle="--", label="cut-off")
    axes.axhline(0.0, color="black", linewidth=0.5)
    axes.set_xticks(range(len(names)), [names[i] for i in order], fontsize=7)
    axes.set_ylabel("discrepancy")
    axes.margins(y=0.08)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.method_parts")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/method-parts.png"))
    draw(parser.parse_args().output)
