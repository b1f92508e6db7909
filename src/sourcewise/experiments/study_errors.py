"""Results of one study as one array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.experiments.names import CORRUPTIONS, METHODS, in_order
from sourcewise.experiments.results import Results


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


def study_errors(results: Results, study: str) -> StudyErrors | None:
    """Lay out one study's rows; None if there are none.

    Parameters
    ----------
    results : Results
    study : str
    """
    rows = results.columns["study"] == study
    if not rows.any():
        return None
    part = {name: values[rows] for name, values in results.columns.items()}
    axes, places = [], []
    for name, known in [
        ("method", METHODS),
        ("p", None),
        ("corruption", CORRUPTIONS),
        ("n", None),
        ("target", None),
        ("repeat", None),
    ]:
        found, code = np.unique(part[name], return_inverse=True)
        values = found.tolist()
        if name == "p":
            values = values[::-1]  # the paper starts with p = 1
        elif known is not None:
            values = in_order(known, values)
        rank = {value: k for k, value in enumerate(values)}
        axes.append(values)
        places.append(np.array([rank[value] for value in found.tolist()])[code])
    errors = np.full([len(axis) for axis in axes], np.nan)
    errors[tuple(places)] = part["error"]
    return StudyErrors(*axes, values=errors)
