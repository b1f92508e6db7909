"""A/B/C in the animals study: table 2 and the appendix of the paper."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sourcewise.experiments.layout import Line, Sheet, Table
from sourcewise.experiments.names import BASELINES, CORRUPTIONS, DEFAULT, METHODS, PAPER
from sourcewise.experiments.paper_numbers import animals_numbers
from sourcewise.experiments.study_errors import StudyErrors


class Counts(NamedTuple):
    """Outcome of comparing two methods over many cells (settings that were repeated)."""

    # A, B and C.
    better: int
    equal: int
    worse: int
    # Cells that do not count: the methods have no two repeats there, or not the same ones.
    missing: int
    partial: int  # cells that do count, with fewer than all repeats

    @property
    def cells(self) -> int:
        """Cells that count."""
        return self.better + self.equal + self.worse

    def __str__(self) -> str:
        """Write as the paper does; a dash where nothing counts."""
        return f"{self.better}/{self.equal}/{self.worse}" if self.cells else "–"


def significance(ours: Any, theirs: Any) -> np.ndarray:
    """Compare the errors of two methods, cell by cell.

    A method is significantly better if the difference of the mean errors is larger than the sum of
    the two standard deviations over the repeats (section 4.3 of the paper): the error bars of one
    standard deviation do not meet. Standard deviations are those of a sample (n - 1), so one repeat
    has none.

    Parameters
    ----------
    ours, theirs : arrays of shape (n_cells, n_repeats)
        Errors; NaN for a run that is not there.

    Returns
    -------
    array of shape (n_cells,)
        1 where ours is significantly better, -1 where it is significantly worse, 0 where neither.
        NaN where they do not have the same repeats, or fewer than two.

    Examples
    --------
    >>> significance([[0.1, 0.2], [0.1, 0.2]], [[0.5, 0.6], [0.2, 0.3]])
    array([1., 0.])
    """
    both = np.array([ours, theirs], dtype=float)
    there = ~np.isnan(both)
    comparable = (there[0] == there[1]).all(axis=1) & (there[0].sum(axis=1) >= 2)
    result = np.full(len(comparable), np.nan)
    if comparable.any():
        mean = np.nanmean(both[:, comparable], axis=2)
        deviations = np.nanstd(both[:, comparable], axis=2, ddof=1).sum(axis=0)
        gap = mean[1] - mean[0]
        result[comparable] = np.where(np.abs(gap) > deviations, np.sign(gap), 0.0)
    return result


def count(ours: Any, theirs: Any) -> Counts:
    """Count A/B/C over cells; arguments as for :func:`significance`."""
    outcome = significance(ours, theirs)
    missing = np.isnan(outcome)
    incomplete = np.isnan(np.asarray(ours, float)).any(axis=1)
    better, equal, worse = (int((outcome == sign).sum()) for sign in (1, 0, -1))
    return Counts(better, equal, worse, int(missing.sum()), int((incomplete & ~missing).sum()))


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


def significance_sheets(study: StudyErrors, *, published: bool) -> list[Sheet]:
    """One sheet for each method of interest and each p: all corruptions, then one at a time."""
    if len(study.repeats) < 2:
        raise ValueError(ONE_REPEAT)
    subjects = [method for method in SUBJECTS if method in study.methods]
    if not subjects:
        raise ValueError(NO_SUBJECT)
    return [
        _sheet(study.at_share(share), subject, published=published)
        for subject in subjects
        for share in study.shares
    ]


def _sheet(study: StudyErrors, subject: str, *, published: bool) -> Sheet:
    (share,) = study.shares
    baselines = list(BASELINES)
    if subject == DEFAULT and PAPER in study.methods:
        baselines.append(PAPER)
    paper = animals_numbers() if published else {}
    tables, records = [], []
    for corruption in (None, *study.corruptions):
        numbers = [number for number in study.numbers if corruption is None or number]
        if not numbers:
            continue
        counts, lines = [], []
        for baseline in baselines:
            ours = [_count(study, subject, baseline, corruption, number) for number in numbers]
            printed = [paper.get((share, corruption, baseline, number), "") for number in numbers]
            counts += ours
            lines.append(Line(METHODS[baseline], list(map(str, ours))))
            if any(printed):
                lines.append(Line("", printed, printed=True))
            about = {"method": subject, "baseline": baseline, "p": share}
            about["corruption"] = corruption or "all"
            records += [
                about | {"n": n} | found._asdict() | _printed_record(cell)
                for n, found, cell in zip(numbers, ours, printed, strict=True)
            ]
        title = f"{SUBJECTS[subject]}, p = {share:g}, {_over(study, corruption, numbers)}"
        columns = [f"n = {n}" for n in numbers]
        tables.append(Table(title, "Baseline", columns, lines, _notes(study, counts)))
    return Sheet(
        f"animals-{subject}-p{share:g}",
        f"Animals: {SUBJECTS[subject].lower()} against each baseline, p = {share:g}",
        [A_B_C, *([PRINTED] if paper else [])],
        tables,
        records,
    )


def _count(
    study: StudyErrors, subject: str, baseline: str, corruption: str | None, number: int
) -> Counts:
    """Count over the cells of one corruption, or of all."""

    def cells(method: str) -> np.ndarray:
        """Errors, a cell a row, a repeat a column."""
        errors = study.of(method)[0, :, study.numbers.index(number)]
        if corruption is not None:
            errors = errors[study.corruptions.index(corruption)]
        elif not number:
            # Nothing is corrupted, so the same runs stand under every corruption: the first there.
            first = np.argmin(np.isnan(errors), axis=0)
            errors = np.take_along_axis(errors, first[None], axis=0)
        return errors.reshape(-1, len(study.repeats))

    return count(cells(subject), cells(baseline))


def _over(study: StudyErrors, corruption: str | None, numbers: list[int]) -> str:
    """Say what a table is over."""
    over, how_many, n_corruptions = "all corruptions", "", len(study.corruptions)
    if corruption is None:
        how_many = f"corruptions: {n_corruptions}, "
    else:
        over, n_corruptions = CORRUPTIONS.get(corruption, corruption), 1
    n_targets = len(study.targets)
    cells = sum(n_targets * (n_corruptions if number else 1) for number in numbers)
    return f"{over} ({how_many}targets: {n_targets}, cells: {cells}, repeats: {len(study.repeats)})"


def _notes(study: StudyErrors, counts: list[Counts]) -> list[str]:
    missing, partial = sum(c.missing for c in counts), sum(c.partial for c in counts)
    asked = missing + sum(c.cells for c in counts)
    return [
        *([LEFT_OUT.format(missing=missing, asked=asked)] if missing else []),
        *([PARTIAL.format(partial=partial, repeats=len(study.repeats))] if partial else []),
    ]


def _printed_record(cell: str) -> dict[str, Any]:
    names = ("paper_better", "paper_equal", "paper_worse")
    return dict(zip(names, cell.split("/") if cell else ("", "", ""), strict=True))
