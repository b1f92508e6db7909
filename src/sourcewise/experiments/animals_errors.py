"""Mean errors in the animals study: what the counts of A/B/C rest on."""

from __future__ import annotations

import numpy as np

from sourcewise.experiments.layout import Sheet, Table
from sourcewise.experiments.means import (
    PLUS_MINUS,
    left_out_notes,
    mean_lines,
    mean_record,
)
from sourcewise.experiments.names import CORRUPTIONS
from sourcewise.experiments.study_errors import StudyErrors
from sourcewise.experiments.summaries import summarise

OVER_TARGETS = (
    "Means over targets and repeats. Targets of one repeat share their rows, so the standard error "
    "is that of the repeats' means over targets."
)


def animals_errors_sheet(study: StudyErrors, remarks: list[str]) -> Sheet:
    """Mean error of every method, a table for each corruption; all runs of one p."""
    (share,) = study.shares
    tables, records = [], []
    for c, corruption in enumerate(study.corruptions):
        # A repeat that lacks a target would average over others than the rest.
        by_repeat = study.values[:, 0, c].mean(axis=2)  # (methods, numbers, repeats)
        summaries = [summarise(by_repeat[:, k]) for k in range(len(study.numbers))]
        lines = mean_lines(study.methods, summaries)
        records += [
            {"p": share, "corruption": corruption, "n": number} | mean_record(method, summary, m)
            for number, summary in zip(study.numbers, summaries, strict=True)
            for m, method in enumerate(study.methods)
        ]
        repeats = sorted({summary.runs for summary in summaries})
        shown = str(repeats[0]) if len(repeats) == 1 else f"{repeats[0]} to {repeats[-1]}"
        title = (
            f"Mean classification error, p = {share:g}, {CORRUPTIONS.get(corruption, corruption)} "
            f"(targets: {len(study.targets)}, repeats: {shown})"
        )
        there = ~np.isnan(study.values[:, 0, c])
        missing = int((there.any(axis=0) & ~there.all(axis=0)).sum())
        columns = [f"n = {number}" for number in study.numbers]
        tables.append(Table(title, "Algorithm", columns, lines, left_out_notes(missing)))
    return Sheet(
        f"animals-errors-p{share:g}",
        f"Animals: mean errors, p = {share:g}",
        [PLUS_MINUS, OVER_TARGETS, *remarks],
        tables,
        records,
    )
