r"""Logistic regression for a whole grid of source weights, regularisations and left-out folds.

Column :math:`q` weighs source :math:`i` by :math:`a_{iq}` (zero for most sources in most columns)
and leaves out some reference rows. What makes the grid cheap:

- Gradients are gathered source by source (:mod:`sourcewise.core.source_gradients`).
- Curvature: :math:`H_q \approx \sum_i a_{iq} H_i + I / C`, with one :math:`H_i` per source and
  pilot solution. Columns of one regularisation whose weights are alike (folds of one trade-off)
  share one inverse, and start from the solution of one of them, where their first gradients cost
  no product of their own.
- Several classes take dozens of gradients. All but the last are of single precision, which is what
  their probabilities have anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.curvature import Pilots, SourceCurvature
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import (
    MANY_FEATURES,
    centre_outputs,
    inverse_with_ridge,
    row_curvature,
)
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns
from sourcewise.core.source_gradients import GridProblem, SourceGradients
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
PREPARED = 64  # inverses computed at a time
ROUGH_TOL = 1e-7  # below, rounding to single precision may keep a column from stopping
ROUGH_ITER = 60  # gradients of single precision; double precision takes over from there
ALIKE = 0.5  # columns whose weights differ by less in all share one inverse


def solve_grid(
    problem: GridProblem,
    *,
    tol: float,
    start: FloatArray | None = None,
    pilots: Pilots | None = None,
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
    pilots : Pilots, optional
        Instead: points to choose from, and all that is known of them.
    max_iter : int
    on_stop : callable, optional
        Told how many columns have just been solved.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    if pilots is None and is_wide(problem.data):
        leaders, leader_of, _ = _leaders(problem)
        return solve_wide_grid(
            problem, leaders, leader_of, tol=tol, start=start, max_iter=max_iter, on_stop=on_stop
        )
    if pilots is None and problem.data.n_classes > 2 and problem.data.X.dtype == np.float64:
        W = _solve_roughly_first(problem, tol, start, max_iter, on_stop)
    else:
        W, _ = _solve_by_leaders(problem, tol, start, pilots, max_iter, on_stop)
    return W.transpose(1, 2, 0)


def _solve_roughly_first(
    problem: GridProblem,
    tol: float,
    start: FloatArray | None,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> FloatArray:
    """Solve in single precision as far as that goes, then all columns in double from there."""
    narrow = problem.data.with_features(problem.data.X.astype(np.float32))
    rough = replace(problem, data=narrow)
    near = None if start is None else start.astype(np.float32)
    W, steps = _solve_by_leaders(rough, max(tol, ROUGH_TOL), near, None, ROUGH_ITER, None)
    everywhere = np.arange(len(problem.C))
    steps.calls = 0
    return _minimise(
        problem, SourceGradients(problem), steps, W.astype(np.float64), everywhere, tol, max_iter,
        on_stop=on_stop,
    )  # fmt: skip


def _solve_by_leaders(
    problem: GridProblem,
    tol: float,
    start: FloatArray | None,
    pilots: Pilots | None,
    max_iter: int,
    on_stop: Callable[[int], None] | None,
) -> tuple[FloatArray, Preconditioner]:
    """Solve the leaders, then the others from there; also returns the inverses in use at the end.

    Solutions have the shape (n_features, n_columns, n_outputs).
    """
    leaders, leader_of, alike = _leaders(problem)
    gradients = SourceGradients(problem)
    first = None
    if start is not None:
        few = _few(len(start))
        points = start[few].transpose(2, 0, 1)
        curvature = SourceCurvature.at(problem.data, points, np.unique(problem.C)[few])
        at = curvature.nearest(problem.C[leaders])
        near = problem.start_from(start)[:, leaders]
    elif pilots is not None:
        which = pilots.nearest(problem, leaders)
        curvature, at, near = pilots.curvature, pilots.curved[which], pilots.points[:, which]
        reference = problem.data.reference
        first = gradients.from_sums(pilots.sums[:, :, which], reference, near, leaders)
    else:
        curvature, near = _pilot_curvature(problem, gradients, leaders)
        at = curvature.nearest(problem.C[leaders])
    steps = Preconditioner(problem, curvature)
    steps.prepare(leaders, at)
    solved = _minimise(problem, gradients, steps, near, leaders, tol, max_iter, first, on_stop)
    W = solved[:, leader_of]
    followers = np.setdiff1d(np.arange(len(problem.C)), leaders)
    if len(followers):
        near = W[:, followers]
        share = np.where(alike[followers], leaders[leader_of[followers]], -1)
        steps.prepare(followers, at[leader_of[followers]], share)
        first = gradients.of_followers(solved, leader_of[followers], followers)
        W[:, followers] = _minimise(
            problem, gradients, steps, near, followers, tol, max_iter, first, on_stop
        )
    return W, steps


def is_wide(data: SourceData) -> bool:
    """Whether matrices of the size of the features are what costs, in time or in memory."""
    n, d = data.X.shape
    return bool(d > MANY_FEATURES and (n <= CHEAP_ROWS * d or d > HUGE))


def _minimise(
    problem: GridProblem,
    gradients: SourceGradients,
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
    gaps = np.empty(len(problem.C))
    relative = problem.weights / problem.weights.sum(axis=0)
    for C in np.unique(problem.C):
        theirs = np.flatnonzero(problem.C[leaders] == C)
        for q in np.flatnonzero(problem.C == C):
            gap = np.abs(relative[:, leaders[theirs]] - relative[:, [q]]).sum(axis=0)
            leader_of[q], gaps[q] = theirs[np.argmin(gap)], gap.min()
    leader_of[leaders] = np.arange(len(leaders))
    return leaders, leader_of, gaps < ALIKE


def _pilot_curvature(
    problem: GridProblem, gradients: SourceGradients, leaders: IntArray
) -> tuple[SourceCurvature, FloatArray]:
    """Curvature of every source at a few pilot solutions, and a start for every leader.

    The pilots weigh sources as the leader with most rows does, at a few of the regularisations.
    They start from zero, with the curvature there.
    """
    settings = np.unique(problem.C)
    few = settings[_few(len(settings))]
    rows = problem.data.row_counts @ (problem.weights[:, leaders] > 0)
    broad = problem.weights[:, leaders[np.argmax(rows)]]
    same = leaders[(problem.weights[:, leaders] == broad[:, None]).all(axis=0)]
    pilots = np.array([same[np.argmin(np.abs(np.log(problem.C[same] / C)))] for C in few])
    shape = (problem.data.X.shape[1], len(pilots), gradients.outputs)
    W = np.zeros(shape, dtype=problem.data.X.dtype)
    steps = Preconditioner(problem, SourceCurvature.at(problem.data, W[:, :1], np.array([np.nan])))
    steps.prepare(pilots, np.zeros(len(pilots), dtype=np.intp))
    found = _minimise(problem, gradients, steps, W, pilots, PILOT_TOL, 50)
    curvature = SourceCurvature.at(problem.data, found, problem.C[pilots])
    return curvature, found[:, curvature.nearest(problem.C[leaders])]


def _few(n_settings: int) -> IntArray:
    """Positions of a few regularisations, the outermost among them."""
    return np.unique(np.linspace(0, n_settings - 1, MAX_PILOTS).round().astype(np.intp))


class Preconditioner:
    """Inverse Hessians: shared by columns of like weights, or a column's own."""

    def __init__(self, problem: GridProblem, curvature: SourceCurvature):
        self.problem = problem
        self.ridge = problem.ridge
        self.curvature = curvature
        self.group = np.full(len(problem.C), -1, dtype=np.intp)
        self.inverses: list[FloatArray] = []
        self.slots: dict[int, int] = {}
        self.calls = 0

    def prepare(self, columns: IntArray, at: IntArray, shared_with: IntArray | None = None) -> None:
        """Provide an inverse for each column, from the curvature at some pilot.

        Another column's serves where one is given (``shared_with >= 0``).
        """
        own = np.full(len(columns), True) if shared_with is None else shared_with < 0
        for pilot in np.unique(at[own]):
            mine = columns[own & (at == pilot)]
            # Some columns at a time: there is one matrix for each.
            for low in range(0, len(mine), PREPARED):
                some = mine[low : low + PREPARED]
                curvature = self.curvature.of_columns(self.problem.weights[:, some], int(pilot))
                for q, H in zip(some, curvature, strict=True):
                    self._own(q, H)
        if shared_with is not None:
            self.group[columns[~own]] = self.group[shared_with[~own]]
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
        data = self.problem.data
        rows = data.row_counts @ (self.problem.weights[:, columns] > 0)
        return np.asarray(rows <= CHEAP_ROWS * data.X.shape[1])

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
        data, problem = self.problem.data, self.problem
        trusted = data.rows(data.reference)
        for k, q in enumerate(columns):
            weight = np.repeat(problem.weights[:, q], data.row_counts) * data.row_shares
            shares = problem.reference_shares[problem.fold[q]]
            weight[trusted] = problem.weights[data.reference, q] * shares
            rows = np.flatnonzero(weight)
            X = data.X[rows]
            V = (row_curvature(X @ W[:, k]) * weight[rows, None]).astype(X.dtype)
            self._own(q, np.stack([X.T @ (X * v[:, None]) for v in V.T]))
