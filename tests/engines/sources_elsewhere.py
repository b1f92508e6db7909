"""Rows of named sources behind a wall: only rules go in, and only answers come out."""

from __future__ import annotations

import numpy as np
from chunked_sources import ChunkedSources

from sourcewise.core.engine import OpenSources, TrustedRows
from sourcewise.engines.memory import MemorySources


class Elsewhere:
    """Sources in order of first appearance, so many in a piece; rules are applied in each piece."""

    def __init__(self, X, y, source, weight=None, per_piece=1, may_travel=False):
        self.trusted_rows_may_travel = may_travel
        self.X, self.y, self.source, self.weight = X, y, np.asarray(source), weight
        self.names = list(dict.fromkeys(self.source.tolist()))
        self.per_piece = per_piece

    def _rows(self, names):
        rows = np.concatenate([np.flatnonzero(self.source == name) for name in names])
        weight = None if self.weight is None else self.weight[rows]
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return X, self.y[rows], weight

    def trusted(self, reference):
        self.reference = reference
        return TrustedRows(*self._rows([reference]))

    def open(self, rules):
        self.rules = rules
        others = [name for name in self.names if name != self.reference]
        pieces = []
        for low in range(0, len(others), self.per_piece):
            names = others[low : low + self.per_piece]
            X, y, weight = self._rows(names)
            counts = [int(np.sum(self.source == name)) for name in names]
            codes = np.repeat(np.arange(len(names)), counts)
            data = rules(np.asarray(X, dtype=np.float64), y, codes, names, weight)
            pieces.append(MemorySources(data, names))
        position = self.names.index(self.reference)
        counts = [piece.data.copies for piece in pieces]
        copies = np.concatenate(counts) if counts and counts[0] is not None else None
        return OpenSources(ChunkedSources(tuple(pieces)), others, position, copies=copies)
