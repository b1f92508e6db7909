"""Ask whether the report's intervals hold what they promise: ``python -m benchmarks.coverage``.

Sixty trusted rows, a hundred rows a source, 40 redraws of each of thirteen data sets (those of
``benchmarks.accuracy``, and three others with natural sources); ``--quick`` makes 8. Statements
about sources cost a tenth of a fit each, those about errors six fits and their two ends. An
interrupted run continues; ``--report`` reads what is there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.data import Absent
from benchmarks.coverage.data import CASES, TRUSTED, Case
from benchmarks.coverage.redraws import PARTS
from benchmarks.coverage.statements import table

REDRAWS, QUICK = 40, 8
DIGITS = 6  # behind the point, of what is kept


def main(arguments: list[str] | None = None) -> None:
    """Run what is not there yet, and print the tables."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} redraws")
    parser.add_argument("--redraws", type=int, help=f"of each data set ({REDRAWS})")
    parser.add_argument("--only", nargs="+", metavar="DATA", choices=names, help="data sets")
    parser.add_argument("--trusted", type=int, default=TRUSTED, help=f"rows ({TRUSTED})")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument("--results", type=Path, default=Path("bench-results/coverage"))
    options = parser.parse_args(arguments)
    redraws = options.redraws or (QUICK if options.quick else REDRAWS)
    cases = [case for case in CASES if case.name in (options.only or names)]
    for part in options.part:
        found = {}
        for case in cases:
            path = options.results / file_name(case, part, options.trusted)
            if not options.report:
                extend(path, case, part, redraws, options.data, options.trusted)
            if lines := read(path)[:redraws]:
                found[case] = lines
        if not found:
            parser.error(f"there are no results in {options.results}.")
        print(f"## Statements about {part}\n\n{table(part, found)}", flush=True)


def file_name(case: Case, part: str, trusted: int = TRUSTED) -> str:
    """Say where redraws are kept."""
    more = "" if trusted == TRUSTED else f".{trusted}-trusted"
    return f"{case.name.replace(' ', '-')}.{part}{more}.jsonl"


def read(path: Path) -> list[dict[str, Any]]:
    """Redraws that are there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def extend(
    path: Path, case: Case, part: str, redraws: int, folder: Path, trusted: int = TRUSTED
) -> None:
    """Add redraws that are not there, one line each."""
    try:
        world = case.make(folder)
    except Absent as reason:
        print(f"{case.name} is left out: {reason}.")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(len(read(path)), redraws):
        with threadpool_limits(1):
            line = PARTS[part](case, world, seed, trusted)
        with path.open("a") as file:
            file.write(json.dumps(plain(line)) + "\n")


def plain(value: Any) -> Any:
    """Round numbers, and leave out infinite ones, which JSON has not."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return round(value, DIGITS) if np.isfinite(value) else None
    return value


if __name__ == "__main__":
    main()
