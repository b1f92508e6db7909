"""Whether the reference is large enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

LEVEL, POWER = 0.05, 0.8


@dataclass(frozen=True)
class ReferenceAdequacy:
    """What this reference can and cannot tell from noise.

    Attributes
    ----------
    rows : float
        Effective rows of the reference.
    source_rows : float
        Effective rows of the median source.
    detectable_discrepancy : float
        Smallest discrepancy of such a source that a test at level 0.05 finds with power 0.8.
    rows_to_halve : float
        Further reference rows that would halve it; infinite where the sources' own noise is in
        the way.
    """

    rows: float
    source_rows: float
    detectable_discrepancy: float
    rows_to_halve: float

    def __str__(self) -> str:
        """Say it in a sentence."""
        found = (
            f"With {self.rows:.0f} trusted rows, a discrepancy of "
            f"{self.detectable_discrepancy:.3f} or more is told from noise (power 0.8)"
        )
        if np.isinf(self.rows_to_halve):
            return (
                f"{found}; no further trusted rows could halve that, because the sources have "
                f"about {self.source_rows:.0f} rows each."
            )
        return f"{found}; {self.rows_to_halve:.0f} more would halve that."


def reference_adequacy(sizes: np.ndarray, reference: int, variance: float) -> ReferenceAdequacy:
    """Normal-theory answer for the loss difference of one model on two samples.

    The detectable discrepancy is ``(z_{1 - level/2} + z_power) * sqrt(v / m_T + v / m)`` with
    ``v`` the variance of a row's loss, ``m_T`` the reference's size and ``m`` the median size of
    the other sources.
    """
    own = float(sizes[reference])
    others = np.delete(sizes, reference)
    typical = float(np.median(others)) if len(others) else float("inf")
    quantiles = ndtri(1.0 - LEVEL / 2.0) + ndtri(POWER)
    noise = 1.0 / own + 1.0 / typical
    wanted = 0.25 * noise - 1.0 / typical
    more = max(1.0 / wanted - own, 0.0) if wanted > 0 else float("inf")
    return ReferenceAdequacy(own, typical, float(quantiles * np.sqrt(variance * noise)), more)
