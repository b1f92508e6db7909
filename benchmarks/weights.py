"""Exact weights for a million sources, in units of one sort of the same array.

Run from the root of the repository: ``python -m benchmarks.weights [--json PATH]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sourcewise.core.weights import WeightProblem, solve_weights

N_SOURCES = 1_000_000
N_TRADE_OFFS = 100_000
REPEATS = 9


def median_time(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median processor time of one call, in seconds."""
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times)


def measure(n_sources: int = N_SOURCES, repeats: int = REPEATS) -> dict[str, float]:
    """Time one sort, one solve and one further cut-off."""
    rng = np.random.default_rng(0)
    discrepancies = rng.random(n_sources)
    discrepancies[0] = 0.0
    sizes = rng.integers(1, 10_000, n_sources).astype(np.float64)
    problem = WeightProblem.from_sources(discrepancies, sizes)
    # Half of the sources inside: neither the cheapest nor the dearest case.
    trade_off = float(np.median(problem.breakpoints))
    trade_offs = rng.permutation(np.geomspace(1e-3, problem.breakpoints.max(), N_TRADE_OFFS))

    sort = median_time(lambda: np.argsort(discrepancies), repeats)
    solve = median_time(lambda: solve_weights(discrepancies, sizes, trade_off), repeats)
    weights = median_time(lambda: problem.weights(trade_off), repeats)
    cutoff = median_time(lambda: problem.cutoffs(trade_offs), repeats) / N_TRADE_OFFS
    return {
        "n_sources": n_sources,
        "sort_seconds": sort,
        "solve_seconds": solve,
        "solve_per_sort": solve / sort,
        "further_weights_per_solve": weights / solve,
        "further_cutoff_per_solve": cutoff / solve,
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the table and, if asked, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    parser.add_argument("--sources", type=int, default=N_SOURCES, help="number of sources")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="the median is taken")
    options = parser.parse_args(arguments)
    figures = measure(options.sources, options.repeats)
    print(f"{'figure':<28}{'value':>14}")
    for name, value in figures.items():
        print(f"{name:<28}{value:>14.4g}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
