"""What every estimator of ours does with its input: check it, and make a pool of sources of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
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
from sourcewise.core.copies import NO_NUMBERS, TWINS, keep_one, more_than_chance, relabelled
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.methods import LINEAR
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds, SingleFolds
from sourcewise.core.engine import Engine
from sourcewise.core.family import Family
from sourcewise.core.losses import spread
from sourcewise.core.sparse_span import MOST_ROWS
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.copies import CopyRule, numbers_or_none
from sourcewise.estimators.feature_map import FeatureMap
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.rows import FilledRows, Rows
from sourcewise.estimators.scaling import learn_map
from sourcewise.estimators.task import Classes, Task
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
    via: str = "weights"
    scaling: str = "auto"
    strict: bool = False
    _kind: ClassVar[type[Task]] = Classes
    _task: Task
    _copies_labels: np.ndarray | None = None  # models of earlier versions have none

    def _validate(self, X: Any, y: Any, sources: Any, sample_weight: Any) -> tuple[Rows, list[Any]]:
        """Check everything a user gives, and learn what depends on the reference's rows alone."""
        self._check_options()
        validation.check_targets_given(y, type(self).__name__)
        forget_fit(self)
        if isinstance(sources, str):
            name = sources
            X, sources = columns.split_off(X, name)
            self.source_column_ = name
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
        self._learn_reference(rows.y, rows.codes == position)
        return rows, names

    def _check_options(self) -> None:
        validation.check_options(
            discrepancy=self.discrepancy,
            trade_off=self.trade_off,
            cv=self.cv,
            protocol=self.protocol,
            scaling=self.scaling,
            strict=self.strict,
        )
        if self.estimator is not None:
            validation.check_learner(
                self.estimator, classifier=not self._kind.numbers, via=self.via
            )

    def _learn_reference(self, y: np.ndarray, trusted: np.ndarray) -> None:
        """Learn what depends on the reference's labels alone, and draw the seed."""
        validation.check_reference_size(int(trusted.sum()), self.cv, self.reference)
        self._task = self._kind.learn(y, trusted, self._choices(), self.estimator)
        if isinstance(self._task, Classes):
            self.classes_ = self._task.labels
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))

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
        y = validation.check_targets(rows.y, rows.codes, names, numbers=self._kind.numbers)
        return replace(rows, y=y)

    def _leave_out_copies(self, rows: Rows, names: list[Any]) -> Rows:
        """Drop rows that repeat trusted ones, and count them; see `copies`."""
        self._set_copies(None, unsought=None)
        trusted = rows.codes == validation.check_reference(names, self.reference)
        how = self._choices()
        if not how.without_copies or trusted.all():
            return rows
        X = rows.X if self._wants_numbers else numbers_or_none(rows.X)
        if X is None:
            self._set_copies(None, unsought=NO_NUMBERS)
            return rows
        validation.check_reference_magnitude(X[trusted], self.reference, self._columns)
        rule = CopyRule.learn(X[trusted], how)
        if rule is None:
            self._set_copies(None, unsought=TWINS)
            return rows
        copied, same = rule.among(X, ~trusted)
        labels = None
        if rule.distinct:
            labels = relabelled(
                same,
                rows.y,
                rows.y[trusted],
                rows.codes,
                len(names),
                numbers=self._kind.numbers,
            )
        copied = keep_one(copied, rows.codes, len(names))
        counts = np.bincount(rows.codes[copied], minlength=len(names))
        if labels is not None and not rule.exact:  # equal rows are told where there are many
            others = np.bincount(rows.codes[~copied], minlength=len(names))
            many = more_than_chance(counts, others, rule.usual, int(trusted.sum()))
            labels[~many, :2] = 0.0
        self._set_copies(counts, by_chance=rule.usual, labels=labels)
        return rows.take(np.flatnonzero(~copied)) if copied.any() else rows

    def _set_copies(
        self,
        counts: np.ndarray | None,
        by_chance: float = 0.0,
        unsought: str | None = None,
        labels: np.ndarray | None = None,
    ) -> None:
        """Keep what the report says about copies of trusted rows; labels see `relabelled`."""
        self.copies_ = counts
        self._copies_labels = labels
        self._copies_by_chance = by_chance
        self._copies_unsought = unsought

    def _choices(self) -> Choices:
        """All that the user has no parameter for."""
        if self.protocol == "paper":
            return choices.PAPER
        return choices.STRICT if self.strict else choices.DEFAULT

    def _discrepancy_name(self) -> str:
        return "plug-in" if self.protocol == "paper" else self.discrepancy

    def _pool(self, rows: Rows, names: list[Any], known: FeatureMap | None = None) -> Pool:
        """Put rows into a pool; what is known of the map of features is not learnt again."""
        position = validation.check_reference(names, self.reference)
        targets = self._task.encode(rows.y, rows.codes, names, position)
        if self._wants_numbers:
            return self._pool_of_numbers(rows, targets, names, position, known)
        row_numbers: Any = np.arange(len(targets))[:, None]
        sources, reference = self._in_memory(rows, row_numbers, targets, names, position)
        how = {"via": self.via, **self._task.rules}
        family = EstimatorFamily(
            self.estimator, rows.X, rows.y, getattr(self, "n_jobs", None), self._seed, **how
        )
        pool = self._pool_of(sources, reference, position, names, None, None, family)
        filled, numbers = self._as_numbers(rows, names, position)
        if numbers is None:
            return pool
        linear = self._pool_of_numbers(replace(rows, X=numbers), targets, names, position, known)
        return replace(pool, linear=replace(linear, filled=filled))

    def _pool_of_numbers(
        self,
        rows: Rows,
        targets: np.ndarray,
        names: list[Any],
        position: int,
        known: FeatureMap | None,
    ) -> Pool:
        """Pool of the default learner."""
        features, numbers = self._map_features(rows, names, position, targets, known)
        both = self._in_memory(rows, numbers, targets, names, position)
        as_numbers = both if self._discrepancy_name() in LINEAR else None
        return self._pool_of(*both, position, names, features, as_numbers)

    def _as_numbers(
        self, rows: Rows, names: list[Any], position: int
    ) -> tuple[FilledRows | None, Any]:
        """Rows of an estimator of the user's own as the default learner can take them, if it can.

        A linear discrepancy needs numbers; otherwise what is missing is filled.
        """
        discrepancy = self._discrepancy_name()
        if discrepancy in LINEAR:
            matrix = validation.numeric_matrix(rows.X, discrepancy)
            validation.check_finite(matrix, rows.codes, names, self._columns)
            return None, matrix
        trusted = np.flatnonzero(rows.codes == position)
        filled = FilledRows.learn(rows.X, trusted) if discrepancy == "combined" else None
        return filled, None if filled is None else filled(rows.X)

    def _pool_of(
        self,
        sources: Engine,
        reference: ReferenceRows,
        position: int,
        names: list[Any],
        features: FeatureMap | None,
        as_numbers: tuple[Engine, ReferenceRows] | None,
        family: Family | None = None,
    ) -> Pool:
        """Put together what fitting needs; the family is by default that of our own learners."""
        how, n_classes = self._choices(), reference.n_classes
        kind, n_repeats = ReferenceFolds, how.n_repeats
        if family is not None:
            n_repeats = 1
            # The models of all pairs of folds are worth their while where they are cheap.
            kind = ReferenceFolds if self._discrepancy_name() == "local" else SingleFolds
        return Pool(
            sources=sources,
            reference=reference,
            position=position,
            names=names,
            features=features,
            numbers=as_numbers,
            seed=self._seed,
            choices=how,
            discrepancy=self._discrepancy_name(),
            family=family or self._task.family(how),
            folds=kind.draw(
                reference.y if n_classes else None,
                len(reference.y),
                self.cv if self._wants_numbers else min(self.cv, how.own_folds),
                n_repeats,
                self._seed,
            ),
            scale=1.0 if n_classes else spread(reference.y, how.far_off),
        )

    def _map_features(
        self,
        rows: Rows,
        names: list[Any],
        position: int,
        targets: np.ndarray,
        known: FeatureMap | None,
    ) -> tuple[FeatureMap, Any]:
        """Learn the map of the features, unless it is known, and apply it to all rows."""
        how, discrepancy, matrix = self._choices(), self._discrepancy_name(), rows.X
        if discrepancy in LINEAR:
            counts = np.bincount(rows.codes, minlength=len(names))
            validation.check_sparse_pairs(
                matrix,
                counts,
                names,
                position,
                discrepancy=None if self.protocol == "paper" else discrepancy,
                most=MOST_ROWS,
            )
        if how.as_given:
            validation.check_magnitude(matrix, rows.codes, names, self._columns)
            features = FeatureMap.as_given(matrix)
        elif known is not None:
            features = known
        else:
            trusted_rows = matrix[rows.codes == position]
            validation.check_reference_magnitude(trusted_rows, names[position], self._columns)
            own = targets[rows.codes == position]
            features = self._learn_map(trusted_rows, own, how)
        if discrepancy not in LINEAR:  # whose ridge depends on the number of features
            features = features.for_rows(matrix)
        return features, features(matrix)

    def _learn_map(self, X: Any, y: np.ndarray, how: Choices) -> FeatureMap:
        """Learn the map from the reference's rows and their encoded targets."""
        return learn_map(
            self.scaling,
            X,
            y,
            self._task,
            choices=how,
            seed=self._seed,
        )

    def _in_memory(
        self, rows: Rows, X: Any, targets: np.ndarray, names: list[Any], position: int
    ) -> tuple[MemorySources, ReferenceRows]:
        """Group rows by source, with what stands for them in ``X``."""
        data, _ = group_rows(
            X,
            targets,
            rows.codes,
            reference=position,
            n_classes=self._task.n_classes,
            sample_weight=rows.sample_weight,
        )
        others = [name for i, name in enumerate(names) if i != position]
        return MemorySources(data, others), ReferenceRows.of(data)

    @property
    def _wants_numbers(self) -> bool:
        return self.estimator is None

    @property
    def _columns(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _check_features(self, X: Any, *, reset: bool, finite: bool = False) -> Any:
        """Check the columns; for training, NaN and infinity are left to be named with a source."""
        if not reset:
            X = columns.without_column(X, getattr(self, "source_column_", None))
        if self._wants_numbers:
            columns.check_container(X)
            validation.check_real(X)
            try:
                checked = validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=(np.float64, np.float32),
                    ensure_all_finite=finite,
                )
                return validation.sound_rows(checked)
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


# -- a fit succeeds as a whole or changes nothing --------------------------------------------------


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """Give a model its attributes back if what follows fails or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def forget_fit(model: Any) -> None:
    """Remove fitted attributes: those of another learner must not outlive a new fit."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
