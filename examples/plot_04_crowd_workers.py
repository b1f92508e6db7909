"""
Crowd workers
=============

Twenty workers labelled fifteen pictures each. No two workers saw the same picture, so they cannot
be compared with each other, only with the rows that somebody checked.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import sourcewise as sw
from sourcewise.baselines import AllData, ReferenceOnly

rng = np.random.default_rng(0)
X, y = load_digits(n_class=3, return_X_y=True)
order = rng.permutation(len(y))
X, y = X[order] / 16, y[order]

# %%
# Some workers are careful, some are wrong in every third picture, and some click at random.
skills = np.repeat([0.97, 0.65, 0.1], [8, 5, 7])
worker = np.full(360, "gold", dtype=object)
labels = y[:360].copy()
for k, skill in enumerate(skills):
    rows = slice(60 + 15 * k, 75 + 15 * k)
    worker[rows] = f"worker-{k + 1:02d}"
    wrong = rng.random(15) > skill
    labels[rows] = np.where(wrong, rng.integers(0, 3, len(wrong)), labels[rows])

model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
model.fit(X[:360], labels, sources=worker)

# %%
# How well do the weights know who was careful?
weights = model.source_weights_[1:]
for skill in np.unique(skills)[::-1]:
    print(f"skill {skill:.2f}: {weights[skills == skill].sum():.2f} of all weight")

errors = {
    name: 1 - method.fit(X[:360], labels, sources=worker).score(X[360:], y[360:])
    for name, method in (
        ("reference only", ReferenceOnly(reference="gold")),
        ("all data", AllData(reference="gold")),
        ("sourcewise", sw.SourceWeightedClassifier(reference="gold", random_state=0)),
    )
}
print({name: round(error, 3) for name, error in errors.items()})

# %%
plt.scatter(skills + rng.uniform(-0.01, 0.01, len(skills)), weights)
plt.xlabel("share of pictures that the worker really looked at")
plt.ylabel("weight")
plt.show()
