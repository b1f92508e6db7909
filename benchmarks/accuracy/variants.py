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

from sourcewise.core.weights import theory_trade_off
from sourcewise.estimators.protocol import DEFAULT, PAPER

# Where solvers stop in the benchmark. Of 32 fits on eight data sets none predicted any row
# differently from the library's own 1e-7 and 1e-9 (`tests/benchmarks` checks one), and the grid
# takes a third less time.
TOL = 1e-5

VARIANTS: dict[str, dict[str, Any]] = {
    "first look only": {"second_look": False},
    "the best pair alone": {"averaged": False},
    "shares by Bayes' rule": {"joint": 0.0},
    "shares by stacking": {"joint": 1.0},
    "a prior of lambda twice as wide": {"doublings": 4.0},
    "no prior of lambda": {"doublings": 1e3},
    "a prior around theory's own lambda": {"preferred": theory_trade_off()},
    "no prior of C": {"decades": 1e3},
    "every share counts": {"least_share": 0.0},
    "one deal of the folds": {"n_repeats": 1},
    "three deals of the folds": {"n_repeats": 3},
}


@contextmanager
def changed(changes: dict[str, Any], tol: float = TOL) -> Iterator[None]:
    """Fit with a changed default, and with all solvers stopping at ``tol``."""
    default, paper = replace(DEFAULT, **{"tol": tol, **changes}), replace(PAPER, tol=tol)
    with (
        mock.patch.multiple("sourcewise.estimators.input", DEFAULT=default, PAPER=paper),
        mock.patch("sourcewise.baselines.shared_fits.NEWTON_TOL", tol),
        mock.patch("sourcewise.baselines.local.NEWTON_TOL", tol),
    ):
        yield
