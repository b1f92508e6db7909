"""Many tasks, computed by worker processes while this process alone takes the results."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sourcewise.estimators.threads import one_blas_thread

Task = TypeVar("Task")
Rows = TypeVar("Rows")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
PER_WORKER = 2  # tasks handed out: one to compute, one to go on with at once

WORKER_GONE = (
    "A worker process ended unexpectedly (memory may have run out, or somebody ended it); what is "
    "finished is kept, and the same command continues."
)


class WorkerGone(RuntimeError):
    """A worker process was killed."""


def compute(
    function: Callable[[Task], Iterable[Rows]], tasks: Iterable[Task], *, jobs: int = 1
) -> Iterator[Rows]:
    """Apply a function to tasks and give what it yields, in any order.

    Parameters
    ----------
    function : callable
        From a task to the parts of its result. Every worker gets it once, by pickle, with all the
        data that it carries.
    tasks : iterable
        Consumed as they are needed: there may be millions.
    jobs : int
        Worker processes; with 1 everything happens in this process, and parts come as they are
        finished. A worker sends the parts of a task together.

    Raises
    ------
    WorkerGone
        If a worker was killed.
    """
    tasks = iter(tasks)
    first = list(itertools.islice(tasks, 2))
    tasks = itertools.chain(first, tasks)
    if jobs <= 1 or len(first) <= 1:
        with one_blas_thread():
            for task in tasks:
                yield from function(task)
        return
    with _workers(function, jobs) as pool:
        with _quiet_and_single_threaded():  # this starts the workers
            pending = {pool.submit(_work, t) for t in itertools.islice(tasks, PER_WORKER * jobs)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                parts = future.result()
                pending |= {pool.submit(_work, task) for task in itertools.islice(tasks, 1)}
                yield from parts


@contextmanager
def _workers(function: Callable[[Any], Iterable[Any]], jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool whose processes end with the block, or with this process however it ends."""
    context = multiprocessing.get_context("spawn")
    # Workers end when nobody holds the other end of this pipe any more: when it is closed here, or
    # when this process has been killed.
    ended, alive = context.Pipe(duplex=False)
    # Through a queue, which a thread fills. As an argument the function would block this process
    # for ever if a worker died before it has read all of it.
    functions = context.Queue()
    content = pickle.dumps(function)
    for _ in range(jobs):
        functions.put(content)
    pool = ProcessPoolExecutor(jobs, context, _start, (functions, ended))
    try:
        yield pool
    except BaseException as error:
        alive.close()  # whatever they are computing
        if isinstance(error, BrokenProcessPool):
            raise WorkerGone(WORKER_GONE) from error
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        for end in (alive, ended, functions):
            end.close()
        functions.cancel_join_thread()


@contextmanager
def _quiet_and_single_threaded() -> Iterator[None]:
    """Start processes with one thread for matrix products, and deaf to Ctrl-C.

    The terminal sends Ctrl-C to all of them; this process answers for all.
    """
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    masked = hasattr(signal, "pthread_sigmask")  # not on Windows
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masked else set()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if masked:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_function: Callable[[Any], Iterable[Any]]


def _start(functions: Any, ended: Any) -> None:
    """Prepare a worker process."""
    global _function
    threading.Thread(target=_end_when_closed, args=(ended,), daemon=True).start()
    _function = pickle.loads(functions.get())


def _end_when_closed(ended: Any) -> None:
    with suppress(EOFError):
        ended.recv()
    os._exit(1)


def _work(task: Any) -> list[Any]:
    with one_blas_thread():
        return list(_function(task))
