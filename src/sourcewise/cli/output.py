"""Where results go: checked before any work, written whole."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sourcewise import __version__
from sourcewise.files import destination, is_stream, staged
from sourcewise.report.source_report import SourceReport
from sourcewise.safe_text import json_text, visible

NOT_WRITABLE = "{path} cannot be written: {why}."
SAME_FILE = "{path} would be both read and written; choose another name for the output."
INSIDE = "{path} is part of {folder}, which is read; choose another folder for the output."
WRONG_ENDING = "{path} would hold {what}; give a name that ends in {endings}."
NO_STREAM = "{path} is no file, and {what} is written to files only; give the path of a file."
BOTH_PRINTED = "--json and an output called - would both be printed; leave one of them out."

STDOUT = Path("-")


class Content(NamedTuple):
    """What an output holds: its name in messages, endings that fit, and whether it can stream."""

    what: str
    endings: tuple[str, ...]
    streams: bool = False


MODEL = Content("a model", (".skops",))
PAGE = Content("a report", (".html", ".htm", ".json"))
DATA = Content("JSON", (".json",), streams=True)
WEIGHTS = Content("CSV", (".csv",), streams=True)
PREDICTIONS = Content("predictions", (".csv", ".parquet", ".pq"), streams=True)
RESULTS = Content("results", (".sqlite", ".sqlite3", ".db"))


def check_output(path: Path | None, content: Content, *inputs: Path | None) -> None:
    """Find out now, not after an hour, that a file cannot be written."""
    if path is None or (path == STDOUT and content.streams):
        return
    if path == STDOUT or is_stream(path):
        if not content.streams:
            raise ValueError(NO_STREAM.format(path=path, what=content.what))
        return
    _check_place(path, *inputs)
    if path.suffix and path.suffix.lower() not in content.endings:
        *first, last = content.endings
        endings = f"{', '.join(first)} or {last}" if first else last
        raise ValueError(WRONG_ENDING.format(path=path, what=content.what, endings=endings))


def _check_place(path: Path, *inputs: Path | None) -> None:
    try:
        target = destination(path)
    except OSError as error:
        raise ValueError(str(error)) from error
    for other in inputs:
        if other is not None and other.exists() and path.exists() and path.samefile(other):
            raise ValueError(SAME_FILE.format(path=path))
        check_outside(path, other)
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(13, "it is protected from writing")
    except OSError as error:
        raise ValueError(NOT_WRITABLE.format(path=path, why=_lower(error))) from error


def check_outside(path: Path, folder: Path | None) -> None:
    """Refuse an output inside a folder that is read."""
    if folder is not None and folder.is_dir() and path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(INSIDE.format(path=path, folder=folder))


def prints_itself(as_json: bool, output: Path | None) -> bool:
    """Whether an output goes where words would go."""
    streams = output is not None and (output == STDOUT or is_stream(output))
    if output == STDOUT and as_json:
        raise ValueError(BOTH_PRINTED)
    return streams


@contextmanager
def outputs(*paths: Path | None) -> Iterator[list[Path]]:
    """Temporary files to write to, for the paths that were asked for; all appear, or none."""
    wanted = [path for path in paths if path is not None]
    streams = [path for path in wanted if path == STDOUT or is_stream(path)]
    try:
        with (
            tempfile.TemporaryDirectory() if streams else nullcontext("") as folder,
            staged(*(path for path in wanted if path not in streams)) as temporary,
        ):
            files = iter(temporary)
            places = [
                Path(folder, str(k)) if path in streams else next(files)
                for k, path in enumerate(wanted)
            ]
            yield places
            for path, place in zip(wanted, places, strict=True):
                if path in streams:
                    _pour(place, path)
    except BrokenPipeError:  # whoever reads has enough
        raise
    except OSError as error:
        names = error.filename or ", ".join(str(path) for path in wanted)
        raise ValueError(NOT_WRITABLE.format(path=names, why=_lower(error))) from error


def _pour(source: Path, stream: Path) -> None:
    """Write to a device or a pipe as it is; what a process has open is not opened again."""
    sys.stdout.flush()
    if stream == STDOUT:
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # a notebook's, or a test's
            sys.stdout.write(source.read_text(encoding="utf-8"))
            return
        with source.open("rb") as content:
            shutil.copyfileobj(content, binary)
        binary.flush()
        return
    number = {"stdin": "0", "stdout": "1", "stderr": "2"}.get(stream.name, stream.name)
    is_open = str(stream).startswith(("/dev/fd/", "/dev/std", "/proc/self/"))
    handle = os.dup(int(number)) if is_open else os.open(stream, os.O_WRONLY)
    with source.open("rb") as content, open(handle, "wb") as end:
        shutil.copyfileobj(content, end)


def write_folder(folder: Path, contents: dict[str, bytes], *inputs: Path) -> None:
    """Write files into a folder, all or none; a failure leaves no new folder behind either."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    paths = [folder / name for name in contents]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            _check_place(path, *inputs)
        with staged(*paths) as temporary:
            for file, content in zip(temporary, contents.values(), strict=True):
                file.write_bytes(content)
    except BaseException as problem:
        for place in made:
            with suppress(OSError):
                place.rmdir()
        if isinstance(problem, OSError):
            message = NOT_WRITABLE.format(path=folder, why=_lower(problem))
            raise ValueError(message) from problem
        raise


def _lower(error: OSError) -> str:
    text = error.strerror or str(error).rstrip(".")
    return text[:1].lower() + text[1:]


def say(text: str) -> None:
    """Print text in which nothing moves the cursor or turns the direction of writing."""
    print(visible(text))


def print_json(content: Any) -> None:
    """Print strict JSON; infinite and missing numbers become null."""
    print(json_text(content), end="")


def source_weights(report: SourceReport) -> list[dict[str, Any]]:
    """Per source: what it counts, and what each of its rows counts.

    ``row_weight`` is ``alpha_i / m_i``, scaled so that the average over all rows is 1: multiply it
    into the loss of any trainer. Rows that repeat trusted ones are counted in it.
    """
    counts = [row.rows + (row.copies or 0) for row in report.sources]
    total = sum(counts)
    return [
        {
            "source": row.source,
            "rows": rows,
            "weight": row.weight,
            "discrepancy": row.discrepancy,
            "p_value": row.p_value,
            "reason": row.reason,
            "row_weight": row.weight / rows * total,
        }
        for row, rows in zip(report.sources, counts, strict=True)
    ]


def facts(seed: int, command: str) -> dict[str, str]:
    """Return what is needed to make a page again."""
    import pyarrow
    import scipy
    import sklearn

    return {
        "command": command,
        "seed": str(seed),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "sourcewise": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "pyarrow": pyarrow.__version__,
    }
