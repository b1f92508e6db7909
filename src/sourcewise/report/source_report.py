"""The per-source table."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.discrepancy import Discrepancies
from sourcewise.files import write_atomically
from sourcewise.report.reasons import SHORT, reasons


@dataclass(frozen=True)
class SourceRow:
    """One source's line of the report."""

    source: Any
    weight: float
    discrepancy: float
    standard_error: float
    p_value: float
    rows: int
    reason: str


@dataclass(frozen=True)
class SourceReport:
    """How far each source can be trusted, and why.

    Attributes
    ----------
    sources : tuple of SourceRow
        In the order of the model's ``sources_``.
    trade_off : float
        Lambda.
    cutoff : float
        Mu: a source counts only if its discrepancy is below.
    """

    sources: tuple[SourceRow, ...]
    trade_off: float
    cutoff: float

    @classmethod
    def from_results(
        cls,
        *,
        names: list[Any],
        weights: np.ndarray,
        discrepancies: Discrepancies,
        rows: np.ndarray,
        reference: int,
        reference_gain: float,
        expected_errors: np.ndarray,
        trade_off: float,
        cutoff: float,
    ) -> SourceReport:
        """Assemble the table from fitted attributes."""
        columns = zip(
            names,
            weights.tolist(),
            discrepancies.values.tolist(),
            discrepancies.standard_errors.tolist(),
            discrepancies.p_values.tolist(),
            rows.tolist(),
            reasons(discrepancies, reference, reference_gain, expected_errors),
            strict=True,
        )
        return cls(tuple(SourceRow(*values) for values in columns), trade_off, cutoff)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: trade_off, cutoff and a list of sources."""
        return {
            "trade_off": self.trade_off,
            "cutoff": self.cutoff,
            "sources": [asdict(row) for row in self.sources],
        }

    def to_frame(self) -> Any:
        """Return a pandas frame, one row a source (needs pandas: ``sourcewise[report]``)."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'sourcewise[report]'.") from error
        return pandas.DataFrame([asdict(row) for row in self.sources])

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as JSON, and write it to ``path`` if one is given.

        An infinite trade-off or cut-off is written as null: JSON has no infinity.
        """
        text = json.dumps(
            _finite(self.to_dict()), indent=2, ensure_ascii=False, default=str, allow_nan=False
        )
        if path is not None:
            write_atomically(Path(path), (text + "\n").encode())
        return text

    def __str__(self) -> str:
        """Lay the table out for a terminal of 80 columns."""
        head = f"{'source':<18}{'weight':>8}{'discr.':>8}{'s.e.':>8}{'p':>7}{'rows':>9}  reason"
        lines = [head, "-" * len(head)]
        for row in self.sources:
            name = " ".join(str(row.source).split())
            name = name if len(name) <= 17 else name[:16] + "…"
            lines.append(
                f"{name:<18}{_fit(row.weight, 8)}{_fit(row.discrepancy, 8)}"
                f"{_fit(row.standard_error, 8)}{_fit(row.p_value, 7)}{_fit(row.rows, 9)}"
                f"  {SHORT[row.reason]}"
            )
        if np.isinf(self.trade_off):
            lines.append("lambda = inf: every source counts by its rows.")
        else:
            lines.append(
                f"lambda = {self.trade_off:.3g}: a source counts if its discrepancy is below "
                f"{self.cutoff:.3g}."
            )
        return "\n".join(lines)


def _fit(value: float | int, width: int) -> str:
    """Right-align a number, shortened so that a space remains before it."""
    text = str(value) if isinstance(value, int) else f"{value:.3f}"
    return f"{text if len(text) < width else format(value, '.1e'):>{width}}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
