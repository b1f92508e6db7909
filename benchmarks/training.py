"""What training costs, how much memory it needs, how exact it is, and where the time goes.

``python -m benchmarks.training`` tells costs in units of another fit on the same arrays, both in
CPU time of one thread in the same run: U is one scikit-learn `LogisticRegressionCV`, RidgeCV its
like for regression, "fits" our own fit of all sources. ``--only wide sparse`` measures the lines
whose names hold one of these words. ``--exactness`` compares every fit of a grid with
scikit-learn's at a tolerance of 1e-10.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: U and ours on one thread each

import argparse  # noqa: E402
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

from benchmarks.cases import CASES, UNITS, Case
from benchmarks.exactness import exactness, where_the_time_goes
from benchmarks.memory import COMPARABLE_MEGABYTES, peak_memory, warm_up
from benchmarks.shapes import Pool, cpu_seconds

PATIENCE = 60.0  # CPU seconds after which a line is not repeated
HEADS = ("line", "CPU s", "cost", "", "range", "bar", "goal", "held", "memory", "at most", "held")
WIDTHS = (50, 8, 9, 9, 18, 7, 7, 6, 16, 9, 6)
REFUSED = "refused"


def one_pair(case: Case, pool: Pool) -> tuple[float, float]:
    """CPU seconds of our work and of the unit, one right after the other."""
    ours = cpu_seconds(case.work(pool))
    return ours, UNITS[case.unit](pool)


def pairs_of(case: Case, pool: Pool, repeats: int, patience: float) -> list[tuple[float, float]]:
    """Measure several pairs, as many as patience allows but at least one."""
    found: list[tuple[float, float]] = []
    begin = time.process_time()
    while len(found) < repeats and (not found or time.process_time() - begin < patience):
        found.append(one_pair(case, pool))
    return found


def refusal(case: Case, pool: Pool) -> str | None:
    """Return what is said to sparse rows, where they are not taken."""
    if not scipy.sparse.issparse(pool.X):
        return None
    try:
        case.work(pool)()
    except (TypeError, ValueError) as error:
        return str(error)
    return None


def line_of(case: Case, repeats: int, patience: float, memory: bool) -> dict[str, Any]:
    """Measure one line of the table: the median ratio, and memory if asked for."""
    pool = case.pool()
    about = {"name": case.name, "unit": case.unit, "bar": case.bar, "goal": case.goal}
    if said := refusal(case, pool):
        return {**about, REFUSED: said}
    pairs = pairs_of(case, pool, repeats, patience)
    ratios = [ours / theirs for ours, theirs in pairs]
    line = {
        **about,
        "seconds": float(np.median([ours for ours, _ in pairs])),
        "unit seconds": float(np.median([theirs for _, theirs in pairs])),
        "ratio": float(np.median(ratios)),
        "range": [min(ratios), max(ratios)],
        "pairs": len(pairs),
        "input megabytes": pool.nbytes / 1e6,
        "memory bar": case.memory,
        "megabytes bar": case.megabytes,
    }
    return {**line, **peak_memory(case, pool)} if memory else line


def cells_of(line: dict[str, Any]) -> tuple[str, ...]:
    """Write one line of the table."""
    bars = (number(line["bar"]), number(line["goal"]))
    if REFUSED in line:
        return (line["name"], REFUSED, "", line["unit"], "", *bars, "NO", "", "", "")
    low, high = line["range"]
    return (
        line["name"],
        f"{line['seconds']:.2f}",
        f"{line['ratio']:.2f}",
        line["unit"],
        f"{low:.2f} to {high:.2f}",
        *bars,
        held(line["ratio"], line["bar"]),
        *memory_cells(line),
    )


def memory_cells(line: dict[str, Any]) -> tuple[str, str, str]:
    """Write what memory came to, the bar, and whether it is held, where the two compare."""
    if "multiple" not in line:
        return "", "", ""
    found = f"{line['multiple']:.1f}x, {line['megabytes']:.0f} MB"
    if line["input megabytes"] < COMPARABLE_MEGABYTES:
        return found, "", ""
    both = line["multiple"] <= line["memory bar"] and line["megabytes"] <= line["megabytes bar"]
    return found, f"{line['memory bar']:.0f}x", "yes" if both else "NO"


def number(value: float) -> str:
    """Write a bar; nothing where there is none."""
    return "" if np.isnan(value) else f"{value:g}"


def held(found: float, bar: float) -> str:
    """Say whether a bar is held; nothing where there is none."""
    if np.isnan(bar):
        return ""
    return "yes" if found <= bar else "NO"


def write_line(cells: Sequence[str]) -> str:
    """Put cells into columns: the first one to the left, all others to the right."""
    first, *others = (cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    return first.strip().ljust(WIDTHS[0]) + "".join(others)


def chosen_cases(words: Sequence[str] | None) -> list[Case]:
    """Return the lines whose names hold one of the words; all without words."""
    return [case for case in CASES if not words or any(word in case.name for word in words)]


def costs(cases: Sequence[Case], repeats: int, patience: float, memory: bool) -> list[Any]:
    """Measure and print line after line."""
    print(write_line(HEADS), flush=True)
    lines = []
    for case in cases:
        lines.append(line_of(case, repeats, patience, memory))
        print(write_line(cells_of(lines[-1])), flush=True)
        if REFUSED in lines[-1]:
            print(f"  {lines[-1][REFUSED]}", flush=True)
    return lines


def without_gaps(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line as JSON can hold it: bars that were not set are null."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in line.items()
    }


def profile() -> dict[str, float]:
    """Print where the time goes."""
    shares = where_the_time_goes()
    for name, value in shares.items():
        print(f"{name:<45}{value:>8.2f}")
    return shares


def exact_fits() -> list[dict[str, Any]]:
    """Compare grids with scikit-learn's fits, and print what was found."""
    found = [
        exactness("products 11 x 100 x 26", None),
        exactness("animals 60 x 500 x 101", 20),
    ]
    for row in found:
        print(", ".join(f"{k}: {v}" for k, v in row.items()))
    return found


def parser() -> argparse.ArgumentParser:
    """Describe the options."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--only", nargs="+", metavar="WORD", help="lines whose names hold a word")
    made.add_argument("--list", action="store_true", help="print the lines' names and stop")
    made.add_argument("--repeats", type=int, default=3, help="pairs a line, at most (3)")
    made.add_argument(
        "--patience",
        type=float,
        default=PATIENCE,
        metavar="S",
        help=f"a line that took S CPU seconds is not repeated ({PATIENCE:g})",
    )
    made.add_argument("--no-memory", action="store_true", help="leave peak memory out")
    made.add_argument("--exactness", action="store_true")
    made.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    return made


def main(arguments: list[str] | None = None) -> None:
    """Print the tables; write them as JSON if asked."""
    options = parser().parse_args(arguments)
    cases = chosen_cases(options.only)
    if not cases or options.repeats < 1:
        parser().error("--only names no line (see --list)." if not cases else "--repeats is 1 up.")
    if options.list:
        print(*(case.name for case in cases), sep="\n")
        return
    with threadpool_limits(limits=1):
        warm_up(cases[0])
        lines = costs(cases, options.repeats, options.patience, not options.no_memory)
        result: dict[str, Any] = {"costs": [without_gaps(line) for line in lines]}
        if not options.only:
            result["profile"] = profile()
        if options.exactness:
            result["exactness"] = exact_fits()
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
