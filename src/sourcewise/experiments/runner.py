"""Running a study: worker processes compute, the parent alone writes, nothing is run twice.

A run's numbers depend on its key alone, so a run that was lost when the process was killed is
computed again to the last digit.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sourcewise.estimators.threads import one_blas_thread
from sourcewise.experiments.grid import Only, Task, distinct_runs
from sourcewise.experiments.results import ResultsFile, Row
from sourcewise.experiments.study import Study
from sourcewise.progress import report_progress

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
AHEAD = 2  # tasks handed out before a worker asks for them

WORKER_FAILED = "A worker process failed:\n{trace}"
WORKER_GONE = (
    "A worker process ended unexpectedly (exit code {code}); what is finished is kept, and the "
    "same command continues."
)


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes
    ----------
    done : int
        Runs in the file of results.
    total : int
        Runs that are wanted.
    """

    done: int
    total: int


def run_study(study: Study, path: Path, only: Only, *, jobs: int = 1) -> Progress:
    """Run what is wanted and not there yet.

    Parameters
    ----------
    study : Study
    path : Path
        File of results; created, or continued if it has the same settings.
    only : Only
    jobs : int
        Worker processes; with 1 everything happens in this process.
    """
    tasks = study.tasks(only)
    with ResultsFile(path, study.settings()) as file:
        total = sum(task.n_runs for task in tasks)
        left = _missing(study, tasks, file)
        done = total - sum(task.n_runs for task in left)
        report_progress("runs", done, total)
        with _computed(study, left, jobs) as batches:
            for rows in batches:
                file.add(rows)
                done += 1
                report_progress("runs", done, total)
    return Progress(done, total)


def _missing(study: Study, tasks: list[Task], file: ResultsFile) -> list[Task]:
    """Return the tasks that are not finished, with the runs that they lack."""
    there = file.keys()
    left = []
    for task in tasks:
        keys = tuple(
            key
            for key in task.keys
            if any((study.name, *key, method) not in there for method in study.methods)
        )
        if keys:
            left.append(replace(task, keys=keys))
    return left


@contextmanager
def _computed(study: Study, tasks: list[Task], jobs: int) -> Iterator[Iterator[list[Row]]]:
    """Give the rows of one finished run after the other, in any order."""
    if jobs <= 1 or len(tasks) <= 1:
        yield _in_this_process(study, tasks)
        return
    workers = Workers(study, min(jobs, len(tasks)))
    try:
        yield workers.run(tasks)
    finally:
        workers.stop()


def _in_this_process(study: Study, tasks: list[Task]) -> Iterator[list[Row]]:
    with one_blas_thread():
        for task in tasks:
            yield from study.run(task)


class WorkerGone(RuntimeError):
    """A worker process was killed."""


class Workers:
    """Processes that compute tasks and send back the rows of each run as it is finished."""

    def __init__(self, study: Study, n: int):
        context = multiprocessing.get_context("spawn")
        self._tasks: Any = context.Queue()
        self._answers: Any = context.Queue()
        # The study goes through a queue of its own, which a thread fills: as an argument it would
        # block this process for ever if a worker died before it has read all of it.
        self._studies = [context.Queue() for _ in range(n)]
        self._processes = [
            context.Process(target=_work, args=(given, self._tasks, self._answers), daemon=True)
            for given in self._studies
        ]
        with _one_thread_each():
            for process, given in zip(self._processes, self._studies, strict=True):
                process.start()
                given.put(study)

    def run(self, tasks: list[Task]) -> Iterator[list[Row]]:
        """Hand out the tasks and gather what comes back."""
        waiting = iter(tasks)
        for task, _ in zip(waiting, range(AHEAD * len(self._processes)), strict=False):
            self._tasks.put(task)
        finished = 0
        while finished < len(tasks):
            kind, content = self._next()
            if kind == "failed":
                raise RuntimeError(WORKER_FAILED.format(trace=content))
            if kind == "rows":
                yield content
                continue
            finished += 1
            task = next(waiting, None)
            if task is not None:
                self._tasks.put(task)

    def _next(self) -> tuple[str, Any]:
        while True:
            # Not only when nothing comes: the others could go on for days without the one gone.
            # But one that has ended by itself has said why, and is to be heard.
            self._notice_gone(None, 0)
            with suppress(queue.Empty):
                return self._answers.get(timeout=1.0)
            self._notice_gone(None)

    def _notice_gone(self, *expected: int | None) -> None:
        for process in self._processes:
            if process.exitcode not in expected:
                raise WorkerGone(WORKER_GONE.format(code=process.exitcode))

    def stop(self) -> None:
        """End all processes, whatever they are at."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        for channel in (self._tasks, self._answers, *self._studies):
            channel.cancel_join_thread()
            channel.close()


def _work(given: Any, tasks: Any, answers: Any) -> None:
    """Compute tasks until the parent ends this process, or is itself gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        study: Study = given.get()
        with one_blas_thread():
            while True:
                for rows in study.run(tasks.get()):
                    answers.put(("rows", rows))
                answers.put(("finished", None))
    except KeyboardInterrupt:  # the parent has been told too, and speaks for all
        os._exit(1)
    except BaseException:
        answers.put(("failed", traceback.format_exc()))


def _end_with_parent() -> None:
    """End this process when the parent is gone: killed, it cannot say so."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes started inside use one thread for their matrix products."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class Estimate:
    """Projected cost of what is wanted, from a sample of runs.

    Attributes
    ----------
    runs : int
        In the whole grid.
    sampled : int
        Runs that were measured.
    seconds : float
        Processor time of the whole grid.
    """

    runs: int
    sampled: int
    seconds: float


def estimate(study: Study, only: Only) -> Estimate:
    """Measure a few runs and project the processor time of all that is wanted.

    The first task is run under one and then under two of its corruptions: the difference is what
    each further one costs, the rest what a task costs once.
    """
    tasks = study.tasks(only)
    if not tasks:
        return Estimate(0, 0, 0.0)
    first = tasks[0]
    kinds = list(dict.fromkeys((key.corruption, key.p) for key in first.keys))
    spent, sampled = [], 0
    with one_blas_thread():
        for count in range(1, min(2, len(kinds)) + 1):
            part = replace(
                first,
                keys=tuple(k for k in first.keys if (k.corruption, k.p) in kinds[:count]),
            )
            start = time.process_time()
            for done, _ in enumerate(study.run(part), start=1):
                report_progress("sample", sampled + done, 0)
            sampled += len(distinct_runs(part.keys))
            spent.append(time.process_time() - start)
    per_task = spent[0]
    if len(spent) == 2:
        per_task += (len(kinds) - 1) * (spent[1] - spent[0])
    return Estimate(sum(task.n_runs for task in tasks), sampled, per_task * len(tasks))
