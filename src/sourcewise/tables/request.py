"""What a user says about a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ONLY_IN_MEMORY = "{option} needs the rows in memory; leave it out, or leave out --engine dask."


@dataclass(frozen=True)
class TableRequest:
    """What a user says about a table."""

    data: Any
    # Columns of the labels and of the sources.
    label: str
    source: str
    # Value of the source column, or the name for the rows of ``reference_file``.
    reference: str | None = None
    reference_file: Any = None
    # Columns to use (default: all others), to leave out, to take as categories, to take as free
    # text.
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    task: str = "auto"  # {"auto", "classification", "regression"}
    min_rows: int = 1  # sources with fewer rows are left out
    text: tuple[str, ...] = ()
    dates: bool = False  # turn dates into numbers instead of refusing them
    # Leave out rows without a usable label or with rubbish in a number, instead of refusing the
    # table.
    skip_bad_rows: bool = False
