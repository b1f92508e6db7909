"""What every discrepancy estimator returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sourcewise.core.data import FloatArray


@dataclass(frozen=True)
class Witness:
    """The hypothesis that showed the largest difference, and where it did worse.

    Attributes
    ----------
    hypothesis : str
        ``"reference model"``, ``"source model"``, ``"joint model"`` (of the reference and the
        source), ``"separating model"`` (with ``" of class <code>"`` appended when there are more
        than two classes), ``"agreement"`` where the reference's model knows less of the source's
        labels, ``"features"`` where no model was needed to tell source and reference apart, or
        ``"none"`` for the reference itself.
    worse_on : str
        ``"source"`` or ``"reference"``: where that hypothesis has the larger loss; empty for the
        reference itself.
    """

    hypothesis: str
    worse_on: str


NO_WITNESS = Witness("none", "")
LACKING = Witness("agreement", "source")
FAR_FEATURES = Witness("features", "source")


@dataclass(frozen=True)
class Discrepancies:
    """Distance of every source from the reference, in source order.

    Attributes
    ----------
    values : array of shape (n_sources,)
        ``d_i``, between 0 and the bound of the loss; 0 for the reference.
    standard_errors : array of shape (n_sources,)
        How the values would vary if the reference and the source were drawn again; of plug-in and
        cross-fit, the models held fixed. 0 for the reference.
    p_values : array of shape (n_sources,)
        Against "same distribution as the reference"; 1 for the reference, NaN where not computed.
    witnesses : tuple of Witness
    """

    values: FloatArray
    standard_errors: FloatArray
    p_values: FloatArray
    witnesses: tuple[Witness, ...]

    @classmethod
    def of_reference(cls, n: int = 1) -> Discrepancies:
        """Discrepancies of ``n`` copies of the reference: none."""
        return cls(np.zeros(n), np.zeros(n), np.ones(n), (NO_WITNESS,) * n)

    def select(self, positions: Sequence[int]) -> Discrepancies:
        """Return those of some sources, in the order asked for."""
        chosen = np.asarray(positions, dtype=np.intp)
        return Discrepancies(
            self.values[chosen],
            self.standard_errors[chosen],
            self.p_values[chosen],
            tuple(self.witnesses[i] for i in positions),
        )

    def with_reference(self, position: int) -> Discrepancies:
        """Return these with the reference inserted at its position."""
        n = len(self.values)
        order = np.insert(np.arange(1, n + 1), position, 0).tolist()
        return Discrepancies.of_reference().append(self).select(order)

    def append(self, other: Discrepancies) -> Discrepancies:
        """Return these and then the others."""
        return Discrepancies(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.standard_errors, other.standard_errors]),
            np.concatenate([self.p_values, other.p_values]),
            self.witnesses + other.witnesses,
        )


def jackknife_errors(without_fold: FloatArray, n_folds: int) -> FloatArray:
    r"""Return standard errors from values without each fold, (n_repeats * n_folds, n_sources).

    Other trusted rows would also have taught other models, for every source at once. Discrepancies
    are known without each of :math:`k` validation folds, so that variability costs nothing to find:

    .. math:: \frac1R \sum_{r=1}^R \frac{k - 1}{k}
              \sum_{v=1}^k \big(d_i^{(rv)} - \bar d_i^{(r)}\big)^2

    over :math:`R` repeats (the jackknife that leaves out groups; Shao and Tu 1995, section 2.3).
    """
    groups = without_fold.reshape(-1, n_folds, without_fold.shape[1])
    off = groups - groups.mean(axis=1, keepdims=True)
    squares = (n_folds - 1.0) / n_folds * np.sum(off**2, axis=1)
    return np.asarray(np.sqrt(squares.mean(axis=0)))


def with_variation(found: Discrepancies, without_fold: FloatArray, n_folds: int) -> Discrepancies:
    """Return discrepancies whose standard errors count the models' variability as well.

    With models held fixed, an error counts that other rows would have been judged; both count the
    rows judged, so that the sum errs on the large side. Both are of the value before it is limited:
    that a discrepancy is at its lower limit does not make it certain.
    """
    if not len(without_fold):
        return found
    errors = np.hypot(found.standard_errors, jackknife_errors(without_fold, n_folds))
    return replace(found, standard_errors=errors)
