"""Options that several commands share, one by one, and what becomes of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

FITTING, OUTPUT = "How to fit", "Output"


def told(metavar: str, text: str, panel: str | None = None, *names: str, **how: Any) -> Any:
    """Describe an option whose default is not shown: the text says it, or there is none."""
    return typer.Option(
        *names, metavar=metavar, help=text, rich_help_panel=panel, **{"show_default": False, **how}
    )


def flag(name: str, text: str, panel: str | None = None) -> Any:
    """Describe an option that is there or not, with no opposite."""
    return typer.Option(name, help=text, rich_help_panel=panel)


def output(metavar: str, text: str, panel: str | None = None, **how: Any) -> Any:
    """Describe where results go."""
    return told(metavar, text, panel, "--output", "-o", **how)


def given(metavar: str, text: str) -> Any:
    """Describe an argument."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


Seed = Annotated[
    int, told("N", "Seed of the random folds.", FITTING, min=0, max=2**32 - 1, show_default=True)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT)
]
Json = Annotated[bool, flag("--json", "Print the result as JSON.", OUTPUT)]
ModelFile = Annotated[Path, given("MODEL", "Model file from sourcewise fit.")]


def listed(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split values at their commas, as ``--drop a,b --drop c`` gives them."""
    parts = [part.strip() for value in values or [] for part in value.split(",")]
    return tuple(part for part in parts if part)


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["sourcewise", *sys.argv[1:]])
