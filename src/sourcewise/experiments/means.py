"""Means with standard errors, as cells and records of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.experiments.layout import Line
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.summaries import Summary

PLUS_MINUS = "Mean error on the test rows ± its standard error."
NOT_ALL = "Runs left out because some methods lack them: {left_out}."


def mean_cell(summary: Summary, method: int, shorten: Any = np.round) -> str:
    """Mean and standard error of one method."""
    error, spread = summary.mean[method], summary.standard_error[method]
    if np.isnan(error):
        return "–"
    spread_shown = "–" if np.isnan(spread) else f"{shorten(spread, 4):.4f}"
    return f"{shorten(error, 3):.3f} ± {spread_shown}"


def best_method(summary: Summary) -> int | None:
    """Position of the lowest mean."""
    return None if np.isnan(summary.mean).all() else int(np.nanargmin(summary.mean))


def mean_lines(methods: Sequence[str], summaries: Sequence[Summary]) -> list[Line]:
    """Return a line for every method, a cell for every summary, the lowest mean of each in bold."""
    best = [best_method(summary) for summary in summaries]
    return [
        Line(
            METHODS.get(method, method),
            [mean_cell(summary, m) for summary in summaries],
            frozenset(k for k, which in enumerate(best) if which == m),
        )
        for m, method in enumerate(methods)
    ]


def mean_record(method: str, summary: Summary, k: int) -> dict[str, Any]:
    """Return the same numbers, not rounded."""
    return {
        "method": method,
        "error": _number(summary.mean[k]),
        "standard_error": _number(summary.standard_error[k]),
        "standard_deviation": _number(summary.deviation[k]),
        "runs": summary.runs,
    }


def left_out_notes(number: int) -> list[str]:
    """Say how many runs do not count, if there are any."""
    return [NOT_ALL.format(left_out=number)] if number else []


def _number(value: float) -> float | str:
    return "" if np.isnan(value) else float(value)
