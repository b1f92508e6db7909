"""``python -m benchmarks.hostile``: run the attacks, and print what they achieved."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.hostile.report import tables
from benchmarks.hostile.runs import BASELINES, DEFAULT, PAPER, STRICT, all_runs, compute_left, read

PUBLISHED = [Path(__file__).parent / "published" / name for name in ("runs.jsonl", "rivals.jsonl")]
METHODS = [DEFAULT, STRICT, *BASELINES, PAPER]


def main() -> None:
    """Run what is not there yet; the same command continues."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="every 31st run of two draws")
    parser.add_argument("--seeds", type=int, default=10, help="draws of every cell (10)")
    parser.add_argument("--only", nargs="+", metavar="METHOD", choices=METHODS, default=METHODS)
    parser.add_argument("--attacks", nargs="+", metavar="ATTACK", help="names of attacks")
    parser.add_argument("--problems", nargs="+", metavar="PROBLEM", help="names of problems")
    parser.add_argument("--hostile", nargs="+", type=int, help="hostile sources of ten")
    parser.add_argument("--minutes", type=float, default=np.inf, help="processor time to use")
    parser.add_argument(
        "--results", type=Path, default=Path("bench-results/hostile"), metavar="FOLDER"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--published", action="store_true", help="read what docs/hostile.md is of")
    options = parser.parse_args()
    if options.published:
        print(tables([row for path in PUBLISHED for row in read(path)]))
        return
    path = options.results / ("quick.jsonl" if options.quick else "runs.jsonl")
    if not options.report:
        runs = all_runs(range(2 if options.quick else options.seeds))
        if options.attacks:
            runs = [run for run in runs if run.attack in (*options.attacks, "none")]
        if options.problems:
            runs = [run for run in runs if run.problem in options.problems]
        if options.hostile:
            runs = [run for run in runs if run.hostile in options.hostile]
        runs = runs[::31] if options.quick else runs
        left = compute_left(runs, options.only, path, 60.0 * options.minutes)
        print(f"\n{left} runs are left: the same command continues." if left else "")
    print(tables(read(path)))


main()
