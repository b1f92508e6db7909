"""What adding a source to a fitted model costs, and training it at another trade-off.

``python -m benchmarks.add_source`` prints processor time as multiples of a fit from scratch of all
sources. The other sources are not measured again; what is left is the grid of fits behind the
choice of the trade-off, all of whose weightings change when a source joins, and the final model.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.shapes import cpu_seconds, make_pool
from sourcewise import SourceWeightedClassifier

SHAPES = {
    "100 x 100 x 26": (100, 100, 26),
    "100 x 500 x 51": (100, 500, 51),
    "animals 60 x 500 x 101": (60, 500, 101),
}


def measure(n_sources: int, rows: int, columns: int) -> dict[str, float]:
    """Costs of adding the last source, and of another trade-off, in fits of all sources."""
    X, y, sources = make_pool(n_sources, rows, columns, n_sources // 3)
    last = sources == n_sources - 1
    model = SourceWeightedClassifier(reference=0, random_state=0)
    whole = cpu_seconds(lambda: model.fit(X, y, sources=sources))
    model.fit(X[~last], y[~last], sources=sources[~last])
    added = cpu_seconds(lambda: model.add_source(X[last], y[last], n_sources - 1))
    moved = cpu_seconds(lambda: model.at_trade_off(2.0))
    return {"fit, CPU s": whole, "add_source": added / whole, "at_trade_off": moved / whole}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="the median is printed (3)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for name, shape in SHAPES.items():
        runs = [measure(*shape) for _ in range(options.repeats)]
        results[name] = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        print(name, ", ".join(f"{key}: {value:.2f}" for key, value in results[name].items()))
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
