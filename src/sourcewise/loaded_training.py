"""Checks of what a loaded model keeps of its training: for `add_source`, and for its report."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.discrepancy.methods import DISCREPANCIES, LINEAR_PART, OWN_PART

TOTAL_ERROR = 1e-6


def require(holds: Any) -> None:
    """Raise an error unless this holds."""
    if not holds:
        raise ValueError("The model's parts do not fit together.")


def check_training(training: Any, discrepancy: str, n_sources: int) -> None:
    """Require rows, measurements and findings of so many sources, the reference included."""
    _check_rows(training.rows, n_sources)
    _check_measured(training.measured, n_sources - 1)
    if training.findings is not None:  # there may be the reference alone
        _check_findings(training.findings, discrepancy, training.measured, n_sources - 1)


def check_label_test(test: Any) -> None:
    """Require losses of the same rows throughout."""
    if test is None:
        return
    repeats, n_rows = np.shape(test.right)
    exchanges = np.shape(test.random)[1]
    own = len(test.own_right)
    shapes = {
        "random": (repeats, exchanges, n_rows),
        "own_right": (own, n_rows),
        "own_random": (own, exchanges, n_rows),
        "folds": (repeats, n_rows),
        "shares": (n_rows,),
    }
    require(repeats and exchanges)
    for name, shape in {**shapes, "right": (repeats, n_rows)}.items():
        array = getattr(test, name)
        require(array.shape == shape and np.isfinite(array).all())
    require(test.folds.dtype.kind in "iu" and test.folds.min() >= 0)
    require(test.folds.max() < n_rows and (test.shares >= 0.0).all())
    require(abs(test.shares.sum() - 1.0) < TOTAL_ERROR)


def _check_measured(measured: Any, n_sources: int) -> None:
    """Require measurements of so many sources, of the default learner's part too."""
    found = measured.result
    values = found.values, found.standard_errors, found.p_values
    require(all(array.shape == (n_sources,) for array in values))
    require(len(found.witnesses) == n_sources)
    require(measured.without_fold.ndim == 2 and measured.without_fold.shape[1] == n_sources)
    check_label_test(measured.label_test)
    if measured.linear is not None:
        _check_measured(measured.linear, n_sources)


def _check_findings(found: Any, discrepancy: str, measured: Any, n_sources: int) -> None:
    """Require what this discrepancy finds out about so many sources, by each of its learners.

    Sources are along the last axis, sets of trusted rows along the first of several.
    """
    if LINEAR_PART in found:
        require(found.keys() == {LINEAR_PART, OWN_PART})
        _check_findings(found[LINEAR_PART], discrepancy, measured.linear, n_sources)
        found = found[OWN_PART]
    require(tuple(sorted(found)) in DISCREPANCIES[discrepancy].findings)
    for name, part in found.items():
        require(isinstance(part, np.ndarray) and part.dtype.kind == "f")
        require(part.ndim and part.shape[-1] == n_sources)
        by_set = part.ndim > 1 and name != "difference_errors"
        require(not by_set or len(part) == 1 + len(measured.without_fold))


def _check_rows(rows: Any, n_sources: int) -> None:
    n_rows = len(rows.y)
    require(rows.codes.shape == (n_rows,) and rows.codes.dtype.kind in "iu")
    require(n_rows > 0 and rows.codes.min() >= 0 and rows.codes.max() < n_sources)
    require((rows.X.shape[0] if hasattr(rows.X, "shape") else len(rows.X)) == n_rows)
    require(rows.sample_weight is None or rows.sample_weight.shape == (n_rows,))
