"""Where results go: checked before any work, written whole."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise import __version__
from sourcewise.files import IS_FOLDER, NO_FOLDER, staged
from sourcewise.report.source_report import SourceReport

NOT_WRITABLE = "{path} cannot be written: {why}."
SAME_FILE = "{path} would be both read and written; choose another name for the output."

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_output(path: Path | None, *inputs: Path | None) -> None:
    """Find out now, not after an hour, that a file cannot be written."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(IS_FOLDER.format(path=path))
    if not path.parent.is_dir():
        raise ValueError(NO_FOLDER.format(path=path, folder=path.parent))
    for other in inputs:
        if other is not None and other.exists() and path.exists() and path.samefile(other):
            raise ValueError(SAME_FILE.format(path=path))
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(13, "it is protected from writing")
    except OSError as error:
        raise ValueError(NOT_WRITABLE.format(path=path, why=_lower(error))) from error


@contextmanager
def outputs(*paths: Path | None) -> Iterator[list[Path]]:
    """Temporary files to write to, for the paths that were asked for; all appear, or none."""
    wanted = [path for path in paths if path is not None]
    try:
        with staged(*wanted) as temporary:
            yield temporary
    except OSError as error:
        names = ", ".join(str(path) for path in wanted)
        raise ValueError(NOT_WRITABLE.format(path=names, why=_lower(error))) from error


def write_folder(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files into a folder, all or none; a failure leaves no new folder behind either."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    paths = [folder / name for name in contents]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            check_output(path)
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
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def print_json(content: Any) -> None:
    """Print strict JSON; infinite and missing numbers become null."""
    print(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """Turn a value into what JSON can hold."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


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


def harmless(value: Any) -> Any:
    """Put a quote before text that a spreadsheet would take for a formula (OWASP's rule)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def weights_csv(report: SourceReport) -> bytes:
    """Lay the weights out as CSV."""
    lines = source_weights(report)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: harmless(value) for key, value in line.items()} for line in lines)
    return text.getvalue().encode()


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
