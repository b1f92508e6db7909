"""Baselines take sparse rows as they take an array, or refuse them in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from baseline_pools import make_pool
from sklearn.utils import get_tags

from sourcewise import baselines
from sourcewise.baselines import RobustLogistic, SourceNormalized, compare
from sourcewise.baselines import base as baseline_base
from sourcewise.core import linear
from sourcewise.engines import memory

CLASSES = [getattr(baselines, name) for name in baselines.__all__]
CLASSES = [
    each for each in CLASSES if isinstance(each, type) and issubclass(each, baseline_base.Baseline)
]
TAKE_SPARSE = [each for each in CLASSES if each is not SourceNormalized]


@pytest.fixture(scope="module")
def pool():
    pool = make_pool()
    return pool._replace(X=np.where(np.abs(pool.X) > 0.7, pool.X, 0.0))


def make(each):
    return each(reference="gold", cv=3, random_state=0)


@pytest.mark.parametrize("each", TAKE_SPARSE)
@pytest.mark.parametrize("protocol", [None, "paper"])
def test_as_from_an_array(each, protocol, pool):
    X, y, sources = pool
    sparse = scipy.sparse.csc_matrix(X)
    model = each(reference="gold", cv=3, random_state=0, protocol=protocol)
    wanted = model.fit(X, y, sources=sources).predict_proba(X)
    found = model.fit(sparse, y, sources=sources).predict_proba(sparse)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert get_tags(model).input_tags.sparse


@pytest.mark.parametrize("each", [each for each in TAKE_SPARSE if each is not RobustLogistic])
def test_sources_of_many_rows(each, pool, monkeypatch):
    X, y, sources = pool
    model = make(each)
    wanted = model.fit(X, y, sources=sources).predict_proba(X)
    for module in (linear, memory):
        monkeypatch.setattr(module, "MOST_ROWS", 50)
    found = model.fit(scipy.sparse.csr_array(X), y, sources=sources).predict_proba(X)
    np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_what_would_have_to_be_made_dense_is_refused(pool, monkeypatch):
    X, y, sources = pool
    monkeypatch.setattr(RobustLogistic, "_most_sparse_rows", 100)
    for each, some in ((SourceNormalized, ""), (RobustLogistic, " of more than 100 rows")):
        with pytest.raises(ValueError) as error:
            make(each).fit(scipy.sparse.csr_array(X), y, sources=sources)
        wanted = baseline_base.SPARSE_REFUSED.format(method=each.__name__, some=some)
        assert str(error.value) == wanted
    assert not get_tags(SourceNormalized()).input_tags.sparse


def test_a_comparison_of_all_leaves_out_what_does_not_take_sparse_rows(pool):
    X, y, sources = pool
    found = compare(
        scipy.sparse.coo_array(X),
        y,
        sources=sources,
        reference="gold",
        n_splits=2,
        cv=3,
        random_state=0,
    )
    assert "source normalized" not in found.methods and "robust logistic" in found.methods
