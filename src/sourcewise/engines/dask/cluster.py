"""The cluster: one that is there already, or one on this machine for the time it is needed."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sourcewise.engines.dask.messages import NO_SCHEDULER, TLS_WANTED, UNGUARDED

CONNECTING = 20  # seconds to reach a scheduler
# Dask's own value has freed memory given back to the system at once, which doubles our CPU time.
TRIM_THRESHOLD = 256 << 20


@dataclass(frozen=True)
class Tls:
    """Files of an encrypted connection, as Dask's own ``Security`` takes them."""

    ca: Path
    cert: Path
    key: Path


@contextmanager
def connected(address: str, tls: Tls | None = None) -> Iterator[Any]:
    """Connect to a scheduler."""
    from distributed import Client, Security

    if tls is None and address.startswith("tls://"):
        raise ValueError(TLS_WANTED.format(address=address))
    security = None
    if tls is not None:
        files = {"ca_file": tls.ca, "client_cert": tls.cert, "client_key": tls.key}
        given = {f"tls_{name}": str(path) for name, path in files.items()}
        security = Security(**given, require_encryption=True)
    client = Client.__new__(Client)  # so that there is something to close if it cannot start
    try:
        client.__init__(address, security=security, timeout=CONNECTING, set_as_default=False)
    except Exception as error:  # whatever a connection can fail with, unreadable keys included
        with suppress(Exception):
            client.close(timeout=0.1)
        why = (str(error) or type(error).__name__).strip().splitlines()[0].rstrip(".")
        raise ValueError(NO_SCHEDULER.format(address=address, why=why)) from error
    try:
        yield client
    finally:
        client.close()


@contextmanager
def local_cluster(n_workers: int | None = None, memory_limit: Any = "auto") -> Iterator[Any]:
    """Start one worker a core on the loopback interface, and stop them again.

    Whoever can talk to a worker can have it run a function, and other users of this machine can
    reach its port: everybody has to show keys that are made for this cluster and kept in memory.
    """
    import dask
    from distributed import Client, LocalCluster, Security

    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(UNGUARDED)
    settings = {
        "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": TRIM_THRESHOLD,
        # Arrow's own keeps a third more than is in use.
        "distributed.nanny.pre-spawn-environ.ARROW_DEFAULT_MEMORY_POOL": "system",
        "logging.distributed": "critical",
        # What a worker holds for us Dask can neither spill nor wait for: it only has to stay below.
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": 0.95,
        # Dask looks a hundred times a second at what its threads do, fifty times at whether its
        # loops are late, and twice at disk and network: for pages that nobody sees.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "5s",
        # Pages about tasks, which nobody looks at; the ports of them cannot be switched off.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        "distributed.nanny.http.routes": [],
        # Rows are with one worker: another would have to read them again.
        "distributed.scheduler.work-stealing": False,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=n_workers or dask.system.CPU_COUNT,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any free port
            scheduler_kwargs={"dashboard": False},
            memory_limit=memory_limit,
            silence_logs=logging.CRITICAL,
            security=Security.temporary(),
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
