"""``--engine dask``: what comes out is what comes out of memory."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest

import sourcewise as sw
from cli.running import NAMES, TOLD, make_rows, run_here
from sourcewise.cli import on_cluster
from sourcewise.engines.dask import cluster, messages


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """Five files; text, gaps, a category and vendors that are spread over files."""
    folder = tmp_path_factory.mktemp("parquet")
    columns = make_rows()
    frame = pandas.DataFrame(columns)
    frame["size"] = frame["size"].astype(float)
    frame["weight"] = pandas.to_numeric(frame["weight"])
    frame["fragile"] = frame["fragile"] == "true"
    for k, low in enumerate(range(0, len(frame), 90)):
        frame[low : low + 90].to_parquet(folder / f"part-{k}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def scheduler():
    with cluster.local_cluster(2, "1GiB") as client:
        yield client.scheduler.address


def test_fit_writes_what_it_writes_in_memory(parquet, scheduler, tmp_path):
    outputs = "-o", tmp_path / "here.skops", "--weights", tmp_path / "here.csv"
    here = run_here("fit", parquet, *TOLD, *outputs)
    found = "--engine", "dask", "--scheduler", scheduler, "--resume", tmp_path / "found"
    outputs = "-o", tmp_path / "there.skops", "--weights", tmp_path / "there.csv"
    there = run_here("fit", parquet, *TOLD, *outputs, *found)
    assert (there.code, there.err) == (0, "")
    assert there.out == here.out.replace("here.", "there.")
    one, other = (pandas.read_csv(tmp_path / f"{name}.csv") for name in ("here", "there"))
    assert other["source"].tolist() == one["source"].tolist() == list(NAMES)
    np.testing.assert_allclose(other["weight"], one["weight"], rtol=0, atol=1e-8)
    rows = pandas.read_parquet(parquet)
    here, there = (sw.load(tmp_path / f"{name}.skops") for name in ("here", "there"))
    np.testing.assert_allclose(there.predict_proba(rows), here.predict_proba(rows), atol=1e-6)


def test_numbers_are_predicted_and_small_sources_left_out(parquet, scheduler, tmp_path):
    rows = pandas.read_parquet(parquet)
    few = rows.head(3).assign(vendor="few")
    data = tmp_path / "rows.parquet"
    pandas.concat([rows, few]).drop(columns="verdict").to_parquet(data, index=False)
    told = "--label", "weight", "--source", "vendor", "--min-rows", "9", "--drop", "colour"
    rows[rows["vendor"] == "gold"].dropna().drop(columns="vendor").to_csv(
        tmp_path / "gold.csv", index=False
    )
    kept = pandas.read_parquet(data).dropna()
    kept[kept["vendor"] != "gold"].to_parquet(data, index=False)
    told = *told, "--reference-file", tmp_path / "gold.csv", "--json", "-o", tmp_path / "m.skops"
    here = json.loads(run_here("fit", data, *told).out)
    there = run_here("fit", data, *told, "--engine", "dask", "--scheduler", scheduler)
    assert there.code == 0
    names = [line["source"] for line in here["sources"]]
    assert "few" not in names
    found = json.loads(there.out)["sources"]
    assert [line["source"] for line in found] == names
    np.testing.assert_allclose(
        [line["weight"] for line in found], [line["weight"] for line in here["sources"]], atol=1e-8
    )
    stages = [json.loads(line) for line in there.err.splitlines()]
    assert [s["stage"] for s in stages if s["done"] == 0][-2:] == ["selection", "training"]
    assert all(set(s) >= {"stage", "done", "total", "seconds_left"} for s in stages)


def test_without_a_scheduler_workers_are_started_and_stopped(parquet, tmp_path):
    import psutil

    def processes():
        # The one process that counts their semaphores stays as long as Python does.
        children = psutil.Process().children(recursive=True)
        return {child.pid for child in children if "resource_tracker" not in str(child.cmdline())}

    before = processes()
    told = *TOLD, "--trade-off", "2", "-o", tmp_path / "m.skops", "--quiet"
    done = run_here("fit", parquet, *told, "--engine", "dask")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert processes() <= before


def test_mistakes_are_told_in_a_sentence_and_nothing_is_written(parquet, scheduler, tmp_path):
    here = "fit", parquet, "-o", tmp_path / "m.skops"
    dask = "--engine", "dask", "--scheduler", scheduler
    nowhere = "tcp://127.0.0.1:1"
    tls = tmp_path / "ca.pem"
    told = *TOLD, *dask
    alone = on_cluster.ONLY_ON_CLUSTER
    for arguments, sentence in (
        (
            (*TOLD, "--scheduler", scheduler),
            alone.format(option="--scheduler"),
        ),
        ((*TOLD, "--resume", tmp_path), alone.format(option="--resume")),
        ((*TOLD, "--engine", "dask", "--tls-ca", tls), on_cluster.TLS_NEEDS_SCHEDULER),
        ((*told, "--tls-ca", tls), on_cluster.TLS_TOGETHER),
        (
            (*told, "--tls-ca", tls, "--tls-cert", tls, "--tls-key", tls),
            on_cluster.NO_TLS_FILE.format(path=tls, option="--tls-ca"),
        ),
        ((*told, "--resume", parquet / "part-0.parquet"), "--resume takes a folder"),
        ((*told[:-4], "--reference", "golden", *dask), "did you mean 'gold'?"),
        ((*told, "--drop", "colours"), "has no column 'colours'; did you mean 'colour'?"),
        ((*told, "--task", "regression"), "holds text, which cannot be predicted as numbers"),
        ((*told, "--min-rows", "1000"), "No source has the 1000 rows"),
        ((*TOLD, "--engine", "dask", "--scheduler", nowhere), nowhere),
        (("--label", "vendor", *told[2:]), "cannot hold both"),
    ):
        done = run_here(*here, *arguments)
        assert done.code == 2, arguments
        assert done.err.count("\n") == 1
        assert sentence in done.err
        assert done.out == ""
    assert not list(tmp_path.iterdir())


def test_a_table_that_is_not_there_is_told_before_any_work(scheduler, tmp_path):
    dask = "--engine", "dask", "--scheduler", scheduler
    done = run_here("fit", tmp_path / "no", *TOLD, *dask, "-o", tmp_path / "m.skops")
    assert done.code == 2
    assert messages.NO_PATH.format(path=tmp_path / "no") in done.err


def test_an_address_is_kept_as_it_is(tmp_path):
    from sourcewise.tables.on_cluster import TableSources
    from sourcewise.tables.training import TableRequest

    for given, address in (
        ("s3:/bucket/rows", "s3://bucket/rows"),
        ("s3://bucket/rows", "s3://bucket/rows"),
        (str(tmp_path), str(tmp_path)),
    ):
        request = TableRequest(given, "y", "vendor", "gold")
        assert TableSources(request, None).path == address
