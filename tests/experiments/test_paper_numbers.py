from __future__ import annotations

from itertools import product

import pytest

from sourcewise.baselines import comparison
from sourcewise.experiments.names import (
    ALL_PRODUCTS,
    ANIMALS,
    BASELINES,
    CORRUPTIONS,
    METHODS,
    PRODUCTS,
)
from sourcewise.experiments.paper_numbers import (
    animals_numbers,
    notebook_products,
    notebook_products_by_n,
    on_published_data,
    products_numbers,
    products_ranges,
)
from sourcewise.experiments.tables import cut

NUMBERS = (10, 20, 30, 40, 50, 55, 59)
SHARES = (1.0, 0.5, 0.2)


def test_baselines_are_called_as_in_the_library():
    assert set(BASELINES) < set(comparison.METHODS)


def test_names_are_those_that_the_runner_writes():
    runner = pytest.importorskip("sourcewise.experiments.catalog")
    corruptions = pytest.importorskip("sourcewise.experiments.animal_study")
    assert tuple(CORRUPTIONS) == tuple(corruptions.CORRUPTIONS)
    assert set(runner.STUDIES) == {PRODUCTS, ALL_PRODUCTS, ANIMALS}
    assert on_published_data({"data": runner.PUBLISHED})


def parts(cell):
    return [int(part) for part in cell.split("/")]


def test_every_table_is_there_and_nothing_else():
    keys = set(product(SHARES, (None, *CORRUPTIONS), BASELINES, NUMBERS))
    keys |= set(product(SHARES, (None,), BASELINES, (0,)))
    assert set(animals_numbers()) == keys


def test_cells_add_up_to_the_attributes():
    for (_, corruption, _, n), cell in animals_numbers().items():
        assert sum(parts(cell)) == (510 if corruption is None and n else 85)


@pytest.mark.parametrize("share", SHARES)
def test_corruptions_add_up_to_the_table_over_all(share):
    numbers = animals_numbers()
    for baseline, n in product(BASELINES, NUMBERS):
        each = [parts(numbers[share, corruption, baseline, n]) for corruption in CORRUPTIONS]
        assert [sum(column) for column in zip(*each, strict=True)] == parts(
            numbers[share, None, baseline, n]
        )


@pytest.mark.parametrize(
    ("share", "corruption", "baseline", "n", "cell"),
    [
        (1.0, None, "reference only", 0, "84/1/0"),
        (1.0, None, "source normalized", 40, "446/63/1"),
        (1.0, None, "robust logistic", 59, "485/25/0"),
        (1.0, "label-bias", "geometric median", 20, "19/66/0"),
        (1.0, "rgb-swap", "source normalized", 59, "79/6/0"),
        (0.5, None, "component median", 40, "247/259/4"),
        (0.5, "shuffled-labels", "probability median", 50, "40/45/0"),
        (0.5, "blur", "reference only", 59, "67/18/0"),
        (0.2, "label-bias", "probability median", 55, "13/70/2"),
        (0.2, "dead-pixels", "source normalized", 59, "1/84/0"),
        (0.2, "shuffled-features", "robust logistic", 59, "39/46/0"),
    ],
)
def test_cells_as_printed(share, corruption, baseline, n, cell):
    assert animals_numbers()[share, corruption, baseline, n] == cell


def test_products_as_printed():
    numbers = products_numbers()
    assert set(numbers) == set(METHODS) - {"default"}
    assert numbers["paper"] == (0.289, 0.0016)
    assert numbers["source normalized"] == (0.298, 0.0016)
    assert numbers["robust logistic"] == (0.353, 0.0021)
    assert products_ranges()["component median"] == (0.338, 0.375)


def test_the_notebook_has_more_digits_of_the_same_numbers():
    numbers = notebook_products()
    assert set(numbers) == set(products_numbers())
    for method, (error, spread) in products_numbers().items():
        assert cut(numbers[method].error, 3) == error
        assert cut(numbers[method].standard_error, 4) == spread
    assert numbers["paper"] == (0.28947, 0.00169)
    by_n = notebook_products_by_n()
    assert set(by_n) == set(products_ranges())
    for method, (low, high) in products_ranges().items():
        assert len(by_n[method]) == 11
        assert (cut(min(by_n[method]), 3), cut(max(by_n[method]), 3)) == (low, high)


def test_stand_ins_are_not_held_against_the_paper():
    assert on_published_data({"data": "published"})
    for data in ("awa1", "fdu-mtl", "synthetic"):
        assert not on_published_data({"data": data})
    assert not on_published_data({})
