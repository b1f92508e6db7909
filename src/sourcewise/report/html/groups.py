"""What a page calls a source: its group, and the sign and colour of that."""

from __future__ import annotations

from dataclasses import dataclass

from sourcewise.report.html.numbers import count
from sourcewise.report.reasons import AGREES, REFERENCE
from sourcewise.report.source_report import SourceReport
from sourcewise.report.verdict import Verdict


@dataclass(frozen=True)
class Group:
    """A group of sources; never shown by colour alone.

    Attributes
    ----------
    style : str
        Class of its elements, and its name in filters.
    sign, name : str
    one : str
        What one source of it is called.
    told : str
        The reason that says no more than `one`.
    titles : pair of str
        Of its table, for one source and for several.
    """

    style: str
    sign: str
    name: str
    one: str
    told: str = ""
    titles: tuple[str, str] = ("", "")

    def title(self, size: int) -> str:
        """Return the heading of its table."""
        return f"{count(size)} {self.titles[size != 1]}"


OWN = Group("own", "★", "your reference", "your reference", REFERENCE)
ASIDE = Group(
    "aside", "✕", "set aside", "set aside", titles=("was set aside", "were set aside, worst first")
)
DOUBTED = Group(
    "doubted",
    "≈",
    "differ a little",
    "counts for less",
    titles=("differs a little and counts for less", "differ a little and count for less"),
)
SMALL = Group(
    "small",
    "?",
    "cannot be told",
    "cannot be told",
    titles=("cannot be told", "cannot be told"),
)
AGREE = Group(
    "agree",
    "✓",
    "agree",
    "agrees",
    AGREES,
    ("agrees with your reference", "agree with your reference"),
)
# As the page has them, from top to bottom.
GROUPS = {group.style: group for group in (ASIDE, DOUBTED, SMALL, AGREE)}
STYLES = {"own": OWN, **GROUPS}


def group_sources(report: SourceReport, found: Verdict) -> list[str]:
    """Group of every source of the report."""
    groups = ["own" if row.reason == REFERENCE else "agree" for row in report.sources]
    for name, which in (
        ("aside", found.set_aside),
        ("doubted", found.doubted),
        ("small", [*found.too_small, *found.untold]),
    ):
        for i in which:
            groups[i] = name
    return groups
