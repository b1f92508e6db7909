"""Files appear whole or not at all, and nothing but a file is replaced."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NO_FOLDER = "{path} cannot be written, because the folder {folder} does not exist; create it first."
IS_FOLDER = "{path} is a folder; give the path of a file."
NOT_A_FILE = "{path} is a device or a pipe; give the path of a file."
ALREADY_NEW = "{why}; {new} was written before that and is new"


_OPEN_FILE = re.compile(r"/dev/(fd/\d+|std(in|out|err))|/proc/(self|\d+)/fd/\d+")


def is_stream(path: Path) -> bool:
    """Whether a path is a device, a pipe or what a process has open: nothing to be replaced."""
    if _OPEN_FILE.fullmatch(str(path)):
        return True
    return path.exists() and not (path.is_file() or path.is_dir())


def destination(path: Path) -> Path:
    """Return the file that a path stands for: what a link points to; refuse what is no file."""
    if path.is_dir():
        raise IsADirectoryError(IS_FOLDER.format(path=path))
    target = Path(os.path.realpath(path))
    if is_stream(path) or target.is_symlink():  # of links in a circle the last is still one
        raise OSError(NOT_A_FILE.format(path=path))
    if not target.parent.is_dir():
        folder = path.parent if target.parent == path.parent.absolute() else target.parent
        raise FileNotFoundError(NO_FOLDER.format(path=path, folder=folder))
    return target


@contextmanager
def staged(*paths: Path) -> Iterator[list[Path]]:
    """Give a temporary file beside each path to write to; all are renamed at the end, or none.

    Links are followed, and a file that is there keeps its mode and, where that is allowed, its
    owner. Nothing half-written survives a failure or an interruption.
    """
    targets = [destination(path) for path in paths]
    temporary: list[Path] = []
    try:
        for target in targets:
            temporary.append(_hidden(target))
            _create(temporary[-1], like=target)
        yield temporary
        for written, target in zip(temporary, targets, strict=True):
            _sync(written, like=target)
        _rename_all(temporary, targets)
    finally:
        for written in temporary:
            written.unlink(missing_ok=True)


def _hidden(target: Path) -> Path:
    return target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}")


def _create(path: Path, like: Path) -> None:
    """Create an empty file: with the mode of the one it will replace, or as the umask has it."""
    before = like.stat() if like.exists() else None
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if before else 0o666)
    os.close(handle)
    if before:
        with suppress(OSError, AttributeError):  # not everybody may; Windows has no owners
            os.chown(path, before.st_uid, before.st_gid)
        os.chmod(path, before.st_mode & 0o777 | 0o200)  # or nobody could write to it


def _sync(path: Path, like: Path | None = None) -> None:
    """Wait until the disk has a file and its mode, or the names in a folder."""
    if path.is_dir() and os.name == "nt":  # no handles of folders there
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        if like is not None and like.exists():
            os.chmod(path, like.stat().st_mode & 0o777)
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename_all(temporary: Sequence[Path], targets: Sequence[Path]) -> None:
    """Give files their names; where one is refused its name, the others get their old files back.

    Where that is not possible (a file system without hard links), the error says what is new.
    """
    there = [target.exists() for target in targets]
    before = [_second_name(target) for target in targets[:-1]]
    done = 0
    try:
        for written, target in zip(temporary, targets, strict=True):
            os.replace(written, target)
            done += 1
    except BaseException as error:
        undo = zip(targets[:done], there, before, strict=False)
        new = [str(target) for target, was, old in undo if not _undone(target, was, old)]
        if new and isinstance(error, OSError):
            why = ALREADY_NEW.format(why=error.strerror, new=", ".join(new))
            raise OSError(error.errno, why, str(targets[done])) from error
        raise
    finally:
        for old in before:
            if old is not None:
                old.unlink(missing_ok=True)
    for folder in {target.parent for target in targets}:
        _sync(folder)


def _second_name(target: Path) -> Path | None:
    """Keep an old file for as long as it may have to come back."""
    with suppress(OSError):
        os.link(target, old := _hidden(target))
        return old
    return None


def _undone(target: Path, was_there: bool, old: Path | None) -> bool:
    with suppress(OSError):
        if old is not None:
            os.replace(old, target)
        elif not was_there:
            target.unlink()
        return old is not None or not was_there
    return False


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with staged(path) as (temporary,):
        temporary.write_bytes(content)


def read_json(path: Path) -> Any:
    """Read a JSON file; whatever is wrong with it is a ValueError."""
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:  # brackets within brackets
        raise ValueError(str(error)) from error


_DIGITS = re.compile(r"([0-9]+)")


def natural(steps: Sequence[str]) -> list[list[tuple[int, int, str]]]:
    """Sort the steps of a path so that ``part-10`` comes behind ``part-9``."""
    return [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(step)]
        for step in steps
    ]
