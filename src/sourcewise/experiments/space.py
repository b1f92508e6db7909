"""A feature space that methods learn in, and what is known there before a run starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.core.curvature import Pilots, SourceCurvature
from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import WeightedProblems
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.source_gradients import source_sums
from sourcewise.estimators.final_model import fit_average
from sourcewise.estimators.measure import Measured
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.protocol import Protocol
from sourcewise.estimators.selection import Selection, select
from sourcewise.experiments.facts import SpaceFacts

N_CURVATURES = 3  # of the points where solutions are expected, spread over the regularisations


@dataclass
class Space:
    """Reference and test rows under one map of the features.

    Attributes
    ----------
    X : float32 array of shape (n_reference, d)
        The last column is constant.
    y : int array of shape (n_reference,)
    test : float32 array of shape (n_test, d)
    protocol : Protocol
    folds : ReferenceFolds
    seed : int
    points : float32 array of shape (d, n_settings + 1, 1), optional
        Where solutions are expected: one for each regularisation, and zero; see `expect`.
    """

    X: np.ndarray
    y: np.ndarray
    test: np.ndarray
    protocol: Protocol
    folds: ReferenceFolds
    seed: int
    points: np.ndarray | None = None

    @property
    def family(self) -> LogisticFamily:
        """The learner."""
        protocol = self.protocol
        return LogisticFamily(
            2, protocol.regularisations, penalise_constant=protocol.as_given, tol=protocol.tol
        )

    def pool(self, X: np.ndarray, y: np.ndarray, names: Sequence[str] = ()) -> Pool:
        """Put the reference and some sources together."""
        data = joined(self.X, self.y, X, y)
        return Pool(
            data=data,
            order=np.arange(len(data.y)),
            features=None,
            numeric=None,
            names=["reference", *names],
            seed=self.seed,
            protocol=self.protocol,
            discrepancy="plug-in" if self.protocol.as_given else "local",
            family=self.family,
            folds=self.folds,
            scale=1.0,
        )

    @cached_property
    def alone(self) -> Pool:
        """The reference without any source."""
        return self.pool(self.X[None, :0], self.y[None, :0])

    @cached_property
    def alone_models(self) -> np.ndarray:
        """Models of the reference alone: all rows and without each fold, under all settings.

        (1 + n_validation_folds, n_settings, 1, d).
        """
        work = SharedFits(self.alone)
        return work.fit_few(work.problems([work.by_size(work.only_reference)]))

    # -- where solutions are expected --------------------------------------------------------

    def expect(self, X: np.ndarray, y: np.ndarray) -> None:
        """Expect solutions near those of all rows of these sources and the reference, or zero."""
        models = self._fit_all(self.pool(X, y), None)
        self.points = np.append(models, np.zeros_like(models[:, :1]), axis=1)

    def _fit_all(self, pool: Pool, pilots: Pilots | None) -> np.ndarray:
        """Models of all rows alike, one for each regularisation: (d, n_settings, 1)."""
        data = pool.data
        problems = WeightedProblems(
            data,
            data.sizes[None] / data.sizes.sum(),
            np.array([float(len(data.y))]),
            self.folds.held_out,
            np.array([-1]),
        )
        models = self.family.fit_grid(problems, self.family.settings, pilots=pilots)
        return np.ascontiguousarray(models.transpose(2, 0, 1), dtype=np.float32)

    @cached_property
    def _curved(self) -> np.ndarray:
        """Which of the points curvatures are computed at: some of the settings, and zero."""
        n = len(self.family.settings)
        some = np.unique(np.linspace(0, n - 1, N_CURVATURES).round().astype(int))
        return np.append(some, n)

    def facts(self, X: np.ndarray, y: np.ndarray, like: SpaceFacts | None = None) -> SpaceFacts:
        """Tell what is known of sources; ``like`` are some with the same features."""
        if self.points is None:
            return SpaceFacts(X)
        data = grouped(X, y)
        sums, losses = source_sums(data, self.points)
        if like is not None and like.curvature is not None:
            return replace(like, sums=sums, losses=losses)
        at = SourceCurvature.at(data, self.points[:, self._curved], np.ones(len(self._curved)))
        return SpaceFacts(
            X,
            sums,
            losses,
            np.ascontiguousarray(at.value.transpose(1, 0, 2)),
            np.ascontiguousarray(at.by_output.transpose(1, 0, 2)),
        )

    @cached_property
    def _own_facts(self) -> SpaceFacts:
        return self.facts(self.X[None], self.y[None])

    def pilots(self, facts: SpaceFacts) -> Pilots | None:
        """Return what the solver may know beforehand of the reference and these sources."""
        if self.points is None:
            return None
        both = self._own_facts.append(facts)
        return Pilots(
            self.points,
            both.sums,
            both.losses,
            SourceCurvature(
                both.curvature.transpose(1, 0, 2),
                both.flatness.transpose(1, 0, 2),
                np.ones(len(self._curved)),
            ),
            self._nearest_curved(self._curved, self.points.shape[1]),
        )

    def _nearest_curved(self, curved: np.ndarray, n_points: int) -> np.ndarray:
        return np.abs(np.arange(n_points)[:, None] - curved).argmin(axis=1)

    def add_solutions(self, pool: Pool, expected: Pilots, *, curved: bool) -> Pilots:
        """Add the models of all rows of this very pool to the points that were expected.

        New curvature goes with them only if asked for: at the solutions themselves it is of
        little use.
        """
        points = self._fit_all(pool, expected)
        sums, losses = source_sums(pool.data, points)
        curvature, nearest = expected.curvature, expected.curved[: points.shape[1]]
        if curved:
            # Models under a strong penalty are next to zero, where curvature is known.
            some = self._curved[1:-1]
            at = SourceCurvature.at(pool.data, points[:, some], np.ones(len(some)))
            zero = len(curvature.C) - 1
            nearest = zero + self._nearest_curved(self._curved[:-1], points.shape[1])
            curvature = SourceCurvature(
                np.concatenate([curvature.value, at.value]),
                np.concatenate([curvature.by_output, at.by_output]),
                np.concatenate([curvature.C, at.C]),
            )
        return Pilots(
            np.concatenate([expected.points, points], axis=1),
            np.concatenate([expected.sums, sums], axis=2),
            np.concatenate([expected.losses, losses], axis=1),
            curvature,
            np.concatenate([expected.curved, nearest]),
        )


class SpacePool:
    """The reference and some sources in one space, for all methods that learn there."""

    def __init__(self, space: Space, facts: SpaceFacts, y: np.ndarray, names: Sequence[str]):
        self.space = space
        self.facts = facts
        self.pool = space.pool(facts.X, y, names)
        self.pilots: Pilots | None = None

    def find_pilots(self, *, for_weights: bool) -> None:
        """Find out what the solver may know beforehand, for source weights of all kinds or not."""
        expected = self.space.pilots(self.facts)
        if expected is not None:
            self.pilots = self.space.add_solutions(self.pool, expected, curved=for_weights)

    def train_on_all(self) -> tuple[np.ndarray, float]:
        """Train on all rows alike; returns the model and the regularisation chosen."""
        work = SharedFits(self.pool, self.pilots)
        trained = work.train(work.by_size(np.ones(self.pool.data.n_sources)))
        return trained.model, trained.C

    def weigh_and_train(self, measured: Measured) -> tuple[np.ndarray, Selection]:
        """Choose trade-off and regularisation, weigh the sources, train."""
        space, data = self.space, self.pool.data
        selection, near = select(self.pool, measured, space.protocol.trade_offs, self._fit)
        values = np.insert(measured.result.values, data.reference, 0.0)
        weights, _ = selection.weigh(values, data.sizes)
        if weights[data.reference] == 1.0:
            by_setting = selection.mixture.sum(axis=0)
            return np.tensordot(by_setting, space.alone_models[0], axes=1), selection
        return fit_average(self.pool, selection, values, near), selection

    def _fit(self, problems: WeightedProblems) -> np.ndarray:
        """Fit all weightings; those of the reference alone have been fitted already."""
        space, settings = self.space, self.space.family.settings
        alone = problems.weights[:, self.pool.data.reference] == 1.0
        d = self.pool.data.X.shape[1]
        models = np.empty((len(alone), len(settings), 1, d), dtype=np.float32)
        models[alone] = space.alone_models[1 + problems.fold[alone]]
        if not alone.all():
            fitted = space.family.fit_grid(problems.only(~alone), settings, pilots=self.pilots)
            models[~alone] = fitted.reshape(-1, *models.shape[1:])
        return models.reshape(-1, *models.shape[2:])


def grouped(X: np.ndarray, y: np.ndarray) -> SourceData:
    """Lay out sources of equal size, (n, m, d) and (n, m); the first passes for the reference."""
    n, m, d = X.shape
    return SourceData(
        X.reshape(n * m, d),
        y.reshape(n * m),
        m * np.arange(n + 1, dtype=np.intp),
        0,
        np.full(n * m, 1.0 / m),
        2,
    )


def joined(own_X: np.ndarray, own_y: np.ndarray, X: np.ndarray, y: np.ndarray) -> SourceData:
    """Lay out the reference's rows, then those of sources of equal size."""
    n, m, d = X.shape
    counts = np.array([len(own_y), *([m] * n if m else [])], dtype=np.intp)
    return SourceData(
        np.concatenate([own_X, X.reshape(-1, d)]),
        np.concatenate([own_y, y.reshape(-1)]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        0,
        np.repeat(1.0 / counts, counts),
        2,
    )
