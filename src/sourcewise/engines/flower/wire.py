"""What travels: arrays, numbers and texts by name as Flower's records, checked on receipt.

Nothing is pickled. A message may hold a learner or rules for rows, too: it says which of our own
dataclasses they are, out of a fixed list. Arrays come as raw numbers whose shape has to agree with
their length before anything is allocated.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

ARRAYS, NUMBERS = "arrays", "numbers"
CLASS, NOTHING, LENGTH, NAMES = "/class", "/nothing", "/length", "/names"
NUMERIC = "fiub"  # kinds of arrays that may travel
HEADER = 4096  # bytes that the description of one array may take
DEEPEST = 20  # levels of parts within parts

NOT_A_NUMBER_ARRAY = "the array {name!r} does not hold plain numbers"
WRONG_LENGTH = "the array {name!r} claims {claimed} bytes and has {found}"
TOO_MANY_BYTES = "the message has {found} bytes, more than the {most} that are accepted"
FIELD_MISSING = "the message has no {name!r}"
FIELD_UNKNOWN = "the message has {name!r}, which nobody asked for"
CLASS_UNKNOWN = "the message holds a {name!r}, which is not known here"
TOO_DEEP = "the message has parts within parts, more than {most} times"
WRONG_CLASS = "{name!r} is a {found}, not a {expected}"
WRONG_NAMES = "{name!r} does not hold {expected}"
WRONG_SHAPE = "{name!r} has the shape {found}, not {expected}"
WRONG_KIND = "{name!r} holds {found}, not {expected}"
NOT_FINITE = "{name!r} holds NaN or infinity"


class BadMessage(ValueError):
    """A message that is not what it should be; the sentence says why."""


Parts = dict[str, Any]  # a message taken apart: arrays and plain values by their path


# -- out ---------------------------------------------------------------------------------------


def pack(message: Any, name: str) -> dict[str, Any]:
    """Turn a dataclass, or values by name, into two Flower records, under a name."""
    parts: Parts = {}
    _take_apart(message, "", parts)
    arrays = {path: Array(v) for path, v in parts.items() if isinstance(v, np.ndarray)}
    numbers = {path: value for path, value in parts.items() if path not in arrays}
    return {f"{name}.{ARRAYS}": ArrayRecord(arrays), f"{name}.{NUMBERS}": ConfigRecord(numbers)}


def _take_apart(value: Any, path: str, parts: Parts) -> None:
    value = getattr(value, "travels_as", value)  # learners here may be more than there
    if is_dataclass(value):
        parts[path + CLASS] = type(value).__name__
        for name in field_names(type(value)):
            _take_apart(getattr(value, name), f"{path}.{name}", parts)
    elif isinstance(value, Mapping):
        parts[path + NAMES] = " ".join(value)
        for name, part in value.items():
            _take_apart(part, f"{path}.{name}", parts)
    elif value is None:
        parts[path + NOTHING] = True
    elif isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC:
        parts[path] = np.ascontiguousarray(value)
    elif isinstance(value, np.ndarray | tuple | list):
        items = value.tolist() if isinstance(value, np.ndarray) else list(value)
        parts[path + LENGTH] = len(items)
        for k, item in enumerate(items):
            _take_apart(item, f"{path}.{k}", parts)
    elif isinstance(value, np.generic):
        parts[path] = value.item()
    elif isinstance(value, str | bool | int | float):
        parts[path] = value
    else:
        raise TypeError(f"{type(value).__name__} cannot travel")


def field_names(cls: Any) -> list[str]:
    """Return the names of the parts of a dataclass."""
    return [field.name for field in fields(cls) if field.init]


# -- in ----------------------------------------------------------------------------------------


def n_bytes(content: RecordDict) -> int:
    """Bytes of the arrays and texts of a message."""
    total = 0
    for record in content.array_records.values():
        total += sum(len(array.data) for array in record.values())
    for numbers in content.config_records.values():
        for value in numbers.values():
            total += len(value) if isinstance(value, str | bytes | list) else 8
    return total


def check_bytes(content: RecordDict, most: float) -> None:
    """Refuse what is too large before any of it is looked at."""
    found = n_bytes(content)
    if found > most:
        raise BadMessage(TOO_MANY_BYTES.format(found=found, most=int(most)))


def unpack(content: RecordDict, name: str, known: Mapping[str, Any]) -> Any:
    """Put a message together; ``known`` are the classes that it may be made of, by name."""
    arrays = content.array_records.get(f"{name}.{ARRAYS}")
    numbers = content.config_records.get(f"{name}.{NUMBERS}")
    if arrays is None or numbers is None:
        raise BadMessage(FIELD_MISSING.format(name=name))
    parts: Parts = {path: read_array(array, path) for path, array in arrays.items()}
    twice = parts.keys() & numbers.keys()
    parts.update(numbers)
    found = None if twice else _put_together("", parts, known)
    left = [*twice, *parts]
    if left:
        raise BadMessage(FIELD_UNKNOWN.format(name=str(left[0])[:80]))
    return found


def read_array(array: Array, name: str) -> np.ndarray:
    """Read an array of plain numbers, if its shape is that of its bytes."""
    data = array.data
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(stream, max_header_size=HEADER)
    except (ValueError, KeyError, EOFError, OSError) as error:
        raise BadMessage(NOT_A_NUMBER_ARRAY.format(name=name)) from error
    if dtype.kind not in NUMERIC or dtype.itemsize > 8:
        raise BadMessage(NOT_A_NUMBER_ARRAY.format(name=name))
    claimed, found = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if claimed != found or any(length < 0 for length in shape):
        raise BadMessage(WRONG_LENGTH.format(name=name, claimed=claimed, found=found))
    values = np.frombuffer(data, dtype, offset=stream.tell())
    return values.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))


def _put_together(path: str, parts: Parts, known: Mapping[str, Any]) -> Any:
    if path in parts:
        return parts.pop(path)
    if path.count(".") > DEEPEST:
        raise BadMessage(TOO_DEEP.format(most=DEEPEST))
    if path + CLASS in parts:
        name = parts.pop(path + CLASS)
        if not isinstance(name, str) or name not in known:
            raise BadMessage(CLASS_UNKNOWN.format(name=str(name)[:80]))
        return _make(known[name], path, parts, known)
    if path + NAMES in parts:
        names = str(parts.pop(path + NAMES)).split()
        if len(set(names)) != len(names):
            raise BadMessage(FIELD_UNKNOWN.format(name=f"{path}{NAMES}"))
        return {name: _put_together(f"{path}.{name}", parts, known) for name in names}
    if parts.pop(path + NOTHING, False):
        return None
    if path + LENGTH in parts:
        length = parts.pop(path + LENGTH)
        if not isinstance(length, int) or not 0 <= length <= len(parts):
            raise BadMessage(FIELD_MISSING.format(name=path))
        return tuple(_put_together(f"{path}.{k}", parts, known) for k in range(length))
    raise BadMessage(FIELD_MISSING.format(name=path))


def _make(cls: Any, path: str, parts: Parts, known: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(cls)
    values = {}
    for name in field_names(cls):
        value = _put_together(f"{path}.{name}", parts, known)
        values[name] = _checked(value, hints.get(name), f"{path}.{name}")
    return cls(**values)


def wanted(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's keywords: what a message has to bring."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def given(function: Callable[..., Any], found: Any) -> dict[str, Any]:
    """Return what a function's keywords get, if a message has them, each as it is annotated."""
    if not isinstance(found, dict):
        raise BadMessage(FIELD_MISSING.format(name=NAMES))
    for name in sorted(set(wanted(function)) ^ set(found)):
        wrong = FIELD_UNKNOWN if name in found else FIELD_MISSING
        raise BadMessage(wrong.format(name=name[:80]))
    hints = typing.get_type_hints(function)
    return {name: _checked(value, hints[name], name) for name, value in found.items()}


def _checked(value: Any, hint: Any, path: str) -> Any:
    """Compare a value with what its field says it is, where that says anything."""
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wanted = hint if isinstance(hint, type) and hint is not Any else None
    if wanted is not None and typing.get_origin(hint) is None and not _is_protocol(wanted):
        wrong = not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))
        if wrong:
            raise BadMessage(
                WRONG_CLASS.format(name=path, found=type(value).__name__, expected=wanted.__name__)
            )
    if isinstance(value, float) and math.isnan(value):
        raise BadMessage(NOT_FINITE.format(name=path))
    return value


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


def digest(packed: Mapping[str, Any], *names: str) -> str:
    """Return a digest of records, or of those under some names: what they hold, nothing else."""
    found = hashlib.sha256()
    for name, record in sorted(packed.items()):
        if names and name.rpartition(".")[0] not in names:
            continue
        for path, value in sorted(record.items()):
            held = value.data if hasattr(value, "data") else repr(value).encode()
            for part in (name.encode(), path.encode(), held):
                found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()


# -- compared with what is expected --------------------------------------------------------------


def check_like(found: Any, expected: Any, name: str) -> None:
    """Refuse an answer that is not built as the expected one, or holds anything but numbers."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or found.keys() != expected.keys():
            raise BadMessage(WRONG_NAMES.format(name=name, expected=", ".join(expected)))
        for part, value in expected.items():
            check_like(found[part], value, f"{name}.{part}")
        return
    if not isinstance(found, np.ndarray) or found.shape != expected.shape:
        shape = getattr(found, "shape", None)
        raise BadMessage(WRONG_SHAPE.format(name=name, found=shape, expected=expected.shape))
    if (found.dtype.kind == "f") != (expected.dtype.kind == "f"):
        raise BadMessage(WRONG_KIND.format(name=name, found=found.dtype, expected=expected.dtype))
    if not np.isfinite(found).all():
        raise BadMessage(NOT_FINITE.format(name=name))
