"""The per-source table."""

from __future__ import annotations

import json
import os
import unicodedata
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.bound import GeneralizationBound
from sourcewise.core.discrepancy import Discrepancies, Witness
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
class ReportContext:
    """What the page shows besides the table.

    Attributes
    ----------
    reference : int
        Position of the reference.
    sizes : tuple of float
        Effective rows of each source.
    witnesses : tuple of Witness
        Which model showed each source's discrepancy.
    adequacy : ReferenceAdequacy
    bound : GeneralizationBound
    parameters : dict
        The model's parameters, as text.
    """

    reference: int
    sizes: tuple[float, ...]
    witnesses: tuple[Witness, ...]
    adequacy: Any
    bound: GeneralizationBound
    parameters: dict[str, str]


@dataclass(frozen=True)
class SourceReport:
    """How far each source can be trusted, and why.

    Attributes
    ----------
    sources : tuple of SourceRow
        In the order of the model's ``sources_``.
    trade_off : float
        Lambda; where weights were averaged over several, the one with the largest share.
    cutoff : float
        Mu: with this lambda, a source counts only if its discrepancy is below.
    context : ReportContext, optional
        For the page; not part of the table.
    shares : tuple of pairs of float
        Every lambda that the weights were averaged over, and its share in the average.
    """

    sources: tuple[SourceRow, ...]
    trade_off: float
    cutoff: float
    context: ReportContext | None = field(default=None, compare=False, repr=False)
    shares: tuple[tuple[float, float], ...] = ()

    @property
    def averaged(self) -> bool:
        """Whether the weights are an average over several lambdas that differ in theirs.

        Where the reference has all the weight, each of them gives it that.
        """
        return len(self.shares) > 1 and sum(row.weight > 0 for row in self.sources) > 1

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
        context: ReportContext | None = None,
        shares: tuple[tuple[float, float], ...] = (),
    ) -> SourceReport:
        """Assemble the table from fitted attributes."""
        columns = zip(
            names,
            weights.tolist(),
            discrepancies.values.tolist(),
            discrepancies.standard_errors.tolist(),
            discrepancies.p_values.tolist(),
            rows.tolist(),
            reasons(discrepancies, reference, reference_gain, expected_errors, cutoff),
            strict=True,
        )
        table = tuple(SourceRow(*values) for values in columns)
        return cls(table, trade_off, cutoff, context, shares)

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values: trade_off, cutoff, shares and a list of sources."""
        return {
            "trade_off": self.trade_off,
            "cutoff": self.cutoff,
            "shares": [{"trade_off": value, "share": share} for value, share in self.shares],
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

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one self-contained page, and write it to ``path`` if one is given.

        ``sourcewise audit`` makes the same page with more on it: what the sources gain in
        cross-validated error, and what is wrong with each source that was set aside.
        """
        from sourcewise.report.html import render

        text = render(self)
        if path is not None:
            write_atomically(Path(path), text.encode())
        return text

    def __str__(self) -> str:
        """Lay the table out for a terminal of 80 columns."""
        head = f"{'source':<18}{'weight':>8}{'discr.':>8}{'s.e.':>8}{'p':>7}{'rows':>9}  reason"
        lines = [head, "-" * len(head)]
        for row in self.sources:
            lines.append(
                f"{_cell(row.source, 18)}{_fit(row.weight, 8)}{_fit(row.discrepancy, 8)}"
                f"{_fit(row.standard_error, 8)}{_fit(row.p_value, 7)}{_fit(row.rows, 9)}"
                f"  {SHORT[row.reason]}"
            )
        return "\n".join([*lines, self._rule()])

    def _rule(self) -> str:
        """Say in a line of 80 columns which sources count."""
        about = f"lambda = {self.trade_off:.3g}{' (mostly)' if self.averaged else ''}"
        if np.isinf(self.trade_off):
            return f"{about}: every source counts by its rows."
        if self.trade_off == 0:
            return f"{about}: only what is closest to the reference counts."
        return f"{about}: a source counts if its discrepancy is below {self.cutoff:.3g}."


def _cell(value: Any, width: int) -> str:
    """Name in a column of a terminal: one line, nothing that moves the cursor, wide signs count."""
    name = " ".join(str(value).split())
    name = "".join(c if c.isprintable() else "\ufffd" for c in name)
    widths = [_width(c) for c in name]
    if sum(widths) >= width:
        kept = int(np.searchsorted(np.cumsum(widths), width - 1, side="left"))
        name = name[:kept] + "…"
        widths = [*widths[:kept], 1]
    return name + " " * (width - sum(widths))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


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
