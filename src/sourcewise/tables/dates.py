"""Dates to numbers, one value at a time: a value that is no date becomes NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.tables.rules import IN_DAYS, IN_HOURS

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


def looks_like_dates(values: Any, share: float = 0.8) -> bool:
    """Whether most of the values of a column of text are dates."""
    import pyarrow.compute as pc

    known = len(values) - values.null_count
    found = pc.sum(pc.match_substring_regex(values, DATE_LIKE)).as_py() or 0
    return bool(known > 0 and found > share * known)


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
        found = pc.fill_null(text.cast("float64"), np.nan)
        return np.asarray(found.to_numpy(zero_copy_only=False) if _single(found) else found)

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


def _single(values: Any) -> bool:
    import pyarrow as pa

    return isinstance(values, pa.Array)


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
        return _floats(values) / 3.6e9
    if types.is_duration(values.type):
        values = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
    else:
        values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    return _floats(values) / (DAY * 1e6)


def _floats(values: Any) -> np.ndarray:
    found = values.cast("float64")
    return np.asarray(found.to_numpy(zero_copy_only=False) if _single(found) else found.to_numpy())
