"""Measuring by name: whole, fold by fold, and source after source."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_sources import draw_folds, make

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.cross_fit import cross_fit_discrepancies
from sourcewise.core.discrepancy.methods import DISCREPANCIES, Survey, know_nothing_loss, measure
from sourcewise.core.discrepancy.plug_in import plug_in_discrepancies
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss, clipped_squared_loss
from sourcewise.core.ridge import RidgeFamily
from sourcewise.engines.memory import MemorySources

every_method = pytest.mark.parametrize("name", DISCREPANCIES)


def squared(predictions, y):
    return clipped_squared_loss(predictions, y, scale=2.0)


def survey_of(data, names=None, **others):
    names = list(range(data.n_sources)) if names is None else names
    reference = ReferenceRows.of(data)
    sources = MemorySources(data, [names[i] for i in data.untrusted])
    settings = np.array([1.0])
    return Survey(
        sources=sources,
        reference=reference,
        name=names[data.reference],
        folds=draw_folds(data, 3, 1, seed=0),
        family=LogisticFamily(2, settings, tol=1e-10) if data.n_classes else RidgeFamily(settings),
        setting=1.0,
        loss=brier_loss if data.n_classes else squared,
        seed=0,
        choices=DEFAULT,
        numbers=(sources, reference),
        **others,
    )


@pytest.fixture(scope="module")
def data():
    """Six sources, the reference in the middle."""
    made = make([40, 30, 1, 60, 25, 33], flipped=(3,))
    return made.select([1, 2, 0, 3, 4, 5])


def assert_same(found, expected):
    for name in ("values", "standard_errors", "p_values"):
        np.testing.assert_allclose(
            getattr(found.result, name), getattr(expected.result, name), rtol=1e-5, atol=1e-6
        )
    assert found.result.witnesses == expected.result.witnesses
    np.testing.assert_allclose(found.without_fold, expected.without_fold, rtol=1e-5, atol=1e-6)


@every_method
def test_sources_asked_later_are_measured_as_if_all_were_asked_at_once(name, data):
    survey = survey_of(data, n_permutations=19)
    together, _ = measure(name, survey, range(5))
    first, found = measure(name, survey, [0, 1, 2])
    assert len(first.result.values) == 3
    later, _ = measure(name, survey, [3, 4], known=found)
    assert_same(later, together)
    again, _ = measure(name, survey, [], known=measure(name, survey, range(5))[1])
    assert_same(again, together)


@every_method
def test_every_source_and_fold_has_a_value(name, data):
    told = []
    measured, _ = measure(name, survey_of(data, on_answer=told.append), range(5))
    assert measured.without_fold.shape == (3, 5)
    assert np.isfinite(measured.without_fold).all()
    assert ((measured.result.values >= 0) & (measured.result.values <= 1)).all()
    assert np.argmax(measured.result.values[[0, 2, 3, 4]]) == 1  # the flipped one
    assert sum(told) == (10 if name == "combined" else 5)


@every_method
def test_nobody_to_ask(name, data):
    measured, found = measure(name, survey_of(data), [])
    assert found is None
    assert len(measured.result.values) == 0
    assert measured.without_fold.shape == (3, 0)


@pytest.mark.parametrize("n_classes", [2, 0])
@pytest.mark.parametrize("d", [4, 200])  # the latter in coordinates of all rows
@pytest.mark.parametrize(
    "name, plain",
    [("plug-in", plug_in_discrepancies), ("cross-fit", cross_fit_discrepancies)],
)
def test_linear_discrepancies_are_those_of_the_plain_functions(name, plain, d, n_classes):
    data = make([30, 20, 35, 1], d=d, flipped=(2,)).select([1, 0, 2, 3])
    if not n_classes:
        data = replace(data, y=data.y + 0.5 * data.X[:, 0], n_classes=0)
    survey = survey_of(data, n_permutations=19)
    rotated = survey.sources.in_row_space(survey.reference.X)
    assert (rotated is not None) == (d == 200)
    measured, _ = measure(name, survey, range(3))
    options = {"n_folds": 3} if name == "cross-fit" else {}
    expected = plain(data, n_permutations=19, **options).select([0, 2, 3])
    np.testing.assert_allclose(measured.result.values, expected.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        measured.result.standard_errors, expected.standard_errors, rtol=1e-5, atol=1e-9
    )
    np.testing.assert_array_equal(measured.result.p_values, expected.p_values)
    # Without a fold: the reference is what is left of it.
    for v, out in enumerate(survey.folds.held_out):
        masked = data.row_shares.copy()
        masked[data.rows(1)] = np.where(out, 0.0, 1.0 / np.sum(~out))
        alone = plain(replace(data, row_shares=masked), n_permutations=0, **options)
        np.testing.assert_allclose(
            measured.without_fold[v], alone.values[[0, 2, 3]], rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("d", [4, 200])
def test_a_copy_of_the_reference_is_at_distance_zero_by_plug_in(d):
    data = make([30, 25], d=d)
    rows = data.rows_of([0, 1, 0])
    data, _ = group_rows(
        data.X[rows], data.y[rows], np.repeat([0, 1, 2], [30, 25, 30]), reference=0, n_classes=2
    )
    measured, _ = measure("plug-in", survey_of(data), range(2))
    assert measured.result.values[1] == 0.0
    assert measured.result.values[0] > 0.0


def test_values_without_folds_are_left_out_where_nobody_asks(data):
    for name in ("plug-in", "cross-fit"):
        measured, _ = measure(name, survey_of(data, with_folds=False), range(5))
        assert measured.without_fold.shape == (0, 5)
        whole, _ = measure(name, survey_of(data), range(5))
        np.testing.assert_allclose(measured.result.values, whole.result.values, rtol=1e-12)


def test_knowing_nothing_costs_what_frequencies_or_the_mean_do(data):
    y = data.y[data.rows(2)]
    share = y.mean()
    # Brier loss of guessing the frequency.
    expected = np.mean((y - share) ** 2)
    assert know_nothing_loss(ReferenceRows.of(data), brier_loss) == pytest.approx(expected)
    real = ReferenceRows.of(replace(data, y=data.X[:, 0], n_classes=0))
    expected = np.mean(squared(np.full(len(y), real.y.mean())[None], real.y))
    assert know_nothing_loss(real, squared) == pytest.approx(expected)
