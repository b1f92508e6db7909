"""Tasks on a cluster whose workers may be lost: each is done again until all are done."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from sourcewise.engines.dask.messages import (
    CLOSED,
    RESUME_HINT,
    SCHEDULER_LOST,
    WORKER_DIES,
    WORKERS_LOST,
)

TICK = 1.0  # seconds between looks at who is still there
FETCHING = 10.0  # seconds for results to arrive, before looking whether anybody is there
PATIENCE = 30.0  # seconds to wait for a first worker to come back when all are lost


class ClusterLost(ConnectionError):
    """The cluster cannot go on; said in one sentence."""


class Runner:
    """Runs tasks on the workers of a client, every one at its place.

    Rows that a worker has read stay with it, so a group's tasks go to one worker for as long as
    that lives. Messages name the folder where findings are kept.
    """

    def __init__(self, client: Any, folder: Any = None, patience: float = PATIENCE):
        self.client = client
        self.patience = patience
        self.hint = RESUME_HINT.format(folder=folder) if folder is not None else ""
        self.homes: dict[int, str] = {}
        self.tasks = 0
        self.closed = False
        self._seen: dict[str, int] = {}
        self._looked = 0.0

    @property
    def threads(self) -> dict[str, int]:
        """Threads of every worker as of late; waits for one if there is none."""
        if self.closed:
            raise ValueError(CLOSED)
        if self._seen and time.monotonic() - self._looked < TICK:
            return self._seen
        until = time.monotonic() + self.patience
        while True:
            with self._explained():
                found: dict[str, int] = self.client.nthreads()
            if found:
                self._seen, self._looked = found, time.monotonic()
                return found
            if time.monotonic() > until:
                raise ClusterLost(
                    WORKERS_LOST.format(seconds=self.patience, resume=self.hint).rstrip(".")
                )
            time.sleep(0.2)

    @property
    def memory_limit(self) -> int:
        """Smallest memory limit of a worker in bytes; 0 where there is none."""
        with self._explained():
            limits = self.client.run(_memory_limit)
        return min((limit for limit in limits.values() if limit), default=0)

    def place(self, n_groups: int) -> None:
        """Give every group a worker; neighbours go to the same one."""
        threads = self.threads
        seats = [address for address in sorted(threads) for _ in range(threads[address])]
        self.homes = {g: seats[g * len(seats) // n_groups] for g in range(n_groups)}

    def keep(self, value: Any) -> Any:
        """Hold a value that many tasks need on the cluster; it can be made again there.

        Anywhere: what is kept at a place waits for ever if all workers are lost and others come.
        """
        from sourcewise.engines.dask.tasks import same

        with self._explained(), _large_messages():
            return self.client.submit(same, value, pure=False)

    def each(
        self, function: Callable[..., Any], jobs: Sequence[tuple[int | None, tuple[Any, ...]]]
    ) -> Iterator[tuple[int, Any]]:
        """Run a function for every (group, arguments); yields positions and results as they come.

        Group None means any worker.
        """
        results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        running: dict[Any, int] = {}
        try:
            with self._explained(), _large_messages():
                for position, (group, arguments) in enumerate(jobs):
                    where = {} if group is None else self._at_home(group)
                    future = self.client.submit(function, *arguments, pure=False, **where)
                    running[future] = position
                    future.add_done_callback(results.put)
            self.tasks += len(jobs)
            while running:
                done = _next(results)
                with self._explained():
                    found = self._results(done) if done else []
                for future, value in zip(done, found, strict=True):
                    yield running.pop(future), value
                self.threads  # noqa: B018 (says so if there are no workers any more)
        finally:
            for future in running:
                future.release()

    def _results(self, done: list[Any]) -> Any:
        """Fetch results that were there: who holds them may be lost meanwhile, with all others.

        They are then made again by other workers, if any come; without any, this says so.
        """

        async def fetched() -> Any:
            return await self.client.gather(done, asynchronous=True)

        seconds = FETCHING
        while True:
            try:
                return self.client.sync(fetched, callback_timeout=seconds)
            except TimeoutError:
                if any(future.status == "error" for future in done):
                    raise
            self.threads  # noqa: B018 (says so if there are no workers any more)
            seconds *= 2

    def _at_home(self, group: int) -> dict[str, Any]:
        """Where a group's tasks go: where it was, or to who has the least if that is lost."""
        threads = self.threads
        if self.homes.get(group) not in threads:
            load = dict.fromkeys(sorted(threads), 0)
            for home in self.homes.values():
                if home in load:
                    load[home] += 1
            self.homes[group] = min(load, key=lambda address: load[address] / threads[address])
        # Others may step in: Dask sees to it when a worker is lost in the middle of a task.
        return {"workers": [self.homes[group]], "allow_other_workers": True}

    def _dies(self, times: int) -> str:
        limit = self.memory_limit
        shown = f"{limit / 2**20:.0f} MiB" if limit else "the machine's"
        return WORKER_DIES.format(times=times, limit=shown, resume=self.hint).rstrip(".")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in a sentence that the cluster is gone."""
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            raise ClusterLost(self._dies(error.allowed_failures + 1)) from None
        except (CommClosedError, CancelledError, TimeoutError) as error:
            raise ClusterLost(SCHEDULER_LOST.format(resume=self.hint).rstrip(".")) from error


def _next(results: Any) -> list[Any]:
    """All that is there, or the first to come within a while."""
    found = []
    with suppress(queue.Empty):
        found.append(results.get(timeout=TICK))
        while True:
            found.append(results.get_nowait())
    return found


def _memory_limit(dask_worker: Any = None) -> int:
    return int(dask_worker.memory_manager.memory_limit or 0)


@contextmanager
def _large_messages() -> Iterator[None]:
    """Do not warn of what is meant to be sent: models and the reference's rows."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"}):
        yield
