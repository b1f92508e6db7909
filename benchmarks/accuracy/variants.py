"""The default with one part of it changed: what each part is worth.

``python -m benchmarks.accuracy --variants`` runs these on the development half of the grid, where
choices may be made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from sourcewise.estimators.protocol import DEFAULT

VARIANTS: dict[str, dict[str, Any]] = {
    "first look only": {"second_look": False},
    "within one standard error": {"within": 1.0},
    "best by cross-validation": {"within": 1e-9},
    "one deal of the folds": {"n_repeats": 1},
}


@contextmanager
def changed(changes: dict[str, Any]) -> Iterator[None]:
    """Fit with a changed default."""
    with mock.patch("sourcewise.estimators.input.DEFAULT", replace(DEFAULT, **changes)):
        yield
