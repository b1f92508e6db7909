"""The paper's tables from results, the paper's own numbers beside them."""

from __future__ import annotations

from sourcewise.experiments.animals_errors import animals_errors_sheet
from sourcewise.experiments.animals_tables import animals_sheets
from sourcewise.experiments.layout import Sheet
from sourcewise.experiments.names import ALL_PRODUCTS, ANIMALS, PRODUCTS
from sourcewise.experiments.paper_numbers import on_published_data
from sourcewise.experiments.products_tables import all_products_sheet, books_sheet
from sourcewise.experiments.study_errors import Studies

EMPTY = "The results are empty: no run is finished yet; let 'sourcewise reproduce' go on."
UNKNOWN_STUDIES = "The results hold no study with tables; they hold {studies}."
MADE_BY = "Made by sourcewise {sourcewise}, seed {seed}, data: {data}."
STAND_IN = "The data stand in for the paper's, so its numbers are not shown."


def build_sheets(studies: Studies) -> list[Sheet]:
    """Make every table that the results have the numbers for.

    Parameters
    ----------
    studies : Studies

    Returns
    -------
    list of Sheet
    """
    check_not_empty(studies)
    published = on_published_data(studies.settings)
    remarks = provenance(studies.settings)
    errors = studies.errors
    sheets = []
    if ALL_PRODUCTS in errors:
        sheets.append(all_products_sheet(errors[ALL_PRODUCTS], remarks, published=published))
    if PRODUCTS in errors:
        sheets.append(books_sheet(errors[PRODUCTS], remarks, published=published))
    if ANIMALS in errors:
        animals = errors[ANIMALS]
        sheets += animals_sheets(animals, remarks, published=published)
        sheets += [
            animals_errors_sheet(animals.at_share(share), remarks) for share in animals.shares
        ]
    if not sheets:
        raise ValueError(UNKNOWN_STUDIES.format(studies=studies_in_words(studies)))
    return sheets


def check_not_empty(studies: Studies) -> None:
    """Refuse results without a row."""
    if not studies.errors:
        raise ValueError(EMPTY)


def studies_in_words(studies: Studies) -> str:
    """Name the studies there are."""
    return ", ".join(map(repr, sorted(studies.errors)))


def provenance(settings: dict[str, str]) -> list[str]:
    """Say what was run on what."""
    told = {key: settings.get(key, "not recorded") for key in ("sourcewise", "seed", "data")}
    return [MADE_BY.format(**told), *([] if on_published_data(settings) else [STAND_IN])]
