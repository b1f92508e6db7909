"""What sets each method apart, by hand where that is possible."""

import numpy as np
import pytest
from baseline_pools import make_pool
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from sourcewise.baselines import (
    AgreementFilter,
    AllData,
    ComponentMedian,
    FLTrust,
    GeometricMedian,
    MixMin,
    PairwiseFilter,
    ProbabilityMedian,
    RobustLogistic,
    SourceNormalized,
)
from sourcewise.baselines.pairwise_filter import (
    mean_losses,
    median_to_others,
    pairwise_discrepancies,
)
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.baselines.source_normalized import standardise_sources
from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import group_rows
from sourcewise.core.losses import brier_loss


@pytest.fixture
def pool():
    return make_pool


def make(each, **options):
    return each(reference="gold", random_state=0, **options)


def local_coefficients(X, y, sources, C):
    """scikit-learn's models of each source under the paper's protocol: constant penalised."""
    Xc = np.hstack([X, np.ones((len(X), 1))])
    learner = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
    names = list(dict.fromkeys(sources.tolist()))
    return np.stack([learner.fit(Xc[sources == s], y[sources == s]).coef_[0].copy() for s in names])


@pytest.fixture
def three_models(pool):
    X, y, sources = pool({"gold": 60, "good": 90, "bad": 90})
    return X, y, sources, local_coefficients(X, y, sources, 100.0)


def test_component_median_of_three_known_models(three_models):
    X, y, sources, local = three_models
    model = make(ComponentMedian, protocol="paper").fit(X, y, sources=sources)
    expected = np.sort(local, axis=0)[1]
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), expected, atol=2e-3)


def test_probability_median_of_three_known_models(three_models):
    X, y, sources, local = three_models
    model = make(ProbabilityMedian, protocol="paper").fit(X, y, sources=sources)
    scores = np.hstack([X, np.ones((len(X), 1))]) @ local.T
    expected = 1.0 / (1.0 + np.exp(-np.sort(scores, axis=1)[:, 1]))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expected, atol=1e-3)


def test_geometric_median_of_three_known_models(three_models):
    X, y, sources, local = three_models
    model = make(GeometricMedian, protocol="paper").fit(X, y, sources=sources)
    found = np.append(model.coef_[0], model.intercept_)
    best = minimize(lambda z: np.linalg.norm(local - z, axis=1).sum(), found, method="Nelder-Mead")
    np.testing.assert_allclose(found, best.x, atol=5e-3)


def test_medians_resist_a_minority_and_all_data_does_not(pool):
    X, y, sources = pool({"gold": 60, "good": 100, "fine": 100, "bad": 1500})
    test = pool({"gold": 500}, seed=1)
    for each in (GeometricMedian, ComponentMedian, ProbabilityMedian):
        assert make(each).fit(X, y, sources=sources).score(test.X, test.y) > 0.8
    assert make(AllData).fit(X, y, sources=sources).score(test.X, test.y) < 0.5


def test_a_single_class_has_the_authors_constant_model(pool):
    X, y, sources = pool({"gold": 60, "one": 30})
    y[sources == "one"] = 1
    for protocol in (None, "paper"):
        model = make(ProbabilityMedian, protocol=protocol).fit(X, y, sources=sources)
        np.testing.assert_allclose(model.local_coef_[1], 0.0)
        np.testing.assert_allclose(model.local_intercept_[1], 1.0)
    # The same where the user has put a constant column first.
    given = np.hstack([np.full((len(X), 1), 2.0), X])
    model = make(ProbabilityMedian, protocol="paper").fit(given, y, sources=sources)
    np.testing.assert_allclose(model.local_coef_[1], [[0.5, 0, 0, 0, 0]])


def test_normalisation_by_hand():
    X = np.array([[1.0, 5.0], [3.0, 5.0], [10.0, 0.0], [10.0, 4.0], [10.0, 8.0]])
    data, _ = group_rows(X, np.zeros(5, int), np.array([0, 0, 1, 1, 1]), reference=1, n_classes=2)
    Z, centre, scale = standardise_sources(data, 2)
    third = np.sqrt(1.5)
    expected = [[-1, 0, 1], [1, 0, 1], [0, -third, 1], [0, 0, 1], [0, third, 1]]
    np.testing.assert_allclose(Z, expected, atol=1e-12)
    np.testing.assert_allclose(centre, [10.0, 4.0])
    np.testing.assert_allclose(scale, [1.0, np.sqrt(32 / 3)])


@pytest.mark.parametrize("protocol", [None, "paper"])
def test_normalising_undoes_a_change_of_units(protocol, pool):
    X, y, sources = pool({"gold": 60, "good": 90, "fine": 80})
    plain = make(SourceNormalized, protocol=protocol).fit(X, y, sources=sources)
    other = X.copy()
    other[sources == "good"] = 100.0 + 7.0 * X[sources == "good"]
    moved = make(SourceNormalized, protocol=protocol).fit(other, y, sources=sources)
    np.testing.assert_allclose(plain.predict_proba(X), moved.predict_proba(X), atol=1e-3)


def test_robust_logistic_beats_all_data_against_flipped_rows(pool):
    X, y, sources = pool({"gold": 60, "good": 300, "bad": 160}, noise=0.05)
    test = pool({"gold": 500}, seed=1, noise=0.05)
    robust = make(RobustLogistic).fit(X, y, sources=sources)
    ordinary = make(AllData).fit(X, y, sources=sources)
    assert robust.score(test.X, test.y) >= ordinary.score(test.X, test.y)
    assert np.isfinite(robust.objective_)


def test_robust_logistic_at_an_endless_threshold_is_ordinary(pool):
    X, y, sources = pool({"gold": 60, "good": 60, "fine": 60})
    robust = make(RobustLogistic, threshold=1e6).fit(X, y, sources=sources)
    ordinary = make(AllData).fit(X, y, sources=sources)
    assert robust.C_ == ordinary.C_
    np.testing.assert_allclose(robust.predict_proba(X), ordinary.predict_proba(X), atol=1e-3)


def test_the_authors_grid(pool):
    X, y, sources = pool()
    model = make(RobustLogistic, protocol="paper").fit(X, y, sources=sources)
    assert np.isclose(1.0 / (2.0 * len(y) * 2.0 ** np.arange(-5, 5)), model.C_).any()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rivals_with_a_reference_see_through_a_bad_majority(n_classes, pool):
    rows = {"gold": 120, "good": 200, "bad-1": 200, "bad-2": 200, "bad-3": 200}
    X, y, sources = pool(rows, n_classes=n_classes)
    for each in (MixMin, AgreementFilter):
        model = make(each).fit(X, y, sources=sources)
        assert model.source_weights_[2:].max() < 0.03
        assert model.source_weights_[1] > 0.3
    trust = make(FLTrust).fit(X, y, sources=sources).source_weights_
    assert trust[1] > trust[2:].max()


def test_the_pairwise_filter_needs_a_majority(pool):
    rows = {"gold": 120, "a": 120, "b": 120, "c": 120, "bad-1": 120, "bad-2": 120}
    X, y, sources = pool(rows)
    model = make(PairwiseFilter).fit(X, y, sources=sources)
    assert (model.source_weights_[4:] == 0).all()
    assert model.median_discrepancies_[4:].min() > model.median_discrepancies_[:4].max()
    everything = make(PairwiseFilter, threshold=1.0).fit(X, y, sources=sources)
    np.testing.assert_allclose(everything.source_weights_, 1 / 6)
    swapped = {"gold": 120, "a": 120, "bad-1": 120, "bad-2": 120, "bad-3": 120}
    X, y, sources = pool(swapped)
    model = make(PairwiseFilter).fit(X, y, sources=sources)
    assert model.source_weights_[1] == 0  # the bad ones are the majority; the reference stays
    assert model.source_weights_[0] > 0


def test_pairwise_discrepancies_by_hand():
    losses = np.array([[0.1, 0.2, 0.9], [0.15, 0.1, 0.8], [0.7, 0.9, 0.3]])
    d = pairwise_discrepancies(losses)
    np.testing.assert_allclose(d, [[0, 0.1, 0.8], [0.1, 0, 0.7], [0.8, 0.7, 0]])
    np.testing.assert_allclose(median_to_others(d), [0.45, 0.4, 0.75])


def test_agreement_is_the_accuracy_of_the_references_model(pool):
    X, y, sources = pool({"gold": 200, "good": 300, "bad": 300}, noise=0.05)
    model = make(AgreementFilter).fit(X, y, sources=sources)
    good, bad = model.agreements_[1:]
    assert good > 0.9 and bad < 0.1
    assert good + bad == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ValueError, match="level must be between 0 and 0.5"):
        make(AgreementFilter, level=0.7).fit(X, y, sources=sources)


def test_losses_of_two_classes_are_brier_losses(pool):
    X, y, sources = pool({"gold": 50, "a": 40, "b": 1})
    model = make(PairwiseFilter)
    work = SharedFits(model._prepare(X, y, sources))
    losses = mean_losses(work, 1.0)
    models, half = work.half_models(1.0)
    data, family = work.pool.data, work.pool.family
    other = data.rows(0)
    expected = brier_loss(family.predict(models[1], data.X[other]), data.y[other]).mean()
    assert losses[1, 0] == pytest.approx(expected)
    unseen = [
        brier_loss(family.predict(models[0, k][None], data.X[j][None]), data.y[[j]])[0, 0]
        for j, k in enumerate(half[other])
    ]
    assert losses[0, 0] == pytest.approx(np.mean(unseen))
    trained = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    seen = half[other] != 0
    assert len(np.unique(half[other])) == 2
    penalty_free = np.append(
        np.ones(4), DEFAULT.intercept_penalty**-0.5
    )  # a light penalty by rescaling
    trained.fit(data.X[other][seen] * penalty_free, data.y[other][seen])
    np.testing.assert_allclose(models[0, 0, 0], trained.coef_[0] * penalty_free, atol=2e-3)
