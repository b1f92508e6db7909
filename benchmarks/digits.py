"""Accuracy on digits, odd or even: 60 trusted rows, ten vendors of 120, some of them bad.

``python -m benchmarks.digits`` prints mean test error and standard error over the seeds for every
cell. The oracle knows which vendors are clean and trains on those and the reference.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from sourcewise import SourceWeightedClassifier
from sourcewise.datasets import vendor_digits

KINDS, BAD = ("shuffled", "biased", "flipped"), (4, 8, 10)
METHODS = ("reference only", "all data", "paper", "sourcewise", "oracle")


def one_run(kind: str, n_bad: int, seed: int) -> list[float]:
    """Test errors of all methods on one draw."""
    digits = vendor_digits(n_bad=n_bad, kind=kind, random_state=seed)
    clean = ~np.isin(digits.vendor, list(digits.spoiled))
    everything = np.ones(len(clean), dtype=bool)
    plans = {
        "reference only": ({"trade_off": 0.0}, everything),
        "all data": ({"trade_off": np.inf}, everything),
        "paper": ({"protocol": "paper"}, everything),
        "sourcewise": ({}, everything),
        "oracle": ({"trade_off": np.inf}, clean),
    }
    errors = []
    for method in METHODS:
        options, rows = plans[method]
        model = SourceWeightedClassifier(reference="gold", random_state=seed, **options)
        model.fit(digits.X[rows], digits.y[rows], sources=digits.vendor[rows])
        errors.append(1.0 - model.score(digits.X_test, digits.y_test))
    return errors


def main() -> None:
    """Run all cells and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    cells = list(product(KINDS, BAD))
    runs = [(kind, n_bad, seed) for kind, n_bad in cells for seed in seeds]
    results = Parallel(n_jobs=options.jobs)(delayed(one_run)(*run) for run in runs)
    errors = np.array(results).reshape(len(cells), len(seeds), len(METHODS))
    means = errors.mean(axis=1)
    spread = errors.std(axis=1, ddof=1) / np.sqrt(len(seeds))
    print(f"mean test error ± standard error over {len(seeds)} seeds")
    print(f"{'labels, bad vendors':<21}" + "".join(f"{m:>16}" for m in METHODS))
    for (kind, n_bad), mean, error in zip(cells, means, spread, strict=True):
        columns = "".join(f"{m:>9.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True))
        print(f"{kind:<12}{n_bad:>2} of 10 {columns}")
    gap = means[:, METHODS.index("sourcewise")] - means[:, METHODS.index("oracle")]
    print(f"largest distance of sourcewise from the oracle: {gap.max():+.4f}")
    if options.json:
        options.json.write_text(
            json.dumps({"methods": METHODS, "cells": cells, "errors": errors.tolist()})
        )


if __name__ == "__main__":
    main()
