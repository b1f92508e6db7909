"""The paper's tables from results, the paper's own numbers beside them."""

from __future__ import annotations

from sourcewise.experiments.animals_tables import animals_sheets
from sourcewise.experiments.layout import Sheet
from sourcewise.experiments.names import ALL_PRODUCTS, ANIMALS, PRODUCTS
from sourcewise.experiments.paper_numbers import on_published_data
from sourcewise.experiments.products_tables import all_products_sheet, books_sheet
from sourcewise.experiments.results import Results
from sourcewise.experiments.study_errors import study_errors

EMPTY = "The results are empty: no run is finished yet; let 'sourcewise reproduce' go on."
UNKNOWN_STUDIES = "The results hold no study with tables; they hold {studies}."
MADE_BY = "Made by sourcewise {sourcewise}, seed {seed}, data: {data}."
STAND_IN = "The data stand in for the paper's, so its numbers are not shown."


def build_sheets(results: Results) -> list[Sheet]:
    """Make every table that the results have the numbers for.

    Parameters
    ----------
    results : Results

    Returns
    -------
    list of Sheet
    """
    check_not_empty(results)
    published = on_published_data(results.settings)
    remarks = provenance(results.settings)
    sheets = []
    study = study_errors(results, ALL_PRODUCTS)
    if study is not None:
        sheets.append(all_products_sheet(study, remarks, published=published))
    study = study_errors(results, PRODUCTS)
    if study is not None:
        sheets.append(books_sheet(study, remarks, published=published))
    study = study_errors(results, ANIMALS)
    if study is not None:
        sheets += animals_sheets(study, remarks, published=published)
    if not sheets:
        raise ValueError(UNKNOWN_STUDIES.format(studies=studies_in_words(results)))
    return sheets


def check_not_empty(results: Results) -> None:
    """Refuse results without a row."""
    if not len(results):
        raise ValueError(EMPTY)


def studies_in_words(results: Results) -> str:
    """Name the studies there are."""
    return ", ".join(repr(name) for name in sorted(set(results.columns["study"].tolist())))


def provenance(settings: dict[str, str]) -> list[str]:
    """Say what was run on what."""
    told = {key: settings.get(key, "not recorded") for key in ("sourcewise", "seed", "data")}
    return [MADE_BY.format(**told), *([] if on_published_data(settings) else [STAND_IN])]
