"""Damaged files, made by a seeded generator: each works or is refused in one sentence."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import sourcewise as sw
from cli.running import TOLD, make_rows, run_here, write_csv
from sourcewise.tables.reading import open_table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training
from test_persistence import members, rewrite

N_TABLES, N_MODELS = 200, 104
CELLS = (
    b"",
    b'"',
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"NaN",
    b"1e999",
    b"-",
    b"\xff",
    b"=1+1",
    b"\xe2\x80\xae",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Make a folder with a table in two formats and a model fitted to it."""
    folder = tmp_path_factory.mktemp("fuzz")
    write_csv(folder / "data.csv", make_rows(40, 40))
    parquet.write_table(csv.read_csv(folder / "data.csv"), folder / "data.parquet")
    done = run_here("fit", folder / "data.csv", *TOLD, "-o", folder / "model.skops", "-q")
    assert done.code == 0, done.err
    return folder


def mutated(content, rng):
    """Change, cut, double or insert a few stretches of bytes."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(content)))
        to = at + int(rng.integers(1, 40))
        match rng.integers(6):
            case 0:
                content[at] ^= 1 << int(rng.integers(8))
            case 1:
                del content[at:to]
            case 2:
                content[at:at] = content[at:to]
            case 3:
                content[at:at] = CELLS[rng.integers(len(CELLS))]
            case 4:
                content[at:to] = rng.bytes(to - at)
            case 5 if rng.random() < 0.2:
                del content[at:]
        if not content:
            break
    return bytes(content)


def odd_column(values, rng):
    """Return the same column as another type."""
    size = len(values)
    match rng.integers(9):
        case 0:
            return pa.array([[v] for v in values.to_pylist()])
        case 1:
            return pa.array([{"a": v} for v in values.to_pylist()])
        case 2:
            return pa.array([str(v).encode() + b"\xff" for v in values.to_pylist()])
        case 3:
            return pa.nulls(size)
        case 4:
            return pa.array(np.arange(size), type=pa.timestamp("ns"))
        case 5:
            return pa.array(np.full(size, np.inf))
        case 6:
            return pa.array([str(v) for v in values.to_pylist()]).dictionary_encode()
        case 7:
            return pa.array(rng.integers(0, 2**63, size).astype(np.uint64) + np.uint64(2**63))
        case _:
            return pa.array([b"\xff"] * size, type=pa.binary(1))


def table_file(place, folder, seed):
    """Write one damaged table."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 0:
        table = parquet.read_table(place / "data.parquet")
        for k in rng.choice(table.num_columns, 1 + (rng.random() < 0.2), replace=False):
            column = odd_column(table.column(int(k)), rng)
            table = table.set_column(int(k), table.column_names[k], column)
        parquet.write_table(table, folder / "data.parquet")
        return folder / "data.parquet"
    name = "data.csv" if seed % 4 < 3 else "data.parquet"
    (folder / name).write_bytes(mutated((place / name).read_bytes(), rng))
    return folder / name


def assert_a_sentence(error, limit=600):
    assert type(error) in (ValueError, FileNotFoundError), repr(error)
    text = str(error)
    assert text.endswith(".") and len(text) < limit and "\n" not in text, text


@pytest.mark.parametrize("tenth", range(10))
def test_damaged_tables_work_or_are_refused_in_a_sentence(tenth, place, tmp_path):
    for seed in range(tenth, N_TABLES, 10):
        path = table_file(place, tmp_path, seed)
        try:
            training = read_training(TableRequest(path, "verdict", "vendor", "gold"))
            assert np.isfinite(training.X).all() and len(training.X) == len(training.y)
        except (ValueError, OSError) as error:
            assert_a_sentence(error)


@pytest.mark.parametrize("seed", range(3, 64, 3))
def test_damaged_tables_are_predicted_or_refused_in_a_sentence(seed, place, tmp_path):
    path = table_file(place, tmp_path, seed)
    done = run_here("predict", place / "model.skops", path, "-o", tmp_path / "p.csv", "-q")
    if done.code == 0:
        assert open_table(tmp_path / "p.csv").n_rows == open_table(path).n_rows
    else:
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert not (tmp_path / "p.csv").exists()


# -- models --------------------------------------------------------------------------------------

VALUES = ("null", "-1", "1e308", "NaN", '"x"', "[]", "{}", "[1, 2]", "true", "99999999999999999999")


def containers(value):
    yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from containers(part)


def mutated_schema(schema, rng):
    """Remove, swap, double or replace a few nodes, or a text within them."""
    for _ in range(rng.integers(1, 4)):
        inside = [c for c in containers(schema) if c]
        chosen, other = (inside[rng.integers(len(inside))] for _ in range(2))
        keys = list(chosen) if isinstance(chosen, dict) else list(range(len(chosen)))
        key = keys[rng.integers(len(keys))]
        match rng.integers(4):
            case 0:
                del chosen[key]
            case 1:
                chosen[key] = json.loads(json.dumps(other))
            case 2:
                chosen[key] = VALUES[rng.integers(len(VALUES))]
            case 3 if isinstance(chosen, dict) and "content" in chosen:
                chosen["content"] = VALUES[rng.integers(len(VALUES))]
    return schema


def mutated_array(content, rng):
    array = np.load(io.BytesIO(content))
    buffer = io.BytesIO()
    match rng.integers(4):
        case 0:
            array = np.concatenate([array.ravel(), array.ravel()])
        case 1:
            array = array.ravel()[:-1]
        case 2:
            array = array.astype(str)
        case 3:
            array = np.full(array.shape, np.nan)
    np.save(buffer, array)
    return buffer.getvalue()


def model_file(place, path, seed):
    """Write one damaged model."""
    rng = np.random.default_rng(seed)
    content = (place / "model.skops").read_bytes()
    path.write_bytes(content)
    if seed % 4 == 0:
        path.write_bytes(mutated(content, rng))
    elif seed % 4 == 1:
        inside = members(path)
        arrays = [name for name in inside if name.endswith(".npy")]
        names = rng.choice(arrays, 2)
        rewrite(path, {name: mutated_array(inside[name], rng) for name in names})
    else:
        schema = mutated_schema(json.loads(members(path)["schema.json"]), rng)
        rewrite(path, {"schema.json": json.dumps(schema)})


@pytest.mark.parametrize("eighth", range(8))
def test_damaged_models_work_or_are_refused_in_a_sentence(eighth, place, tmp_path):
    path, table = tmp_path / "model.skops", parquet.read_table(place / "data.parquet")
    outcomes = set()
    for seed in range(eighth, N_MODELS, 8):
        model_file(place, path, seed)
        try:
            model = sw.load(path)
        except ValueError as error:
            assert_a_sentence(error)
            outcomes.add("refused")
            continue
        assert len(model.predict(table)) == len(model.predict_proba(table)) == len(table)
        assert np.isfinite(model.predict_proba(table)).all()
        model.report().to_frame()
        outcomes.add("works")
    assert "refused" in outcomes
