"""Errors of a study's runs as one array, read from a file of results, and their means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sourcewise.experiments.names import CORRUPTIONS, METHODS, in_order
from sourcewise.experiments.results import Row, reading

# Of a row: its key and its error.
FIELDS = Row._fields[: Row._fields.index("error") + 1]
# A grid that was run in parts may have gaps; a forged file could ask for any number of cells.
LEAST_CELLS, CELLS_A_ROW, MOST_STUDIES = 10_000_000, 100, 10
NO_GRID = (
    "{path} is no study: its {rows:,} rows are scattered over {cells:,} combinations; run it "
    "again, into another file."
)

AXES = ("method", "p", "corruption", "n", "target", "repeat")


@dataclass(frozen=True)
class StudyErrors:
    """Errors of all methods in all runs of a study."""

    # What there is along each axis; shares are p and numbers are n in the paper.
    methods: list[str]
    shares: list[float]
    corruptions: list[str]
    numbers: list[int]
    targets: list[str]
    repeats: list[int]
    # Of shape (methods, shares, corruptions, numbers, targets, repeats); NaN for a run that is not
    # there.
    values: np.ndarray

    def of(self, method: str) -> np.ndarray:
        """Errors of one method; all NaN for a method that was not run."""
        if method not in self.methods:
            return np.full(self.values.shape[1:], np.nan)
        errors: np.ndarray = self.values[self.methods.index(method)]
        return errors

    def at_share(self, share: float) -> StudyErrors:
        """Keep the runs at one p, and of the axes what has runs at that p."""
        part = self.values[:, [self.shares.index(share)]]
        there = ~np.isnan(part)
        corruptions = np.flatnonzero(there.any(axis=(0, 1, 3, 4, 5)))
        numbers = np.flatnonzero(there.any(axis=(0, 1, 2, 4, 5)))
        return replace(
            self,
            shares=[share],
            corruptions=[self.corruptions[k] for k in corruptions],
            numbers=[self.numbers[k] for k in numbers],
            values=part[:, :, corruptions][:, :, :, numbers],
        )


@dataclass(frozen=True)
class Studies:
    """What a file of results holds: its settings, and the errors of each study by its name."""

    settings: dict[str, str]
    errors: dict[str, StudyErrors]


def read_studies(path: Path) -> Studies:
    """Read the errors of a file of results, finished or not."""
    with reading(path) as (settings, batches):
        return Studies(settings, arrange(batches, path))


def arrange(
    batches: Iterable[Sequence[tuple[Any, ...]]], path: Path | str = "The file of results"
) -> dict[str, StudyErrors]:
    """Lay rows out as arrays, a study each; a row is a tuple that starts with `FIELDS`."""
    met: dict[str, dict[Any, int]] = {name: {} for name in FIELDS[:-1]}
    codes: dict[str, list[np.ndarray]] = {name: [] for name in met}
    errors = []
    for batch in batches:
        columns = dict(zip(FIELDS, zip(*batch, strict=True), strict=False))
        for name, known in met.items():
            places = (known.setdefault(value, len(known)) for value in columns[name])
            codes[name].append(np.fromiter(places, np.int32, len(batch)))
        errors.append(np.array(columns["error"], dtype=np.float64))
    if not errors:
        return {}
    code = {name: np.concatenate(codes.pop(name)) for name in met}
    error = np.concatenate(errors)
    studies = {}
    for study, number in met["study"].items():
        mine = code["study"] == number
        axes = [_axis(name, met[name], code[name][mine]) for name in AXES]
        methods, shares, corruptions, numbers, targets, repeats = (values for values, _ in axes)
        shape, rows = [len(values) for values, _ in axes], int(mine.sum())
        cells = math.prod(shape)
        if cells > max(LEAST_CELLS, CELLS_A_ROW * rows) or len(met["study"]) > MOST_STUDIES:
            raise ValueError(NO_GRID.format(path=path, rows=rows, cells=cells))
        cube = np.full(shape, np.nan)
        cube[tuple(place for _, place in axes)] = error[mine]
        studies[study] = StudyErrors(methods, shares, corruptions, numbers, targets, repeats, cube)
    return studies


def _axis(name: str, met: dict[Any, int], code: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """Values that occur, in order, and which of them each row has."""
    known = list(met)
    values = [known[k] for k in np.unique(code)]
    if name in ("method", "corruption"):
        values = in_order(METHODS if name == "method" else CORRUPTIONS, values)
    else:
        values.sort(reverse=name == "p")  # the paper starts with p = 1
    place = np.zeros(len(known), dtype=np.int32)
    place[[met[value] for value in values]] = np.arange(len(values))
    return values, place[code]


class Summary(NamedTuple):
    """Means over runs."""

    # Of shape (n_methods,); standard deviations are those of a sample (n - 1); NaN with fewer than
    # two runs, and for a method without any.
    mean: np.ndarray
    deviation: np.ndarray
    standard_error: np.ndarray
    runs: int  # runs that all methods have
    left_out: int  # runs that some methods lack


def summarise(errors: np.ndarray) -> Summary:
    """Average errors over runs; a run that some method lacks would favour one over another.

    Parameters
    ----------
    errors : array of shape (n_methods, ...)
        A run has the same place for all methods; NaN where it is not there. Methods without any
        run do not count.

    Examples
    --------
    >>> summarise(np.array([[0.25, 0.75, 0.1], [0.5, 1.0, np.nan]])).mean
    array([0.5 , 0.75])
    """
    errors = errors.reshape(len(errors), -1)
    there = ~np.isnan(errors)
    methods = there.any(axis=1)
    common = there[methods].all(axis=0) & methods.any()
    runs = int(common.sum())
    mean = np.full(len(errors), np.nan)
    deviation = mean.copy()
    if runs:
        mean[methods] = errors[methods][:, common].mean(axis=1)
    if runs > 1:
        deviation[methods] = errors[methods][:, common].std(axis=1, ddof=1)
    left_out = int((there.any(axis=0) & ~common).sum())
    return Summary(mean, deviation, deviation / np.sqrt(max(runs, 1)), runs, left_out)


def span(summaries: list[Summary]) -> str:
    """Say how many runs the means rest on, from the fewest to the most."""
    fewest, most = (f(summary.runs for summary in summaries) for f in (min, max))
    return str(fewest) if fewest == most else f"{fewest} to {most}"
