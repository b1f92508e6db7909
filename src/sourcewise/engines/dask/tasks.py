"""What workers do: each function is a task on one group of sources."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.findings import Findings, concat_findings
from sourcewise.core.engine import Question
from sourcewise.core.source_weights import SourceWeights
from sourcewise.engines.dask.rows import GroupTask
from sourcewise.engines.dask.store import store_here
from sourcewise.engines.dask.sums import PairwiseSums


def same(value: Any) -> Any:
    """Return the argument: what many tasks need is the result of a task, and can be made again."""
    return value


def read_group(task: GroupTask, with_prints: bool) -> tuple[Any, ...]:
    """Read and check the rows of a group.

    Returns the sources' effective rows, their rows, 16 bytes for each that are equal where name and
    rows are (none where nobody asks), and an array of no rows, as wide as mapped ones and of their
    type.
    """
    store = store_here(task.fit)
    store.build(task)
    found = []
    for k, entry in store.chunks(task):
        data = entry.sources.data
        prints = fingerprints(data, task.group.chunks[k].names) if with_prints else NO_PRINTS
        # A copy: a view of no rows would keep all of them in memory.
        found.append((data.sizes, data.row_counts, prints, data.X[:0].copy()))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))


NO_PRINTS = np.zeros((0, 16), dtype=np.uint8)


def fingerprints(data: SourceData, names: Sequence[Any]) -> Any:
    """Sixteen bytes for each source, of its name and all of its rows."""
    found = np.empty((data.n_sources, 16), dtype=np.uint8)
    for position, rows in enumerate(data.slices()):
        made = hashlib.blake2b(repr(names[position]).encode(), digest_size=16)
        for array in (data.X[rows], data.y[rows], data.row_shares[rows]):
            made.update(f"{array.dtype}{array.shape}".encode())
            made.update(np.ascontiguousarray(array).data)
        found[position] = np.frombuffer(made.digest(), dtype=np.uint8)
    return found


def ask_sources(task: GroupTask, question: Question, asked: IntArray) -> tuple[IntArray, Findings]:
    """Ask some sources of a group; returns their positions in it, and findings."""
    store, starts = store_here(task.fit), task.group.starts
    positions, parts = [], []
    for k in np.unique(np.searchsorted(starts, asked, side="right") - 1).tolist():
        mine = asked[(asked >= starts[k]) & (asked < starts[k + 1])] - starts[k]
        for some, found in store.chunk(task, k).sources.ask(question, mine):
            positions.append(some + starts[k])
            parts.append(found)
    # Laid out row by row, as they are when read from a file.
    found = {name: np.ascontiguousarray(a) for name, a in concat_findings(parts).items()}
    return np.concatenate(positions), found


def add_up(
    task: GroupTask,
    fit: str,
    weights: SourceWeights,
    method: str,
    arguments: tuple[Any, ...],
    columns: IntArray,
) -> PairwiseSums:
    """Add up a group's sources, chunk by chunk."""
    store = store_here(task.fit)
    first = task.group.first_chunk
    total = PairwiseSums()
    for k in range(len(task.group.chunks)):
        sums = store.sums(task, k, fit, weights, columns)
        if sums is not None:
            total.add(0, first + k, getattr(sums, method)(*arguments))
        total.close(first, first + k + 1)
    return total


def spread_group(task: GroupTask, directions: FloatArray) -> PairwiseSums:
    """Sum over all rows of a group of ``x (x' q)``."""
    first = task.group.first_chunk
    total = PairwiseSums()
    for k, entry in store_here(task.fit).chunks(task):
        total.add(0, first + k, entry.sources.spread(directions))
        total.close(first, first + k + 1)
    return total


def rows_of_group(task: GroupTask) -> list[SourceData]:
    """Return all rows of a group, for where they are so few that they need no cluster."""
    return [entry.sources.data for _, entry in store_here(task.fit).chunks(task)]
