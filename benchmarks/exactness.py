"""How exact the fits of the paper's grid are, and where the time of training goes."""

from __future__ import annotations

import cProfile
import pstats
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.shapes import SHAPES, make_pool
from sourcewise import SourceWeightedClassifier
from sourcewise.core.discrepancy.methods import measure
from sourcewise.estimators.selection import candidates


def paper_model() -> SourceWeightedClassifier:
    """Return the estimator under the paper's protocol."""
    return SourceWeightedClassifier(reference=0, random_state=0, protocol="paper")


def where_the_time_goes() -> dict[str, float]:
    """Shares of an animals fit, and its speed against a plain product of the same shape."""
    X, y, sources = make_pool(*SHAPES["animals 60 x 500 x 101"])
    profile = cProfile.Profile()
    profile.enable()
    paper_model().fit(X, y, sources=sources)
    profile.disable()
    stats = pstats.Stats(profile).stats
    total = sum(row[2] for row in stats.values())

    def own(file: str, function: str) -> float:
        return sum(
            row[2] for (path, _, name), row in stats.items()
            if path.endswith(file) and name == function
        )  # fmt: skip

    exponentials = own("residuals.py", "residuals")
    products = own("source_gradients.py", "_sums")
    columns = 100
    B = np.random.default_rng(0).normal(size=(X.shape[1], columns))
    block = X[:500]
    start = time.perf_counter()
    for _ in range(200):
        block @ B
    flops = 2.0 * block.shape[0] * block.shape[1] * columns
    return {
        "share in matrix products": products / total,
        "share in exponentials": exponentials / total,
        "share elsewhere": 1.0 - (products + exponentials) / total,
        "plain product 500 x 101 x 100, GFLOP/s": 200 * flops / (time.perf_counter() - start) / 1e9,
        "gradients of the grid, GFLOP/s": gradient_speed(X, y, sources),
    }


def gradient_speed(X: np.ndarray, y: np.ndarray, sources: np.ndarray) -> float:
    """Floating-point operations a second of one gradient of 100 columns, exponentials included."""
    from sourcewise.core.data import group_rows
    from sourcewise.core.source_gradients import SourceGradients
    from sourcewise.core.source_weights import GivenWeights

    data, _ = group_rows(X, y, sources, reference=0, n_classes=2)
    columns = 100
    # Weights of their own, so that no two sources are taken for one.
    weights = np.random.default_rng(1).uniform(size=(data.n_sources - 1, columns))
    gradients = SourceGradients(data, GivenWeights(weights))
    W = np.random.default_rng(0).normal(size=(X.shape[1], columns, 1))
    start = time.perf_counter()
    for _ in range(5):
        gradients(W, np.arange(columns))
    return 5 * 4.0 * X.size * columns / (time.perf_counter() - start) / 1e9


def exactness(shape: str, sample: int | None) -> dict[str, Any]:
    """Compare fits of the paper's grid with scikit-learn's, all of them or a sample."""
    n_sources, rows, columns, n_bad = SHAPES[shape]
    X, y, sources = make_pool(n_sources + 10, rows, columns, n_bad)
    test = sources >= n_sources  # ten further sources, clean, for testing
    model = paper_model()
    pool = model._prepare(X[~test], y[~test], sources[~test])
    survey = pool.survey(np.nan, permute=False)
    measured, _ = measure("plug-in", survey, range(pool.n_sources - 1))
    problems, _ = candidates(pool, measured, pool.choices.trade_offs)
    settings = pool.family.settings
    models = pool.family.fit_grid(problems, settings).reshape(len(problems), -1, columns)
    cells = [(p, c) for p in range(len(problems)) for c in range(len(settings))]
    if sample is not None:
        chosen = np.random.default_rng(0).permutation(len(cells))[:sample]
        cells = [cells[k] for k in chosen]
    worst, agree = 0.0, 1.0
    for p, c in cells:
        weight = problems.row_weights(pool.data, p)
        used = weight > 0
        theirs = LogisticRegression(
            C=settings[c], fit_intercept=False, tol=1e-10, max_iter=100_000
        ).fit(pool.data.X[used], pool.data.y[used], sample_weight=weight[used])
        ours = models[p, c]

        def value(w: np.ndarray, weight: np.ndarray = weight, c: int = c) -> float:
            z = pool.data.X @ w
            loss = np.logaddexp(0.0, z) - pool.data.y * z
            return float(weight @ loss + 0.5 / settings[c] * w @ w)

        worst = max(worst, value(ours) / value(theirs.coef_[0]) - 1.0)
        same = np.mean((X[test] @ ours > 0) == (X[test] @ theirs.coef_[0] > 0))
        agree = min(agree, float(same))
    return {
        "shape": shape,
        "fits compared": len(cells),
        "worst relative excess of the objective": worst,
        "least share of equal test labels": agree,
    }
