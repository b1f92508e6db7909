"""Partitions of a Dask DataFrame, read one at a time where they are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FramePart:
    """One partition."""

    frame: Any  # dask.dataframe.DataFrame of this partition alone, not computed yet
    number: int
    identity: str = ""  # partitions are taken to be the same whenever computed

    def __str__(self) -> str:
        """Name the partition in a message."""
        return f"partition {self.number} of the frame"

    def current_identity(self) -> str:
        """Nothing is known of how the partition came about."""
        return ""

    def schema(self) -> Any:
        """Columns and their types."""
        return self._table(list(self.frame.columns)).schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        yield from self._table(list(columns)).to_batches()

    def _table(self, columns: list[str]) -> Any:
        import pyarrow as pa
        from distributed import worker_client

        with worker_client(timeout=60) as client:
            computed = client.compute(self.frame[columns]).result()
        return pa.Table.from_pandas(computed, preserve_index=False).replace_schema_metadata()


def frame_parts(frame: Any) -> list[FramePart]:
    """Take a frame apart."""
    return [FramePart(frame.partitions[k], k) for k in range(frame.npartitions)]
