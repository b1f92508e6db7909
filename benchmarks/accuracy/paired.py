"""The present default against the published one: the same draws, one method, before and after.

``python -m benchmarks.accuracy.paired`` fits the default to every 23rd run of the confirmation half
(of ten classes, which take long, every 151st) and compares it with the published results, which
have what everything else gets on the same draws. Nothing may be chosen by what comes out. An
interrupted run continues; ``--report`` reads what is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.accuracy import summary
from benchmarks.accuracy.data import DATA_SETS, DataSet
from benchmarks.accuracy.design import data_set, is_development
from benchmarks.accuracy.methods import DEFAULT, REFERENCE_ONLY, run_default
from benchmarks.accuracy.report import markdown
from benchmarks.accuracy.runner import (
    KEY,
    Run,
    available,
    execute,
    extremes_plan,
    plan,
    read,
    without_too_small,
)

PUBLISHED = Path(__file__).with_name("published")
FAST, SLOW, EXTREMES = 23, 151, 23  # every so manieth run
SEEDS, EXTREME_SEEDS = 20, 60


def confirmation_plan(there: list[DataSet], fast: int = FAST, slow: int = SLOW) -> list[Run]:
    """Return runs of the confirmation half, spread over cells and draws."""

    def some(data_sets: list[DataSet], stride: int) -> list[Run]:
        runs = plan(data_sets, range(SEEDS))
        mine = [(cell, s) for cell, s in runs if not is_development(data_set(cell.data), s)]
        return mine[::stride]

    varied = [data for data in there if data.varied]
    return some(varied, fast) + some([data for data in there if not data.varied], slow)


def extremes_runs(there: list[DataSet], stride: int = EXTREMES) -> list[Run]:
    """Return runs of all sources bad, or none, spread over sixty draws."""
    return extremes_plan(there, range(EXTREME_SEEDS))[::stride]


def paired(after: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Return published results of these runs, and those of the default now beside them."""
    mine = after[[*KEY, "error", "auc"]].rename(columns={"error": "now", "auc": "auc_now"})
    return pd.merge(published, mine, on=KEY)


def table(both: pd.DataFrame) -> str:
    """Say what has changed, by data set and overall; errors are paired run by run."""
    default = both[both["method"] == DEFAULT]
    wide = both.pivot_table(index=KEY, columns="method", values="error")
    everything = summary.ALL_DATA
    harmed = (wide[everything] - wide[summary.ORACLE] >= summary.HARM).rename("harmed")
    default = default.merge(harmed, left_on=KEY, right_index=True)
    default = default.merge(wide[[REFERENCE_ONLY]], left_on=KEY, right_index=True)
    groups = [(name, part) for name, part in default.groupby("data", sort=False)]
    return markdown(
        ("data", "runs", "before", "after", "difference", "AUC before", "after", "all bad"),
        [_line(name, part) for name, part in [*groups, ("all", default)]],
    )


def _line(name: str, part: pd.DataFrame) -> tuple[str, ...]:
    difference = part["now"] - part["error"]
    harmed = part[part["harmed"]].dropna(subset="auc")
    bad = part[part["bad"] == 1.0]
    return (
        name,
        str(len(part)),
        f"{part['error'].mean():.4f}",
        f"{part['now'].mean():.4f}",
        _mean(difference),
        f"{harmed['auc'].mean():.3f}" if len(harmed) else "",
        f"{harmed['auc_now'].mean():.3f}" if len(harmed) else "",
        _mean(bad["now"] - bad[REFERENCE_ONLY]) if len(bad) else "",
    )


def _mean(values: pd.Series) -> str:
    error = values.sem()
    return f"{values.mean():+.4f}" + (f" ± {error:.4f}" if np.isfinite(error) else "")


def main(arguments: list[str] | None = None) -> None:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.paired")
    parser.add_argument("--extremes", action="store_true", help="all sources bad, or none")
    parser.add_argument("--report", action="store_true", help="run nothing, read what is there")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--results", type=Path, default=Path("bench-results/accuracy"))
    options = parser.parse_args(arguments)
    name = "extremes" if options.extremes else "runs"
    path = options.results / f"paired-{name}.parquet"
    if not options.report:
        there, missing = available(DATA_SETS, options.data)
        print(*missing, sep="\n", end="\n" if missing else "")
        runs = extremes_runs(there) if options.extremes else confirmation_plan(there)
        runs, _ = without_too_small(runs, options.data)
        execute(runs, path, options.data, jobs=1, fit_and_judge=run_default)
    if not path.exists():
        parser.error(f"there are no results at {path}.")
    print(table(paired(read(path), read(PUBLISHED / f"{name}.parquet"))))


if __name__ == "__main__":
    main()
