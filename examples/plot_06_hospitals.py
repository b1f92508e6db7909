"""
Patients of four hospitals
==========================

A model for the patients of one hospital, with data from three others: there patients are older or
younger, one machine measures differently, and one hospital codes the diagnosis the other way round.

If the environment variable ``SOURCEWISE_HEART`` names a folder with the UCI heart disease data
(``processed.cleveland.data`` and so on, with a header row), these hospitals are used; otherwise
hospitals with the same columns are made up.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.report import SourceWeightsDisplay

COLUMNS = ["age", "pressure", "cholesterol", "rate", "depression"]


def real_hospitals(folder):
    """Read five columns that most hospitals have; a missing number becomes the median."""
    found = []
    for path in sorted(folder.glob("processed.*.data")):
        table = np.genfromtxt(path, delimiter=",", skip_header=1, missing_values="?")
        X = table[:, [0, 3, 4, 7, 9]]
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
        found.append((path.stem.removeprefix("processed."), X, table[:, -1] > 0))
    return found


def stand_ins():
    """Make up four hospitals that differ in who comes and in one machine."""
    rng = np.random.default_rng(0)
    found = []
    for name, age, bias in (("home", 54, 0), ("north", 58, 0), ("south", 48, 8), ("west", 56, 0)):
        n = 250
        X = rng.normal([age, 131 + bias, 246, 150, 1.0], [9, 17, 50, 23, 1.1], (n, 5))
        risk = (X[:, 0] - 54) / 9 - (X[:, 3] - 150) / 23 + 1.2 * (X[:, 4] - 1)
        y = risk + rng.logistic(size=n) > 0
        found.append((name, X, ~y if name == "west" else y))
    return found


folder = os.environ.get("SOURCEWISE_HEART")
hospitals = real_hospitals(Path(folder)) if folder else stand_ins()

# %%
# The first hospital is ours: eighty of its patients are the reference, the others test the model.
name, X_home, y_home = hospitals[0]
parts = [(name, X_home[:80], y_home[:80]), *hospitals[1:]]
X = np.concatenate([rows for _, rows, _ in parts])
y = np.concatenate([labels for _, _, labels in parts])
hospital = np.repeat([title for title, _, _ in parts], [len(labels) for _, _, labels in parts])

model = sw.SourceWeightedClassifier(reference=name, random_state=0).fit(X, y, sources=hospital)
print(model.report())

# %%
# "Differs" is not "does harm": a hospital with other patients may have a small p-value and still
# help.
for title, fitted in (
    ("sourcewise", model),
    ("own patients only", model.at_trade_off(0.0)),
    ("all alike", model.at_trade_off(np.inf)),
):
    print(f"{title:18} error {1 - fitted.score(X_home[80:], y_home[80:]):.3f}")

# %%
SourceWeightsDisplay.from_estimator(model)
plt.show()
