"""Rows of sources that repeat trusted ones: mixtures of these, labels, and counts.

Which rows are copies is learnt in `estimators/copies.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy import stats

from sourcewise.core.choices import Choices

# Why nobody looked for copies.
TWINS, NO_NUMBERS, NOT_HERE = "twins", "no numbers", "not here"
# Of tests whether a source holds more copies than chance explains, for all sources together.
BY_CHANCE = 0.01
# Numbers farther apart than this part of the trusted ones' standard deviation are different.
APART = 0.5


@dataclass(frozen=True)
class Mixtures:
    r"""Mixtures of trusted rows: sums of these whose shares, of whatever sign, sum to 1.

    With :math:`K` the inner products of the trusted rows around their mean and :math:`k_x` those
    with a row, its squared distance to the nearest mixture is :math:`|x|^2 - k_x^\top K^+ k_x`;
    that of trusted row :math:`i` to mixtures of the others is :math:`1 / (K^+)_{ii}`.

    Attributes
    ----------
    mean : array of shape (n_features,)
    inverse : array of shape (n_trusted, n_trusted)
        :math:`K^+`.
    radius : float
        A row this near to a mixture is one.
    """

    mean: np.ndarray
    inverse: np.ndarray
    radius: float

    @classmethod
    def of(cls, reference: Any, radius: float, choices: Choices) -> Mixtures | None:
        """Learn them; None where a trusted row is as good as a mixture of the others."""
        n, d = reference.shape
        if not 2 < n <= min(d, choices.most_mixed):
            return None
        mean = np.asarray(reference.mean(axis=0)).ravel()
        values, vectors = np.linalg.eigh(_around(mean, reference, reference))
        kept = values > 1e-9 * values[-1]
        if kept.sum() < n - 1:
            return None
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        least = float(np.diag(inverse).max()) ** -0.5
        near = min(radius, choices.mixture_radius * least)
        return cls(mean, inverse, near) if least > radius else None

    def __call__(self, rows: Any, reference: Any) -> np.ndarray:
        """Say of each row whether it is a mixture."""
        products = _around(self.mean, rows, reference)
        to_mean = squares(rows) - 2.0 * (rows @ self.mean) + self.mean @ self.mean
        explained = np.einsum("ij,ij->i", products @ self.inverse, products)
        return np.asarray(to_mean - explained <= self.radius**2)


def relabelled(
    same: np.ndarray,
    y: np.ndarray,
    own: np.ndarray,
    codes: np.ndarray,
    n_sources: int,
    *,
    numbers: bool,
) -> np.ndarray:
    """Say how each source labelled trusted rows itself.

    Parameters
    ----------
    same : int array of shape (n_rows,)
        Which trusted row each row equals; -1 for none.
    y : array of shape (n_rows,)
    own : array of shape (n_trusted,)
        The trusted rows' labels.
    codes : int array of shape (n_rows,)
        Source of each row.
    n_sources : int
    numbers : bool
        Whether labels are numbers, not classes.

    Returns
    -------
    array of shape (n_sources, 3)
        Such rows, those of them with another label (of numbers: farther away than ``APART``
        standard deviations of the trusted ones), and the mean difference of numbers (NaN for
        classes, and where there are no such rows).
    """
    found = np.flatnonzero(same >= 0)
    here = codes[found]
    table = np.full((n_sources, 3), np.nan)
    table[:, 0] = np.bincount(here, minlength=n_sources)
    if numbers:
        off = y[found] - own[same[found]]
        differ = np.abs(off) > APART * own.std()
        total = np.bincount(here, off, minlength=n_sources)
        np.divide(total, table[:, 0], out=table[:, 2], where=table[:, 0] > 0)
    else:
        differ = y[found] != own[same[found]]
    table[:, 1] = np.bincount(here[differ], minlength=n_sources)
    return table


def keep_one(copied: np.ndarray, codes: np.ndarray, n_sources: int) -> np.ndarray:
    """Keep the first row of a source of nothing but copies: a source has to have one."""
    left = np.bincount(codes[~copied], minlength=n_sources)
    there = np.bincount(codes, minlength=n_sources)
    copied = copied.copy()
    for source in np.flatnonzero((left == 0) & (there > 0)):
        copied[np.argmax(codes == source)] = False
    return copied


def more_than_chance(
    copies: np.ndarray, rows: np.ndarray, by_chance: float, trusted: int
) -> np.ndarray:
    """Whether each source holds more copies than rows like the trusted ones would.

    The share of these is itself an estimate from so many rows, so that the number of copies has a
    beta-binomial distribution (from Jeffreys' prior); the level is shared among the sources.
    """
    near = by_chance * trusted
    n = rows + copies
    chance = stats.betabinom.sf(copies - 1, n, near + 0.5, trusted - near + 0.5)
    n_sources = max(len(copies) - 1, 1)
    return np.asarray((copies > 0) & (chance < BY_CHANCE / n_sources))


def _around(mean: np.ndarray, rows: Any, others: Any) -> np.ndarray:
    """Inner products of rows and others, both less the mean."""
    products = rows @ others.T
    products = products.toarray() if scipy.sparse.issparse(products) else products
    off = mean @ mean - np.asarray(others @ mean)
    return np.asarray(products - np.asarray(rows @ mean)[:, None] + off)


def length(rows: Any) -> np.ndarray:
    """Lengths of rows."""
    return np.asarray(np.sqrt(squares(rows)))


def squares(rows: Any) -> np.ndarray:
    """Squared lengths of rows."""
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
