"""A guess in words: what it rests on, and what to ask."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.audit.column_kinds import ColumnFinding
from sourcewise.audit.label_kinds import Hypothesis, OwnRule

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

# What a guess rests on, by its kind.
RESTS_ON = {
    "one label for all": "{here:.0%} of its rows have the label {a}; of yours, {there:.0%}.",
    "label bias": (
        "{here:.0%} of its rows have the label {a}; of yours, {there:.0%}: as if {amount:.0%} of "
        "its rows had got that label whatever they are."
    ),
    "two classes swapped": (
        "Where the model expects {a} it says {b}, and the other way round; its other labels fit."
    ),
    "classes permuted": "Its labels fit if the names of {moved} are exchanged.",
    "class never used": "It never uses {a} ({here:.0%} of its rows; of yours, {there:.0%}).",
    "class relabelled": (
        "It never uses {a} ({here:.0%} of its rows; of yours, {there:.0%}), and says {b} where the "
        "model expects it."
    ),
    "columns permuted": "Columns lie in other places: {pairs}; put back, its labels fit.",
    "other units": "{four} {scale}; brought to yours, its labels fit.",
    "noisy features": (
        "{n_columns} of its columns spread more widely than yours, around the same middle."
    ),
    "other population": (
        "Its labels fit what the model expects of them, but its rows lie elsewhere ({three})."
    ),
    "label units": "Its labels are {amount:.3g} times what the model expects; divided, they fit.",
    "label shift": "Its labels lie {size} {side} what the model expects; moved, they fit.",
}
# The same of kinds that the model's agreement shows, classes first, then numbers.
AGREES = (
    "The model agrees with {agreed:.0%} of its labels{words}; on your own rows it is right for "
    "{usual:.0%}.",
    "Its labels correlate {agreed:+.2f} with what the model predicts, {words}; your own do "
    "{usual:+.2f}.",
)
AGREEMENT = {
    ("flipped labels", False): ", as if the two classes were exchanged",
    ("shuffled labels", False): ", no more than labels in any order would",
    ("noisy labels", False): ", as if {amount:.0%} of them were changed at random",
    ("flipped sign", True): "the sign is turned",
    ("shuffled labels", True): "no more than chance",
    ("noisy labels", True): "errors are {amount:.2g} times as large as usual",
}
FACTS = (
    "the model agrees with {agreed:.0%} of its labels, and is right for {usual:.0%} of yours",
    "its labels correlate {agreed:+.2f} with what the model predicts, yours {usual:+.2f}",
)


def why(
    kind: str,
    best: Hypothesis,
    found: ColumnFinding | None,
    own: OwnRule | None,
    *,
    features: np.ndarray,
    numbers: bool,
    rows: int,
    rates: list[tuple[Any, float, float]],
    agreement: tuple[float, float],
) -> str:
    """Say what a guess rests on.

    ``rates`` are labels with their shares here and in the reference, ``agreement`` is that of the
    model with labels here and on held-out trusted rows.
    """
    told: dict[str, Any] = dict(zip(("agreed", "usual"), agreement, strict=True))
    told["amount"] = best.amount
    columns = [] if found is None else [repr(str(features[j])) for j in found.columns]
    if kind == CANNOT_TELL:
        return _cannot_tell(FACTS[numbers].format(**told), columns, own, rows)
    if kind not in RESTS_ON:
        return AGREES[numbers].format(words=AGREEMENT[kind, numbers].format(**told), **told)
    if best.classes:
        named = [rates[k] for k in best.classes]
        told["here"], told["there"] = named[0][1:]
        told["a"], told["b"] = repr(named[0][0]), repr(named[-1][0])
        told["moved"] = ", ".join(repr(label) for label, _, _ in named[:8])
    told["side"] = "above" if best.amount > 0 else "below"
    told["size"] = f"{float(f'{abs(best.amount):.3g}'):,.10g}"
    told["n_columns"], told["four"] = len(columns), ", ".join(columns[:4])
    told["scale"] = "has another scale" if len(columns) == 1 else "have another scale"
    more = len(columns) - 3
    told["three"] = ", ".join(columns[:3]) + (f" and {more} more" if more > 0 else "")
    if found is not None and found.came_from is not None:
        places = zip(columns[:3], found.came_from[:3], strict=True)
        pairs = [f"its {here} looks like your {str(features[b])!r}" for here, b in places]
        told["pairs"] = ", ".join(pairs) + (f" (and {more} more columns)" if more > 0 else "")
    return RESTS_ON[kind].format(**told)


def _cannot_tell(facts: str, columns: list[str], own: OwnRule | None, rows: int) -> str:
    if own is None:
        few = "1 row is" if rows == 1 else f"{rows} rows are"
        return f"{few} too few for a guess: {facts}."
    if columns:
        return (
            f"Its columns differ from yours (most: {columns[0]}), and that alone does "
            f"not explain it: {facts}."
        )
    if own.sureness > 5.0 and own.likeness < 0.4:
        return (
            f"Its labels follow its columns, but by another rule than yours: {facts}. Columns "
            "in another order would look like that."
        )
    return f"No single mistake explains it: {facts}."
