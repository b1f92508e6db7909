"""The paper's A/B/C: how often a method is significantly better, equal, significantly worse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Counts(NamedTuple):
    """Outcome of comparing two methods over many cells (settings that were repeated).

    Attributes
    ----------
    better, equal, worse : int
        A, B and C.
    missing : int
        Cells that do not count: the methods have no two repeats there, or not the same ones.
    partial : int
        Cells that do count, with fewer than all repeats.
    """

    better: int
    equal: int
    worse: int
    missing: int
    partial: int

    @property
    def cells(self) -> int:
        """Cells that count."""
        return self.better + self.equal + self.worse

    def __str__(self) -> str:
        """Write as the paper does; a dash where nothing counts."""
        return f"{self.better}/{self.equal}/{self.worse}" if self.cells else "–"


def significance(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
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
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    there = ~np.isnan(ours)
    comparable = (there == ~np.isnan(theirs)).all(axis=1) & (there.sum(axis=1) >= 2)
    result = np.full(len(ours), np.nan)
    our_mean, our_spread = _mean_and_deviation(ours[comparable])
    their_mean, their_spread = _mean_and_deviation(theirs[comparable])
    gap = their_mean - our_mean
    result[comparable] = np.where(np.abs(gap) > our_spread + their_spread, np.sign(gap), 0.0)
    return result


def count(ours: np.ndarray, theirs: np.ndarray) -> Counts:
    """Count A/B/C of two methods over cells.

    Parameters
    ----------
    ours, theirs : arrays of shape (n_cells, n_repeats)
        As for :func:`significance`; all columns together are the repeats asked for.

    Returns
    -------
    Counts
    """
    outcome = significance(ours, theirs)
    incomplete = np.isnan(np.asarray(ours, float)).any(axis=1)
    return Counts(
        better=int((outcome == 1).sum()),
        equal=int((outcome == 0).sum()),
        worse=int((outcome == -1).sum()),
        missing=int(np.isnan(outcome).sum()),
        partial=int((incomplete & ~np.isnan(outcome)).sum()),
    )


def _mean_and_deviation(errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per row, of the values that are there: at least two in each."""
    there = ~np.isnan(errors)
    number = there.sum(axis=1)
    mean = np.where(there, errors, 0.0).sum(axis=1) / number
    squares = np.where(there, (errors - mean[:, None]) ** 2, 0.0).sum(axis=1)
    return mean, np.sqrt(squares / (number - 1))
