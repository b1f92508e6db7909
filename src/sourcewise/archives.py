"""What a file may cost: checks of archives and arrays before anything in them is built.

Loading a model takes memory and time in proportion to the size of the file, because

- members are stored as they are, archives within members too: nothing expands;
- no two entries of the directory share bytes, and no member is read for two objects;
- an array's header claims no more than there is;
- objects that occur in several places are as large wherever they are written, so that following the
  references visits no more than the text of the schema holds.
"""

from __future__ import annotations

import io
import json
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import numpy as np

SCHEMA = "schema.json"
ARRAY_LOADER, SPARSE_LOADER = "NdArrayNode", "SparseMatrixNode"
# Archives of arrays may be compressed: their arrays may have so many bytes for one of the file, and
# so many in any case.
EXPANDS, LEAST_BYTES = 20, 1 << 22

NO_ARRAY = "it is no array, or not of the length that it claims"
NO_ARRAYS = "it cannot be read as arrays"
ARRAY_MISSING = "the array {name!r} is missing"
EXPANDS_TOO_MUCH = "it would unpack to more than {factor} times its size"

ZIP_MAGIC = b"PK\x03\x04"


def only_stores(archive: ZipFile, size: int) -> bool:
    """Whether an archive of so many bytes expands to no more than those."""
    members = archive.infolist()
    stored = all(member.compress_type == ZIP_STORED for member in members)
    return stored and sum(member.file_size for member in members) <= size


def store_within(content: bytes) -> bytes:
    """Write an archive again, with the archives in its members (sparse matrices) stored as well."""
    with ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return _packed({name: _stored(member) for name, member in members.items()})


def _stored(member: bytes) -> bytes:
    if not member.startswith(ZIP_MAGIC):
        return member
    try:
        with ZipFile(io.BytesIO(member)) as archive:
            return _packed({name: archive.read(name) for name in archive.namelist()})
    except (BadZipFile, zlib.error):  # bytes that only look like an archive
        return member


def _packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", compression=ZIP_STORED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return buffer.getvalue()


def check_proportion(content: bytes) -> None:
    """Raise an error, of any kind, unless building is in proportion to the size of the archive."""
    with ZipFile(io.BytesIO(content)) as archive:
        if not _is_in_proportion(archive):
            raise ValueError("More would be built than there is.")


def _is_in_proportion(archive: ZipFile) -> bool:
    schema = json.loads(archive.read(SCHEMA))
    order, sizes = _sizes(schema)
    lengths: dict[Any, int] = {}
    readers: dict[str, Any] = {}
    for value in order:
        if not isinstance(value, dict):
            continue
        identity = value.get("__id__")
        if isinstance(identity, bool | int | float | str):
            size = sizes[id(value)]
            if lengths.setdefault(identity, size) != size:
                return False
        else:
            identity = id(value)
        name = value.get("file")
        if "__loader__" not in value or not isinstance(name, str):
            continue
        if name not in readers and not _is_sound(value, archive.read(name)):
            return False
        # An identity of 0 is read again each time; a member that several want is read for each.
        if name in readers and (not identity or readers[name] != (identity, _kind(value))):
            return False
        readers[name] = identity, _kind(value)
    return True


def _kind(node: dict[str, Any]) -> tuple[Any, Any]:
    return node["__loader__"], node.get("__class__")


def _sizes(schema: Any) -> tuple[list[Any], dict[int, int]]:
    """All containers of a schema, outer ones first, and how many values are in each, all told."""
    order, waiting = [], [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            order.append(value)
            waiting.extend(_parts(value))
    sizes: dict[int, int] = {}
    for value in reversed(order):
        sizes[id(value)] = sum(1 + sizes.get(id(part), 0) for part in _parts(value))
    return order, sizes


def _parts(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def _is_sound(node: dict[str, Any], member: bytes) -> bool:
    """Whether a member is what the object that is made of it has to be made of."""
    if node["__loader__"] == SPARSE_LOADER:
        return _is_stored_npz(member)
    if node["__loader__"] == ARRAY_LOADER:
        # numpy.void of a number makes as many bytes as the number says.
        return node.get("__class__") != "void" and _is_array(io.BytesIO(member), len(member))
    return True


def _is_stored_npz(member: bytes) -> bool:
    with ZipFile(io.BytesIO(member)) as archive:
        return only_stores(archive, len(member)) and all(
            _is_array(io.BytesIO(part), len(part)) for part in map(archive.read, archive.namelist())
        )


def load_array(path: Path) -> np.ndarray:
    """Read a file of one array; a ValueError says what is wrong with any other."""
    with path.open("rb") as file:
        return _array(file, os.fstat(file.fileno()).st_size)


def load_arrays(path: Path, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Read some arrays of an archive; a ValueError says what is wrong with any other file."""
    try:
        with ZipFile(path) as archive:
            there = {member.filename: member for member in archive.infolist()}
            wanted = [name for name in (*names, *optional) if f"{name}.npy" in there]
            members = [there[f"{name}.npy"] for name in wanted]
            known = all(m.compress_type in (ZIP_STORED, ZIP_DEFLATED) for m in members)
            total = sum(member.file_size for member in members)
            most = max(EXPANDS * path.stat().st_size, LEAST_BYTES)
            contents = map(archive.read, members if known and total <= most else [])
            arrays = {
                name: _array(io.BytesIO(content), len(content))
                for name, content in zip(wanted, contents, strict=False)
            }
    except MemoryError:
        raise
    except Exception as error:  # parsers of damaged files raise anything
        raise ValueError(NO_ARRAYS) from error
    if total > most:
        raise ValueError(EXPANDS_TOO_MUCH.format(factor=EXPANDS))
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(ARRAY_MISSING.format(name=missing[0]))
    return arrays


def _array(stream: IO[bytes], size: int) -> np.ndarray:
    try:
        sound = _is_array(stream, size)
    except Exception as error:  # of the header alone, which is small
        raise ValueError(NO_ARRAY) from error
    if not sound:
        raise ValueError(NO_ARRAY)
    stream.seek(0)
    array: np.ndarray = np.load(stream, allow_pickle=False)
    return array


def _is_array(stream: IO[bytes], size: int) -> bool:
    """Whether a stream of so many bytes is an array in numpy's format of just this length."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        return False
    count = math.prod(shape)
    left = size - stream.tell()
    return min(shape, default=0) >= 0 and count <= left and count * dtype.itemsize == left
