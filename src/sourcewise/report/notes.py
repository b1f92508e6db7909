"""Sentences beside the table: what the model is made of, what was left out or not looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COPIES = (
    "{rows} rows of {sources} repeat trusted rows and were left out, of measuring and of training: "
    "whoever has the trusted rows could buy trust with them ({listed})."
)
NOT_SOUGHT = "Nobody looked for copies of trusted rows: {why}."
# Why copies were not looked for.
TWINS = "the trusted rows repeat each other, so that equal rows mean nothing"
NO_NUMBERS = "the rows are not numbers, and have no distances"
NOT_HERE = "the sources are elsewhere, and must not see the trusted rows"
NAMED = 5
UNCHECKED = (
    "The trusted rows hold {rows} of class {name!r}: nobody checked what the sources say about "
    "that class."
)
LEAST_OF_CLASS = 5
# What the model is made of, by names of members.
LINEAR, TOLD, UNTOLD = "linear default", "source as a feature", "all rows"
MEMBERS = {
    LINEAR: "the linear default",
    "reference only": "your estimator on the reference alone",
    "weighted sources": "your estimator on weighted sources",
    TOLD: "your estimator on all rows with the source as a feature",
    UNTOLD: "your estimator on all rows alike, as it cannot be told their sources",
}
AVERAGE = "The model is an average: {parts}."
SINGLE = "The model is {part}, which did best on trusted rows that it had not seen."
NOT_WEIGHED = (
    "{share} does not use the weights of this table: all rows are in it, those of sources without "
    "weight too."
)
NOT_YOURS = "{share} is the linear default and not your estimator."
LARGE_SHARE = 0.25  # of the model, from which on a part gets a sentence of its own


def member_notes(shares: Mapping[str, float]) -> list[str]:
    """Say what a model with an estimator of the user's own is made of.

    The table shows weights even where most of the model was trained without them.

    Parameters
    ----------
    shares : mapping of names in ``MEMBERS`` to float
        What each counts; they sum to 1.
    """
    ranked = sorted(shares, key=lambda name: -shares[name])
    if len(ranked) == 1:
        notes = [SINGLE.format(part=MEMBERS[ranked[0]])]
    else:
        parts = ", ".join(f"{_percent(shares[name])} {MEMBERS[name]}" for name in ranked)
        notes = [AVERAGE.format(parts=parts)]
    parts_of = ((NOT_WEIGHED, (TOLD, UNTOLD)), (NOT_YOURS, (LINEAR,)))
    for sentence, names in parts_of:
        share = sum(shares.get(name, 0.0) for name in names)
        if share >= LARGE_SHARE:
            whole = set(ranked) <= set(names)
            told = "The model" if whole else f"{_percent(share)} of the model"
            notes.append(sentence.format(share=told))
    return notes


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"


def class_notes(classes: Sequence[Any], counts: Sequence[int]) -> list[str]:
    """Name the classes of which there are too few trusted rows to judge anything by."""
    return [
        UNCHECKED.format(rows=f"{count} row" if count == 1 else f"{count} rows", name=name)
        for name, count in zip(classes, counts, strict=True)
        if count < LEAST_OF_CLASS
    ][:NAMED]


def copies_notes(
    copies: np.ndarray | None,
    unsought: str | None,
    names: Sequence[Any],
    rows: np.ndarray,
    by_chance: float,
) -> list[str]:
    """Say which sources hold more copies of trusted rows than chance explains.

    Parameters
    ----------
    copies : int array of shape (n_sources,), or None where nobody looked
    unsought : str, optional
        Why nobody did.
    names : sequence
    rows : int array of shape (n_sources,)
        Without the copies.
    by_chance : float
        Share of clean rows that would look like copies.
    """
    if copies is None:
        return [] if unsought is None else [NOT_SOUGHT.format(why=unsought)]
    expected = by_chance * (rows + copies)
    found = np.flatnonzero(copies > expected + 3.0 * np.sqrt(expected))
    if not len(found):
        return []
    ranked = sorted(found.tolist(), key=lambda i: -copies[i])
    listed = ", ".join(f"{names[i]!r}: {copies[i]}" for i in ranked[:NAMED])
    more = f", and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    sources = "1 source" if len(ranked) == 1 else f"{len(ranked)} sources"
    total = int(copies[found].sum())
    return [COPIES.format(rows=total, sources=sources, listed=listed + more)]
