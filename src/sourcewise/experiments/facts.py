"""What a source says for itself or against one reference, computed once for many runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sourcewise.core.discrepancy.evidence import SourceEvidence


class Costs(dict[str, float]):
    """Processor seconds by what they were spent on."""

    @contextmanager
    def clock(self, what: str) -> Iterator[None]:
        """Count the processor time of this thread inside the context."""
        start = time.thread_time()
        try:
            yield
        finally:
            self[what] = self.get(what, 0.0) + time.thread_time() - start


@dataclass(frozen=True)
class Facts:
    """Sources of equal size and what is known of them; the first axis of every array runs over them.

    Attributes
    ----------
    names : tuple of str
    X : float32 array of shape (n, m, d)
        The last column is constant.
    y : int array of shape (n, m)
    gram : array of shape (n, d, d)
        ``X'X / m``; None where no method asks for it, as below.
    plug_in : array of shape (n, 1 + n_folds)
        The paper's discrepancy: from the whole reference, then without each of its folds.
    local : array of shape (n, d)
        Each source's own model.
    local_scores : float32 array of shape (n, n_test)
        What it says of the test rows.
    normalized : float32 array of shape (n, m, d)
        Features standardised within each source.
    mapped : float32 array of shape (n, m, d)
        Features as our default sees them.
    evidence : SourceEvidence
        For our default's discrepancy.
    costs : Costs
        Processor time that went into all this.
    """

    names: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    gram: np.ndarray | None = None
    plug_in: np.ndarray | None = None
    local: np.ndarray | None = None
    local_scores: np.ndarray | None = None
    normalized: np.ndarray | None = None
    mapped: np.ndarray | None = None
    evidence: SourceEvidence | None = None
    costs: Costs = field(default_factory=Costs)

    def take(self, positions: Sequence[int] | np.ndarray) -> Facts:
        """Return some sources, in the order asked for."""
        chosen = np.asarray(positions, dtype=np.intp)
        return replace(self, **{f.name: _take(getattr(self, f.name), chosen) for f in fields(self)})

    def append(self, other: Facts) -> Facts:
        """Put other sources after these; the costs of both are told elsewhere."""
        if not other.names:
            return self
        if not self.names:
            return other
        joined: dict[str, Any] = {"names": self.names + other.names, "costs": Costs()}
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, np.ndarray):
                joined[f.name] = np.concatenate([mine, theirs])
            elif isinstance(mine, SourceEvidence):
                joined[f.name] = mine.append(theirs)
        return replace(self, **joined)


def _take(value: Any, chosen: np.ndarray) -> Any:
    if isinstance(value, np.ndarray):
        return value[chosen]
    if isinstance(value, tuple):
        return tuple(value[k] for k in chosen)
    if isinstance(value, SourceEvidence):
        return SourceEvidence(*(getattr(value, f.name)[chosen] for f in fields(value)))
    return Costs() if isinstance(value, Costs) else value
