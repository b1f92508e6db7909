"""`protocol="paper"` against a plain rewriting of the paper's text, one fit at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression

from sourcewise import SourceWeightedClassifier
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds

TRADE_OFFS = [0.0, *(2.0**k for k in range(-10, 10)), 1e4]
REGULARISATIONS = np.logspace(-4, 4, 10)


def naive_discrepancy(X, y, X_reference, y_reference):
    """Appendix B: flip the source's labels, fit both by least squares, compare error rates."""
    rows = np.vstack([X, X_reference])
    targets = np.concatenate([1 - 2 * y, 2 * y_reference - 1])
    weights = np.repeat([1 / len(y), 1 / len(y_reference)], [len(y), len(y_reference)])
    # The ridge as extra rows, so that an independent solver does the work.
    d = rows.shape[1]
    system = np.vstack([rows * np.sqrt(weights)[:, None], np.sqrt(1e-6) * np.eye(d)])
    right = np.concatenate([targets * np.sqrt(weights), np.zeros(d)])
    w = np.linalg.lstsq(system, right, rcond=None)[0]
    wrong_flipped = np.mean((X @ w) * (1 - 2 * y) < 0)
    wrong_reference = np.mean((X_reference @ w) * (2 * y_reference - 1) < 0)
    return abs(1 - wrong_flipped - wrong_reference)


def naive_weights(discrepancies, sizes, trade_off):
    """Eq. 6 by its optimality conditions and a root finder."""
    d, m = np.asarray(discrepancies), np.asarray(sizes, dtype=float)
    if trade_off == 0:
        return np.array([1.0] + [0.0] * (len(d) - 1))

    def excess(mu):
        return np.sum(m * np.maximum(mu - d, 0) ** 2) - trade_off**2

    mu = brentq(excess, 0, d.max() + trade_off + 1, xtol=1e-15, rtol=1e-14)
    inside = m * np.maximum(mu - d, 0)
    return inside / inside.sum()


def naive_fit(blocks, alpha, C):
    """Rows of source i weigh alpha_i / m_i, scaled to total the number of rows in use."""
    used = [(X, y, a) for (X, y), a in zip(blocks, alpha, strict=True) if a > 0]
    total = sum(len(y) for _, y, _ in used)
    # At such a tolerance the line search of the default solver may give up, and warn.
    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    return model.fit(
        np.vstack([X for X, _, _ in used]),
        np.concatenate([y for _, y, _ in used]),
        np.concatenate([np.full(len(y), total * a / len(y)) for _, y, a in used]),
    )


def naive_protocol(blocks, held_out):
    """Choose (lambda, C) by the summed number of errors; the reference is the first block."""
    X_reference, y_reference = blocks[0]
    errors = np.zeros((len(TRADE_OFFS), len(REGULARISATIONS)), dtype=int)
    # Cells in which no row lies so near the boundary that a solver's tolerance decides: ours stops
    # at a relative decrease of 1e-8, so its scores are good to about the square root of that.
    clear = np.ones(errors.shape, dtype=bool)
    for mask in held_out:
        kept = X_reference[~mask], y_reference[~mask]
        found = [0.0, *(naive_discrepancy(X, y, *kept) for X, y in blocks[1:])]
        inside = [kept, *blocks[1:]]
        known: dict[bytes, np.ndarray] = {}
        for k, trade_off in enumerate(TRADE_OFFS):
            alpha = naive_weights(found, [len(y) for _, y in inside], trade_off)
            key = np.round(alpha, 9).tobytes()
            if key not in known:
                coef = np.array([naive_fit(inside, alpha, C).coef_[0] for C in REGULARISATIONS])
                known[key] = coef @ X_reference[mask].T
            errors[k] += np.sum((known[key] > 0) != y_reference[mask], axis=1)
            clear[k] &= np.abs(known[key]).min(axis=1) > 1e-4 * np.abs(known[key]).max(axis=1)
    # The first of the smallest, in order of lambda and then of C.
    k, c = np.unravel_index(np.argmin(errors), errors.shape)
    found = [0.0, *(naive_discrepancy(X, y, X_reference, y_reference) for X, y in blocks[1:])]
    alpha = naive_weights(found, [len(y) for _, y in blocks], TRADE_OFFS[k])
    return errors, clear, TRADE_OFFS[k], REGULARISATIONS[c], alpha, found


@pytest.mark.parametrize("seed", [0, 3])
def test_agrees_with_a_plain_rewriting(class_pool, seed):
    names = ["gold", "a", "b", "bad"]
    X, y, sources = class_pool(dict.fromkeys(names, 40), seed=seed)
    model = SourceWeightedClassifier(reference="gold", protocol="paper", random_state=seed)
    model.fit(X, y, sources=sources)

    with_constant = np.column_stack([X, np.ones(len(X))])
    blocks = [(with_constant[sources == name], y[sources == name]) for name in names]
    folds = ReferenceFolds.draw(blocks[0][1], 40, 5, 1, model._seed)
    errors, clear, trade_off, C, alpha, found = naive_protocol(blocks, folds.held_out)

    np.testing.assert_allclose(model.discrepancies_, found, atol=1e-12)
    assert clear.mean() > 0.9
    np.testing.assert_allclose(40 * model.selection_.losses[clear], errors[clear], atol=1e-9)
    assert model.trade_off_ == trade_off
    assert model.C_ == C
    np.testing.assert_allclose(model.source_weights_, alpha, atol=1e-9)
    final = naive_fit(blocks, alpha, C)
    np.testing.assert_allclose(model.coef_[0], final.coef_[0, :-1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.intercept_[0], final.coef_[0, -1], rtol=1e-4, atol=1e-6)


def test_a_constant_column_of_the_users_own_is_not_doubled(class_pool):
    X, y, sources = class_pool()
    options = {"reference": "gold", "protocol": "paper", "random_state": 0}
    without = SourceWeightedClassifier(**options).fit(X, y, sources=sources)
    ones = np.column_stack([X, np.ones(len(X))])
    having = SourceWeightedClassifier(**options).fit(ones, y, sources=sources)
    np.testing.assert_allclose(having.coef_[0, :-1], without.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(having.coef_[0, -1], without.intercept_[0], rtol=1e-5, atol=1e-8)
    np.testing.assert_array_equal(having.intercept_, 0.0)


def test_a_column_constant_in_the_reference_only_is_no_constant(class_pool):
    X, y, sources = class_pool()
    X[:, 3] = np.where(sources == "gold", 2.0, X[:, 3])
    model = SourceWeightedClassifier(reference="gold", protocol="paper", random_state=0)
    model.fit(X, y, sources=sources)
    assert model.intercept_[0] != 0.0


def test_the_discrepancy_parameter_is_ignored(class_pool):
    X, y, sources = class_pool()
    models = [
        SourceWeightedClassifier(
            reference="gold", protocol="paper", discrepancy=discrepancy, random_state=0
        ).fit(X, y, sources=sources)
        for discrepancy in ("local", "plug-in")
    ]
    np.testing.assert_array_equal(models[0].discrepancies_, models[1].discrepancies_)
