r"""Inverse Hessians for a grid of linear models, without any matrix of the size of the features.

Of few features and outputs the Hessian is known in full. Of many, it is known in an orthonormal
basis :math:`V` of the directions in which the rows vary most, and is a multiple of the identity
elsewhere, a different one for each output:

.. math:: H \approx V A V^\top + \tau (I - V V^\top) + I / C .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows
from sourcewise.core.engine import Engine
from sourcewise.core.grid_problem import GridGradients, GridProblem
from sourcewise.core.logistic import centre_outputs, n_outputs, product
from sourcewise.core.source_curvature import Coordinates, spread_of
from sourcewise.core.source_weights import rows_in_use
from sourcewise.core.sparse_rows import SparseRows

FULL = 256  # features up to which the whole Hessian costs less than its approximation loses
RANK = 100  # directions of the basis
# Of sparse rows: words vary in thousands of directions about alike, and a product with the basis
# costs more than one with the rows.
RANK_SPARSE = 32
LARGEST = 600  # coordinates times outputs
# Times the coordinates and the root of the outputs: so many rows tell the curvature well enough, of
# one output, and of several, where it costs more.
ROWS_ONE_OUTPUT = 200
ROWS_SEVERAL = 60
CURVATURE_ENTRIES = 16_000_000  # of the matrices that are asked of the sources at a time
SHARE = 1e-6  # of the mean curvature, that rounding may have taken away


def leading_directions(sources: Engine, reference: ReferenceRows) -> FloatArray | None:
    """Orthonormal directions in which the rows vary most, (n_features - 1, n_directions).

    By two passes of subspace iteration, from random directions that are always the same. None where
    features and outputs are few.
    """
    d, outputs = reference.X.shape[1], n_outputs(reference.n_classes)
    if d <= FULL and d * outputs <= LARGEST:
        return None
    X = reference.X
    rank = RANK_SPARSE if isinstance(X, SparseRows) else RANK
    rank = max(1, min(rank, d - 1, LARGEST // outputs - 1))
    directions = np.random.default_rng(0).standard_normal((d - 1, rank)).astype(X.dtype)
    for _ in range(2):
        spread = spread_of(X, directions) + sources.spread(directions)
        directions = np.linalg.qr(spread)[0]
    return np.asarray(directions)


@dataclass(frozen=True)
class Inverse:
    """Inverse Hessian of one column."""

    # Cholesky factor of the Hessian in coordinates of the basis and the constant, all outputs.
    factor: FloatArray
    outside: FloatArray  # (n_outputs,); inverse outside the basis

    @classmethod
    def of(cls, matrix: FloatArray, outside: FloatArray, penalty: FloatArray, C: float) -> Inverse:
        """Invert a curvature and the penalty of each coordinate."""
        k = len(outside)
        H = matrix.astype(np.float64)
        mean = np.trace(H) / len(H)
        ridge = np.tile(penalty / C, k) + SHARE * mean
        H[np.diag_indices_from(H)] += ridge
        if k > 1:
            # The same step for all outputs changes nothing and is never asked for.
            blocks = H.reshape(k, len(penalty), k, len(penalty))
            each = np.arange(len(penalty))
            blocks[:, each, :, each] += mean / k
        return cls(_factor(H, SHARE * mean), 1.0 / (outside + 1.0 / C))

    def solve(self, vectors: FloatArray) -> FloatArray:
        """Apply it to vectors of shape (n_coordinates, n_columns, n_outputs)."""
        size, n_columns, k = vectors.shape
        stacked = vectors.transpose(2, 0, 1).reshape(k * size, n_columns)
        solved = cho_solve((self.factor, True), stacked.astype(np.float64), check_finite=False)
        return np.asarray(solved.reshape(k, size, n_columns).transpose(1, 2, 0), vectors.dtype)


def _factor(H: FloatArray, more: float) -> FloatArray:
    """Cholesky factor of a curvature, with a larger ridge where rounding left it indefinite.

    It is added up in single precision, where a column far larger than the others leaves nothing of
    their digits. Steps get shorter by a larger ridge; where they lead does not change.
    """
    while True:
        try:
            return np.asarray(cho_factor(H, lower=True, check_finite=False)[0])
        except np.linalg.LinAlgError:
            more *= 10.0
            if not np.isfinite(more) or more > np.trace(H):
                raise
            H[np.diag_indices_from(H)] += more


class GridSteps:
    """Approximate inverse Hessians of a grid's columns; like columns share one.

    Parameters
    ----------
    problem : GridProblem
    gradients : GridGradients
    basis : array of shape (n_features - 1, n_directions), or None
    """

    def __init__(self, problem: GridProblem, gradients: GridGradients, basis: FloatArray | None):
        self.problem, self.sums, self.basis = problem, gradients.sums, basis
        self.loss = gradients.loss
        self.penalty = problem.penalty
        if basis is not None:
            self.penalty = np.append(np.ones(basis.shape[1]), problem.penalty[-1])
            # Of sparse rows this is most of what a step costs, and single precision does.
            sparse = isinstance(problem.reference.X, SparseRows)
            self.applied = basis.astype(np.float32) if sparse else basis
        self.rows = Coordinates.of(problem.reference.X, basis)
        self.n_rows = int(problem.sources.row_counts.sum())
        self.n_outside = problem.reference.X.shape[1] - len(self.penalty)
        self.inverses: list[Inverse] = []
        self.group = np.full(len(problem.C), -1, dtype=np.intp)

    def stand_at(
        self, columns: IntArray, points: FloatArray, at: IntArray, rows: int | None = None
    ) -> None:
        """Give each column the curvature at one of some points, (n_features, n_points, n_outputs).

        What columns had before that nobody uses any more is forgotten.
        """
        problem = self.problem
        size, k = len(self.penalty), points.shape[2]
        rows = rows or (ROWS_ONE_OUTPUT if k == 1 else ROWS_SEVERAL)
        every = max(1, int(self.n_rows / (rows * size * k**0.5)))
        width = max(1, CURVATURE_ENTRIES // (size * k) ** 2)
        own = self._of_reference(columns, points, at)
        crowding = self._crowding(columns)
        for low in range(0, len(columns), width):
            some, where = columns[low : low + width], at[low : low + width]
            found = self.sums.curvature(points, some, where, self.basis, every)
            factors = crowding[low : low + width]
            for q, a, factor, *theirs in zip(some, where, factors, *found, strict=True):
                share = problem.reference_weights[q]
                ours = own[int(a), int(problem.fold[q])]
                matrix, outside = (x + share * y for x, y in zip(theirs, ours, strict=True))
                self.group[q] = len(self.inverses)
                outside = outside * factor
                self.inverses.append(Inverse.of(matrix, outside, self.penalty, float(problem.C[q])))
        used, self.group = np.unique(self.group, return_inverse=True)
        self.inverses = [self.inverses[g] for g in used[used >= 0]]
        self.group -= int(used[0] < 0)

    def _crowding(self, columns: IntArray) -> FloatArray:
        """How many directions outside the basis there are for each row that counts, if several.

        Gradients lie in the span of the rows that count in a column: where features are more, fewer
        directions than there are share these rows' curvature.
        """
        problem = self.problem
        weights = problem.weights.in_columns(columns)
        rows = rows_in_use(weights, problem.sources.row_counts) + len(problem.reference.y)
        return np.asarray(np.maximum(1.0, self.n_outside / rows))

    def _of_reference(
        self, columns: IntArray, points: FloatArray, at: IntArray
    ) -> dict[tuple[int, int], tuple[FloatArray, FloatArray]]:
        """Curvature of the reference's mean loss, by point and fold."""
        problem, reference = self.problem, self.problem.reference
        found = {}
        for a in np.unique(at):
            p = self.loss.parts(reference.X @ points[:, a])
            for f in np.unique(problem.fold[columns[at == a]]):
                found[int(a), int(f)] = self.rows.curvature(p, problem.reference_shares[f])
        return found

    def share(self, columns: IntArray, others: IntArray) -> None:
        """Let columns use what others have."""
        self.group[columns] = self.group[others]

    def __call__(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the columns' inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        if self.basis is None:
            return centre_outputs(self._solve(vectors, columns)[0])
        basis = self.applied
        projected = product(basis.T, vectors[:-1].astype(basis.dtype))
        inside = np.concatenate([projected, vectors[-1:]], dtype=vectors.dtype)
        solved, outside = self._solve(inside, columns)
        result = np.empty_like(vectors)
        np.multiply(vectors[:-1], outside, out=result[:-1])
        back = solved[:-1] - inside[:-1] * outside
        result[:-1] += product(basis, back.astype(basis.dtype))
        result[-1] = solved[-1]
        return centre_outputs(result)

    def _solve(self, inside: FloatArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Solve in coordinates of the basis; also returns the columns' inverses outside."""
        solved = np.empty_like(inside)
        outside = np.empty(inside.shape[1:], dtype=inside.dtype)
        group = self.group[columns]
        for g in np.unique(group):
            mine = np.flatnonzero(group == g)
            solved[:, mine] = self.inverses[g].solve(inside[:, mine])
            outside[mine] = self.inverses[g].outside
        return solved, outside
