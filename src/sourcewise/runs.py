"""Long computations that may be stopped at any time: the same command continues them.

Worker processes compute, this process alone keeps the results, and nothing is computed twice. A
task's result must depend on the task alone, so that what was lost is computed again to the last
digit.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from sourcewise.core.threads import one_blas_thread
from sourcewise.progress import report_progress

Task = TypeVar("Task")
Rows = TypeVar("Rows")
Rows_in = TypeVar("Rows_in", contravariant=True)

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
REPORT_EVERY = 60.0  # seconds between lines where nobody watches a bar
PER_WORKER = 2  # tasks handed out: one to compute, one to go on with at once

WORKER_GONE = (
    "A worker process ended unexpectedly (memory may have run out, or somebody ended it); what is "
    "finished is kept, and the same command continues."
)


class WorkerGone(RuntimeError):
    """A worker process was killed."""


class Sink(Protocol[Task, Rows_in]):
    """Where results are kept."""

    def left(self, task: Task) -> Task | None:
        """Return what is still to be computed of a task; None if nothing is."""

    def add(self, rows: Rows_in) -> None:
        """Keep the result of one run."""


class Progress(NamedTuple):
    """How many runs are kept, of how many that are wanted."""

    done: int
    total: int


def one_run(_: Any) -> int:
    """Count a task as one run."""
    return 1


def run_left(
    function: Callable[[Task], Iterable[Rows]],
    tasks: Iterable[Task],
    sink: Sink[Task, Rows],
    *,
    jobs: int = 1,
    n_runs: Callable[[Task], int] = one_run,
) -> Progress:
    """Compute what a sink does not hold yet; as :func:`compute`, a run's rows after the other's."""
    tasks = list(tasks)
    left = [part for task in tasks if (part := sink.left(task)) is not None]
    total = sum(map(n_runs, tasks))
    done = total - sum(map(n_runs, left))
    report_progress("runs", done, total)
    with closing(compute(function, left, jobs=jobs)) as results:
        for rows in results:
            sink.add(rows)
            done += 1
            report_progress("runs", done, total)
    return Progress(done, total)


def compute(
    function: Callable[[Task], Iterable[Rows]], tasks: Iterable[Task], *, jobs: int = 1
) -> Generator[Rows, None, None]:
    """Apply a function to tasks and give what it yields, in any order.

    Every worker gets the function once, by pickle, with all the data that it carries. Tasks are
    consumed as they are needed: there may be millions. With one job everything happens in this
    process, and parts come as they are finished; a worker sends the parts of a task together. If
    one was killed, `WorkerGone` says so.
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
    # From the parent process, through a pipe that nobody else has: never from a file.
    _function = pickle.loads(functions.get())


def _end_when_closed(ended: Any) -> None:
    with suppress(EOFError):
        ended.recv()
    os._exit(1)


def _work(task: Any) -> list[Any]:
    with one_blas_thread():
        return list(_function(task))


class Lines:
    """Listens to the progress of runs and says how far they are, at most once a minute."""

    def __init__(self, say: Callable[[str], Any]):
        self.say = say
        self.began: tuple[float, int] | None = None
        self.said = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Listen to one message."""
        if stage != "runs":
            return
        now = time.monotonic()
        if self.began is None:
            self.began, self.said = (now, done), now
        since, at_first = self.began
        if now - self.said < REPORT_EVERY or done == at_first:
            return
        self.said = now
        left = (now - since) / (done - at_first) * (total - done)
        self.say(f"{done:,} of {total:,} runs, about {in_words(left)} left.")


def in_words(seconds: float) -> str:
    """Say how long something takes."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.0f} seconds"
