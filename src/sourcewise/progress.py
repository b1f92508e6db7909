"""How far a long computation is, reported to a listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("sourcewise_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener(stage, done, total)`` for all that happens inside; total 0 means unknown."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: int = 0, total: int = 0) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


def counter(stage: str, total: int) -> Callable[[int], None]:
    """Return a function to call with how many more of ``total`` steps are done."""
    done = 0

    def more(n: int) -> None:
        nonlocal done
        done += n
        report_progress(stage, done, total)

    return more
