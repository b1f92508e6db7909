"""How often each statement of the report is true, data set by data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.accuracy.report import markdown
from benchmarks.coverage.data import Case
from sourcewise.audit.expected_errors import Expected

LEVEL, Z = 0.05, 1.959964
Redraws = Sequence[dict[str, Any]]

HEADS = {
    "sources": (
        "data",
        "redraws",
        "discrepancy ± 1.96 s.e.",
        "natural p < .05",
        "half random: said",
        "found",
        "above detectable",
        "found",
    ),
    "errors": ("data", "redraws", "error", "difference", '"clearly better"', "wrong"),
}


def table(part: str, found: dict[Case, Redraws]) -> str:
    """Lay out the statements about sources, or those about errors; then the bars."""
    figures = {"sources": of_sources, "errors": of_errors}[part]
    lines = {case: figures(case, redraws) for case, redraws in found.items()}
    rows = [
        (case.name, str(len(found[case])), *(_shown(value) for value in line.values()))
        for case, line in lines.items()
    ]
    bars = {"sources": bars_of_sources, "errors": bars_of_errors}[part](list(lines.values()))
    heads = ("bar", "wanted", "found", "held")
    return markdown(HEADS[part], rows) + "\n" + markdown(heads, bars)


def of_sources(case: Case, redraws: Redraws) -> dict[str, float]:
    """Return what is so of discrepancies and p-values."""
    p_values = np.array([one["p_values"] for one in redraws])
    d = np.array([one["discrepancies"] for one in redraws])
    errors = np.array([one["standard_errors"] for one in redraws])
    detectable = [np.inf if one["detectable"] is None else one["detectable"] for one in redraws]
    above = d.mean(axis=0) >= np.median(detectable)
    return {
        "held": float(np.mean(np.abs(d - d.mean(axis=0)) <= Z * errors)),
        "natural": float(np.mean(p_values[:, ::2] < LEVEL)) if case.natural else np.nan,
        "said": float(np.mean([one["power"] for one in redraws])),
        "found": float(np.mean(p_values[:, 1::2] < LEVEL)),
        "above": int(above.sum()),
        "above found": float(np.mean(p_values[:, above] < LEVEL)) if above.any() else np.nan,
    }


def of_errors(case: Case, redraws: Redraws) -> dict[str, float]:
    """Return what is so of expected errors and their differences."""
    claims = [wrong for one in redraws if (wrong := claim_of(one)) is not None]
    return {
        kind: float(np.mean([held(one, kind, name) for one in redraws for name in one[kind]]))
        for kind in ("errors", "differences")
    } | {"claimed": len(claims), "wrong": sum(claims)}


def held(one: dict[str, Any], kind: str, name: str) -> bool:
    """Whether an interval holds the error on fresh rows, whose own noise is allowed for.

    The two are squared and added on the side where the error lies (Newcombe 1998), because the
    interval of a share is longer above than below.
    """
    low, found, high = one[kind][name]
    key = name if kind == "errors" else f"less {name}"
    truth, noise = one["fresh"][key], Z * one["noise"][key]
    reach = found - low if truth < found else high - found
    return bool(abs(truth - found) <= np.hypot(reach, noise))


def claim_of(one: dict[str, Any]) -> bool | None:
    """Whether "clearly better than the reference alone" is wrong; None where it is not claimed."""
    name = "reference only"
    low, found, high = one["differences"][name]
    if found >= 0.0 or not Expected(name, found, low, high).clear:
        return None
    return bool(one["fresh"][f"less {name}"] > 0.0)


def bars_of_sources(lines: Sequence[dict[str, float]]) -> list[tuple[str, ...]]:
    """Hold statements about sources against the bars."""
    less = np.array([line["said"] - line["found"] for line in lines])
    return [
        _coverage("discrepancy ± 1.96 s.e.", [line["held"] for line in lines]),
        _power("power less than said: mean, worst", less),
        _power("power more than said: mean, worst", -less),
    ]


def bars_of_errors(lines: Sequence[dict[str, float]]) -> list[tuple[str, ...]]:
    """Hold statements about errors against the bars."""
    claimed, wrong = (sum(line[key] for line in lines) for key in ("claimed", "wrong"))
    return [
        _coverage("expected error", [line["errors"] for line in lines]),
        _coverage("difference to the two ends", [line["differences"] for line in lines]),
        (
            '"clearly better than the reference alone" is wrong',
            "0.05",
            f"{wrong} of {claimed}",
            _yes(wrong <= 0.05 * claimed),
        ),
    ]


def _coverage(words: str, shares: Sequence[float]) -> tuple[str, ...]:
    mean, worst = np.mean(shares), np.min(shares)
    found = f"{mean:.3f}, {worst:.3f}"
    return (f"{words}: mean, worst", "0.92, 0.85", found, _yes(mean >= 0.92 and worst >= 0.85))


def _power(words: str, off: np.ndarray) -> tuple[str, ...]:
    return (words, "0.1", f"{off.mean():+.2f}, {off.max():+.2f}", _yes(off.max() <= 0.1))


def _yes(held: bool) -> str:
    return "yes" if held else "NO"


def _shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if np.isnan(value) else f"{value:.3f}"
