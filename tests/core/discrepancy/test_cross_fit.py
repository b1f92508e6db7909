from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.cross_fit import (
    cross_fit_discrepancies,
    cross_fit_question,
    random_folds,
)
from sourcewise.core.discrepancy.permutation import ask_here
from sourcewise.core.discrepancy.result import NO_WITNESS
from sourcewise.core.discrepancy.separation import separation_values


def make_data(seed, sizes, n_classes=2, n_features=4, corrupt=None):
    """Linear labels with noise; ``corrupt[i]`` maps ``(rng, y)`` to the labels of source i."""
    rng = np.random.default_rng(seed)
    n_rows = int(np.sum(sizes))
    source = np.repeat(np.arange(len(sizes)), sizes)
    X = np.hstack([rng.normal(size=(n_rows, n_features)), np.ones((n_rows, 1))])
    if n_classes:
        scores = X @ rng.normal(size=(n_features + 1, max(n_classes, 2)))
        y = np.argmax(scores + 0.3 * rng.gumbel(size=scores.shape), axis=1)
    else:
        y = X @ rng.normal(size=n_features + 1) / 3 + 0.3 * rng.normal(size=n_rows)
    for i, change in (corrupt or {}).items():
        y[source == i] = change(rng, y[source == i])
    return group_rows(X, y, source, reference=0, n_classes=n_classes)[0]


def assign_folds(data, n_folds):
    """Folds of all rows, of sources that are called by their position."""
    return np.concatenate([random_folds(n, n_folds, 0, i) for i, n in enumerate(data.row_counts)])


def shuffled(rng, y):
    return rng.permutation(y)


def naive(data, source, folds, n_folds, relative_ridge):
    """Fit on stacked rows of the other folds, judge on the fold; two classes."""
    side = {k: np.arange(len(data.y))[data.rows(k)] for k in (source, data.reference)}
    label = 2.0 * data.y - 1.0
    mean_squares = [np.mean(data.X[rows] ** 2) for rows in side.values()]
    ridge = relative_ridge * np.mean(mean_squares)
    differences = []
    for f in range(n_folds):
        X, target, root = [], [], []
        for k, rows in side.items():
            fit = rows[folds[rows] != f]
            X.append(data.X[fit])
            target.append(label[fit] if k == data.reference else -label[fit])
            root.append(np.full(len(fit), len(fit) ** -0.5))
        design = np.concatenate(root)[:, None] * np.vstack(X)
        n_features = design.shape[1]
        w = np.linalg.lstsq(
            np.vstack([design, np.sqrt(ridge) * np.eye(n_features)]),
            np.concatenate([np.concatenate(root) * np.concatenate(target), np.zeros(n_features)]),
        )[0]
        wrong = (data.X @ w) * label < 0
        error = {k: wrong[rows[folds[rows] == f]].mean() for k, rows in side.items()}
        differences.append(error[source] - error[data.reference])
    return abs(np.mean(differences))


def test_two_classes_equal_the_naive_formula():
    data = make_data(0, [40, 60, 20], corrupt={2: shuffled})
    folds = assign_folds(data, 4)
    result = cross_fit_discrepancies(data, n_folds=4, n_permutations=0)
    for i in (1, 2):
        assert result.values[i] == pytest.approx(naive(data, i, folds, 4, 0.1), abs=1e-10)
    assert result.values[0] == 0.0
    assert result.witnesses[0] == NO_WITNESS


def test_several_classes_name_the_one_that_differs():
    data = make_data(1, [200, 200], n_classes=4, corrupt={1: lambda rng, y: np.where(y == 2, 3, y)})
    assert "of class" in cross_fit_discrepancies(data, n_permutations=0).witnesses[1].hypothesis


def test_held_out_rows_do_not_enter_the_fit():
    data = make_data(2, [30, 30])
    folds = assign_folds(data, 2)
    y = np.where(folds == 0, 1 - data.y, data.y)
    turned, _ = group_rows(data.X, y, data.source_of_row, reference=0, n_classes=2)
    before = cross_fit_discrepancies(data, n_folds=2, n_permutations=0)
    after = cross_fit_discrepancies(turned, n_folds=2, n_permutations=0)
    # Exchanging the labels of fold 0 turns either the losses of a fold or its model round, never
    # both, so the difference changes its sign and nothing else.
    assert after.values[1] == pytest.approx(before.values[1], abs=1e-12)
    assert before.values[1] > 0.0
    assert after.witnesses[1].worse_on != before.witnesses[1].worse_on


def test_values_are_centred_when_there_is_no_difference():
    values, errors = [], []
    for k in range(60):
        result = cross_fit_discrepancies(
            make_data([3, k], [60, 60, 60], n_features=40), n_permutations=0
        )
        values.extend(result.values[1:])
        errors.extend(result.standard_errors[1:])
    # The absolute value of a centred normal has mean 0.8 standard errors.
    assert np.mean(values) < 1.1 * np.mean(errors)
    assert np.mean(values) < 0.1


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_p_values_are_uniform_when_there_is_no_difference(n_classes):
    p = np.array(
        [
            cross_fit_discrepancies(
                make_data([4, k], [25, 40], n_classes), n_folds=3, n_permutations=99, seed=k
            ).p_values[1]
            for k in range(400)
        ]
    )
    assert 0.03 <= np.mean(p <= 0.05) <= 0.08
    # The p-value is uniform on 0.01, 0.02, ..., 1; spread it over the interval.
    assert kstest(p - np.random.default_rng(0).uniform(size=400) / 100, "uniform").pvalue > 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bad_sources_stand_out(n_classes):
    corrupt = {
        1: shuffled,
        2: lambda rng, y: (y + 1) % n_classes,
        3: lambda rng, y: np.where(rng.uniform(size=len(y)) < 0.6, 1, y),
    }
    result = cross_fit_discrepancies(make_data(5, [150] * 6, n_classes, corrupt=corrupt))
    assert (result.p_values[1:4] <= 0.01).all()
    assert (result.p_values[4:] > 0.05).all()
    assert result.values[1:4].min() > result.values[4:].max()
    assert all(witness.worse_on == "source" for witness in result.witnesses[1:4])


def test_bad_regression_targets_stand_out():
    corrupt = {
        1: shuffled,
        2: lambda rng, y: -y,
        3: lambda rng, y: y + 1.0,
        4: lambda rng, y: 2.0 * y,
    }
    result = cross_fit_discrepancies(make_data(6, [150] * 7, 0, corrupt=corrupt))
    assert (result.p_values[1:5] <= 0.01).all()
    assert (result.p_values[5:] > 0.05).all()
    assert result.values[1:5].min() > result.values[5:].max()


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_odd_sources_are_judged_all_the_same(n_classes):
    data = make_data(
        7, [20, 1, 2, 4, 15], n_classes, n_features=25, corrupt={4: lambda rng, y: 0 * y}
    )
    result = cross_fit_discrepancies(data, n_permutations=19)
    assert np.isfinite(result.values).all()
    assert np.isfinite(result.standard_errors).all()
    assert ((result.p_values > 0.0) & (result.p_values <= 1.0)).all()


def test_a_single_row_is_judged_by_the_reference_model():
    data = make_data(8, [200, 1])
    folds = assign_folds(data, 5)
    fit, held = np.flatnonzero(folds[:200] != 0), np.flatnonzero(folds[:200] == 0)
    label = 2.0 * data.y - 1.0
    ridge = 0.1 * (np.mean(data.X[:200] ** 2) + np.mean(data.X[200] ** 2)) / 2
    gram = data.X[fit].T @ data.X[fit] / len(fit) + ridge * np.eye(5)
    w = np.linalg.solve(gram, data.X[fit].T @ label[fit] / len(fit))
    wrong = (data.X @ w) * label < 0
    result = cross_fit_discrepancies(data, n_permutations=0)
    assert folds[200] == 0
    assert result.values[1] == pytest.approx(abs(wrong[200] - wrong[held].mean()))


@pytest.mark.parametrize("sizes", [[1, 1], [1, 30], [2, 2]])
def test_a_tiny_reference_does_not_fail(sizes):
    result = cross_fit_discrepancies(make_data(9, sizes), n_permutations=9)
    assert np.isfinite(result.values).all()
    assert np.isfinite(result.p_values).all()


@pytest.mark.parametrize("n_classes", [2, 0])
def test_a_source_does_not_depend_on_the_others(n_classes):
    data = make_data(10, [30, 20, 25], n_classes)
    both = cross_fit_discrepancies(data, names=["eleven", "twelve", "thirteen"])
    kept = data.source_of_row != 1
    alone, _ = group_rows(
        data.X[kept],
        data.y[kept],
        np.repeat([1, 0], [30, 25]),
        reference=1,
        n_classes=n_classes,
    )
    single = cross_fit_discrepancies(alone, names=["thirteen", "eleven"])
    assert single.values[0] == pytest.approx(both.values[2], rel=1e-12)
    assert single.p_values[0] == both.p_values[2]


def test_folds_are_balanced_and_skip_rows_of_zero_share():
    assert np.bincount(random_folds(20, 5, 0, "a")).tolist() == [4] * 5
    assert sorted(random_folds(4, 5, 0, "b")) == [0, 1, 2, 3]
    data = make_data(11, [23, 4])
    weight = np.ones(27)
    weight[:3] = 0.0
    data, _ = group_rows(
        data.X, data.y, data.source_of_row, reference=0, n_classes=2, sample_weight=weight
    )
    reference = ReferenceRows.of(data)
    question = cross_fit_question(reference, reference.shares[None], 5, 0, 0, data.X.shape[1])
    assert question.message.sent["counts"].tolist() == [[4] * 5]
    answer = question.message.answer(data.select([1]), [1])
    assert (answer["fold_weights"][0, :, 0] > 0).tolist() == [True] * 4 + [False]


def test_folds_depend_on_rows_name_and_seed():
    folds = random_folds(50, 5, 0, "a")
    np.testing.assert_array_equal(random_folds(50, 5, 0, "a"), folds)
    assert (random_folds(50, 5, 0, "b") != folds).any()
    assert (random_folds(50, 5, 1, "a") != folds).any()


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_sets_of_reference_rows_are_as_good_as_references_of_their_own(n_classes):
    data = make_data(16, [20, 30, 25], n_classes)
    reference = ReferenceRows.of(data)
    kept = np.random.default_rng(0).uniform(size=(3, 20)) < [[1.0], [0.5], [0.8]]
    shares = np.where(kept, reference.shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    found = ask_here(data, cross_fit_question(reference, shares, 3, 0, 0, data.X.shape[1]))
    for s in range(3):
        masked = data.row_shares.copy()
        masked[data.rows(0)] = shares[s]
        alone = cross_fit_discrepancies(
            replace(data, row_shares=masked), n_folds=3, n_permutations=0
        )
        np.testing.assert_allclose(separation_values(found)[s], alone.values[1:], rtol=1e-9)


def test_rows_of_zero_share_are_as_good_as_absent():
    data = make_data(12, [30, 20])
    kept = np.random.default_rng(0).uniform(size=50) < 0.7
    source = data.source_of_row
    masked, _ = group_rows(
        data.X, data.y, source, reference=0, n_classes=2, sample_weight=1.0 * kept
    )
    short, _ = group_rows(data.X[kept], data.y[kept], source[kept], reference=0, n_classes=2)
    one, other = cross_fit_discrepancies(masked), cross_fit_discrepancies(short)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-10)
    np.testing.assert_array_equal(one.p_values, other.p_values)


def test_values_do_not_depend_on_the_unit_of_the_features():
    data = make_data(13, [40, 30])
    for factor in (1e-3, 1e3):
        scaled = cross_fit_discrepancies(data.with_features(factor * data.X))
        base = cross_fit_discrepancies(data)
        np.testing.assert_allclose(scaled.values, base.values, rtol=1e-9)
        np.testing.assert_array_equal(scaled.p_values, base.p_values)


def test_without_permutations_there_are_no_p_values():
    p = cross_fit_discrepancies(make_data(14, [20, 20]), n_permutations=0).p_values
    np.testing.assert_array_equal(p, [1.0, np.nan])


def test_impossible_folds_are_named():
    with pytest.raises(ValueError, match="at least 2 folds"):
        cross_fit_discrepancies(make_data(15, [4, 4]), n_folds=1)


def test_any_two_sources_have_a_fold_in_common():
    for n_rows in range(1, 9):
        assert 0 in random_folds(n_rows, 5, 0, n_rows)


def test_a_name_is_needed_for_every_source():
    data = make_data(15, [4, 4])
    for reference in (0, 1):
        with pytest.raises(ValueError, match="2 sources but 1 names"):
            cross_fit_discrepancies(replace(data, reference=reference), names=["a"])
