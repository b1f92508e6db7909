"""
Reviews with text
=================

Is a review positive? The words decide, so the table is wide and sparse: tf-idf of words, never made
dense. Shops send reviews with stars; in two of six the stars have nothing to do with the text.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import sourcewise as sw
from sourcewise.baselines import AllData, ReferenceOnly
from sourcewise.report import SourceWeightsDisplay

# %%
# Made-up reviews: each takes a few words from a list of good, bad or neutral ones.
rng = np.random.default_rng(0)
GOOD = [
    "great",
    "lovely",
    "solid",
    "perfect",
    "sturdy",
    "bright",
    "quick",
    "soft",
    "clever",
    "cheap",
    "reliable",
    "handy",
]
BAD = [
    "broken",
    "awful",
    "thin",
    "late",
    "scratched",
    "loud",
    "weak",
    "dull",
    "slow",
    "useless",
    "leaking",
    "sticky",
]
OTHER = [f"word{k}" for k in range(400)]


def review():
    """Return a text and whether it is positive."""
    positive = rng.random() < 0.5
    own, opposite = (GOOD, BAD) if positive else (BAD, GOOD)
    words = [*rng.choice(own, 3), *rng.choice(opposite, 1), *rng.choice(OTHER, 20)]
    return " ".join(rng.permutation(words)), positive


pairs = [review() for _ in range(60 + 6 * 150 + 500)]
texts, positive = [text for text, _ in pairs], np.array([label for _, label in pairs])
shop = np.repeat(["checked", *(f"shop {k}" for k in range(1, 7)), "new"], [60] + [150] * 6 + [500])
for name in ("shop 2", "shop 5"):
    positive[shop == name] = rng.permutation(positive[shop == name])

X = TfidfVectorizer().fit_transform(texts)
old = shop != "new"
print(X.shape, type(X).__name__)

# %%
for name, method in (
    ("sourcewise", sw.SourceWeightedClassifier(reference="checked", random_state=0)),
    ("reference only", ReferenceOnly(reference="checked")),
    ("all data", AllData(reference="checked")),
):
    fitted = method.fit(X[old], positive[old], sources=shop[old])
    print(f"{name:15} error {1 - fitted.score(X[~old], positive[~old]):.3f}")
    if name == "sourcewise":
        model = fitted
print(model.report())

# %%
SourceWeightsDisplay.from_estimator(model)
plt.show()
