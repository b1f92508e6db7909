"""Many weighted fits of one pool of sources, and the gradients of their losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows
from sourcewise.core.engine import Engine
from sourcewise.core.family import WeightedProblems
from sourcewise.core.loss import label_sums, loss_of
from sourcewise.core.quasi_newton import Gradient
from sourcewise.core.source_gradients import BLOCK, outputs_first
from sourcewise.core.source_weights import SourceWeights


@dataclass(frozen=True)
class GridProblem:
    """A grid of weightings and regularisations."""

    sources: Engine  # the untrusted sources
    reference: ReferenceRows
    # ``a``: source weight times total weight, of the untrusted sources in every column.
    weights: SourceWeights
    reference_weights: FloatArray  # (n_columns,); the same of the reference
    C: FloatArray  # (n_columns,)
    fold: IntArray  # (n_columns,); row of ``reference_shares`` that a column uses
    # (n_folds, n_reference_rows); row shares of the reference, zero where left out.
    reference_shares: FloatArray
    penalty: FloatArray  # (n_features,)

    @classmethod
    def of(
        cls, problems: WeightedProblems, penalty: FloatArray, which: IntArray, C: FloatArray
    ) -> GridProblem:
        """Pair weighted problems with regularisations, a column each."""
        totals = problems.totals[which]
        return cls(
            sources=problems.sources,
            reference=problems.reference,
            weights=problems.weights.in_columns(which).scaled(totals),
            reference_weights=problems.reference_weights[which] * totals,
            C=C,
            fold=problems.fold[which] + 1,
            reference_shares=problems.reference_shares,
            penalty=penalty,
        )

    @cached_property
    def weighting(self) -> IntArray:
        """Numbers that are the same for columns that differ in their regularisation only."""
        keys = np.column_stack([self.fold, self.reference_weights, self.weights.keys()])
        return np.unique(keys, axis=0, return_inverse=True)[1].ravel()


class GridGradients:
    """Gradients of a grid's data term: the reference's rows here, the others where they are."""

    def __init__(self, problem: GridProblem):
        self.problem = problem
        self.sums = problem.sources.weighted(problem.weights)
        reference = problem.reference
        self.loss = loss_of(reference.n_classes)
        self.outputs = self.loss.outputs
        self.labels = self.loss.labels(reference.y, reference.X.dtype)

    def __call__(self, W: FloatArray, columns: IntArray) -> Gradient:
        """Gradients of some columns at points of shape (n_features, n_columns, n_outputs)."""
        return self._finish(W, self._of_reference(W, columns) + self.sums.gradients(W, columns))

    def of_followers(self, W: FloatArray, leader_of: IntArray, columns: IntArray) -> Gradient:
        """Gradients of columns that stand at the points ``W[:, leader_of]``."""
        points = W[:, leader_of]
        own = self._of_reference(points, columns)
        return self._finish(points, own + self.sums.gradients(W, columns, leader_of))

    def _finish(self, W: FloatArray, sums: FloatArray) -> Gradient:
        d = len(W)
        gradient = np.ascontiguousarray(sums[:d].swapaxes(1, 2))
        of_labels = sums[d].sum(axis=0, dtype=np.float64)
        return Gradient(gradient, self.loss.floor(of_labels, W, gradient))

    def _of_reference(self, W: FloatArray, columns: IntArray) -> FloatArray:
        """Weighted sums over the reference's rows, each column with the shares of its fold."""
        problem = self.problem
        weights = problem.reference_weights[columns]
        flat = outputs_first(W)
        sums = np.zeros((len(W) + 1, flat.shape[1]), dtype=W.dtype)
        step = max(32, BLOCK // flat.shape[1])
        for low in range(0, len(self.labels), step):
            part = slice(low, low + step)
            X, labels = problem.reference.X[part], self.labels[part]
            P = self.loss.residuals(X @ flat, labels)
            by_column = problem.reference_shares[:, part].T[:, problem.fold[columns]] * weights
            P.reshape(len(P), self.outputs, -1)[:] *= by_column[:, None, :].astype(P.dtype)
            sums[:-1] += X.T @ P
            sums[-1] += label_sums(labels, P)[0]
        return sums.reshape(len(sums), self.outputs, -1)
