"""A/B/C in the animals study: table 2 and the appendix of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.experiments.layout import Line, Sheet, Table
from sourcewise.experiments.names import BASELINES, CORRUPTIONS, DEFAULT, METHODS, PAPER
from sourcewise.experiments.paper_numbers import animals_numbers
from sourcewise.experiments.significance import Counts, count
from sourcewise.experiments.study_errors import StudyErrors

SUBJECTS = {PAPER: "The paper's method", DEFAULT: "The default"}
A_B_C = (
    "A/B/C: in how many cells (a target under a corruption) the method is significantly better "
    "than the baseline, equal, and significantly worse. Significantly: the mean errors differ by "
    "more than the sum of the two standard deviations over the repeats. At n = 0 nothing is "
    "corrupted, so a target counts once."
)
PRINTED = "The paper's own counts, of its method over 85 targets and 100 repeats, stand below ours."
LEFT_OUT = (
    "Comparisons missing: {missing} of {asked}. The two methods have fewer than two repeats there, "
    "or not the same ones."
)
PARTIAL = "Comparisons that rest on fewer than {repeats} repeats: {partial}."
ONE_REPEAT = (
    "The animals results hold one repeat, and A/B/C need a standard deviation over repeats; run "
    "'sourcewise reproduce animals' with --runs 2 or more."
)
NO_SUBJECT = (
    "The animals results hold neither the paper's method ('paper') nor the default ('default'), so "
    "there is nothing to count."
)


def animals_sheets(study: StudyErrors, remarks: list[str], *, published: bool) -> list[Sheet]:
    """One sheet for each method of interest and each p: all corruptions, then one at a time."""
    if len(study.repeats) < 2:
        raise ValueError(ONE_REPEAT)
    subjects = [method for method in SUBJECTS if method in study.methods]
    if not subjects:
        raise ValueError(NO_SUBJECT)
    return [
        _sheet(study.at_share(share), subject, remarks, published=published)
        for subject in subjects
        for share in study.shares
    ]


def _sheet(study: StudyErrors, subject: str, remarks: list[str], *, published: bool) -> Sheet:
    (share,) = study.shares
    baselines = list(BASELINES)
    if subject == DEFAULT and PAPER in study.methods:
        baselines.append(PAPER)
    paper = animals_numbers() if published else {}
    tables, records = [], []
    for corruption in (None, *study.corruptions):
        counts = {
            (baseline, number): count(
                _cells(study, subject, corruption, number),
                _cells(study, baseline, corruption, number),
            )
            for baseline in baselines
            for number in study.numbers
            if corruption is None or number
        }
        if not counts:
            continue
        printed = {
            (baseline, number): paper.get((share, corruption, baseline, number), "")
            for baseline, number in counts
        }
        tables.append(_table(study, subject, corruption, baselines, counts, printed))
        records += [
            _record(subject, share, corruption, key, counts[key], printed[key]) for key in counts
        ]
    name = f"animals-{subject}-p{share:g}"
    title = f"Animals: {SUBJECTS[subject].lower()} against each baseline, p = {share:g}"
    remarks = [A_B_C, *([PRINTED] if paper else []), *remarks]
    return Sheet(name, title, remarks, tables, records)


def _cells(study: StudyErrors, method: str, corruption: str | None, number: int) -> np.ndarray:
    """Errors of a method, a cell a row, a repeat a column."""
    errors = study.of(method)[0, :, study.numbers.index(number)]
    if corruption is not None:
        return errors[study.corruptions.index(corruption)]
    if number:
        return errors.reshape(-1, len(study.repeats))
    # Nothing is corrupted, so the same runs stand under every corruption: take the first there.
    first = np.argmin(np.isnan(errors), axis=0)
    return np.take_along_axis(errors, first[None], axis=0)[0]


def _table(
    study: StudyErrors,
    subject: str,
    corruption: str | None,
    baselines: list[str],
    counts: dict[tuple[str, int], Counts],
    printed: dict[tuple[str, int], str],
) -> Table:
    numbers = sorted({number for _, number in counts})
    lines = []
    for baseline in baselines:
        lines.append(Line(METHODS[baseline], [str(counts[baseline, n]) for n in numbers]))
        if any(printed[baseline, n] for n in numbers):
            lines.append(Line("", [printed[baseline, n] for n in numbers], printed=True))
    (share,) = study.shares
    if corruption is None:
        over, how_many = "all corruptions", f"corruptions: {len(study.corruptions)}, "
    else:
        over, how_many = CORRUPTIONS.get(corruption, corruption), ""
    cells = _number_of_cells(study, corruption, numbers)
    title = (
        f"{SUBJECTS[subject]}, p = {share:g}, {over} ({how_many}targets: {len(study.targets)}, "
        f"cells: {cells}, repeats: {len(study.repeats)})"
    )
    return Table(title, "Baseline", [f"n = {n}" for n in numbers], lines, _notes(study, counts))


def _number_of_cells(study: StudyErrors, corruption: str | None, numbers: list[int]) -> int:
    clean = len(study.targets)
    full = clean * (len(study.corruptions) if corruption is None else 1)
    return sum(full if number else clean for number in numbers)


def _notes(study: StudyErrors, counts: dict[tuple[str, int], Counts]) -> list[str]:
    missing = sum(c.missing for c in counts.values())
    partial = sum(c.partial for c in counts.values())
    asked = missing + sum(c.cells for c in counts.values())
    return [
        *([LEFT_OUT.format(missing=missing, asked=asked)] if missing else []),
        *([PARTIAL.format(partial=partial, repeats=len(study.repeats))] if partial else []),
    ]


def _record(
    subject: str,
    share: float,
    corruption: str | None,
    key: tuple[str, int],
    counts: Counts,
    printed: str,
) -> dict[str, Any]:
    a, b, c = printed.split("/") if printed else ("", "", "")
    return {
        "method": subject,
        "baseline": key[0],
        "p": share,
        "corruption": corruption or "all",
        "n": key[1],
        **counts._asdict(),
        "paper_better": a,
        "paper_equal": b,
        "paper_worse": c,
    }
