"""Untrusted rows that repeat trusted ones.

A held-out trusted row whose copy stays in training has been seen: whoever knows trusted rows could
buy trust for the rest of a source with them. So such rows are left out of every source before
anything is measured or trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from sourcewise.core.choices import Choices
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.estimators.feature_map import FeatureMap

BLOCK = 10_000


@dataclass(frozen=True)
class CopyRule:
    """Which mapped rows are copies of trusted ones.

    Attributes
    ----------
    features : FeatureMap
        Distances are between mapped rows, however features are scaled elsewhere.
    reference : array or csr matrix of shape (n_trusted, n_features)
        The trusted rows, mapped. They travel with the rule.
    radius : float
        A row this near to a trusted one is a copy of it.
    usual : float
        Share of trusted rows that are as near to another: so many copies are coincidences.
    """

    features: FeatureMap
    reference: Any
    radius: float
    usual: float

    @classmethod
    def learn(cls, X: Any, choices: Choices) -> CopyRule | None:
        """Learn how far apart the trusted rows are; None where they repeat each other.

        The radius is a part of the typical distance from a trusted row to the next, so that a copy
        with a little noise is one still. With few features, where rows come near each other by
        chance, it is smaller: no more than ``choices.copy_twins`` of the trusted rows may have
        another as near.
        """
        features = FeatureMap.from_reference(X, choices)
        reference = _matrix(features(X))
        nearest = _nearest_other(reference)
        if not len(nearest) or np.mean(nearest == 0.0) > choices.copy_twins:
            return None
        allowed = np.sort(nearest)[int(choices.copy_twins * len(nearest))]
        radius = min(choices.copy_radius * float(np.median(nearest)), float(allowed) * (1 - 1e-9))
        usual = max(float(np.mean(nearest <= radius)), 1.0 / len(nearest))
        return cls(features, reference, radius, usual)

    def __call__(self, X: Any) -> np.ndarray:
        """Say of each row whether it is a copy."""
        return np.asarray(_distance(_matrix(self.features(X)), self.reference) <= self.radius)

    def among(self, X: Any, wanted: np.ndarray) -> np.ndarray:
        """Say of each of the wanted rows whether it is a copy; a block at a time is mapped."""
        found = np.zeros(X.shape[0], dtype=bool)
        positions = np.flatnonzero(wanted)
        for start in range(0, len(positions), BLOCK):
            some = positions[start : start + BLOCK]
            found[some] = self(X[some])
        return found


def keep_one(copied: np.ndarray, codes: np.ndarray, n_sources: int) -> np.ndarray:
    """Keep the first row of a source of nothing but copies: a source has to have one."""
    left = np.bincount(codes[~copied], minlength=n_sources)
    there = np.bincount(codes, minlength=n_sources)
    copied = copied.copy()
    for source in np.flatnonzero((left == 0) & (there > 0)):
        copied[np.argmax(codes == source)] = False
    return copied


def _matrix(mapped: Any) -> Any:
    """Return mapped rows without what all of them share."""
    if isinstance(mapped, SparseRows):
        return mapped.features
    return np.ascontiguousarray(mapped)


def _distance(rows: Any, reference: Any) -> np.ndarray:
    """Distance of each row to the nearest trusted one, exact where it is small."""
    position, _ = pairwise_distances_argmin_min(rows, reference)
    return _length(rows - reference[position])


def _nearest_other(reference: Any) -> np.ndarray:
    """Distance of each trusted row to the nearest other one."""
    if reference.shape[0] < 2:
        return np.empty(0)
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(reference)
    position = search.kneighbors(return_distance=False)[:, 0]
    return _length(reference - reference[position])


def _length(rows: Any) -> np.ndarray:
    if scipy.sparse.issparse(rows):
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return np.asarray(np.sqrt(squares))
    return np.asarray(np.linalg.norm(rows, axis=1))


def numbers_or_none(X: Any) -> Any:
    """Return rows as numbers, or None where they are something else: text has no distances."""
    try:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except (TypeError, ValueError):
        return None
