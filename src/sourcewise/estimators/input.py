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
from sourcewise.core.data import ReferenceRows, SourceData
from sourcewise.core.engine import Engine
from sourcewise.estimators.pool import Options, Pool
from sourcewise.estimators.prepare import in_memory, leave_out_copies, prepare
from sourcewise.estimators.rows import Rows
from sourcewise.estimators.task import Classes, Task


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
    n_jobs: int | None = None
    # What a model from a file has must be of these types.
    n_features_in_: int
    reference_index_: int
    C_: float
    _kind: ClassVar[type[Task]] = Classes
    _task: Task

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
        rows = self._check_rows(X, y, names, codes, sample_weight)
        self._learn_reference(rows.y, rows.codes == position)
        return rows, names

    def _check_options(self) -> None:
        validation.check_options(self)
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

    def _choices(self) -> Choices:
        """All that the user has no parameter for."""
        if self.protocol == "paper":
            return choices.PAPER
        return choices.STRICT if self.strict else choices.DEFAULT

    def _options(self) -> Options:
        """Say what the parameters amount to, once the targets of the reference are known."""
        paper = self.protocol == "paper"
        return Options(
            reference=self.reference,
            task=self._task,
            seed=self._seed,
            choices=self._choices(),
            discrepancy="plug-in" if paper else self.discrepancy,
            cv=self.cv,
            scaling=self.scaling,
            trade_off=self.trade_off,
            estimator=self.estimator,
            via=self.via,
            n_jobs=self.n_jobs,
            columns=self._columns,
        )

    def _prepare(self, X: Any, y: Any, sources: Any, sample_weight: Any = None) -> Pool:
        """Make a pool of all that a user gives."""
        rows, names = self._validate(X, y, sources, sample_weight)
        if sources is None:
            validation.warn_without_sources(self.reference)
        rows, copies = leave_out_copies(rows, names, self._options())
        return prepare(rows, names, self._options(), self._in_memory, copies=copies)

    def _in_memory(self, data: SourceData, others: list[Any]) -> tuple[Engine, ReferenceRows]:
        """Decide where grouped rows are: here, unless a test puts them in pieces."""
        return in_memory(data, others)

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
