"""A plain kill, or a closed terminal, ends what runs as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a plain kill end as Ctrl-C does: what was begun is removed, what was started stopped."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # no other may listen
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
