"""What the classifier and the regressor share: validate, ask the core, set attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from sourcewise import validation
from sourcewise.core.bound import GeneralizationBound, generalization_bound
from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy.evidence import ReferenceFolds
from sourcewise.core.linear import Family, WeightedProblems
from sourcewise.core.weights import solve_weights, theory_trade_off
from sourcewise.estimators.adequacy import ReferenceAdequacy, reference_adequacy
from sourcewise.estimators.measure import Measured, measure
from sourcewise.estimators.pool import FeatureMap, Pool
from sourcewise.estimators.protocol import DEFAULT, PAPER, Protocol
from sourcewise.estimators.rows import Rows, Training
from sourcewise.estimators.selection import Selection, choose_local_setting, select, total_weight
from sourcewise.estimators.transaction import forget_fit, unchanged_on_failure
from sourcewise.estimators.wrapped import EstimatorFamily, fit_weighted
from sourcewise.report.source_report import SourceReport


class SourceWeightedBase(MetaEstimatorMixin, BaseEstimator):
    """Meta-estimator that weighs sources by their discrepancy from a reference."""

    # Sources are the point of these estimators: they are routed without having to be asked for.
    __metadata_request__fit = {"sources": True}

    def __init__(
        self,
        estimator: Any = None,
        *,
        reference: Any = "reference",
        discrepancy: str = "local",
        trade_off: str | float = "cv",
        cv: int = 5,
        protocol: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        keep_data: bool = True,
    ):
        self.estimator = estimator
        self.reference = reference
        self.discrepancy = discrepancy
        self.trade_off = trade_off
        self.cv = cv
        self.protocol = protocol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.keep_data = keep_data

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sources: Any = None, sample_weight: Any = None) -> Any:
        """Measure the sources, weigh them, and train on the weighted rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sources : array of shape (n_rows,), optional
            Name of each row's source; one of them is the reference. None: all rows are trusted.
        sample_weight : array of shape (n_rows,), optional
            How much a row counts within its source; only ratios within a source matter.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self):
            rows, names = self._validate(X, y, sources, sample_weight)
            self._fit_rows(rows, names, known=None)
        return self

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
        rows = self._check_rows(X, y, names, codes, sample_weight)
        trusted = rows.codes == position
        validation.check_reference_size(int(trusted.sum()), self.cv, self.reference)
        self._learn_targets(rows.y, trusted)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return rows, names

    def add_source(self, X: Any, y: Any, name: Any, sample_weight: Any = None) -> Any:
        """Add one source to a fitted model.

        The new source's discrepancy, the weights, the choice of trade-off and the final model are
        computed; the discrepancies of the other sources, the larger part of the work, are not. The
        result is that of fitting from scratch with the new rows at the end.

        For this the model keeps the training rows (one copy of ``X``, ``y``, the sources and the
        sample weights) and the discrepancies measured without each validation fold
        (``n_repeats * cv`` numbers a source). ``keep_data=False`` leaves them out; so does
        :func:`sourcewise.save` unless it is told otherwise.

        Parameters
        ----------
        X : array or frame of shape (n_new_rows, n_features)
        y : array of shape (n_new_rows,)
        name : hashable
            Name of the new source.
        sample_weight : array of shape (n_new_rows,), optional

        Returns
        -------
        self
        """
        check_is_fitted(self)
        training: Training | None = getattr(self, "_training", None)
        if training is None:
            raise ValueError(validation.NO_DATA_KEPT)
        names = self.sources_.tolist()
        validation.check_new_source(names, name)
        validation.check_some_rows(X, name)
        validation.check_source_columns(
            X,
            name,
            like=training.rows.X,
            n_features=getattr(self, "n_features_in_", None),  # rows of text have none
            columns=self._columns,
        )
        X = self._check_features(X, reset=False)
        codes = np.zeros(validation.n_rows_of(X), dtype=np.intp)
        new = self._check_rows(X, y, [name], codes, sample_weight)
        new = replace(new, codes=new.codes + len(names))
        with unchanged_on_failure(self):
            self._fit_rows(training.rows.append(new), [*names, name], known=training.measured)
        return self

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

    def _fit_rows(self, rows: Rows, names: list[Any], known: Measured | None) -> None:
        """Measure the sources that are not known yet, choose, weigh, train."""
        pool = self._pool(rows, names)
        trade_offs = self._trade_offs(pool)
        needs_folds = len(trade_offs) * len(pool.family.settings) > 1
        others = [i for i in range(len(names)) if i != pool.data.reference]
        if known is not None and len(known.result.values) == 0:
            known = None  # nothing but the reference: folds may not have been asked for
        asked = others if known is None else others[len(known.result.values) :]
        measured = measure(pool, asked, setting=choose_local_setting(pool), with_folds=needs_folds)
        if known is not None:
            measured = known.append(measured)
        selection = select(pool, measured, trade_offs)
        self._set_results(pool, measured, selection)
        self._fit_final(pool, rows, selection)
        self._training = Training(rows, measured) if self.keep_data else None

    def _set_results(self, pool: Pool, measured: Measured, selection: Selection) -> None:
        data = pool.data
        found = measured.result.with_reference(data.reference)
        weights, cutoff = solve_weights(
            found.values, data.sizes, selection.trade_off, return_cutoff=True
        )
        self.sources_ = _array_of_names(pool.names)
        self.source_weights_ = weights
        self.discrepancies_ = found.values
        self.discrepancy_result_ = found
        self.source_sizes_ = data.sizes
        self.source_rows_ = data.row_counts
        self.reference_index_ = data.reference
        self.trade_off_ = selection.trade_off
        self.cutoff_ = float(cutoff)
        self.selection_ = selection
        self._reference_variance = measured.reference_variance
        self._reference_gain = measured.reference_gain

    def _fit_final(self, pool: Pool, rows: Rows, selection: Selection) -> None:
        data, weights = pool.data, self.source_weights_
        total = total_weight(weights, data.sizes, data.row_counts, pool.protocol.effective_total)
        problem = WeightedProblems(
            data, weights[None], np.array([total]), pool.folds.held_out, np.array([-1])
        )
        if pool.features is not None and self._wants_numbers:
            model = pool.family.fit_grid(problem, np.array([selection.setting]))[0]
            self.C_ = selection.setting
            self._set_coefficients(*pool.features.unmap(np.asarray(model, dtype=np.float64)))
            return
        weight = np.empty(len(rows.y))
        weight[pool.order] = problem.row_weights(0)
        used = np.flatnonzero(weight)
        self.estimator_ = fit_weighted(
            self.estimator, _safe_indexing(rows.X, used), rows.y[used], weight[used], self._seed
        )

    def _pool(self, rows: Rows, names: list[Any]) -> Pool:
        position = validation.check_reference(names, self.reference)
        protocol = PAPER if self.protocol == "paper" else DEFAULT
        discrepancy = "plug-in" if self.protocol == "paper" else self.discrepancy
        targets = self._encode(rows.y, rows.codes, names, position)
        n_classes = len(self.classes_) if self._is_classifier else 0
        features = numbers = None
        if self._wants_numbers or discrepancy != "local":
            matrix = rows.X
            if not self._wants_numbers:
                matrix = validation.numeric_matrix(matrix, discrepancy)
                validation.check_finite(matrix, rows.codes, names, self._columns)
            features = (
                FeatureMap.as_given(matrix)
                if protocol.as_given
                else FeatureMap.from_reference(matrix[rows.codes == position])
            )
            numbers = features(matrix)
        data, order = group_rows(
            numbers if self._wants_numbers else np.arange(len(targets))[:, None],
            targets,
            rows.codes,
            reference=position,
            n_classes=n_classes,
            sample_weight=rows.sample_weight,
        )
        numeric = None
        if discrepancy != "local":
            numeric = data if self._wants_numbers else data.with_features(numbers[order])
        trusted = data.y[data.rows(position)]
        return Pool(
            data=data,
            order=order,
            features=features,
            numeric=numeric,
            names=names,
            seed=self._seed,
            protocol=protocol,
            discrepancy=discrepancy,
            family=self._default_family(protocol, n_classes)
            if self._wants_numbers
            else self._wrapped_family(rows),
            folds=ReferenceFolds.draw(
                trusted if n_classes else None,
                len(trusted),
                self.cv,
                protocol.n_repeats if self._wants_numbers else 1,
                self._seed,
            ),
            scale=1.0 if n_classes else (float(np.std(trusted)) or 1.0),
        )

    def _trade_offs(self, pool: Pool) -> np.ndarray:
        if self.trade_off == "cv" and pool.data.n_sources > 1:
            return pool.protocol.trade_offs
        if self.trade_off in ("cv", "theory"):
            return np.array([theory_trade_off()])
        return np.array([float(self.trade_off)])

    # -- what a user asks afterwards ---------------------------------------------------------

    def report(self) -> SourceReport:
        """Per source: weight, discrepancy, standard error, p-value, rows and a reason in words."""
        check_is_fitted(self)
        return SourceReport.from_results(
            names=self.sources_.tolist(),
            weights=self.source_weights_,
            discrepancies=self.discrepancy_result_,
            rows=self.source_rows_,
            reference=self.reference_index_,
            reference_gain=self._reference_gain,
            expected_errors=np.sqrt(
                self._reference_variance
                * (1.0 / self.source_sizes_ + 1.0 / self.source_sizes_[self.reference_index_])
            ),
            trade_off=self.trade_off_,
            cutoff=self.cutoff_,
        )

    def reference_adequacy(self) -> ReferenceAdequacy:
        """Say whether the reference is large enough, and how many more rows would help."""
        check_is_fitted(self)
        return reference_adequacy(
            self.source_sizes_, self.reference_index_, self._reference_variance
        )

    def generalization_bound(
        self, *, delta: float = 0.05, **complexity: Any
    ) -> GeneralizationBound:
        """Theorem 1 at the fitted weights; see :func:`sourcewise.generalization_bound`."""
        check_is_fitted(self)
        return generalization_bound(
            self.source_weights_,
            self.discrepancies_,
            self.source_sizes_,
            delta=delta,
            **complexity,
        )

    # -- for subclasses ----------------------------------------------------------------------

    _is_classifier: bool

    def _learn_targets(self, y: np.ndarray, trusted: np.ndarray) -> None:
        raise AssertionError("implemented by the classifier and the regressor")

    def _encode(
        self, y: np.ndarray, codes: np.ndarray, names: list[Any], reference: int
    ) -> np.ndarray:
        raise AssertionError("implemented by the classifier and the regressor")

    def _default_family(self, protocol: Protocol, n_classes: int) -> Family:
        raise AssertionError("implemented by the classifier and the regressor")

    def _wrapped_family(self, rows: Rows) -> EstimatorFamily:
        raise AssertionError("implemented by the classifier and the regressor")

    def _set_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        raise AssertionError("implemented by the classifier and the regressor")

    # -- scikit-learn ------------------------------------------------------------------------

    @property
    def _wants_numbers(self) -> bool:
        return self.estimator is None

    @property
    def _columns(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _check_features(self, X: Any, *, reset: bool, finite: bool = False) -> Any:
        """Check the columns; for training, NaN and infinity are left to be named with a source."""
        if self._wants_numbers:
            return validate_data(
                self, X, reset=reset, dtype=(np.float64, np.float32), ensure_all_finite=finite
            )
        if reset:  # afterwards the estimator itself speaks up
            _check_feature_names(self, X, reset=True)
            _check_n_features(self, X, reset=True)
        return validation.indexable_rows(X)

    def _check_new_features(self, X: Any) -> Any:
        """Rows to predict for."""
        check_is_fitted(self)
        return self._check_features(X, reset=False, finite=True)

    def __sklearn_tags__(self) -> Any:
        """Take over what the estimator says about its input."""
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _array_of_names(names: list[Any]) -> np.ndarray:
    """Plain array for names of one kind, object array for mixtures and tuples."""
    if {type(name) for name in names} in ({str}, {int}, {float}, {bool}):
        return np.array(names)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array
