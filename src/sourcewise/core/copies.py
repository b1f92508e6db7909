"""Untrusted rows that repeat trusted ones.

A held-out trusted row whose copy stays in training has been seen: whoever knows trusted rows could
buy trust for the rest of a source with them. So such rows are left out of every source before
anything is measured or trained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from scipy import stats
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors

from sourcewise.core.choices import Choices
from sourcewise.core.feature_map import FeatureMap
from sourcewise.core.sparse_rows import SparseRows

BLOCK = 10_000
# Share of values that real numbers, written with some digits, may repeat.
REPEATED = 0.1
# Columns that hardly vary count for that little: made as wide as a tenth of the widest one, as for
# models, such a column alone would tell a copy with a little noise from its row.
SMALLEST_SHARE = 1e-6
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
    """

    mean: np.ndarray  # of shape (n_features,)
    inverse: np.ndarray  # of shape (n_trusted, n_trusted); :math:`K^+`
    radius: float  # a row this near to a mixture is one

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
        to_mean = _squares(rows) - 2.0 * (rows @ self.mean) + self.mean @ self.mean
        explained = np.einsum("ij,ij->i", products @ self.inverse, products)
        return np.asarray(to_mean - explained <= self.radius**2)


@dataclass(frozen=True)
class Copies:
    """What is known of rows that repeat trusted ones."""

    counts: np.ndarray | None = None  # left out of each source; None: nobody looked
    # Share of clean rows that would look like copies, as the trusted rows say.
    by_chance: float = 0.0
    unsought: str | None = None  # why nobody looked, of those in `core/copies.py`
    # How sources labelled such rows, see `relabelled`; None where equal rows may be chance.
    labels: np.ndarray | None = None

    def after(self, before: Copies) -> Copies:
        """Add those that had been left out of all sources but the last."""
        if self.counts is None or before.counts is None:
            return self
        labels = self.labels
        if labels is not None and before.labels is not None:
            labels = np.vstack([before.labels, labels[-1:]])
        return replace(self, counts=np.append(before.counts, 0) + self.counts, labels=labels)


@dataclass(frozen=True)
class CopyRule:
    """Which mapped rows are copies of trusted ones."""

    # Distances are between mapped rows, whose features keep their proportions or are all alike.
    features: FeatureMap
    reference: Any  # the trusted rows, mapped: array or csr matrix; they travel with the rule
    radius: float  # a row this near to a trusted one is a copy of it
    # Share of trusted rows that are as near to another: so many copies are coincidences.
    usual: float
    # Whether no trusted row equals another; and whether a row that equals a trusted one is that
    # row, however few such rows there are: at least two columns hold real numbers, hardly any of
    # them twice.
    distinct: bool = False
    exact: bool = False
    # Of trusted rows, midpoints of two for example, where there are more columns than rows. A model
    # that knows them knows the rows; these are copies too.
    mixtures: Mixtures | None = None

    @classmethod
    def learn(cls, X: Any, choices: Choices) -> CopyRule | None:
        """Learn how far apart the trusted rows are; None where they repeat each other.

        The radius is a part of the typical distance from a trusted row to the next, so that a copy
        with a little noise is one still. With few features, where rows come near each other by
        chance, it is smaller: no more than ``choices.copy_twins`` of the trusted rows may have
        another as near.
        """
        features = FeatureMap.from_reference(X, replace(choices, smallest_share=SMALLEST_SHARE))
        reference = _matrix(features(X))
        nearest = _nearest_other(reference)
        if not len(nearest) or np.mean(nearest == 0.0) > choices.copy_twins:
            return None
        allowed = np.sort(nearest)[int(choices.copy_twins * len(nearest))]
        radius = min(choices.copy_radius * float(np.median(nearest)), float(allowed) * (1 - 1e-9))
        usual = max(float(np.mean(nearest <= radius)), 1.0 / len(nearest))
        distinct = bool((nearest > 0.0).all())
        exact = distinct and _real_columns(reference) >= 2
        mixtures = Mixtures.of(reference, radius, choices)
        return cls(features, reference, radius, usual, distinct, exact, mixtures)

    def __call__(self, X: Any) -> np.ndarray:
        """Say of each row whether it is a copy."""
        return self._nearest(X)[0]

    def among(self, X: Any, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Say of each of the wanted rows whether it is a copy; a block at a time is mapped.

        Also which trusted row it equals; -1 for none, or where several trusted rows are equal.
        """
        found, same = np.zeros(X.shape[0], dtype=bool), np.full(X.shape[0], -1)
        positions = np.flatnonzero(wanted)
        for start in range(0, len(positions), BLOCK):
            some = positions[start : start + BLOCK]
            found[some], distance, nearest = self._nearest(X[some])
            if self.distinct:
                same[some] = np.where(distance == 0.0, nearest, -1)
        return found, same

    def _nearest(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether rows are copies; distance, exact where small, to which nearest trusted row."""
        rows = _matrix(self.features(X))
        position, _ = pairwise_distances_argmin_min(rows, self.reference)
        distance = _length(rows - self.reference[position])
        copied = distance <= self.radius
        if self.mixtures is not None:
            copied |= self.mixtures(rows, self.reference)
        return copied, distance, position


def _matrix(mapped: Any) -> Any:
    """Return mapped rows without what all of them share."""
    if isinstance(mapped, SparseRows):
        return mapped.features
    return np.ascontiguousarray(mapped)


def _real_columns(reference: Any) -> int:
    """How many columns hold numbers that hardly any two trusted rows share."""
    if scipy.sparse.issparse(reference):
        return 0
    ordered = np.sort(reference, axis=0)
    repeated = np.mean(ordered[1:] == ordered[:-1], axis=0)
    return int((repeated < REPEATED).sum())


def _nearest_other(reference: Any) -> np.ndarray:
    """Distance of each trusted row to the nearest other one."""
    if reference.shape[0] < 2:
        return np.empty(0)
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(reference)
    position = search.kneighbors(return_distance=False)[:, 0]
    return _length(reference - reference[position])


def relabelled(
    same: np.ndarray,  # which trusted row each row equals; -1 for none
    y: np.ndarray,
    own: np.ndarray,  # the trusted rows' labels
    codes: np.ndarray,  # source of each row
    n_sources: int,
    *,
    numbers: bool,  # whether labels are numbers, not classes
) -> np.ndarray:
    """Say how each source labelled trusted rows itself, (n_sources, 3).

    Such rows, those of them with another label (of numbers: farther away than ``APART`` standard
    deviations of the trusted ones), and the mean difference of numbers (NaN for classes, and where
    there are no such rows).
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


def _length(rows: Any) -> np.ndarray:
    return np.asarray(np.sqrt(_squares(rows)))


def _squares(rows: Any) -> np.ndarray:
    if scipy.sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
