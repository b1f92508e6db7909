"""Files appear whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NO_FOLDER = "{path} cannot be written, because the folder {folder} does not exist; create it first."
IS_FOLDER = "{path} is a folder; give the path of a file."


@contextmanager
def staged(*paths: Path) -> Iterator[list[Path]]:
    """Give a temporary file beside each path to write to; all are renamed at the end, or none.

    Nothing half-written survives a failure or an interruption.
    """
    temporary: list[Path] = []
    for path in paths:
        if not path.parent.is_dir():
            raise FileNotFoundError(NO_FOLDER.format(path=path, folder=path.parent))
        if path.is_dir():
            raise IsADirectoryError(IS_FOLDER.format(path=path))
    try:
        for path in paths:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
            os.close(handle)
            temporary.append(Path(name))
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        for written, path in zip(temporary, paths, strict=True):
            os.chmod(written, 0o666 & ~umask)
            os.replace(written, path)
    except BaseException:
        for written in temporary:
            written.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with staged(path) as (temporary,):
        temporary.write_bytes(content)


_DIGITS = re.compile(r"([0-9]+)")


def natural(steps: Sequence[str]) -> list[list[tuple[int, int, str]]]:
    """Sort the steps of a path so that ``part-10`` comes behind ``part-9``."""
    return [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(step)]
        for step in steps
    ]
