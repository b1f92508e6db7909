from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.moments import concat_moments, moments_of, source_rows
from sourcewise.core.discrepancy.permutation import ask_here
from sourcewise.core.discrepancy.plug_in import plug_in_discrepancies, plug_in_question
from sourcewise.core.discrepancy.result import NO_WITNESS, Witness
from sourcewise.core.discrepancy.separation import separation_values


def make_data(seed, sizes, n_classes=2, n_features=4, corrupt=None, weighted=False, reference=0):
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
    weight = rng.uniform(0.2, 3.0, size=n_rows) if weighted else None
    return group_rows(X, y, source, reference=reference, n_classes=n_classes, sample_weight=weight)[
        0
    ]


def source_moments(data):
    return concat_moments([moments_of(source_rows(data, i)) for i in range(data.n_sources)])


def shuffled(rng, y):
    return rng.permutation(y)


def naive(data, source, positive, ridge):
    """Follow appendix B to the letter, by least squares on stacked rows."""
    i, t = data.rows(source), data.rows(data.reference)
    label = np.where(data.y == positive, 1.0, -1.0)
    X = np.vstack([data.X[i], data.X[t]])
    target = np.concatenate([-label[i], label[t]])
    root = np.sqrt(np.concatenate([data.row_shares[i], data.row_shares[t]]))
    n_features = X.shape[1]
    w = np.linalg.lstsq(
        np.vstack([root[:, None] * X, np.sqrt(ridge) * np.eye(n_features)]),
        np.concatenate([root * target, np.zeros(n_features)]),
    )[0]
    wrong_source = (data.X[i] @ w) * -label[i] < 0
    wrong_reference = (data.X[t] @ w) * label[t] < 0
    return abs(1 - data.row_shares[i] @ wrong_source - data.row_shares[t] @ wrong_reference)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_features", [3, 30])
def test_two_classes_equal_the_naive_formula(weighted, n_features):
    data = make_data(0, [25, 40, 7, 90], n_features=n_features, weighted=weighted, reference=2)
    result = plug_in_discrepancies(data, n_permutations=0)
    for i in (0, 1, 3):
        assert result.values[i] == pytest.approx(naive(data, i, 1, 1e-6), abs=1e-10)
        assert result.witnesses[i].hypothesis == "separating model"
    assert result.values[2] == 0.0
    assert result.witnesses[2] == NO_WITNESS


def test_several_classes_take_the_largest_one_against_rest_problem():
    data = make_data(1, [60, 40, 50], n_classes=4, corrupt={2: shuffled})
    result = plug_in_discrepancies(data, n_permutations=0)
    for i in (1, 2):
        each = [naive(data, i, k, 1e-6) for k in range(4)]
        assert result.values[i] == pytest.approx(max(each), abs=1e-10)
        assert result.witnesses[i].hypothesis == f"separating model of class {np.argmax(each)}"
    binary = replace(data, y=(data.y == 3).astype(int), n_classes=2)
    assert (result.values >= plug_in_discrepancies(binary, n_permutations=0).values - 1e-12).all()


def test_standard_error_is_that_of_two_proportions_at_the_witness():
    data = make_data(2, [80, 50])
    result = plug_in_discrepancies(data, n_permutations=0)
    moments = source_moments(data)
    w = np.linalg.solve(
        moments.gram.sum(axis=0) + 1e-6 * np.eye(5), moments.cross[0] - moments.cross[1]
    )[:, 0]
    wrong = (data.X @ w) * (2 * data.y - 1) < 0
    p, q = wrong[:80].mean(), wrong[80:].mean()
    expected = np.sqrt(p * (1 - p) / 80 + q * (1 - q) / 50)
    assert result.standard_errors == pytest.approx([0.0, expected])
    assert result.witnesses[1] == Witness("separating model", "source")


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_sets_of_reference_rows_are_as_good_as_references_of_their_own(n_classes):
    data = make_data(3, [20, 30, 25], n_classes, weighted=True, reference=1)
    reference = ReferenceRows.of(data)
    kept = np.random.default_rng(0).uniform(size=(3, 30)) < [[1.0], [0.5], [0.8]]
    shares = np.where(kept, reference.shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    found = ask_here(data, plug_in_question(reference, shares))
    for s in range(3):
        masked = data.row_shares.copy()
        masked[data.rows(1)] = shares[s]
        alone = plug_in_discrepancies(replace(data, row_shares=masked), n_permutations=0)
        np.testing.assert_allclose(separation_values(found)[s], alone.values[[0, 2]], rtol=1e-10)
        if s == 0:
            errors = np.take_along_axis(
                found["difference_errors"],
                np.abs(found["differences"][:1]).argmax(axis=1),
                axis=0,
            )
            np.testing.assert_allclose(errors[0], alone.standard_errors[[0, 2]], rtol=1e-10)


@pytest.mark.parametrize("n_features", [4, 60])  # fewer and more than there are rows
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_copy_of_the_reference_has_no_discrepancy(n_features, n_classes, weighted):
    data = make_data(4, [30], n_classes, n_features=n_features)
    X, y = np.vstack([data.X, data.X]), np.tile(data.y, 2)
    weight = np.tile(np.random.default_rng(0).uniform(0.2, 3.0, size=30), 2)
    data, _ = group_rows(
        X, y, np.repeat([0, 1], 30), reference=0, n_classes=n_classes,
        sample_weight=weight if weighted else None,
    )  # fmt: skip
    result = plug_in_discrepancies(data)
    assert result.values[1] == 0.0
    assert result.p_values[1] > 0.9


def test_a_copy_of_the_reference_in_other_order_has_no_discrepancy():
    # Sums of the same rows in another order differ by rounding.
    data = make_data(4, [30], n_features=60)
    other = np.random.default_rng(0).permutation(30)
    X, y = np.vstack([data.X, data.X[other]]), np.concatenate([data.y, data.y[other]])
    data, _ = group_rows(X, y, np.repeat([0, 1], 30), reference=0, n_classes=2)
    assert plug_in_discrepancies(data, n_permutations=0).values[1] == 0.0


@pytest.mark.parametrize("n_features", [2, 40])
def test_regression_dominates_every_model_in_the_ball_and_is_attained(n_features):
    data = make_data(5, [30, 20, 25], n_classes=0, n_features=n_features, weighted=True)
    bound = 1.7
    result = plug_in_discrepancies(data, norm_bound=bound, n_permutations=0)
    moments = source_moments(data)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(5000, n_features + 1))
    w *= bound * rng.uniform(size=(5000, 1)) / np.linalg.norm(w, axis=1)[:, None]
    losses = [
        np.einsum("ki,ij,kj->k", w, moments.gram[i], w)
        - 2 * w @ moments.cross[i, :, 0]
        + moments.square[i, 0]
        for i in range(3)
    ]
    for i in (1, 2):
        # Climb from the best draw: a local search must arrive at the value and not beyond.
        gap = moments.gram[i] - moments.gram[0]
        slope = (moments.cross[i] - moments.cross[0])[:, 0]
        offset = (moments.square[i] - moments.square[0])[0]
        assert np.abs(losses[i] - losses[0]).max() <= result.values[i]
        reached = 0.0
        for sign in (1.0, -1.0):
            v = w[np.argmax(sign * (losses[i] - losses[0]))]
            step = 0.5 / np.abs(np.linalg.eigvalsh(gap)).max()
            for _ in range(3000):
                v = v + sign * step * (gap @ v - slope)
                v = v * min(1.0, bound / np.linalg.norm(v))
            reached = max(reached, abs(v @ gap @ v - 2 * slope @ v + offset))
        assert result.values[i] == pytest.approx(reached, rel=1e-4)


def test_default_norm_bound_is_the_norm_of_the_reference_regression():
    data = make_data(6, [40, 20], n_classes=0)
    rows = data.rows(0)
    X, y = data.X[rows] / np.sqrt(40), data.y[rows] / np.sqrt(40)
    w = np.linalg.solve(X.T @ X + 1e-6 * np.eye(5), X.T @ y)
    explicit = plug_in_discrepancies(data, norm_bound=np.linalg.norm(w), n_permutations=0)
    default = plug_in_discrepancies(data, n_permutations=0)
    np.testing.assert_allclose(default.values, explicit.values, rtol=1e-9)


def test_targets_orthogonal_to_the_features_still_leave_a_ball_to_search():
    X = np.tile([[1.0], [-1.0]], (4, 1))
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    data, _ = group_rows(X, y, np.repeat([0, 1], 4), reference=0, n_classes=0)
    # |w| <= 1, and the difference of losses is -2w.
    assert plug_in_discrepancies(data, n_permutations=0).values == pytest.approx([0.0, 2.0])


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_p_values_are_uniform_when_there_is_no_difference(n_classes):
    sizes = [25, 40]
    p = np.array(
        [
            plug_in_discrepancies(
                make_data([7, k], sizes, n_classes), n_permutations=99, seed=k
            ).p_values[1]
            for k in range(500)
        ]
    )
    assert 0.03 <= np.mean(p <= 0.05) <= 0.08
    # The p-value is uniform on 0.01, 0.02, ..., 1; spread it over the interval.
    assert kstest(p - np.random.default_rng(0).uniform(size=500) / 100, "uniform").pvalue > 0.01


@pytest.mark.parametrize("n_features, least", [(4, 0.02), (60, 0.0)])
def test_sample_weights_do_not_raise_false_alarms(n_features, least):
    p = np.array(
        [
            plug_in_discrepancies(
                make_data([8, k], [20, 20], n_features=n_features, weighted=True),
                n_permutations=39,
                seed=k,
            ).p_values[1]
            for k in range(300)
        ]
    )
    assert least <= np.mean(p <= 0.05) <= 0.08


@pytest.mark.parametrize("n_classes", [2, 3])
def test_bad_sources_get_small_p_values(n_classes):
    corrupt = {
        1: shuffled,
        2: lambda rng, y: (y + 1) % n_classes,
        3: lambda rng, y: np.where(rng.uniform(size=len(y)) < 0.6, 1, y),
    }
    data = make_data(8, [150] * 6, n_classes, corrupt=corrupt)
    p = plug_in_discrepancies(data).p_values
    assert (p[1:4] <= 0.01).all()
    assert (p[4:] > 0.05).all()
    assert p[0] == 1.0


def test_bad_regression_targets_get_small_p_values():
    corrupt = {
        1: shuffled,
        2: lambda rng, y: -y,
        3: lambda rng, y: y + 1.0,
        4: lambda rng, y: 2.0 * y,
    }
    data = make_data(9, [150] * 6, 0, corrupt=corrupt)
    p = plug_in_discrepancies(data).p_values
    assert (p[1:5] <= 0.01).all()
    assert p[5] > 0.05


def test_odd_sources_are_judged_all_the_same():
    data = make_data(10, [20, 1, 15, 3], n_features=25, corrupt={2: lambda rng, y: 0 * y})
    result = plug_in_discrepancies(data, n_permutations=19)
    assert np.isfinite(result.values).all()
    assert ((result.values >= 0.0) & (result.values <= 1.0)).all()
    assert ((result.p_values > 0.0) & (result.p_values <= 1.0)).all()
    assert np.isfinite(result.standard_errors).all()


def test_constant_regression_targets_are_judged_all_the_same():
    data = make_data(10, [20, 1, 15], 0, corrupt={i: lambda rng, y: 0 * y for i in range(3)})
    result = plug_in_discrepancies(data, n_permutations=19)
    assert result.values == pytest.approx([0.0] * 3)
    assert result.p_values.tolist() == [1.0] * 3


@pytest.mark.parametrize("n_classes", [2, 0])
def test_order_of_sources_does_not_matter(n_classes):
    data = make_data(11, [30, 20, 25, 10], n_classes)
    order = np.array([2, 0, 3, 1])
    rows = np.concatenate([np.arange(len(data.y))[data.rows(i)] for i in order])
    moved, _ = group_rows(
        data.X[rows],
        data.y[rows],
        np.repeat(np.arange(4), data.row_counts[order]),
        reference=1,
        n_classes=n_classes,
    )
    names = ["five", "six", "seven", "eight"]
    before = plug_in_discrepancies(data, names=names)
    after = plug_in_discrepancies(moved, names=[names[i] for i in order])
    np.testing.assert_allclose(after.values, before.values[order], rtol=1e-12)
    np.testing.assert_allclose(after.standard_errors, before.standard_errors[order], rtol=1e-12)
    np.testing.assert_array_equal(after.p_values, before.p_values[order])
    assert after.witnesses == tuple(before.witnesses[i] for i in order)


@pytest.mark.parametrize("n_classes", [2, 0])
def test_order_of_rows_within_a_source_does_not_matter(n_classes):
    data = make_data(12, [30, 20], n_classes)
    rows = np.concatenate([np.arange(30)[::-1], 30 + np.arange(20)[::-1]])
    turned = replace(data, X=data.X[rows], y=data.y[rows])
    before = plug_in_discrepancies(data, n_permutations=0)
    after = plug_in_discrepancies(turned, n_permutations=0)
    np.testing.assert_allclose(after.values, before.values, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 0])
def test_rows_of_zero_share_are_as_good_as_absent(n_classes):
    data = make_data(13, [30, 20], n_classes)
    kept = np.random.default_rng(0).uniform(size=50) < 0.7
    source = data.source_of_row
    masked, _ = group_rows(
        data.X, data.y, source, reference=0, n_classes=n_classes, sample_weight=1.0 * kept
    )
    short, _ = group_rows(
        data.X[kept], data.y[kept], source[kept], reference=0, n_classes=n_classes
    )
    one, other = plug_in_discrepancies(masked), plug_in_discrepancies(short)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-10)
    np.testing.assert_array_equal(one.p_values, other.p_values)


def test_without_permutations_there_are_no_p_values():
    p = plug_in_discrepancies(make_data(14, [20, 20, 20]), n_permutations=0).p_values
    np.testing.assert_array_equal(p, [1.0, np.nan, np.nan])


def test_a_name_is_needed_for_every_source():
    with pytest.raises(ValueError, match="2 sources but 3 names"):
        plug_in_discrepancies(make_data(15, [5, 5]), names=["a", "b", "c"])


def test_names_and_seed_draw_the_permutations():
    data = make_data(16, [30, 40, 40])
    by_position = plug_in_discrepancies(data).p_values
    np.testing.assert_array_equal(
        plug_in_discrepancies(data, names=[0, 1, 2]).p_values, by_position
    )
    others = [plug_in_discrepancies(data, names=names).p_values for names in ("abc", "abd")]
    assert others[0][1] == others[1][1]
    assert others[0][2] != others[1][2]
    assert (plug_in_discrepancies(data, seed=1).p_values[1:] != by_position[1:]).all()
