"""``--engine dask``: what comes out is what comes out of memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from distributed import LocalCluster

import sourcewise as sw
from cli.running import NAMES, TOLD, make_rows, run_here, write_csv
from sourcewise.cli import fitting_options
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
    """Start a cluster of the user's own, which asks nobody for keys."""
    alone = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(2, threads_per_worker=1, memory_limit="1GiB", **alone) as made:
        yield made.scheduler_address


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


def test_mistakes_are_told_in_a_sentence_and_nothing_is_written(
    parquet, scheduler, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster, "CONNECTING", 1)
    here = "fit", parquet, "-o", tmp_path / "m.skops"
    dask = "--engine", "dask", "--scheduler", scheduler
    nowhere = "tcp://127.0.0.1:1"
    tls = tmp_path / "ca.pem"
    told = *TOLD, *dask
    alone = fitting_options.ONLY_ON_CLUSTER
    for arguments, sentence in (
        (
            (*TOLD, "--scheduler", scheduler),
            alone.format(option="--scheduler"),
        ),
        ((*TOLD, "--resume", tmp_path), alone.format(option="--resume")),
        ((*TOLD, "--engine", "dask", "--tls-ca", tls), fitting_options.TLS_NEEDS_SCHEDULER),
        ((*told, "--tls-ca", tls), fitting_options.TLS_TOGETHER),
        (
            (*told, "--tls-ca", tls, "--tls-cert", tls, "--tls-key", tls),
            fitting_options.NO_TLS_FILE.format(path=tls, option="--tls-ca"),
        ),
        ((*told, "--resume", Path(__file__)), "--resume takes a folder"),
        ((*told, "--resume", parquet / "found"), "which is read; choose another folder"),
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


def test_an_encrypted_scheduler_is_reached_with_its_files_only(parquet, tmp_path):
    from distributed import LocalCluster, Security

    made = Security.temporary()
    files = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, text in files.items():
        (tmp_path / f"{name}.pem").write_text(text)
    options = [part for name in files for part in (f"--tls-{name}", tmp_path / f"{name}.pem")]
    told = "fit", parquet, *TOLD, "--trade-off", "2", "-o", tmp_path / "m.skops", "--quiet"
    with LocalCluster(
        1, processes=False, protocol="tls://", security=made, dashboard_address=None
    ) as there:
        address = "--engine", "dask", "--scheduler", there.scheduler_address
        without = run_here(*told, *address)
        sentence = messages.TLS_WANTED.format(address=there.scheduler_address)
        assert (without.code, without.err) == (2, f"sourcewise: {sentence}\n")
        assert not (tmp_path / "m.skops").exists()
        done = run_here(*told, *address, *options)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "m.skops").exists()


def test_a_number_that_no_tree_could_read_is_told_with_its_source(scheduler, tmp_path):
    from pyarrow import csv
    from pyarrow import parquet as files

    columns = make_rows()
    columns["size"][70] = "1e39"
    (tmp_path / "parts").mkdir()
    write_csv(tmp_path / "t.csv", columns)
    files.write_table(csv.read_csv(tmp_path / "t.csv"), tmp_path / "parts" / "a.parquet")
    dask = "--engine", "dask", "--scheduler", scheduler
    done = run_here("audit", tmp_path / "parts", *TOLD, *dask)
    assert (done.code, done.out) == (2, "")
    assert "Source 'north' has infinity in column 'size'" in done.err


def test_a_table_that_is_not_there_is_told_before_any_work(scheduler, tmp_path):
    dask = "--engine", "dask", "--scheduler", scheduler
    done = run_here("fit", tmp_path / "no", *TOLD, *dask, "-o", tmp_path / "m.skops")
    assert done.code == 2
    assert messages.NO_PATH.format(path=tmp_path / "no") in done.err


def test_an_address_is_kept_as_it_is(tmp_path):
    from sourcewise.engines.dask.table_sources import TableSources
    from sourcewise.tables.training import TableRequest

    for given, address in (
        ("s3:/bucket/rows", "s3://bucket/rows"),
        ("s3://bucket/rows", "s3://bucket/rows"),
        (Path("memory://rows"), "memory://rows"),
        (Path("file:///data/rows"), "file:///data/rows"),
        (str(tmp_path), str(tmp_path)),
    ):
        request = TableRequest(given, "y", "vendor", "gold")
        assert TableSources(request, None).path == address


@pytest.fixture(scope="module")
def told_in_memory(parquet):
    done = run_here("audit", parquet, *TOLD, "--json")
    return json.loads(done.out)


def without_regions(told):
    """Leave out what is said of regions: they are looked at where all rows are in memory only."""
    parts = told["reference"]["parts"]
    assert any(part["of"] == "region" for part in parts)
    told["reference"]["parts"] = [part for part in parts if part["of"] != "region"]
    told["reference"]["sentence"] = told["reference"]["sentence"].partition(" Where one of ")[0]


def assert_alike(one, other, where=""):
    """Equal, numbers up to what solvers of the same problem may differ by."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_alike(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_alike(a, b, f"{where}[{k}]")
    elif isinstance(one, float) and isinstance(other, float):
        assert other == pytest.approx(one, rel=1e-5, abs=1e-7), where
    else:
        assert one == other, where


def test_audit_says_what_it_says_in_memory(parquet, scheduler, tmp_path, told_in_memory):
    page = tmp_path / "report.html"
    told = *TOLD, "--engine", "dask", "--scheduler", scheduler, "--json", "--quiet", "-o", page
    there = run_here("audit", parquet, *told)
    assert (there.code, there.err) == (0, "")
    found = json.loads(there.out)
    for one in (found, told_in_memory):
        del one["made_by"]
    assert found["set_aside"]  # there are cards to compare
    without_regions(told_in_memory)
    assert_alike(told_in_memory, found)
    assert "<html" in page.read_text()


def test_audit_of_numbers_whose_source_is_brought_in_pieces(
    parquet, scheduler, tmp_path, monkeypatch
):
    """Every source by itself, and no more of it than asked for."""
    from sourcewise.engines.dask import table_sources as tables

    monkeypatch.setattr(tables, "BROUGHT", 1)
    rows = pandas.read_parquet(parquet).drop(columns="verdict").dropna()
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    told = "--label", "weight", "--source", "vendor", "--reference", "gold", "--json", "--quiet"
    here = json.loads(run_here("audit", tmp_path / "rows.parquet", *told).out)
    dask = "--engine", "dask", "--scheduler", scheduler
    there = json.loads(run_here("audit", tmp_path / "rows.parquet", *told, *dask).out)
    for one in (here, there):
        del one["made_by"]
    without_regions(here)
    assert_alike(here, there)


def test_a_column_that_gives_the_label_away_is_found_in_a_sample(
    parquet, scheduler, tmp_path, monkeypatch
):
    from sourcewise.audit import on_cluster as audit

    rows = pandas.read_parquet(parquet)
    rows["answer"] = rows["verdict"]
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    told = "audit", tmp_path / "rows.parquet", *TOLD, "--json", "--quiet"
    dask = "--engine", "dask", "--scheduler", scheduler, "--trade-off", "2"
    whole = json.loads(run_here(*told, *dask).out)["leaks"]
    assert whole == json.loads(run_here(*told, "--trade-off", "2").out)["leaks"]
    monkeypatch.setattr(audit, "SAMPLE", 50)
    (sentence,) = json.loads(run_here(*told, *dask).out)["leaks"]
    assert "'answer' repeats the label" in sentence
    assert "rows of other sources" in sentence


def test_rows_of_a_source_are_its_first_ones_in_the_order_of_the_files(parquet, scheduler):
    from distributed import Client

    from sourcewise.audit import Settings
    from sourcewise.audit.on_cluster import fit_on_cluster
    from sourcewise.engines.dask.table_sources import TableSources
    from sourcewise.tables.request import TableRequest

    request = TableRequest(str(parquet), "verdict", "vendor", "gold")
    rows = pandas.read_parquet(parquet)
    with Client(scheduler) as client, TableSources(request, client) as sources:
        fit_on_cluster(sources, Settings(trade_off=2.0))
        names = sources.untrusted.names
        for most in (7, 10_000):
            found = list(sources.rows_of(range(len(names)), most))
            for name, table in zip(names, found, strict=True):
                wanted = rows.loc[rows["vendor"] == name, "size"].head(most)
                np.testing.assert_array_equal(table.column("size").to_numpy(), wanted)


def test_what_an_audit_needs_rows_in_memory_for_is_refused(parquet, scheduler):
    dask = "--engine", "dask", "--scheduler", scheduler
    for option, value in (("--image", "size"), ("--text", "colour"), ("--learner", "forest")):
        done = run_here("audit", parquet, *TOLD, *dask, option, value)
        assert done.code == 2
        assert f"{option} needs the rows in memory" in done.err
