"""Where pictures are: a folder of class subfolders, a table of paths, an archive of JPEG bytes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.archives import load_arrays
from sourcewise.images.reading import SUFFIXES, read_picture
from sourcewise.tables.reading import open_table

NO_PICTURES = "The folder {path} and its subfolders hold no pictures ({suffixes})."
MIXED = (
    "The folder {path} holds pictures beside subfolders of pictures ({picture}); a subfolder for "
    "each class, or none, please."
)
COLUMN_UNSAID = "{path} is a table; say with --image which column holds the paths of the pictures."
NOT_TEXT = "Column {column!r} of {path} does not hold paths but {kind}."
NO_PATH_GIVEN = "Row {row} of {path} has no picture (column {column!r} is empty)."
OUTSIDE = (
    "Row {row} of {path} asks for the picture {picture!r}, which is not below {folder}; "
    "--image-folder names another folder to look in."
)
ADDRESS = (
    "Row {row} of {path} holds the address {picture!r}; nothing is downloaded: save the pictures "
    "first and give their paths."
)
NOT_ARCHIVE = "{path} is not an archive of pictures: {why}."
BAD_OFFSETS = "its offsets do not cut its blob into pictures"


@dataclass(frozen=True)
class Pictures:
    """Pictures in some order.

    Attributes
    ----------
    names : list of str
        What results and messages call each of them.
    content : sequence of paths, bytes, arrays or Pillow's images
        What :func:`read_picture` takes.
    classes : list of str, optional
        The class of each picture, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.images import Pictures
    >>> pictures = Pictures.of([np.zeros((8, 8, 3), dtype=np.uint8) for _ in range(3)])
    >>> len(pictures), pictures.take([2]).names
    (3, ['Picture 2'])
    >>> pictures.read(0).shape
    (8, 8, 3)
    """

    names: Sequence[str]
    content: Sequence[Any]
    classes: Sequence[str] | None = None

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.names)

    def read(self, position: int, size: int | None = None) -> np.ndarray:
        """Read one picture; see :func:`read_picture`."""
        return read_picture(self.content[position], size=size, name=self.names[position])

    def stamp(self, position: int) -> str:
        """Return what changes when a picture does: its checksum, or its file's size and time."""
        content = self.content[position]
        if isinstance(content, str | Path):
            try:
                found = Path(content).stat()
            except (OSError, ValueError):
                return "absent"
            return f"{found.st_size} {found.st_mtime_ns}"
        data = content if isinstance(content, bytes) else np.asarray(content).tobytes()
        return f"{zlib.crc32(data):08x}"

    def take(self, positions: Any) -> Pictures:
        """Return some of them, in the order of the positions."""
        chosen = [int(k) for k in positions]
        return Pictures(
            [self.names[k] for k in chosen],
            [self.content[k] for k in chosen],
            None if self.classes is None else [self.classes[k] for k in chosen],
        )

    @classmethod
    def of(cls, pictures: Any) -> Pictures:
        """Take a sequence of what :func:`read_picture` takes."""
        if isinstance(pictures, cls):
            return pictures
        content = list(pictures)
        named = (str, Path)
        return cls(
            [str(c) if isinstance(c, named) else f"Picture {k}" for k, c in enumerate(content)],
            content,
        )


def open_pictures(
    path: Path, *, column: str | None = None, label: str | None = None, folder: Path | None = None
) -> Pictures:
    """Find the pictures of a folder, a table or an archive; none is read yet.

    Parameters
    ----------
    path : Path
        A folder with a subfolder for each class (or pictures only), a table (CSV or Parquet), or
        an ``.npz`` with the arrays ``blob`` (JPEG or PNG bytes, one after the other), ``offsets``
        and, if classes are known, ``y`` and ``classes``.
    column : str, optional
        Of a table: the column of paths.
    label : str, optional
        Of a table: the column of classes.
    folder : Path, optional
        Of a table: where relative paths begin, and what no path may leave; its own folder by
        default.

    Returns
    -------
    Pictures

    Examples
    --------
    A folder with a subfolder for each class:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from sourcewise.images import open_pictures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cat", "dog"):
    ...         Path(folder, name).mkdir()
    ...         Image.new("RGB", (8, 8), "red").save(Path(folder, name, "1.png"))
    ...     pictures = open_pictures(Path(folder))
    >>> pictures.names, pictures.classes
    (['cat/1.png', 'dog/1.png'], ['cat', 'dog'])
    """
    if path.is_dir() and column is None:
        return _of_folder(path)
    if path.suffix.lower() == ".npz":
        return _of_archive(path)
    if column is None:
        open_table(path)  # says what else may be wrong with it
        raise ValueError(COLUMN_UNSAID.format(path=path))
    return _of_table(path, column, label, folder)


def _of_folder(path: Path) -> Pictures:
    files = sorted(_picture_files(path))
    if not files:
        raise ValueError(NO_PICTURES.format(path=path, suffixes=", ".join(sorted(SUFFIXES))))
    parts = [file.relative_to(path).parts for file in files]
    direct = [len(each) == 1 for each in parts]
    if any(direct) and not all(direct):
        raise ValueError(MIXED.format(path=path, picture=files[direct.index(True)].name))
    names = ["/".join(each) for each in parts]
    return Pictures(names, files, None if all(direct) else [each[0] for each in parts])


def _picture_files(path: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if os.path.splitext(name)[1].lower() in SUFFIXES and not name.startswith("."):
                yield Path(place, name)


def _of_table(path: Path, column: str, label: str | None, folder: Path | None) -> Pictures:
    table = open_table(path)
    wanted = [column] if label is None else [column, label]
    table.check_columns(wanted)
    names: list[str] = []
    classes: list[str] = []
    for _, batch in table.batches(wanted):
        kind = batch.schema.field(0).type
        for value in batch.column(0).to_pylist():
            if value is not None and not isinstance(value, str):
                raise ValueError(NOT_TEXT.format(column=column, path=path, kind=kind))
            names.append(value or "")
        if label is not None:
            classes += [str(value) for value in batch.column(1).to_pylist()]
    base = folder or (path if path.is_dir() else path.parent)
    content = [below(base, name, path, column, row) for row, name in enumerate(names, start=1)]
    return Pictures(names, content, None if label is None else classes)


def below(base: Path, name: str, table: Path, column: str, row: int) -> Path:
    """Return the path of a picture that a table names; it must be below the folder."""
    if not name.strip():
        raise ValueError(NO_PATH_GIVEN.format(row=row, path=table, column=column))
    if "://" in name or name.startswith("data:"):
        raise ValueError(ADDRESS.format(row=row, path=table, picture=name[:100]))
    root = os.path.abspath(base)
    place = os.path.normpath(os.path.join(root, name))
    if "\0" in name or os.path.commonpath([root, place]) != root:
        raise ValueError(OUTSIDE.format(row=row, path=table, picture=name[:100], folder=root))
    return Path(place)


def _of_archive(path: Path) -> Pictures:
    if not path.is_file():
        raise ValueError(NOT_ARCHIVE.format(path=path, why="there is no such file"))
    try:
        known = load_arrays(path, ("blob", "offsets"), optional=("y", "classes"))
    except ValueError as error:
        raise ValueError(NOT_ARCHIVE.format(path=path, why=error)) from error
    blob, offsets = known["blob"], known["offsets"]
    _check_offsets(path, blob, offsets)
    content = [blob[a:b].tobytes() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    names = [f"picture {k}" for k in range(len(content))]
    if "y" not in known:
        return Pictures(names, content)
    return Pictures(names, content, _classes(path, known, len(content)))


def _check_offsets(path: Path, blob: np.ndarray, offsets: np.ndarray) -> None:
    right = blob.ndim == offsets.ndim == 1 and blob.dtype == np.uint8 and offsets.dtype.kind in "iu"
    right = right and len(offsets) > 1
    if right:
        right = bool(offsets[0] >= 0 and offsets[-1] <= len(blob))
        right = right and bool((offsets[:-1] <= offsets[1:]).all())
    if not right:
        raise ValueError(NOT_ARCHIVE.format(path=path, why=BAD_OFFSETS))


def _classes(path: Path, known: dict[str, np.ndarray], n: int) -> list[str]:
    y, names = known["y"], known.get("classes")
    if y.shape != (n,):
        raise ValueError(NOT_ARCHIVE.format(path=path, why=f"{n} pictures have {y.size} labels"))
    if names is None:
        return [str(label) for label in y.tolist()]
    right = y.dtype.kind in "iu" and names.ndim == 1
    if not right or (n and not 0 <= y.min() <= y.max() < len(names)):
        raise ValueError(NOT_ARCHIVE.format(path=path, why="its labels are not among its classes"))
    words = [str(name) for name in names.tolist()]  # each once: all its pictures share it
    return [words[k] for k in y]
