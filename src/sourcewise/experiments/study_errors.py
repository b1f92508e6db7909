"""Errors of a study's runs as one array, read from a file of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.experiments.names import CORRUPTIONS, METHODS, in_order
from sourcewise.experiments.results import Row, reading

# Of a row: its key and its error.
FIELDS = Row._fields[: Row._fields.index("error") + 1]


@dataclass(frozen=True)
class StudyErrors:
    """Errors of all methods in all runs of a study.

    Attributes
    ----------
    methods, shares, corruptions, numbers, targets, repeats : lists
        What there is along each axis; shares are p and numbers are n in the paper.
    values : array of shape (methods, shares, corruptions, numbers, targets, repeats)
        NaN for a run that is not there.
    """

    methods: list[str]
    shares: list[float]
    corruptions: list[str]
    numbers: list[int]
    targets: list[str]
    repeats: list[int]
    values: np.ndarray

    def of(self, method: str) -> np.ndarray:
        """Errors of one method; all NaN for a method that was not run."""
        if method in self.methods:
            return self.values[self.methods.index(method)]
        return np.full(self.values.shape[1:], np.nan)

    def at_share(self, share: float) -> StudyErrors:
        """Keep the runs at one p, and of the axes what has runs at that p."""
        part = self.values[:, [self.shares.index(share)]]
        there = ~np.isnan(part)
        corruptions = np.flatnonzero(there.any(axis=(0, 1, 3, 4, 5)))
        numbers = np.flatnonzero(there.any(axis=(0, 1, 2, 4, 5)))
        return StudyErrors(
            self.methods,
            [share],
            [self.corruptions[k] for k in corruptions],
            [self.numbers[k] for k in numbers],
            self.targets,
            self.repeats,
            part[:, :, corruptions][:, :, :, numbers],
        )


@dataclass(frozen=True)
class Studies:
    """What a file of results holds.

    Attributes
    ----------
    settings : dict of str
    errors : dict of StudyErrors
        By the name of the study.
    """

    settings: dict[str, str]
    errors: dict[str, StudyErrors]


def read_studies(path: Path) -> Studies:
    """Read the errors of a file of results, finished or not."""
    with reading(path) as (settings, batches):
        return Studies(settings, arrange(batches))


def arrange(batches: Iterable[Sequence[tuple[Any, ...]]]) -> dict[str, StudyErrors]:
    """Lay rows out as arrays, a study each.

    Parameters
    ----------
    batches : iterable of sequences of rows
        A row is a tuple that starts with `FIELDS`.
    """
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
    place = {name: np.concatenate(codes.pop(name)) for name in met}
    error = np.concatenate(errors)
    return {
        study: _one_study(met, place, error, place["study"] == code)
        for study, code in met["study"].items()
    }


def _one_study(
    met: dict[str, dict[Any, int]],
    place: dict[str, np.ndarray],
    error: np.ndarray,
    rows: np.ndarray,
) -> StudyErrors:
    axes, positions = [], []
    for name in ("method", "p", "corruption", "n", "target", "repeat"):
        code = place[name][rows]
        used = np.bincount(code, minlength=len(met[name])) > 0
        values = _ordered(name, [value for value, k in met[name].items() if used[k]])
        position = np.zeros(len(met[name]), dtype=np.int32)
        for k, value in enumerate(values):
            position[met[name][value]] = k
        axes.append(values)
        positions.append(position[code])
    cube = np.full([len(values) for values in axes], np.nan)
    cube[tuple(positions)] = error[rows]
    return StudyErrors(*axes, values=cube)


def _ordered(name: str, values: list[Any]) -> list[Any]:
    if name == "method":
        return in_order(METHODS, values)
    if name == "corruption":
        return in_order(CORRUPTIONS, values)
    return sorted(values, reverse=name == "p")  # the paper starts with p = 1
