"""Cost by the number of sources, in fits of the estimator to all rows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.any_model.runs import LEARNERS, learner_of
from sourcewise import SourceWeightedClassifier

ROWS, FEATURES, TRUSTED = 120, 20, 100


def growth(trees: int) -> str:
    """Table of costs at 10 and 100 sources of 120 rows; made-up data."""
    lines = ["| learner | sources | one fit, s | linear default, fits | rest, fits |"]
    lines.append("| --- " * 5 + "|")
    for name in LEARNERS:
        for n_sources in (10, 100):
            X, y, sources = made_up(n_sources)
            learner = learner_of(name, False, trees)
            one = _seconds(clone(learner).fit, X, y)
            linear = _seconds(_fit(None, sources), X, y)
            ours = _seconds(_fit(learner, sources), X, y)
            lines.append(
                f"| {name} | {n_sources} | {one:.2f} | {linear / one:.1f} "
                f"| {(ours - linear) / one:.1f} |"
            )
    return "\n".join(lines)


def _fit(learner: Any, sources: Any) -> Any:
    model = SourceWeightedClassifier(learner, reference="gold", random_state=0)
    return lambda X, y: model.fit(X, y, sources=sources)


def _seconds(fit: Any, X: Any, y: Any) -> float:
    begin = time.process_time()
    fit(X, y)
    return time.process_time() - begin


def made_up(n_sources: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw sources of a bent truth, half of them with labels at random."""
    rng = np.random.default_rng(0)
    counts = [TRUSTED, *[ROWS] * n_sources]
    sources = np.repeat(["gold", *(f"source {k}" for k in range(n_sources))], counts)
    X = rng.normal(size=(sum(counts), FEATURES))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)
    bad = np.isin(sources, [f"source {k}" for k in range(0, n_sources, 2)])
    y[bad] = rng.permutation(y[bad])
    return X, y, sources
