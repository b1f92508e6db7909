r"""Training where an answer of the sources takes seconds, however little is asked.

A solver that asks for one gradient after the other would need hundreds of answers. Two ways out:

- *Selection.* Every source's loss is taken to second order around the reference's own model under
  each regularisation (the *pilots*), and once more around the models that then do best. All
  trade-offs are compared with these, without asking again. The reference's rows themselves count
  exactly.
- *Final models.* In each round the sources tell gradients and curvature at the models of the last
  one, and the problem with these is solved here. That is Newton's method in the sources' part, and
  exact in the reference's, so that a handful of rounds reaches the solution of the whole problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows
from sourcewise.core.family import LinearFamily, Visit, WeightedProblems
from sourcewise.core.grid_problem import GridGradients, GridProblem
from sourcewise.core.losses import log_loss
from sourcewise.core.quadratic_sources import Derivatives, QuadraticSources, QuadraticSums
from sourcewise.core.quasi_newton import OVERSHOOT
from sourcewise.core.source_weights import SourceWeights

MOST_ROUNDS = 20
# Relative change of a model after which a further round would change it by about its square.
CLOSE = 1e-4


class SourcesByRounds(Protocol):
    """What has to be known of sources that answer in rounds."""

    @property
    def exact_selection(self) -> bool:
        """Whether selection asks the sources for every gradient."""

    @property
    def most_rounds(self) -> int:
        """After so many, final models are taken as they are."""

    def expect(self, rounds: int) -> None:
        """Say that about so many rounds are coming; fewer where trade-offs are given up."""

    def pilots(self, reference: ReferenceRows, family: LinearFamily) -> QuadraticSources:
        """Return all sources to second order around the reference's model under each setting.

        For regression their moments say everything, and all losses are exact.
        """

    def derivatives(self, points: FloatArray) -> Derivatives:
        """Ask all sources for derivatives at points (n_points, n_outputs, n_features)."""


@dataclass(frozen=True)
class CountingSources(QuadraticSources):
    """Sources that count how often they are asked, and answer from what is known."""

    asked: Counter[str] = field(default_factory=Counter)

    def weighted(self, weights: SourceWeights) -> QuadraticSums:
        """Get ready for sums."""
        return CountingSums(self, weights)


class CountingSums(QuadraticSums):
    """Sums that count."""

    sources: CountingSources

    def gradients(self, *given: Any, **named: Any) -> FloatArray:
        """Count, and answer."""
        self.sources.asked["gradients"] += 1
        return super().gradients(*given, **named)

    def curvature(self, *given: Any, **named: Any) -> tuple[FloatArray, FloatArray]:
        """Count, and answer."""
        self.sources.asked["curvature"] += 1
        return super().curvature(*given, **named)


@dataclass(frozen=True)
class RoundsFamily:
    """A linear learner that asks the sources in few rounds.

    All that needs no sources is the learner's own.
    """

    family: LinearFamily
    sources: SourcesByRounds

    def __getattr__(self, name: str) -> Any:
        """Return what the learner has."""
        if name == "family":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.family, name)

    @property
    def travels_as(self) -> LinearFamily:
        """What sources are told of the learner."""
        return self.family

    # -- selection ---------------------------------------------------------------------------

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        on_fit: Callable[[int], None] | None = None,
    ) -> Any:
        """Fit every weighting under every setting."""
        if self._exact_selection(problems):
            return self.family.fit_grid(problems, settings, on_fit)
        found: dict[float, FloatArray] = {}

        def keep(setting: float, chosen: IntArray, models: FloatArray) -> NDArray[np.bool_]:
            found[setting] = models
            return np.ones(len(problems), dtype=bool)

        self.walk_grid(problems, settings, keep, on_fit)
        models = np.stack([found[float(setting)] for setting in settings], axis=1)
        return models.reshape(-1, *models.shape[2:])

    def walk_grid(
        self,
        problems: WeightedProblems,
        settings: FloatArray,
        visit: Visit,
        on_fit: Callable[[int], None] | None = None,
    ) -> None:
        """Fit one setting after the other, the strongest first, each around its pilot."""
        if self._exact_selection(problems):
            self.sources.expect(self._rounds_of(problems, settings))
            self.family.walk_grid(problems, settings, visit, on_fit)
            return
        pilots = self.sources.pilots(problems.reference, self.family)
        if pilots.exact:
            self.family.walk_grid(replace(problems, sources=pilots), settings, visit, on_fit)
            return
        known, around = self._second_look(problems, settings, pilots)
        wanted = np.ones(len(problems), dtype=bool)
        for k in np.argsort(settings):
            chosen = np.flatnonzero(wanted)
            if len(chosen):
                near = replace(problems, sources=known.near(around[k, chosen])).only(chosen)
                models = self.family.fit_grid(near, settings[[k]], on_fit)
                wanted &= visit(float(settings[k]), chosen, models)

    def _exact_selection(self, problems: WeightedProblems) -> bool:
        """Whether to ask for every gradient; regressions are exact without."""
        return self.sources.exact_selection and problems.reference.n_classes > 0

    def _rounds_of(self, problems: WeightedProblems, settings: FloatArray) -> int:
        """Count the rounds that all gradients would take, with the pilots in the sites' place."""
        pilots = self.sources.pilots(problems.reference, self.family)
        counting = CountingSources(**vars(pilots))

        def go_on(setting: float, chosen: IntArray, models: FloatArray) -> NDArray[np.bool_]:
            return np.ones(len(problems), dtype=bool)

        self.family.walk_grid(replace(problems, sources=counting), settings, go_on)
        return counting.asked.total()

    def _second_look(
        self, problems: WeightedProblems, settings: FloatArray, pilots: QuadraticSources
    ) -> tuple[QuadraticSources, IntArray]:
        """Ask once more, at the models that do best on the reference's held-out rows.

        Also returns, for every setting and problem, the point that is nearer to its model.
        """
        first = np.array([self._pilot(float(setting)) for setting in settings])
        found = [
            self.family.fit_grid(replace(problems, sources=pilots.near(p)), settings[[k]])
            for k, p in enumerate(first.tolist())
        ]
        points = np.stack([self._best(problems, models) for models in found])
        own = len(pilots.points)
        around = np.stack(
            [
                np.where(_gaps(models, points[k]) < _gaps(models, pilots.points[p]), own + k, p)
                for k, (models, p) in enumerate(zip(found, first, strict=True))
            ]
        )
        return pilots.and_at(points, self.sources.derivatives(points)), around

    def _best(self, problems: WeightedProblems, models: FloatArray) -> FloatArray:
        """Average, over the folds, the model of each that does best on the rows left out."""
        X, y = problems.reference.X, problems.reference.y
        losses = log_loss(self.family.predict(models, X), y)
        chosen = []
        for fold in np.unique(problems.fold):
            mine = np.flatnonzero(problems.fold == fold)
            rows = problems.held_out[fold] if fold >= 0 else np.ones(len(y), dtype=bool)
            chosen.append(mine[np.argmin(losses[mine][:, rows].mean(axis=1))])
        return np.asarray(models[chosen].mean(axis=0), dtype=np.float64)

    def _pilot(self, setting: float) -> int:
        return int(np.argmin(np.abs(np.log(self.settings / setting))))

    # -- final models ------------------------------------------------------------------------

    def fit_pairs(
        self,
        problems: WeightedProblems,
        which: IntArray,
        settings: FloatArray,
        start: FloatArray | None,
    ) -> FloatArray:
        """Fit problem ``which[k]`` under ``settings[k]`` exactly, in a handful of rounds."""
        pilots = self.sources.pilots(problems.reference, self.family)
        around = np.array([self._pilot(float(setting)) for setting in settings])
        near = replace(problems, sources=pilots.near(around))
        models = self.family.fit_pairs(near, which, settings, start)
        if not problems.reference.n_classes:
            return models  # moments have told everything
        return _by_rounds(self, problems, which, settings, models)


def _gaps(models: FloatArray, point: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(models - point, axis=(1, 2)))


def _by_rounds(
    learner: RoundsFamily,
    problems: WeightedProblems,
    which: IntArray,
    settings: FloatArray,
    models: FloatArray,
) -> FloatArray:
    """Ask, solve with the answers, and ask again, until nothing moves any more."""
    before, step, slopes = models, np.zeros_like(models), np.zeros(len(models))
    penalty = learner._penalty(models.shape[2])
    for k in range(learner.sources.most_rounds):
        known = learner.sources.derivatives(models)
        quadratic = QuadraticSources(
            models,
            known,
            problems.sources.sizes,
            problems.sources.row_counts,
            problems.reference.n_classes,
            np.arange(len(models)),
        )
        near = replace(problems, sources=quadratic)
        problem = GridProblem.of(near, penalty, which, settings)
        gradients = whole_gradients(problem, models)
        if k > 0:
            # A quadratic that saw little curvature goes too far: halve such steps.
            now = np.einsum("qkd,qkd->q", gradients, step)
            far = now > OVERSHOOT * np.abs(slopes)
            if far.any():
                step[far] *= 0.5
                models = np.where(far[:, None, None], before + step, models)
                slopes = np.where(far, 0.5 * slopes, slopes)
                if np.abs(step[far]).max() > CLOSE * np.abs(models).max():
                    continue
        found = learner.family.fit_pairs(near, which, settings, models)
        before, step = models, found - models
        slopes = np.einsum("qkd,qkd->q", gradients, step)
        models = found
        sizes = np.linalg.norm(found, axis=(1, 2))
        if (np.linalg.norm(step, axis=(1, 2)) <= CLOSE * np.maximum(sizes, 1e-12)).all():
            break
    return models


def whole_gradients(problem: GridProblem, models: FloatArray) -> FloatArray:
    """Gradient of each column's objective at its model, (n_columns, n_outputs, n_features)."""
    points = np.ascontiguousarray(models.transpose(2, 0, 1), dtype=np.float64)
    data = GridGradients(problem)(points, np.arange(len(models))).value
    return np.asarray(data.transpose(1, 2, 0) + models * problem.penalty / problem.C[:, None, None])
