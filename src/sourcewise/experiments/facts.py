"""What a source says for itself or against one reference, computed once for many runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sourcewise.core.discrepancy.local_exchange import SourceEvidence


class Costs(dict[str, float]):
    """Processor seconds by what they were spent on."""

    @contextmanager
    def clock(self, *methods: str) -> Iterator[None]:
        """Share the processor time of this thread inside the context out among methods."""
        start = time.thread_time()
        yield
        spent = time.thread_time() - start
        for method in methods:
            self[method] = self.get(method, 0.0) + spent / len(methods)


@dataclass(frozen=True)
class Batch:
    """Arrays whose first axis runs over sources, and batches of the same length."""

    def take(self, positions: Sequence[int] | np.ndarray) -> Any:
        """Return some sources, in the order asked for."""
        chosen = np.asarray(positions, dtype=np.intp)
        return replace(self, **{f.name: _take(getattr(self, f.name), chosen) for f in fields(self)})

    def append(self, other: Any) -> Any:
        """Put other sources after these."""
        return replace(
            self,
            **{
                f.name: _append(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
            },
        )


@dataclass(frozen=True)
class SpaceFacts(Batch):
    """Sources in one of the feature spaces that methods learn in.

    Attributes
    ----------
    X : float32 array of shape (n, m, d)
    sums : float32 array of shape (n, d + 1, n_points, 1), optional
        Gradients at the points where solutions are expected.
    losses : array of shape (n, n_points), optional
        Mean losses there.
    curvature : float32 array of shape (n, n_pilots, d * d), optional
        Of the mean loss at some of these points.
    flatness : array of shape (n, n_pilots, 1), optional
        Mean second derivative of the loss there.
    """

    X: np.ndarray
    sums: np.ndarray | None = None
    losses: np.ndarray | None = None
    curvature: np.ndarray | None = None
    flatness: np.ndarray | None = None


@dataclass(frozen=True)
class Facts(Batch):
    """Sources of equal size and what is known of them; None where no method asks for it.

    Attributes
    ----------
    names : tuple of str
    y : int array of shape (n, m)
    spaces : dict of SpaceFacts
        Features, by the name of the space.
    gram : array of shape (n, d, d)
        ``X'X / m`` of the features as given.
    plug_in : array of shape (n, 1 + n_folds)
        The paper's discrepancy: from the whole reference, then without each of its folds.
    local : array of shape (n, d)
        Each source's own model.
    local_scores : float32 array of shape (n, n_test)
        What it says of the test rows.
    evidence : SourceEvidence
        For our default's discrepancy.
    costs : Costs
        Processor time that went into all this, by method; not passed on to parts.
    """

    names: tuple[str, ...]
    y: np.ndarray
    spaces: dict[str, SpaceFacts]
    gram: np.ndarray | None = None
    plug_in: np.ndarray | None = None
    local: np.ndarray | None = None
    local_scores: np.ndarray | None = None
    evidence: SourceEvidence | None = None
    costs: Costs = field(default_factory=Costs)


def _take(value: Any, chosen: np.ndarray) -> Any:
    if isinstance(value, np.ndarray):
        return value[chosen]
    if isinstance(value, tuple):
        return tuple(value[k] for k in chosen)
    if isinstance(value, Costs):
        return Costs()
    if isinstance(value, dict):
        return {name: part.take(chosen) for name, part in value.items()}
    if isinstance(value, SourceEvidence):
        return SourceEvidence(*(getattr(value, f.name)[chosen] for f in fields(value)))
    return value


def _append(mine: Any, theirs: Any) -> Any:
    if isinstance(mine, np.ndarray):
        return np.concatenate([mine, theirs])
    if isinstance(mine, tuple):
        return mine + theirs
    if isinstance(mine, Costs):
        return Costs()
    if isinstance(mine, dict):
        return {name: part.append(theirs[name]) for name, part in mine.items()}
    if isinstance(mine, SourceEvidence):
        return mine.append(theirs)
    return mine
