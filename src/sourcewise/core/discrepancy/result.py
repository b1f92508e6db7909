"""What every discrepancy estimator returns."""

from __future__ import annotations

from dataclasses import dataclass

from sourcewise.core.data import FloatArray


@dataclass(frozen=True)
class Witness:
    """The hypothesis that showed the largest difference, and where it did worse.

    Attributes
    ----------
    hypothesis : str
        ``"reference model"``, ``"source model"``, ``"separating model"`` (with
        ``" of class <code>"`` appended when there are more than two classes), or ``"none"``
        for the reference itself.
    worse_on : str
        ``"source"`` or ``"reference"``: where that hypothesis has the larger loss; empty for the
        reference itself.
    """

    hypothesis: str
    worse_on: str


NO_WITNESS = Witness("none", "")


@dataclass(frozen=True)
class Discrepancies:
    """Distance of every source from the reference, in source order.

    Attributes
    ----------
    values : array of shape (n_sources,)
        ``d_i``, between 0 and the bound of the loss; 0 for the reference.
    standard_errors : array of shape (n_sources,)
        Standard error of the loss difference at the witness; 0 for the reference.
    p_values : array of shape (n_sources,)
        Against "same distribution as the reference"; 1 for the reference, NaN where not computed.
    witnesses : tuple of Witness
    """

    values: FloatArray
    standard_errors: FloatArray
    p_values: FloatArray
    witnesses: tuple[Witness, ...]
