"""A small Parquet file is opened and read once, whatever is asked, and damage is noticed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from sourcewise.tables import reading
from sourcewise.tables.reading import open_table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training


def write(path, rows=60, row_group_size=None):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            **{f"c{j}": rng.normal(size=rows) for j in range(5)},
            "y": rng.choice(["no", "yes"], rows),
            "who": np.repeat(["gold", "other"], rows // 2),
        }
    )
    parquet.write_table(table, path, row_group_size=row_group_size)
    return path


@pytest.mark.parametrize("row_group_size", [None, 7])
def test_the_result_is_that_of_a_large_file(tmp_path, monkeypatch, row_group_size):
    path = write(tmp_path / "t.parquet", row_group_size=row_group_size)
    small = read_training(TableRequest(path, "y", "who", "gold"))
    monkeypatch.setattr(reading, "SMALL", 0)
    large = read_training(TableRequest(path, "y", "who", "gold"))
    assert np.array_equal(small.X, large.X) and (small.y == large.y).all()
    assert small.names == large.names


def test_it_is_opened_once_and_all_columns_are_read_once(tmp_path, monkeypatch):
    path = write(tmp_path / "t.parquet")
    opened, read = [], []

    class Counting(parquet.ParquetFile):
        def __init__(self, *given, **how):
            opened.append(given)
            super().__init__(*given, **how)

        def iter_batches(self, *given, columns=None, **how):
            read.append(len(columns))
            return super().iter_batches(*given, columns=columns, **how)

    monkeypatch.setattr(parquet, "ParquetFile", Counting)
    read_training(TableRequest(path, "y", "who", "gold"))
    assert len(opened) == 1
    assert read.count(5) == 1


def test_columns_come_in_the_order_asked_for(tmp_path):
    table = open_table(write(tmp_path / "t.parquet"))
    for asked in (["c0", "c1", "y"], ["y", "c0"], ["c4"]):
        assert [batch.schema.names for _, batch in table.batches(asked)] == [asked]
    assert list(table.batches(["y"], lambda start, stop: False)) == []


@pytest.mark.parametrize("small", [reading.SMALL, 0])
def test_bytes_that_do_not_go_with_their_checksum_are_refused_by_name(tmp_path, monkeypatch, small):
    monkeypatch.setattr(reading, "SMALL", small)
    path = damage(write(tmp_path / "t.parquet"))
    with pytest.raises(ValueError) as error:
        read_training(TableRequest(path, "y", "who", "gold"))
    assert str(error.value) == reading.NOT_PARQUET.format(path=path)


def damage(path):
    """Write a Parquet file again, with checksums, and turn a bit among its numbers."""
    table = parquet.read_table(path)
    parquet.write_table(
        table, path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    column = parquet.read_metadata(path).row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 16
    path.write_bytes(content)
    return path
