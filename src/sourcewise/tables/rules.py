"""What is done to one raw column, and how that is said in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MISSING, OTHER = "(missing)", "(other)"
Kind = Literal["number", "boolean", "category", "date", "text", "left out"]
IN_DAYS, IN_HOURS = "days since 1970-01-01", "hours since midnight"


@dataclass(frozen=True)
class ColumnRule:
    """What is done to one column."""

    name: str
    kind: Kind  # {"number", "boolean", "category", "date", "text", "left out"}
    # What a missing number or boolean is replaced by: the reference's median, or the more frequent
    # of the two values.
    fill: float = 0.0
    # Whether a column that says "was missing" is added: where the reference misses some.
    indicator: bool = False
    levels: tuple[str, ...] = ()  # categories with a column of their own, the most frequent first
    # Whether rare categories share a column; categories the reference does not have go there too,
    # and count as none of the levels where there is no such column.
    other: bool = False
    # Reference rows with no value, and rare categories put together.
    missing: int = 0
    grouped: int = 0
    order: str = ""  # how a date in a column of text is written: "ymd", "dmy" or "mdy"
    measure: str = ""  # what a date is turned into
    buckets: int = 0  # columns that the words of a text are hashed to
    # What a number is divided by: the reference's standard deviation beside a text, 1 otherwise.
    unit: float = 1.0
    wordy: bool = False  # of a column that is left out: whether it looks like free text

    @property
    def width(self) -> int:
        """How many numbers this column turns into."""
        if self.kind == "left out":
            return 0
        if self.kind == "text":
            return self.buckets
        if self.kind == "category":
            return len(self.levels) + self.other + self.indicator
        return 1 + self.indicator

    @property
    def features(self) -> list[str]:
        """Names of the numbers this column turns into."""
        if self.kind == "left out":
            return []
        if self.kind == "text":
            return [f"{self.name}: #{k}" for k in range(self.buckets)]
        if self.kind == "category":
            levels = [*self.levels, *([OTHER] * self.other), *([MISSING] * self.indicator)]
            return [f"{self.name} = {level}" for level in levels]
        return [self.name, *([f"{self.name} = {MISSING}"] * self.indicator)]

    def __str__(self) -> str:
        """Say what was done in words."""
        if self.kind == "left out":
            looks = "free text" if self.wordy else "a name or number of its own for every row"
            return f"left out: hardly any two rows share a value (it looks like {looks})"
        if self.kind == "text":
            return (
                f"text: its words and pairs of words, {self.buckets} columns by hashing, rare ones "
                "among your rows counting more"
            )
        if self.kind == "category":
            text = f"{_count(len(self.levels), 'category', 'categories')}, a column each"
            if self.other:
                text += f"; {_count(self.grouped, 'rare one', 'rare ones')} put together"
            if self.indicator:
                text += f"; missing in {_count(self.missing, 'trusted row')}, a column of its own"
            return text
        return f"{self._as_what()}; {self._if_missing()}"

    def _as_what(self) -> str:
        if self.kind == "boolean":
            return "true is 1, false is 0"
        if self.kind == "number":
            return "as it is"
        orders = {"ymd": "year-month-day", "dmy": "day-month-year", "mdy": "month-day-year"}
        read = f" (read as {orders[self.order]})" if self.order else ""
        return f"a date, turned into {self.measure}{read}"

    def _if_missing(self) -> str:
        by = "the more frequent value" if self.kind == "boolean" else "the reference's median"
        if self.indicator:
            return (
                f"missing in {_count(self.missing, 'trusted row')}: replaced by {by} "
                f"({self.fill:.6g}), with a column that says so"
            )
        return f"if missing, {by} ({self.fill:.6g})"


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
