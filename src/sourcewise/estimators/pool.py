"""A validated pool of sources, ready for the mathematics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.copies import Copies
from sourcewise.core.data import ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import OnAnswer
from sourcewise.core.discrepancy.methods import LINEAR, Survey
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.engine import Engine
from sourcewise.core.family import Family
from sourcewise.core.feature_map import FeatureMap
from sourcewise.core.losses import BoundedLoss, log_loss, spread, zero_one_loss
from sourcewise.core.mixture import HeldOutRows
from sourcewise.core.weights import counted_sizes
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.rows import FilledRows, Rows
from sourcewise.estimators.task import Task

N_PERMUTATIONS = 199


@dataclass(frozen=True)
class Options:
    """What an estimator's parameters amount to, once it has seen the reference's targets."""

    reference: Any
    task: Task
    seed: int
    choices: Choices  # all that there is no parameter for
    discrepancy: str = "combined"
    cv: int = 5
    scaling: str = "auto"
    trade_off: str | float = "cv"
    estimator: Any = None
    via: str = "weights"
    n_jobs: int | None = None
    columns: Any = None  # names of the features, for messages


@dataclass(frozen=True)
class Pool:
    """All that fitting needs to know."""

    sources: Engine  # the untrusted ones, as the learner's family sees them
    reference: ReferenceRows  # the trusted rows, likewise
    names: list[Any]  # of all sources, in order
    options: Options
    features: FeatureMap | None  # how the default learner's features come from the input
    family: Family
    folds: ReferenceFolds
    # The same rows as the default learner sees them, beside an estimator of the user's own. Its
    # folds begin with these.
    linear: Pool | None = None
    filled: FilledRows | None = None  # how its rows become numbers without gaps
    rows: Rows | None = None  # what it was made of, where they are in memory
    copies: Copies = Copies()  # of trusted rows

    @cached_property
    def position(self) -> int:
        """Position of the reference among all sources."""
        return self.names.index(self.options.reference)

    @property
    def choices(self) -> Choices:
        """All that there is no parameter for."""
        return self.options.choices

    @cached_property
    def scale(self) -> float:
        """Unit of the regression loss: standard deviation of the reference's targets."""
        return 1.0 if self.n_classes else spread(self.reference.y, self.choices.far_off)

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
    def scaling(self) -> str | None:
        """How the default learner's features are scaled; None where they are left as they are."""
        if self.features is None or self.choices.as_given or not self.family.linear:
            return None
        return "standard" if self.features.standard else "keep"

    @property
    def names_array(self) -> np.ndarray:
        """Names as a plain array if they are of one kind; objects, if mixed or tuples."""
        if {type(name) for name in self.names} in ({str}, {int}, {float}, {bool}):
            return np.array(self.names)
        array = np.empty(len(self.names), dtype=object)
        array[:] = self.names
        return array

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
        return np.insert(self.untrusted_sizes, self.position, self.reference.size)

    @cached_property
    def untrusted_sizes(self) -> np.ndarray:
        """Effective rows of the untrusted sources, capped if so chosen."""
        return counted_sizes(self.sources.sizes, self.choices.size_cap, self.reference.size)

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

    def held_out_rows(
        self, scores: np.ndarray, y: np.ndarray, shares: np.ndarray, size: float
    ) -> HeldOutRows:
        """Put together what models say of rows that they have not seen."""
        how = self.choices.clip, self.choices.least_probability
        return HeldOutRows(scores, y, shares, size, self.n_classes, self.scale, *how)

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
        permutations are NaN. ``on_answer`` is told how many sources have just answered. The linear
        discrepancies are the default learner's, whatever learner is trained.
        """
        linear = None
        if self.linear is not None:
            linear = self.linear.survey(
                setting, with_folds=with_folds, permute=permute, on_answer=on_answer
            )
        if linear is not None and self.options.discrepancy in LINEAR:
            return linear
        return Survey(
            sources=self.sources,
            reference=self.reference,
            name=self.options.reference,
            folds=self.folds,
            family=self.family,
            setting=setting,
            loss=self.bounded_loss,
            seed=self.options.seed,
            choices=self.choices,
            numbers=(self.sources, self.reference) if self.options.discrepancy in LINEAR else None,
            n_permutations=N_PERMUTATIONS if permute else 0,
            with_folds=with_folds,
            on_answer=on_answer,
            linear=linear,
        )


@dataclass(frozen=True)
class Training:
    """What `add_source` and `at_trade_off` need of an earlier fit, beside what was measured."""

    rows: Rows | Pool  # a pool where they are elsewhere
    findings: Any  # about every untrusted source; None where there are none
    setting: float  # regularisation of local models
    # The default learner's map of features; None if it has to be learnt again.
    features: FeatureMap | None = None

    @property
    def pool(self) -> Pool | None:
        """The pool of these rows, if it has been kept."""
        return self.rows if isinstance(self.rows, Pool) else vars(self).get("_pool")

    def keep(self, pool: Pool) -> Pool:
        """Keep the pool of these rows as long as this lives: no file and no copy has it."""
        vars(self)["_pool"] = pool
        return pool

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the pool, which would double what the rows take."""
        return {name: part for name, part in vars(self).items() if name != "_pool"}

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are not in memory."""
        return isinstance(self.rows, Pool)
