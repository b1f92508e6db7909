"""What every estimator of ours does with its input: check it, and make a pool of sources of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from sourcewise import columns, validation
from sourcewise.core import choices
from sourcewise.core.choices import Choices
from sourcewise.core.data import ReferenceRows, SourceData, group_rows
from sourcewise.core.discrepancy.methods import LINEAR
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import spread
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.pool import FeatureMap, Pool
from sourcewise.estimators.rows import Rows
from sourcewise.estimators.transaction import forget_fit
from sourcewise.estimators.wrapped import EstimatorFamily


class SourceInput(BaseEstimator):
    """Estimator whose rows come from named sources, one of them the reference.

    A subclass has the parameters ``reference``, ``cv``, ``protocol`` and ``random_state``; those
    below keep their values where a subclass has no such parameter.
    """

    # Sources are the point of these estimators: they are routed without having to be asked for.
    __metadata_request__fit = {"sources": True}

    estimator: Any = None
    discrepancy: str = "combined"
    trade_off: str | float = "cv"

    def _validate(self, X: Any, y: Any, sources: Any, sample_weight: Any) -> tuple[Rows, list[Any]]:
        """Check everything a user gives, and learn what depends on the reference's rows alone."""
        validation.check_options(
            discrepancy=self.discrepancy,
            trade_off=self.trade_off,
            cv=self.cv,
            protocol=self.protocol,
        )
        if self.estimator is not None:
            validation.check_learner(self.estimator, classifier=self._is_classifier)
        validation.check_targets_given(y, type(self).__name__)
        forget_fit(self)
        X = self._check_features(X, reset=True)
        n_rows = validation.n_rows_of(X)
        if sources is None:
            names, codes = [self.reference], np.zeros(n_rows, dtype=np.intp)
        else:
            names, codes = validation.check_source_names(sources, n_rows)
        position = validation.check_reference(names, self.reference)
        if sources is None:
            validation.warn_without_sources(self.reference)
        rows = self._check_rows(X, y, names, codes, sample_weight)
        trusted = rows.codes == position
        validation.check_reference_size(int(trusted.sum()), self.cv, self.reference)
        self._learn_targets(rows.y, trusted)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return rows, names

    def _check_rows(
        self, X: Any, y: Any, names: list[Any], codes: np.ndarray, sample_weight: Any
    ) -> Rows:
        """Check what can be checked row by row; rows of weight zero are dropped first."""
        y = column_or_1d(y, warn=True)
        validation.check_same_length(X, y)
        weight = validation.check_sample_weight(sample_weight, X, codes, names)
        rows = Rows(X, y, codes, weight).of_positive_weight()
        if self._wants_numbers:
            validation.check_finite(rows.X, rows.codes, names, self._columns)
        y = validation.check_targets(rows.y, rows.codes, names, numbers=not self._is_classifier)
        return replace(rows, y=y)

    def _choices(self) -> Choices:
        """All that the user has no parameter for."""
        return choices.PAPER if self.protocol == "paper" else choices.DEFAULT

    def _pool(self, rows: Rows, names: list[Any]) -> Pool:
        position = validation.check_reference(names, self.reference)
        how = self._choices()
        discrepancy = "plug-in" if self.protocol == "paper" else self.discrepancy
        targets = self._encode(rows.y, rows.codes, names, position)
        n_classes = len(self.classes_) if self._is_classifier else 0
        features: FeatureMap | None = None
        numbers: Any = None
        if self._wants_numbers or discrepancy in LINEAR:
            features, numbers = self._map_features(rows, names, position, how, discrepancy)
        row_numbers: Any = np.arange(len(targets))[:, None]
        data, order = group_rows(
            numbers if self._wants_numbers else row_numbers,
            targets,
            rows.codes,
            reference=position,
            n_classes=n_classes,
            sample_weight=rows.sample_weight,
        )
        sources, reference = self._in_memory(data, names)
        as_numbers = None
        if discrepancy in LINEAR:
            as_numbers = sources, reference
            if not self._wants_numbers:
                as_numbers = self._in_memory(data.with_features(numbers[order]), names)
        return Pool(
            sources=sources,
            reference=reference,
            position=position,
            names=names,
            features=features,
            numbers=as_numbers,
            seed=self._seed,
            choices=how,
            discrepancy=discrepancy,
            family=self._default_family(how, n_classes)
            if self._wants_numbers
            else self._wrapped_family(rows),
            folds=ReferenceFolds.draw(
                reference.y if n_classes else None,
                len(reference.y),
                self.cv,
                how.n_repeats if self._wants_numbers else 1,
                self._seed,
            ),
            scale=1.0 if n_classes else spread(reference.y, how.far_off),
        )

    def _map_features(
        self, rows: Rows, names: list[Any], position: int, how: Choices, discrepancy: str
    ) -> tuple[FeatureMap, np.ndarray]:
        """Learn the map of the features, and apply it to all rows."""
        matrix = rows.X
        if not self._wants_numbers:
            matrix = validation.numeric_matrix(matrix, discrepancy)
            validation.check_finite(matrix, rows.codes, names, self._columns)
        if how.as_given:
            validation.check_magnitude(matrix, rows.codes, names, self._columns)
            features = FeatureMap.as_given(matrix)
        else:
            trusted_rows = matrix[rows.codes == position]
            validation.check_reference_magnitude(trusted_rows, names[position], self._columns)
            features = FeatureMap.from_reference(trusted_rows, how)
        return features, features(matrix)

    @staticmethod
    def _in_memory(data: SourceData, names: list[Any]) -> tuple[MemorySources, ReferenceRows]:
        others = [name for i, name in enumerate(names) if i != data.reference]
        return MemorySources(data, others), ReferenceRows.of(data)

    @property
    def _wants_numbers(self) -> bool:
        return self.estimator is None

    @property
    def _columns(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _check_features(self, X: Any, *, reset: bool, finite: bool = False) -> Any:
        """Check the columns; for training, NaN and infinity are left to be named with a source."""
        if self._wants_numbers:
            columns.check_container(X)
            try:
                return validate_data(
                    self, X, reset=reset, dtype=(np.float64, np.float32), ensure_all_finite=finite
                )
            except (TypeError, ValueError):
                columns.check_values(X)
                raise
        columns.check_column_names(X)
        if reset:  # afterwards the estimator itself speaks up
            _check_feature_names(self, X, reset=True)
            _check_n_features(self, X, reset=True)
        return validation.indexable_rows(X)

    def _check_new_features(self, X: Any) -> Any:
        """Rows to predict for."""
        check_is_fitted(self)
        return self._check_features(X, reset=False, finite=True)

    # -- for subclasses ----------------------------------------------------------------------

    _is_classifier: bool

    def _learn_targets(self, y: np.ndarray, trusted: np.ndarray) -> None:
        raise AssertionError("implemented by the classifier and the regressor")

    def _encode(
        self, y: np.ndarray, codes: np.ndarray, names: list[Any], reference: int
    ) -> np.ndarray:
        raise AssertionError("implemented by the classifier and the regressor")

    def _default_family(self, how: Choices, n_classes: int) -> Family:
        raise AssertionError("implemented by the classifier and the regressor")

    def _wrapped_family(self, rows: Rows) -> EstimatorFamily:
        raise AssertionError("implemented by the classifier and the regressor")


class ClassInput(SourceInput):
    """The same for classes: those of the reference."""

    _is_classifier = True

    def _learn_targets(self, y: np.ndarray, trusted: np.ndarray) -> None:
        check_classification_targets(y)
        self.classes_ = np.unique(y[trusted])

    def _encode(
        self, y: np.ndarray, codes: np.ndarray, names: list[Any], reference: int
    ) -> np.ndarray:
        return validation.check_labels_known(y, self.classes_, codes, names, reference)

    def _default_family(self, how: Choices, n_classes: int) -> Family:
        return LogisticFamily(
            n_classes,
            how.regularisations,
            penalise_constant=how.as_given,
            tol=how.tol,
            intercept_penalty=how.intercept_penalty,
        )
