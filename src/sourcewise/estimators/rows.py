"""Rows that have passed every check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from sourcewise.core.discrepancy.methods import Measured
from sourcewise.estimators.concat_rows import concat_rows


@dataclass(frozen=True)
class Rows:
    """Labelled rows and where they come from.

    Attributes
    ----------
    X : array, frame or list of n rows
    y : array of shape (n,)
    codes : int array of shape (n,)
        Position of each row's source among the names.
    sample_weight : array of shape (n,) or None
    """

    X: Any
    y: np.ndarray
    codes: np.ndarray
    sample_weight: np.ndarray | None

    def of_positive_weight(self) -> Rows:
        """Leave out rows of weight zero: they are to count as if they were not there."""
        if self.sample_weight is None or self.sample_weight.all():
            return self
        kept = np.flatnonzero(self.sample_weight)
        return Rows(
            _safe_indexing(self.X, kept), self.y[kept], self.codes[kept], self.sample_weight[kept]
        )

    def append(self, other: Rows) -> Rows:
        """Put other rows below these."""
        weight = None
        if self.sample_weight is not None or other.sample_weight is not None:
            weight = np.concatenate([self._weight_or_ones(), other._weight_or_ones()])
        return Rows(
            concat_rows(self.X, other.X),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.codes, other.codes]),
            weight,
        )

    def _weight_or_ones(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight


@dataclass(frozen=True)
class Training:
    """What `add_source` and `at_trade_off` need of an earlier fit.

    Attributes
    ----------
    rows : Rows
    findings : dataclass or None
        What was found out about every untrusted source; None where there are none.
    measured : Measured
        The discrepancies that follow from it.
    setting : float
        Regularisation of local models.
    """

    rows: Rows
    findings: Any
    measured: Measured
    setting: float
