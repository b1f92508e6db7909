"""How the cost of a fit grows with rows, sources, features and classes.

``python -m benchmarks.growth`` prints CPU seconds and the slope of each line on log-log axes, and
draws them into docs/growth.svg with ``--plot docs/growth.svg``. ``--only features classes``
measures these lines alone.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shapes import Pool, class_pool, cpu_seconds, make_pool
from sourcewise import SourceWeightedClassifier

BAR = 1.15  # most slope
COLUMNS = 26


@dataclass(frozen=True)
class Line:
    """One line of the picture.

    Attributes
    ----------
    title : str
    sizes : tuple of int
    pool : callable
        Makes the data of one size; a third of the sources are bad.
    """

    title: str
    sizes: tuple[int, ...]
    pool: Callable[[int], Pool]


def narrow_pool(n_sources: int, rows: int) -> Pool:
    """Two classes and few features."""
    return Pool(*make_pool(n_sources, rows, COLUMNS, n_sources // 3))


def wide_pool(n_sources: int, rows: int, columns: int) -> Pool:
    """Two classes and features that all vary alike."""
    return Pool(*make_pool(n_sources, rows, columns, n_sources // 3, decay=0.0))


LINES = {
    "rows": Line(
        "rows (60 sources)",
        (30_000, 100_000, 300_000, 1_000_000),
        lambda rows: narrow_pool(60, rows // 60),
    ),
    "sources": Line(
        "sources (100 rows each)",
        (60, 300, 1_500, 10_000),
        lambda n_sources: narrow_pool(n_sources, 100),
    ),
    "features": Line(
        "features (20 sources of 200 rows)",
        (50, 200, 1_000, 5_000),
        partial(wide_pool, 20, 200),
    ),
    "classes": Line(
        "classes (20 sources of 1,000 rows)",
        (2, 5, 10, 20, 50),
        lambda n_classes: class_pool(20, 1_000, 20, n_classes, 6),
    ),
}


def seconds(pool: Pool) -> float:
    """CPU seconds of one default fit."""
    model = SourceWeightedClassifier(reference=0, random_state=0, keep_data=False)
    return cpu_seconds(lambda: model.fit(pool.X, pool.y, sources=pool.sources))


def slope(sizes: tuple[int, ...], times: list[float]) -> float:
    """Slope of the line through the points on log-log axes."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measure(line: Line) -> dict[str, Any]:
    """Measure and print one line."""
    print(f"{line.title}: ", end="", flush=True)
    times = []
    for size in line.sizes:
        times.append(seconds(line.pool(size)))
        print(f"{size:,}: {times[-1]:.2f} s", end="  ", flush=True)
    found = slope(line.sizes, times)
    print(f"\n  slope {found:.2f}, {'within' if found <= BAR else 'NOT within'} {BAR}")
    return {"title": line.title, "sizes": list(line.sizes), "seconds": times, "slope": found}


def draw(path: Path, result: dict[str, dict[str, Any]]) -> None:
    """Draw the lines side by side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    n_rows = -(-len(result) // 2)
    figure, axes = plt.subplots(
        n_rows,
        min(2, len(result)),
        figsize=(8, 3.2 * n_rows),
        layout="constrained",
        sharey=True,
        squeeze=False,
    )
    for axis in axes.flat[len(result) :]:
        axis.remove()
    for axis, line in zip(axes.flat, result.values(), strict=False):
        axis.loglog(line["sizes"], line["seconds"], "o-", color="#0072B2")
        axis.set_xticks(line["sizes"], [f"{size:,}" for size in line["sizes"]], fontsize=8)
        axis.minorticks_off()
        axis.set_xlabel(line["title"])
        axis.set_title(f"slope {line['slope']:.2f}", fontsize=10)
        axis.grid(alpha=0.3)
    figure.supylabel("CPU seconds of a default fit", fontsize=10)
    # A picture without a date is the same file for the same numbers.
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and draw if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--plot", type=Path, metavar="PATH")
    parser.add_argument("--json", type=Path, metavar="PATH")
    options = parser.parse_args(arguments)
    seconds(narrow_pool(60, 100))  # first calls load libraries
    result = {name: measure(LINES[name]) for name in options.only}
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    if options.plot:
        draw(options.plot, result)


if __name__ == "__main__":
    main()
