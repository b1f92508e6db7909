"""Worker processes: every task once, whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from sourcewise.progress import listening
from sourcewise.runs import PER_WORKER, Lines, WorkerGone, compute, in_words, run_left


def squares(task):
    """Two parts of a result."""
    yield [(task, task**2)]
    yield [(task, os.getpid())]


def killed_at_seven(task):
    if task == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    yield [task]


def wrong_at_seven(task):
    if task == 7:
        raise ValueError("Seven is not a task.")
    yield [task]


def threads(_):
    yield [os.environ["OMP_NUM_THREADS"], signal.pthread_sigmask(signal.SIG_BLOCK, [])]


def endless(task):
    Path(task).write_text(str(os.getpid()))
    while True:
        time.sleep(0.05)
    yield


class DiesWhenRead:
    """A function with much data that kills the process that reads it."""

    def __init__(self):
        self.data = bytes(10_000_000)

    def __setstate__(self, state):
        """Die."""
        os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, task):
        yield task


def listed(function, tasks, jobs):
    return [row for rows in compute(function, tasks, jobs=jobs) for row in rows]


@pytest.mark.parametrize("n_tasks", [0, 1, 2, 23])
def test_every_task_is_computed_once_by_however_many_workers(n_tasks):
    rows = listed(squares, iter(range(n_tasks)), jobs=2)
    here = listed(squares, range(n_tasks), jobs=1)
    assert len(rows) == len(here) == 2 * n_tasks
    assert sorted(rows[0::2]) == here[0::2] == [(k, k**2) for k in range(n_tasks)]
    workers = {process for _, process in rows[1::2]}
    assert len(workers) <= 2
    assert (os.getpid() in workers) == (n_tasks == 1)


def test_tasks_are_taken_when_they_are_needed():
    taken = []
    tasks = (taken.append(k) or k for k in range(1000))
    with closing(compute(squares, tasks, jobs=2)) as parts:
        for received, _ in enumerate(parts, start=1):
            assert len(taken) <= received + 2 * PER_WORKER
            if received == 10:
                break
    assert len(taken) < 20


def test_a_killed_worker_is_one_sentence_and_what_was_finished_is_there():
    rows = []
    with pytest.raises(WorkerGone, match=r"what is finished is kept.*same command continues\.$"):
        for part in compute(killed_at_seven, range(23), jobs=2):
            rows += part
    assert len(rows) == len(set(rows)) and 7 not in rows


def test_a_worker_that_dies_before_it_has_read_its_data_is_noticed():
    with pytest.raises(WorkerGone):
        listed(DiesWhenRead(), range(4), jobs=2)


def test_an_error_in_a_worker_is_the_callers():
    with pytest.raises(ValueError, match=r"Seven is not a task\."):
        listed(wrong_at_seven, range(23), jobs=2)


def test_a_worker_has_one_thread_and_leaves_interruptions_to_the_parent(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert listed(threads, range(2), jobs=2)[:2] == ["1", {signal.SIGINT}]
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, how):
    script = (
        "from test_runs import *\n"
        "if __name__ == '__main__':\n"
        f"    listed(endless, [{str(tmp_path / 'a')!r}, {str(tmp_path / 'b')!r}], jobs=2)\n"
    )
    (tmp_path / "script.py").write_text(script)
    folders = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "script.py"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: all((tmp_path / name).exists() for name in "ab"))
    wait_until(lambda: all((tmp_path / name).read_text() for name in "ab"))
    workers = [int((tmp_path / name).read_text()) for name in "ab"]
    if how == signal.SIGINT:
        os.killpg(parent.pid, how)  # a terminal tells all processes
    else:
        parent.send_signal(how)
    _, complaint = parent.communicate(timeout=300)
    wait_until(lambda: not any(map(is_running, workers)))
    if how == signal.SIGINT:
        assert complaint.count("Traceback") == 1  # the parent's, and no worker's
        assert complaint.rstrip().endswith("KeyboardInterrupt")


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


class Kept(dict):
    """A sink in memory."""

    def left(self, task):
        return None if task in self else task

    def add(self, rows):
        self.update(rows)


def first_square(task):
    yield [(task, task**2)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_sink_holds_is_not_computed_again(jobs):
    kept, told = Kept({1: "old", 4: "old"}), []
    with listening(lambda *message: told.append(message)):
        progress = run_left(first_square, range(6), kept, jobs=jobs)
    assert progress == (6, 6)
    assert kept == {0: 0, 1: "old", 2: 4, 3: 9, 4: "old", 5: 25}
    assert told == [("runs", done, 6) for done in (2, 3, 4, 5, 6)]


def test_lines_tell_the_time_left_once_a_minute(monkeypatch):
    said, now = [], [100.0]
    monkeypatch.setattr("sourcewise.runs.time.monotonic", lambda: now[0])
    lines = Lines(said.append)
    for done in range(10, 15):
        lines("runs", done, 40)
        now[0] += 40.0
    assert said == [
        "12 of 40 runs, about 18.7 minutes left.",
        "14 of 40 runs, about 17.3 minutes left.",
    ]
    assert in_words(119.0) == "119 seconds" and in_words(3 * 86400.0) == "3.0 days"
