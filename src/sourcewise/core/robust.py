r"""Resistant logistic regression (Pregibon 1982) for many problems side by side.

Column :math:`q` minimises

.. math:: \sum_j r_{jq}\, \rho(\ell(x_j^\top w, y_j)) + \frac{1}{2} \sum_f \kappa_{fq} w_f^2,
   \qquad \rho(\ell) = \ell \text{ if } \ell \le c, \quad 2 \sqrt{c \ell} - c \text{ otherwise},

with :math:`\ell` the logistic (two classes) or multinomial (more) log-loss. As :math:`\rho` is
concave, a weighted logistic problem with row weights :math:`\rho'(\ell)` lies above the objective
and touches it: its curvature is positive definite and makes safe steps although the objective is
not convex. The descent is a limited-memory quasi-Newton method on top of that curvature, with a
line search on the objective itself: unlike on a convex line, the slope alone would not do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.logistic import centre_outputs, inverse_with_ridge, n_outputs
from sourcewise.core.quasi_newton import inner

THRESHOLD = 1.345**2  # 95 % efficiency without outliers
MEMORY = 8
BLOCK = 65536  # scores held at a time
CURVATURE_ROWS = 20  # times the features: as many rows are plenty for a preconditioner
REFRESH = 10  # gradients between two curvatures of a column
ARMIJO = 1e-4


def pregibon_loss(losses: FloatArray, threshold: float = THRESHOLD) -> FloatArray:
    r""":math:`\rho(\ell)`: the loss itself up to the threshold, its root beyond."""
    return np.asarray(
        np.minimum(losses, threshold)
        + 2.0 * threshold * (1.0 / pregibon_slope(losses, threshold) - 1.0)
    )


def pregibon_slope(losses: FloatArray, threshold: float = THRESHOLD) -> FloatArray:
    r""":math:`\rho'(\ell) = \min(1, \sqrt{c / \ell})`: the weight of a row with this loss."""
    return np.asarray(np.sqrt(threshold / np.maximum(losses, threshold)))


@dataclass(frozen=True)
class RobustProblem:
    """Many weightings of the same rows.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        Its dtype is the working precision.
    y : int array of shape (n_rows,)
        Class codes.
    row_weights : array of shape (n_patterns, n_rows)
        The weightings there are.
    pattern : int array of shape (n_columns,)
        Which of them a column uses.
    ridge : array of shape (n_features, n_columns)
        ``kappa``.
    n_classes : int
    threshold : float
        ``c``; infinity for ordinary logistic regression.
    """

    X: FloatArray
    y: IntArray
    row_weights: FloatArray
    pattern: IntArray
    ridge: FloatArray
    n_classes: int
    threshold: float = THRESHOLD

    def evaluate(self, W: FloatArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Objectives and gradients at points of shape (n_features, n_columns, n_outputs)."""
        d, n_columns, k = W.shape
        flat = np.ascontiguousarray(W).reshape(d, -1)
        value = np.zeros(n_columns)
        gradient = np.zeros((d, n_columns * k), dtype=W.dtype)
        step = max(32, BLOCK // (n_columns * k))
        for low in range(0, len(self.X), step):
            rows = slice(low, low + step)
            scores = (self.X[rows] @ flat).reshape(-1, n_columns, k)
            losses, residual = self._losses(scores, self.y[rows])
            # Large losses are few, as a rule: it pays to look for them.
            large = np.nonzero(losses > self.threshold)
            if len(large[0]):
                residual[large] *= pregibon_slope(losses[large], self.threshold)[:, None]
                losses[large] = pregibon_loss(losses[large], self.threshold)
            weights = self._weights(rows, columns)
            if weights is None:
                value += losses.sum(axis=0, dtype=np.float64)
            else:
                value += np.einsum("jp,jp->p", weights, losses, dtype=np.float64)
                residual *= weights[:, :, None]
            gradient += self.X[rows].T @ residual.reshape(len(residual), -1)
        shrink = self.ridge[:, columns, None] * W
        return value + 0.5 * inner(shrink, W), gradient.reshape(W.shape) + shrink

    def curvature(self, W: FloatArray, column: int) -> FloatArray:
        """Inverse of the majorising curvature at one point, one matrix for each output."""
        gram = self._grams(W, int(self.pattern[column]))
        return np.stack([inverse_with_ridge(G, self.ridge[:, column]) for G in gram])

    def _grams(self, W: FloatArray, pattern: int) -> list[FloatArray]:
        """Curvature of the data term; columns that start together ask for the same one."""
        key = pattern, W.tobytes()
        if key in self._known:
            return self._known[key]
        taken, X = self._sample
        weights = self.row_weights[pattern]
        losses, residual = self._losses((X @ W)[:, None, :], self.y[taken])
        p = np.abs(residual[:, 0])
        mass = np.array(weights[taken])
        total = float(mass.sum())
        if total > 0:
            mass *= float(weights.sum()) / total
        if np.isfinite(self.threshold):
            mass *= pregibon_slope(losses[:, 0], self.threshold)
        rooted = np.sqrt(p * (1.0 - p) * mass[:, None])
        scaled = (X * root[:, None] for root in rooted.T)
        # A product of an array with its own transpose takes half the work.
        self._known.clear()
        self._known[key] = [A.T @ A for A in scaled]
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, bytes], list[FloatArray]]:
        """The curvature that was asked for last."""
        return {}

    @cached_property
    def _sample(self) -> tuple[IntArray, FloatArray]:
        """Rows that curvatures are computed from, evenly spaced within the classes."""
        wanted = CURVATURE_ROWS * self.X.shape[1]
        if len(self.X) <= wanted:
            return np.arange(len(self.X)), self.X
        taken = np.argsort(self.y, kind="stable")[:: len(self.X) // wanted]
        return taken, self.X[taken]

    def _weights(self, rows: slice, columns: IntArray) -> FloatArray | None:
        """Weights of some rows in some columns; None where all are 1."""
        weights = self.row_weights[:, rows]
        if (weights == 1.0).all():
            return None
        return np.asarray(weights[self.pattern[columns]].T)

    def _losses(self, scores: FloatArray, y: IntArray) -> tuple[FloatArray, FloatArray]:
        """Log-losses (n_rows, n_columns) and residuals ``p - indicator`` like the scores."""
        if self.n_classes > 2:
            scores = scores - scores.max(axis=2, keepdims=True)
            at_label = np.take_along_axis(scores, y[:, None, None], axis=2)
            p = np.exp(scores)
            total = p.sum(axis=2, keepdims=True)
            losses = (np.log(total) - at_label)[:, :, 0]
            p /= total
            p[np.arange(len(y)), :, y] -= 1.0
            return losses, p
        sign = (1.0 - 2.0 * y).astype(scores.dtype)[:, None]
        against = scores[:, :, 0] * sign
        e = np.exp(-np.abs(against))
        losses = np.log1p(e) + np.maximum(against, 0.0)
        # Probability of the other class, without cancellation on either side.
        residual = np.where(against >= 0.0, sign, sign * e) / (1.0 + e)
        return losses, residual[:, :, None]


def minimise_robust(
    problem: RobustProblem,
    start: FloatArray,
    *,
    tol: float = 1e-9,
    max_iter: int = 500,
    group: IntArray | None = None,
    first: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Descend to a local minimum from each column's start.

    Parameters
    ----------
    problem : RobustProblem
    start : array of shape (n_columns, n_outputs, n_features)
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    max_iter : int
        Gradients after which every column stops.
    group : int array of shape (n_columns,), optional
        Columns of one group share a curvature, that of the first of them; by default each has its
        own.
    first : pair of arrays, optional
        Objectives and gradients at the start, if known.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    objective : array of shape (n_columns,)
    """
    W = start.transpose(2, 0, 1).astype(problem.X.dtype)
    columns = np.arange(W.shape[1])
    group = columns if group is None else group
    solution, objective = W.copy(), np.empty(len(columns))
    inverses: dict[int, FloatArray] = {}

    def precondition(vectors: FloatArray, columns: IntArray) -> FloatArray:
        result = np.empty_like(vectors)
        for g in np.unique(group[columns]).tolist():
            members = group[columns] == g
            block = vectors[:, members].transpose(2, 0, 1)
            result[:, members] = (inverses[g] @ block).transpose(1, 2, 0)
        return centre_outputs(result)

    pairs: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    value, gradient = problem.evaluate(W, columns) if first is None else first
    for iteration in range(max_iter + 1):
        if iteration % REFRESH == 0:
            pairs = []
            _, heads = np.unique(group[columns], return_index=True)
            for k in heads:
                inverses[int(group[columns[k]])] = problem.curvature(W[:, k], int(columns[k]))
        direction = _direction(gradient, pairs, partial(precondition, columns=columns))
        slope = inner(gradient, direction)
        done = -0.5 * slope <= tol * np.abs(value)
        if iteration == max_iter:
            direction[:, ~done] = 0.0
            done[:] = True
        # The last step is known already; at its end the objective can only be lower.
        solution[:, columns[done]] = W[:, done] + direction[:, done]
        objective[columns[done]] = value[done]
        if done.all():
            break
        moved, value_there, gradient_there, stuck = _search(
            problem, W, direction, slope, value, columns
        )
        move, change = moved - W, gradient_there - gradient
        curved = inner(move, change)
        safe = curved > 1e-12 * np.sqrt(inner(move, move) * inner(change, change))
        rho = np.where(safe, 1.0 / np.where(safe, curved, 1.0), 0.0).astype(W.dtype)
        W, value, gradient = moved, value_there, gradient_there
        pairs = [*pairs[-(MEMORY - 1) :], (move, change, rho)]
        # A column that no step improves is at its minimum as far as rounding can tell.
        done |= stuck
        solution[:, columns[stuck]], objective[columns[stuck]] = W[:, stuck], value[stuck]
        if done.any():
            keep = ~done
            if not keep.any():
                break
            columns, W, value, gradient = columns[keep], W[:, keep], value[keep], gradient[:, keep]
            pairs = [(s[:, keep], v[:, keep], r[keep]) for s, v, r in pairs]
    return solution.transpose(1, 2, 0), objective


def descend_plainly(
    problem: RobustProblem, start: FloatArray, *, n_steps: int, learning_rate: float
) -> FloatArray:
    """Take a fixed number of gradient steps, each on the mean over the rows."""
    W = start.transpose(2, 0, 1).astype(problem.X.dtype)
    columns = np.arange(W.shape[1])
    totals = problem.row_weights.sum(axis=1)[problem.pattern]
    length = (learning_rate / totals).astype(W.dtype)[:, None]
    for _ in range(n_steps):
        W = W - length * problem.evaluate(W, columns)[1]
    return W.transpose(1, 2, 0)


def scores_start(n_columns: int, n_classes: int, n_features: int) -> FloatArray:
    """Zero coefficients of the right shape."""
    return np.zeros((n_columns, n_outputs(n_classes), n_features))


def _direction(
    gradient: FloatArray,
    pairs: list[tuple[FloatArray, FloatArray, FloatArray]],
    precondition: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Quasi-Newton direction; pairs without positive curvature are passed over (``rho = 0``)."""
    q = gradient.copy()
    taken = []
    for s, v, rho in reversed(pairs):
        a = (rho * inner(s, q)).astype(q.dtype)
        q -= a[None, :, None] * v
        taken.append(a)
    r = precondition(q)
    for (s, v, rho), a in zip(pairs, reversed(taken), strict=True):
        b = (rho * inner(v, r)).astype(q.dtype)
        r += (a - b)[None, :, None] * s
    return -r


def _search(
    problem: RobustProblem,
    W: FloatArray,
    direction: FloatArray,
    slope: FloatArray,
    value: FloatArray,
    columns: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray, np.ndarray]:
    """Halve each column's step until its objective has decreased enough."""
    moved = W + direction
    there, gradient = problem.evaluate(moved, columns)
    # Sums of that many rounded losses cannot tell smaller differences.
    noise = 8.0 * np.finfo(W.dtype).eps * np.abs(value)
    length = np.ones(len(columns))
    for _ in range(30):
        bad = np.flatnonzero(~(there <= value + ARMIJO * length * slope + noise))
        if len(bad) == 0:
            break
        length[bad] *= 0.5
        moved[:, bad] = W[:, bad] + length[bad].astype(W.dtype)[None, :, None] * direction[:, bad]
        there[bad], gradient[:, bad] = problem.evaluate(moved[:, bad], columns[bad])
    stuck = ~(there <= value + ARMIJO * length * slope + noise)
    if stuck.any():
        moved[:, stuck] = W[:, stuck]
        there[stuck], gradient[:, stuck] = problem.evaluate(W[:, stuck], columns[stuck])
    return moved, there, gradient, stuck
