"""How far features lie apart, before any label is looked at."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_sources import make

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.features import (
    describe_features,
    features_known,
    features_sent,
    judge_features,
)

CHOICES = DEFAULT
NO_NOISE = replace(CHOICES, feature_noise=0.0)


def feature_distances(data, choices=CHOICES):
    sent = features_sent(ReferenceRows.of(data), choices)
    answer = describe_features(data.select(data.untrusted.tolist()), **sent)
    return judge_features(answer, **features_known(sent, choices))["far"]


def grouped(parts, sample_weight=None):
    X = np.concatenate(parts)
    source = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    y = np.zeros(len(X), dtype=int)
    return group_rows(X, y, source, reference=0, n_classes=2, sample_weight=sample_weight)[0]


def naive(Z, X):
    """Squared distance of moment matrices, every pair of different rows by itself."""

    def mean(A, B, same):
        pairs = [(i, j) for i in range(len(A)) for j in range(len(B)) if not (same and i == j)]
        return np.mean([(A[i] @ B[j]) ** 2 for i, j in pairs])

    squared = mean(Z, Z, True) - 2.0 * mean(Z, X, False) + mean(X, X, True)
    return np.sqrt(max(squared, 0.0) / mean(X, X, True))


def test_equals_the_definition_pair_by_pair():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(20, 3)), 2.0 * rng.normal(size=(15, 3))
    found = feature_distances(grouped([X, Z]), NO_NOISE)
    np.testing.assert_allclose(found, naive(Z, X), rtol=1e-10)


def test_is_the_distance_of_moment_matrices_for_many_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2)) * [1.0, 2.0]
    Z = rng.normal(size=(3000, 2)) * [2.0, 1.0]
    # G_i - G_T = diag(3, -3), G_T = diag(1, 4)
    found = feature_distances(grouped([X, Z]), replace(NO_NOISE, feature_rows=10_000))
    np.testing.assert_allclose(found, np.sqrt(18.0 / 17.0), rtol=0.1)


def test_rows_like_the_references_are_at_zero():
    found = []
    for seed in range(40):
        data = make([60, 30, 60, 200], d=6, seed=seed)
        found.append(feature_distances(data) > 0)
    # Two standard deviations of a skewed distribution: a few percent.
    assert np.mean(found) < 0.1


def test_mixed_up_columns_are_found_without_a_label():
    rng = np.random.default_rng(2)
    scale = np.array([3.0, 2.0, 1.0, 0.5, 0.2])
    parts = [rng.normal(size=(n, 5)) * scale for n in (40, 30, 30, 30)]
    parts[2] = parts[2][:, ::-1]
    found = feature_distances(grouped(parts))
    assert found[1] > 0.5
    np.testing.assert_array_equal(found[[0, 2]], 0.0)


def test_weights_of_rows_count():
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(20, 3)), 2.0 * rng.normal(size=(10, 3))
    weight = np.ones(20 + 15)
    weight[30:] = 0.0
    far = grouped([X, np.concatenate([Z, 9.0 * Z[:5]])], weight)
    np.testing.assert_allclose(feature_distances(far, NO_NOISE), naive(Z, X), rtol=1e-10)


def test_many_rows_are_thinned_out_whatever_their_order():
    # Every second row is far away: a choice of every second row would see all or nothing of it.
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(200, 3)), rng.normal(size=(2 * CHOICES.feature_rows, 3))
    Z[::2] *= 4.0
    in_order = feature_distances(grouped([X, Z]))
    shuffled = feature_distances(grouped([X, rng.permutation(Z)]))
    np.testing.assert_allclose(in_order, shuffled, rtol=0.3)
    weight = np.ones(len(X) + len(Z))
    weight[len(X) :: 2] = 1e-6
    assert feature_distances(grouped([X, Z], weight)) < 0.2


@pytest.mark.parametrize("rows", [1, 2])
def test_too_few_rows_say_nothing(rows):
    rng = np.random.default_rng(5)
    parts = [rng.normal(size=(20, 3)), 100.0 * rng.normal(size=(rows, 3))]
    assert feature_distances(grouped(parts)) == 0.0
