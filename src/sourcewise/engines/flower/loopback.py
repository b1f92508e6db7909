"""A SuperLink and sites as processes of this machine, on 127.0.0.1 only.

Whatever is started is stopped by its process id, also after a failure, Ctrl-C or a plain kill.
Telemetry, Flower's search for updates and installations at run time are off.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from sourcewise.engines.flower.project import flower_config
from sourcewise.extras import how_to_install

NOT_INSTALLED = "The program {name} is not beside {python}: {how}."
DIED = "{name} stopped before it was ready; the end of its log {log} is: {tail}"
NOT_READY = "{name} was not ready after {seconds:.0f} seconds; see {log}."
NO_PORT = "No port of 127.0.0.1 between {low} and {high} is free."
RUN_TOO_LONG = "The run took more than {seconds:.0f} seconds and has been stopped."

HOST = "127.0.0.1"
# Below the ports that systems hand out for outgoing connections: nobody gets one of these by chance
# between our look and the program that is to listen there.
PORTS = range(20_000, 30_000)
READY = 180.0  # seconds that a SuperLink may take to open its port
GRACE = 4.0  # seconds between asking a process to stop and stopping it
ASK = signal.SIGTERM
INSIST = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows knows one way only
PROFILE = "sourcewise-loopback"
OWN_SUPERLINK = [sys.executable, "-m", "sourcewise.engines.flower.own_superlink"]
COMMAND = [sys.executable, "-m", "sourcewise.cli"]
# Seconds between two looks for work. Flower's own is 1 second; at a twentieth, four processes that
# have nothing to do keep a quarter of a processor busy.
POLL = "0.25"


@dataclass(frozen=True)
class Tls:
    """Files for encryption and for the authentication of nodes."""

    authority: Path
    certificate: Path
    key: Path


class Loopback:
    """Starts and stops processes; use it in a ``with`` statement.

    The folder is for logs and Flower's own files. With ``tls``, connections are encrypted, and only
    registered nodes are let in.
    """

    def __init__(self, folder: Path, tls: Tls | None = None):
        self.folder, self.tls = folder, tls
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._files: list[IO[Any]] = []
        self._lives: IO[Any] | None = None  # what programs read their input from, and its other end

    # -- starting and stopping ---------------------------------------------------------------

    def __enter__(self) -> Loopback:
        """Start the SuperLink."""
        try:
            self._start_link()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        """Stop everything that was started."""
        self.stop()

    def _start_link(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        security = ["--insecure"]
        connection = "insecure = true"
        if self.tls is not None:
            security = ["--ssl-ca-certfile", str(self.tls.authority)]
            security += ["--ssl-certfile", str(self.tls.certificate)]
            security += ["--ssl-keyfile", str(self.tls.key), "--enable-supernode-auth"]
            connection = f"root-certificates = '{self.tls.authority}'"
        text = flower_config(str(self.folder), PROFILE, f"{HOST}:{self.port}", connection)
        (self.folder / "config.toml").write_text(text, encoding="utf-8")
        options = ["--host", HOST, "--port", str(self.port)]
        options += ["--disable-runtime-dependency-installation"]
        self.start(OWN_SUPERLINK, [*security, *options], "superlink")
        self._wait_for_port("superlink", self.port)

    def start_site(self, name: str, file: Path, key: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a site by its file."""
        options = ["federated", "site", str(file), "--superlink", f"{HOST}:{self.port}"]
        options += ["--max-retries", "3"]
        if self.tls is None:
            options.append("--insecure")
        else:
            options += ["--root-certificates", str(self.tls.authority)]
        if key is not None:
            options += ["--key", str(key)]
        return self.start(COMMAND, options, name)

    def start(
        self, program: Sequence[str], options: Sequence[str], name: str
    ) -> subprocess.Popen[bytes]:
        """Start a program in a process group of its own; its output goes to a log.

        Its input is closed when this process ends, however it does.
        """
        log = self.log(name).open("wb")
        self._files.append(log)
        if self._lives is None:
            theirs, ours = os.pipe()
            self._lives = os.fdopen(theirs, "rb")
            self._files += [self._lives, os.fdopen(ours, "wb")]
        process = subprocess.Popen(
            [*program, *options],
            env=self._environment(),
            stdin=self._lives,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=self.folder,
        )
        self.processes[name] = process
        return process

    def kill(self, name: str) -> None:
        """End a program and its children at once, as a power cut does."""
        process = self.processes.pop(name)
        started = descendants([process.pid])
        _signal_group(process, INSIST)
        process.wait()
        _end(started)

    def stop(self) -> None:
        """Stop everything: ask first, then insist; at once if interrupted again."""
        mine = list(self.processes.values())
        # Before their parents end: Flower starts some in sessions of their own.
        started = descendants(process.pid for process in mine)
        try:
            for process in mine:
                _signal_group(process, ASK)
            end = time.monotonic() + GRACE
            for process in mine:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, end - time.monotonic()))
        finally:
            started |= descendants(process.pid for process in started)
            for process in mine:
                _signal_group(process, INSIST)
                process.wait()
            _end(started)
        self.processes = {}
        for file in self._files:
            file.close()
        self._files, self._lives = [], None

    # -- running -----------------------------------------------------------------------------

    def run(self, app: Path, config: Mapping[str, Any], seconds: float) -> tuple[int, str]:
        """Run a Flower app; returns its exit code and what it printed."""
        pairs = " ".join(f"{name}={_toml(value)}" for name, value in config.items())
        options = ["run", str(app), PROFILE, "--stream"]
        pairs_given = ["-c", pairs] if pairs else []
        process = self.start([program("flwr")], [*options, *pairs_given], "run")
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise ValueError(RUN_TOO_LONG.format(seconds=seconds)) from None
        finally:
            _signal_group(process, INSIST)
            process.wait()
            self.processes.pop("run", None)
        return code, self.log("run").read_text(encoding="utf-8", errors="replace")

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.folder / f"{name}.log"

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_HOME": str(self.folder),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": POLL,
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
        }

    def _wait_for_port(self, name: str, port: int) -> None:
        end = time.monotonic() + READY
        while time.monotonic() < end:
            if self.processes[name].poll() is not None:
                tail = self.log(name).read_text(encoding="utf-8", errors="replace")[-300:]
                raise ValueError(
                    DIED.format(name=name, log=self.log(name), tail=" ".join(tail.split()))
                )
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex((HOST, port)) == 0:
                    return
            time.sleep(0.1)
        raise ValueError(NOT_READY.format(name=name, seconds=READY, log=self.log(name)))


def program(name: str) -> str:
    """Return the path of a program of Flower's."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ValueError(
            NOT_INSTALLED.format(name=name, python=sys.executable, how=how_to_install("flower"))
        )
    return found


def free_port() -> int:
    """Return a port that nobody listens on now."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise ValueError(NO_PORT.format(low=PORTS.start, high=PORTS.stop))


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a process and its children; each was started as the leader of its group."""
    if not hasattr(os, "killpg"):  # on Windows; Flower's children end when their parent is gone
        process.terminate()
        return
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def descendants(roots: Iterable[int]) -> set[psutil.Process]:
    """Return these processes, what they have started, what that has started, and so on.

    Programs may start others in sessions of their own. A process is known by when it began, too,
    which tells it from a later one of the same number.
    """
    found = set()
    for number in roots:
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(number)
            found |= {process, *process.children(recursive=True)}
    return found


def _end(started: Iterable[psutil.Process]) -> None:
    """Stop what is still there of processes that were seen before."""
    for process in started:
        with suppress(psutil.Error):
            process.kill()


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)
