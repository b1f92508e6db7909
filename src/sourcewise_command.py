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
    usual = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # In the background interruptions are ignored; Windows does not know all of them.
        if number and signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            usual[number] = signal.signal(number, _leave)
    from sourcewise.cli import main as command

    with suppress(ImportError):  # what is missing is said by the command
        import sourcewise.cli.app  # noqa: F401  (the larger part of the imports)

    for number, handler in usual.items():
        signal.signal(number, handler)
    return command()


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: half-imported modules would complain about anything gentler."""
    os.write(sys.stderr.fileno(), f"{INTERRUPTED}\n".encode())
    os._exit(INTERRUPT)
