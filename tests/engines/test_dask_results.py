"""On two processes the result is that in memory, however the rows are laid out."""

from __future__ import annotations

import os
import shutil
import time
from functools import cache

import numpy as np
import pandas
import pyarrow
import pytest
from dask_tables import LAYOUTS, cut_anywhere, estimator, features, in_memory, table
from pyarrow import parquet
from test_invariance import assert_same

from sourcewise import columns, validation
from sourcewise.engines import DaskSources
from sourcewise.engines.dask import layout, messages, store
from sourcewise.engines.dask.layout import SourceTable
from sourcewise.engines.dask.parquet_files import find_files
from sourcewise.engines.dask.reading import ColumnReader, look_at
from sourcewise.engines.dask.rows import GroupTask, rows_of_chunks


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Several chunks and groups even of a few hundred rows."""
    monkeypatch.setattr(layout, "CHUNK_BYTES", 12_000)
    monkeypatch.setattr(layout, "GROUPS_PER_THREAD", 2)


def on_cluster(kind, folder, client, **options):
    weight = "weight" if kind == "sample weights" else None
    sources = DaskSources(folder, label="y", source="vendor", client=client, sample_weight=weight)
    return estimator(kind, **options).fit_sources(sources)


@pytest.mark.parametrize("make", LAYOUTS)
def test_the_result_is_that_in_memory_for_any_layout(make, cluster, tmp_path):
    kind = "sample weights"
    frame = make(table(kind), tmp_path)
    here, there = in_memory(kind, frame), on_cluster(kind, tmp_path, cluster)
    assert there.sources_.tolist() == here.sources_.tolist()
    assert there.classes_.tolist() == here.classes_.tolist()
    assert there.feature_names_in_.tolist() == here.feature_names_in_.tolist()
    assert there.source_rows_.tolist() == here.source_rows_.tolist()
    assert_same(here, there)
    assert str(there.report()) == str(here.report())
    np.testing.assert_array_equal(there.predict(features(frame)), here.predict(features(frame)))


@pytest.mark.parametrize("kind", ["two classes", "three classes", "regression", "wide"])
def test_the_result_is_that_in_memory_for_any_labels(kind, cluster, tmp_path):
    frame = cut_anywhere(table(kind), tmp_path)
    assert_same(in_memory(kind, frame), on_cluster(kind, tmp_path, cluster))


@pytest.mark.parametrize("options", [{"discrepancy": "plug-in"}, {"protocol": "paper"}])
def test_the_result_is_that_in_memory_under_any_options(options, cluster, tmp_path):
    frame = cut_anywhere(table("two classes"), tmp_path)
    assert_same(
        in_memory("two classes", frame, **options),
        on_cluster("two classes", tmp_path, cluster, **options),
    )


QUICK = {"trade_off": 2.0}  # a tenth of the models


@cache
def plain():
    return in_memory("two classes", table("two classes"), **QUICK)


@pytest.mark.parametrize(("chunk_bytes", "threads"), [(1, 5), (10**9, 1)])
def test_pieces_and_workers_do_not_matter(chunk_bytes, threads, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(layout, "GROUPS_PER_THREAD", threads)
    cut_anywhere(table("two classes"), tmp_path)
    assert_same(plain(), on_cluster("two classes", tmp_path, cluster, **QUICK))


def test_the_number_of_workers_does_not_matter_to_the_last_bit(cluster, tmp_path, monkeypatch):
    """Groups are what it changes."""
    cut_anywhere(table("three classes"), tmp_path)
    found = []
    for groups in (1, 2, 3):
        monkeypatch.setattr(layout, "GROUPS_PER_THREAD", groups)
        found.append(on_cluster("three classes", tmp_path, cluster, **QUICK))
    for other in found[1:]:
        np.testing.assert_array_equal(other.source_weights_, found[0].source_weights_)
        np.testing.assert_array_equal(other.coef_, found[0].coef_)


def test_order_of_files_does_not_matter(cluster, tmp_path):
    """Sources then come in another order; each has its rows in the order that they had."""
    frame = table("two classes")
    for k, (_, rows) in enumerate(frame.groupby("vendor", sort=False)):
        rows.to_parquet(tmp_path / f"part.{(7 * k) % 11}.parquet")
    assert_same(plain(), on_cluster("two classes", tmp_path, cluster, **QUICK))


def test_rows_that_do_not_fit_into_memory_are_read_from_the_workers_disk(cluster, tmp_path):
    cluster.run(lambda: setattr(store, "CACHE_SHARE", 1e-9))
    try:
        frame = table("two classes").sample(frac=1.0, random_state=1)
        for k in range(3):
            frame[k::3].to_parquet(tmp_path / f"{k}.parquet")
        frame = pandas.concat([frame[k::3] for k in range(3)])
        assert_same(
            in_memory("", frame, **QUICK), on_cluster("two classes", tmp_path, cluster, **QUICK)
        )
    finally:
        cluster.run(lambda: setattr(store, "CACHE_SHARE", 0.25))


@pytest.mark.parametrize("make", LAYOUTS)
def test_what_is_read_of_all_files_is_the_table(make, tmp_path):
    frame = make(table("sample weights"), tmp_path)
    names = tuple(f"x{j}" for j in range(12))
    reader = ColumnReader(names, "y", "weight")
    parts = find_files(str(tmp_path), {})
    wanted = [*reader.columns, "vendor"]
    found = pyarrow.Table.from_batches([b for part in parts for b in part.batches(wanted)])
    np.testing.assert_array_equal(reader.features(found), frame[list(names)])
    np.testing.assert_array_equal(reader.labels(found), frame["y"])
    np.testing.assert_array_equal(reader.weights(found), frame["weight"])
    assert found.column("vendor").to_pylist() == frame["vendor"].tolist()
    facts = look_at(parts, "vendor", as_text=False)
    counts = pandas.concat([pandas.Series(one.counts, one.names) for one in facts])
    assert counts.groupby(level=0).sum().to_dict() == frame["vendor"].value_counts().to_dict()
    assert all(one.part.identity and one.columns["vendor"] == "text" for one in facts)


def test_rows_of_spread_sources_are_put_aside_and_found_again(tmp_path, monkeypatch):
    """One group, every file with rows of all sources, of other types of numbers and of text."""
    rng = np.random.default_rng(0)
    n, names = 900, [f"s{k}" for k in range(23)]
    frame = pandas.DataFrame({"x": rng.normal(size=n), "y": rng.integers(0, 2, n)})
    frame["kind"] = rng.choice(["a", "b"], n)
    frame["vendor"] = rng.choice(names, n)
    for k in range(9):
        some = frame[100 * k : 100 * k + 100]
        if k % 2:
            some = some.astype({"x": "float32", "kind": "category"})
        some.to_parquet(tmp_path / f"{k}.parquet")

    class Reader:
        columns = ("x", "y", "kind")

        def features(self, table):
            kinds = table.column("kind").to_numpy(zero_copy_only=False) == "b"
            return np.column_stack([table.column("x").to_numpy(), kinds])

        def labels(self, table):
            return table.column("y").to_numpy()

        def weights(self, table):
            return None

    parts = find_files(str(tmp_path), {})
    counts = frame["vendor"].value_counts()
    sources = SourceTable(names, counts[names].to_numpy(), [np.arange(23)] * 9)
    monkeypatch.setattr(layout, "GROUPS_PER_THREAD", 1)
    (group,) = layout.groups_of(sources, parts, 100, 1)
    assert len(group.chunks) > 5
    task = GroupTask("fit", group, "vendor", True, Reader(), lambda *rows: rows)
    for budget in (0.0, 3e3, 1e9):
        found = dict(rows_of_chunks(task, range(len(group.chunks)), budget, tmp_path / "aside"))
        assert sorted(found) == list(range(len(group.chunks)))
        for k, (X, y, codes, called, _) in found.items():
            assert called == group.chunks[k].names
            for code, name in enumerate(called):
                mine = frame[frame["vendor"] == name]
                np.testing.assert_allclose(X[codes == code, 0], mine["x"], rtol=1e-6)
                np.testing.assert_array_equal(X[codes == code, 1], mine["kind"] == "b")
                np.testing.assert_array_equal(y[codes == code], mine["y"])
        assert not (tmp_path / "aside").exists()


@pytest.mark.filterwarnings("ignore:.*Sending large graph")
def test_a_dask_frame_is_taken(cluster):
    import dask.dataframe

    frame = dask.dataframe.from_pandas(table("two classes"), npartitions=4, sort=False)
    for given in (frame, cluster.persist(frame)):
        assert_same(plain(), on_cluster("two classes", given, cluster, **QUICK))


def test_single_precision_stays_single(cluster, tmp_path):
    frame = table("two classes").astype({f"x{j}": "float32" for j in range(12)})
    cut_anywhere(frame, tmp_path)
    assert_same(
        in_memory("", frame, **QUICK), on_cluster("two classes", tmp_path, cluster, **QUICK)
    )


def test_a_connection_can_be_kept_for_more_than_one_fit(cluster, tmp_path):
    cut_anywhere(table("two classes"), tmp_path)
    with DaskSources(tmp_path, label="y", source="vendor", client=cluster) as sources:
        model = estimator("", **QUICK).fit_sources(sources)
        assert_same(plain().at_trade_off(3.0), model.at_trade_off(3.0))
        assert_same(plain(), estimator("", **QUICK).fit_sources(sources))
    with pytest.raises(ValueError) as error:
        model.at_trade_off(1.0)
    assert str(error.value) == messages.CLOSED
    assert not any(cluster.run(lambda: list(store._stores)).values())
    folders = cluster.run(lambda dask_worker: os.listdir(dask_worker.local_directory))
    assert not any("sourcewise" in name for names in folders.values() for name in names)


def test_nothing_but_small_answers_comes_back(cluster, tmp_path, monkeypatch):
    """Of untrusted rows there are none among the results of tasks."""
    from sourcewise.engines.dask.running import Runner

    results = []
    each = Runner.each

    def listened(self, function, jobs):
        for position, found in each(self, function, jobs):
            results.append((function.__name__, found))
            yield position, found

    monkeypatch.setattr(Runner, "each", listened)
    frame = cut_anywhere(table("two classes"), tmp_path)
    on_cluster("two classes", tmp_path, cluster, **QUICK)
    used = {name for name, _ in results}
    assert used == {"look_at", "reference_rows", "read_group", "ask_sources", "add_up"}
    trusted = int((frame["vendor"] == "s9").sum())
    assert sum(found.num_rows for name, found in results if name == "reference_rows") == trusted


# -- what can be wrong with files ------------------------------------------------------------


def spoilt(tmp_path, **changes):
    """Write twelve files, one of them changed."""
    frame = table("two classes").astype({"vendor": object})
    cut_anywhere(frame, tmp_path)
    path = tmp_path / "part.3.parquet"
    part = pandas.read_parquet(path)
    part.assign(**changes).to_parquet(path)
    return path, part


def complaint(folder, client, **options):
    given = {"label": "y", "source": "vendor", **options}
    with pytest.raises(ValueError) as error:
        estimator("").fit_sources(DaskSources(folder, client=client, **given))
    return str(error.value)


def test_a_damaged_file_is_named(cluster, tmp_path):
    path, _ = spoilt(tmp_path)
    whole = path.read_bytes()
    for content in (b"", b"rows", whole[:-100], whole[:300] + bytes(900) + whole[1200:]):
        path.write_bytes(content)
        said = complaint(tmp_path, cluster)
        assert said.startswith(messages.NOT_READABLE.format(path=path, why="")[:-1])
        assert "\n" not in said


def test_bytes_that_do_not_go_with_their_checksum_are_refused_by_name(cluster, tmp_path):
    path = tmp_path / "all.parquet"
    rows = pyarrow.Table.from_pandas(table("two classes"), preserve_index=False)
    plain = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    parquet.write_table(rows, path, **plain)
    column = parquet.read_metadata(path).row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 16
    path.write_bytes(content)
    assert complaint(path, cluster).startswith(f"{path} cannot be read as a Parquet file: ")


def test_a_file_with_other_columns_is_named(cluster, tmp_path):
    path, part = spoilt(tmp_path)
    first = tmp_path / "part.0.parquet"
    for changed, what in (
        (part.drop(columns="x3"), "no 'x3'"),
        (part.assign(new=1.0), "also 'new'"),
        (part.assign(x3="three"), "'x3' holds text instead of numbers"),
    ):
        changed.to_parquet(path)
        sentence = messages.OTHER_COLUMNS.format(path=path, first=first, what=what)
        assert complaint(tmp_path, cluster) == sentence


@pytest.mark.parametrize("moment", ["look_at", "read_group"])
def test_a_file_that_changes_while_it_is_read_is_named(moment, cluster, tmp_path, monkeypatch):
    from sourcewise.engines.dask.running import Runner

    path, part = spoilt(tmp_path)
    each = Runner.each

    def listened(self, function, jobs):
        yield from each(self, function, jobs)
        if function.__name__ == moment:
            time.sleep(0.01)
            part.assign(x0=0.0).to_parquet(path)
            # What had been read already is lost, as with a worker.
            self.client.run(lambda: [shutil.rmtree(s.folder) for s in store._stores.values()])
            self.client.run(lambda: [s.entries.clear() for s in store._stores.values()])
            self.client.run(lambda: [s.folder.mkdir() for s in store._stores.values()])

    monkeypatch.setattr(Runner, "each", listened)
    assert complaint(tmp_path, cluster) == messages.FILE_CHANGED.format(path=path)


def test_an_address_may_be_any_that_workers_can_open(cluster):
    """What is in this process's memory is not in that of others."""
    import fsspec
    from distributed import Client

    frame = table("two classes")
    memory = fsspec.filesystem("memory")
    try:
        with memory.open("/rows/part-0.parquet", "wb") as file:
            frame.to_parquet(file)
        path = "memory://rows"
        said = complaint(path, cluster)
        assert said == messages.NOT_WITH_WORKERS.format(path="memory:///rows/part-0.parquet")
        with Client(processes=False, n_workers=1, dashboard_address=None) as here:
            assert_same(plain(), on_cluster("two classes", path, here, **QUICK))
    finally:
        memory.rm("/rows", recursive=True)


def test_a_file_that_vanishes_is_named(cluster, tmp_path, monkeypatch):
    path, _ = spoilt(tmp_path)
    monkeypatch.setattr(
        DaskSources, "_find", lambda self, name, table: (path.unlink(), table.names.index(name))[1]
    )
    assert complaint(tmp_path, cluster) == messages.FILE_CHANGED.format(path=path)


def test_mistakes_in_rows_name_the_source(cluster, tmp_path):
    path, part = spoilt(tmp_path)
    vendor = part["vendor"].iloc[-1]
    row = np.arange(len(part)) == len(part) - 1
    for change, said in (
        ({"x2": part["x2"].mask(row)}, f"Source '{vendor}' has NaN in column 'x2' (1 rows)"),
        ({"y": part["y"].mask(row, 7)}, f"Source '{vendor}' has the label 7"),
        ({"y": part["y"].mask(row)}, f"Source '{vendor}' has NaN in the labels"),
        ({"vendor": part["vendor"].mask(row)}, f"{path}: row {len(part)} has no source"),
    ):
        part.assign(**change).to_parquet(path)
        assert complaint(tmp_path, cluster).startswith(said)
    frame = table("two classes").assign(x3="a")
    cut_anywhere(frame, tmp_path)
    assert complaint(tmp_path, cluster) == columns.TEXT_COLUMN.format(column="x3", value="a")


def test_wrong_names_are_explained(cluster, tmp_path):
    spoilt(tmp_path)
    known = "'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7', ..."
    for options, sentence in (
        (
            {"label": "verdict"},
            messages.COLUMN_MISSING.format(
                path=tmp_path, name="verdict", hint=f"; it has {known}."
            ),
        ),
        (
            {"label": "vendor"},
            messages.SAME_COLUMN.format(name="vendor", one="source", other="label"),
        ),
    ):
        assert complaint(tmp_path, cluster, **options) == sentence
    hint = "; did you mean 'vendor'?"
    assert complaint(tmp_path, cluster, source="vendors") in [  # of the file that is read first
        messages.COLUMN_MISSING.format(path=path, name="vendors", hint=hint)
        for path in tmp_path.rglob("*.parquet")
    ]
    absent = DaskSources(tmp_path, label="y", source="vendor", client=cluster)
    with pytest.raises(ValueError, match=r"no value 'S9', .*did you mean 's9'\?"):
        estimator("").set_params(reference="S9").fit_sources(absent)
    assert complaint(tmp_path / "no", cluster) == messages.NO_PATH.format(path=tmp_path / "no")
    (tmp_path / "empty").mkdir()
    assert complaint(tmp_path / "empty", cluster) == messages.NO_FILES.format(
        path=tmp_path / "empty"
    )
    assert complaint(3, cluster) == messages.NOT_A_FRAME.format(value=3)


def test_a_source_too_large_for_a_worker_is_named_before_any_work(cluster, tmp_path):
    rows = 500_000
    frame = pandas.DataFrame({"x": np.zeros(rows), "y": 0, "vendor": "large"})
    frame.loc[:20, "vendor"] = "s9"
    frame.loc[:10, "y"] = 1
    frame.loc[:20, "x"] = np.arange(21.0)
    frame.to_parquet(tmp_path / "all.parquet")
    assert complaint(tmp_path, cluster).startswith(f"Source 'large' has {rows - 21} rows, which")


def test_estimators_that_need_all_rows_are_refused(cluster, tmp_path):
    from sklearn.linear_model import LogisticRegression

    cut_anywhere(table("two classes"), tmp_path)
    with pytest.raises(ValueError) as error:
        on_cluster("two classes", tmp_path, cluster, estimator=LogisticRegression())
    assert str(error.value) == validation.ROWS_ELSEWHERE.format(estimator="LogisticRegression")
