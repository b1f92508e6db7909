"""Findings about sources: small arrays by name, put together as they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from sourcewise.core.data import IntArray
from sourcewise.core.engine import Arrays

Findings = Arrays  # or findings of several kinds, each by name
OnAnswer = Callable[[int], None]


def concat_findings(parts: Sequence[Findings]) -> Findings:
    """Put findings about some sources behind those about others."""
    return {
        name: concat_findings([part[name] for part in parts])
        if isinstance(first, dict)
        else np.concatenate([part[name] for part in parts], axis=-1)
        for name, first in parts[0].items()
    }


def select_findings(found: Findings, sources: Any) -> Findings:
    """Return the findings about some sources, in the order asked for."""
    return {
        name: select_findings(part, sources) if isinstance(part, dict) else part[..., sources]
        for name, part in found.items()
    }


def gather(
    answers: Iterable[tuple[IntArray, Findings]], on_answer: OnAnswer | None = None
) -> Findings:
    """Put findings together that come with the positions of their sources, in any order.

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
