"""Where the ``sourcewise`` command starts, and where every failure becomes an exit code.

0: done. 2: something about the input, explained in one sentence. 130: interrupted, by Ctrl-C, a
plain kill or the end of the terminal. The last two leave nothing behind. Anything else is a mistake
of ours and shows where it happened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from sourcewise.extras import how_to_install
from sourcewise.interruption import interruptible
from sourcewise.safe_text import one_line

MISSING = "The sourcewise command needs {name}, which is not installed: {how}."
NEEDED = ("typer", "rich", "pyarrow", "skops")
INTERRUPTED = "Interrupted; nothing was written."
NO_MEMORY = "There is not enough memory for this table; use fewer columns (--features) or rows."
BAD_INPUT, INTERRUPT = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    with interruptible():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        import pyarrow  # noqa: F401  (used later; better to know now if it is missing)
        import rich  # noqa: F401

        from sourcewise.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in NEEDED:
            raise
        return complain(MISSING.format(name=error.name, how=how_to_install("cli")))
    except KeyboardInterrupt:
        return complain(INTERRUPTED, INTERRUPT)
    try:
        code = run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return complain(INTERRUPTED, INTERRUPT)
    except BrokenPipeError:
        # The reader of our output left early (`| head`), which is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return complain(NO_MEMORY)
    except ModuleNotFoundError as error:
        return complain(MISSING.format(name=error.name, how=how_to_install("cli")))
    except ImportError as error:
        return complain(str(error))
    except OSError as error:
        _forget_output()
        where = f"{error.filename}: " if error.filename else ""
        return complain(f"{where}{str(error.strerror or error).rstrip('.')}.")
    except ValueError as error:
        return complain(str(error))


def complain(sentence: str, code: int = BAD_INPUT) -> int:
    """Say one sentence on standard error."""
    print(f"sourcewise: {one_line(sentence)}", file=sys.stderr)  # it may quote a file
    return code


def _forget_output() -> None:
    """Drop what standard output could not take, which would be tried again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
