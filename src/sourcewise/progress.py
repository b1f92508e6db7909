"""How far a long computation is, reported to a listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from sourcewise.extras import how_to_install

BARS_NEED = "verbose=True shows progress bars, which need rich: {how}."
FITS = "fits"  # stage that runs beside the others: fits of an estimator of the user's own
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


def bars(wanted: bool) -> AbstractContextManager[None]:
    """Show progress bars for all that happens inside, if they are wanted and nobody listens yet."""
    if not wanted or _listener.get() is not None:
        return nullcontext()
    try:
        from sourcewise.progress_bars import verbose_bars
    except ModuleNotFoundError as error:
        raise ImportError(BARS_NEED.format(how=how_to_install("cli"))) from error
    return verbose_bars()


def counter(stage: str, total: int) -> Callable[[int], None]:
    """Return a function to call with how many more of ``total`` steps are done."""
    done = 0

    def more(n: int) -> None:
        nonlocal done
        done += n
        report_progress(stage, done, total)

    return more
