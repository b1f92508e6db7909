r"""The grid of :mod:`sourcewise.core.logistic_grid` where features are many.

What a fit costs is then matrices of the size features x features, and what it needs is to make few
of them. Regularisations are taken from the strongest to the weakest, every column from its own
solution under the one before. Columns of like weights share the inverse Hessian of one of them, at
the point where that one starts. The others' Hessians differ most in the reference rows, some of
which only one of the two has seen: with as many features as rows, that is more than the steps'
memory can learn, and so it is corrected for exactly (Woodbury),

.. math:: (H + X_T^\top D X_T)^{-1} = B - B X_T^\top (I + D X_T B X_T^\top)^{-1} D X_T B,
          \qquad B = H^{-1}.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.grid_problem import GridGradients, GridProblem
from sourcewise.core.logistic import centre_outputs, inverse_with_ridge, product, row_curvature
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns

RENEW = 15  # gradients after which inverses are made anew at the columns' own points


def solve_wide_grid(
    problem: GridProblem,
    leaders: IntArray,
    leader_of: IntArray,
    *,
    tol: float,
    start: FloatArray | None,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> FloatArray:
    """Solve all columns.

    Parameters
    ----------
    problem : GridProblem
    leaders : int array
        Columns that share their inverses with others.
    leader_of : int array of shape (n_columns,)
        Position of each column's leader among them.
    tol, start, max_iter, on_stop
        As for :func:`sourcewise.core.logistic_grid.solve_grid`.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    gradients = GridGradients(problem)
    steps = WideSteps(problem, gradients, leaders[leader_of])
    shape = problem.reference.X.shape[1], len(problem.C), gradients.outputs
    W = np.zeros(shape, dtype=problem.reference.X.dtype)
    if start is not None:
        W[:] = problem.start_from(start)
    weighting = problem.weighting
    latest = np.full(weighting.max() + 1, -1, dtype=np.intp)
    for C in np.unique(problem.C):
        columns = np.flatnonzero(problem.C == C)
        before = latest[weighting[columns]]
        W[:, columns[before >= 0]] = W[:, before[before >= 0]]
        steps.stand_at(columns, W[:, columns])
        W[:, columns] = _minimise(
            problem, gradients, steps, W[:, columns], columns, tol, max_iter, on_stop
        )
        latest[weighting[columns]] = columns
    return W.transpose(1, 2, 0)


def _minimise(
    problem: GridProblem,
    gradients: GridGradients,
    steps: WideSteps,
    start: FloatArray,
    chosen: IntArray,
    tol: float,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> FloatArray:
    ridge = problem.ridge

    def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
        data_term = gradients(W, chosen[columns])
        shrink = ridge[:, chosen[columns], None] * W
        return Gradient(data_term.value + shrink, data_term.floor + 0.5 * inner(shrink, W))

    def renew(W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        steps.stand_at(chosen[columns], W)
        return np.ones(len(columns), dtype=bool)

    solution, _ = minimise_columns(
        start,
        evaluate,
        lambda vectors, columns: steps(vectors, chosen[columns]),
        tol=tol,
        max_iter=max_iter,
        refresh=renew,
        refresh_every=RENEW,
        on_stop=on_stop,
    )
    return solution


class WideSteps:
    """Inverse Hessians at given points; the outputs of several classes share one.

    ``leader_of`` says for each column which one's inverse it may use.
    """

    def __init__(self, problem: GridProblem, gradients: GridGradients, leader_of: IntArray):
        self.problem, self.sums = problem, gradients.sums
        self.ridge = problem.ridge
        self.leader_of = leader_of
        self.inverses: dict[int, FloatArray] = {}  # B, by leader
        self.spreads: dict[int, FloatArray] = {}  # B X_T', by leader
        self.corrections: dict[int, FloatArray] = {}  # what stands between two of them, by column

    def stand_at(self, columns: IntArray, W: FloatArray) -> None:
        """Provide for columns at points of shape (n_features, n_columns, n_outputs).

        A leader that is not among them is represented by the first of its followers.
        """
        X_t = self.problem.reference.X
        for kept in (self.inverses, self.spreads, self.corrections):
            kept.clear()
        curvature = row_curvature(product(X_t, W)).mean(axis=2)
        for leader in np.unique(self.leader_of[columns]):
            theirs = np.flatnonzero(self.leader_of[columns] == leader)
            first = theirs[np.argmax(columns[theirs] == leader)]
            ours = self.problem.reference_row_weights(columns[first]) * curvature[:, first]
            inverse = self._inverse(columns[first], W[:, [first]], ours)
            self.inverses[int(leader)] = inverse
            if len(theirs) == 1 or len(X_t) > len(inverse):
                continue  # so many reference rows are alike whichever are left out
            spread = self.spreads[int(leader)] = inverse @ X_t.T
            overlap = X_t @ spread
            for k in theirs:
                change = self.problem.reference_row_weights(columns[k]) * curvature[:, k] - ours
                system = np.eye(len(change)) + change[:, None] * overlap
                small = np.linalg.solve(system, np.diag(change))
                self.corrections[int(columns[k])] = small.astype(inverse.dtype)

    def _inverse(self, column: int, point: FloatArray, own: FloatArray) -> FloatArray:
        """Inverse Hessian of one column at a point; ``own`` weighs the reference's rows."""
        mean, _ = self.sums.curvature(point, np.array([column]), np.zeros(1, dtype=np.intp))
        rooted = self.problem.reference.X.astype(np.float32)
        rooted *= np.sqrt(own, dtype=np.float32)[:, None]
        return inverse_with_ridge(mean[0] + rooted.T @ rooted, self.ridge[:, column])

    def __call__(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the columns' inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        result = np.empty_like(vectors)
        leaders = self.leader_of[columns]
        for leader in np.unique(leaders):
            theirs = np.flatnonzero(leaders == leader)
            some = np.ascontiguousarray(vectors[:, theirs])
            applied = product(self.inverses[int(leader)], some)
            spread = self.spreads.get(int(leader))
            if spread is not None:
                small = np.stack([self.corrections[int(q)] for q in columns[theirs]])
                inside = np.matmul(small, product(spread.T, some).transpose(1, 0, 2))
                applied -= product(spread, inside.transpose(1, 0, 2))
            result[:, theirs] = applied
        return centre_outputs(result)
