"""What training costs, how exact it is, and where the time goes.

``python -m benchmarks.training`` tells costs in units U of one scikit-learn `LogisticRegressionCV`
on the same arrays, both in CPU time of one thread in the same run. ``--exactness`` compares every
fit of a grid with scikit-learn's at a tolerance of 1e-10.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: U and ours on one thread each

import argparse  # noqa: E402
import cProfile
import json
import pstats
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.shapes import SHAPES, cpu_seconds, make_pool, unit
from sourcewise import SourceWeightedClassifier
from sourcewise.core.discrepancy.methods import measure
from sourcewise.estimators.selection import candidates

BARS = {
    ("animals 60 x 500 x 101", "paper"): (0.4, 0.05),
    ("animals 60 x 500 x 101", "default"): (0.6, 0.1),
    ("products 11 x 100 x 26", "paper"): (4.0, 1.0),
    ("products 11 x 100 x 26", "default"): (4.0, 1.0),
    ("products 957 x 100 x 26", "paper"): (2.0, 0.3),
    ("products 957 x 100 x 26", "default"): (2.0, 0.3),
}
OPTIONS: dict[str, dict[str, Any]] = {"paper": {"protocol": "paper"}, "default": {}}


def model_for(what: str) -> SourceWeightedClassifier:
    """Return the estimator under one of the two protocols."""
    return SourceWeightedClassifier(reference=0, random_state=0, **OPTIONS[what])


def one_pair(what: str, X: np.ndarray, y: np.ndarray, sources: np.ndarray) -> tuple[float, float]:
    """CPU seconds of our fit and of the unit, one right after the other."""
    ours = cpu_seconds(lambda: model_for(what).fit(X, y, sources=sources))
    return ours, unit(X, y, sources)


def costs(repeats: int) -> list[dict[str, Any]]:
    """Ratios to the unit, each the median of several pairs taken one after the other."""
    rows = []
    for name, shape in SHAPES.items():
        X, y, sources = make_pool(*shape)
        for what in OPTIONS:
            pairs = [one_pair(what, X, y, sources) for _ in range(repeats)]
            ratios = [ours / theirs for ours, theirs in pairs]
            tracemalloc.start()
            model_for(what).fit(X, y, sources=sources)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            bar, goal = BARS[name, what]
            rows.append(
                {
                    "shape": name,
                    "what": what,
                    "seconds": float(np.median([p[0] for p in pairs])),
                    "unit": float(np.median([p[1] for p in pairs])),
                    "ratio": float(np.median(ratios)),
                    "spread": [min(ratios), max(ratios)],
                    "bar": bar,
                    "goal": goal,
                    "memory": 1.0 + peak / X.nbytes,
                }
            )
    return rows


def where_the_time_goes() -> dict[str, float]:
    """Shares of an animals fit, and its speed against a plain product of the same shape."""
    X, y, sources = make_pool(*SHAPES["animals 60 x 500 x 101"])
    profile = cProfile.Profile()
    profile.enable()
    model_for("paper").fit(X, y, sources=sources)
    profile.disable()
    stats = pstats.Stats(profile).stats
    total = sum(row[2] for row in stats.values())

    def own(file: str, function: str) -> float:
        return sum(
            row[2] for (path, _, name), row in stats.items()
            if path.endswith(file) and name == function
        )  # fmt: skip

    exponentials = own("source_gradients.py", "residuals")
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
    model = model_for("paper")
    checked, names = model._validate(X[~test], y[~test], sources[~test], None)
    pool = model._pool(checked, names)
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


def main() -> None:
    """Print the tables; write them as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--exactness", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        result: dict[str, Any] = {"costs": costs(options.repeats)}
        print(f"{'shape':<25}{'fit':<9}{'U':>8}{'range':>15}{'bar':>6}{'goal':>6}{'memory':>8}")
        for row in result["costs"]:
            spread = f"{row['spread'][0]:.2f} to {row['spread'][1]:.2f}"
            print(
                f"{row['shape']:<25}{row['what']:<9}{row['ratio']:>8.2f}{spread:>15}"
                f"{row['bar']:>6}{row['goal']:>6}{row['memory']:>7.1f}x"
            )
        result["profile"] = where_the_time_goes()
        for name, value in result["profile"].items():
            print(f"{name:<45}{value:>8.2f}")
        if options.exactness:
            result["exactness"] = [
                exactness("products 11 x 100 x 26", None),
                exactness("animals 60 x 500 x 101", 20),
            ]
            for row in result["exactness"]:
                print(", ".join(f"{k}: {v}" for k, v in row.items()))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
