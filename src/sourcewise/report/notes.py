"""Sentences beside the table: what the model is made of, what was left out or not looked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from sourcewise.core.copies import NO_NUMBERS, NOT_HERE, TWINS, Copies, more_than_chance
from sourcewise.core.mixture import ALONE, DEFAULT_LEARNER, TOLD, UNTOLD, WEIGHTED

COPIES = (
    "{rows} of {sources} {repeat} left out, of measuring and of training: "
    "whoever has the trusted rows could buy trust with them ({listed})."
)
NOT_SOUGHT = "Nobody looked for copies of trusted rows: {why}."
WHY = {
    TWINS: "the trusted rows repeat each other, so that equal rows mean nothing",
    NO_NUMBERS: "the rows are not numbers, and have no distances",
    NOT_HERE: "the sources are elsewhere, and must not see the trusted rows",
}
RELABELLED = "{name!r} labelled {rows} of your trusted rows itself{how}.{warning}"
AS_YOU_DID = "Sources labelled {rows} as you did that are trusted rows too, and none differently."
WARNING = " That is more than slips: look at these rows before you use any of its labels."
SUBGROUP = (
    "{name!r} goes against your reference in one region ({where}): a model of your trusted rows is "
    "{what} for {here:.0%} of its rows there, for {own:.0%} of yours there, and for "
    "{elsewhere:.0%} of its rows elsewhere."
)
SCATTERED = (
    "The labels of {name!r} scatter {ratio:.1f} times as widely around a model of your trusted "
    "rows as your own do: they are noisy, or its cases are harder, even where that does little "
    "harm."
)
UNCHECKED_REGION = (
    "Of the rows of sources that nothing was found against, {share:.0%} lie in a region ({where}) "
    "with {rows}: nobody checked what the sources say there."
)
MORE = "The same holds for {more}."
NAMED = 5
# Slips that careful people make, and the level of the test for more, for all sources together.
SLIPS, LEVEL = 0.05, 0.05
UNCHECKED = (
    "The trusted rows hold {rows} of class {name!r}: nobody checked what the sources say about "
    "that class."
)
LEAST_OF_CLASS = 5
MEMBERS = {
    DEFAULT_LEARNER: "the linear default",
    ALONE: "your estimator on the reference alone",
    WEIGHTED: "your estimator on weighted sources",
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

    The table shows weights even where most of the model was trained without them. ``shares`` say
    what each of ``MEMBERS`` counts, and sum to 1.
    """
    ranked = sorted(shares, key=lambda name: -shares[name])
    if len(ranked) == 1:
        notes = [SINGLE.format(part=MEMBERS[ranked[0]])]
    else:
        parts = ", ".join(f"{_percent(shares[name])} {MEMBERS[name]}" for name in ranked)
        notes = [AVERAGE.format(parts=parts)]
    parts_of = ((NOT_WEIGHED, (TOLD, UNTOLD)), (NOT_YOURS, (DEFAULT_LEARNER,)))
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
        UNCHECKED.format(rows=_rows(count), name=name)
        for name, count in zip(classes, counts, strict=True)
        if count < LEAST_OF_CLASS
    ][:NAMED]


def copies_notes(copies: Copies, names: Sequence[Any], rows: np.ndarray, trusted: int) -> list[str]:
    """Say which sources hold more copies of trusted rows than chance explains, how labelled.

    ``rows`` of each source are without them; by so many ``trusted`` rows, a share of clean rows
    would look like copies.
    """
    counts, labels = copies.counts, copies.labels
    if counts is None:
        return [] if copies.unsought is None else [NOT_SOUGHT.format(why=WHY[copies.unsought])]
    found = np.flatnonzero(more_than_chance(counts, rows, copies.by_chance, trusted))
    said = [] if labels is None else relabelled_notes(names, labels)
    if not len(found):
        return said
    ranked = sorted(found.tolist(), key=lambda i: -counts[i])
    listed = ", ".join(f"{names[i]!r}: {counts[i]}" for i in ranked[:NAMED])
    more = f", and {len(ranked) - NAMED} more" if len(ranked) > NAMED else ""
    sources = "1 source" if len(ranked) == 1 else f"{len(ranked)} sources"
    total = int(counts[found].sum())
    note = COPIES.format(
        rows=_rows(total),
        sources=sources,
        repeat="repeats a trusted row and was" if total == 1 else "repeat trusted rows and were",
        listed=listed + more,
    )
    return [note, *said]


def relabelled_notes(names: Sequence[Any], labels: np.ndarray) -> list[str]:
    """Say how sources labelled trusted rows themselves, those with more than slips first."""
    rows, differ = labels[:, 0].astype(int), labels[:, 1].astype(int)
    n_sources = max(len(rows) - 1, 1)
    chance = np.where(rows > 0, stats.binom.sf(differ - 1, np.maximum(rows, 1), SLIPS), 1.0)
    warned = (differ > 0) & (chance < LEVEL / n_sources)
    order = sorted(np.flatnonzero(rows).tolist(), key=lambda i: (not warned[i], -rows[i]))
    shown = [i for i in order if warned[i]] or [i for i in order if differ[i]]
    if order and not shown:
        return [AS_YOU_DID.format(rows=_rows(int(rows.sum())))]
    return [
        RELABELLED.format(
            name=names[i],
            rows=rows[i],
            how=_how(rows[i], differ[i], float(labels[i, 2])),
            warning=WARNING if warned[i] else "",
        )
        for i in shown[:NAMED]
    ]


def _how(rows: int, differ: int, mean: float) -> str:
    share = f"{differ / rows:.0%}"
    if np.isnan(mean):
        return f", {differ} of them differently ({share})"
    verb = "differs" if differ == 1 else "differ"
    return (
        f": {differ} ({share}) {verb} by more than half a standard deviation of your labels, the "
        f"mean difference is {float(f'{mean:.3g}'):+,.10g}"
    )


def closer_notes(
    look: Any, names: Sequence[Any], columns: Sequence[str] | None, numbers: bool
) -> list[str]:
    """Put what a closer look saw (`CloserLook`) into sentences."""
    what = "far off" if numbers else "wrong"
    regions = [
        SUBGROUP.format(
            name=names[one.source],
            where=in_columns(one.columns, columns),
            what=what,
            here=one.here,
            own=one.own,
            elsewhere=one.elsewhere,
        )
        for one in look.regions
    ]
    scattered = [
        SCATTERED.format(name=names[i], ratio=ratio)
        for i, ratio in sorted(look.scattered, key=lambda pair: -pair[1])
    ]
    beside = [
        UNCHECKED_REGION.format(
            share=share,
            where=in_columns(where, columns),
            rows="1 trusted row" if rows == 1 else f"{rows or 'no'} trusted rows",
        )
        for share, rows, where in look.unchecked
    ]
    return [*_few(scattered), *_few(regions), *_few(beside)]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _few(sentences: list[str]) -> list[str]:
    more = len(sentences) - NAMED
    if more <= 0:
        return sentences
    return [*sentences[:NAMED], MORE.format(more="1 more" if more == 1 else f"{more} more")]


def in_columns(columns: Sequence[tuple[int, bool]], names: Sequence[str] | None) -> str:
    """Name a region by the features that set it apart."""
    return ", ".join(
        f"{'high' if high else 'low'} {names[j]!r}"
        if names is not None and j < len(names)
        else f"feature {j} {'high' if high else 'low'}"
        for j, high in columns
    )
