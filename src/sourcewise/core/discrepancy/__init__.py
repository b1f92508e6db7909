"""How far a source lies from the reference: one contract, three estimators."""

from sourcewise.core.discrepancy.result import NO_WITNESS, Discrepancies, Witness

__all__ = ["NO_WITNESS", "Discrepancies", "Witness"]
