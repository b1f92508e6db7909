"""What a user says about a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ONLY_IN_MEMORY = "{option} needs the rows in memory; leave it out, or leave out --engine dask."


@dataclass(frozen=True)
class TableRequest:
    """What a user says about a table.

    Attributes
    ----------
    data : path, or frame of pandas, polars or pyarrow
    label, source : str
        Columns.
    reference : str, optional
        Value of the source column, or the name for the rows of ``reference_file``.
    reference_file : path or frame, optional
    features, drop, categories, text : list of str
        Columns to use (default: all others), to leave out, to take as categories, to take as free
        text.
    dates : bool
        Turn dates into numbers instead of refusing them.
    task : {"auto", "classification", "regression"}
    min_rows : int
        Sources with fewer rows are left out.
    skip_bad_rows : bool
        Leave out rows without a usable label or with rubbish in a number, instead of refusing the
        table.
    """

    data: Any
    label: str
    source: str
    reference: str | None = None
    reference_file: Any = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    task: str = "auto"
    min_rows: int = 1
    text: tuple[str, ...] = ()
    dates: bool = False
    skip_bad_rows: bool = False
