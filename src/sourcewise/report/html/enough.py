"""Whether the reference is large enough, in rows and labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sourcewise.report.html.numbers import count, counted, percent
from sourcewise.report.source_report import SourceReport


@dataclass(frozen=True)
class Enough:
    """All that the section says.

    Attributes
    ----------
    opinion, note : str
    tiles : list of (value, what it is)
    """

    opinion: str
    note: str
    tiles: list[tuple[str, str]]


def enough(report: SourceReport) -> Enough:
    """Say what so many trusted rows can and cannot find."""
    assert report.context is not None
    found = report.context.adequacy
    rows, typical = counted(found.rows, "trusted row"), counted(found.source_rows, "row")
    tiles = [
        (count(found.rows), "trusted row" if round(found.rows) == 1 else "trusted rows"),
        (count(found.source_rows), "rows of a typical source"),
    ]
    if math.isnan(found.power_of_random):
        opinion = f"There are {rows}."
        return Enough(opinion, "How few wrong labels they find is not known here.", tiles)
    if not math.isfinite(found.detectable_discrepancy):
        opinion = "Bad sources may still go unnoticed: more trusted rows would help."
        note = (
            f"With {rows}, a typical source of {typical} may go unnoticed even if all of its "
            f"labels are random; it is found {percent(found.power_of_random, 0)} of the time."
        )
        return Enough(opinion, note, tiles)
    tiles.append(
        (
            percent(found.detectable_share, 0),
            "of a source's labels must be random to be proven so",
        )
    )
    limited = not math.isfinite(found.rows_to_halve)
    why = "many have too few rows of their own" if limited else "more trusted rows would help"
    opinion = (
        "It is large enough to find those sources that would do harm."
        if found.detectable_discrepancy <= report.cutoff
        else f"Sources that are bad enough to be set aside may still go unnoticed: {why}."
    )
    note = (
        f"With {rows}, a typical source of {typical} is proven to differ four times "
        f"out of five if {percent(found.detectable_share, 0)} of its labels are random."
    )
    if not limited:
        tiles.append((count(found.rows_to_halve), "more trusted rows would halve that"))
    else:
        note += " No number of trusted rows would halve that: the sources are too small."
    return Enough(opinion, note, tiles)
