"""Sums over chunks, to the last bit the same whoever adds up which of them.

Rounding makes a sum depend on where its brackets stand. They stand here where the chunks' numbers
say: two neighbours make a pair, two pairs the next larger piece, and so on up to one piece of all.
A group of chunks adds up what lies within it, and the client the rest. How many groups there are,
and so how many workers, does not matter.
"""

from __future__ import annotations

from typing import Any

from sourcewise.core.data import FloatArray

Sums = tuple[FloatArray, ...]


class PairwiseSums:
    """Sums of pieces: piece ``(level, k)`` is that of chunks ``k 2^level`` to ``(k+1) 2^level``.

    A piece is added when all of its chunks that count are in it. Chunks that do not count are left
    out.
    """

    def __init__(self) -> None:
        self.pieces: dict[tuple[int, int], Sums] = {}

    def add(self, level: int, k: int, sums: Any) -> None:
        """Take the sums of a piece, and put it together with its neighbour if that is here."""
        total: Sums = sums if isinstance(sums, tuple) else (sums,)
        while (neighbour := self.pieces.pop((level, k ^ 1), None)) is not None:
            total = tuple(a + b for a, b in zip(total, neighbour, strict=True))
            level, k = level + 1, k >> 1
        self.pieces[level, k] = total

    def close(self, first: int, last: int) -> None:
        """No more chunks between these will come: a piece without a neighbour is the next larger.

        Only within these chunks: others may be with somebody else.
        """
        level = 0
        while 2 << level <= last - first:
            for k in sorted(k for at, k in self.pieces if at == level):
                begin = (k >> 1) * (2 << level)
                if first <= begin and begin + (2 << level) <= last:
                    self.add(level + 1, k >> 1, self.pieces.pop((level, k)))
            level += 1

    def total(self, n_chunks: int) -> Sums | None:
        """Return the sums of all chunks, or None where none of them counts."""
        height = max(n_chunks - 1, 1).bit_length()
        self.close(0, 1 << height)
        assert len(self.pieces) <= 1
        return next(iter(self.pieces.values()), None)
