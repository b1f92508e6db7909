"""Shares of models in one: against a general solver, Bayes' rule, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import huber, log_softmax, softmax
from sklearn.metrics import log_loss

from sourcewise.core.losses import clipped_squared_loss
from sourcewise.core.mixture import HeldOutRows, mixture_shares

KINDS = ["two classes", "several classes", "regression"]


def make_rows(kind, n_rows=60, n_models=8, seed=0, strength=2.0):
    """Models that know something each, some of them of the wrong sign."""
    rng = np.random.default_rng(seed)
    n_classes = {"two classes": 2, "several classes": 4, "regression": 0}[kind]
    n_outputs = 4 if n_classes > 2 else 1
    knows = rng.uniform(-0.3, 1.0, size=n_models)
    truth = rng.normal(size=(n_rows, n_outputs, 1))
    scores = strength * (knows * truth + 0.5 * rng.normal(size=(n_rows, n_outputs, n_models)))
    noisy = strength * truth[:, :, 0] + rng.normal(size=(n_rows, n_outputs))
    y = {0: noisy[:, 0], 2: (noisy[:, 0] > 0).astype(int)}.get(n_classes, noisy.argmax(axis=1))
    row_shares = rng.uniform(0.5, 1.5, size=n_rows)
    return HeldOutRows(scores, y, row_shares / row_shares.sum(), 0.8 * n_rows, n_classes, 1.5)


def plain_cost(rows, scores):
    """Minus the log-likelihood of scores (n_rows, n_outputs), by the definition."""
    if not rows.n_classes:
        units = 2.0 * rows.scale
        best = min(
            (rows.scores[:, 0, k] for k in range(rows.scores.shape[2])),
            key=lambda one: rows.row_shares @ clipped_squared_loss(one, rows.y, scale=rows.scale),
        )
        losses = 2.0 * huber(1.0, (scores[:, 0] - rows.y) / units)
        losses[np.abs(best - rows.y) >= units] = 1.0
        return 0.5 * rows.size * np.log(rows.row_shares @ losses)
    if rows.n_classes == 2:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    log_p = log_softmax(scores, axis=1)[np.arange(len(scores)), rows.y]
    return -rows.size * float(rows.row_shares @ log_p)


def own_costs(rows):
    return np.array([plain_cost(rows, rows.scores[:, :, k]) for k in range(rows.scores.shape[2])])


def plain_objective(rows, log_prior, shares, own=None):
    own = own_costs(rows) if own is None else own
    prior = softmax(log_prior)
    divergence = np.sum(shares * (np.log(np.maximum(shares, 1e-300)) - np.log(prior)))
    together = plain_cost(rows, rows.scores @ shares)
    return 0.5 * together + 0.5 * shares @ own + divergence


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_no_general_solver_finds_better_shares(kind, seed):
    rows = make_rows(kind, seed=seed)
    log_prior = np.random.default_rng(seed).normal(size=8)
    found = mixture_shares(rows, log_prior)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    own = own_costs(rows)
    value = plain_objective(rows, log_prior, found, own)
    starts = [softmax(log_prior), np.full(8, 1 / 8), *(0.9 * np.eye(8) + 0.1 / 8)]
    for start in starts:
        other = minimize(
            lambda q: plain_objective(rows, log_prior, q, own),
            start,
            method="SLSQP",
            bounds=[(1e-12, 1.0)] * 8,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0},
            options={"ftol": 1e-12, "maxiter": 300},
        )
        assert value <= other.fun + 1e-5
    np.testing.assert_allclose(rows.costs(rows.scores)[3], plain_cost(rows, rows.scores[:, :, 3]))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_the_cost_of_classes_is_the_log_loss_of_scikit_learn(kind):
    rows = make_rows(kind)
    scores = rows.scores[:, :, 0]
    if rows.n_classes == 2:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    p, labels = softmax(scores, axis=1), np.arange(rows.n_classes)
    expected = rows.size * log_loss(rows.y, p, sample_weight=rows.row_shares, labels=labels)
    np.testing.assert_allclose(plain_cost(rows, rows.scores[:, :, 0]), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_derivatives(kind):
    rows = make_rows(kind)
    shares = np.random.default_rng(1).dirichlet(np.ones(8))
    gradient, curvature = rows.slopes(rows.scores @ shares)
    step = 1e-5 * np.eye(8)
    ahead, behind = (
        np.array([plain_cost(rows, rows.scores @ (shares + sign * s)) for s in step])
        for sign in (1, -1)
    )
    np.testing.assert_allclose(gradient, (ahead - behind) / 2e-5, atol=1e-4)
    if rows.n_classes:  # of targets the second derivative is Gauss and Newton's
        slopes = [(rows.slopes(rows.scores @ (shares + s))[0] - gradient) / 1e-5 for s in step]
        np.testing.assert_allclose(curvature, slopes, rtol=1e-3, atol=1e-2)
    assert np.linalg.eigvalsh(curvature).min() > -1e-8


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_joint_likelihood_it_is_bayes_rule(kind):
    rows, log_prior = make_rows(kind), np.linspace(-1.0, 1.0, 8)
    expected = softmax(log_prior - rows.costs(rows.scores))
    np.testing.assert_allclose(mixture_shares(rows, log_prior, 0.0), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_neither_order_nor_copies_matter(kind):
    rows, log_prior = make_rows(kind), np.linspace(-1.0, 1.0, 8)
    found = mixture_shares(rows, log_prior)

    def with_models(order):
        return HeldOutRows(
            rows.scores[:, :, order], rows.y, rows.row_shares, rows.size, rows.n_classes, rows.scale
        )

    order = np.random.default_rng(0).permutation(8)
    np.testing.assert_allclose(
        mixture_shares(with_models(order), log_prior[order]), found[order], atol=1e-7
    )
    twice = np.append(np.arange(8), 2)  # with half of the prior each
    halved = np.append(log_prior, log_prior[2])
    halved[[2, 8]] -= np.log(2.0)
    again = mixture_shares(with_models(twice), halved)
    np.testing.assert_allclose(again[2], again[8], atol=1e-7)
    np.testing.assert_allclose(np.append(again[:2], again[3:8]), np.delete(found, 2), atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_without_rows_the_prior_is_left_and_with_many_the_best(kind):
    rows = make_rows(kind, n_models=5)
    log_prior = np.linspace(-1.0, 1.0, 5)
    none = HeldOutRows(rows.scores, rows.y, rows.row_shares, 1e-9, rows.n_classes, rows.scale)
    np.testing.assert_allclose(mixture_shares(none, log_prior), softmax(log_prior), atol=1e-6)
    # One model is right and all others know nothing: nothing makes up for it.
    truth = rows.scores.copy()
    truth[:, :, 1:] = 0.0
    truth[:, :, 0] = rows.y[:, None] if not rows.n_classes else 3.0 * one_hot(rows)
    right = HeldOutRows(truth, rows.y, rows.row_shares, 1e4, rows.n_classes, rows.scale)
    assert mixture_shares(right, log_prior)[0] > 0.99


def one_hot(rows):
    if rows.n_classes == 2:
        return 2.0 * rows.y[:, None] - 1.0
    return (rows.y[:, None] == np.arange(rows.n_classes)).astype(float)


def test_models_that_make_up_for_each_other_are_both_used():
    # Bayes' rule takes the one that is a little better: half of all rows stay unknown.
    scores = np.zeros((200, 1, 2))
    y = np.tile([0, 1], 100)
    scores[:100, 0, 0] = scores[100:, 0, 1] = 6.0 * y[:100] - 3.0
    scores[:6, 0, 0] = 0.0
    rows = HeldOutRows(scores, y, np.full(200, 1 / 200), 200.0, 2)
    shares = mixture_shares(rows, np.zeros(2))
    assert shares.min() > 0.4
    assert softmax(-rows.costs(scores)).min() < 0.03


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.0, 1e-8, 1e8])
def test_scores_of_any_size_are_no_trouble(kind, factor):
    rows = make_rows(kind)
    scores = rows.scores.copy()
    scores[:, :, :3] *= factor
    found = mixture_shares(
        HeldOutRows(scores, rows.y, rows.row_shares, rows.size, rows.n_classes, rows.scale),
        np.zeros(8),
    )
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)
    if factor > 1:
        assert found[:3].max() < 1e-6  # certain of everything, and wrong at times


def test_one_model_has_it_all():
    rows = make_rows("two classes", n_models=1)
    assert mixture_shares(rows, np.zeros(1)).tolist() == [1.0]


def test_no_model_is_too_far_off_to_be_left_out():
    # Clipped, it would lose no more than its mixtures with a good one.
    rng = np.random.default_rng(0)
    y = rng.normal(size=6)
    good, wild = 0.7 * y, 1e6 * rng.normal(size=6)
    scores = np.stack([good, wild, 10.0 * wild], axis=1)[:, None, :]
    shares = mixture_shares(HeldOutRows(scores, y, np.full(6, 1 / 6), 6.0, 0), np.zeros(3))
    assert shares[1:] @ [1e6, 1e7] < 0.1


def test_a_target_that_is_wrong_itself_tells_nothing():
    rows = make_rows("regression")
    y = rows.y.copy()
    y[0] = 1e6
    kept = np.arange(len(y)) > 0
    shares = np.where(kept, rows.row_shares, 0.0)
    others = HeldOutRows(rows.scores, rows.y, shares / shares.sum(), rows.size, 0, rows.scale)
    spoilt = HeldOutRows(rows.scores, y, rows.row_shares, rows.size, 0, rows.scale)
    worse = [found.costs(rows.scores) for found in (others, spoilt)]
    assert np.argsort(worse[0]).tolist() == np.argsort(worse[1]).tolist()
    moved = HeldOutRows(rows.scores, np.where(kept, y, 2e6), *rest(spoilt))
    np.testing.assert_array_equal(moved.costs(rows.scores), worse[1])


def rest(rows):
    return rows.row_shares, rows.size, rows.n_classes, rows.scale


def test_a_perfect_prediction_of_targets_is_no_trouble():
    y = np.linspace(-1.0, 1.0, 20)
    scores = np.stack([y, np.zeros(20)], axis=1)[:, None, :]
    rows = HeldOutRows(scores, y, np.full(20, 0.05), 20.0, 0)
    assert mixture_shares(rows, np.zeros(2))[0] == pytest.approx(1.0, abs=1e-4)
