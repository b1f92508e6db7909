import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import sourcewise.estimators.method as method
from sourcewise import SourceWeightedClassifier
from sourcewise.core.threads import one_blas_thread
from sourcewise.progress import listening


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_there_is_one_thread_inside_and_afterwards_as_many_as_before():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert before and set(before) == {2}
        with one_blas_thread(wanted=False):
            assert blas_threads() == before
        with one_blas_thread(), one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            1 / 0  # noqa: B018
        assert blas_threads() == before


def test_own_products_run_on_one_thread_and_the_callers_setting_comes_back(class_pool, monkeypatch):
    seen = []
    original = method.select

    def spy(*arguments):
        seen.extend(blas_threads())
        return original(*arguments)

    monkeypatch.setattr(method, "select", spy)
    before = blas_threads()
    X, y, sources = class_pool()
    SourceWeightedClassifier(reference="gold", random_state=0).fit(X, y, sources=sources)
    assert seen and set(seen) == {1}
    assert blas_threads() == before


def test_selection_tells_how_far_it_is(class_pool):
    X, y, sources = class_pool()
    told = []
    with listening(lambda stage, done, total: told.append((stage, done, total))):
        SourceWeightedClassifier(reference="gold", random_state=0).fit(X, y, sources=sources)
    counts = np.array([(done, total) for stage, done, total in told if stage == "selection"])
    assert (np.diff(counts[:, 0]) >= 0).all()
    assert counts[-1, 0] == counts[-1, 1] > 0
