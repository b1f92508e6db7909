from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass

import numpy as np
import pytest

from sourcewise.core.by_rounds import MOST_ROUNDS, RoundsFamily
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.moments import concat_moments, moments_of, source_rows
from sourcewise.core.family import WeightedProblems
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.quadratic_sources import QuadraticSources, derivatives
from sourcewise.core.ridge import RidgeFamily
from sourcewise.core.source_weights import GivenWeights
from sourcewise.engines.memory import MemorySources

SETTINGS = np.array([0.01, 0.1, 10.0])


def pool(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    counts = [60, 40, 90, 25]
    X = np.column_stack([rng.normal(size=(sum(counts), 4)), np.ones(sum(counts))])
    scores = X @ rng.normal(size=(5, max(n_classes, 1))) + rng.normal(size=(len(X), 1))
    y = {0: scores[:, 0], 2: (scores[:, 0] > 0).astype(int)}.get(n_classes)
    y = scores.argmax(axis=1) if y is None else y
    data, _ = group_rows(X, y, np.repeat(range(4), counts), reference=0, n_classes=n_classes)
    return data


def problems_of(data):
    """Return a few weightings, one of which leaves out reference rows."""
    held_out = np.arange(60)[None] < 12
    weights = np.array([[0.0, 0.2, 0.4], [0.0, 0.3, 0.1], [0.0, 0.0, 0.3]])
    return WeightedProblems(
        MemorySources(data, ["a", "b", "c"]),
        ReferenceRows.of(data),
        GivenWeights(weights),
        1.0 - weights.sum(axis=0),
        np.array([60.0, 150.0, 200.0]),
        held_out,
        np.array([-1, 0, -1]),
    )


@dataclass
class Answering:
    """Sources by rounds whose rows are here."""

    data: object
    exact_selection: bool = False
    asked: int = 0
    most_rounds: int = MOST_ROUNDS

    def pilots(self, reference, family):
        untrusted = self.data.untrusted
        sizes, counts = self.data.sizes[untrusted], self.data.row_counts[untrusted]
        if not self.data.n_classes:
            parts = [moments_of(source_rows(self.data, i)) for i in untrusted]
            return QuadraticSources.of_moments(concat_moments(parts), sizes, counts)
        ones = np.ones((len(reference.y), len(family.settings)))
        points = family.fit(reference.X, reference.y, ones, family.settings)
        return QuadraticSources(
            points, derivatives(self.data, points), sizes, counts, self.data.n_classes
        )

    def derivatives(self, points):
        self.asked += 1
        return derivatives(self.data, points)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_final_models_are_those_of_all_rows_in_a_handful_of_rounds(n_classes):
    data = pool(n_classes)
    family = LogisticFamily(n_classes, SETTINGS)
    which, C = np.array([0, 1, 2, 2]), np.array([10.0, 0.1, 0.01, 10.0])
    exact = family.fit_pairs(problems_of(data), which, C, None)
    sources = Answering(data)
    found = RoundsFamily(family, sources).fit_pairs(problems_of(data), which, C, None)
    np.testing.assert_allclose(found, exact, atol=2e-6)
    assert sources.asked <= 6


def test_rows_that_hardly_overlap_are_solved_too():
    data = pool(2)
    X = data.X.copy()
    X[:, 0] += 6.0 * (2 * data.y - 1)  # almost separated, and hardly any penalty
    data = data.with_features(X)
    family = LogisticFamily(2, np.array([0.1, 1e4]))
    which, C = np.array([1, 2]), np.array([1e4, 1e4])
    exact = family.fit_pairs(problems_of(data), which, C, None)
    found = RoundsFamily(family, Answering(data)).fit_pairs(problems_of(data), which, C, None)
    np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


def test_regressions_need_no_round_at_all():
    data = pool(0)
    family = RidgeFamily(SETTINGS)
    which, C = np.array([0, 1, 2]), np.array([10.0, 0.1, 0.01])
    sources = Answering(data)
    learner = RoundsFamily(family, sources)
    exact = family.fit_pairs(problems_of(data), which, C, None)
    np.testing.assert_allclose(
        learner.fit_pairs(problems_of(data), which, C, None), exact, atol=1e-10
    )
    grid = family.fit_grid(problems_of(data), SETTINGS)
    np.testing.assert_allclose(learner.fit_grid(problems_of(data), SETTINGS), grid, atol=1e-10)
    assert sources.asked == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_quadratic_sums_are_exact_at_their_points(n_classes):
    data = pool(n_classes)
    family = LogisticFamily(n_classes, SETTINGS)
    pilots = Answering(data).pilots(ReferenceRows.of(data), family)
    weights = problems_of(data).weights
    at = np.ascontiguousarray(pilots.points.transpose(2, 0, 1))
    columns = np.arange(3)
    exact = MemorySources(data, ["a", "b", "c"]).weighted(weights)
    sums = pilots.near(np.arange(3)).weighted(weights)
    np.testing.assert_allclose(sums.gradients(at, columns), exact.gradients(at, columns), atol=1e-6)
    for basis in (None, np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0]):
        for ours, theirs in zip(
            sums.curvature(at, columns, columns, basis),
            exact.curvature(at, columns, columns, basis),
            strict=True,
        ):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_quadratic_gradients_change_by_the_curvature():
    data = pool(2)
    family = LogisticFamily(2, SETTINGS)
    pilots = Answering(data).pilots(ReferenceRows.of(data), family).near(1)
    sums = pilots.weighted(problems_of(data).weights)
    at = np.ascontiguousarray(pilots.points[[1, 1, 1]].transpose(2, 0, 1))
    step = np.random.default_rng(1).normal(size=at.shape)
    columns = np.arange(3)
    change = sums.gradients(at + step, columns)[:5] - sums.gradients(at, columns)[:5]
    bent = sums.curvature(at, columns, columns)[0]
    expected = np.einsum("qde,eqk->dkq", bent, step)
    np.testing.assert_allclose(change, expected, atol=1e-12)


def test_sums_of_regressions_follow_from_moments():
    data = pool(0)
    sources = Answering(data).pilots(ReferenceRows.of(data), RidgeFamily(SETTINGS))
    columns, points = np.arange(3), np.random.default_rng(0).normal(size=(5, 3, 1))
    weights = problems_of(data).weights
    ours = sources.weighted(weights)
    exact = MemorySources(data, ["a", "b", "c"]).weighted(weights)
    for name, asked in {
        "moments": (columns,),
        "gradients": (points, columns),
        "curvature": (points, columns, columns),
    }.items():
        found, expected = getattr(ours, name)(*asked), getattr(exact, name)(*asked)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_learner_in_rounds_is_the_learner_and_can_be_copied():
    family = LogisticFamily(2, SETTINGS)
    learner = RoundsFamily(family, Answering(pool(2)))
    assert copy(learner).travels_as is family
    assert deepcopy(learner).n_classes == 2
    rows, models = np.random.default_rng(0).normal(size=(2, 3, 1, 5))
    np.testing.assert_array_equal(
        learner.predict(models, rows[:, 0]), family.predict(models, rows[:, 0])
    )
