"""Sums over sources are those of their rows, however the rows are taken together."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_grids import untrusted_rows_of

from sourcewise.core import source_gradients
from sourcewise.core.data import group_rows
from sourcewise.core.logistic import probabilities
from sourcewise.core.loss import residuals
from sourcewise.core.source_gradients import SourceGradients, group_sources
from sourcewise.core.source_weights import CutoffWeights, GivenWeights

N_COLUMNS = 12


def pool(n_classes=2, counts=(60, 150, 20, 30, 7, 200), weighted=False, reference=2, seed=0):
    """Make sources large and small, the reference among them unless it is -1."""
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, 4)), np.ones(n)])
    y = (2 * X @ rng.normal(size=(5, n_classes)) + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return group_rows(
        X,
        y,
        np.repeat(np.arange(len(counts)), counts),
        reference=reference,
        n_classes=n_classes,
        sample_weight=rng.random(n) + 0.1 if weighted else None,
    )[0]


def some_weights(data, seed=0):
    """Weights with many zeros, and two columns in which no source counts."""
    rng = np.random.default_rng(seed)
    shape = len(data.untrusted), N_COLUMNS
    values = 100 * rng.random(shape) * (rng.random(shape) < 0.6)
    values[:, 4:6] = 0.0
    return GivenWeights(values)


def some_points(data, n_points=N_COLUMNS, seed=1):
    outputs = 1 if data.n_classes == 2 else data.n_classes
    return np.random.default_rng(seed).normal(size=(data.X.shape[1], n_points, outputs))


def naive(data, weights, points, columns, at=None):
    """Add up row after row of the untrusted sources, in double precision."""
    outputs = points.shape[2]
    total = np.zeros((len(points) + 1, outputs, len(columns)))
    table = weights.of(slice(None))
    for k, i in enumerate(data.untrusted):
        rows = data.rows(i)
        X, indicator = data.X[rows], np.eye(data.n_classes)[data.y[rows]]
        labels = 2.0 * indicator[:, 1:] - 1.0 if outputs == 1 else indicator
        for c, q in enumerate(columns):
            residual = probabilities(X @ points[:, c if at is None else at[c]]) - indicator
            residual = residual[:, 1:] if outputs == 1 else residual
            weighted = table[k, q] * data.row_shares[rows, None] * residual
            total[:-1, :, c] += X.T @ weighted
            total[-1, :, c] += (labels * weighted).sum(axis=0)
    return total


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reference", [0, 2, -1])
def test_equal_sums_row_by_row(n_classes, weighted, reference):
    data = pool(n_classes, weighted=weighted, reference=reference)
    weights, points = some_weights(data), some_points(data)
    gradients = SourceGradients(data, weights)
    assert len(gradients.groups) > 1
    for columns in (np.arange(N_COLUMNS), np.array([11, 3, 4, 0]), np.array([4, 5])):
        found = gradients(points[:, columns], columns)
        assert_same(found, naive(data, weights, points[:, columns], columns))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_may_stand_at_the_same_points(n_classes, weighted):
    data = pool(n_classes, weighted=weighted)
    weights, points = some_weights(data), some_points(data, n_points=3)
    columns, at = np.array([1, 2, 5, 8, 10]), np.array([0, 2, 1, 1, 0])
    gradients = SourceGradients(data, weights)
    found = gradients(points, columns, at)
    assert_same(found, naive(data, weights, points, columns, at))
    apart = gradients(points[:, at], columns)
    np.testing.assert_allclose(found, apart, rtol=1e-6, atol=1e-5)


def test_one_column_for_each_source_tells_what_it_says_of_a_point():
    data = pool(weighted=True)
    n = len(data.untrusted)
    point = some_points(data, n_points=1)
    columns, at = np.arange(n), np.zeros(n, dtype=int)
    sums = SourceGradients(data, GivenWeights(np.eye(n)))(point, columns, at)
    for k, i in enumerate(data.untrusted):
        rows = data.rows(i)
        X, shares, sign = data.X[rows], data.row_shares[rows], 2.0 * data.y[rows] - 1.0
        wrong = 1.0 / (1.0 + np.exp(sign * (X @ point[:, 0, 0])))
        np.testing.assert_allclose(
            sums[:5, 0, k], -X.T @ (shares * sign * wrong), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(sums[5, 0, k], -shares @ wrong, rtol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_small_blocks_change_nothing(n_classes, monkeypatch):
    data = pool(n_classes, counts=(100, 100, 20, 100, 7, 200))
    weights, points = some_weights(data), some_points(data)
    monkeypatch.setattr(source_gradients, "BLOCK", 64)
    gradients = SourceGradients(data, weights)
    columns = np.arange(N_COLUMNS)
    assert_same(gradients(points, columns), naive(data, weights, points, columns))
    at = columns % 3
    assert_same(gradients(points, columns, at), naive(data, weights, points, columns, at))


def test_columns_taken_some_at_a_time_have_the_same_gradients(monkeypatch):
    data = pool(4)
    weights, points = some_weights(data), some_points(data)
    whole = SourceGradients(data, weights)(points, np.arange(N_COLUMNS))
    monkeypatch.setattr(source_gradients, "WIDE", 20)
    parts = SourceGradients(data, weights)(points, np.arange(N_COLUMNS))
    np.testing.assert_allclose(parts, whole, rtol=1e-6, atol=1e-5)


def test_groups_without_some_sources_change_no_gradient():
    data = pool(3, counts=(100, 100, 20, 100, 100, 100))
    weights, points = some_weights(data), some_points(data)
    apart, together = SourceGradients(data, weights), SourceGradients(data, weights)
    together.groups = group_sources(data)
    together.counts = np.stack([weights.of(g.sources).any(axis=0) for g in together.groups])
    assert len(together.groups) < len(apart.groups)
    one, two = (gradients(points, np.arange(N_COLUMNS)) for gradients in (apart, together))
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("counts", [(60, 150, 20, 30, 7, 200), (300, 700, 5), (1, 2), (4, 4, 4)])
@pytest.mark.parametrize("alike", [False, True])
def test_every_source_but_the_reference_is_in_one_group(counts, alike):
    data = pool(counts=counts, reference=1)
    joins = np.full(len(counts) - 2, alike)
    groups = group_sources(data, alike=joins)
    grouped = np.concatenate([g.sources for g in groups])
    assert sorted(grouped.tolist()) == list(range(len(counts) - 1))
    rows = np.concatenate([taken_rows(g, data) for g in groups])
    assert sorted(rows.tolist()) == np.flatnonzero(data.source_of_row != 1).tolist()


def taken_rows(group, data):
    """Rows of a group, without those that only fill up."""
    if isinstance(group.rows, slice):
        return np.arange(len(data.y))[group.rows]
    return group.rows[group.shares > 0]


def test_sources_that_count_alike_are_taken_as_one():
    data = pool(counts=(50, 50, 20, 40, 80, 40))
    values = some_weights(data).values.copy()
    values[3] = 2.0 * values[2]  # of twice the rows
    values[1] = 0.5 * values[0]
    weights = GivenWeights(values)
    np.testing.assert_array_equal(
        weights.alike(data.row_counts[data.untrusted]), [False, False, True, False]
    )
    gradients = SourceGradients(data, weights)
    joined = [g for g in gradients.groups if g.joined]
    assert [(g.sources.tolist(), g.rows, g.shape) for g in joined] == [
        ([2, 3], slice(120, 240), (1, 120))
    ]
    columns, points = np.arange(N_COLUMNS), some_points(data)
    assert_same(gradients(points, columns), naive(data, weights, points, columns))
    at = columns % 3
    assert_same(gradients(points, columns, at), naive(data, weights, points, columns, at))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_where_all_rows_count_the_same_neighbours_are_taken_as_one(n_classes):
    data = pool(n_classes, counts=(16, 8, 20, 32, 32, 4))
    n = len(data.untrusted)
    weights = CutoffWeights(
        np.random.default_rng(0).random((2, n)),
        data.row_counts[data.untrusted].astype(float),
        np.array([0, 1, 1]),
        np.full(3, np.inf),
        np.array([0.5, 2.0, 1.0]),
    )
    gradients = SourceGradients(data, weights)
    # The reference is between them.
    assert [(g.sources.tolist(), g.joined) for g in gradients.groups] == [
        ([0, 1], True),
        ([2, 3, 4], True),
    ]
    points = some_points(data, n_points=3)
    assert_same(gradients(points, np.arange(3)), naive(data, weights, points, np.arange(3)))
    # One column by discrepancies is enough to tell them apart.
    apart = SourceGradients(data, replace(weights, cutoffs=np.array([np.inf, 0.5, np.inf])))
    assert not any(g.joined for g in apart.groups)


def test_neither_the_reference_nor_weighted_rows_are_merged():
    data = pool(counts=(20, 20, 20, 20))
    joined = [g.sources.tolist() for g in group_sources(data, alike=np.ones(2, bool)) if g.joined]
    assert joined == [[0, 1]]  # the third is behind the reference
    weighted = pool(counts=(20, 20, 20, 20), weighted=True)
    assert not any(g.joined for g in group_sources(weighted, alike=np.ones(2, bool)))


def test_single_precision_stays_single():
    data = pool()
    narrow = data.with_features(data.X.astype(np.float32))
    points = some_points(data)
    found = SourceGradients(narrow, some_weights(data))(
        points.astype(np.float32), np.arange(N_COLUMNS)
    )
    assert found.dtype == np.float32


def test_a_pool_of_nothing_but_the_reference_adds_up_to_nothing():
    data = pool(counts=(20,), reference=0)
    found = SourceGradients(data, untrusted_rows_of(np.ones((1, 3)), data))(
        some_points(data, n_points=3), np.arange(3)
    )
    assert found.shape == (6, 1, 3)
    assert not found.any()


def test_single_precision_residuals_keep_their_relative_precision():
    scores = np.linspace(-80, 80, 4001)[:, None]
    for sign in (1.0, -1.0):
        found = residuals(scores, np.full_like(scores, sign))
        np.testing.assert_allclose(found, -sign / (1 + np.exp(sign * scores)), rtol=1e-5)
    extreme = residuals(np.array([[1e5], [-1e5]]), np.array([[1.0], [1.0]]))
    np.testing.assert_allclose(extreme, [[0.0], [-1.0]])
    many = np.random.default_rng(0).normal(size=(50, 3, 4)) * 5
    label = np.arange(50) % 4
    outputs_first = many.transpose(0, 2, 1)
    found = residuals(outputs_first.reshape(50, 12), np.eye(4)[label])
    found = found.reshape(50, 4, 3).transpose(0, 2, 1)
    p = probabilities(many)
    expected = p - np.eye(4)[label][:, None, :]
    expected[np.arange(50), :, label] = -(p * (1 - np.eye(4)[label])[:, None, :]).sum(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-30)
