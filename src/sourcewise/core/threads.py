"""One thread for our own matrix products."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread(wanted: bool = True) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread inside the context.

    The products of the default learners are small enough to stay in cache. Spread over several
    threads they spend their time waiting for each other: a fit of half a second took a minute and
    a half where another process kept a core busy.
    """
    return _controller().limit(limits=1, user_api="blas") if wanted else nullcontext()
