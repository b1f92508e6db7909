"""Numbers for reading, not for computing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

PERCENT = "\N{NO-BREAK SPACE}%"


def number(value: float, digits: int = 3) -> str:
    """Write a number without a unit."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    size = abs(value)
    if size != 0 and (size < 10.0**-digits or size >= 1e6):
        return f"{value:.2g}"
    return f"{value:,.{digits}f}"


def count(value: float) -> str:
    """Write how many there are.

    Examples
    --------
    >>> from sourcewise.report.html.numbers import count
    >>> count(1234.4)
    '1,234'
    """
    return "∞" if math.isinf(value) else f"{round(value):,}"


def counted(value: float, one: str) -> str:
    """Write how many there are of something.

    Examples
    --------
    >>> from sourcewise.report.html.numbers import counted
    >>> counted(1, "row"), counted(1000, "row")
    ('1 row', '1,000 rows')
    """
    return f"{count(value)} {one}" + ("s" if math.isinf(value) or round(value) != 1 else "")


def percent(value: float, digits: int = 1) -> str:
    """Write a share; nothing parts the number from its sign."""
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}{PERCENT}"


def weight(value: float) -> str:
    r"""Write a source's weight; a small one is not shown as none.

    Examples
    --------
    >>> from sourcewise.report.html.numbers import weight
    >>> weight(0.0), weight(0.12345), weight(0.0003), weight(1e-9)
    ('0.0\xa0%', '12.3\xa0%', '0.03\xa0%', '<\xa00.001\xa0%')
    """
    if value == 0 or value >= 0.0005:
        return percent(value)
    return f"{100 * value:.1g}{PERCENT}" if value >= 1e-5 else f"<\N{NO-BREAK SPACE}0.001{PERCENT}"


def p_value(value: float) -> str:
    """Write a p-value; nobody needs more digits of a small one."""
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def in_unit(typical: Iterable[float], digits: int = 3) -> Callable[[float], str]:
    """Return how to write numbers of one unit, so that they stand in line.

    The smallest of the typical numbers gets so many significant digits, and all others end where
    it does; the largest gets two more at most.

    Examples
    --------
    >>> from sourcewise.report.html.numbers import in_unit
    >>> shown = in_unit([37660.295, 41233.1])
    >>> shown(37660.295), shown(101.2), shown(-123456.0)
    ('37,700', '100', '-123,500')
    >>> in_unit([0.012345])(2.0)
    '2.0000'
    """
    sizes = [abs(v) for v in typical if v != 0 and math.isfinite(v)]
    orders = [math.floor(math.log10(size)) for size in sizes] or [0]
    last = max(min(orders), max(orders) - 2) - digits + 1

    def shown(value: float) -> str:
        if not math.isfinite(value):
            return number(value)
        rounded = round(value, -last)
        if abs(rounded) >= 1e12 or last < -9:
            return f"{value:.{digits}g}"
        return f"{rounded + 0.0:,.{max(-last, 0)}f}"

    return shown


def nice_ceiling(value: float) -> float:
    """Return the next round number."""
    if not value > 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value
    )


def part(value: float, whole: float) -> float:
    """Return what part of a whole something is, in percent and within it; for bars."""
    if not whole > 0 or math.isnan(value):
        return 0.0
    return round(100.0 * min(max(value / whole, 0.0), 1.0), 1)
