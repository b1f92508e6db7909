"""The default with one part of it changed: what each part is worth.

``python -m benchmarks.accuracy --variants`` runs these on the development half of the grid, where
choices may be made; ``--variants pulled doublings`` runs half and double of the constants
of these names. Every number of `sourcewise.core.choices` can be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any
from unittest import mock

from sourcewise.core.choices import DEFAULT, PAPER, Choices
from sourcewise.core.weights import theory_trade_off

# Where solvers stop in the benchmark. Of 32 fits on eight data sets none predicted any row
# differently from the library's own 1e-7 and 1e-9 (`tests/benchmarks` checks one), and the grid
# takes a third less time.
TOL = 1e-5

# Options of the estimator are under their own names, choices of `sourcewise.core.choices` too.
OPTIONS = ("discrepancy",)
VARIANTS: dict[str, dict[str, Any]] = {
    "local models only": {"discrepancy": "local"},
    "without pull": {"pulled": 0.0},
    "without agreement": {"missed": 0.0},
    "without features": {"farness": 0.0},
    "the best pair alone": {"averaged": False},
    "shares by Bayes' rule": {"joint": 0.0},
    "shares by stacking": {"joint": 1.0},
    "a prior of lambda twice as wide": {"doublings": 4.0},
    "no prior of lambda": {"doublings": 1e3},
    "a prior around theory's own lambda": {"preferred": theory_trade_off()},
    "no prior of C": {"decades": 1e3},
    "every share counts": {"least_share": 0.0},
    "one split of the folds": {"n_repeats": 1},
    "three splits of the folds": {"n_repeats": 3},
}


def constants() -> dict[str, float]:
    """Every number among the choices, by the name that ``--variants`` takes."""
    values = {field.name: getattr(DEFAULT, field.name) for field in fields(DEFAULT)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def half_and_double(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Variants in which one constant has half or double its value."""
    known = constants()
    variants: dict[str, dict[str, Any]] = {}
    for name in names:
        whole = isinstance(known[name], int)
        for words, factor in (("half", 0.5), ("double", 2.0)):
            value = known[name] * factor
            variants[f"{words} {name}"] = {name: max(1, round(value)) if whole else value}
    return variants


def with_changes(changes: dict[str, Any]) -> Choices:
    """Return the default's choices with some of them changed."""
    own = {name: value for name, value in changes.items() if name not in OPTIONS}
    return replace(DEFAULT, **own)


@contextmanager
def changed(changes: dict[str, Any], tol: float = TOL) -> Iterator[None]:
    """Fit with changed choices, and with all solvers stopping at ``tol``."""
    default, paper = with_changes({"tol": tol, **changes}), replace(PAPER, tol=tol)
    with (
        mock.patch.multiple("sourcewise.core.choices", DEFAULT=default, PAPER=paper),
        mock.patch("sourcewise.baselines.shared_fits.LOCAL_TOL", tol),
    ):
        yield
