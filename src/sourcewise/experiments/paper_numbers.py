"""The numbers that the paper and its authors' notebook printed."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sourcewise.experiments.names import PUBLISHED


class Printed(NamedTuple):
    """A mean error and its standard error, as printed."""

    error: float
    standard_error: float


def on_published_data(settings: dict[str, str]) -> bool:
    """Whether results can be held against the paper's."""
    return settings.get("data") == PUBLISHED


def products_numbers() -> dict[str, Printed]:
    """Per method: table 1, all 957 products."""
    return {method: Printed(**line) for method, line in _numbers()["products"].items()}


def notebook_products() -> dict[str, Printed]:
    """Per method: table 1 with all the digits of the authors' notebook."""
    return {method: Printed(**line) for method, line in _numbers()["notebook_products"].items()}


def notebook_products_by_n() -> dict[str, list[float]]:
    """Per method that the paper left out of figure 1: the notebook's mean error, n = 0 to 10."""
    errors: dict[str, list[float]] = _numbers()["notebook_products_by_n"]
    return errors


def products_ranges() -> dict[str, tuple[float, float]]:
    """Per method that the paper left out of figure 1: its smallest and largest mean error."""
    return {method: (low, high) for method, (low, high) in _numbers()["products_ranges"].items()}


def animals_numbers() -> dict[tuple[float, str | None, str, int], str]:
    """Tables of A/B/C, by p, corruption (None: all of them), baseline and n."""
    numbers: list[int] = _numbers()["animals_n"]
    return {
        (float(share), None if corruption == "all" else corruption, baseline, number): cell
        for share, tables in _numbers()["animals"].items()
        for corruption, lines in tables.items()
        for baseline, line in lines.items()
        # Tables of one corruption have no column for n = 0.
        for number, cell in zip(numbers[corruption != "all" :], line.split(), strict=True)
    }


@cache
def _numbers() -> Any:
    path = files("sourcewise.experiments") / "data" / "paper_numbers.json"
    return json.loads(path.read_text(encoding="utf-8"))
