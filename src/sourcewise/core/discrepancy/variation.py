r"""Standard errors that count the models' own variability: a jackknife over the reference's folds.

With models held fixed, a standard error counts that other rows would have been judged. But other
trusted rows would also have taught other models, for every source at once. Discrepancies are known
without each of :math:`k` validation folds, so that variability costs nothing to find:

.. math:: \mathrm{se}^2 = \mathrm{se}_\text{fixed}^2 + \frac1R \sum_{r=1}^R \frac{k - 1}{k}
          \sum_{v=1}^k \big(d_i^{(rv)} - \bar d_i^{(r)}\big)^2

over :math:`R` repeats (the jackknife that leaves out groups; Shao and Tu 1995, section 2.3). Both
terms count the rows judged, so the sum errs on the large side. Both are of the value before it is
limited: that a discrepancy is at its lower limit does not make it certain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.result import Discrepancies


def jackknife_errors(without_fold: FloatArray, n_folds: int) -> FloatArray:
    """Return standard errors from values without each fold, (n_repeats * n_folds, n_sources)."""
    groups = without_fold.reshape(-1, n_folds, without_fold.shape[1])
    off = groups - groups.mean(axis=1, keepdims=True)
    squares = (n_folds - 1.0) / n_folds * np.sum(off**2, axis=1)
    return np.asarray(np.sqrt(squares.mean(axis=0)))


def with_variation(found: Discrepancies, without_fold: FloatArray, n_folds: int) -> Discrepancies:
    """Return discrepancies whose standard errors count the models' variability as well."""
    if not len(without_fold):
        return found
    errors = np.hypot(found.standard_errors, jackknife_errors(without_fold, n_folds))
    return replace(found, standard_errors=errors)
