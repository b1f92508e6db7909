"""How rows become numbers: learnt from the reference, applied wherever rows are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise import validation
from sourcewise.core.copies import CopyRule, keep_one
from sourcewise.core.data import ReferenceRows, SourceData, group_rows
from sourcewise.core.feature_map import FeatureMap
from sourcewise.estimators.rows import Rows


@dataclass(frozen=True)
class RowRules:
    """What travels to untrusted rows before anything is asked of them.

    It is made of numbers and names only, so that it can be sent in any format.
    """

    reference: Any  # name of the reference, for messages
    features: FeatureMap
    columns: tuple[str, ...] | None  # names of the features, in the order of the columns of ``X``
    n_features: int
    classes: np.ndarray | None = None  # of shape (n_classes,); sorted labels; None for regression
    # Targets of a regression become ``(y - centre) / scale``.
    centre: float = 0.0
    scale: float = 1.0
    # Whether features are not cut off, so that none may be too large to compute with.
    as_given: bool = False
    # Which rows repeat trusted ones and are left out. It holds the trusted rows, and is there only
    # where these may travel.
    copies: CopyRule | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""
        return 0 if self.classes is None else len(self.classes)

    def __call__(
        self,
        X: Any,  # numbers, in single or double precision
        y: Any,  # labels as they are
        codes: np.ndarray,  # position of each row's source among the names
        names: Sequence[Any],  # every one of them has rows
        sample_weight: np.ndarray | None = None,
    ) -> SourceData:
        """Check rows of some sources, map them, and group them by source, without a reference.

        Rows of weight zero and copies of trusted rows are left out.
        """
        known = list(names)
        if X.shape[1] != self.n_features:
            problem = f"{X.shape[1]} columns instead of {self.n_features}"
            raise ValueError(validation.SOURCE_COLUMNS.format(source=known[0], problem=problem))
        weight = validation.check_sample_weight(sample_weight, X, codes, known)
        rows = Rows(X, np.asarray(y), codes, weight).of_positive_weight()
        validation.check_finite(rows.X, rows.codes, known, self.columns)
        if self.as_given:
            validation.check_magnitude(rows.X, rows.codes, known, self.columns)
        mapped, left_out = self.features(rows.X), None
        if self.copies is not None:
            copied = keep_one(self.copies(rows.X), rows.codes, len(known))
            left_out = np.bincount(rows.codes[copied], minlength=len(known))
            if copied.any():
                kept = np.flatnonzero(~copied)
                mapped, rows = mapped[kept], rows.take(kept)
        data, _ = group_rows(
            mapped,
            self._targets(rows, known),
            rows.codes,
            reference=-1,
            n_classes=self.n_classes,
            sample_weight=rows.sample_weight,
        )
        return replace(data, copies=left_out)

    def reference_rows(self, rows: Rows) -> ReferenceRows:
        """Treat the reference's own rows in the same way."""
        itself = replace(self, copies=None)
        data = itself(rows.X, rows.y, rows.codes, [self.reference], rows.sample_weight)
        return ReferenceRows(data.X, data.y, data.row_shares, data.n_classes)

    def _targets(self, rows: Rows, names: list[Any]) -> Any:
        y = validation.check_targets(rows.y, rows.codes, names, numbers=self.classes is None)
        if self.classes is None:
            return (np.asarray(y, dtype=np.float64) - self.centre) / self.scale
        both = [*names, self.reference]
        return validation.check_labels_known(y, self.classes, rows.codes, both, len(names))
