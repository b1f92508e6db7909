"""CSV files as spreadsheets write them where the comma is the decimal sign."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sourcewise.tables.reading import open_table


def column(tmp_path, text, name="size", **options):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-8-sig"))
    table = open_table(path, **options)
    ((_, batch),) = table.batches([name])
    return batch.column(0)


def test_commas_between_semicolons_are_decimal_signs(tmp_path):
    text = "size;colour\r\n12,5;red\r\n-0,125;blue\r\n1.234,5;red\r\n7;blue\r\n1e3;red\r\n;red\r\n"
    found = column(tmp_path, text)
    assert found.type == pa.float64()
    assert found.to_pylist() == [12.5, -0.125, 1234.5, 7.0, 1000.0, None]


def test_points_of_another_vendor_are_numbers_too(tmp_path):
    found = column(tmp_path, "size;colour\n12,5;red\n12.5;red\n")
    assert found.to_pylist() == [12.5, 12.5]


def test_a_cell_of_rubbish_changes_no_other(tmp_path):
    found = column(tmp_path, "size;colour\n12,5;red\n1O,5;red\n1,2,3;red\n")
    assert found.to_pylist() == ["12.5", "1O,5", "1,2,3"]


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_elsewhere_a_comma_is_no_decimal_sign(tmp_path, delimiter):
    text = f'size{delimiter}colour\n"1,200"{delimiter}red\n"12,5"{delimiter}red\n'
    assert column(tmp_path, text).to_pylist() == ["1,200", "12,5"]


def test_categories_stay_as_they_are(tmp_path):
    found = column(tmp_path, "size;colour\n12,5;red\n7;red\n", as_text=["size"])
    assert found.to_pylist() == ["12,5", "7"]


def test_the_line_that_only_excel_understands_is_no_header(tmp_path):
    text = "sep=;\r\nsize;colour\r\n12,5;red\r\n"
    assert column(tmp_path, text).to_pylist() == [12.5]
    assert column(tmp_path, text, "colour").to_pylist() == ["red"]


def test_lines_are_counted_with_that_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sep=;\nsize;colour\n1;red\n2;red;3\n")
    with pytest.raises(ValueError, match="line 4 has 3 cells"):
        open_table(path)
