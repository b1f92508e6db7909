"""Trade-offs that are given up on the way have no share that matters."""

from dataclasses import replace

import numpy as np
import pytest

import sourcewise as sw
from sourcewise.core import choices
from sourcewise.core.discrepancy.methods import measure
from sourcewise.estimators import selection
from sourcewise.estimators.selection import choose_local_setting, select


def rows(n_bad=3, seed=0):
    rng = np.random.default_rng(seed)
    sources = np.repeat(np.arange(8), 60)
    X = rng.normal(size=(480, 10))
    y = (X[:, :4].sum(axis=1) + rng.logistic(size=480) > 0).astype(int)
    if n_bad == 7:
        y[sources > 0] = 1
    else:
        y[(sources > 0) & (sources <= n_bad)] ^= 1
    return X, y, sources


def prepared(n_bad=3):
    model = sw.SourceWeightedClassifier(reference=0, random_state=0)
    pool = model._prepare(*rows(n_bad))
    survey = pool.survey(choose_local_setting(pool), permute=False)
    return pool, measure("combined", survey, range(7))[0]


def test_giving_up_changes_next_to_nothing(monkeypatch):
    X, y, sources = rows()
    found = sw.SourceWeightedClassifier(reference=0, random_state=0).fit(X, y, sources=sources)
    assert np.isnan(found.selection_.losses).any()
    patient = replace(choices.DEFAULT, hopeless=np.inf)
    monkeypatch.setattr(choices, "DEFAULT", patient)
    whole = sw.SourceWeightedClassifier(reference=0, random_state=0).fit(X, y, sources=sources)
    assert not np.isnan(whole.selection_.losses).any()
    np.testing.assert_allclose(found.selection_.mixture, whole.selection_.mixture, atol=5e-3)
    np.testing.assert_allclose(found.source_weights_, whole.source_weights_, atol=5e-3)


def test_a_trade_off_that_ends_at_the_reference_alone_is_judged_by_it(
    monkeypatch,
):
    """All folds speak for the clean sources, so that the reference alone would be given up."""
    pool, measured = prepared(n_bad=0)
    trade_offs = pool.choices.trade_offs
    plain, _ = select(pool, measured, trade_offs)
    assert np.isnan(plain.losses[np.argmin(trade_offs)]).any()
    assert np.argmax(plain.mixture.sum(axis=1)) != np.argmin(trade_offs)
    in_the_end = np.ones(len(trade_offs), dtype=bool)
    monkeypatch.setattr(selection, "leave_reference_alone", lambda *_: in_the_end)
    found, _ = select(pool, measured, trade_offs)
    np.testing.assert_array_equal(found.losses, np.tile(found.losses[0], (len(trade_offs), 1)))
    assert np.isfinite(found.losses).sum() > np.isfinite(plain.losses[np.argmin(trade_offs)]).sum()
    assert found.mixture.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("n_bad", [3, 7])  # of seven: only the reference is looked at to the end
def test_known_models_of_the_reference_alone_give_the_same(n_bad):
    pool, measured = prepared(n_bad)
    trade_offs = pool.choices.trade_offs
    if n_bad == 7:
        trade_offs = trade_offs[[0, 1, -2, -1]]
    plain, _ = select(pool, measured, trade_offs)
    held_out = pool.folds.held_out
    shares = pool.reference.shares
    weights = np.where(held_out, 0.0, shares)
    sizes = 1.0 / np.sum((weights / weights.sum(axis=1, keepdims=True)) ** 2, axis=1)
    per_row = (sizes[:, None] * weights / weights.sum(axis=1, keepdims=True)).T
    settings = pool.family.settings
    alone = pool.family.fit(
        pool.reference.X,
        pool.reference.y,
        np.repeat(per_row, len(settings), axis=1),
        np.tile(settings, len(held_out)),
    ).reshape(len(held_out), len(settings), 1, -1)
    known, _ = select(pool, measured, trade_offs, alone)
    if n_bad == 7:
        assert np.isnan(plain.losses[-2:, 2:]).all()
        assert not np.isnan(plain.losses[:2, 2:4]).any()
    np.testing.assert_allclose(known.mixture, plain.mixture, atol=2e-3)
    lowest = np.nanargmin(plain.losses)
    assert known.losses.ravel()[lowest] == pytest.approx(plain.losses.ravel()[lowest], abs=1e-3)
