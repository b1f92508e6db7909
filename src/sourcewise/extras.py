"""What to install for the parts that need more than numpy, scipy and scikit-learn."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

PACKAGE = "sourcewise"
EXTRA = re.compile(r"extra\s*==\s*['\"](?P<extra>[\w-]+)['\"]")
INNER = re.compile(rf"{PACKAGE}\[(?P<extras>[\w,-]+)\]")


def import_extra(module: str, extra: str, missing: str) -> Any:
    """Import a module of an extra; ``missing`` is the sentence without it, with ``{how}``."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(missing.format(how=how_to_install(extra))) from error


def how_to_install(extra: str) -> str:
    """Return the command that installs what an extra brings, true wherever we came from.

    The packages are named one by one: sourcewise itself may have come from a clone or
    a wheel.

    Examples
    --------
    >>> from sourcewise.extras import how_to_install
    >>> how_to_install("save").startswith("pip install 'skops")
    True
    """
    quoted = " ".join(f"'{requirement}'" for requirement in _requirements(extra))
    return f"pip install {quoted}" if quoted else f"install its extra '{extra}'"


def _requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, those of extras that it names included."""
    try:
        lines = requires(PACKAGE) or []
    except PackageNotFoundError:  # run from a folder of source code
        return []
    found: list[str] = []
    for line in lines:
        requirement, _, condition = line.partition(";")
        named = EXTRA.search(condition)
        if named is None or named["extra"] != extra:
            continue
        inner = INNER.match(requirement.strip())
        found += _inner(inner["extras"]) if inner else [requirement.strip()]
    return list(dict.fromkeys(found))


def _inner(extras: str) -> list[str]:
    return [requirement for extra in extras.split(",") for requirement in _requirements(extra)]
