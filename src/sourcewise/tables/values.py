"""Values of raw columns as numbers, whatever type they come in: numbers, dates, free text.

What is no number or no date becomes NaN. Which column a word goes to is a fixed function of the
word, and what it counts for is learnt from the reference's rows alone, so that no source can bend
either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize

from sourcewise.tables.rules import IN_DAYS, IN_HOURS, ColumnRule

# -- dates ------------------------------------------------------------------------------------


AMBIGUOUS = (
    "Column {name!r} holds dates such as {value!r}, of which no trusted row says whether the day "
    "or the month comes first; write them as 2024-12-31, or leave the column out with --drop."
)
DATE_LIKE = r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?\s*$"
PARTS = (
    r"^\s*(?P<a>\d{1,4})[-/.](?P<b>\d{1,2})[-/.](?P<c>\d{1,4})"
    r"(?:[ T]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?.*)?\s*$"
)
ORDERS = ("ymd", "dmy", "mdy")
DAY = 86_400.0
MOSTLY_DATES = 0.8  # this share of a column of text, and it is one of dates


def looks_like_dates(values: Any) -> bool:
    """Whether most of the values of a column of text are dates."""
    import pyarrow.compute as pc

    known = len(values) - values.null_count
    found = pc.sum(pc.match_substring_regex(values, DATE_LIKE)).as_py() or 0
    return bool(known > 0 and found > MOSTLY_DATES * known)


def order_of(name: str, values: Any) -> str:
    """Find out how the reference writes its dates: where they decide nothing, refuse."""
    import pyarrow.compute as pc

    good = {order: int(np.isfinite(text_days(values, order)).sum()) for order in ORDERS}
    most = max(good.values())
    orders = [order for order in ORDERS if good[order] == most]
    if len(orders) == 1 or orders[0] == "ymd":
        return orders[0]
    dotted = pc.sum(pc.match_substring(values, ".")).as_py() or 0
    if dotted == len(values) - values.null_count:  # 3.4.2024 is written where days come first
        return "dmy"
    raise ValueError(AMBIGUOUS.format(name=name, value=pc.drop_null(values)[0].as_py()))


def text_days(values: Any, order: str) -> np.ndarray:
    """Days since 1970-01-01 of dates in words; NaN where there is none, or none like that."""
    import pyarrow.compute as pc

    parts = pc.extract_regex(values, PARTS)

    def number(field: str) -> np.ndarray:
        text = pc.struct_field(parts, field)
        text = pc.if_else(pc.equal(text, ""), None, text)
        return plain(pc.fill_null(text.cast("float64"), np.nan))

    a, b, c = (number(field) for field in "abc")
    year, month, day = {"ymd": (a, b, c), "dmy": (c, b, a), "mdy": (c, a, b)}[order]
    year = np.where(year < 70, year + 2000, np.where(year < 100, year + 1900, year))
    sound = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1000)
    whole = [np.where(sound, v, d).astype(np.int64) for v, d in ((year, 1970), (month, 1))]
    months = ((whole[0] - 1970) * 12 + whole[1] - 1).astype("datetime64[M]")
    following = months + np.timedelta64(1, "M")
    length = (following.astype("datetime64[D]") - months.astype("datetime64[D]")).astype(int)
    sound &= day <= length
    days = months.astype("datetime64[D]").astype(np.float64) + day - 1.0
    seconds = sum(
        np.nan_to_num(number(field)) * size
        for field, size in (("hour", 3600.0), ("minute", 60.0), ("second", 1.0))
    )
    return np.asarray(np.where(sound, days + seconds / DAY, np.nan))


def measure_of(kind: Any) -> str:
    """Say what a column of a type of Arrow's is turned into."""
    import pyarrow.types as types

    if types.is_time(kind):
        return IN_HOURS
    return "days" if types.is_duration(kind) else IN_DAYS


def typed_numbers(values: Any) -> np.ndarray:
    """Days, or hours for times of the day, of a column whose type says what it holds."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_time(values.type):
        values = values.cast(pa.time64("us")).cast(pa.int64())
        return plain(values.cast("float64")) / 3.6e9
    if types.is_duration(values.type):
        values = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
    else:
        values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return plain(values.cast("float64")) / (DAY * 1e6)


# -- numbers and categories -------------------------------------------------------------------


DATES = (
    "Column {name!r} holds dates or times; pass --dates to turn them into numbers (dates=True in "
    "Python), or leave the column out with --drop."
)
NOT_A_VALUE = "Column {name!r} holds {kind}, not single values; leave it out with --drop."
ALL_MISSING = (
    "Column {name!r} has no value in any row of the reference, so nothing can be learnt about it; "
    "leave it out with --drop."
)
KIND_CHANGED = (
    "Column {name!r} holds {found}, and the reference has {expected} there; make them the same."
)
NOT_A_NUMBER = (
    "Column {name!r} holds {value!r} (row {row}) where the reference has numbers; correct it."
)
NOT_A_DATE = (
    "Column {name!r} holds {value!r} (row {row}) where the reference has dates; correct it."
)
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def as_arrow(table: Any) -> Any:
    """Take a pyarrow table, or a pandas or polars frame, as a pyarrow table."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers and words in one column: as in a file, words decide.
        loose = {
            name: table[name].map(str, na_action="ignore")
            for name in table.columns
            if table[name].dtype == object
        }
        return pa.Table.from_pandas(table.assign(**loose), preserve_index=False)


def column_kind(name: str, kind: Any, *, dates: bool = False) -> str:
    """Say whether a type holds numbers, booleans, categories or dates, or refuse it by name."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "category"
    if types.is_null(kind):
        raise ValueError(ALL_MISSING.format(name=name))
    if types.is_temporal(kind):
        if dates:
            return "date"
        raise ValueError(DATES.format(name=name))
    raise ValueError(NOT_A_VALUE.format(name=name, kind=str(kind)))


def write_category(rule: ColumnRule, values: Any, out: np.ndarray) -> None:
    """Write ones to an array of zeros, a column for each category."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(values, value_set=pa.array(rule.levels, type=values.type))
    position = plain(pc.fill_null(found, -1)).astype(np.intp)
    missing = plain(pc.is_null(values)).astype(bool)
    n = len(rule.levels)
    if rule.other:
        position[(position < 0) & ~missing] = n
    if rule.indicator:
        position[missing] = n + rule.other
    rows = np.flatnonzero(position >= 0)
    out[rows, position[rows]] = 1.0


def write_number(rule: ColumnRule, numbers: np.ndarray, out: np.ndarray) -> None:
    """Write numbers, gaps filled, and where the rule says so which of them were gaps."""
    missing = np.isnan(numbers)
    if missing.any():
        numbers = np.where(missing, rule.fill, numbers)
    out[:, 0] = numbers if rule.unit == 1.0 else numbers / rule.unit
    if rule.indicator:
        out[:, 1] = missing


def as_numbers(rule: ColumnRule, values: Any) -> np.ndarray:
    """Floats, NaN where missing."""
    import pyarrow as pa
    import pyarrow.types as types

    name = rule.name
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_null(values.type):
        return np.full(len(values), np.nan)
    kind = column_kind(name, values.type, dates=True)
    if rule.kind == "date":
        return _as_days(rule, values, kind)
    if kind == "category":
        return _sound(numbers_in_text(values), values, NOT_A_NUMBER, name)
    if kind == "date":
        raise ValueError(KIND_CHANGED.format(name=name, found="dates", expected="numbers"))
    if types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not types.is_float32(values.type):
        values = values.cast(pa.float64(), safe=False)
    return plain(values)


def is_plain(values: Any) -> bool:
    """Whether a column holds numbers without gaps, which need no conversion."""
    kind = values.type
    return bool(kind.id in _plain_types() and values.null_count == 0)


@cache
def _plain_types() -> frozenset[int]:
    import pyarrow as pa

    kinds = (pa.float64(), pa.float32(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.uint8())
    return frozenset(kind.id for kind in kinds)


def plain_block(columns: Sequence[Any]) -> np.ndarray:
    """Put plain columns side by side."""
    return np.column_stack([plain(values) for values in columns])


def _as_days(rule: ColumnRule, values: Any, kind: str) -> np.ndarray:
    if kind == "date":
        return typed_numbers(values)
    if kind != "category":
        raise ValueError(KIND_CHANGED.format(name=rule.name, found="numbers", expected="dates"))
    values = as_text(values)
    return _sound(text_days(values, rule.order or "ymd"), values, NOT_A_DATE, rule.name)


def numbers_in_text(values: Any) -> np.ndarray:
    """Read numbers; NaN for what is missing or no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = as_text(values)
    good = pc.match_substring_regex(values, NUMBER)
    trimmed = pc.utf8_ltrim(pc.utf8_trim_whitespace(values), "+")
    return plain(pc.if_else(good, trimmed, None).cast(pa.float64()))


def _sound(numbers: np.ndarray, values: Any, message: str, name: str) -> np.ndarray:
    """Refuse what could not be read."""
    bad = np.isnan(numbers) & ~plain(values.is_null()).astype(bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(message.format(name=name, value=values[row].as_py(), row=row + 1))
    return numbers


def as_text(values: Any, name: str = "") -> Any:
    """Take any values as text."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        # 12.0 in one file is 12 in another.
        values = _whole_numbers(values)
    try:
        return values.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise ValueError(NOT_A_VALUE.format(name=name, kind=str(values.type))) from error


def _whole_numbers(values: Any) -> Any:
    import pyarrow as pa

    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values


def plain(values: Any) -> np.ndarray:
    """Return a numpy array; missing values become NaN."""
    if hasattr(values, "combine_chunks"):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


# -- free text ----------------------------------------------------------------------------------


BUCKETS = 2**16


def hashed_words(values: Any) -> Any:
    """Count the words and pairs of words of texts: a csr matrix with ``BUCKETS`` columns."""
    return _vectorizer().transform(["" if v is None else v for v in values.to_pylist()]).tocsr()


def rarity(values: Any) -> np.ndarray:
    """Learn from trusted texts what each bucket counts: log((1 + n) / (1 + rows with it)) + 1."""
    counts = hashed_words(values)
    rows_with = np.bincount(counts.indices, minlength=BUCKETS)
    return np.asarray(np.log((1.0 + counts.shape[0]) / (1.0 + rows_with)) + 1.0)


def text_features(values: Any, rarities: np.ndarray, dtype: Any) -> Any:
    """Weigh hashed words: logarithms of counts times rarity, each row of length 1."""
    counts = hashed_words(values)
    counts.data = (1.0 + np.log(counts.data)) * rarities[counts.indices]
    return scipy.sparse.csr_array(normalize(counts, copy=False).astype(dtype))


def words_of_buckets(values: Any) -> dict[int, str]:
    """Name the buckets that trusted texts use, each by its most frequent word or pair."""
    analyze = _vectorizer().build_analyzer()
    seen: dict[str, int] = {}
    for text in values.to_pylist():
        for word in set(analyze(text or "")):
            seen[word] = seen.get(word, 0) + 1
    return _buckets(sorted(seen, key=lambda word: (seen[word], word)))


def _buckets(words: list[str]) -> dict[int, str]:
    if not words:
        return {}
    from sklearn.feature_extraction.text import HashingVectorizer

    one_each = HashingVectorizer(
        analyzer=lambda word: [word], n_features=BUCKETS, alternate_sign=False, norm=None
    )
    found = one_each.transform(words).tocsr().indices
    return {int(bucket): word for bucket, word in zip(found, words, strict=True)}


def _vectorizer() -> Any:
    # Slow to import, and few tables have text.
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        ngram_range=(1, 2), n_features=BUCKETS, alternate_sign=False, norm=None, dtype=np.float64
    )
