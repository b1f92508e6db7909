"""The per-source table."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.bound import GeneralizationBound
from sourcewise.core.discrepancy import Discrepancies, Witness
from sourcewise.extras import import_extra
from sourcewise.files import write_atomically
from sourcewise.report.reasons import (
    AGREES,
    DIFFERS,
    FOUND,
    REFERENCE,
    SHORT,
    UNTOLD,
    missed_shares,
    reasons,
)
from sourcewise.safe_text import json_text, one_line

# Of more sources than the first, a terminal is shown as many as the second.
MOST_SHOWN, WORST = 41, 20

SCALED = {
    "standard": "Features are standardised by the reference (scaling).",
    "keep": "Features keep their proportions (scaling).",
}
NO_HARM = "differs, no harm: p tells its rows from yours, a model is not hurt by them."
MISSED = "agrees: no difference found; up to about {share} random labels could be missed."

WIDTH = 79
PANDAS_MISSING = "to_frame needs pandas: {how}."


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
    copies: int | None = None  # rows left out because they repeat trusted ones; None: not sought
    missed: float | None = None  # share of its labels that may be random unnoticed, about


@dataclass(frozen=True)
class ReportContext:
    """What the page shows besides the table."""

    sizes: tuple[float, ...]  # effective rows of each source
    witnesses: tuple[Witness, ...]  # which model showed each source's discrepancy
    adequacy: Any
    bound: GeneralizationBound
    parameters: dict[str, str]  # the model's parameters, as text


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
    scaling : {"standard", "keep"}, optional
        How the default learner's features were scaled; None where they were left as they are.
    notes : tuple of str
        Sentences: what was left out, what this reference cannot see.

    Examples
    --------
    >>> import sourcewise as sw
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(digits.X, digits.y, sources=digits.vendor)
    >>> report = model.report()
    >>> worst = max(report.sources, key=lambda row: row.discrepancy)
    >>> worst.source in digits.spoiled
    True
    """

    sources: tuple[SourceRow, ...]
    trade_off: float
    cutoff: float
    context: ReportContext | None = field(default=None, compare=False, repr=False)
    shares: tuple[tuple[float, float], ...] = ()
    scaling: str | None = None
    notes: tuple[str, ...] = ()

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
        scaling: str | None = None,
        copies: np.ndarray | None = None,
        notes: tuple[str, ...] = (),
    ) -> SourceReport:
        """Assemble the table from fitted attributes."""
        missed = missed_shares(discrepancies, reference_gain, expected_errors, cutoff)
        columns = zip(
            names,
            weights.tolist(),
            discrepancies.values.tolist(),
            discrepancies.standard_errors.tolist(),
            discrepancies.p_values.tolist(),
            rows.tolist(),
            reasons(discrepancies, reference, reference_gain, expected_errors, cutoff),
            [None] * len(names) if copies is None else copies.tolist(),
            [None if i == reference else share for i, share in enumerate(missed.tolist())],
            strict=True,
        )
        table = tuple(SourceRow(*values) for values in columns)
        return cls(table, trade_off, cutoff, context, shares, scaling, notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: trade_off, cutoff, shares, scaling, a list of sources, notes."""
        return {
            "trade_off": self.trade_off,
            "cutoff": self.cutoff,
            "shares": [{"trade_off": value, "share": share} for value, share in self.shares],
            "scaling": self.scaling,
            "sources": [asdict(row) for row in self.sources],
            "notes": list(self.notes),
        }

    def to_frame(self) -> Any:
        """Return a pandas frame, one row a source (needs pandas: the extra ``report``)."""
        pandas = import_extra("pandas", "report", PANDAS_MISSING)
        return pandas.DataFrame([asdict(row) for row in self.sources])

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as JSON, and write it to ``path`` if one is given.

        An infinite trade-off or cut-off is written as null: JSON has no infinity.
        """
        text = json_text(self.to_dict())
        if path is not None:
            write_atomically(Path(path), text.encode())
        return text.rstrip("\n")

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one self-contained page, and write it to ``path`` if one is given.

        ``sourcewise audit`` makes the same page with more on it: what the sources gain in
        cross-validated error, and what is wrong with each source that was set aside. Needs jinja2:
        the extra ``cli``.
        """
        from sourcewise.report.html import render

        text = render(self)
        if path is not None:
            write_atomically(Path(path), text.encode())
        return text

    def worst_first(self) -> list[int]:
        """Positions of the sources: the reference, then those most against, those that agree last.

        Within each group the largest discrepancy comes first.
        """
        groups = {REFERENCE: 0, **dict.fromkeys(FOUND, 1), **dict.fromkeys(UNTOLD, 2), DIFFERS: 3}

        def key(i: int) -> tuple[int, float, int]:
            row = self.sources[i]
            return groups.get(row.reason, 4), -round(row.discrepancy, 3), i

        return sorted(range(len(self.sources)), key=key)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own; without jinja2, the text."""
        try:
            page = escape(self.to_html(), quote=True)
        except ImportError:
            return f"<pre>{escape(str(self))}</pre>"
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="Report on sources" '
            'style="width: 100%; height: 640px; border: 1px solid #ccc"></iframe>'
        )

    def __str__(self) -> str:
        """Lay the table out for a terminal of 80 columns, the worst sources first.

        Of many sources, the worst are shown, and the others are counted.
        """
        head = f"{'source':<18}{'weight':>8}{'discr.':>8}{'s.e.':>8}{'p':>7}{'rows':>9}  reason"
        lines = [head, "-" * len(head)]
        order = self.worst_first()
        shown = order if len(order) <= MOST_SHOWN else order[: WORST + 1]
        for row in (self.sources[i] for i in shown):
            lines.append(
                f"{_cell(row.source, 18)}{_fit(row.weight, 8)}{_fit(row.discrepancy, 8)}"
                f"{_fit(row.standard_error, 8)}{_fit(row.p_value, 7)}{_fit(row.rows, 9)}"
                f"  {SHORT[row.reason]}"
            )
        if len(shown) < len(order):
            lines.append(self._others(order[len(shown) :]))
        if any(row.reason == DIFFERS for row in self.sources):
            lines.append(NO_HARM)
        lines += self._missed()
        lines.append(self._rule())
        if self.scaling:
            lines.append(SCALED[self.scaling])
        return "\n".join([*lines, *(line for note in self.notes for line in _wrapped(note))])

    def _others(self, positions: list[int]) -> str:
        """Count the sources that are not shown."""
        counts = Counter(SHORT[self.sources[i].reason] for i in positions)
        kinds = ", ".join(f"{number:,} {reason!r}" for reason, number in counts.most_common())
        text = f"... and {len(positions):,} more of {len(self.sources) - 1:,} sources: {kinds}"
        return textwrap.fill(text, 79, subsequent_indent="  ")

    def _missed(self) -> list[str]:
        """Say what would have gone unnoticed in the sources that agree."""
        shares = [row.missed for row in self.sources if row.reason == AGREES and row.missed]
        if not shares:
            return []
        return _wrapped(MISSED.format(share=f"{max(shares):.0%}"))

    def _rule(self) -> str:
        """Say in a line of 80 columns which sources count."""
        about = f"lambda = {self.trade_off:.3g}"
        if np.isinf(self.trade_off):
            return f"{about}: every source counts by its rows."
        if self.trade_off == 0:
            return f"{about}: only what is closest to the reference counts."
        if self.averaged:
            # Of other lambdas other sources count a little: the table's weights are averages.
            about = f"Weights average over lambda; at {self.trade_off:.3g}, the likeliest"
            return f"{about}, sources below {self.cutoff:.3g} count."
        return f"{about}: a source counts if its discrepancy is below {self.cutoff:.3g}."


def _wrapped(note: str) -> list[str]:
    return textwrap.wrap(one_line(note), WIDTH)


def _cell(value: Any, width: int) -> str:
    """Name in a column of a terminal: one line, nothing that moves the cursor, wide signs count."""
    name = one_line(value)
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
