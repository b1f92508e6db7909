"""Findings are put together in the order of the sources, whoever answers first."""

import numpy as np
import pytest

from sourcewise.core.discrepancy.findings import concat_findings, gather, select_findings


def findings(sources):
    """Make findings that show which sources they are about."""
    sources = np.asarray(sources)
    by_set = 100 * np.arange(6).reshape(3, 2, 1) + sources
    return {"sets": by_set, "inner": {"p": sources / 10}, "sizes": sources.astype(float)}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["sets"], expected["sets"])
    np.testing.assert_array_equal(found["inner"]["p"], expected["inner"]["p"])
    np.testing.assert_array_equal(found["sizes"], expected["sizes"])


def test_findings_are_put_behind_each_other():
    parts = [findings([4, 2]), findings([0]), findings([3, 1])]
    assert_same(concat_findings(parts), findings([4, 2, 0, 3, 1]))
    assert_same(concat_findings(parts[:1]), findings([4, 2]))


@pytest.mark.parametrize("chosen", [[2, 0], [1], slice(1, 3), np.array([False, True, True])])
def test_some_are_selected_in_the_order_asked_for(chosen):
    sources = np.array([7, 8, 9])
    assert_same(select_findings(findings(sources), chosen), findings(sources[chosen]))


@pytest.mark.parametrize("seed", range(5))
def test_answers_out_of_order_come_into_the_order_of_their_sources(seed):
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.choice(100, size=12, replace=False))
    parts = np.split(rng.permutation(asked), [1, 4, 9])
    told = []
    found = gather(((some, findings(some)) for some in parts), told.append)
    assert_same(found, findings(asked))
    assert told == [1, 3, 5, 3]


def test_nobody_has_to_be_told():
    assert_same(gather([(np.array([3]), findings([3]))]), findings([3]))
