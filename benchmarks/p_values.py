"""Check that p-values of ``local`` discrepancies are honest on clean splits of real data.

``python -m benchmarks.p_values`` deals breast cancer and wine at random into a reference of 100
rows and small sources, none of them bad, and prints which share of the sources falls below a
level: by the library's test, and by Student's for each fold model instead. Plus-minus is one
standard error over the draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ttest_ind_from_stats

from benchmarks.accuracy.data import REFERENCE
from benchmarks.accuracy.design import data_set
from sourcewise import estimate_discrepancies
from sourcewise.core.discrepancy.local import Sample, two_sample_p_values

DATA = ("breast cancer", "wine")
LEVELS = (0.05, 0.01)


def student_p_values(first: Sample, second: Sample) -> np.ndarray:
    """Student's test of equal means, from the same moments."""
    sides = [
        (side.mean, np.sqrt(side.square / np.maximum(side.size - 1.0, 1.0)), side.size)
        for side in (first, second)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = ttest_ind_from_stats(*sides[0], *sides[1]).pvalue
    return np.nan_to_num(p_values, nan=1.0)  # identical losses on both sides


TESTS: dict[str, Callable[[Sample, Sample], np.ndarray]] = {
    "library": two_sample_p_values,
    "Student": student_p_values,
}


def one_draw(name: str, test: str, seed: int) -> list[float]:
    """Share of clean sources below each level."""
    draw = data_set(name).draw(Path(), seed, 100, False)
    with mock.patch("sourcewise.core.discrepancy.local_exchange.two_sample_p_values", TESTS[test]):
        found = estimate_discrepancies(
            draw.X,
            draw.y,
            sources=draw.sources,
            reference=REFERENCE,
            task="classification",
            random_state=seed,
        )
    untrusted = np.array([source != REFERENCE for source in found.sources])
    return [float(np.mean(found.p_values[untrusted] < level)) for level in LEVELS]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--first-seed", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.draws)
    print(f"{'data':<14} {'test':<8}", *(f"{'p < ' + str(level):>15}" for level in LEVELS))
    for name in DATA:
        for test in TESTS:
            shares = np.array(
                Parallel(n_jobs=options.jobs)(delayed(one_draw)(name, test, s) for s in seeds)
            )
            errors = shares.std(axis=0, ddof=1) / np.sqrt(len(seeds))
            cells = [
                f"{f'{mean:.1%} ± {error:.1%}':>15}"
                for mean, error in zip(shares.mean(axis=0), errors, strict=True)
            ]
            print(f"{name:<14} {test:<8}", *cells)


if __name__ == "__main__":
    main()
