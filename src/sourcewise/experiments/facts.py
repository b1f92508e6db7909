"""What is found out about sources against one reference, computed once for many runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from sourcewise.core.discrepancy.findings import Findings, concat_findings, select_findings


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
class Facts:
    """Sources of equal size and what is known of them.

    Attributes
    ----------
    names : tuple of str
    y : int array of shape (n_sources, n_rows)
    X : dict of float32 arrays of shape (n_sources, n_rows, n_features)
        By the space that methods learn in.
    findings : dict of findings
        By what asks for them: a method, or "medians".
    costs : Costs
        Processor time that went into all this, by method; not passed on to parts.
    """

    names: tuple[str, ...]
    y: np.ndarray
    X: dict[str, np.ndarray]
    findings: Findings
    costs: Costs = field(default_factory=Costs)

    def take(self, positions: Sequence[int] | np.ndarray) -> Facts:
        """Return some sources, in the order asked for."""
        chosen = np.asarray(positions, dtype=np.intp)
        return Facts(
            tuple(self.names[k] for k in chosen),
            self.y[chosen],
            {space: X[chosen] for space, X in self.X.items()},
            select_findings(self.findings, chosen),
        )

    def append(self, other: Facts) -> Facts:
        """Put other sources after these."""
        return Facts(
            self.names + other.names,
            np.concatenate([self.y, other.y]),
            {space: np.concatenate([X, other.X[space]]) for space, X in self.X.items()},
            concat_findings([self.findings, other.findings]),
        )
