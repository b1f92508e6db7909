"""Features of pictures, what is wrong with pictures that have none, and parts of them on disk."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sourcewise.archives import load_array
from sourcewise.files import read_json, staged, write_atomically

WIDTHS_DIFFER = (
    "Pictures of different sizes become {found} features; bring them to one size with size=, or "
    "take a layer that averages over the picture."
)


class Features(NamedTuple):
    """Features of pictures.

    Attributes
    ----------
    values : float32 array of shape (n_pictures, n_features)
        NaN for a picture that could not be used.
    problems : dict
        Positions of those pictures, and a sentence that says what is wrong with each.

    Examples
    --------
    What an extractor returns for two pictures, of which it could use the first:

    >>> import numpy as np
    >>> from sourcewise.images import Features
    >>> values = np.array([[0.5, 1.0], [np.nan, np.nan]], dtype=np.float32)
    >>> found = Features(values, {1: "cat.jpg is empty."})
    >>> np.delete(found.values, list(found.problems), axis=0)
    array([[0.5, 1. ]], dtype=float32)
    """

    values: np.ndarray
    problems: dict[int, str]


def concat_features(parts: Iterable[Features]) -> Features:
    """Put parts below each other."""
    found = list(parts)
    widths = {each.values.shape[1] for each in found}
    check_widths(widths - {0})
    width = max(widths, default=0)
    # A part without any usable picture does not know how many features there are.
    values = [
        each.values
        if each.values.shape[1] or not width
        else np.full((len(each.values), width), np.nan, dtype=np.float32)
        for each in found
    ]
    starts = np.cumsum([0, *map(len, values)])
    problems = {
        int(start) + k: why
        for start, each in zip(starts, found, strict=False)
        for k, why in each.problems.items()
    }
    return Features(np.concatenate(values), problems)


def replace_rows(before: Features, rows: Sequence[int], new: Features) -> Features:
    """Put new features in the place of some rows."""
    check_widths({each.values.shape[1] for each in (before, new)} - {0})
    width = max(before.values.shape[1], new.values.shape[1])
    values = np.full((len(before.values), width), np.nan, dtype=np.float32)
    if before.values.shape[1]:
        values[:] = before.values
    values[rows] = new.values if new.values.shape[1] else np.nan
    problems = {k: why for k, why in before.problems.items() if k not in set(rows)}
    return Features(values, problems | {rows[k]: why for k, why in new.problems.items()})


def check_widths(widths: set[int]) -> None:
    """All pictures must have as many features."""
    if len(widths) > 1:
        raise ValueError(WIDTHS_DIFFER.format(found=" and ".join(map(str, sorted(widths)))))


# -- parts of a long extraction on disk: it can go on after an interruption --------------------


SHARD_ROWS = 512
RECORD = "made-by.json"
OTHER_SETTINGS = (
    "The features in {folder} were made with other settings ({what} differs); give another folder, "
    "or remove this one to start anew."
)
NOT_RECORD = "{path} does not say how the features beside it were made; remove the folder."


class Shards:
    """Features of `SHARD_ROWS` pictures a file, each written whole or not at all."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def open(cls, folder: Path, made_by: dict[str, str]) -> Shards:
        """Create a folder for parts, or go on with one that was made in the same way."""
        path = folder / RECORD
        if path.exists():
            try:
                before = read_json(path)
            except ValueError:
                before = None
            if not isinstance(before, dict):
                raise ValueError(NOT_RECORD.format(path=path))
            differ = [key for key in made_by if before.get(key) != made_by[key]]
            if differ:
                raise ValueError(OTHER_SETTINGS.format(folder=folder, what=", ".join(differ)))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(made_by, indent=2).encode() + b"\n")
        return cls(folder)

    def read(self, shard: int, stamps: list[str]) -> tuple[Features, list[int]] | None:
        """Return a part that is there, and rows to be made again: changed pictures and bad ones.

        ``stamps`` tell the pictures of the part from others.
        """
        path = self._path(shard)
        try:
            values = load_array(path)
            beside = read_json(path.with_suffix(".json"))
            problems = {int(row): str(why) for row, why in beside["problems"].items()}
            before = list(beside["stamps"])
        except (ValueError, OSError, AttributeError, TypeError, KeyError):
            return None  # absent, or damaged: made again
        if values.dtype != np.float32 or values.ndim != 2:
            return None
        usable = np.isfinite(values).all(axis=1)
        usable[[row for row in problems if 0 <= row < len(usable)]] = True
        if not usable.all() or not set(problems) <= set(range(len(stamps))):
            return None
        if not len(values) == len(before) == len(stamps):
            return None
        changed = [k for k, stamp in enumerate(stamps) if stamp != before[k] or k in problems]
        return Features(values, problems), changed

    def write(self, shard: int, part: Features, stamps: list[str]) -> None:
        """Keep a part; both of its files appear, or none."""
        path, stream = self._path(shard), io.BytesIO()
        np.save(stream, part.values)
        beside = json.dumps({"problems": part.problems, "stamps": stamps}).encode() + b"\n"
        with staged(path.with_suffix(".json"), path) as temporary:
            for file, content in zip(temporary, (beside, stream.getvalue()), strict=True):
                file.write_bytes(content)

    def _path(self, shard: int) -> Path:
        return self.folder / f"{shard:05d}.npy"
