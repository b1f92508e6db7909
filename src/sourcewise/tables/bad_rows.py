"""Rows that cannot be used: left out, counted, and held against the source that sent them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.tables.values import NUMBER, as_text, numbers_in_text, plain, text_days

NO_SOURCE, NO_LABEL = "no source", "no label"
UNKNOWN_LABEL = "a label that no trusted row has (such as {value!r})"
NOT_A_NUMBER = "no number in column {column!r} (such as {value!r})"
NOT_A_DATE = "no date in column {column!r} (such as {value!r})"
INFINITE = "infinity in column {column!r}"
BEYOND = "a number beyond single precision (3.4e38)"
TOO_LARGE = BEYOND + " in column {column!r} (such as {value!r})"
UNNAMED, UNREADABLE = "(rows without a source)", "(lines with too few or too many cells)"
MIXED_TYPES = (
    "Column {name!r} mixes numbers and text (row {row} holds {value!r}); correct it, leave such "
    "rows out with --skip-bad-rows, the column with --drop, or take it as categories with "
    "--categories."
)
MIXED_LABELS = (
    "Column {name!r} mixes numbers and text (row {row} holds {value!r}); correct it, or leave such "
    "rows out with --skip-bad-rows."
)
MIXED_DATES = (
    "Column {name!r} holds dates, but {value!r} in row {row}; correct it, leave such rows out with "
    "--skip-bad-rows, or the column with --drop."
)
LONGEST = 40
# A column of text is taken for numbers with mistakes in it if this many values are numbers.
MOSTLY_NUMBERS = 0.8
# Trees read single precision, and no learner does well beyond it.
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class SkippedRows:
    """Rows of one source that were left out for one reason."""

    source: str
    rows: int
    why: str  # what is wrong with them, after "has"
    first: int  # the first of them, counted from 1; 0 where it is not known

    def __str__(self) -> str:
        """Say it in a line."""
        rows = "1 row was" if self.rows == 1 else f"{self.rows:,} rows were"
        where = f" (first: row {self.first:,})" if self.first else ""
        return f"{self.source}: {rows} left out, with {self.why}{where}"


class BadRows:
    """Collects bad rows; a row that is bad twice counts for the first reason."""

    def __init__(self, codes: np.ndarray, unreadable: int = 0):
        self.codes = codes  # position of each row's source among the names; -1 for none
        self.unreadable = unreadable  # lines that never became rows
        self.reason = np.full(len(codes), -1, dtype=np.intp)
        self.reasons: list[str] = []
        self.examples: dict[tuple[int, int], Any] = {}

    def add(self, bad: np.ndarray, why: str, values: Any = None) -> None:
        """Note which rows are bad; of ``values``, the first of each source is quoted."""
        rows = np.flatnonzero(bad & self.good)
        if len(rows) == 0:
            return
        if why not in self.reasons:
            self.reasons.append(why)
        reason = self.reasons.index(why)
        self.reason[rows] = reason
        if values is not None:
            for code, first in zip(*np.unique(self.codes[rows], return_index=True), strict=True):
                value = values[int(rows[first])]
                value = value.as_py() if hasattr(value, "as_py") else np.asarray(value).tolist()
                self.examples[int(code), reason] = quoted(value)

    @property
    def good(self) -> np.ndarray:
        """Which rows have nothing against them."""
        return np.asarray(self.reason < 0)

    def summary(self, names: list[str]) -> tuple[SkippedRows, ...]:
        """Count by source and reason, the sources with most first."""
        found = []
        bad = np.flatnonzero(~self.good)
        pairs = np.stack([self.codes[bad], self.reason[bad]], axis=1)
        kinds, first, counts = np.unique(pairs, axis=0, return_index=True, return_counts=True)
        for (code, reason), row, count in zip(kinds.tolist(), first, counts.tolist(), strict=True):
            why = self.reasons[reason].format(value=self.examples.get((code, reason)))
            name = names[code] if code >= 0 else UNNAMED
            found.append(SkippedRows(name, count, why, int(bad[row]) + 1))
        if self.unreadable:
            found.append(SkippedRows(UNREADABLE, self.unreadable, "no place in the table", 0))
        return tuple(sorted(found, key=lambda item: -item.rows))


def quoted(value: Any) -> Any:
    """Shorten a value for a sentence."""
    return f"{value[:LONGEST]}…" if isinstance(value, str) and len(value) > LONGEST else value


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow's holds text."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def bad_values(name: str, values: Any, *, number: bool, order: str) -> tuple[np.ndarray, str]:
    """Which values cannot be used, and why; ``order`` is that of dates in text."""
    import pyarrow.types as types

    column = name.replace("{", "{{").replace("}", "}}")
    if order:
        bad = np.isnan(text_days(as_text(values), order)) & ~missing(values)
        return bad, NOT_A_DATE.replace("{column!r}", repr(column))
    if number and is_text(values.type):
        bad = ~within(numbers_in_text(values)) & ~missing(values)
        return bad, NOT_A_NUMBER.replace("{column!r}", repr(column))
    if types.is_floating(values.type):
        numbers = plain(values)
        bad = ~within(numbers) & ~np.isnan(numbers)
        why = INFINITE if np.isinf(numbers[bad]).all() else TOO_LARGE
        return bad, why.replace("{column!r}", repr(column))
    return np.zeros(len(values), dtype=bool), ""


def within(numbers: np.ndarray) -> np.ndarray:
    """Which numbers single precision holds; NaN is none."""
    return np.asarray(np.abs(numbers) <= LARGEST)


def missing(values: Any) -> np.ndarray:
    """Which values are missing."""
    return plain(values.is_null(nan_is_null=True)).astype(bool)


def numbers_with_mistakes(name: str, trusted: Any, everything: Any | None) -> bool:
    """Whether a column of text was meant to hold numbers.

    That is so where most values are numbers, of the reference's rows or of all, and some are not.
    """
    if not is_text(trusted.type):
        return False
    if mixed(trusted):
        return True
    if everything is None:
        return False
    clean = not np.any(np.isnan(numbers_in_text(trusted)) & ~missing(trusted))
    known = len(trusted) > trusted.null_count
    return mixed(everything, least=0.0 if clean and known else None)


def mixed(values: Any, least: float | None = None) -> bool:
    """Whether most values of a column of text, but not all, are numbers (a share, and more)."""
    import pyarrow.compute as pc

    known = len(values) - values.null_count
    numbers = pc.sum(pc.match_substring_regex(values, NUMBER)).as_py() or 0
    share = MOSTLY_NUMBERS if least is None else least
    return bool(numbers < known and numbers >= share * known)


def check_mixed(name: str, values: Any) -> None:
    """Refuse labels of which most, but not all, are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if text and mixed(values):
        row = pc.index(pc.match_substring_regex(values, NUMBER), False).as_py()
        refuse_mixed(name, values, row, MIXED_LABELS)


def refuse_mixed(name: str, values: Any, row: int, message: str = MIXED_TYPES) -> None:
    """Name a cell that is not what its column holds otherwise."""
    raise ValueError(message.format(name=name, row=row + 1, value=values[row].as_py()))
