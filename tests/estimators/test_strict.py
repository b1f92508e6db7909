"""Columns that the reference says nothing about, and what ``strict=True`` does besides."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise import validation
from sourcewise.core.choices import DEFAULT, PAPER, STRICT
from sourcewise.core.feature_map import FeatureMap

SIZES = (80, 60, 50, 40, 900)


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(SIZES), 6))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return X, y, np.repeat(["gold", "a", "b", "c", "large"], SIZES)


def fit(X, y, s, **parameters):
    model = sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0, **parameters)
    return model.fit(X, y, sources=s)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("value", [0.0, 7.0])
@pytest.mark.parametrize("estimator", ["classifier", "regressor", "plug-in"])
def test_a_column_that_never_varies_in_the_reference_has_no_say(sparse, value, estimator):
    X, y, s = data()
    rng = np.random.default_rng(1)
    untrusted = s != "gold"
    odd = np.full((len(X), 1), value)
    odd[untrusted] += rng.normal(size=(untrusted.sum(), 1)) * rng.choice(
        [0, 1, 1e6], (untrusted.sum(), 1)
    )
    with_odd, without = (np.hstack([X, c]) for c in (odd, np.full((len(X), 1), value)))
    if sparse:
        with_odd, without = scipy.sparse.csr_array(with_odd), scipy.sparse.csr_array(without)
    if estimator == "regressor":
        models = [
            sw.SourceWeightedRegressor(reference="gold", cv=3, random_state=0).fit(
                rows, y + 0.0, sources=s
            )
            for rows in (with_odd, without)
        ]
    else:
        kind = {"discrepancy": "plug-in"} if estimator == "plug-in" else {}
        models = [fit(rows, y, s, **kind) for rows in (with_odd, without)]
    found, expected = models
    np.testing.assert_allclose(found.source_weights_, expected.source_weights_, atol=1e-8)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-7)
    np.testing.assert_allclose(found.predict(with_odd), expected.predict(without), atol=1e-6)
    assert np.ravel(found.coef_)[-1] == 0.0
    assert found.feature_range_[:, -1].tolist() == [value, value]


def test_the_papers_protocol_uses_all_columns():
    assert not PAPER.only_varying and PAPER.clip_quantile == 0.0


def test_features_are_cut_off_at_quantiles_of_the_reference():
    X, y, s = data()
    found = fit(X, y, s, strict=True)
    low, high = np.sort(X[s == "gold"], axis=0)[[2, -3]]  # of 80 rows, 2.5 % are two
    np.testing.assert_allclose(found.feature_range_, [low, high], atol=1e-12)
    far = X.copy()
    far[:, 2] = 1e9
    at_most = X.copy()
    at_most[:, 2] = high[2]
    np.testing.assert_allclose(found.predict_proba(far), found.predict_proba(at_most), atol=1e-9)


def test_sparse_and_dense_rows_are_cut_off_alike():
    X = data()[0] * (np.random.default_rng(2).random((sum(SIZES), 6)) < 0.5)
    dense, sparse = (
        FeatureMap.from_reference(x[:80], STRICT) for x in (X, scipy.sparse.csr_array(X))
    )
    np.testing.assert_allclose(sparse.bounds, dense.bounds, atol=1e-12)
    mapped = sparse(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(
        mapped.features.toarray() - mapped.shift, dense(X)[:, :-1], atol=1e-9
    )


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_no_source_counts_for_more_rows_than_twice_the_trusted(estimator):
    X, y, s = data()
    np.testing.assert_allclose(fit(X, y, s, estimator=estimator).source_sizes_, SIZES)
    found = fit(X, y, s, estimator=estimator, strict=True, trade_off=np.inf)
    np.testing.assert_allclose(found.source_sizes_, [80, 60, 50, 40, 160])
    np.testing.assert_allclose(found.source_weights_, found.source_sizes_ / 390, atol=1e-12)


def test_strict_is_an_option_that_changes_nothing_else():
    def changed(field):
        return not np.array_equal(getattr(DEFAULT, field.name), getattr(STRICT, field.name))

    names = {field.name for field in fields(DEFAULT) if changed(field)}
    assert names == {"clip_quantile", "size_cap"}
    with pytest.raises(ValueError) as caught:
        fit(*data(), strict="yes")
    assert str(caught.value) == validation.BAD_STRICT.format(value="yes")


def under_attack(seed, n_hostile, rows=1, trusted=80):
    """Three honest sources of 150 rows, hostile ones with flipped labels; and rows to judge by."""
    rng = np.random.default_rng(seed)
    sizes = [trusted, 150, 150, 150, n_hostile * rows, 2000]
    X = rng.normal(size=(sum(sizes), 8))
    y = (X @ rng.normal(size=8) / 2 + rng.logistic(size=len(X)) > 0).astype(int)
    s = np.repeat(["gold", "a", "b", "c", "hostile", "test"], sizes).astype("U20")
    hostile, test = s == "hostile", s == "test"
    y[hostile] = 1 - y[hostile]
    s[hostile] = [f"hostile {k // rows}" for k in range(hostile.sum())]
    return X[~test], y[~test], s[~test], X[test], y[test]


def test_many_tiny_names_gain_nothing_by_strict():
    errors, honest = [], []
    for seed in range(3):
        X, y, s, X_test, y_test = under_attack(seed, 300)
        few = np.isin(s, ["gold", "a", "b", "c"])
        models = fit(X, y, s), fit(X, y, s, strict=True), fit(X[few], y[few], s[few], strict=True)
        errors.append([1 - model.score(X_test, y_test) for model in models])
        honest.append([model.source_weights_[1:4].sum() for model in models])
        # No row of a name counts more than one of an honest source that lies as near.
        strict = models[1]
        a_row = (
            strict.source_weights_
            / np.unique(s, return_counts=True)[1][np.searchsorted(np.unique(s), strict.sources_)]
        )
        nearest = strict.discrepancies_[1:4].argmin() + 1
        farther = strict.discrepancies_[4:] >= strict.discrepancies_[nearest]
        assert a_row[4:][farther].max() <= 1.02 * a_row[nearest]
    default, strict, _ = np.mean(errors, axis=0)
    assert strict <= default + 0.01
    assert np.mean(honest, axis=0)[1] >= 0.8 * np.mean(honest, axis=0)[2]


@pytest.mark.parametrize("seed", range(4))
def test_strict_weighs_rows_and_not_names(seed):
    rng = np.random.default_rng(seed)
    X, y, s, *_ = under_attack(seed, 1, int(rng.integers(1, 160)))
    whole = fit(X, y, s, strict=True, trade_off=np.inf)
    for name in ("a", "hostile 0"):
        parts = s.copy()
        mine = np.flatnonzero(s == name)
        parts[mine] = [f"part {k}" for k in rng.integers(rng.integers(1, 80), size=len(mine))]
        found = fit(X, y, parts, strict=True, trade_off=np.inf)
        split = np.char.startswith(found.sources_.astype(str), "part")
        before = whole.source_weights_[whole.sources_ == name].sum()
        assert found.source_weights_[split].sum() <= 1.02 * before
