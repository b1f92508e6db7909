"""What the results say: mean errors, and the bars that are to be held."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.any_model.runs import ALONE, OURS, SINGLE

METHODS = (*SINGLE, OURS)


def report(rows: list[dict[str, Any]]) -> str:
    """Tables for classes and for numbers, and the bars."""
    if not rows:
        return "There are no results."
    parts = []
    for regression, title in ((False, "Error rate"), (True, "Root mean squared error / deviation")):
        chosen = [row for row in rows if row["regression"] == regression]
        if chosen:
            parts += [f"{title}, {len(chosen)} runs:\n", _table(chosen), "", _bars(chosen), ""]
    costs = [row["cost"] for row in rows]
    parts.append(
        f"Cost in fits to all rows, one linear default fit apart: median {np.median(costs):.1f}, "
        f"90 % below {np.quantile(costs, 0.9):.1f}."
    )
    return "\n".join(parts)


def _table(rows: list[dict[str, Any]]) -> str:
    lines = ["| learner | bad | runs | " + " | ".join(METHODS) + " |"]
    lines.append("| --- " * (3 + len(METHODS)) + "|")
    for learner in dict.fromkeys(row["learner"] for row in rows):
        for bad in sorted({row["bad"] for row in rows}):
            errors = _errors([r for r in rows if (r["learner"], r["bad"]) == (learner, bad)])
            if len(errors):
                means = " | ".join(f"{mean:.3f}" for mean in errors.mean(axis=0))
                lines.append(f"| {learner} | {bad:g} | {len(errors)} | {means} |")
    return "\n".join(lines)


def _errors(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.array([[row["errors"][m] for m in METHODS] for row in rows]).reshape(-1, len(METHODS))


def _bars(rows: list[dict[str, Any]]) -> str:
    errors, bad = _errors(rows), np.array([row["bad"] for row in rows])
    excess = errors[:, -1] - errors[:, :-1].min(axis=1)
    names = [f"{row['data']}, {row['bad']:.0%} bad" for row in rows]
    worst = max(
        (float(excess[[n == name for n in names]].mean()), name) for name in dict.fromkeys(names)
    )
    fixed = []
    for share in sorted(set(bad.tolist())):
        means = errors[bad == share].mean(axis=0)
        best = int(np.argmin(means[:-1]))
        paired = errors[bad == share][:, -1] - errors[bad == share][:, best]
        fixed.append(f"{share:g}: {paired.mean():+.4f} ± {_error(paired):.4f} ({METHODS[best]})")
    gain = (errors[:, -1] - errors[:, METHODS.index(ALONE)])[bad <= 0.6]
    lines = [
        f"- {OURS} minus the best single method for each share of bad sources: " + "; ".join(fixed),
        f"- minus the best single method of each run: {excess.mean():+.4f} ± {_error(excess):.4f}"
        " (bar +.005)",
        f"- worst data set and share: {worst[0]:+.4f}, {worst[1]} (bar +.02)",
    ]
    if len(gain):
        lines.append(
            f"- minus {ALONE}, at least 40 % good: {gain.mean():+.4f} ± {_error(gain):.4f}"
            " (bar -.01)"
        )
    return "\n".join(lines)


def _error(values: np.ndarray) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
