"""The command line: parse, call, print."""

from sourcewise.cli.entry import main

__all__ = ["main"]
