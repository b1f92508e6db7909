"""The paper's A/B/C: how often a method is significantly better, equal, significantly worse."""

from __future__ import annotations

from typing import Any, NamedTuple

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
