"""Options that several commands share, one by one, and what becomes of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

FITTING, OUTPUT = "How to fit", "Output"

Seed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=2**32 - 1, help="Seed of the random folds.", rich_help_panel=FITTING
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT),
]


def listed(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split values at their commas, as ``--drop a,b --drop c`` gives them."""
    parts = [part.strip() for value in values or [] for part in value.split(",")]
    return tuple(part for part in parts if part)


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["sourcewise", *sys.argv[1:]])
