"""Tables on disk, a batch of rows at a time: CSV, Parquet, or a folder of Parquet files.

Every sentence about a file that is not what it should be is written here.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from sourcewise.columns import meant
from sourcewise.files import natural
from sourcewise.tables.values import NUMBER, as_arrow

NO_PATH = "There is no file or folder {path}."
NO_ACCESS = "{path} cannot be read: {why}."
NOT_A_FILE = (
    "{path} is a pipe or a device, and a table is read more than once; save it in a file first."
)
EMPTY = "{path} is empty; give a table with a header and rows."
NO_ROWS = "{path} has a header but no rows."
NOT_A_TABLE = (
    "{path} is not a table that can be read; give a CSV file, a Parquet file or a folder of "
    "Parquet files."
)
NOT_PARQUET = "{path} is not a Parquet file, or it is damaged or cut short."
NO_PARQUET_INSIDE = "The folder {path} holds no Parquet files (*.parquet)."
OTHER_COLUMNS = (
    "{path} has other columns than {first} ({what}); all files of a folder must have the same."
)
NOT_UTF8 = "{path} is not UTF-8 text (line {line}); save it as 'CSV UTF-8' or convert it first."
RAGGED = (
    "{path} is not a table: {line} has {got} cells and the header has {expected}; correct it, "
    "or pass --skip-bad-rows to leave such lines out."
)
COLUMN_TWICE = "{path} has two columns named {name!r}; rename one of them."
COLUMN_MISSING = "{path} has no column {name!r}{hint}"
NOT_A_FRAME = (
    "A table is a path, or a frame of pandas, polars or pyarrow; got {kind}, which has no columns."
)
NAME_NOT_TEXT = "The table has a column named {name!r}, which is no text; rename it."
ODD_FRAME = "A column of the table holds what no table file could hold ({problem}); drop it."

BATCH_ROWS = 32_768
# Bytes of a file that is kept in memory while its table is read.
SMALL = 200_000_000


class Table:
    """Named columns that can be read a batch of rows at a time, as often as needed."""

    def __init__(self, path: Path | str, schema: Any, n_rows: int):
        self.path = path
        self.schema = schema
        self.n_rows = n_rows
        self.unreadable = 0  # lines that were skipped: too few or too many cells
        twice = [name for name, times in Counter(schema.names).items() if times > 1]
        if twice:
            raise ValueError(COLUMN_TWICE.format(path=path, name=twice[0]))
        if n_rows == 0:
            raise ValueError(NO_ROWS.format(path=path))

    def check_columns(self, names: Sequence[str], taken: Sequence[str] = ()) -> None:
        """Every column asked for must be there; the nearest name not ``taken`` is suggested."""
        there = set(self.schema.names)
        for name in names:
            if name not in there:
                used = {*names, *taken}
                free = [other for other in self.schema.names if other not in used]
                raise ValueError(
                    COLUMN_MISSING.format(path=self.path, name=name, hint=meant(name, free))
                )

    def batches(
        self, columns: Sequence[str], wanted: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the position of the first row, and a record batch with these columns.

        ``wanted(start, stop)`` may say that nothing in a stretch of rows is of interest.
        """
        raise AssertionError("implemented below")


class FrameTable(Table):
    """A table in memory."""

    def __init__(self, content: Any, path: Path | str = "The table"):
        self.content = content
        super().__init__(path, content.schema, content.num_rows)

    def batches(
        self, columns: Sequence[str], wanted: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield slices of the columns."""
        start = 0
        for batch in self.content.select(columns).to_batches(max_chunksize=BATCH_ROWS):
            if wanted is None or wanted(start, start + batch.num_rows):
                yield start, batch
            start += batch.num_rows


class CsvTable(FrameTable):
    """A CSV file; it is parsed once, since a column's type depends on all of its rows."""

    def __init__(self, path: Path, as_text: Sequence[str] = (), skip_bad_rows: bool = False):
        import pyarrow as pa
        from pyarrow import csv

        first = _check_text(path)
        delimiter, before = delimiter_of(first)
        unreadable: list[Any] = []

        def skip(row: Any) -> str:
            unreadable.append(row.number)
            return "skip"

        try:
            content = csv.read_csv(
                path,
                # A piece of a wide table should hold many of its long lines.
                read_options=csv.ReadOptions(
                    block_size=max(1 << 20, min(256 * len(first[before]), 1 << 28)),
                    skip_rows=before,
                ),
                parse_options=csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=skip if skip_bad_rows else None,
                ),
                convert_options=csv.ConvertOptions(
                    strings_can_be_null=True,
                    column_types={name: pa.string() for name in as_text},
                ),
            )
        except MemoryError:
            raise
        except pa.ArrowException as error:
            raise ValueError(_csv_problem(path, str(error))) from error
        if delimiter == ";":
            content = with_decimal_commas(content, as_text)
        super().__init__(content, path)
        self.unreadable = len(unreadable)


class ParquetTable(Table):
    """One or more Parquet files, one below the other; never more than a batch in memory.

    A small file is read once: of wide tables opening a file costs as much as reading its rows.
    """

    def __init__(self, path: Path, files: Sequence[Path]):
        import pyarrow as pa
        from pyarrow import parquet

        self.files = list(files)
        schema, rows = None, 0
        self.footers = []
        self._small: Any = None
        self._last: Any = None
        for file in self.files:
            try:
                small = len(self.files) == 1 and file.stat().st_size <= SMALL
                given = pa.BufferReader(file.read_bytes()) if small else file
                opened = parquet.ParquetFile(given, page_checksum_verification=True)
                with nullcontext(opened) if small else opened:
                    found = opened.schema_arrow
                    rows += opened.metadata.num_rows
                    self.footers.append(opened.metadata)
                    self._small = opened if small else None
            except MemoryError:
                raise
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise ValueError(NOT_PARQUET.format(path=file)) from error
            if schema is None:
                schema = found
            elif (what := _difference(schema, found)) is not None:
                raise ValueError(OTHER_COLUMNS.format(path=file, first=files[0], what=what))
        super().__init__(path, schema, rows)

    def batches(
        self, columns: Sequence[str], wanted: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Read row groups in turn, leaving out those in which nothing is wanted."""
        import pyarrow as pa
        from pyarrow import parquet

        if self._last is not None and set(columns) <= set(self._last.schema.names):
            if wanted is None or wanted(0, self.n_rows):
                yield 0, self._last.select(list(columns))
            return
        start = 0
        for path, footer in zip(self.files, self.footers, strict=True):
            with (
                parquet.ParquetFile(
                    path, metadata=footer, pre_buffer=False, page_checksum_verification=True
                )
                if self._small is None
                else nullcontext(self._small)
            ) as file:
                for group in range(file.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if wanted is not None and not wanted(start, start + rows):
                        start += rows
                        continue
                    try:
                        for batch in file.iter_batches(
                            BATCH_ROWS, row_groups=[group], columns=list(columns), use_threads=False
                        ):
                            if self._small is not None and batch.num_rows == self.n_rows:
                                self._last = batch
                            yield start, batch.select(list(columns))
                            start += batch.num_rows
                    except MemoryError:
                        raise
                    except (pa.ArrowException, OSError) as error:
                        raise ValueError(NOT_PARQUET.format(path=path)) from error


def open_table(given: Any, *, as_text: Sequence[str] = (), skip_bad_rows: bool = False) -> Table:
    """Open a table, whatever kind of file it is in, or take a frame as it is.

    Columns ``as_text`` are not guessed to be something else.
    """
    if not isinstance(given, str | Path):
        return FrameTable(_frame(given))
    path = Path(given)
    try:
        if path.is_dir():
            files = sorted(path.glob("*.parquet"), key=lambda file: natural([file.name]))
            if not files:
                raise ValueError(NO_PARQUET_INSIDE.format(path=path))
            return ParquetTable(path, files)
        if path.exists() and not path.is_file():
            raise ValueError(NOT_A_FILE.format(path=path))
        with path.open("rb") as file:
            start = file.read(4096)
    except FileNotFoundError:
        raise ValueError(NO_PATH.format(path=path)) from None
    except OSError as error:
        raise ValueError(NO_ACCESS.format(path=path, why=error.strerror)) from error
    if not start:
        raise ValueError(EMPTY.format(path=path))
    if start.startswith(b"PAR1"):
        return ParquetTable(path, [path])
    if path.suffix in (".parquet", ".pq"):
        raise ValueError(NOT_PARQUET.format(path=path))
    if path.suffix != ".gz" and b"\0" in start and not start.startswith(_OTHER_UNICODE):
        raise ValueError(NOT_A_TABLE.format(path=path))
    return CsvTable(path, as_text, skip_bad_rows)


def _frame(given: Any) -> Any:
    import pyarrow as pa

    columns = getattr(given, "columns", None)
    if columns is None:
        raise ValueError(NOT_A_FRAME.format(kind=type(given).__name__))
    if not isinstance(given, pa.Table | pa.RecordBatch):
        odd = [name for name in columns if not isinstance(name, str)]
        if odd:
            raise ValueError(NAME_NOT_TEXT.format(name=odd[0]))
        twice = [name for name, times in Counter(columns).items() if times > 1]
        if twice:
            raise ValueError(COLUMN_TWICE.format(path="The table", name=twice[0]))
    try:
        return as_arrow(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(ODD_FRAME.format(problem=str(error).splitlines()[0])) from error


_OTHER_UNICODE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _check_text(path: Path) -> list[str]:
    """Return the first two lines; all of the file must be UTF-8."""
    import pyarrow as pa

    decoder = codecs.getincrementaldecoder("utf-8")()
    start, lines = "", 1
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            while True:
                chunk = stream.read(1 << 20)
                text = decoder.decode(chunk, final=not chunk)
                if lines <= 2:
                    start += "\n".join(text.split("\n", 2)[:2])
                lines += text.count("\n")
                if not chunk:
                    return [*start.lstrip("\ufeff").split("\n"), ""][:2]
    except UnicodeDecodeError as error:
        line = lines + bytes(error.object[: error.start]).count(b"\n")
        raise ValueError(NOT_UTF8.format(path=path, line=line)) from None
    except OSError as error:
        raise ValueError(NOT_A_TABLE.format(path=path)) from error


def _csv_problem(path: Path, message: str) -> str:
    ragged = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if ragged:
        number = ragged[1] or _first_ragged(path, int(ragged[2]))
        line = f"line {number}" if number else "a line"
        return RAGGED.format(path=path, line=line, got=ragged[3], expected=ragged[2])
    return NOT_A_TABLE.format(path=path)


def _first_ragged(path: Path, expected: int) -> int | None:
    import csv

    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        delimiter, before = delimiter_of([file.readline()])
        if not before:
            file.seek(0)
        reader = csv.reader(file, delimiter=delimiter)
        with suppress(csv.Error):  # a text that is longer than the module takes
            for cells in reader:
                if cells and len(cells) != expected:
                    return reader.line_num + before
    return None


def _difference(first: Any, second: Any) -> str | None:
    missing = [name for name in first.names if name not in second.names]
    if missing:
        return f"no {missing[0]!r}"
    extra = [name for name in second.names if name not in first.names]
    if extra:
        return f"also {extra[0]!r}"
    changed = [n for n in first.names if first.field(n).type != second.field(n).type]
    return f"{changed[0]!r} is of another type" if changed else None


# -- how a CSV file is written ------------------------------------------------------------------


DELIMITERS = ",;\t|"
# The first line that Excel reads and does not show.
SEPARATOR = re.compile(r"sep=([,;\t|])")
DECIMAL_COMMA = r"^\s*[+-]?(\d*|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?\s*$"


def delimiter_of(first_lines: Sequence[str]) -> tuple[str, int]:
    """Return what parts the cells, and how many lines come before the header."""
    said = SEPARATOR.fullmatch(first_lines[0].strip())
    if said:
        return said[1], 1
    delimiter = max(DELIMITERS, key=first_lines[0].count)
    return (delimiter if delimiter in first_lines[0] else ","), 0


def with_decimal_commas(content: Any, keep: Sequence[str]) -> Any:
    """Read numbers with a decimal comma in a table of Arrow's; columns to ``keep`` stay text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def read(name: str, values: Any) -> Any:
        if not pa.types.is_string(values.type) or name in keep:
            return values
        commas = pc.match_substring_regex(values, DECIMAL_COMMA)
        if not pc.any(commas).as_py():
            return values
        plain = pc.replace_substring(pc.replace_substring(values, ".", ""), ",", ".")
        values = pc.if_else(commas, plain, values)
        if not pc.all(pc.match_substring_regex(values, NUMBER)).as_py():
            return values
        return pc.utf8_ltrim(pc.utf8_trim_whitespace(values), "+").cast(pa.float64())

    names = content.column_names
    columns = [read(name, column) for name, column in zip(names, content.columns, strict=True)]
    return pa.Table.from_arrays(columns, names=names)
