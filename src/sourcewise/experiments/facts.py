"""What is found out about sources against one reference, computed once for many runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy.findings import Findings, concat_findings, select_findings
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.pool import Options, Pool
from sourcewise.estimators.prepare import in_memory, make_pool
from sourcewise.estimators.task import Classes


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
    """Sources of equal size and what is known of them."""

    names: tuple[str, ...]
    y: np.ndarray  # of shape (n_sources, n_rows)
    # Of shape (n_sources, n_rows, n_features); by the space that methods learn in.
    X: dict[str, np.ndarray]
    findings: Findings  # by what asks for them: a method, or "medians"
    # Processor time that went into all this, by method; not passed on to parts.
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


# -- pools of one reference and sources of equal size -------------------------------------------


def reference_pool(X: np.ndarray, y: np.ndarray, choices: Choices, seed: int) -> Pool:
    """Pool of the reference alone."""
    task = Classes(np.arange(2), np.bincount(y, minlength=2))
    discrepancy = "plug-in" if choices.as_given else "combined"
    options = Options("reference", task, seed, choices, discrepancy)
    return make_pool(*in_memory(lay_out(X[None], y[None]), []), ["reference"], options, None)


def with_sources(alone: Pool, names: Sequence[str], X: np.ndarray, y: np.ndarray) -> Pool:
    """Put sources of equal size, (n, m, d) and (n, m), beside the reference."""
    own, (n, m, d) = alone.reference, X.shape
    counts = np.array([len(own.y), *[m] * n], dtype=np.intp)
    data = SourceData(
        np.concatenate([own.X, X.reshape(n * m, d)]),
        np.concatenate([own.y, y.ravel()]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        0,
        np.repeat(1.0 / counts, counts),
        2,
    )
    return replace(alone, sources=MemorySources(data, names), names=["reference", *names])


def lay_out(X: np.ndarray, y: np.ndarray) -> SourceData:
    """Lay out sources of equal size, (n, m, d) and (n, m); the first passes for the reference."""
    n, m, d = X.shape
    starts = m * np.arange(n + 1, dtype=np.intp)
    return SourceData(X.reshape(n * m, d), y.ravel(), starts, 0, np.full(n * m, 1.0 / m), 2)
