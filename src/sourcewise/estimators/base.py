"""What the classifier and the regressor share: validate, ask the core, set attributes."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sourcewise import columns, validation
from sourcewise.core.bound import GeneralizationBound, generalization_bound
from sourcewise.core.copies import Copies
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.methods import LINEAR, Measured
from sourcewise.core.engine import SourcesChanged, SourcesElsewhere
from sourcewise.core.feature_map import rows_with_constant
from sourcewise.core.threads import one_blas_thread
from sourcewise.estimators.adequacy import (
    PartPower,
    ReferenceAdequacy,
    class_powers,
    reference_adequacy,
)
from sourcewise.estimators.averaged import AveragedClassifier, AveragedRegressor, Member
from sourcewise.estimators.closer_look import Seen, look_closer
from sourcewise.estimators.input import (
    SourceInput,
    unchanged_on_failure,
)
from sourcewise.estimators.method import Fit, fit, measure_sources
from sourcewise.estimators.pool import Pool, Training
from sourcewise.estimators.prepare import learn_rules, leave_out_copies, prepare, prepare_elsewhere
from sourcewise.estimators.rows import Rows
from sourcewise.estimators.selection import Selection, choose_local_setting
from sourcewise.estimators.task import Classes
from sourcewise.estimators.wrapped import EstimatorFamily
from sourcewise.progress import bars
from sourcewise.report.notes import (
    class_notes,
    closer_notes,
    copies_notes,
    in_columns,
    member_notes,
)
from sourcewise.report.reasons import FOUND, REFERENCE, reasons
from sourcewise.report.source_report import ReportContext, SourceReport


class SourceWeightedBase(MetaEstimatorMixin, SourceInput):
    """Meta-estimator that weighs sources by their discrepancy from a reference."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        reference: Any = "reference",
        discrepancy: str = "combined",
        trade_off: str | float = "cv",
        cv: int = 5,
        protocol: str | None = None,
        via: str = "weights",
        scaling: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        keep_data: bool = True,
        strict: bool = False,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.reference = reference
        self.discrepancy = discrepancy
        self.trade_off = trade_off
        self.cv = cv
        self.protocol = protocol
        self.via = via
        self.scaling = scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.keep_data = keep_data
        self.strict = strict
        self.verbose = verbose

    # Of these types in a file, too.
    selection_: Selection
    trade_off_: float
    cutoff_: float
    _measured: Measured
    _copies: Copies
    _training: Training | None = None
    _seen: Seen | None = None
    _told_by_sources_: tuple[str, ...] = ()
    _column_words: list[str] | None = None

    # -- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sources: Any = None, sample_weight: Any = None) -> Any:
        """Measure the sources, weigh them, and train on the weighted rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sources : array of shape (n_rows,), or str, optional
            Name of each row's source; one of them is the reference. The name of a column of ``X``
            takes them from there, and the column is then no feature. None: all rows are trusted.
        sample_weight : array of shape (n_rows,), optional
            How much a row counts within its source; only ratios within a source matter.

        Returns
        -------
        self
        """
        with unchanged_on_failure(self), bars(self.verbose):
            self._fit(self._prepare(X, y, sources, sample_weight))
        return self

    def fit_sources(self, sources: SourcesElsewhere) -> Any:
        """Fit to sources whose rows are elsewhere: on a cluster, or with their owners.

        The result is that of :meth:`fit` with all rows at hand. The reference's rows are read here;
        the others stay where they are, and are sent what has been learnt from the reference.
        Afterwards everything works as after :meth:`fit`, but for :meth:`add_source`, and
        :meth:`at_trade_off` needs the sources to be within reach still.

        Parameters
        ----------
        sources : object with the two methods of :class:`sourcewise.core.engine.SourcesElsewhere`
            ``sourcewise.engines.DaskSources``, for one.

        Returns
        -------
        self
        """
        connection = sources if isinstance(sources, AbstractContextManager) else nullcontext()
        may_travel = bool(getattr(sources, "trusted_rows_may_travel", False))
        with unchanged_on_failure(self), connection, bars(self.verbose), one_blas_thread():
            trusted = sources.trusted(self.reference)
            validation.check_own_learner(self.estimator)
            rows, _ = self._validate(trusted.X, trusted.y, None, trusted.sample_weight)
            options = self._options()
            rules = learn_rules(rows, options, may_travel)
            while True:
                try:
                    opened = sources.open(rules)
                    pool = prepare_elsewhere(opened, rows, rules, options, may_travel)
                    self._fit(pool)
                    break
                except SourcesChanged:  # go on with those that are left
                    continue
            self._told_by_sources_ = tuple(getattr(sources, "notes", ()))
        return self

    def add_source(self, X: Any, y: Any, name: Any, sample_weight: Any = None) -> Any:
        """Add one source to a fitted model.

        The new source's discrepancy, the weights, the choice of trade-off and the final model are
        computed; the discrepancies of the other sources, the larger part of the work, are not. The
        result is that of fitting from scratch with the new rows at the end.

        For this the model keeps the training rows (one copy of ``X``, ``y``, the sources and the
        sample weights) and what was found out about each source (some ``10 * n_repeats * cv``
        numbers). ``keep_data=False`` leaves them out; so does
        :func:`sourcewise.save` unless it is told otherwise.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_new_rows, n_features)
        y : array of shape (n_new_rows,)
        name : hashable
            Name of the new source.
        sample_weight : array of shape (n_new_rows,), optional

        Returns
        -------
        self
        """
        training = self._kept(validation.NO_DATA_KEPT)
        if isinstance(training.rows, Pool):
            raise ValueError(validation.NO_ADDING_ELSEWHERE)
        names = self.sources_.tolist()
        validation.check_new_source(names, name, X)
        X = columns.without_column(X, getattr(self, "source_column_", None))
        validation.check_source_columns(
            X,
            name,
            like=training.rows.X,
            n_features=getattr(self, "n_features_in_", None),  # rows of text have none
            columns=self._columns,
        )
        validation.check_targets_given(y, type(self).__name__)
        X = self._check_features(X, reset=False)
        validation.check_same_kind(X, name, like=training.rows.X)
        codes = np.zeros(validation.n_rows_of(X), dtype=np.intp)
        new = self._check_rows(X, y, [name], codes, sample_weight)
        new = replace(new, codes=new.codes + len(names))
        with unchanged_on_failure(self), bars(self.verbose):
            rows = training.rows.append(new)
            options, copies, names = self._options(), self._copies, [*names, name]
            if copies.counts is not None:  # those of the other sources have been left out before
                rows, found = leave_out_copies(rows, names, options)
                copies = found.after(copies)
            self._fit(self._pool(rows, names, copies, training), training)
        return self

    def at_trade_off(self, trade_off: float) -> Any:
        """Return a copy of this fitted model, trained at another trade-off.

        The sources are not measured again, so this costs a part of a fit. Zero gives the model of
        the reference alone, infinity the model of all rows alike.

        Parameters
        ----------
        trade_off : float
            Lambda.

        Returns
        -------
        model : fitted estimator
        """
        training = self._kept(validation.NO_DATA_FOR_TRADE_OFF)
        validation.check_trade_off(trade_off)
        model = copy.copy(self)
        model.trade_off = float(trade_off)
        pool = self._kept_pool(training)
        pool = replace(pool, options=replace(pool.options, trade_off=model.trade_off))
        model._fit(pool, training)
        if model._training is not None:
            model._training.keep(pool)
        return model

    def _kept(self, otherwise: str) -> Training:
        """Return what an earlier fit has kept."""
        check_is_fitted(self)
        if self._training is None:
            raise ValueError(otherwise)
        return self._training

    def _kept_pool(self, training: Training) -> Pool:
        """Return the pool of an earlier fit, which is made again once."""
        if training.pool is not None:
            return training.pool
        assert isinstance(training.rows, Rows)
        names = self.sources_.tolist()
        return training.keep(self._pool(training.rows, names, self._copies, training))

    def _pool(self, rows: Rows, names: list[Any], copies: Copies, known: Training) -> Pool:
        """Make a pool of rows; the map of the features is that of an earlier fit."""
        how = self._options(), self._in_memory
        return prepare(rows, names, *how, copies=copies, known=known.features)

    def _fit(self, pool: Pool, known: Training | None = None) -> None:
        """Measure the sources that are not known yet, choose, weigh, train; keep what is found."""
        # Permutations cost as much as the fit; while the rows are kept they can wait.
        wait = self.keep_data and pool.rows is not None
        found = fit(pool, None if known is None else (known, self._measured), permute=not wait)
        self._take(found)
        self._training = found.training
        if not wait:
            self._seen = self._looked_closer(pool)
        if not self.keep_data:
            self._training = None

    def _take(self, found: Fit) -> None:
        """Copy what was found to attributes."""
        pool, self._measured, self.selection_ = found.pool, found.measured, found.selection
        self.sources_ = pool.names_array
        self.source_weights_, self.discrepancies_ = found.weights, found.values
        self.source_sizes_, self.source_rows_ = pool.sizes, pool.row_counts
        self.reference_index_ = pool.position
        self.trade_off_, self.cutoff_ = found.selection.trade_off, found.cutoff
        self.scaling_ = pool.scaling
        self._copies = pool.copies
        self._training = self._seen = None
        if isinstance(pool.family, EstimatorFamily):
            self.estimator_ = found.model
            if isinstance(found.model, list):
                members = [self._with_default(member) for member in found.model]
                self.estimator_ = self._task.average(members, pool.choices)
            return
        assert pool.features is not None
        self.C_ = found.selection.setting
        self.feature_range_ = pool.features.bounds
        self.coef_, self.intercept_ = self._task.in_units(*pool.features.unmap(found.model))

    def _with_default(self, member: Member) -> Member:
        """Let the default learner of the same sources, if it is this member, be a fitted model."""
        found = member.model
        if isinstance(found, Fit):
            alone = {"estimator": None, "keep_data": False}
            model: Any = type(self)(**{**self.get_params(deep=False), **alone})
            own = ("classes_", "_task", "_seed")
            vars(model).update({name: value for name, value in vars(self).items() if name in own})
            assert found.pool.features is not None
            model.n_features_in_ = len(found.pool.features.scale)
            model._take(found)
            member.model = model
        return member

    # -- what a user asks afterwards ---------------------------------------------------------

    @property
    def copies_(self) -> np.ndarray | None:
        """Rows of each source that repeat trusted ones and were left out."""
        check_is_fitted(self)
        return self._copies.counts

    @property
    def discrepancy_result_(self) -> Discrepancies:
        """Discrepancies with standard errors, p-values and witnesses.

        The permutations behind the p-values of "plug-in" and "cross-fit" are drawn on first access.
        """
        check_is_fitted(self)
        training, found = self._training, self._measured
        # Of rows that are elsewhere they have been drawn at once, or cannot be.
        if training and not training.elsewhere and np.isnan(found.result.p_values).any():
            with one_blas_thread():
                again, *_ = measure_sources(self._kept_pool(training))
            self._measured = replace(found, result=again.result)
        return self._measured.result.with_reference(self.reference_index_)

    def row_weights(self, sources: Any) -> np.ndarray:
        """One weight a row, for any other trainer: mean 1 over the rows that were fitted.

        Each row gets its source's share of the weight, divided by the source's rows (those that
        repeat trusted rows are counted here, though they had no part in the fit). With a
        ``sample_weight`` of your own, multiply by that, scaled to mean 1 within each source.

        Parameters
        ----------
        sources : array of shape (n_rows,), or frame with the column that ``fit`` took them from
            Name of each row's source; all of them sources of the fit.

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        column = getattr(self, "source_column_", None)
        if column is not None and hasattr(sources, "columns"):
            sources = columns.split_off(sources, column)[1]
        codes = validation.check_known_sources(sources, self.sources_.tolist())
        rows = self.source_rows_ + (0 if self.copies_ is None else self.copies_)
        weights = self.source_weights_ / rows * rows.sum()
        return np.asarray(weights[codes])

    def report(self) -> SourceReport:
        """Per source: weight, discrepancy, standard error, p-value, rows and a reason in words."""
        check_is_fitted(self)
        parameters = {name: repr(value) for name, value in self.get_params(False).items()}
        if self.scaling_:
            parameters["scaling"] = f"{self.scaling!r}, which came to {self.scaling_!r}"
        return SourceReport.from_results(
            names=self.sources_.tolist(),
            weights=self.source_weights_,
            discrepancies=self.discrepancy_result_,
            rows=self.source_rows_,
            reference=self.reference_index_,
            trade_off=self.trade_off_,
            **self._scale(),
            shares=self.selection_.used,
            scaling=self.scaling_,
            copies=self.copies_,
            notes=tuple(self._notes()),
            context=ReportContext(
                sizes=tuple(self.source_sizes_.tolist()),
                witnesses=self.discrepancy_result_.witnesses,
                adequacy=self.reference_adequacy(),
                bound=self._reported_bound(),
                parameters=parameters,
            ),
        )

    def _notes(self) -> list[str]:
        """Return what the report says beside the table."""
        notes, model = [], getattr(self, "estimator_", None)
        if isinstance(model, AveragedClassifier | AveragedRegressor):
            notes += member_notes({member.trained_on: member.share for member in model.members})
        if isinstance(self._task, Classes) and len(self.sources_) > 1:
            notes += class_notes(self.classes_.tolist(), self._task.counts.tolist())
        names, rows = self.sources_.tolist(), self.source_rows_
        notes += copies_notes(self._copies, names, rows, int(rows[self.reference_index_]))
        return [*notes, *self._look_closer().said, *self._told_by_sources_]

    def _look_closer(self) -> Seen:
        """Say what a closer look at the rows shows, while they are here; once for a fit."""
        if self._seen is None:
            self._seen = self._looked_closer()
        return self._seen

    def _looked_closer(self, pool: Pool | None = None) -> Seen:
        training = self._training
        if training is None or len(self.sources_) < 2 or self.protocol == "paper":
            return Seen()
        pool = self._kept_pool(training) if pool is None else pool
        parts, test = [], self._measured.label_test
        if test is not None and pool.n_classes:
            size = float(np.median(pool.untrusted_sizes))
            parts = class_powers(test, pool.reference.y, self.classes_.tolist(), size)
        linear = pool if pool.family.linear else pool.linear
        if training.elsewhere or linear is None:
            return Seen((), tuple(parts))
        setting = training.setting
        if pool.options.discrepancy in LINEAR:
            setting = choose_local_setting(linear)
        found = reasons(self.discrepancy_result_, self.reference_index_, **self._scale())
        quiet = [i for i, reason in enumerate(found) if reason not in (REFERENCE, *FOUND)]
        with one_blas_thread():
            look = look_closer(linear, setting, quiet, self.strict)
        words = self._column_words or self._columns
        parts += [
            PartPower("region", in_columns(where, words), rows, share)
            for rows, share, where in look.power
        ]
        names = self.sources_.tolist()
        said = closer_notes(look, names, words, numbers=self._kind.numbers)
        return Seen(tuple(said), tuple(parts))

    def _scale(self) -> dict[str, Any]:
        """Return what discrepancies are compared with, by the report's names.

        Expected errors are the standard errors that rows like the reference's would have.
        """
        own = self.source_sizes_[self.reference_index_]
        variances = self._measured.reference_variance * (1.0 / self.source_sizes_ + 1.0 / own)
        return {
            "reference_gain": self._measured.reference_gain,
            "expected_errors": np.sqrt(variances),
            "cutoff": self.cutoff_,
        }

    def _reported_bound(self) -> GeneralizationBound:
        """Bound with the complexity of linear classifiers; 0 where that of the class is unknown."""
        if self._wants_numbers and self._task.n_classes == 2:
            return self.generalization_bound(
                complexity="vc", vc_dimension=self.n_features_in_ + 1, lipschitz=0.5
            )
        return self.generalization_bound(complexity=0.0)

    def reference_adequacy(self) -> ReferenceAdequacy:
        """Say whether the reference is large enough, and how many more rows would help."""
        check_is_fitted(self)
        parts = self._look_closer().parts
        return reference_adequacy(
            self.source_sizes_, self.reference_index_, self._measured.label_test, parts
        )

    def generalization_bound(
        self, *, delta: float = 0.05, **complexity: Any
    ) -> GeneralizationBound:
        """Theorem 1 at the fitted weights; see :func:`sourcewise.generalization_bound`.

        ``sources`` are names here. For the default learner ``norm_bound`` is by default the norm
        of the fitted model in the units of ``X``, its intercept counted as the coefficient of a
        constant feature. Chosen after the fact like that it makes the bound an estimate: for a
        guarantee pass a number that you would have named before.
        """
        check_is_fitted(self)
        if complexity.get("sources") is not None:
            complexity["sources"] = validation.check_source_positions(
                complexity["sources"], self.sources_.tolist()
            )
        if complexity.get("norm_bound") is None and hasattr(self, "coef_"):
            complexity["norm_bound"] = (
                self._task.norm(self.coef_, self.intercept_) or np.finfo(float).tiny
            )
            if complexity.get("radius") is not None:
                complexity["radius"] = float(np.hypot(complexity["radius"], 1.0))
            if complexity.get("X") is not None:
                X = self._check_new_features(complexity["X"])
                complexity["X"] = rows_with_constant(X, self.feature_range_)
        return generalization_bound(
            self.source_weights_,
            self.discrepancies_,
            self.source_sizes_,
            delta=delta,
            **complexity,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave sources elsewhere where they are when a model is copied to a file or a process."""
        state: dict[str, Any] = super().__getstate__()
        training = state.get("_training")
        if getattr(training, "elsewhere", False):  # on its way into a file it is a dictionary
            state = {**state, "_training": None}
        return state

    # -- scikit-learn ------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        """Take over what the estimator says about its input."""
        tags = super().__sklearn_tags__()
        # What is no estimator is refused by fit, in words; it must not break a repr before.
        if hasattr(self.estimator, "fit") and not isinstance(self.estimator, type):
            tags.input_tags = get_tags(self.estimator).input_tags
        elif self.estimator is None:
            tags.input_tags.sparse = True
        return tags
