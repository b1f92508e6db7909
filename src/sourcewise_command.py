"""Where the ``sourcewise`` script starts.

Importing the package takes seconds, and an interruption within them would end in a traceback from
somewhere inside numpy. So this module is not part of the package and imports hardly anything.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

INTERRUPTED = "sourcewise: Interrupted; nothing was written."
INTERRUPT = 130


def main() -> int:
    """Import the command, and run it; an interruption on the way ends quietly."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # in the background, interruptions are ignored
        signal.signal(signal.SIGINT, _leave)
    from sourcewise.cli import main as command

    with suppress(ImportError):  # what is missing is said by the command
        import sourcewise.cli.app  # noqa: F401  (the larger part of the imports)

    signal.signal(signal.SIGINT, usual)
    return command()


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: half-imported modules would complain about anything gentler."""
    os.write(sys.stderr.fileno(), f"{INTERRUPTED}\n".encode())
    os._exit(INTERRUPT)
