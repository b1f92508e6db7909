"""Weights averaged over trade-offs: the average against one at a time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, solve_weights
from sourcewise.core.data import ReferenceRows
from sourcewise.estimators.cross_validation import (
    candidates,
    doublings_from,
    normality,
    setting_prior,
    total_weight,
    without_folds,
    without_small,
)
from sourcewise.estimators.method import measure_sources
from sourcewise.estimators.selection import Selection


def reference_rows(X, y):
    return ReferenceRows(X, y, np.full(len(X), 1.0 / len(X)), 2)


@given(arrays(float, 6, elements=st.floats(0.001, 1)), st.floats(0, 1))
def test_small_shares_are_left_out_and_the_largest_stays(before, least_share):
    before = before / before.sum()
    after = without_small(before, least_share)
    assert after.sum() == pytest.approx(1.0)
    left_out = before < min(least_share, before.max())
    assert (after[left_out] == 0).all()
    np.testing.assert_allclose(after[~left_out] / after.max(), before[~left_out] / before.max())


@pytest.mark.parametrize("n_features", [1, 30])
def test_a_score_is_expected_to_vary_as_much_as_noise(n_features):
    rng = np.random.default_rng(0)
    X = np.column_stack([3.0 * rng.normal(size=(4000, n_features)), np.ones(4000)])
    expected = 1.0 / (9.0 * n_features)
    pool = SimpleNamespace(
        reference=reference_rows(X, None),
        family=SimpleNamespace(settings=expected * np.array([0.1, 1.0, 10.0])),
        choices=SimpleNamespace(decades=1.0),
    )
    np.testing.assert_allclose(setting_prior(pool), [-0.5, 0.0, -0.5], atol=0.02)
    pool.reference = reference_rows(np.ones((4000, 1)), None)  # nothing but the constant
    assert np.isfinite(setting_prior(pool)).all()


def test_the_ends_of_the_grid_lie_two_doublings_beyond():
    found = doublings_from(np.array([0.0, 1.0, 2.0, 8.0, np.inf]), preferred=2.0, beyond=2.0)
    assert found.tolist() == [-3.0, -1.0, 0.0, 2.0, 4.0]
    assert doublings_from(np.array([0.0, np.inf]), preferred=2.0, beyond=2.0).tolist() == [
        -2.0,
        2.0,
    ]


def selection(trade_offs, shares):
    trade_offs, shares = np.array(trade_offs), np.array(shares)
    losses = np.zeros((len(trade_offs), 1))
    return Selection(trade_offs, np.array([1.0]), losses, shares[:, None])


def bound(weights, d, m, trade_off):
    return weights @ d + trade_off * np.sqrt(np.sum(weights**2 / m))


@given(
    arrays(float, 5, elements=st.floats(0.01, 1)),
    arrays(float, 5, elements=st.floats(1, 500)),
    arrays(float, 3, elements=st.floats(0.01, 1)),
    st.floats(0, 20),
)
def test_an_average_is_no_worse_than_its_parts_on_average(d, m, shares, trade_off):
    d[0] = 0.0
    shares = shares / shares.sum()
    trade_offs = [0.3, 2.0, 9.0]
    weights, cutoff = selection(trade_offs, shares).weigh(d, m)
    parts = [solve_weights(d, m, value) for value in trade_offs]
    np.testing.assert_allclose(weights, shares @ parts, atol=1e-12)
    main = trade_offs[int(np.argmax(shares))]
    assert cutoff == solve_weights(d, m, main, return_cutoff=True)[1]
    average = shares @ [bound(part, d, m, trade_off) for part in parts]
    assert bound(weights, d, m, trade_off) <= average + 1e-9


@pytest.mark.parametrize("trade_off", [0.0, 1.5, np.inf])
def test_one_trade_off_gives_its_own_weights(trade_off):
    d, m = np.array([0.0, 0.1, 0.3]), np.array([50.0, 80.0, 20.0])
    chosen = selection([trade_off, 4.0], [1.0, 0.0])
    weights, cutoff = chosen.weigh(d, m)
    expected, mu = solve_weights(d, m, trade_off, return_cutoff=True)
    np.testing.assert_allclose(weights, expected)
    assert cutoff == mu
    assert chosen.used == ((trade_off, 1.0),)


@pytest.mark.parametrize("kind", [SourceWeightedClassifier, SourceWeightedRegressor])
def test_a_model_uses_the_average_and_says_so(class_pool, kind):
    X, y, sources = class_pool({"gold": 30, "good": 60, "fine": 60, "bad": 60})
    if kind is SourceWeightedRegressor:
        y = X[:, 0] + 0.1 * np.arange(len(X)) % 1
    model = kind(reference="gold", random_state=0).fit(X, y, sources=sources)
    shares = model.report().shares
    assert len(shares) > 1  # 30 rows cannot tell neighbouring trade-offs apart
    expected = sum(
        share * solve_weights(model.discrepancies_, model.source_sizes_, value)
        for value, share in shares
    )
    np.testing.assert_allclose(model.source_weights_, expected)
    assert model.trade_off_ == max(shares, key=lambda pair: pair[1])[0]
    assert "the likeliest" in str(model.report())
    page = model.report().to_html()
    assert f"an average over {len(shares)} values of λ" in page and "was chosen" not in page
    fixed = model.at_trade_off(model.trade_off_)
    np.testing.assert_allclose(
        fixed.source_weights_,
        solve_weights(fixed.discrepancies_, fixed.source_sizes_, fixed.trade_off_),
    )
    assert "the likeliest" not in str(fixed.report())
    assert "an average over" not in fixed.report().to_html()


@pytest.mark.parametrize("seed", range(6))
def test_regularisation_is_that_of_the_weights_that_are_used(seed):
    # Targets ten times too large: a model of all rows that is shrunk to a tenth does well on
    # validation rows, and without these rows some trade-offs let the sources in.
    rng = np.random.default_rng(seed)
    sources = np.repeat(["gold", *"abcdefgh"], [80, *[120] * 8])
    X = rng.normal(size=(len(sources), 10))
    y = X[:, :5] @ np.full(5, 5**-0.5) + rng.normal(size=len(sources))
    y[sources != "gold"] *= 10.0
    model = SourceWeightedRegressor(reference="gold", random_state=0)
    found = model.fit(X, y, sources=sources)
    alone = clone(model).set_params(trade_off=0.0).fit(X, y, sources=sources)
    if found.source_weights_[0] == 1.0:
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=0.05)
    truth = X[sources == "gold", :5] @ np.full(5, 5**-0.5)
    losses = [np.mean((one.predict(X[sources == "gold"]) - truth) ** 2) for one in (found, alone)]
    assert losses[0] < losses[1] + 0.15


@pytest.mark.parametrize("seed", [1003, 1004, 1026])
def test_targets_in_other_units_do_not_ruin_a_tiny_reference(seed):
    # A trace of such a model would rule the average: its predictions are a million times too large.
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=8)
    X = rng.normal(size=(1810, 8))
    y = X @ truth + rng.normal(size=1810)
    sources = np.repeat(["gold", *"abcdefgh"], [10, *[100] * 8])
    trained, test = slice(0, 810), slice(810, None)
    given = np.where(sources == "gold", 1.0, 1e6) * y[trained]
    model = SourceWeightedRegressor(reference="gold", random_state=0)
    model.fit(X[trained], given, sources=sources)
    assert np.mean((model.predict(X[test]) - y[test]) ** 2) < 1.5 * np.var(y[test])


@pytest.mark.parametrize("seed", [1, 27, 44])
@pytest.mark.parametrize("spoil", ["in other units", "with placeholders"])
def test_a_trace_of_spoilt_features_does_not_spoil_the_model(spoil, seed):
    # With 60 rows a model that knows nothing is not much worse than the reference's own, and the
    # trade-offs that lead there keep a share of one or two in a hundred.
    rng = np.random.default_rng(seed)
    truth = 2.0 * rng.normal(size=8) / np.sqrt(8.0)

    def make(n_rows):
        X = rng.normal(size=(n_rows, 8))
        return X, rng.random(n_rows) < 1.0 / (1.0 + np.exp(-X @ truth))

    parts = [make(60)]
    for _ in range(8):
        X, y = make(100)
        parts.append((spoilt(X, spoil, rng), y))
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    sources = np.repeat(["gold", *"abcdefgh"], [60, *[100] * 8])
    X_test, y_test = make(2000)
    model = SourceWeightedClassifier(reference="gold", random_state=seed)
    found = clone(model).fit(X, y, sources=sources)
    alone = clone(model).set_params(trade_off=0.0).fit(X, y, sources=sources)
    assert found.score(X_test, y_test) > alone.score(X_test, y_test) - 0.03


def spoilt(X, how, rng):
    """Multiply all features, or write a placeholder into half of the cells."""
    if how == "in other units":
        return 100.0 * X
    return np.where(rng.random(X.shape) < 0.5, -999.0, X)


def test_the_paper_takes_one_trade_off(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", protocol="paper", random_state=0)
    model.fit(X, y, sources=sources)
    assert model.report().shares == ((model.trade_off_, 1.0),)


def test_a_target_without_noise_is_no_trouble(class_pool):
    X, _, sources = class_pool({"gold": 30, "good": 60, "bad": 60})
    y = X[:, 0] - 2.0 * X[:, 1]
    y[sources == "bad"] *= -1.0
    model = SourceWeightedRegressor(reference="gold", random_state=0).fit(X, y, sources=sources)
    assert np.isfinite(model.source_weights_).all()
    assert model.source_weights_[2] < 0.01
    constant = np.full(len(X), 3.0)
    model.fit(X, constant, sources=sources)
    np.testing.assert_allclose(model.predict(X), constant)
    np.testing.assert_allclose(model.source_weights_.sum(), 1.0)


def test_a_few_rows_with_most_of_the_loss_count_as_few():
    rng = np.random.default_rng(0)
    shares = np.full(20000, 1.0 / 20000)
    assert normality(rng.normal(size=20000) ** 2, shares) == pytest.approx(1.0, abs=0.05)
    assert normality(rng.laplace(size=20000) ** 2, shares) == pytest.approx(0.5, abs=0.05)
    assert normality(rng.uniform(-1.0, 1.0, size=20000) ** 2, shares) == 1.0
    # One row out of 300 has all of the loss: at most three can be counted.
    assert 300 * normality(np.eye(300)[0], np.full(300, 1.0 / 300)) == pytest.approx(3.0)
    assert normality(np.zeros(5), np.full(5, 0.2)) == 1.0
    assert normality(np.full(5, 1e-200), np.full(5, 0.2)) == 1.0


@pytest.mark.parametrize("seed", [0, 1, 10])
def test_a_few_large_errors_do_not_decide_on_lambda(seed):
    # A straight line through a bent cloud: most of the squared loss is a handful of rows.
    rng = np.random.default_rng(seed)
    sources = np.repeat(["gold", *"abcdef"], [100, *[100] * 6])
    z = rng.normal(size=len(sources)) + 0.2 * (sources != "gold")
    X = np.column_stack([np.exp(0.6 * z), z, rng.normal(size=(len(z), 2))])
    y = np.exp(1.2 * z + 0.2 * rng.normal(size=len(z)))
    model = SourceWeightedRegressor(reference="gold", random_state=0).fit(X, y, sources=sources)
    assert model.selection_.shares.max() < 0.6


def test_a_report_of_lambda_zero_does_not_speak_of_a_cut_off(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", trade_off=0.0, random_state=0)
    assert "only what is closest" in str(model.fit(X, y, sources=sources).report())


@pytest.mark.parametrize("effective", [True, False])
def test_row_weights_sum_to_the_rows_that_count(effective):
    weights, sizes, counts = np.array([0.5, 0.5, 0.0]), np.array([10.0, 40.0, 7.0]), [12, 50, 7]
    found = total_weight(weights, sizes, np.array(counts), effective)
    assert found == pytest.approx(1.0 / (0.25 / 10.0 + 0.25 / 40.0) if effective else 62.0)
    by_size = total_weight(sizes / sizes.sum(), sizes, np.array(counts), True)
    assert by_size == pytest.approx(sizes.sum())


def test_candidates_are_the_weights_of_every_trade_off_without_each_fold(class_pool):
    X, y, sources = class_pool()
    pool = SourceWeightedClassifier(reference="gold", random_state=0)._prepare(X, y, sources)
    measured, *_ = measure_sources(pool, with_folds=True)
    trade_offs = np.array([0.0, 0.1, 2.0, np.inf])
    problems, which = candidates(pool, measured, trade_offs)
    assert len(problems) < which.size  # zero and nearly so give the reference all weight
    data, which = pool.data, which.reshape(-1, len(trade_offs))
    for v, (sizes, _) in enumerate(without_folds(pool)):
        values = np.insert(measured.without_fold[v], pool.position, 0.0)
        kept = pool.reference.shares[~pool.folds.held_out[v]]
        assert sizes[pool.position] == pytest.approx(kept.sum() ** 2 / np.sum(kept**2))
        for trade_off, p in zip(trade_offs, which[v], strict=True):
            rows = problems.row_weights(data, p)
            found = np.add.reduceat(rows, data.starts[:-1]) / rows.sum()
            np.testing.assert_allclose(found, solve_weights(values, sizes, trade_off), atol=1e-9)
            assert not rows[data.rows(pool.position)][pool.folds.held_out[v]].any()
