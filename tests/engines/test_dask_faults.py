"""Workers that die, and fits that go on from where they were stopped."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas
import pyarrow
import pytest
from dask_tables import cut_anywhere, estimator, in_memory, table
from test_invariance import assert_same

from sourcewise.engines import DaskSources
from sourcewise.engines.dask import journal as journals
from sourcewise.engines.dask import layout, messages, running
from sourcewise.engines.dask.cluster import local_cluster
from sourcewise.engines.dask.engine import DaskEngine
from sourcewise.engines.dask.journal import Journal, digest
from sourcewise.engines.dask.running import ClusterLost, Runner
from sourcewise.progress import listening

PHASES = ["reading", "discrepancies", "selection", "training"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(layout, "CHUNK_BYTES", 12_000)
    monkeypatch.setattr(layout, "GROUPS_PER_THREAD", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("rows")
    cut_anywhere(table("two classes"), made)
    return made


def wait_until_all_run(client, seconds=240.0):
    """Wait for workers: one killed before its start is reported is never started again by Dask."""
    until = time.monotonic() + seconds
    nannies = client.cluster.workers.values()
    while {str(nanny.process and nanny.process.status) for nanny in nannies} != {"Status.running"}:
        assert time.monotonic() < until, "workers that were killed are not back"
        time.sleep(0.05)
    client.wait_for_workers(len(nannies), timeout=seconds)


def fit(folder, client, **options):
    wait_until_all_run(client)
    sources = DaskSources(folder, label="y", source="vendor", client=client, **options)
    sources.patience = 120.0  # a busy machine takes long to start a worker again
    return estimator("", trade_off=2.0).fit_sources(sources)


@pytest.fixture
def at_phase(monkeypatch):
    """Call a function once, when the tasks of a phase have just been sent."""
    waiting = running._next

    def arrange(phase, action):
        now, left = ["start"], [1]

        def sent(results):
            if now[0] == phase and left:
                left.clear()
                action()
            return waiting(results)

        monkeypatch.setattr(running, "_next", sent)
        return listening(lambda stage, done, total: now.__setitem__(0, stage))

    return arrange


def kill(client, n=1):
    for pid in list(client.run(os.getpid).values())[:n]:
        os.kill(pid, signal.SIGKILL)


def assert_identical(one, other):
    for name in ("source_weights_", "discrepancies_", "coef_", "intercept_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_worker_killed_in_any_phase_changes_nothing(cluster, folder, at_phase):
    quiet = fit(folder, cluster)
    assert_same(in_memory("", table("two classes"), trade_off=2.0), quiet)
    for phase in PHASES:
        with at_phase(phase, lambda: kill(cluster)):
            assert_identical(fit(folder, cluster), quiet)


def test_all_workers_killed_at_once_come_back_and_change_nothing(cluster, folder, at_phase):
    quiet = fit(folder, cluster)
    for phase in ("reading", "training"):
        with at_phase(phase, lambda: kill(cluster, 2)):
            assert_identical(fit(folder, cluster), quiet)


def test_a_fit_whose_workers_are_all_lost_goes_on_elsewhere(cluster, folder, at_phase, tmp_path):
    quiet = fit(folder, cluster)
    model = estimator("", trade_off=2.0)
    with local_cluster(2, "1GiB") as doomed:

        def lose():
            doomed.cluster.scale(0)
            while doomed.nthreads():
                time.sleep(0.05)

        with at_phase("selection", lose), pytest.raises(ClusterLost) as error:
            sources = DaskSources(
                folder, label="y", source="vendor", client=doomed, resume=tmp_path / "found"
            )
            sources.patience = 1.0
            model.fit_sources(sources)
    hint = messages.RESUME_HINT.format(folder=tmp_path / "found")
    assert str(error.value) == messages.WORKERS_LOST.format(seconds=1.0, resume=hint)[:-1]
    assert not hasattr(model, "coef_")
    tasks = []
    each = Runner.each

    def counted(self, function, jobs):
        tasks.extend([function.__name__] * len(jobs))
        return each(self, function, jobs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "each", counted)
        patch.setattr(layout, "GROUPS_PER_THREAD", 3)  # as if there were more workers
        assert_identical(fit(folder, cluster, resume=tmp_path / "found"), quiet)
    assert "ask_sources" not in tasks
    assert not list((tmp_path / "found" / "sums").iterdir())  # it is done


class Unanswering:
    """A client whose workers are lost when results have been announced and not yet fetched."""

    def __init__(self, workers):
        self.workers, self.asked = workers, []

    def nthreads(self):
        return self.workers

    def sync(self, function, callback_timeout):
        self.asked.append(callback_timeout)
        if len(self.asked) < 3:
            raise TimeoutError
        return ["found"]


def test_results_that_are_lost_before_they_are_fetched_are_waited_for_while_there_are_workers():
    class Made:
        status = "pending"

    client = Unanswering({"tcp://127.0.0.1:1": 1})
    assert Runner(client)._results([Made()]) == ["found"]
    assert client.asked == [running.FETCHING * k for k in (1, 2, 4)]
    with pytest.raises(ClusterLost):
        Runner(Unanswering({}), patience=0.0)._results([Made()])
    Made.status = "error"  # a task of ours that took too long
    with pytest.raises(TimeoutError):
        Runner(Unanswering({}), patience=0.0)._results([Made()])


def test_a_stopped_fit_repeats_no_pass(cluster, folder, at_phase, tmp_path, monkeypatch):
    quiet = fit(folder, cluster)
    passes = []

    def stop():
        raise KeyboardInterrupt

    with at_phase("training", stop), pytest.raises(KeyboardInterrupt):
        fit(folder, cluster, resume=tmp_path)
    written = len(list((tmp_path / "sums").glob("*.found")))
    assert written > 10
    total = DaskEngine.total

    def counted(engine, function, jobs):
        passes.append(function.__name__)
        return total(engine, function, jobs)

    monkeypatch.setattr(DaskEngine, "total", counted)
    assert_identical(fit(folder, cluster, resume=tmp_path), quiet)
    assert 0 < len(passes) < written


def test_only_new_and_changed_sources_are_looked_at_again(cluster, tmp_path, monkeypatch):
    frame = table("two classes")
    rows = tmp_path / "rows"
    rows.mkdir()
    for name, some in frame.groupby("vendor", sort=False):
        if name != "s10":
            some.to_parquet(rows / f"{name}.parquet")
    fit(rows, cluster, resume=tmp_path / "found")
    frame.loc[frame["vendor"] == "s6", "x0"] += 1.0
    for name in ("s6", "s10"):
        frame[frame["vendor"] == name].to_parquet(rows / f"{name}.parquet")
    asked = []
    each = Runner.each

    def listened(self, function, jobs):
        if function.__name__ == "ask_sources":
            asked.extend(len(arguments[2]) for _, arguments in jobs)
        return each(self, function, jobs)

    monkeypatch.setattr(Runner, "each", listened)
    again = fit(rows, cluster, resume=tmp_path / "found")
    assert sum(asked) == 4  # two sources, a look and a pull each
    fresh = fit(rows, cluster)
    assert sum(asked) == 4 + 2 * 10
    # Not to the last bit: what was found before was found beside other sources.
    assert_same(fresh, again)


def test_damaged_findings_are_found_once_more(cluster, folder, tmp_path):
    quiet = fit(folder, cluster, resume=tmp_path)
    rng = np.random.default_rng(0)
    paths = sorted((tmp_path / "answers").rglob("*.found"))
    assert len(paths) > 3
    for k, path in enumerate(paths):
        content = bytearray(path.read_bytes())
        if k % 3 == 0:
            content[int(rng.integers(len(content)))] ^= 255
            path.write_bytes(content)
        elif k % 3 == 1:
            path.write_bytes(content[: len(content) // 2])
        else:  # whole, but of another layout
            journals._write(path, pyarrow.table({"fingerprint": ["x"], "discrepancy": [[1.0]]}))
    assert_same(quiet, fit(folder, cluster, resume=tmp_path))


def test_files_in_the_folder_that_are_not_ours_are_passed_over(tmp_path):
    journal = Journal(tmp_path)
    journal.know(np.zeros((2, 16), dtype=np.uint8))
    sums = journal.sums("a", 1)
    sums.write((np.arange(6.0).reshape(2, 3), np.float32([0.1])))
    again = journal.sums("a", 1).found
    assert [a.tolist() for a in again] == [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [np.float32(0.1)]]
    assert again[1].dtype == np.float32
    whole = sums.path.read_bytes()
    turned = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole), 5)]
    for content in (b"", b"PAR1", whole[:-1], *turned):
        sums.path.write_bytes(content)
        assert journal.sums("a", 1).found is None
    pandas.DataFrame({"dtype": ["O"], "shape": [[1]], "values": [[1.0]]}).to_parquet(sums.path)
    assert journal.sums("a", 1).found is None
    for other in ({"dtype": ["O"], "shape": [[1]], "values": [[1.0]]}, {"other": [1]}):
        journals._write(sums.path, pyarrow.table(other))
        assert journal.sums("a", 1).found is None
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError) as error:
        Journal(tmp_path / "file")
    assert str(error.value) == messages.NOT_A_FOLDER.format(path=tmp_path / "file")


def test_fingerprints_tell_values_apart():
    values = [
        1, 1.0, "1", True, None, [1], (1,), [1, 2], [[1], 2], np.array([1]), np.array([1.0]),
        np.array([[1]]), np.array([1], dtype=np.int32), np.float64(1), Path, b"1",
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)
    assert digest(np.arange(6)[::2]) == digest(np.array([0, 2, 4]))


def test_the_cluster_listens_on_the_loopback_interface_only(cluster):
    import psutil

    pids = [os.getpid(), *cluster.run(os.getpid).values()]
    addresses = {
        connection.laddr.ip
        for pid in pids
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}
