"""Families of learners.

A *family* is what the discrepancies and the choice of the trade-off need of a learner: fit many
row weightings of some rows, predict with all of them. Families for arbitrary estimators live
outside the core and offer the same calls, but for those of `JointFamily`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows, SourceData
from sourcewise.core.engine import Engine
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import GivenWeights, SourceWeights
from sourcewise.core.sparse_rows import stack_rows

SAME = 1e-12  # weights that differ by less are the same, but for rounding


@dataclass(frozen=True)
class SourceRuns:
    """Rows of some sources, one source after the other."""

    X: FloatArray  # (n_rows, n_features)
    y: Any  # (n_rows,)
    weights: FloatArray  # (n_rows,)
    counts: IntArray  # (n_sources,)

    @cached_property
    def starts(self) -> IntArray:
        """Where each source begins."""
        return np.concatenate([[0], np.cumsum(self.counts)[:-1]]).astype(np.intp)

    def rows(self, source: Any) -> slice:
        """Rows of one source."""
        return slice(self.starts[source], self.starts[source] + self.counts[source])

    def of(self, source: int) -> tuple[FloatArray, Any, FloatArray]:
        """Features, labels and weights of one source."""
        rows = self.rows(source)
        return self.X[rows], self.y[rows], self.weights[rows]


@dataclass(frozen=True)
class SharedRows:
    """Rows that every source is joined with, under several weightings."""

    X: FloatArray  # (n_rows, n_features)
    y: Any  # (n_rows,)
    weights: FloatArray  # (n_rows, n_models)
    models: Any  # a batch of models; of these rows alone, one for each weighting

    def join(self, runs: SourceRuns, source: int) -> tuple[FloatArray, Any, FloatArray]:
        """Put a source's rows below; their weights are the same in every column."""
        rows = runs.rows(source)
        own = np.broadcast_to(
            runs.weights[rows, None], (int(runs.counts[source]), self.weights.shape[1])
        )
        return (
            stack_rows([self.X, runs.X[rows]]),
            np.concatenate([self.y, runs.y[rows]]),
            np.concatenate([self.weights, own]),
        )


class Family(Protocol):
    """A learner with a grid of settings, fitted to many weightings at once."""

    @property
    def settings(self) -> FloatArray:
        """Values that are tried: of ``C`` for our own learners."""

    @property
    def linear(self) -> bool:
        """Whether models are arrays of coefficients, and cheap to fit.

        Then models can be averaged, every source can be joined with the reference
        (`JointFamily`), and sums over sources are all that training needs of them.
        """

    @property
    def names_only(self) -> bool:
        """Whether it is a classifier without probabilities."""

    def fit(self, X: FloatArray, y: Any, row_weights: FloatArray, settings: FloatArray) -> Any:
        """Fit one model for each column of ``row_weights`` (n_rows, n_models)."""

    def fit_folds(self, runs: SourceRuns, fold: IntArray, n_folds: IntArray, setting: float) -> Any:
        """Fit, for every source, one model without each fold; models in (source, fold) order.

        Source ``s`` has ``n_folds[s]`` folds; ``fold`` says which one a row is in.
        """

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        on_fit: Callable[[int], None] | None = None,
    ) -> Any:
        """Fit every weighting under every setting; models in (weighting, setting) order.

        ``on_fit`` is told how many models have just been fitted.
        """

    def predict(self, models: Any, X: FloatArray) -> FloatArray:
        """Return probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""

    def predict_each(self, models: Any, which: IntArray, X: FloatArray) -> FloatArray:
        """Predict row ``j`` by model ``which[j]``: (n_rows, n_classes) or (n_rows,)."""


class JointFamily(Family, Protocol):
    """A family whose fits are cheap enough to join every source with the reference."""

    def fit_beside(self, shared: SharedRows, runs: SourceRuns, setting: float) -> Any:
        """Fit each source together with the shared rows, under each weighting of the latter.

        Models in (source, weighting) order.
        """


class LinearFamily(JointFamily, Protocol):
    """A family whose models are arrays of coefficients, (n_models, n_outputs, n_features)."""

    def scores(self, models: FloatArray, X: FloatArray) -> FloatArray:
        """Products of rows and coefficients, (n_models, n_rows, n_outputs)."""

    def from_scores(self, scores: FloatArray) -> FloatArray:
        """Predictions, as `predict` returns them."""

    def walk_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        visit: Visit,
        on_fit: Callable[[int], None] | None = None,
    ) -> None:
        """Fit weightings under one setting after the other, the strongest first.

        Models are shown to the visitor, who may give weightings up.
        """

    def fit_pairs(
        self,
        problems: WeightedProblems,
        which: IntArray,
        settings: FloatArray,
        start: FloatArray | None,
    ) -> FloatArray:
        """Fit problem ``which[k]`` under ``settings[k]``, to the last digits, from ``start[k]``."""


# Told a setting, the problems that have just been solved under it and their models; returns for
# every problem whether to go on with it.
Visit = Callable[[float, IntArray, FloatArray], NDArray[np.bool_]]


def all_pairs(n_problems: int, settings: FloatArray) -> tuple[IntArray, FloatArray]:
    """Problem and setting of every pair, in (problem, setting) order."""
    return np.repeat(np.arange(n_problems), len(settings)), np.tile(settings, n_problems)


@dataclass(frozen=True)
class WeightedProblems:
    """Many weightings of one pool of sources."""

    sources: Engine  # the untrusted sources
    reference: ReferenceRows
    # Source weights ``alpha`` of the untrusted sources, a column for each problem.
    weights: SourceWeights
    reference_weights: FloatArray  # (n_problems,); ``alpha_T``
    # (n_problems,); what the row weights sum to: the number of rows that ``C`` is to be understood
    # against.
    totals: FloatArray
    # (n_folds, n_reference_rows); reference rows that a problem may leave out.
    held_out: np.ndarray[Any, np.dtype[np.bool_]]
    fold: IntArray  # (n_problems,); row of ``held_out``, or -1 for none

    def __len__(self) -> int:
        """Return the number of problems."""
        return len(self.totals)

    @property
    def reference_shares(self) -> FloatArray:
        """Shares of the reference's rows: all of them, then without each held-out set."""
        shares = self.reference.shares
        return np.stack([shares, *(kept_shares(shares, mask) for mask in self.held_out)])

    def only(self, chosen: Any) -> WeightedProblems:
        """Return some of the problems, by mask or position."""
        return replace(
            self,
            weights=self.weights.in_columns(chosen),
            reference_weights=self.reference_weights[chosen],
            totals=self.totals[chosen],
            fold=self.fold[chosen],
        )

    def in_row_space(self) -> tuple[WeightedProblems, RowSpace]:
        """Return the same problems in fewer coordinates, if that is possible, and the way back."""
        found = self.sources.in_row_space(self.reference.X)
        if found is None:
            return self, RowSpace(self.reference.X, None)
        sources, space = found
        return replace(
            self, sources=sources, reference=self.reference.with_features(space.X)
        ), space

    def find(self, others: WeightedProblems) -> IntArray:
        """Return where each of the other problems of the same pool is among these, or -1."""
        ours, theirs = self._table(), others._table()
        same = np.all(np.isclose(theirs[:, None], ours, rtol=SAME, atol=SAME), axis=2)
        return np.asarray(np.where(np.any(same, axis=1), np.argmax(same, axis=1), -1))

    def _table(self) -> FloatArray:
        return np.column_stack(
            [self.fold, self.weights.of(slice(None)).T, self.reference_weights, self.totals]
        )

    def row_weights(self, data: SourceData, problem: int) -> FloatArray:
        """Weights of all rows in one problem, ``total * alpha_i * share_j``, rows at hand."""
        shares = data.row_shares
        if self.fold[problem] >= 0:
            shares = shares.copy()
            shares[data.rows(data.reference)] = kept_shares(
                data.reference_shares, self.held_out[self.fold[problem]]
            )
        alpha = np.insert(
            self.weights.of(slice(None), np.array([problem]))[:, 0],
            data.reference,
            self.reference_weights[problem],
        )
        return np.asarray(np.repeat(self.totals[problem] * alpha, data.row_counts) * shares)


def given_problems(
    sources: Engine,
    data: SourceData,
    weights: FloatArray,
    totals: FloatArray,
    held_out: np.ndarray[Any, np.dtype[np.bool_]],
    fold: IntArray,
) -> WeightedProblems:
    """Weightings by a table of shape (n_problems, n_sources), the reference among the sources."""
    return WeightedProblems(
        sources,
        ReferenceRows.of(data),
        GivenWeights(np.delete(weights, data.reference, axis=1).T),
        weights[:, data.reference],
        totals,
        held_out,
        fold,
    )


def kept_shares(shares: FloatArray, held_out: np.ndarray[Any, np.dtype[np.bool_]]) -> FloatArray:
    """Shares of one source's rows after some are left out; they still sum to 1."""
    kept = np.where(held_out, 0.0, shares)
    return np.asarray(kept / kept.sum())
