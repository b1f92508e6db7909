r"""Logistic regression for a whole grid of source weights, regularisations and left-out folds.

Column :math:`q` weighs source :math:`i` by :math:`a_{iq}` (zero for most sources in most columns)
and leaves out some reference rows. What makes the grid cheap:

- Gradients are gathered source by source (:mod:`sourcewise.core.source_gradients`).
- Curvature: :math:`H_q \approx \sum_i a_{iq} H_i + I / C`, with :math:`H_i` at a few pilot
  solutions (:mod:`sourcewise.core.source_curvature`). Columns of one regularisation whose weights
  are alike (folds of one trade-off) share one inverse, and start from the solution of one of them,
  where their first gradients cost no product of their own.
- Several classes take dozens of gradients. All but the last are of single precision, which is what
  their probabilities have anyway.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.grid_problem import GridGradients, GridProblem
from sourcewise.core.logistic import (
    MANY_FEATURES,
    centre_outputs,
    inverse_with_ridge,
    row_curvature,
)
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns
from sourcewise.core.source_curvature import row_hessians
from sourcewise.core.source_weights import rows_in_use, share_gaps
from sourcewise.core.wide_grid import solve_wide_grid

MAX_PILOTS = 3
PILOT_TOL = 1e-6
CHEAP_ROWS = (
    20  # times the features: with so few rows, exact curvature costs no more than inverting
)
HUGE = 500  # features of which no matrix for every source is kept, however many rows there are
PATIENCE = 5  # gradients before a column counts as slow
# Gradients between renewals: of slow columns of few rows, and of others, where one costs dozens of
# gradients. One output's curvature is exact, and Newton's own steps are best. For several it is
# only block-diagonal: the memory must have time to learn what it leaves out.
RENEW_ONE_OUTPUT = 4, 15
RENEW_SEVERAL = 20, 40
CURVATURE_ENTRIES = 16_000_000  # of the matrices that are asked of the sources at a time
ROUGH_TOL = 1e-7  # below, rounding to single precision may keep a column from stopping
ROUGH_ITER = 60  # gradients of single precision; double precision takes over from there
ALIKE = 0.5  # columns whose weights differ by less in all share one inverse


def solve_grid(
    problem: GridProblem,
    *,
    tol: float,
    start: FloatArray | None = None,
    max_iter: int = 300,
    on_stop: Callable[[int], None] | None = None,
) -> FloatArray:
    """Solve all columns.

    Parameters
    ----------
    problem : GridProblem
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    start : array of shape (n_starts, n_outputs, n_features), optional
        A model near all solutions, or one for each regularisation in ascending order.
    max_iter : int
    on_stop : callable, optional
        Told how many columns have just been solved.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    if is_wide(problem):
        leaders, leader_of, _ = _leaders(problem)
        return solve_wide_grid(
            problem, leaders, leader_of, tol=tol, start=start, max_iter=max_iter, on_stop=on_stop
        )
    if problem.reference.n_classes > 2 and problem.reference.X.dtype == np.float64:
        W = _solve_roughly_first(problem, tol, start, max_iter, on_stop)
    else:
        W, _ = _solve_by_leaders(problem, tol, start, max_iter, on_stop)
    return W.transpose(1, 2, 0)


def _solve_roughly_first(
    problem: GridProblem,
    tol: float,
    start: FloatArray | None,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> FloatArray:
    """Solve in single precision as far as that goes, then all columns in double from there."""
    near = None if start is None else start.astype(np.float32)
    rough = problem.as_type(np.float32)
    W, steps = _solve_by_leaders(rough, max(tol, ROUGH_TOL), near, ROUGH_ITER, None)
    gradients = GridGradients(problem)
    steps.stand_in(problem, gradients)
    everywhere = np.arange(len(problem.C))
    return _minimise(
        problem, gradients, steps, W.astype(np.float64), everywhere, tol, max_iter, on_stop=on_stop
    )


def _solve_by_leaders(
    problem: GridProblem,
    tol: float,
    start: FloatArray | None,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> tuple[FloatArray, Preconditioner]:
    """Solve the leaders, then the others from there; also returns the inverses in use at the end.

    Solutions have the shape (n_features, n_columns, n_outputs).
    """
    leaders, leader_of, alike = _leaders(problem)
    gradients = GridGradients(problem)
    if start is None:
        points, C = _pilot_points(problem, gradients, leaders)
        at = _nearest(C, problem.C)
        near = points[:, at[leaders]]
    else:
        few = _few(len(start))
        points = start[few].transpose(2, 0, 1)
        at = _nearest(np.unique(problem.C)[few], problem.C)
        near = problem.start_from(start)[:, leaders]
    followers = np.setdiff1d(np.arange(len(problem.C)), leaders)
    steps = Preconditioner(problem, gradients)
    # All curvature is asked for at once: it costs the sources a pass over their rows.
    own = np.concatenate([leaders, followers[~alike[followers]]])
    steps.prepare(own, points, at[own])
    solved = _minimise(problem, gradients, steps, near, leaders, tol, max_iter, None, on_stop)
    W = solved[:, leader_of]
    if len(followers):
        near = W[:, followers]
        steps.share(followers[alike[followers]], leaders[leader_of[followers[alike[followers]]]])
        first = gradients.of_followers(solved, leader_of[followers], followers)
        W[:, followers] = _minimise(
            problem, gradients, steps, near, followers, tol, max_iter, first, on_stop
        )
    return W, steps


def is_wide(problem: GridProblem) -> bool:
    """Whether matrices of the size of the features are what costs, in time or in memory."""
    n_trusted, d = problem.reference.X.shape
    n = n_trusted + int(problem.sources.row_counts.sum())
    return bool(d > MANY_FEATURES and (n <= CHEAP_ROWS * d or d > HUGE))


def _minimise(
    problem: GridProblem,
    gradients: GridGradients,
    steps: Preconditioner,
    start: FloatArray,
    chosen: IntArray,
    tol: float,
    max_iter: int,
    first: Gradient | None = None,
    on_stop: Callable[[int], None] | None = None,
) -> FloatArray:
    """Minimise the chosen columns; ``first`` is the data term's gradient at the start."""
    ridge = problem.ridge
    known = [] if first is None else [first]

    def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
        data_term = known.pop() if known else gradients(W, chosen[columns])
        shrink = ridge[:, chosen[columns], None] * W
        return Gradient(data_term.value + shrink, data_term.floor + 0.5 * inner(shrink, W))

    solution, _ = minimise_columns(
        start,
        evaluate,
        lambda vectors, columns: steps(vectors, chosen[columns]),
        tol=tol,
        max_iter=max_iter,
        refresh=lambda W, columns: steps.renew(W, chosen[columns]),
        refresh_every=1,
        on_stop=on_stop,
    )
    return solution


def _leaders(problem: GridProblem) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Columns that others start from: those of the first fold; the others' nearest by weights.

    Returns the leaders, for every column the position of its leader among them, and whether the
    two are alike enough to share an inverse.
    """
    leaders = np.flatnonzero(problem.fold == problem.fold.min())
    leader_of = np.empty(len(problem.C), dtype=np.intp)
    gaps = np.zeros(len(problem.C))
    # Regularisations of one weighting have the same weights: one of them stands for all.
    weighting = problem.weighting
    ones, first = np.unique(weighting, return_index=True)
    leading = np.unique(weighting[leaders])
    distance = share_gaps(
        problem.weights.in_columns(first), problem.reference_weights[first], leading, ones
    )
    for C in np.unique(problem.C):
        theirs = np.flatnonzero(problem.C[leaders] == C)
        candidates = np.searchsorted(leading, weighting[leaders[theirs]])
        mine = np.flatnonzero(problem.C == C)
        gap = distance[candidates][:, weighting[mine]]
        leader_of[mine] = theirs[np.argmin(gap, axis=0)]
        gaps[mine] = gap.min(axis=0)
    leader_of[leaders] = np.arange(len(leaders))
    return leaders, leader_of, gaps < ALIKE


def _pilot_points(
    problem: GridProblem, gradients: GridGradients, leaders: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Solve a few pilots; returns points (n_features, n_pilots, n_outputs) and their C.

    The pilots weigh sources as the leader with most rows does, at a few of the regularisations.
    They start from zero, with the curvature there.
    """
    settings = np.unique(problem.C)
    few = settings[_few(len(settings))]
    weighting = problem.weighting
    rows = rows_in_use(problem.weights.in_columns(leaders), problem.sources.row_counts)
    broad = weighting[leaders[np.argmax(rows)]]
    same = leaders[weighting[leaders] == broad]
    pilots = np.array([same[np.argmin(np.abs(np.log(problem.C[same] / C)))] for C in few])
    W = np.zeros(
        (problem.reference.X.shape[1], len(pilots), gradients.outputs),
        dtype=problem.reference.X.dtype,
    )
    steps = Preconditioner(problem, gradients)
    steps.prepare(pilots, W[:, :1], np.zeros(len(pilots), dtype=np.intp))
    found = _minimise(problem, gradients, steps, W, pilots, PILOT_TOL, 50)
    return found, problem.C[pilots]


def _few(n_settings: int) -> IntArray:
    """Positions of a few regularisations, the outermost among them."""
    return np.unique(np.linspace(0, n_settings - 1, MAX_PILOTS).round().astype(np.intp))


def _nearest(pilots: FloatArray, C: FloatArray) -> IntArray:
    """Pilot whose regularisation is nearest to each of some."""
    return np.asarray(np.abs(np.log(pilots[None, :] / C[:, None])).argmin(axis=1))


class Preconditioner:
    """Inverse Hessians: shared by columns of like weights, or a column's own."""

    def __init__(self, problem: GridProblem, gradients: GridGradients):
        self.group = np.full(len(problem.C), -1, dtype=np.intp)
        self.inverses: list[FloatArray] = []
        self.slots: dict[int, int] = {}
        self.stand_in(problem, gradients)

    def stand_in(self, problem: GridProblem, gradients: GridGradients) -> None:
        """Go on with the same problem in another precision."""
        self.problem, self.sums = problem, gradients.sums
        self.ridge = problem.ridge
        self.calls = 0

    def prepare(self, columns: IntArray, points: FloatArray, at: IntArray) -> None:
        """Give each column an inverse, from the curvature at one of a few points.

        Columns that differ in their regularisation only share the curvature.
        """
        keys = np.column_stack([self.problem.weighting[columns], at])
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        which = which.ravel()
        of_reference = self._reference_curvature(points)
        width = max(1, CURVATURE_ENTRIES // len(points) ** 2)
        for low in range(0, len(first), width):
            some = first[low : low + width]
            asked = columns[some]
            mean, by_output = self.sums.curvature(points, asked, at[some])
            share = self.problem.reference_weights[asked]
            mean = mean + share[:, None, None].astype(np.float32) * of_reference[0][at[some]]
            by_output = by_output + share[:, None] * of_reference[1][at[some]]
            typical = np.maximum(by_output.mean(axis=1), np.finfo(np.float64).tiny)
            factors = (by_output / typical[:, None]).astype(np.float32)
            for k in range(len(some)):
                curvature = factors[k, :, None, None] * mean[k]
                for q in columns[which == low + k]:
                    self._own(q, curvature)
        self.calls = 0

    def _reference_curvature(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Curvature of the reference's mean loss, as the sources tell theirs."""
        reference = self.problem.reference
        X = reference.X.astype(np.float32, copy=False)
        mean, by_output = [], []
        for point in points.astype(np.float32).transpose(1, 0, 2):
            V = row_curvature(X @ point) * reference.shares[:, None].astype(np.float32)
            mean.append(X.T @ (X * V.mean(axis=1)[:, None]))
            by_output.append(V.sum(axis=0))
        return np.stack(mean), np.stack(by_output)

    def share(self, columns: IntArray, others: IntArray) -> None:
        """Let columns use the inverses of others."""
        self.group[columns] = self.group[others]
        self.calls = 0

    def _own(self, column: int, curvature: FloatArray) -> None:
        """Give a column an inverse of its own, in the place of an earlier one if it had one."""
        ridge = self.ridge[:, column]
        inverse = np.stack([inverse_with_ridge(H, ridge) for H in curvature])
        slot = self.slots.get(column)
        if slot is None or (self.group == slot).sum() > 1:
            slot = self.slots[column] = len(self.inverses)
            self.inverses.append(inverse)
        else:
            self.inverses[slot] = inverse
        self.group[column] = slot

    def _cheap(self, columns: IntArray) -> NDArray[np.bool_]:
        problem = self.problem
        rows = rows_in_use(problem.weights.in_columns(columns), problem.sources.row_counts)
        n_trusted, d = problem.reference.X.shape
        return np.asarray(rows + n_trusted <= CHEAP_ROWS * d)

    def __call__(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the columns' inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        result = np.empty_like(vectors)
        group = self.group[columns]
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order])) + 1
        for members in np.split(order, bounds):
            block = vectors[:, members].transpose(2, 0, 1)
            result[:, members] = (self.inverses[group[members[0]]] @ block).transpose(1, 2, 0)
        return centre_outputs(result)

    def renew(self, W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        """Give running columns the exact curvature at their own points; returns which ones got it.

        For columns of many rows that costs dozens of gradients: they wait longer.
        """
        self.calls += 1
        chosen = np.zeros(len(columns), dtype=bool)
        cheap, dear = RENEW_ONE_OUTPUT if W.shape[2] == 1 else RENEW_SEVERAL
        if self.calls > PATIENCE and self.calls % cheap == 0:
            chosen = self._cheap(columns)
        if self.calls % dear == 0:
            chosen[:] = True
        self._renew(W[:, chosen], columns[chosen])
        return chosen

    def _renew(self, W: FloatArray, columns: IntArray) -> None:
        """Give every column the exact curvature at its own point.

        A mean over columns would not do: where few rows can be separated, it is far from each one's
        own, predicts too small a decrease, and stops a column early.
        """
        problem = self.problem
        d, _, k = W.shape
        width = max(1, CURVATURE_ENTRIES // (k * d * d))
        for low in range(0, len(columns), width):
            some = columns[low : low + width]
            points = W[:, low : low + width]
            for q, H, point in zip(
                some, self.sums.hessians(points, some), points.swapaxes(0, 1), strict=True
            ):
                own = row_hessians(problem.reference.X, problem.reference_row_weights(q), point)
                self._own(q, H + own)
