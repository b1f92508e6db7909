"""Templates, and how what is put into them is escaped: automatically, all of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sourcewise.extras import how_to_install
from sourcewise.report.html.numbers import count, counted, number, p_value, percent, weight
from sourcewise.safe_text import embedded, shortened, visible

if TYPE_CHECKING:
    from jinja2 import Environment

JINJA_MISSING = "A page needs jinja2: {how}."


@cache
def environment() -> Environment:
    """Return the templates' environment; the only place where jinja2 is asked for."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(JINJA_MISSING.format(how=how_to_install("cli"))) from error
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("sourcewise.report.html"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        count=count,
        counted=counted,
        number=number,
        percent=percent,
        p_value=p_value,
        weight=weight,
        shortened=shortened,
        embedded=_embedded,
    )
    return made


def _shown(value: Any) -> Any:
    """Make any text visible before it is escaped; what a template made is done already."""
    if hasattr(value, "__html__"):
        return value
    return visible(value) if isinstance(value, str) else value


def _embedded(content: Any) -> Any:
    from markupsafe import Markup

    return Markup(embedded(content))


def as_it_is(text: str) -> Any:
    """Mark a text of ours that needs no escaping: the style, the script."""
    from markupsafe import Markup

    return Markup(text)
