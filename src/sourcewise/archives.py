"""What a model file may cost: checks of an archive before anything in it is built.

Loading takes memory and time in proportion to the size of the file, because

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
import zlib
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

SCHEMA = "schema.json"
ARRAY_LOADER, SPARSE_LOADER = "NdArrayNode", "SparseMatrixNode"
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
        return node.get("__class__") != "void" and _is_array(member)
    return True


def _is_stored_npz(member: bytes) -> bool:
    with ZipFile(io.BytesIO(member)) as archive:
        return only_stores(archive, len(member)) and all(
            _is_array(archive.read(name)) for name in archive.namelist()
        )


def _is_array(member: bytes) -> bool:
    """Whether bytes are an array in numpy's format of just this length."""
    stream = io.BytesIO(member)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        return False
    count = math.prod(shape)
    left = len(member) - stream.tell()
    return min(shape, default=0) >= 0 and count <= left and count * dtype.itemsize == left
