"""Trusted rows that a source labelled itself: the plainest evidence there is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

# Where more of the trusted rows repeat each other, equal rows mean nothing.
MOST_TWINS = 0.05
# Numbers that differ by more than this part of the reference's standard deviation are different.
APART = 0.5
# Of a test whether so many could be equal by chance.
LEVEL = 0.01


@dataclass(frozen=True)
class CommonRows:
    """How a source labelled rows that the reference has too."""

    rows: int  # rows of the source that are also trusted rows
    # Those of them whose label is another than the trusted one; of numbers, one that lies farther
    # from it than half a standard deviation of the reference's labels.
    differ: int
    mean: float | None = None  # of numbers: mean difference

    def __str__(self) -> str:
        """Say it in a sentence."""
        rows = "1 of your trusted rows" if self.rows == 1 else f"{self.rows} of your trusted rows"
        if self.mean is None:
            return f"It labelled {rows} itself, {self.differ} of them differently ({self.share})."
        verb = "differs" if self.differ == 1 else "differ"
        return (
            f"It labelled {rows} itself: {self.differ} ({self.share}) {verb} by more than half a "
            f"standard deviation of your labels, the mean difference is "
            f"{float(f'{self.mean:.3g}'):+,.10g}."
        )

    @property
    def share(self) -> str:
        """Share of them that differ."""
        return f"{self.differ / self.rows:.0%}"


def common_rows(
    X: np.ndarray, y: np.ndarray, reference: np.ndarray, own: np.ndarray, *, numbers: bool = False
) -> CommonRows | None:
    """Find rows with exactly the features of a trusted one; None where there are none to speak of.

    Where the reference has a row more than once, any of its labels is right. ``numbers`` says
    whether labels are numbers, not classes.
    """
    likely = np.arange(len(X))
    for j in range(X.shape[1]):  # of real numbers the first column leaves hardly any
        likely = likely[np.isin(X[likely, j], reference[:, j])]
    if not len(likely):
        return None
    keys = _keys(np.concatenate([reference, X[likely]]))
    theirs, ours = keys[len(reference) :], keys[: len(reference)]
    _, times = np.unique(ours, return_counts=True)
    twins = times[times > 1].sum() / len(ours)
    which = np.isin(theirs, ours)
    found, theirs = likely[which], theirs[which]
    if twins > MOST_TWINS or stats.binom.sf(len(found) - 1, len(X), twins) > LEVEL:
        return None
    order = np.argsort(ours, kind="stable")
    first = order[np.searchsorted(ours[order], theirs)]
    if numbers:
        off = y[found] - own[first]
        differ = int((np.abs(off) > APART * own.std()).sum())
        return CommonRows(len(found), differ, float(off.mean()))
    right = {(key, label) for key, label in zip(ours.tolist(), own.tolist(), strict=True)}
    pairs = zip(theirs.tolist(), y[found].tolist(), strict=True)
    return CommonRows(len(found), sum(pair not in right for pair in pairs))


def _keys(X: np.ndarray) -> np.ndarray:
    """One number for each different row."""
    rows = np.ascontiguousarray(X + 0.0)  # zero has two signs
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.asarray(np.unique(whole, return_inverse=True)[1])
