"""Tables of what the attacks achieved: means over problems, sizes of the reference and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.hostile.runs import ALONE, DEFAULT, STRICT

CELL = ["problem", "n_trusted", "attack", "hostile"]


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return results as a frame, with the error of the reference alone beside each."""
    frame = pd.DataFrame(rows)
    frame = frame.drop_duplicates([*CELL, "seed", "method"], keep="last")
    alone = frame[frame["method"] == ALONE].set_index([*CELL, "seed"])
    beside = frame.set_index([*CELL, "seed"]).index
    for name in ("error", "subgroup_error", "success"):
        if name in frame:
            frame[f"more_{name}"] = frame[name].to_numpy() - alone[name].reindex(beside).to_numpy()
    return frame


def _mean(values: pd.Series) -> str:
    values = values.dropna()
    if not len(values):
        return "–"
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():+.3f} ± {error:.3f}".replace("+0.", "+.").replace("-0.", "-.")


def _table(frame: pd.DataFrame, value: str, methods: list[str]) -> list[str]:
    ks = sorted(frame["hostile"].unique())
    lines = ["| attack | method | " + " | ".join(f"{k} of 10" for k in ks) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(ks))
    for attack, rows in frame.groupby("attack", sort=False):
        for method in methods:
            mine = rows[rows["method"] == method]
            if not len(mine):
                continue
            cells = [_mean(mine.loc[mine["hostile"] == k, value]) for k in ks]
            lines.append(f"| {attack} | {method} | " + " | ".join(cells) + " |")
    return lines


def worst_cells(frame: pd.DataFrame, method: str, value: str, n: int = 12) -> list[str]:
    """List the cells in which a method is farthest above the reference alone."""
    mine = frame[frame["method"] == method]
    means = mine.groupby(CELL)[value].agg(["mean", "sem", "count"]).sort_values("mean")[::-1]
    return [
        f"| {' | '.join(map(str, cell))} | {row['mean']:+.3f} ± {row['sem']:.3f} "
        f"| {int(row['count'])} |"
        for cell, row in means.head(n).iterrows()
    ]


def tables(rows: list[dict[str, Any]]) -> str:
    """Lay all tables out as Markdown."""
    if not rows:
        return "Nothing has been run."
    frame = frame_of(rows)
    methods = [m for m in (DEFAULT, STRICT) if m in set(frame["method"])]
    others = [m for m in frame["method"].unique() if m not in (*methods, ALONE)]
    cells = frame.groupby(CELL)["seed"].nunique()
    lines = [
        f"{frame.groupby([*CELL, 'seed']).ngroups} runs, {len(cells)} cells of "
        f"{cells.min()} to {cells.max()} draws.",
        "",
        "Error, less that of the reference alone (mean ± standard error):",
        "",
        *_table(frame, "more_error", [*methods, *others]),
        "",
        "Error on the subgroup, less that of the reference alone:",
        "",
        *_table(frame[frame["attack"].str.contains("subgroup")], "more_subgroup_error", methods),
    ]
    if "success" in frame:
        marked = frame[frame["attack"].str.startswith("trigger")]
        lines += ["", "Share of class 0 that the trigger turns into class 1:", ""]
        lines += _table(marked, "success", [*methods, ALONE, *others])
    if "weight" in frame:
        lines += ["", "Weight of hostile sources:", "", *_table(frame, "weight", methods)]
    for method in methods:
        lines += ["", f"Worst cells of {method}, error less that of the reference alone:", ""]
        lines += ["| problem | trusted | attack | hostile | more error | draws |"]
        lines += ["| --- | ---: | --- | ---: | ---: | ---: |"]
        lines += worst_cells(frame, method, "more_error")
    return "\n".join(lines)
