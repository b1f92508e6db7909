r"""Logistic regression for a whole grid of source weights, regularisations and left-out folds.

Column :math:`q` weighs source :math:`i` by :math:`a_{iq}` (zero for most sources in most columns)
and leaves out some reference rows. What makes the grid cheap:

- Gradients are gathered source by source (:mod:`sourcewise.core.source_gradients`).
- Curvature: :math:`H_q \approx \sum_i a_{iq} H_i + I / C`, with one :math:`H_i` per source and
  pilot solution. Columns of one regularisation whose weights are alike (folds of one trade-off)
  share one inverse, and start from the solution of one of them, where their first gradients cost
  no product of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
PATIENCE = 3  # gradients before a column counts as slow
RENEW_CHEAP = 2  # gradients between renewals of slow columns of few rows
RENEW_DEAR = 15  # gradients after which other columns renew theirs: it costs dozens of gradients
RENEW_MULTINOMIAL = 10
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
    start : array of shape (n_outputs, n_features), optional
        A model near all solutions, if one is known.
    max_iter : int
    on_stop : callable, optional
        Told how many columns have just been solved.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    leaders, leader_of, alike = _leaders(problem)
    if is_wide(problem.data):
        return solve_wide_grid(
            problem, leaders, leader_of, tol=tol, start=start, max_iter=max_iter, on_stop=on_stop
        )
    gradients = SourceGradients(problem)
    if start is None:
        curvature, pilots = _pilot_curvature(problem, gradients, leaders)
    else:
        pilots = np.repeat(start.T[:, None, :], len(leaders), axis=1)
        curvature = SourceCurvature.at(problem.data, pilots[:, :1], np.array([1.0]))
    steps = Preconditioner(problem, curvature)
    steps.prepare(leaders)
    solved = _minimise(problem, gradients, steps, pilots, leaders, tol, max_iter, on_stop=on_stop)
    W = solved[:, leader_of]
    followers = np.setdiff1d(np.arange(len(problem.C)), leaders)
    if len(followers):
        near = W[:, followers]
        share = np.where(alike[followers], leaders[leader_of[followers]], -1)
        steps.prepare(followers, share)
        first = gradients.of_followers(solved, leader_of[followers], followers)
        W[:, followers] = _minimise(
            problem, gradients, steps, near, followers, tol, max_iter, first, on_stop
        )
    return W.transpose(1, 2, 0)


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
    few = settings[np.unique(np.linspace(0, len(settings) - 1, MAX_PILOTS).round().astype(int))]
    rows = problem.data.row_counts @ (problem.weights[:, leaders] > 0)
    broad = problem.weights[:, leaders[np.argmax(rows)]]
    same = leaders[(problem.weights[:, leaders] == broad[:, None]).all(axis=0)]
    pilots = np.array([same[np.argmin(np.abs(np.log(problem.C[same] / C)))] for C in few])
    shape = (problem.data.X.shape[1], len(pilots), gradients.outputs)
    W = np.zeros(shape, dtype=problem.data.X.dtype)
    steps = Preconditioner(problem, SourceCurvature.at(problem.data, W[:, :1], np.array([np.nan])))
    steps.prepare(pilots)
    found = _minimise(problem, gradients, steps, W, pilots, PILOT_TOL, 50)
    curvature = SourceCurvature.at(problem.data, found, problem.C[pilots])
    return curvature, found[:, [curvature.nearest(C) for C in problem.C[leaders]]]


@dataclass(frozen=True)
class SourceCurvature:
    """Curvature of each source's mean loss at some pilot solutions.

    Attributes
    ----------
    value : float32 array of shape (n_pilots, n_sources, n_features ** 2)
        Mean over the outputs. Single precision is plenty for a preconditioner and halves the
        largest array there is.
    by_output : array of shape (n_pilots, n_sources, n_outputs)
        Mean second derivative of the loss in each output: a rare class has little curvature.
    C : array of shape (n_pilots,)
        Regularisation of each pilot.
    """

    value: FloatArray
    by_output: FloatArray
    C: FloatArray

    @classmethod
    def at(cls, data: SourceData, W: FloatArray, C: FloatArray) -> SourceCurvature:
        """Curvature at points of shape (n_features, n_pilots, n_outputs)."""
        d, n_pilots, k = W.shape
        value = np.empty((n_pilots, data.n_sources, d * d), dtype=np.float32)
        by_output = np.empty((n_pilots, data.n_sources, k))
        flat = W.reshape(d, -1).astype(np.float32)
        for i, rows in enumerate(data.slices()):
            X = data.X[rows].astype(np.float32)
            V = row_curvature((X @ flat).reshape(-1, n_pilots, k))
            V *= data.row_shares[rows, None, None].astype(np.float32)
            by_output[:, i] = V.sum(axis=0)
            V = V.mean(axis=2)
            for p in range(n_pilots):
                value[p, i] = (X.T @ (X * V[:, [p]])).ravel()
        return cls(value, by_output, C)

    def nearest(self, C: float) -> int:
        """Pilot whose regularisation is nearest."""
        if len(self.C) == 1:
            return 0
        return int(np.argmin(np.abs(np.log(self.C / C))))

    def of_column(self, weights: FloatArray, C: float) -> FloatArray:
        """Weighted sum over sources, one matrix for each output."""
        d = int(np.sqrt(self.value.shape[2]))
        used, pilot = np.flatnonzero(weights), self.nearest(C)
        shared = weights[used].astype(np.float32) @ self.value[pilot][used]
        by_output = weights[used] @ self.by_output[pilot][used]
        factors = by_output / max(float(by_output.mean()), np.finfo(np.float64).tiny)
        return np.asarray(factors[:, None, None] * shared.reshape(d, d).astype(np.float64))


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

    def prepare(self, columns: IntArray, shared_with: IntArray | None = None) -> None:
        """Provide an inverse for each column: another column's where one is given (>= 0)."""
        for k, q in enumerate(columns):
            if shared_with is not None and shared_with[k] >= 0:
                self.group[q] = self.group[shared_with[k]]
            else:
                H = self.curvature.of_column(self.problem.weights[:, q], self.problem.C[q])
                self._own(q, H)
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
        # One output's curvature is exact, and Newton's own steps are best. For several it is only
        # block-diagonal: the memory must have time to learn what it leaves out.
        every = RENEW_CHEAP if W.shape[2] == 1 else RENEW_MULTINOMIAL
        if self.calls > PATIENCE and self.calls % every == 0:
            chosen = self._cheap(columns)
        if self.calls % RENEW_DEAR == 0:
            chosen[:] = True
        self._renew(W[:, chosen], columns[chosen])
        return chosen

    def _renew(self, W: FloatArray, columns: IntArray) -> None:
        data, problem = self.problem.data, self.problem
        trusted = data.rows(data.reference)
        for k, q in enumerate(columns):
            weight = np.repeat(problem.weights[:, q], data.row_counts) * data.row_shares
            shares = problem.reference_shares[problem.fold[q]]
            weight[trusted] = problem.weights[data.reference, q] * shares
            rows = np.flatnonzero(weight)
            X = data.X[rows]
            V = row_curvature(X @ W[:, k]) * weight[rows, None]
            self._own(q, np.stack([X.T @ (X * v[:, None]) for v in V.T]))
