"""Families of learners.

A *family* is what the discrepancies and the choice of the trade-off need of a learner: fit many
row weightings of some rows, predict with all of them. Families for arbitrary estimators live
outside the core and offer the same calls, but for those of `JointFamily`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData

SAME = 1e-12  # weights that differ by less are the same, but for rounding


class Family(Protocol):
    """A learner with a grid of settings, fitted to many weightings at once."""

    settings: FloatArray

    def fit(self, X: FloatArray, y: Any, row_weights: FloatArray, settings: FloatArray) -> Any:
        """Fit one model for each column of ``row_weights`` (n_rows, n_models)."""

    def fit_folds(
        self,
        X: FloatArray,
        y: Any,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        fold: IntArray,
        n_folds: IntArray,
        setting: float,
    ) -> Any:
        """Fit, for runs of rows, one model without each fold; models in (run, fold) order.

        Run ``s`` has ``counts[s]`` rows from ``starts[s]`` on and ``n_folds[s]`` folds.
        """

    def fit_grid(self, problems: WeightedProblems, settings: FloatArray, start: Any = None) -> Any:
        """Fit every weighting under every setting; models in (weighting, setting) order.

        ``start`` is a batch of one model near the solutions, or of one for each setting, if they
        are known.
        """

    def predict(self, models: Any, X: FloatArray) -> FloatArray:
        """Return probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""

    def predict_each(self, models: Any, which: IntArray, X: FloatArray) -> FloatArray:
        """Predict row ``j`` by model ``which[j]``: (n_rows, n_classes) or (n_rows,)."""


class JointFamily(Family, Protocol):
    """A family whose fits are cheap enough to join every source with the reference."""

    def fit_beside(
        self,
        shared: tuple[FloatArray, Any],
        shared_weights: FloatArray,
        alone: Any,
        X: FloatArray,
        y: Any,
        row_weights: FloatArray,
        starts: IntArray,
        counts: IntArray,
        setting: float,
    ) -> Any:
        """Fit each run of rows together with the shared rows, under each weighting of the latter.

        ``shared_weights`` is (n_shared_rows, n_models), ``row_weights`` (n_rows,) and ``alone`` the
        models of the shared rows alone; models in (run, weighting) order.
        """


@dataclass(frozen=True)
class WeightedProblems:
    """Many weightings of one pool of sources.

    Attributes
    ----------
    data : SourceData
    weights : array of shape (n_problems, n_sources)
        Source weights ``alpha``.
    totals : array of shape (n_problems,)
        What the row weights sum to: the number of rows that ``C`` is to be understood against.
    held_out : bool array of shape (n_folds, n_reference_rows)
        Reference rows that a problem may leave out.
    fold : int array of shape (n_problems,)
        Row of ``held_out``, or -1 for none.
    """

    data: SourceData
    weights: FloatArray
    totals: FloatArray
    held_out: np.ndarray[Any, np.dtype[np.bool_]]
    fold: IntArray

    @property
    def reference_shares(self) -> FloatArray:
        """Shares of the reference's rows: all of them, then without each held-out set."""
        shares = self.data.row_shares[self.data.rows(self.data.reference)]
        return np.stack([shares, *(kept_shares(shares, mask) for mask in self.held_out)])

    def only(self, chosen: Any) -> WeightedProblems:
        """Return some of the problems, by mask or position."""
        return replace(
            self,
            weights=self.weights[chosen],
            totals=self.totals[chosen],
            fold=self.fold[chosen],
        )

    def find(self, others: WeightedProblems) -> IntArray:
        """Return where each of the other problems of the same pool is among these, or -1."""
        ours = np.column_stack([self.fold, self.weights, self.totals])
        theirs = np.column_stack([others.fold, others.weights, others.totals])
        same = np.all(np.isclose(theirs[:, None], ours, rtol=SAME, atol=SAME), axis=2)
        return np.asarray(np.where(np.any(same, axis=1), np.argmax(same, axis=1), -1))

    def row_weights(self, problem: int) -> FloatArray:
        """Weights of all rows in one problem: ``total * alpha_i * share_j``."""
        data = self.data
        shares = data.row_shares
        if self.fold[problem] >= 0:
            shares = shares.copy()
            shares[data.rows(data.reference)] = kept_shares(
                shares[data.rows(data.reference)], self.held_out[self.fold[problem]]
            )
        per_source = self.totals[problem] * self.weights[problem]
        return np.asarray(np.repeat(per_source, data.row_counts) * shares)


def kept_shares(shares: FloatArray, held_out: np.ndarray[Any, np.dtype[np.bool_]]) -> FloatArray:
    """Shares of one source's rows after some are left out; they still sum to 1."""
    kept = np.where(held_out, 0.0, shares)
    return np.asarray(kept / kept.sum())


def join_rows(
    shared: tuple[FloatArray, Any],
    shared_weights: FloatArray,
    X: FloatArray,
    y: Any,
    row_weights: FloatArray,
) -> tuple[FloatArray, Any, FloatArray]:
    """Put rows below the shared ones; their weights are the same in every column."""
    own = np.broadcast_to(row_weights[:, None], (len(y), shared_weights.shape[1]))
    return (
        np.concatenate([shared[0], X]),
        np.concatenate([shared[1], y]),
        np.concatenate([shared_weights, own]),
    )
