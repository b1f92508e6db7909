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
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from sourcewise.core.choices import Choices
from sourcewise.core.copies import Mixtures, length
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.estimators.feature_map import FeatureMap

BLOCK = 10_000
# Share of values that real numbers, written with some digits, may repeat.
REPEATED = 0.1
# Columns that hardly vary count for that little: made as wide as a tenth of the widest one, as for
# models, such a column alone would tell a copy with a little noise from its row.
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True)
class Copies:
    """What is known of rows that repeat trusted ones.

    Attributes
    ----------
    counts : int array of shape (n_sources,), or None where nobody looked
        How many were left out.
    by_chance : float
        Share of clean rows that would look like copies, as the trusted rows say.
    unsought : str, optional
        Why nobody looked, of those in `core/copies.py`.
    labels : array of shape (n_sources, 3), optional
        How sources labelled such rows, see `relabelled`; None where equal rows may be chance.
    """

    counts: np.ndarray | None = None
    by_chance: float = 0.0
    unsought: str | None = None
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
    """Which mapped rows are copies of trusted ones.

    Attributes
    ----------
    features : FeatureMap
        Distances are between mapped rows, whose features keep their proportions or are all alike.
    reference : array or csr matrix of shape (n_trusted, n_features)
        The trusted rows, mapped. They travel with the rule.
    radius : float
        A row this near to a trusted one is a copy of it.
    usual : float
        Share of trusted rows that are as near to another: so many copies are coincidences.
    distinct, exact : bool
        Whether no trusted row equals another; and whether a row that equals a trusted one is that
        row, however few such rows there are: at least two columns hold real numbers, hardly any of
        them twice.
    mixtures : Mixtures, optional
        Of trusted rows, midpoints of two for example, where there are more columns than rows. A
        model that knows them knows the rows; these are copies too.
    """

    features: FeatureMap
    reference: Any
    radius: float
    usual: float
    distinct: bool = False
    exact: bool = False
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

        Returns
        -------
        copied : bool array of shape (n_rows,)
        same : int array of shape (n_rows,)
            Which trusted row it equals; -1 for none, or where several trusted rows are equal.
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
        distance = length(rows - self.reference[position])
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
    return length(reference - reference[position])


def numbers_or_none(X: Any) -> Any:
    """Return rows as numbers, or None where they are something else: text has no distances."""
    try:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except (TypeError, ValueError):
        return None
