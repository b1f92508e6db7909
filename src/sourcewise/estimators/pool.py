"""A validated pool of sources, ready for the mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT, Choices
from sourcewise.core.data import ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import OnAnswer
from sourcewise.core.discrepancy.methods import Survey
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.engine import Engine
from sourcewise.core.family import Family
from sourcewise.core.losses import BoundedLoss, log_loss, zero_one_loss
from sourcewise.engines.memory import MemorySources

# Deviations that rounding may leave of a constant, as shares of its size and of other columns'.
ROUNDING = 1e-12
N_PERMUTATIONS = 199


@dataclass(frozen=True)
class Pool:
    """All that fitting needs to know.

    Attributes
    ----------
    sources : Engine
        The untrusted sources, as the learner's family sees them.
    reference : ReferenceRows
        The trusted rows, likewise.
    position : int
        Of the reference among all sources.
    names : list
        Of all sources, in order.
    features : FeatureMap, optional
        How the default learner's features come from the input.
    numbers : tuple of Engine and ReferenceRows, optional
        The same rows as numbers with a constant column, for the linear discrepancies.
    seed : int
    choices : Choices
    discrepancy : str
    family : Family
    folds : ReferenceFolds
    scale : float
        Unit of the regression loss: standard deviation of the reference's targets.
    """

    sources: Engine
    reference: ReferenceRows
    position: int
    names: list[Any]
    features: FeatureMap | None
    numbers: tuple[Engine, ReferenceRows] | None
    seed: int
    choices: Choices
    discrepancy: str
    family: Family
    folds: ReferenceFolds
    scale: float

    @property
    def data(self) -> SourceData:
        """Rows of all sources, for methods that only know rows in memory."""
        assert isinstance(self.sources, MemorySources)
        return self.sources.data

    def with_features(self, X: np.ndarray) -> Pool:
        """Return the same pool under other features, rows in memory."""
        data = self.data.with_features(X)
        others = [name for i, name in enumerate(self.names) if i != self.position]
        return replace(self, sources=MemorySources(data, others), reference=ReferenceRows.of(data))

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""
        return self.reference.n_classes

    @property
    def n_sources(self) -> int:
        """Number of sources, the reference included."""
        return len(self.names)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Effective rows of all sources."""
        return np.insert(self.sources.sizes, self.position, self.reference.size)

    @cached_property
    def row_counts(self) -> np.ndarray:
        """Rows of all sources."""
        return np.insert(self.sources.row_counts, self.position, len(self.reference.y))

    @property
    def bounded_loss(self) -> BoundedLoss:
        """Row loss in [0, 1] that discrepancies are measured in."""
        return BoundedLoss(self.n_classes, self.scale, self.choices.clip)

    @property
    def selection_loss(self) -> Callable[[Any, Any], Any]:
        """Row loss that trade-off and regularisation are chosen by."""
        if not self.n_classes:
            return self.bounded_loss
        if self.choices.zero_one or self.family.names_only:
            return zero_one_loss
        return partial(log_loss, least=self.choices.least_probability)

    def survey(
        self,
        setting: float,
        *,
        with_folds: bool = True,
        permute: bool = True,
        on_answer: OnAnswer | None = None,
    ) -> Survey:
        """Get ready to measure discrepancies.

        ``setting`` is the regularisation of local models. Without ``permute``, p-values that need
        permutations are NaN. ``on_answer`` is told how many sources have just answered.
        """
        return Survey(
            sources=self.sources,
            reference=self.reference,
            name=self.names[self.position],
            folds=self.folds,
            family=self.family,
            setting=setting,
            loss=self.bounded_loss,
            seed=self.seed,
            choices=self.choices,
            numbers=self.numbers,
            n_permutations=N_PERMUTATIONS if permute else 0,
            with_folds=with_folds,
            on_answer=on_answer,
        )


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
    def from_reference(cls, X: np.ndarray, choices: Choices = DEFAULT) -> FeatureMap:
        """Learn the map from the reference's rows ``X``: untrusted rows have no say in it.

        Proportions between the features' standard deviations are kept, because features that
        hardly vary among a few trusted rows are mostly noise; none is left with less than
        ``choices.smallest_share`` of the largest one's. But columns in different units have no
        natural proportion: those become alike.
        """
        centre, deviation = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        varies = deviation > ROUNDING * np.abs(X).max(axis=0)
        if varies.any():
            # Not of the largest: beside a time in milliseconds, all others would be nothing.
            varies &= deviation > ROUNDING * typical(deviation[varies])
        largest = float(deviation[varies].max(initial=0.0)) or 1.0
        mapped = np.maximum(deviation / largest, choices.smallest_share)
        if varies.any() and in_different_units(X[:, varies], deviation[varies], choices.own_units):
            mapped = np.ones_like(deviation)
        # So that values of C mean about the same whatever the number of small ones.
        mapped /= np.sqrt(np.mean(mapped**2))
        scale = np.where(varies, deviation, largest) / mapped
        return cls(centre, scale, True, choices.largest)

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
        return np.asarray(self.centre + np.multiply.outer([-self.limit, self.limit], self.scale))

    def unmap(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercepts in the original units, from (n_outputs, n_mapped)."""
        d = len(self.scale)
        coef = weights[:, :d] / self.scale
        intercept = weights[:, d] if self.constant else np.zeros(len(weights))
        return coef, intercept - coef @ self.centre


def in_different_units(X: np.ndarray, deviations: np.ndarray, many: float) -> bool:
    """Whether columns look like quantities in units of their own, not like parts of one whole.

    Of principal components, too, a few may be much larger than the rest, but with good reason.
    """
    one_sign = (X.min(axis=0) >= 0.0) | (X.max(axis=0) <= 0.0)
    return bool(np.any(deviations[one_sign] > many * typical(deviations)))


def typical(deviations: np.ndarray) -> float:
    """Return the median, the smaller of two in the middle: of two columns, one may be far off."""
    return float(np.quantile(deviations, 0.5, method="lower"))
