"""An engine that holds its sources in pieces, as a cluster would, but in this process."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.row_space import RowSpace, saves_coordinates
from sourcewise.engines.memory import MemorySources


@dataclass(frozen=True)
class ChunkedSources:
    """Sources in pieces of a given number; every message is pickled on its way to a piece."""

    pieces: tuple[MemorySources, ...]

    @classmethod
    def of(cls, sources: MemorySources, per_piece: int) -> ChunkedSources:
        data, names = sources.data, list(sources.names)
        pieces = []
        for low in range(0, len(names), per_piece):
            positions = data.untrusted[low : low + per_piece]
            part = data.select(positions.tolist())
            assert part.reference == -1
            pieces.append(MemorySources(part, names[low : low + per_piece]))
        return cls(tuple(pieces))

    @property
    def bounds(self):
        return np.concatenate([[0], np.cumsum([len(piece.names) for piece in self.pieces])])

    @property
    def sizes(self):
        return np.concatenate([piece.sizes for piece in self.pieces])

    @property
    def row_counts(self):
        return np.concatenate([piece.row_counts for piece in self.pieces])

    @property
    def n_classes(self):
        return self.pieces[0].n_classes

    def ask(self, question, sources=None):
        asked = np.arange(self.bounds[-1]) if sources is None else np.asarray(sources)
        message = pickle.loads(pickle.dumps(question.message))
        # The last piece answers first: nobody may rely on an order.
        for k in reversed(range(len(self.pieces))):
            low, high = self.bounds[k : k + 2]
            for source in asked[(asked >= low) & (asked < high)]:
                data = self.pieces[k].data.some(source - low, source - low + 1)
                answer = message.answer(data, [self.pieces[k].names[source - low]])
                yield np.array([source]), question.judge(answer)

    def weighted(self, weights):
        cuts = [
            slice(low, high) for low, high in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        ]
        return ChunkedSums(
            [
                piece.weighted(pickle.loads(pickle.dumps(weights.of_sources(cut))))
                for piece, cut in zip(self.pieces, cuts, strict=True)
            ]
        )

    def spread(self, directions):
        return sum(piece.spread(directions) for piece in self.pieces)

    def in_row_space(self, reference):
        n_rows = len(reference) + int(self.row_counts.sum())
        if not saves_coordinates(n_rows, reference.shape[1]):
            return None
        rows = np.concatenate([reference, *(piece.data.X for piece in self.pieces)])
        basis = RowSpace.of(rows).basis

        def rotated(X):
            return np.column_stack([basis.into(X[:, :-1]), X[:, -1]])

        pieces = [
            MemorySources(piece.data.with_features(rotated(piece.data.X)), piece.names)
            for piece in self.pieces
        ]
        return ChunkedSources(tuple(pieces)), RowSpace(rotated(reference), basis)

    @property
    def data(self) -> SourceData:
        raise AssertionError("rows of all sources were read in one place")


class ChunkedSums:
    """Sums over pieces, in a fixed order."""

    def __init__(self, parts):
        self.parts = parts

    def gradients(self, points, columns, at=None):
        return sum(part.gradients(points, columns, at) for part in self.parts)

    def curvature(self, points, columns, at, basis=None, every=1):
        found = [part.curvature(points, columns, at, basis, every) for part in self.parts]
        return sum(matrix for matrix, _ in found), sum(outside for _, outside in found)

    def moments(self, columns):
        found = [part.moments(columns) for part in self.parts]
        return sum(gram for gram, _ in found), sum(cross for _, cross in found)
