"""Estimators are functions with attributes: rows and options, a pool, a fit."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise.core.choices import DEFAULT
from sourcewise.core.discrepancy.methods import measure
from sourcewise.estimators.method import fit, measure_sources
from sourcewise.estimators.pool import Options, Training
from sourcewise.estimators.prepare import leave_out_copies, prepare
from sourcewise.estimators.rows import Rows
from sourcewise.estimators.task import Classes, Numbers


def by_functions(model, X, y, sources):
    """Fit without an estimator, to rows that need no check."""
    names = list(dict.fromkeys(sources.tolist()))
    codes = np.array([names.index(name) for name in sources])
    kind = Numbers if isinstance(model, sw.SourceWeightedRegressor) else Classes
    task = kind.learn(y, codes == names.index("gold"), DEFAULT, model.estimator)
    given = model.get_params(deep=False)
    same = ("reference", "discrepancy", "cv", "scaling", "trade_off", "estimator", "via", "n_jobs")
    seed = int(np.random.RandomState(model.random_state).randint(2**31 - 1))
    options = Options(
        task=task, seed=seed, choices=DEFAULT, columns=None, **{k: given[k] for k in same}
    )
    rows, copies = leave_out_copies(Rows(X, y, codes, None), names, options)
    pool = prepare(rows, names, options, copies=copies)
    return pool, fit(pool, permute=True)


@pytest.mark.parametrize("kind", [sw.SourceWeightedClassifier, sw.SourceWeightedRegressor])
@pytest.mark.parametrize("discrepancy", ["combined", "plug-in"])
def test_an_estimator_is_its_functions(class_pool, kind, discrepancy):
    X, y, sources = class_pool()
    y = y if kind is sw.SourceWeightedClassifier else X[:, 0] + y
    model = kind(reference="gold", discrepancy=discrepancy, random_state=0)
    pool, found = by_functions(model, X, y, sources)
    model.fit(X, y, sources=sources)
    np.testing.assert_array_equal(found.weights, model.source_weights_)
    np.testing.assert_array_equal(found.values, model.discrepancies_)
    assert (found.cutoff, found.selection.setting) == (model.cutoff_, model.C_)
    coef, intercept = model._task.in_units(*pool.features.unmap(found.model))
    np.testing.assert_array_equal(coef, model.coef_)
    np.testing.assert_array_equal(intercept, model.intercept_)
    p_values = model.discrepancy_result_.p_values  # those by permutation are drawn now
    assert np.isfinite(p_values).all()
    np.testing.assert_array_equal(
        found.measured.result.p_values, np.delete(p_values, pool.position)
    )
    with pytest.raises(FrozenInstanceError):
        found.weights = p_values


def test_beside_an_estimator_of_ones_own_the_default_learner_is_a_fit_of_the_same_sources(
    class_pool,
):
    X, y, sources = class_pool()
    model = sw.SourceWeightedClassifier(LogisticRegression(), reference="gold", random_state=0)
    pool, found = by_functions(model, X, y, sources)
    model.fit(X, y, sources=sources)
    for mine, theirs in zip(found.model, model.estimator_.members, strict=True):
        assert (mine.name, mine.share) == (theirs.name, theirs.share)
        if mine.name == "linear default":
            np.testing.assert_array_equal(mine.model.weights, theirs.model.source_weights_)
            assert mine.model.pool is pool.linear and theirs.model.copies_ is not None


def test_sources_that_are_known_are_not_asked_again(class_pool, monkeypatch):
    X, y, sources = class_pool()
    model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    pool, found = by_functions(model, X, y, sources)
    asked = []

    def counted(name, survey, positions, known=None):
        asked.append(list(positions))
        return measure(name, survey, positions, known=known)

    monkeypatch.setattr("sourcewise.estimators.method.measure", counted)
    again, *_ = measure_sources(pool, (found.training, found.measured))
    assert again is found.measured and not asked
    measure_sources(pool)
    assert asked == [list(range(pool.n_sources - 1))]


def test_a_pool_is_kept_as_long_as_the_training_lives_and_in_no_copy_of_it(class_pool):
    X, y, sources = class_pool()
    pool, found = by_functions(sw.SourceWeightedClassifier(reference="gold"), X, y, sources)
    training = found.training
    assert training.pool is None and not training.elsewhere
    assert training.keep(pool) is pool is training.pool
    assert pickle.loads(pickle.dumps(training)).pool is None
    assert Training(pool, None, np.nan).pool is pool  # of rows elsewhere there is nothing else


def test_a_pool_says_what_its_options_make_of_its_rows(class_pool):
    X, y, sources = class_pool()
    pool, _ = by_functions(sw.SourceWeightedClassifier(reference="gold"), X, y, sources)
    np.testing.assert_array_equal(pool.names_array[pool.position], pool.options.reference)
    np.testing.assert_allclose(pool.sizes, np.insert(pool.untrusted_sizes, pool.position, 40.0))
    np.testing.assert_array_equal(pool.row_counts + pool.copies.counts, [40, 80, 80])
    capped = replace(pool, options=replace(pool.options, choices=replace(DEFAULT, size_cap=1.5)))
    np.testing.assert_allclose(capped.sizes, [40.0, 60.0, 60.0])
    assert pool.selection_loss(np.array([[[0.2, 0.8]]]), np.array([1])) == -np.log(0.8)
    assert replace(pool, names=["gold", 1, ("a",)]).names_array.dtype == object
