"""What there is to run: a grid of keys, and the part of it that somebody wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

BAD_ONLY = "--only takes FIELD=VALUE[,VALUE...] with a field among {fields}; got {text!r}."
BAD_VALUE = "--only {field}={value}: the study has no such {field}; choose among {known}."
MOST_SHOWN = 12


class Key(NamedTuple):
    """One run; with the study and the method, the key of a row of results."""

    target: str
    corruption: str
    n: int
    p: float
    repeat: int


@dataclass(frozen=True)
class Task:
    """Runs that share a reference and a test set; one worker computes them."""

    repeat: int
    target: str
    keys: tuple[Key, ...]  # n = 0 is one and the same run under every corruption

    @property
    def n_runs(self) -> int:
        """Number of runs to compute."""
        return len(distinct_runs(self.keys))


def distinct_runs(keys: Iterable[Key]) -> dict[Key, list[Key]]:
    """Group keys by the run that answers them: without corrupted sources there is only one."""
    runs: dict[Key, list[Key]] = {}
    for key in keys:
        run = key if key.n else key._replace(corruption="", p=0.0)
        runs.setdefault(run, []).append(key)
    return runs


class Only:
    """The part of a grid that is wanted, by texts ``field=value[,value...]``.

    Several fields must all hold, values of one field add up.
    """

    def __init__(self, texts: Sequence[str] = ()):
        self.wanted: dict[str, list[str]] = {}
        for text in texts:
            field, _, values = map(str.strip, text.partition("="))
            listed = [value.strip() for value in values.split(",") if value.strip()]
            if field not in Key._fields or not listed:
                raise ValueError(BAD_ONLY.format(fields=", ".join(Key._fields), text=text))
            self.wanted.setdefault(field, []).extend(listed)

    def takes(self, field: str, value: Any) -> bool:
        """Whether a value of a field is wanted."""
        wanted = self.wanted.get(field)
        return wanted is None or _plain(field, value) in {_plain(field, each) for each in wanted}

    def part(self, grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Return the wanted ones of a grid's values; values that it does not have are refused."""
        for field, values in self.wanted.items():
            known = [_plain(field, value) for value in grid[field]]
            for value in sorted(values):
                if _plain(field, value) not in known:
                    shown = ", ".join(known[:MOST_SHOWN]) + ", ..." * (len(known) > MOST_SHOWN)
                    raise ValueError(BAD_VALUE.format(field=field, value=value, known=shown))
        return {
            field: [value for value in values if self.takes(field, value)]
            for field, values in grid.items()
        }


def _plain(field: str, value: Any) -> str:
    """Write a value so that 1, 1.0 and "1.0" are the same, unless it is a name."""
    if field in ("target", "corruption"):
        return str(value)
    try:
        return f"{float(value):g}"
    except (TypeError, ValueError):
        return str(value)
