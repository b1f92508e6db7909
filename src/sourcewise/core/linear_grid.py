r"""Linear models for a whole grid of source weights, regularisations and left-out folds.

Column :math:`q` weighs source :math:`i` by :math:`a_{iq}` (zero for most sources in most columns)
and leaves out some reference rows. The loss is logistic, multinomial, or half the squared error.
What makes the grid cheap:

- Gradients are gathered source by source (:mod:`sourcewise.core.source_gradients`).
- Where only the good ones are wanted, regularisations are taken from the strongest to the weakest,
  every weighting from its own last solution, and whoever walks along may give weightings up on the
  way. Where all are wanted, they are solved side by side, from pilot solutions.
- Curvature is taken at one point for all weightings of a regularisation
  (:mod:`sourcewise.core.grid_steps`). Folds of
  one trade-off share the inverse of the first of them, their *leader*, and start from its solution,
  where their first gradients cost no product of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import Visit, WeightedProblems
from sourcewise.core.grid_problem import GridGradients, GridProblem
from sourcewise.core.grid_steps import GridSteps, leading_directions
from sourcewise.core.logistic import centre_outputs
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import rows_in_use, share_gaps
from sourcewise.core.sparse_rows import SparseRows

# Gradients after which columns that are still running get the curvature at their own points. Where
# it is known in a few directions only, the memory has to learn the rest: it must not be lost often.
# Where it is a large matrix, it costs as much as dozens of gradients.
RENEW = {6, 10, 15, 22, 32, 45, 60, 90, 120, 180, 240}
RENEW_SELDOM = {25, 60, 120, 200}
RENEW_ROWS = 20  # times the coordinates and the root of the outputs
LARGE = 400  # coordinates times outputs

PILOTS = 3  # regularisations at whose solutions the curvature is taken
PILOT_TOL = 1e-6

# Told the columns just solved and their points; returns for every column whether to go on with it.
Show = Callable[[IntArray, FloatArray], NDArray[np.bool_]]


def fit_weighted(
    problems: WeightedProblems,
    penalty: Callable[[int], FloatArray],
    which: IntArray,
    C: FloatArray,
    *,
    tol: float,
    start: FloatArray | None = None,
    visit: Visit | None = None,
    on_stop: Callable[[int], None] | None = None,
) -> FloatArray:
    """Fit pairs of weighted problems and regularisations in as few coordinates as they need.

    Parameters
    ----------
    problems : WeightedProblems
    penalty : callable
        Penalty of each of so many coefficients, relative to ``1 / C``.
    which : int array of shape (n_columns,)
        Problem of each column.
    C : array of shape (n_columns,)
    tol, start, on_stop
        As of `solve_grid`.
    visit : callable, optional
        Shown the models of one regularisation after the other, the strongest first; columns of
        problems that it gives up are not solved. No models are returned then, as they may be large.

    Returns
    -------
    array of shape (n_columns, n_outputs, n_features)
    """
    directions = leading_directions(problems.sources, problems.reference)
    problems, space = problems.in_row_space()

    def show(columns: IntArray, W: FloatArray) -> NDArray[np.bool_]:
        assert visit is not None
        models = space.back(W.transpose(1, 2, 0))
        return np.asarray(visit(float(C[columns[0]]), which[columns], models)[which])

    found = solve_grid(
        GridProblem.of(problems, penalty(problems.reference.X.shape[1]), which, C),
        tol=tol,
        basis=_in_coordinates(directions, space),
        start=None if start is None else space.into(start),
        show=None if visit is None else show,
        on_stop=on_stop,
    )
    return space.back(found)


def _in_coordinates(directions: FloatArray | None, space: RowSpace) -> FloatArray | None:
    """Give directions that rows span in the coordinates of the rows."""
    if directions is None or space.basis is None:
        return directions
    if directions.shape[1] >= space.X.shape[-1] - 1:
        return None  # so few coordinates need no others
    as_models = np.column_stack([directions.T, np.zeros(directions.shape[1])])
    return np.asarray(space.into(as_models)[:, :-1].T)


def solve_grid(
    problem: GridProblem,
    *,
    tol: float,
    basis: FloatArray | None = None,
    start: FloatArray | None = None,
    max_iter: int = 300,
    show: Show | None = None,
    on_stop: Callable[[int], None] | None = None,
) -> FloatArray:
    """Solve all columns.

    Parameters
    ----------
    problem : GridProblem
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    basis : array of shape (n_features - 1, n_directions), optional
        Directions in which the curvature is looked at; by default all.
    start : array of shape (n_columns, n_outputs, n_features), optional
        Models near the solutions.
    max_iter : int
    show : callable, optional
        Columns are then solved from the strongest regularisation to the weakest, and shown one
        regularisation at a time, with points of shape (n_features, n_columns, n_outputs); those
        that it gives up are not solved. Nothing is returned then.
    on_stop : callable, optional
        Told how many columns have just been solved, or given up.

    Returns
    -------
    coef : array of shape (n_columns, n_outputs, n_features)
    """
    grid = Grid(problem, basis, tol, max_iter, on_stop)
    if show is not None:
        grid.walk(show)
        return grid.zeros(0).transpose(1, 2, 0)
    everywhere = np.arange(len(problem.C))
    settings = np.unique(problem.C)
    settings = settings[np.unique(np.linspace(0, len(settings) - 1, PILOTS).round().astype(int))]
    at = np.argmin(np.abs(np.log(problem.C[:, None] / settings)), axis=1)
    if start is None:
        points = grid.pilots(settings)
        near = points[:, at]
    else:
        near = centre_outputs(start.transpose(2, 0, 1).astype(problem.reference.X.dtype))
        theirs = [np.flatnonzero(at == k) for k in range(len(settings))]
        points = near[:, [some[grid.broadest(some)] for some in theirs]]
    return grid.solve(everywhere, near, points, at).transpose(1, 2, 0)


class Grid:
    """A grid problem with all that is needed to solve columns of it."""

    def __init__(
        self,
        problem: GridProblem,
        basis: FloatArray | None,
        tol: float,
        max_iter: int,
        on_stop: Callable[[int], None] | None,
    ):
        self.problem, self.tol, self.max_iter, self.on_stop = problem, tol, max_iter, on_stop
        self.gradients = GridGradients(problem)
        self.steps = GridSteps(problem, self.gradients, basis)

    def zeros(self, n_points: int) -> FloatArray:
        """So many models that know nothing, (n_features, n_points, n_outputs)."""
        X = self.problem.reference.X
        return np.zeros((X.shape[1], n_points, self.gradients.outputs), dtype=X.dtype)

    def broadest(self, columns: IntArray) -> int:
        """Position of the column in which most rows count."""
        return int(np.argmax(self.rows_in_use(columns)))

    def rows_in_use(self, columns: IntArray) -> IntArray:
        """Rows of the sources that count in each of the columns."""
        weights = self.problem.weights.in_columns(columns)
        return rows_in_use(weights, self.problem.sources.row_counts)

    def pilots(self, settings: FloatArray) -> FloatArray:
        """Solve the weighting of most rows roughly under each regularisation, ascending."""
        problem = self.problem
        leaders = np.flatnonzero(problem.fold == problem.fold.min())
        broad = problem.weighting[leaders[self.broadest(leaders)]]
        same = np.flatnonzero(problem.weighting == broad)
        points, latest = [], self.zeros(1)
        for C in settings:
            pilot = same[[np.argmin(np.abs(np.log(problem.C[same] / C)))]]
            self.steps.stand_at(pilot, latest, np.zeros(1, dtype=np.intp))
            latest = self._minimise(pilot, latest, max(PILOT_TOL, self.tol))
            points.append(latest)
        return np.concatenate(points, axis=1)

    def walk(self, show: Show) -> None:
        """Solve one regularisation after the other, each weighting from its own last solution."""
        problem, weighting = self.problem, self.problem.weighting
        latest = self.zeros(int(weighting.max()) + 1)
        wanted = np.ones(len(problem.C), dtype=bool)
        for C in np.unique(problem.C):
            columns = np.flatnonzero((problem.C == C) & wanted)
            if len(columns) == 0:
                continue
            near = latest[:, weighting[columns]]
            # Columns of the reference alone have their curvature from its rows at their own point.
            at = np.where(
                self.rows_in_use(columns) > 0, self.broadest(columns), np.arange(len(columns))
            )
            points, at = np.unique(at, return_inverse=True)
            W = self.solve(columns, near, near[:, points], at)
            latest[:, weighting[columns]] = W
            go_on = show(columns, W)
            given_up = int(np.sum(wanted & ~go_on & (problem.C > C)))
            if self.on_stop is not None and given_up:
                self.on_stop(given_up)
            wanted &= go_on

    def solve(
        self, columns: IntArray, near: FloatArray, points: FloatArray, at: IntArray
    ) -> FloatArray:
        """Solve columns: the leaders, then the others from there.

        ``near`` is where columns start, (n_features, n_columns, n_outputs). The curvature is that
        at point ``at[k]`` of some ``points``.
        """
        leading, leader_of = self._leaders(columns)
        leaders = columns[leading]
        self.steps.stand_at(leaders, points, at[leading])
        W = near.copy()
        W[:, leading] = self._minimise(leaders, near[:, leading], self.tol, on_stop=self.on_stop)
        following = np.setdiff1d(np.arange(len(columns)), leading)
        if len(following):
            followers, theirs = columns[following], leader_of[following]
            self.steps.share(followers, leaders[theirs])
            solved = W[:, leading]
            first = self.gradients.of_followers(solved, theirs, followers)
            W[:, following] = self._minimise(
                followers, solved[:, theirs], self.tol, first, self.on_stop
            )
        return W

    def _leaders(self, columns: IntArray) -> tuple[IntArray, IntArray]:
        """Columns that others start from: those of the first fold; each one's by its weights.

        Returns positions of the leaders among the columns, and for every column the position of its
        leader among them.
        """
        fold, C = self.problem.fold[columns], self.problem.C[columns]
        leading = np.flatnonzero(fold == fold.min())
        weighting = self.problem.weighting[columns]
        gaps = self._gaps[weighting[leading]][:, weighting]
        gaps = np.where(C[leading, None] == C, gaps, np.inf)
        leader_of = np.argmin(gaps, axis=0)
        leader_of[leading] = np.arange(len(leading))
        return leading, leader_of

    @cached_property
    def _gaps(self) -> FloatArray:
        """How far weightings are from those of the first fold; of others the rows are infinite.

        Rounded, so that of two that are equally near the first is taken in any order of sources.
        """
        problem = self.problem
        ones, first = np.unique(problem.weighting, return_index=True)
        leading = np.unique(problem.weighting[problem.fold == problem.fold.min()])
        gaps = np.full((len(ones), len(ones)), np.inf)
        gaps[leading] = share_gaps(
            problem.weights.in_columns(first), problem.reference_weights[first], leading, ones
        )
        return np.round(gaps, 9)

    def _minimise(
        self,
        chosen: IntArray,
        start: FloatArray,
        tol: float,
        first: Gradient | None = None,
        on_stop: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Minimise the chosen columns; ``first`` is the data term's gradient at the start."""
        X = self.problem.reference.X
        strength = (1.0 / self.problem.C[chosen]).astype(X.dtype)
        penalty = self.problem.penalty.astype(X.dtype)[:, None, None]
        known = [] if first is None else [first]
        renewals = Renewals(self.steps)

        def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
            data_term = known.pop() if known else self.gradients(W, chosen[columns])
            shrink = strength[columns, None] * W
            shrink *= penalty
            floor = data_term.floor + 0.5 * inner(shrink, W)
            shrink += data_term.value
            return Gradient(shrink, floor)

        solution, _ = minimise_columns(
            start,
            evaluate,
            lambda vectors, columns: self.steps(vectors, chosen[columns]),
            tol=tol,
            max_iter=self.max_iter,
            refresh=lambda W, columns: renewals(W, chosen[columns]),
            refresh_every=1,
            on_stop=on_stop,
            narrow=isinstance(X, SparseRows),  # whose models are larger than the rows
        )
        return solution


class Renewals:
    """Gives columns that are slow the curvature at their own points.

    A mean over columns would not do: where few rows can be separated, it is far from each one's
    own, predicts too small a decrease, and stops a column early.
    """

    def __init__(self, steps: GridSteps):
        self.steps = steps
        self.calls = 0

    def __call__(self, W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        """Renew the running columns when it is time; returns which ones."""
        self.calls += 1
        large = len(self.steps.penalty) * W.shape[2] > LARGE
        seldom = large or self.steps.basis is not None
        renewed = self.calls in (RENEW_SELDOM if seldom else RENEW)
        if renewed:
            self.steps.stand_at(columns, W, np.arange(len(columns)), rows=RENEW_ROWS)
        return np.full(len(columns), renewed)
