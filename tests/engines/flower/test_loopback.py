"""What is started on this machine is stopped, whatever it has started itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from sourcewise.engines.flower import loopback
from sourcewise.engines.flower.loopback import HOST, PORTS, Loopback, descendants, free_port
from sourcewise.engines.flower.own_superlink import TABLES, owner
from sourcewise.interruption import interruptible

pytestmark = pytest.mark.skipif(
    not hasattr(os, "killpg"), reason="there are no groups of processes here"
)
# Starts another in a session of its own that hears no request to stop, as Flower's may be.
DETACHED = """
import signal, subprocess, sys, time
code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); "
code += "time.sleep(600)"
child = subprocess.Popen(
    [sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE
)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def number_in(log):
    """Wait for the number that a program prints."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        text = log.read_text()
        if text.endswith("\n"):
            return int(text)
        time.sleep(0.02)
    raise AssertionError(log)


def ran(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone(pid):
    """Whether a process that was told to end does."""
    end = time.monotonic() + 60
    while ran(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not ran(pid)


@pytest.fixture
def loop(tmp_path, monkeypatch):
    monkeypatch.setattr(loopback, "GRACE", 0.2)
    made = Loopback(tmp_path)
    yield made
    made.stop()


def started(loop):
    process = loop.start([sys.executable], ["-c", DETACHED], "program")
    child = number_in(loop.log("program"))
    assert {found.pid for found in descendants([process.pid])} == {process.pid, child}
    assert os.getpgid(child) != os.getpgid(process.pid)
    return process.pid, child


def test_what_a_program_has_started_elsewhere_is_stopped_with_it(loop):
    pids = started(loop)
    loop.stop()
    assert all(map(gone, pids))


def test_what_a_killed_program_has_started_is_stopped_with_it(loop):
    pids = started(loop)
    loop.kill("program")
    assert all(map(gone, pids))


def test_a_second_interruption_stops_everything_at_once(loop, monkeypatch):
    pids = started(loop)

    def interrupted(self, timeout=None):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.stop()
    assert all(map(gone, pids))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_plain_kill_and_a_closed_terminal_are_interruptions(name):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            os.kill(os.getpid(), number)
            time.sleep(60)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_program_that_shall_outlive_its_terminal_does():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ports_are_free_and_not_those_of_outgoing_connections(monkeypatch):
    with socket.socket() as taken:
        taken.bind((HOST, free_port()))
        port = taken.getsockname()[1]
        monkeypatch.setattr(loopback, "PORTS", range(port - 50, port + 50))
        found = {free_port() for _ in range(50)}
    assert port not in found
    assert found <= set(range(port - 50, port + 50))
    assert PORTS.stop <= 32_768


@pytest.mark.skipif(not TABLES[0].exists(), reason="connections are not listed here")
@pytest.mark.parametrize("here", ["127.0.0.1", "::1"])
def test_the_other_end_of_a_connection_is_the_users_who_opened_it(here):
    kind = socket.AF_INET6 if ":" in here else socket.AF_INET
    with socket.socket(kind) as server, socket.socket(kind) as client:
        try:
            server.bind((here, 0))
        except OSError:
            pytest.skip(f"there is no {here} here")
        server.listen()
        client.connect(server.getsockname())
        ends = client.getsockname()[:2], server.getsockname()[:2]
        assert owner(*ends) == os.getuid()
        assert owner((here, 1), ends[1]) is None  # nobody, or somebody elsewhere
