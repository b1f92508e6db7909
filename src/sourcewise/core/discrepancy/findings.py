"""Findings about sources: small arrays, put together as they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np

from sourcewise.core.data import IntArray

Found = TypeVar("Found")
OnAnswer = Callable[[int], None]


def concat_findings(parts: Sequence[Found]) -> Found:
    """Put findings about some sources behind those about others.

    Findings are dataclasses of arrays whose last axis runs over the sources, or of other findings.
    """
    first: Any = parts[0]
    values = []
    for field in fields(first):
        pieces = [getattr(part, field.name) for part in parts]
        if is_dataclass(pieces[0]):
            values.append(concat_findings(pieces))
        else:
            values.append(np.concatenate(pieces, axis=-1))
    return cast(Found, type(first)(*values))


def select_findings(found: Found, sources: Any) -> Found:
    """Return the findings about some sources, in the order asked for."""
    whole: Any = found
    values = []
    for field in fields(whole):
        value = getattr(whole, field.name)
        values.append(
            select_findings(value, sources) if is_dataclass(value) else value[..., sources]
        )
    return cast(Found, type(whole)(*values))


def gather(answers: Iterable[tuple[IntArray, Found]], on_answer: OnAnswer | None = None) -> Found:
    """Put answers together that come with the positions of their sources, in any order.

    The result is in the order of the positions. ``on_answer`` is told how many sources have just
    answered.
    """
    positions, parts = [], []
    for some, found in answers:
        positions.append(some)
        parts.append(found)
        if on_answer is not None:
            on_answer(len(some))
    return select_findings(concat_findings(parts), np.argsort(np.concatenate(positions)))
