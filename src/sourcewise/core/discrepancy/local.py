r"""The ``local`` discrepancy: the supremum over the two hypotheses that matter.

With :math:`h_T` the reference's own model and :math:`h_i` the source's own model, each judged on
rows it has not seen,

.. math:: d_i = \max(|a_i|, |b_i|), \quad
   a_i = \hat\epsilon_i(h_T) - \hat\epsilon_T(h_T), \quad
   b_i = \hat\epsilon_T(h_i) - \hat\epsilon_i(h_i).

Both sides are cross-fitted with the *same* fold models: the average over folds of a fold model's
loss on the other side, minus its loss on its own held-out fold. Given the models, both differences
then have mean zero when source and reference share a distribution, which a model refitted on all
rows would spoil (it has seen more rows than the fold models it is compared with).

The p-value tests each fold model by itself: given the model, its losses on rows it has not seen are
independent draws on either side, so a two-sample t-test is valid, however unstable the learner. The
tests of all folds and both sides are combined by their mean under Cauchy's quantile function (Liu
and Xie 2020), which keeps small levels, to a good approximation, under any dependence among them.
Standardising the averaged difference instead would be wrong: fold models share rows, and in the
regime that matters (few rows, many features) the shared part dominates; measured, 10 to 17 % of
clean sources fell below 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.result import Discrepancies, Witness


@dataclass(frozen=True)
class TwoSided:
    """The two differences ``a_i`` and ``b_i`` of every source.

    Attributes
    ----------
    reference_loss, reference_error : float
        Mean loss of the reference's own model on the reference, and its standard error.
    a, b : arrays of shape (n_sources,)
        ``b`` is NaN for a source too small to have a cross-fitted model of its own.
    error_a, error_b : arrays of shape (n_sources,)
        Their standard errors, the models held fixed.
    """

    reference_loss: float
    reference_error: float
    a: FloatArray
    b: FloatArray
    error_a: FloatArray
    error_b: FloatArray

    @property
    def values(self) -> FloatArray:
        """The larger of the two differences."""
        return np.asarray(np.fmax(np.abs(self.a), np.abs(self.b)))

    def append(self, other: TwoSided) -> TwoSided:
        """Return the differences of these sources and then the others."""
        return TwoSided(
            self.reference_loss,
            self.reference_error,
            np.concatenate([self.a, other.a]),
            np.concatenate([self.b, other.b]),
            np.concatenate([self.error_a, other.error_a]),
            np.concatenate([self.error_b, other.error_b]),
        )


def local_discrepancies(sides: TwoSided, p_values: FloatArray) -> Discrepancies:
    """Turn the two differences into values, standard errors and witnesses."""
    by_reference_model = np.abs(sides.a) >= np.nan_to_num(np.abs(sides.b), nan=-1.0)
    errors = np.where(by_reference_model, sides.error_a, sides.error_b)
    witnesses = [
        Witness("reference model", "source" if a_i >= 0 else "reference")
        if use_a
        else Witness("source model", "reference" if b_i >= 0 else "source")
        for use_a, a_i, b_i in zip(by_reference_model, sides.a, sides.b, strict=True)
    ]
    return Discrepancies(sides.values, errors, p_values, tuple(witnesses))


def two_sample_p_values(
    mean_1: FloatArray,
    square_1: FloatArray,
    size_1: FloatArray,
    mean_2: FloatArray,
    square_2: FloatArray,
    size_2: FloatArray,
) -> FloatArray:
    """Two-sided p-values of Student's t-test with pooled variance, element by element.

    ``square`` is the sum of squared deviations from the mean. The variance is pooled because the
    hypothesis is that both sides share one distribution, and because a side may have one row.
    """
    freedom = np.asarray(size_1 + size_2 - 2.0)
    variance = (square_1 + square_2) / np.maximum(freedom, 1e-9)
    error = np.sqrt(variance * (1.0 / size_1 + 1.0 / size_2))
    difference = np.abs(mean_1 - mean_2)
    # Identical constant losses on both sides show no difference; distinct ones show it for certain.
    certain = difference > 1e-12
    t = np.where(error > 1e-12, difference / np.maximum(error, 1e-12), np.where(certain, 1e12, 0.0))
    p_values = 2.0 * stdtr(np.maximum(freedom, 1e-9), -t)
    return np.where(freedom > 1e-9, p_values, 1.0)


def to_cauchy(p_values: FloatArray) -> FloatArray:
    """Cauchy quantile of each p-value; averages of these have the same law under no difference."""
    return np.asarray(np.tan((0.5 - np.clip(p_values, 1e-15, 1.0 - 1e-6)) * np.pi))


def from_cauchy(statistic: FloatArray) -> FloatArray:
    """P-value of an average of Cauchy quantiles."""
    return np.asarray(0.5 - np.arctan(statistic) / np.pi)
