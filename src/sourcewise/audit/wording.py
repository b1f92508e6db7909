"""A guess in words: what it rests on, and what to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sourcewise.audit.diagnosis import Guess

CANNOT_TELL = "cannot tell"
TWENTY = "Have {source} label twenty of your trusted rows."
QUESTIONS = {
    "one label for all": "Ask whether a default label is filled in where nobody decided. " + TWENTY,
    "label bias": (
        "Ask how labels are assigned when an annotator is unsure or skips an item, and whether a "
        "default label is filled in. " + TWENTY
    ),
    "flipped labels": (
        "Ask for the label key: which code stands for which class. If the classes were exchanged, "
        "the rows can be saved by exchanging them back; check twenty by hand first."
    ),
    "two classes swapped": (
        "Ask for the label key of these two classes. If they were exchanged, the rows can be saved "
        "by exchanging them back; check twenty by hand first."
    ),
    "classes permuted": (
        "Ask for the label key: which code stands for which class. If the codes were mixed up, the "
        "rows can be saved by mapping them back; check twenty by hand first."
    ),
    "class never used": (
        "Ask whether {source} knows this class, by which guideline, and whether its tool offers it."
    ),
    "class relabelled": (
        "Ask whether {source} puts these two classes together, by guideline or by its tool."
    ),
    "flipped sign": (
        "Ask for the direction and the sign of the label. If it was turned, the rows can be saved "
        "by turning it back."
    ),
    "shuffled labels": (
        "Ask how labels and rows were joined: a sort or a merge on the wrong key detaches them. "
        "Ask for the row identifiers, and check a few labels by hand."
    ),
    "columns permuted": (
        "Ask for the order of the columns in {source}'s export. Put in your order, the rows may be "
        "good."
    ),
    "other units": (
        "Ask for the units and the export settings of the columns below (inches or centimetres, "
        "comma or point, normalised or not). Converted, the rows may be good."
    ),
    "noisy features": (
        "Ask how the columns were measured, and what was done to them before export (rounding, "
        "masking, added noise)."
    ),
    "other population": (
        "Ask where and when these rows were collected, and from whom. They may be right and yet "
        "not about the cases you care for."
    ),
    "label units": (
        "Ask for the unit of the label (currency, thousands, per month or per year). Converted, "
        "the rows may be good."
    ),
    "label shift": "Ask for the zero of the label, and what is added to or taken from it.",
    "noisy labels": "Ask who labels, by which guideline, and whether anyone checks. " + TWENTY,
    CANNOT_TELL: "Look at twenty of its rows beside twenty of yours, and ask how they were made.",
}


@dataclass(frozen=True)
class Wording:
    """Words for one guess.

    Attributes
    ----------
    guess : Guess
    features : array of str
    classes : array, optional
    rows : int
    rates : list of (label, share here, share in the reference)
    agreement : (here, on held-out trusted rows)
    """

    guess: Guess
    features: np.ndarray
    classes: np.ndarray | None
    rows: int
    rates: list[tuple[Any, float, float]]
    agreement: tuple[float, float]

    def why(self) -> str:
        """Say what the guess rests on."""
        special = {
            "one label for all": self._one_label,
            "label bias": self._bias,
            "two classes swapped": self._swapped,
            "classes permuted": self._permuted_classes,
            "class never used": self._never_used,
            "class relabelled": self._relabelled,
            "columns permuted": self._permuted_columns,
            "other units": self._units,
            "noisy features": self._noisier,
            "other population": self._elsewhere,
            "label units": self._label_units,
            "label shift": self._label_shift,
            CANNOT_TELL: self._cannot_tell,
        }
        return special.get(self.guess.kind, self._agreement)()

    def _agreement(self) -> str:
        here, usual = self.agreement
        if self.classes is None:
            words = {
                "flipped sign": "the sign is turned",
                "shuffled labels": "no more than chance",
                "noisy labels": f"errors are {self._amount:.2g} times as large as usual",
            }[self.guess.kind]
            return (
                f"Its labels correlate {here:+.2f} with what the model predicts, {words}; your own "
                f"do {usual:+.2f}."
            )
        words = {
            "flipped labels": ", as if the two classes were exchanged",
            "shuffled labels": ", no more than labels in any order would",
            "noisy labels": f", as if {self._amount:.0%} of them were changed at random",
        }[self.guess.kind]
        return (
            f"The model agrees with {here:.0%} of its labels{words}; on your own rows it is right "
            f"for {usual:.0%}."
        )

    @property
    def _amount(self) -> float:
        return self.guess.hypothesis.amount

    def _name(self, which: int) -> str:
        return repr(self.rates[self.guess.hypothesis.classes[which]][0])

    def _rate(self, which: int) -> tuple[float, float]:
        _, here, there = self.rates[self.guess.hypothesis.classes[which]]
        return here, there

    def _one_label(self) -> str:
        here, there = self._rate(0)
        return f"{here:.0%} of its rows have the label {self._name(0)}; of yours, {there:.0%}."

    def _bias(self) -> str:
        here, there = self._rate(0)
        return (
            f"{here:.0%} of its rows have the label {self._name(0)}; of yours, {there:.0%}: as if "
            f"{self._amount:.0%} of its rows had got that label whatever they are."
        )

    def _swapped(self) -> str:
        return (
            f"Where the model expects {self._name(0)} it says {self._name(1)}, and the other way "
            "round; its other labels fit."
        )

    def _permuted_classes(self) -> str:
        moved = [repr(self.rates[i][0]) for i in self.guess.hypothesis.classes]
        return f"Its labels fit if the names of {', '.join(moved[:8])} are exchanged."

    def _never_used(self) -> str:
        here, there = self._rate(0)
        return f"It never uses {self._name(0)} ({here:.0%} of its rows; of yours, {there:.0%})."

    def _relabelled(self) -> str:
        here, there = self._rate(0)
        return (
            f"It never uses {self._name(0)} ({here:.0%} of its rows; of yours, {there:.0%}), and "
            f"says {self._name(1)} where the model expects it."
        )

    def _columns(self) -> list[str]:
        assert self.guess.columns is not None
        return [repr(str(self.features[j])) for j in self.guess.columns.columns]

    def _permuted_columns(self) -> str:
        found = self.guess.columns
        assert found is not None and found.came_from is not None
        pairs = [
            f"its {str(self.features[a])!r} looks like your {str(self.features[b])!r}"
            for a, b in zip(found.columns[:3], found.came_from[:3], strict=True)
        ]
        more = len(found.columns) - len(pairs)
        rest = f" (and {more} more columns)" if more > 0 else ""
        return f"Columns lie in other places: {', '.join(pairs)}{rest}; put back, its labels fit."

    def _units(self) -> str:
        names = self._columns()
        verb = "has another scale" if len(names) == 1 else "have another scale"
        return f"{', '.join(names[:4])} {verb}; brought to yours, its labels fit."

    def _noisier(self) -> str:
        n = len(self._columns())
        return f"{n} of its columns spread more widely than yours, around the same middle."

    def _elsewhere(self) -> str:
        names = self._columns()
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return (
            f"Its labels fit what the model expects of them, but its rows lie elsewhere "
            f"({', '.join(names[:3])}{more})."
        )

    def _label_units(self) -> str:
        return f"Its labels are {self._amount:.3g} times what the model expects; divided, they fit."

    def _label_shift(self) -> str:
        side = "above" if self._amount > 0 else "below"
        size = f"{float(f'{abs(self._amount):.3g}'):,.10g}"
        return f"Its labels lie {size} {side} what the model expects; moved, they fit."

    def _cannot_tell(self) -> str:
        here, usual = self.agreement
        if self.classes is None:
            facts = (
                f"its labels correlate {here:+.2f} with what the model predicts, yours {usual:+.2f}"
            )
        else:
            facts = (
                f"the model agrees with {here:.0%} of its labels, and is right for {usual:.0%} of "
                "yours"
            )
        own, columns = self.guess.own, self.guess.columns
        if own is None:
            rows = "1 row is" if self.rows == 1 else f"{self.rows} rows are"
            return f"{rows} too few for a guess: {facts}."
        if columns is not None:
            return (
                f"Its columns differ from yours (most: {self._columns()[0]}), and that alone does "
                f"not explain it: {facts}."
            )
        if own.sureness > 5.0 and own.likeness < 0.4:
            return (
                f"Its labels follow its columns, but by another rule than yours: {facts}. Columns "
                "in another order would look like that."
            )
        return f"No single mistake explains it: {facts}."
