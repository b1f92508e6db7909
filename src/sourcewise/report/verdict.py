"""The report in a sentence, and evidence in words."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from sourcewise.core.discrepancy import Witness
from sourcewise.report.reasons import DIFFERS, FOUND, REFERENCE, SMALL_REFERENCE, TOO_FEW

if TYPE_CHECKING:
    from sourcewise.report.source_report import SourceReport

# A source is set aside where one of its rows counts at most this share of a trusted row: weights
# averaged over several trade-offs may leave it a trace.
TRACE = 0.05


@dataclass(frozen=True)
class Verdict:
    """Positions of the sources in each group; the reference is in none."""

    agree: list[int]  # nothing found against them
    set_aside: list[int]  # found to disagree, and without weight (or with a trace of it)
    doubted: list[int]  # found to disagree, but so little that some weight remains
    too_small: list[int]  # too few rows to tell
    untold: list[int]  # large enough, but the reference is not
    unused: list[int]  # those of `agree` that get no weight all the same, or a trace
    # Those of `agree` whose rows differ by their p-values, but do no harm.
    harmless: list[int] = field(default_factory=list)

    @property
    def n_sources(self) -> int:
        """Sources besides the reference."""
        told = len(self.agree) + len(self.set_aside) + len(self.doubted)
        return told + len(self.too_small) + len(self.untold)

    def __str__(self) -> str:
        """Say it in one sentence."""
        n = self.n_sources
        if n == 0:
            return "There is no source besides your reference."
        if n == 1 and self.too_small:
            return "The only source is too small to tell whether it agrees with your reference."
        if n == 1 and self.untold:
            return "Your reference is too small to tell whether the only source agrees with it."
        agree = len(self.agree)
        parts = [f"{agree} of {n} sources agree{'s' if agree == 1 else ''} with your reference"]
        if n == 1:
            parts = [f"The only source {'agrees' if agree else 'does not agree'}"]
            parts[0] += " with your reference"
        notes = []
        if self.harmless:
            verb = "differs but does" if len(self.harmless) == 1 else "differ but do"
            notes.append(f"{len(self.harmless)} {verb} no harm")
        if self.unused:
            notes.append(f"{len(self.unused)} of them hardly counted")
        if notes:
            parts[0] += f" ({', '.join(notes)})"
        if self.set_aside:
            parts.append(f"{len(self.set_aside)} {_are(self.set_aside)} set aside")
        if self.doubted:
            verb = "differs a little and counts" if len(self.doubted) == 1 else "differ a little"
            verb = verb if len(self.doubted) == 1 else f"{verb} and count"
            parts.append(f"{len(self.doubted)} {verb} for less")
        if self.too_small:
            parts.append(f"{len(self.too_small)} {_are(self.too_small)} too small to tell")
        if self.untold:
            parts.append(f"for {len(self.untold)} your reference is too small to tell")
        return "; ".join(parts) + "."


def _are(which: list[int]) -> str:
    return "is" if len(which) == 1 else "are"


def verdict(report: SourceReport) -> Verdict:
    """Group the sources of a report."""
    groups: dict[str, list[int]] = {each.name: [] for each in fields(Verdict)}
    trace = TRACE * max(
        (row.weight / row.rows for row in report.sources if row.reason == REFERENCE), default=0.0
    )
    for i, row in enumerate(report.sources):
        if row.reason == REFERENCE:
            continue
        weightless = row.weight <= trace * row.rows
        if row.reason in FOUND:
            groups["set_aside" if weightless else "doubted"].append(i)
        elif row.reason == TOO_FEW:
            groups["too_small"].append(i)
        elif row.reason == SMALL_REFERENCE:
            groups["untold"].append(i)
        else:
            groups["agree"].append(i)
            if weightless:
                groups["unused"].append(i)
            if row.reason == DIFFERS:
                groups["harmless"].append(i)
    return Verdict(**groups)


# By witness: the hypothesis, and where it does worse if that makes a difference.
EVIDENCE = {
    ("reference model", "source"): (
        "A model trained on your reference does clearly worse on this source's rows."
    ),
    ("reference model", "reference"): (
        "A model trained on your reference does clearly better here than on your own rows."
    ),
    ("source model", "reference"): (
        "A model trained on this source does clearly worse on your reference."
    ),
    ("source model", "source"): (
        "Even a model trained on this source cannot predict the source's own labels."
    ),
    ("joint model", ""): (
        "A model trained on your reference does worse on it once it has seen this source."
    ),
    ("agreement", ""): (
        "What a model of your reference knows shows less in this source's labels than in yours."
    ),
    ("features", ""): "Its features are spread quite unlike your reference's.",
    ("separating model", ""): (
        "A model was found that distinguishes this source's labels from your reference's."
    ),
}


def evidence_in_words(witness: Witness) -> str:
    """Say which model showed a source's discrepancy."""
    model = witness.hypothesis.partition(" of class ")[0]
    return EVIDENCE.get((model, witness.worse_on)) or EVIDENCE.get((model, ""), "")
