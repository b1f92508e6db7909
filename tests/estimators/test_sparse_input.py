"""Sparse X gives what the same table gives as an array, and is never made one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise import columns, validation
from sourcewise.core import choices, linear, ridge
from sourcewise.core.discrepancy import permutation
from sourcewise.core.feature_map import FeatureMap
from sourcewise.engines import memory
from sourcewise.estimators import prepare


@pytest.fixture(autouse=True)
def copies_stay(monkeypatch):
    """Keep every row."""
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))


N_SOURCES, N_ROWS, D, WORDS = 5, 40, 130, 12


def made_up_text(n_classes=2):
    """Return counts of words (a few of which never occur), classes, and sources; 1 has no idea."""
    rng = np.random.default_rng(0)
    n = N_SOURCES * N_ROWS
    frequencies = 1.0 / np.arange(1, D + 1) * np.exp(rng.normal(size=(n_classes, D)))
    frequencies[:, -7:] = 0.0
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    y = rng.integers(0, n_classes, n)
    words = np.concatenate([rng.choice(D, WORDS, p=frequencies[label]) for label in y])
    counts = np.ones(len(words)), (np.repeat(np.arange(n), WORDS), words)
    sources = np.repeat(np.arange(N_SOURCES), N_ROWS)
    y[sources == 1] = rng.permutation(y[sources == 1])
    return scipy.sparse.csr_array(scipy.sparse.coo_array(counts, shape=(n, D))), y, sources


def classifier(**options):
    return sw.SourceWeightedClassifier(**{"reference": 0, "cv": 3, "random_state": 0, **options})


def regressor(**options):
    return sw.SourceWeightedRegressor(reference=0, cv=3, random_state=0, **options)


@pytest.fixture(scope="module")
def text():
    return made_up_text()


@pytest.fixture
def exact_joint_models(monkeypatch):
    """Arrays and sparse rows have solvers of their own, which meet where they are exact."""
    for name in ("JOINT_TOL", "JOINT_TOL_CLASSES", "JOINT_TOL_SPARSE"):
        monkeypatch.setattr(linear, name, 1e-10)


@pytest.fixture(scope="module")
def fitted(text):
    X, y, sources = text
    return classifier().fit(X, y, sources=sources)


def assert_same(model, other, atol=1e-6):
    np.testing.assert_allclose(model.discrepancies_, other.discrepancies_, atol=atol)
    np.testing.assert_allclose(model.source_weights_, other.source_weights_, atol=atol)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=atol)
    np.testing.assert_allclose(model.feature_range_, other.feature_range_)


# -- the same as an array --------------------------------------------------------------------


def test_classes(text, exact_joint_models):
    X, y, sources = text
    dense = classifier().fit(X.toarray(), y, sources=sources)
    fitted = classifier().fit(X, y, sources=sources)
    assert_same(fitted, dense, atol=1e-4)
    for model in (fitted, dense):
        for ask in ("predict", "predict_proba"):
            found, wanted = getattr(model, ask)(X), getattr(model, ask)(X.toarray())
            np.testing.assert_allclose(found, wanted, atol=1e-12)
        assert model.score(X, y) == model.score(X.toarray(), y)


@pytest.mark.parametrize("weighted", [False, True])
def test_regression(text, weighted):
    X, y, sources = text
    y = y + np.random.default_rng(1).normal(size=len(y))
    weight = np.arange(len(y)) % 3 if weighted else None
    dense = regressor().fit(X.toarray(), y, sources=sources, sample_weight=weight)
    assert_same(regressor().fit(X, y, sources=sources, sample_weight=weight), dense)
    np.testing.assert_allclose(dense.predict(X), dense.predict(X.toarray()), atol=1e-12)


def test_three_classes(exact_joint_models):
    X, y, sources = made_up_text(3)
    dense = classifier(trade_off=1.0).fit(X.toarray(), y, sources=sources)
    assert_same(classifier(trade_off=1.0).fit(X, y, sources=sources), dense, atol=1e-4)


def rare_words(n_classes):
    """Return rare columns of one deviation over all rows, as of a few trusted ones."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, max(n_classes, 2), 2000)
    often = np.where(np.arange(40) % max(n_classes, 2) == y[:, None], 0.35, 0.08)
    X = (rng.random((2000, 40)) < often) * rng.lognormal(sigma=1.2, size=(2000, 40))
    X, sources = (X / X.std(axis=0))[:120], np.repeat([0, 1, 2], 40)
    return X, (y[:120] if n_classes else X[:, ::2].sum(axis=1)), sources


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_columns_that_the_reference_wants_alike_become_so(n_classes, exact_joint_models):
    X, y, sources = rare_words(n_classes)
    make = classifier if n_classes else regressor
    dense = make().fit(X, y, sources=sources)
    sparse = make().fit(scipy.sparse.csr_array(X), y, sources=sources)
    assert sparse.scaling_ == dense.scaling_ == "standard"
    assert_same(sparse, dense, atol=1e-4)


@pytest.mark.parametrize("own_constant", [False, True])
def test_the_papers_protocol(text, own_constant):
    X, y, sources = text
    if own_constant:
        X = scipy.sparse.csr_array(scipy.sparse.hstack([X, np.ones((X.shape[0], 1))]))
    paper = {"protocol": "paper", "trade_off": 1.0}
    dense = classifier(**paper).fit(X.toarray(), y, sources=sources)
    assert_same(classifier(**paper).fit(X, y, sources=sources), dense)


@pytest.mark.parametrize("method", ["combined", "local", "cross-fit", "plug-in"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_discrepancies(text, method, task, monkeypatch, exact_joint_models):
    monkeypatch.setattr(permutation, "COLUMNS", 50)
    X, y, sources = text
    if task == "regression":
        y = y + np.random.default_rng(1).normal(size=len(y))
    options = {"sources": sources, "reference": 0, "method": method, "cv": 3, "random_state": 0}
    found, wanted = (sw.estimate_discrepancies(each, y, **options) for each in (X, X.toarray()))
    # Local models are solved to seven digits, and p-values are the most sensitive to that.
    atol = 1e-7 if method in ("cross-fit", "plug-in") else 1e-3
    for name in ("values", "standard_errors", "p_values"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=atol)
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-5)
    assert found.witnesses == wanted.witnesses


def test_an_estimator_of_ones_own_with_a_linear_discrepancy(text):
    X, y, sources = text
    model = classifier(estimator=LogisticRegression(), discrepancy="plug-in", trade_off=1.0)
    sparse, dense = (
        model.fit(each, y, sources=sources).discrepancies_ for each in (X, X.toarray())
    )
    np.testing.assert_allclose(sparse, dense)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_sources_of_many_rows(text, make, monkeypatch, exact_joint_models):
    """Too many for their span: fitted stepwise, to the digits that joint models have anyway."""
    X, y, sources = text
    model = make(trade_off=1.0)
    dense = make(trade_off=1.0).fit(X.toarray(), y, sources=sources)
    for module in (linear, ridge, memory):
        monkeypatch.setattr(module, "MOST_ROWS", 30)
    assert_same(model.fit(X, y, sources=sources), dense, atol=2e-3)
    np.testing.assert_allclose(model.discrepancies_, dense.discrepancies_, atol=1e-5)


def test_the_bound(text, fitted):
    X, _, sources = text
    for options in (
        {"complexity": "linear"},
        {"complexity": "monte-carlo", "sources": sources, "random_state": 0},
    ):
        found, wanted = (
            fitted.generalization_bound(X=each, **options).complexity_term
            for each in (X, X.toarray())
        )
        assert found == pytest.approx(wanted)


def test_features_are_mapped_as_those_of_an_array():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((60, 9)) < 0.4, rng.normal(size=(60, 9)), 0.0)
    dense[:, 2] = 1e6 + rng.normal(size=60)  # zero lies beyond where it is cut off
    dense[:, 3], dense[:, 4], dense[:, 5] = 0.0, 7.0, 1e-9
    dense[50:, 6], dense[55:, 3] = 1e30, -2.0
    X = scipy.sparse.csr_array(dense)
    features = FeatureMap.from_reference(X[:40])
    wanted = FeatureMap.from_reference(dense[:40])
    np.testing.assert_allclose(features.centre, wanted.centre, atol=1e-12)
    np.testing.assert_allclose(features.scale, wanted.scale, rtol=1e-6)
    rows = wanted(X)
    np.testing.assert_allclose(rows @ np.eye(10), wanted(dense), atol=1e-7)
    few = wanted.for_rows(X[:50])
    assert few.kept.tolist() == [0, 1, 2, 6, 7, 8]  # the others do not vary in the reference
    assert few(X[:50]).shape[1] == 7
    model = rng.normal(size=(2, 7))
    coef, intercept = few.unmap(model)
    assert coef.shape == (2, 9) and (coef[:, 3:6] == 0.0).all()
    np.testing.assert_allclose(
        dense[:50] @ coef.T + intercept, few(X[:50]) @ model.T, rtol=1e-6, atol=1e-6
    )


def test_zeros_beyond_the_range_are_cut_off_in_sparse_rows_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X[:, 1] += 1e4
    model = sw.SourceWeightedClassifier(random_state=0).fit(X, X[:, 0] > 0)
    new = scipy.sparse.csr_matrix(np.where(rng.random((20, 3)) < 0.5, X[:20], 0.0))
    assert model.feature_range_[0, 1] > 0.0
    for each in (new, new.astype(np.float32)):
        np.testing.assert_allclose(
            model.predict_proba(each), model.predict_proba(each.toarray()), atol=1e-5
        )


# -- every kind of sparse matrix -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok"])
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_kinds_of_sparse_matrices(text, fitted, kind, container):
    X, y, sources = text
    same = getattr(scipy.sparse, f"{kind}_{container}")(X)
    model = classifier(trade_off=1.0).fit(same, y, sources=sources)
    wanted = classifier(trade_off=1.0).fit(X, y, sources=sources)
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    np.testing.assert_array_equal(model.predict_proba(same), wanted.predict_proba(X))


def test_frames_of_sparse_columns(text, fitted):
    X, y, sources = text
    names = [f"word {k}" for k in range(D)]
    frame = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_matrix(X), columns=names)
    model = classifier().fit(frame, y, sources=sources)
    np.testing.assert_array_equal(model.coef_, fitted.coef_)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(X))
    bad = scipy.sparse.csr_matrix(X, copy=True)
    bad.data[0] = np.nan
    frame = pd.DataFrame.sparse.from_spmatrix(bad, columns=names)
    with pytest.raises(ValueError, match=f"{names[bad.indices[0]]!r}"):
        classifier().fit(frame, y, sources=sources)
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([1.0, 2.0, 2.0], fill_value=2.0)})
    with pytest.raises(ValueError) as error:
        classifier().fit(frame, [0, 1, 0], sources=[0, 0, 0])
    assert str(error.value) == columns.SPARSE_AROUND.format(column="a", value=2.0)


def odd_forms(X):
    """Return the same matrix in forms that are allowed and rare."""
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    backwards = scipy.sparse.csr_array(
        (X.data[::-1].copy(), X.indices[::-1].copy(), X.indptr[-1] - X.indptr[::-1]),
        shape=X.shape,
    )[::-1]
    whole = X.tocoo()
    zero = np.array([0, 1]), np.array([D - 1, D - 2])
    halves = scipy.sparse.coo_array(
        (
            np.concatenate([whole.data / 2, whole.data / 2, [0.0, 0.0]]),
            tuple(np.concatenate([c, c, z]) for c, z in zip(whole.coords, zero, strict=True)),
        ),
        shape=X.shape,
    )
    return {"int64": wide, "unsorted": backwards, "halves": halves, "counts": X.astype(np.int8)}


@pytest.mark.parametrize("form", ["int64", "unsorted", "halves", "counts"])
def test_odd_forms(text, form):
    X, y, sources = text
    odd = odd_forms(X)[form]
    stored = odd.data.copy()
    model = classifier(trade_off=1.0).fit(odd, y, sources=sources)
    wanted = classifier(trade_off=1.0).fit(X, y, sources=sources)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-10)
    np.testing.assert_array_equal(odd.data, stored)  # the user's own is left alone


def test_single_precision(text, fitted):
    X, y, sources = text
    model = classifier().fit(X.astype(np.float32), y, sources=sources)
    np.testing.assert_allclose(model.source_weights_, fitted.source_weights_, atol=1e-3)


def test_rows_and_columns_without_entries(text, exact_joint_models):
    X, y, sources = text
    X = X.tolil()
    X[[0, 50, 51]] = 0.0
    X = X.tocsr()
    dense = classifier(trade_off=1.0).fit(X.toarray(), y, sources=sources)
    assert_same(classifier(trade_off=1.0).fit(X, y, sources=sources), dense, atol=1e-4)
    nothing = scipy.sparse.csr_array(X.shape)
    model = classifier(trade_off=1.0).fit(nothing, y, sources=sources)
    assert not model.coef_.any()


def test_words_that_the_reference_has_not_are_left_out_with_all_that_is_stored_of_them(text):
    X, y, sources = text
    lacking = X.tolil()
    lacking[np.flatnonzero(sources == 0)] = 0.0
    X = lacking.tocsr()
    rows = FeatureMap.from_reference(X[sources == 0]).for_rows(X)(X)
    assert rows.features.shape == (len(y), 0) and len(rows.features.data) == 0
    for model, target in ((classifier(), y), (regressor(), y.astype(float))):
        assert not model.fit(X, target, sources=sources).coef_.any()


# -- afterwards ------------------------------------------------------------------------------


def test_adding_a_source_is_fitting_from_scratch(text, fitted):
    X, y, sources = text
    old = sources < N_SOURCES - 1
    for new in (X[~old], X[~old].tocoo(), X[~old].toarray()):
        model = classifier().fit(X[old], y[old], sources=sources[old])
        assert_same(model.add_source(new, y[~old], N_SOURCES - 1), fitted)
    dense = classifier(trade_off=1.0).fit(X[old].toarray(), y[old], sources=sources[old])
    with pytest.raises(ValueError) as error:
        dense.add_source(X[~old], y[~old], "new")
    assert str(error.value) == validation.SPARSE_SOURCE.format(source="new")


def test_results_do_not_depend_on_the_order_of_sources(text, fitted):
    X, y, sources = text
    order = np.argsort(-sources, kind="stable")
    model = classifier().fit(X[order], y[order], sources=sources[order])
    assert model.sources_.tolist() == [4, 3, 2, 1, 0]
    np.testing.assert_allclose(model.source_weights_[::-1], fitted.source_weights_, atol=1e-8)
    np.testing.assert_allclose(model.coef_, fitted.coef_, atol=1e-6)


def test_report_and_other_trade_offs(text, fitted):
    assert len(fitted.report().to_frame()) == N_SOURCES
    assert fitted.at_trade_off(0.0).source_weights_[0] == 1.0


def test_wrong_input_is_told_in_a_sentence(text, fitted, monkeypatch):
    X, y, sources = text
    bad = X.copy()
    bad.data[[bad.indptr[45], bad.indptr[46]]] = np.nan, np.inf
    column = int(bad.indices[bad.indptr[45]])
    with pytest.raises(ValueError) as error:
        classifier().fit(bad, y, sources=sources)
    assert str(error.value) == validation.NOT_FINITE.format(
        source=1, what="NaN", column=column, count=1
    )
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(bad)
    with pytest.raises(ValueError, match="5 features"):
        fitted.predict(X[:, :5])
    with pytest.raises(ValueError, match="5 columns instead of 130"):
        fitted.add_source(X[:, :5], y, "new")
    with pytest.raises(ValueError) as error:
        classifier().fit(X, scipy.sparse.csr_array(y[:, None]), sources=sources)
    assert str(error.value) == validation.SPARSE_VECTOR.format(what="y")
    large = X.copy()
    large.data[0] = 1e200
    with pytest.raises(ValueError, match=r"1e\+200 in column"):
        classifier().fit(large, y, sources=sources)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol": "paper"}, ("protocol='paper'", "leave it out")),
        (
            {"discrepancy": "cross-fit"},
            ("discrepancy='cross-fit'", "use discrepancy='combined' or 'local'"),
        ),
    ],
)
def test_too_many_rows_for_a_span_are_refused(text, options, words, monkeypatch):
    X, y, sources = text
    monkeypatch.setattr(prepare, "MOST_ROWS", 2 * N_ROWS - 1)
    with pytest.raises(ValueError) as error:
        classifier(**options).fit(X, y, sources=sources)
    assert str(error.value) == validation.SPARSE_PAIR.format(
        option=words[0], instead=words[1], most=2 * N_ROWS - 1, source=1, rows=2 * N_ROWS
    )


def test_what_cannot_be_read_is_refused_in_a_sentence(text, fitted):
    X, y, sources = text
    for refused in (
        lambda: classifier().fit(X.astype(complex), y, sources=sources),
        lambda: fitted.predict(X.astype(complex)),
    ):
        with pytest.raises(ValueError) as error:
            refused()
        assert str(error.value) == validation.COMPLEX_FEATURES
    broken = X.copy()
    broken.indices[0] = D + 5
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        classifier().fit(broken, y, sources=sources)
    for name in ("sources", "sample_weight"):
        given = {"sources": sources, name: scipy.sparse.csr_array(np.ones((len(y), 1)))}
        with pytest.raises(ValueError) as error:
            classifier().fit(X, y, **given)
        assert str(error.value) == validation.SPARSE_VECTOR.format(what=name)


def test_frames_of_truth_values_are_numbers(text):
    X, y, sources = text
    frame = pd.DataFrame.sparse.from_spmatrix(X > 0)
    assert {dtype.subtype for dtype in frame.dtypes} == {np.dtype(bool)}
    frame.columns = [f"w{k}" for k in range(D)]
    found = classifier().fit(frame, y, sources=sources)
    plain = classifier().fit((X > 0).astype(float), y, sources=sources)
    np.testing.assert_array_equal(found.coef_, plain.coef_)


def test_rows_are_never_made_dense(text, monkeypatch):
    X, y, sources = text

    def watched(original):
        def make_dense(self, *args, **kwargs):
            # Inner products of rows are dense by nature, and as many as rows times rows.
            assert self.shape[0] == self.shape[1] or self.shape[1] < D // 2, "made dense"
            return original(self, *args, **kwargs)

        return make_dense

    for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.csc_array):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, watched(getattr(kind, name)))
    with pytest.raises(AssertionError, match="made dense"):
        X.toarray()
    model = classifier().fit(X, y, sources=sources)
    model.predict_proba(X)
    model.at_trade_off(1.0)
    for module in (linear, ridge, memory):
        monkeypatch.setattr(module, "MOST_ROWS", 30)
    classifier(trade_off=1.0).fit(X, y, sources=sources)
