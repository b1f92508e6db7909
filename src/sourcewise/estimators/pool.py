"""A validated pool of sources, ready for the mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss, clipped_squared_loss, log_loss, zero_one_loss
from sourcewise.core.ridge import RidgeFamily
from sourcewise.estimators.protocol import Protocol
from sourcewise.estimators.wrapped import EstimatorFamily

SMALLEST_SHARE = 0.1  # of the largest feature's standard deviation, after scaling
# Columns are in different units if one that never changes its sign deviates more than so many times
# as much as the median column: components and embeddings go both ways.
OWN_UNITS = 5.0
# Deviations that rounding may leave of a constant, as shares of its size and of other columns'.
ROUNDING = 1e-12
# In the reference's units. Beyond lie placeholders such as 1e36, which no arithmetic survives, and
# running numbers of other sources, with which solvers did not get to the end.
LARGEST = 100.0


@dataclass(frozen=True)
class Pool:
    """All that fitting needs to know.

    Attributes
    ----------
    data : SourceData
        Rows as the learner's family sees them.
    order : int array of shape (n_rows,)
        Row ``k`` of ``data`` is row ``order[k]`` of the input.
    features : FeatureMap, optional
        How the default learner's features come from the input.
    numeric : SourceData
        The same rows as numbers with a constant column, for the linear discrepancies.
    names : list
        Source names, in order.
    seed : int
    protocol : Protocol
    discrepancy : str
    family : Family
    folds : ReferenceFolds
    scale : float
        Unit of the regression loss: standard deviation of the reference's targets.
    """

    data: SourceData
    order: np.ndarray
    features: FeatureMap | None
    numeric: SourceData | None
    names: list[Any]
    seed: int
    protocol: Protocol
    discrepancy: str
    family: Family
    folds: ReferenceFolds
    scale: float

    @property
    def trusted(self) -> tuple[Any, Any]:
        """Rows and targets of the reference."""
        rows = self.data.rows(self.data.reference)
        return self.data.X[rows], self.data.y[rows]

    @property
    def bounded_loss(self) -> Callable[[Any, Any], Any]:
        """Row loss in [0, 1] that discrepancies are measured in."""
        if self.data.n_classes:
            return brier_loss
        return lambda predictions, y: clipped_squared_loss(predictions, y, scale=self.scale)

    @property
    def selection_loss(self) -> Callable[[Any, Any], Any]:
        """Row loss that trade-off and regularisation are chosen by."""
        if not self.data.n_classes:
            return self.bounded_loss
        return zero_one_loss if self.protocol.zero_one or self.names_only else log_loss

    @property
    def is_linear(self) -> bool:
        """Whether the learner is one of the default ones: fast to fit, and linear in scores."""
        return isinstance(self.family, LogisticFamily | RidgeFamily)

    @property
    def names_only(self) -> bool:
        """Whether the learner names a class and knows no probabilities."""
        return isinstance(self.family, EstimatorFamily) and self.family.names_only


def know_nothing_loss(pool: Pool, loss: Callable[[Any, Any], Any]) -> float:
    """Mean loss on the reference of whoever knows its class frequencies or its mean only."""
    y = pool.trusted[1]
    shares = pool.data.row_shares[pool.data.rows(pool.data.reference)]
    if pool.data.n_classes:
        guess = np.bincount(y, weights=shares, minlength=pool.data.n_classes)
        guesses = np.broadcast_to(guess, (len(y), len(guess)))
    else:
        guesses = np.full(len(y), y @ shares)
    return float(loss(guesses, y) @ shares)


@dataclass(frozen=True)
class FeatureMap:
    """Affine map of the features, and back for coefficients.

    Attributes
    ----------
    centre, scale : arrays of shape (n_features,)
    constant : bool
        Whether a column of ones is appended.
    limit : float
        Where mapped values are cut off.
    """

    centre: np.ndarray
    scale: np.ndarray
    constant: bool
    limit: float = np.inf

    @classmethod
    def as_given(cls, X: np.ndarray) -> FeatureMap:
        """Leave the features alone; add a constant unless all rows ``X`` share one."""
        d = X.shape[1]
        has_constant = bool(((X[:1] == X).all(axis=0) & (X[0] != 0)).any())
        return cls(np.zeros(d), np.ones(d), not has_constant)

    @classmethod
    def from_reference(cls, X: np.ndarray, limit: float = LARGEST) -> FeatureMap:
        """Learn the map from the reference's rows ``X``: untrusted rows have no say in it.

        Proportions between the features' standard deviations are kept, because features that
        hardly vary among a few trusted rows are mostly noise; none is left with less than
        `SMALLEST_SHARE` of the largest one's. But columns in different units have no natural
        proportion: those become alike.
        """
        centre, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        varies = deviation > ROUNDING * np.abs(X).max(axis=0)
        if varies.any():
            # Not of the largest: beside a time in milliseconds, all others would be nothing.
            varies &= deviation > ROUNDING * typical(deviation[varies])
        largest = float(deviation[varies].max(initial=0.0)) or 1.0
        mapped = np.maximum(deviation / largest, SMALLEST_SHARE)
        if varies.any() and in_different_units(X[:, varies], deviation[varies]):
            mapped = np.ones_like(deviation)
        # So that values of C mean about the same whatever the number of small ones.
        mapped /= np.sqrt(np.mean(mapped**2))
        scale = np.where(varies, deviation, largest) / mapped
        return cls(centre, scale, True, limit)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Map rows of features."""
        d = X.shape[1]
        mapped = np.empty((len(X), d + self.constant), dtype=X.dtype)
        np.subtract(X, self.centre, out=mapped[:, :d], casting="same_kind")
        with np.errstate(over="ignore"):  # it is cut off below
            mapped[:, :d] /= self.scale
        np.clip(mapped[:, :d], -self.limit, self.limit, out=mapped[:, :d])
        mapped[:, d:] = 1.0
        return mapped

    @property
    def bounds(self) -> np.ndarray:
        """Lowest and highest value of each feature that is not cut off, (2, n_features)."""
        return self.centre + np.multiply.outer([-self.limit, self.limit], self.scale)

    def unmap(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts in the original units, from (n_outputs, n_mapped)."""
        d = len(self.scale)
        coef = weights[:, :d] / self.scale
        intercept = weights[:, d] if self.constant else np.zeros(len(weights))
        return coef, intercept - coef @ self.centre


def in_different_units(X: np.ndarray, deviations: np.ndarray) -> bool:
    """Whether columns look like quantities in units of their own, not like parts of one whole.

    Of principal components, too, a few may be much larger than the rest, but with good reason.
    """
    one_sign = (X.min(axis=0) >= 0.0) | (X.max(axis=0) <= 0.0)
    return bool(np.any(deviations[one_sign] > OWN_UNITS * typical(deviations)))


def typical(deviations: np.ndarray) -> float:
    """Return the median, the smaller of two in the middle: of two columns, one may be far off."""
    return float(np.quantile(deviations, 0.5, method="lower"))
