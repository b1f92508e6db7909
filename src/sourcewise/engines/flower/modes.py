"""What the sites are told, and what that makes of the result."""

from __future__ import annotations

from dataclasses import dataclass

SOME_SHOWN = (
    "approximate: in the pull {rows} rows of the reference stand for all of them, all else in the "
    "discrepancies is exact"
)


@dataclass(frozen=True)
class Mode:
    """A way of asking.

    Attributes
    ----------
    name : str
    shares_rows : bool
        Whether sites get the reference's rows.
    measured : str
        How discrepancies come about, in words.
    """

    name: str
    shares_rows: bool
    measured: str

    def rule(self, exact_selection: bool, shown: int | None = None) -> str:
        """Say what is exact and what is approximate; ``shown`` rows of the reference were shown."""
        measured = self.measured if shown is None else SOME_SHOWN.format(rows=shown)
        chosen = (
            "the trade-off is chosen exactly"
            if exact_selection
            else "approximate: the trade-off is chosen with each site's loss to second order "
            "around the reference's models (exact for regression)"
        )
        return f"{measured}; {chosen}; the final model is trained exactly"


MODES = {
    mode.name: mode
    for mode in (
        Mode(
            "models-only",
            False,
            "approximate: the pull is found with each site's loss to second order around its joint "
            "model (exact for regression), all else in the discrepancies is exact",
        ),
        Mode("shared-reference", True, "discrepancies are exact"),
        Mode("gradients", False, "plug-in discrepancies are exact, found by gradients"),
    )
}
