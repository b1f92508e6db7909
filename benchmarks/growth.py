"""How the cost of a fit grows with rows and with sources.

``python -m benchmarks.growth`` prints CPU seconds and the slope of each line on log-log axes, and
draws them into docs/growth.svg with ``--plot docs/growth.svg``.
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

COLUMNS = 26
ROWS = (30_000, 100_000, 300_000, 1_000_000)  # in 60 sources
SOURCES = (60, 300, 1_500, 10_000)  # of 100 rows


def seconds(n_sources: int, rows: int) -> float:
    """CPU seconds of one default fit, a third of the sources bad."""
    X, y, sources = make_pool(n_sources, rows, COLUMNS, n_sources // 3)
    model = SourceWeightedClassifier(reference=0, random_state=0, keep_data=False)
    return cpu_seconds(lambda: model.fit(X, y, sources=sources))


def slope(sizes: tuple[int, ...], times: list[float]) -> float:
    """Slope of the line through the points on log-log axes."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def draw(path: Path, result: dict[str, dict[str, list[float]]]) -> None:
    """Draw both lines."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
    for axis, (name, line) in zip(axes, result.items(), strict=True):
        axis.loglog(line["sizes"], line["seconds"], "o-", color="#0072B2")
        axis.set_xlabel(name)
        axis.set_title(f"slope {line['slope']:.2f}", fontsize=10)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("CPU seconds of a default fit")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure, print, and draw if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds(60, 100)  # first calls load libraries
    lines = {
        "rows (60 sources)": (ROWS, [seconds(60, rows // 60) for rows in ROWS]),
        "sources (100 rows each)": (SOURCES, [seconds(n, 100) for n in SOURCES]),
    }
    result = {
        name: {"sizes": list(sizes), "seconds": times, "slope": slope(sizes, times)}
        for name, (sizes, times) in lines.items()
    }
    for name, line in result.items():
        pairs = zip(line["sizes"], line["seconds"], strict=True)
        print(f"{name}: " + ", ".join(f"{size:,}: {time:.1f} s" for size, time in pairs))
        print(f"  slope {line['slope']:.2f}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        draw(options.plot, result)


if __name__ == "__main__":
    main()
