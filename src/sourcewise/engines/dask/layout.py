"""Which sources are worked on together, and which files hold their rows.

Sources are taken in order of first appearance, the files in theirs. Neighbours make up a *chunk*,
which is held in memory at a time; neighbouring chunks make up a *group*, which is one task of a
pass and stays on one worker as long as that lives. Chunks depend on the rows alone, groups on the
number of workers: no result may depend on groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.data import IntArray
from sourcewise.engines.dask.reading import PartFacts

CHUNK_BYTES = 8 << 20  # of features held at a time
GROUPS_PER_THREAD = 4  # so that a thread that is done early does not wait for long
MOST_GROUPS = 64  # more only if there are more threads: each sends its sums to the client
PIECES_PER_GROUP = 4  # at least so many runs of chunks make a group, which share its load evenly
READ_OFTEN = 2.0  # files are read so many times, on average, at most


@dataclass(frozen=True)
class Chunk:
    """Neighbouring sources; rows of a source are in the order of the files."""

    names: tuple[Any, ...]
    counts: IntArray

    @property
    def rows(self) -> int:
        """Rows of all of them."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Group:
    """Neighbouring chunks."""

    number: int
    first: int  # position of the first source
    first_chunk: int  # number of the first chunk among all
    chunks: tuple[Chunk, ...]
    parts: tuple[Any, ...]  # files in which some of the sources have rows

    @property
    def starts(self) -> IntArray:
        """Position of each chunk's first source among the group's, and their number at the end."""
        lengths = [len(chunk.names) for chunk in self.chunks]
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return int(self.starts[-1])

    @property
    def sources(self) -> slice:
        """Positions of its sources."""
        return slice(self.first, self.first + self.n_sources)


@dataclass(frozen=True)
class SourceTable:
    """All sources of all parts."""

    names: list[Any]  # in order of first appearance
    counts: IntArray
    holders: list[IntArray]  # for every part, the positions of its sources

    @classmethod
    def of(cls, facts: Sequence[PartFacts]) -> SourceTable:
        """Put together what the parts hold."""
        table: dict[Any, int] = {}
        holders = [
            np.array([table.setdefault(name, len(table)) for name in one.names], dtype=np.intp)
            for one in facts
        ]
        counts = np.zeros(len(table), dtype=np.intp)
        for one, positions in zip(facts, holders, strict=True):
            counts[positions] += one.counts
        return cls(list(table), counts, holders)

    def only(self, kept: Any) -> SourceTable:
        """Keep some sources, by a mask; those behind others that are left out move up."""
        position = np.where(kept, np.cumsum(kept) - 1, -1)
        moved = [position[held] for held in self.holders]
        return SourceTable(
            [name for name, keep in zip(self.names, kept, strict=True) if keep],
            self.counts[kept],
            [held[held >= 0] for held in moved],
        )

    def without(self, position: int) -> SourceTable:
        """Leave one source out."""
        return self.only(np.arange(len(self.names)) != position)


def groups_of(
    table: SourceTable, parts: Sequence[Any], row_bytes: int, n_threads: int
) -> list[Group]:
    """Divide the sources into groups, so that few files are needed by more than one of them."""
    cuts = chunk_cuts(table.counts, max(1, CHUNK_BYTES // row_bytes))
    wanted = max(min(GROUPS_PER_THREAD * n_threads, MOST_GROUPS), n_threads)
    found = _divided(table, parts, cuts, wanted)
    if sum(len(group.parts) for group in found) > READ_OFTEN * len(parts):
        found = _divided(table, parts, cuts, n_threads)
    return found


def chunk_cuts(counts: IntArray, most_rows: int) -> IntArray:
    """Cut so that a chunk has at most so many rows, or one source."""
    cuts, rows = [0], 0
    for position, count in enumerate(counts.tolist()):
        if rows and rows + count > most_rows:
            cuts.append(position)
            rows = 0
        rows += count
    return np.array([*cuts, len(counts)], dtype=np.intp)


def _group_of_chunk(ends: IntArray, n_groups: int) -> IntArray:
    """Divide chunks, given the number of rows up to the end of each.

    Groups begin where a few chunks in a row are added up before others (`sums`), so that the sums
    of a group are few pieces.
    """
    step = 1
    while 2 * step * n_groups * PIECES_PER_GROUP <= len(ends):
        step *= 2
    last = np.minimum(np.arange(step, len(ends) + step, step), len(ends)) - 1
    ends_of_some = ends[last]
    middles = (ends_of_some + np.concatenate([[0], ends_of_some[:-1]])) / 2.0
    n_groups = min(n_groups, len(middles))
    group = np.minimum((middles * n_groups / ends[-1]).astype(np.intp), n_groups - 1)
    return np.repeat(group, step)[: len(ends)]


def _divided(
    table: SourceTable, parts: Sequence[Any], cuts: IntArray, n_groups: int
) -> list[Group]:
    """Make groups of about equally many rows."""
    group_of_chunk = _group_of_chunk(np.cumsum(table.counts)[cuts[1:] - 1], n_groups)
    numbers = np.unique(group_of_chunk)
    group_of_source = np.repeat(np.searchsorted(numbers, group_of_chunk), np.diff(cuts))
    parts_of: list[list[Any]] = [[] for _ in numbers]
    for part, held in zip(parts, table.holders, strict=True):
        for number in np.unique(group_of_source[held]):
            parts_of[number].append(part)
    found = []
    for position, number in enumerate(numbers):
        mine = np.flatnonzero(group_of_chunk == number)
        chunks = tuple(
            Chunk(tuple(table.names[low:high]), table.counts[low:high])
            for low, high in zip(cuts[mine], cuts[mine + 1], strict=True)
        )
        first = int(mine[0])
        found.append(Group(position, int(cuts[first]), first, chunks, tuple(parts_of[position])))
    return found
