"""More features than rows: nothing may cost more than the rows make it."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import sourcewise as sw
from sourcewise import baselines
from sourcewise.core import grid_steps, logistic


def wide_sources(d=300, seed=0):
    rng = np.random.default_rng(seed)
    who = np.repeat(["reference", "good", "bad"], [40, 30, 30])
    X = rng.normal(size=(100, d)) * np.exp(-np.arange(d) / 30.0) + 1.0
    score = (X - 1.0)[:, :20].sum(axis=1)
    score[70:] *= -1
    return X, score, who


@pytest.fixture
def largest(monkeypatch):
    """Record the size of every matrix that the solvers invert."""
    sizes = [0]
    original, factor = logistic.inverse_with_ridge, grid_steps.cho_factor

    def inverse(curvature, ridge):
        sizes[0] = max(sizes[0], len(ridge))
        return original(curvature, ridge)

    def factorised(H, **options):
        sizes.append(len(H))
        return factor(H, **options)

    for module in ("logistic", "batched_logistic", "fold_logistic"):
        monkeypatch.setattr(f"sourcewise.core.{module}.inverse_with_ridge", inverse)
    monkeypatch.setattr(grid_steps, "cho_factor", factorised)
    return sizes


@pytest.mark.parametrize("protocol", [None, "paper"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_matrix_is_larger_than_the_rows_are_many(largest, protocol, n_classes):
    X, score, who = wide_sources()
    y = np.digitize(score, [0.0] if n_classes == 2 else [-1.0, 1.0])
    sw.SourceWeightedClassifier(protocol=protocol, random_state=0).fit(X, y, sources=who)
    outputs = 1 if n_classes == 2 else 3
    assert largest[0] <= 101
    assert 0 < max(largest[1:]) <= 101 * outputs


def as_the_learner_sees(trusted):
    # Far from the centre and of many sizes, these columns count as being in different units.
    return trusted.mean(axis=0), trusted.std(axis=0)


def test_coefficients_are_scikit_learns():
    X, score, who = wide_sources()
    model = sw.SourceWeightedClassifier(trade_off=1e9, random_state=0)
    model.fit(X, score > 0, sources=who)
    # Equal weights of all rows; the features as the learner sees them.
    centre, scale = as_the_learner_sees(X[:40])
    # Our constant has a penalty of 1e-3.
    Z = np.column_stack([(X - centre) / scale, np.full(100, 1e3**0.5)])
    rest = LogisticRegression(
        C=model.C_, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(Z, score > 0)
    np.testing.assert_allclose(model.coef_ * scale, rest.coef_[:, :-1], atol=2e-6)


def test_ridge_coefficients_are_scikit_learns():
    X, score, who = wide_sources()
    model = sw.SourceWeightedRegressor(trade_off=1e9, random_state=0).fit(X, score, sources=who)
    centre, scale = as_the_learner_sees(X[:40])
    rest = Ridge(alpha=1.0 / model.C_).fit((X - centre) / scale, score)
    np.testing.assert_allclose(model.coef_ * scale, rest.coef_, atol=1e-6)


def test_adding_a_source_another_trade_off_and_a_saved_model_are_as_ever(tmp_path):
    X, score, who = wide_sources()
    y = (score > 0).astype(int)
    fitted = sw.SourceWeightedClassifier(random_state=0).fit(X, y, sources=who)
    grown = sw.SourceWeightedClassifier(random_state=0).fit(X[:70], y[:70], sources=who[:70])
    grown.add_source(X[70:], y[70:], "bad")
    np.testing.assert_allclose(grown.discrepancies_, fitted.discrepancies_, atol=1e-5)
    np.testing.assert_allclose(grown.coef_, fitted.coef_, atol=1e-5)
    alone = fitted.at_trade_off(0.0)
    np.testing.assert_array_equal(alone.source_weights_, [1.0, 0.0, 0.0])
    sw.save(fitted, tmp_path / "model.skops")
    loaded = sw.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert list(fitted.report().to_frame()["source"]) == ["reference", "good", "bad"]


NAMES = [
    name
    for name in baselines.__all__
    if isinstance(getattr(baselines, name), type) and name not in ("Comparison", "Oracle")
]


@pytest.mark.parametrize("name", NAMES)
def test_baselines_are_those_in_the_original_basis(name, monkeypatch):
    X, score, who = wide_sources(d=130)
    y = (score > 0).astype(int)
    ours = getattr(baselines, name)(random_state=0).fit(X, y, sources=who).predict_proba(X)
    monkeypatch.setattr("sourcewise.core.row_space.MIN_FEATURES", 10**9)
    plain = getattr(baselines, name)(random_state=0).fit(X, y, sources=who).predict_proba(X)
    np.testing.assert_allclose(ours, plain, atol=1e-4)
