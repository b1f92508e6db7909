"""Forged and damaged files, full disks and kills: what becomes of each, counted.

Every file that we read is forged by a seeded generator (tests/test_fuzz.py runs a few of the same
seeds). A try counts as

- alike: what comes out is what came out of the whole file;
- other: it was read, with other content (a digit in a table is a digit);
- refused: by one sentence that ends with a full stop; a damaged shard is made again;
- FAILED: anything else is raised; CODE: a file appears that only code from the forged one makes.

    python -m benchmarks.faults            # 2,000 tries a kind: minutes
    python -m benchmarks.faults --tries 100
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import sourcewise as sw
from sourcewise.experiments.animals import FEATURES, IMAGE_FILES, LABELS, read_animals
from sourcewise.experiments.layout import FORMATS
from sourcewise.experiments.results import COLUMNS, ResultsFile, Row, _checksum
from sourcewise.experiments.study_errors import read_studies
from sourcewise.experiments.tables import build_sheets
from sourcewise.files import staged
from sourcewise.images import FeaturePCA
from sourcewise.images.features import Features, Shards
from sourcewise.images.pictures import open_pictures
from sourcewise.images.reading import read_picture
from sourcewise.tables.model import TableModel
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training

LONGEST_SENTENCE = 600
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
VALUES = ("null", "-1", "1e308", "NaN", '"x"', "[]", "{}", "[1, 2]", "true", "99999999999999999999")
PICTURES = ("png", "jpeg", "gif", "tiff", "webp", "bmp", "ppm")
STAMPS = [f"{k}" for k in range(20)]


class Canary:
    """What a pickle would run."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that whoever unpickles this makes."""
        return Path.touch, (self.path,)


# -- forging ---------------------------------------------------------------------------------------


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
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


def odd_column(values: Any, rng: np.random.Generator) -> Any:
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


def table_file(place: Path, folder: Path, seed: int) -> Path:
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


def members(path: Path) -> dict[str, bytes]:
    """Return what is in an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, changes: dict[str, Any], compression: int = zipfile.ZIP_STORED) -> None:
    """Replace members of an archive (None removes one), with checksums that are right."""
    content = {k: v for k, v in {**members(path), **changes}.items() if v is not None}
    with zipfile.ZipFile(path, "w", compression=compression) as archive:
        for name, value in content.items():
            archive.writestr(name, value)


def containers(value: Any) -> Any:
    """Yield a value of JSON and all containers in it."""
    yield value
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from containers(part)


def mutated_schema(schema: Any, rng: np.random.Generator) -> Any:
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


def npy(array: Any) -> bytes:
    """Return an array as a file holds it; objects are pickled."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def mutated_array(content: bytes, rng: np.random.Generator) -> bytes:
    """Return an array of another length, type or content."""
    array = np.load(io.BytesIO(content))
    match rng.integers(4):
        case 0:
            array = np.concatenate([array.ravel(), array.ravel()])
        case 1:
            array = array.ravel()[:-1]
        case 2:
            array = array.astype(str)
        case 3:
            array = np.full(array.shape, np.nan)
    return npy(array)


def forged_header(content: bytes, rng: np.random.Generator) -> bytes:
    """Return an array with a header that claims something else, or nests brackets."""
    shapes = ("(10000000000,)", "(-1, 3)", "(0, 1000000000000)", "((1,),)", "(1e3,)", "(True, 2)")
    shapes += ("(" * 200 + ")" * 200, "()", f"({2**63},)")
    kinds = ("<f8", "|O", "|S1000000000", "<U9999999", "<M8[ns]", "|V9", "<c16", "[('a', '<f4')]")
    shape, kind = shapes[rng.integers(len(shapes))], kinds[rng.integers(len(kinds))]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    if rng.random() < 0.2:
        header = header.replace(b"'descr'", CELLS[rng.integers(len(CELLS))])
    data = content[128:] if rng.random() < 0.8 else b""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def array_content(content: bytes, rng: np.random.Generator, canary: Path) -> bytes:
    """Return one forged array."""
    match rng.integers(4):
        case 0:
            return mutated(content, rng)
        case 1:
            return forged_header(content, rng)
        case 2:
            return npy(np.array([Canary(canary)], dtype=object))
        case _:
            return mutated_array(content, rng)


def model_file(place: Path, path: Path, seed: int) -> None:
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


def hostile_model(place: Path, path: Path, seed: int) -> None:
    """Write a model whose nodes name functions, or whose arrays are pickles."""
    rng, canary = np.random.default_rng(seed), place / "canary"
    path.write_bytes((place / "model.skops").read_bytes())
    inside = members(path)
    if seed % 2:
        arrays = [name for name in inside if name.endswith(".npy")]
        rewrite(path, {rng.choice(arrays): npy(np.array([Canary(canary)], dtype=object))})
        return
    schema = json.loads(inside["schema.json"])
    nodes = [c for c in containers(schema) if isinstance(c, dict) and "__class__" in c]
    chosen = nodes[rng.integers(len(nodes))]
    calls = (("pathlib", "Path.touch"), ("os", "system"), ("builtins", "eval"))
    chosen["__module__"], chosen["__class__"] = calls[rng.integers(3)]
    chosen["content"] = chosen["args"] = [str(canary), f"touch {canary}"][rng.integers(2)]
    chosen["__loader__"] = ("ObjectNode", "FunctionNode", "MethodNode", "TypeNode", "PartialNode")[
        rng.integers(5)
    ]
    rewrite(path, {"schema.json": json.dumps(schema)})


def archive_file(original: Path, path: Path, seed: int, canary: Path) -> None:
    """Write one forged archive of arrays."""
    rng = np.random.default_rng(seed)
    path.write_bytes(original.read_bytes())
    if seed % 4 == 0:
        path.write_bytes(mutated(original.read_bytes(), rng))
        return
    inside = members(path)
    name = rng.choice(list(inside))
    if seed % 4 == 1:  # a few kilobytes that unpack to megabytes
        size = 10**7 if seed % 100 == 1 else 10**6
        rewrite(path, {name: npy(np.zeros(size))}, zipfile.ZIP_DEFLATED)
    else:
        rewrite(path, {name: array_content(inside[name], rng, canary)})


def results_file(place: Path, path: Path, seed: int) -> None:
    """Write one forged file of results; half of them with checksums that are right."""
    import sqlite3

    rng = np.random.default_rng(seed)
    content = (place / "r.sqlite").read_bytes()
    if seed % 2:
        path.write_bytes(mutated(content, rng))
        return
    old = sqlite3.connect(place / "r.sqlite")
    rows = [list(row) for row in old.execute(f"SELECT {', '.join(COLUMNS)} FROM results")]
    settings = dict(old.execute("SELECT key, value FROM settings"))
    old.close()
    odd = (None, -1, 1e308, "x" * 10**5, b"\xff", "\x1b[2J\r=1\u202e<b>", 2**62, 0.5, "\ud7ff$\\x")
    for _ in range(rng.integers(1, 4)):
        row, column = rows[rng.integers(len(rows))], rng.integers(len(COLUMNS))
        row[column] = odd[rng.integers(len(odd))]
    if rng.random() < 0.3:
        settings["data"] = odd[rng.integers(len(odd))]
    path.unlink(missing_ok=True)
    new = sqlite3.connect(path)
    new.execute("CREATE TABLE settings (key, value)")
    new.execute("CREATE TABLE seal (rows, settings)")
    new.execute(f"CREATE TABLE results ({', '.join(COLUMNS)}, checksum)")
    new.executemany("INSERT INTO settings VALUES (?, ?)", settings.items())
    seal = (len(rows), _checksum(sorted(settings.items())))
    new.execute("INSERT INTO seal VALUES (?, ?)", seal)
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    sealed = [(*row, _checksum(tuple(row))) for row in rows]
    new.executemany(f"INSERT INTO results VALUES ({marks})", sealed)
    new.commit()
    new.close()


# -- the kinds of files ----------------------------------------------------------------------------


class Kind(NamedTuple):
    """How a kind of file is forged into a folder, and how it is read from there."""

    forge: Callable[[Path, Path, int], Any]
    read: Callable[[Path, Path], Any]


def _forge_table(place: Path, work: Path, seed: int) -> None:
    for name in ("data.csv", "data.parquet"):
        (work / name).unlink(missing_ok=True)
    table_file(place, work, seed)


def _read_table(place: Path, work: Path) -> Any:
    path = next(work / n for n in ("data.csv", "data.parquet") if (work / n).exists())
    found = read_training(TableRequest(path, "verdict", "vendor", "gold"))
    return found.X, found.y, found.names


def _forge_model(place: Path, work: Path, seed: int) -> None:
    (hostile_model if seed % 5 == 4 else model_file)(place, work / "model.skops", seed)


def _read_model(place: Path, work: Path) -> Any:
    model = sw.load(work / "model.skops")
    found = model.predict_proba(parquet.read_table(place / "data.parquet"))
    assert np.isfinite(found).all()
    return found, str(model.report())


def _read_results(place: Path, work: Path) -> Any:
    sheets = build_sheets(read_studies(work / "r.sqlite"))
    return [lay_out(sheet) for sheet in sheets for lay_out in FORMATS.values()]


def _forge_features(place: Path, work: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = (FEATURES, LABELS, IMAGE_FILES["blur"], "attributes.txt", "extraction.json")
    for name in names:
        (work / name).write_bytes((place / name).read_bytes())
    name = names[rng.choice(5, p=[0.3, 0.3, 0.2, 0.1, 0.1])]
    content = (place / name).read_bytes()
    if name.endswith(".npy"):
        (work / name).write_bytes(array_content(content, rng, place / "canary"))
    else:
        deep = name.endswith(".json") and rng.random() < 0.2
        (work / name).write_bytes(b"[" * 10**5 if deep else mutated(content, rng))


def _read_features(place: Path, work: Path) -> Any:
    found = read_animals(work, ("blur",))
    return found.X, found.labels, found.attributes, found.corrupted


def _forge_shard(place: Path, work: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name in ("00000.npy", "00000.json"):
        (work / name).write_bytes((place / name).read_bytes())
    if seed % 3:
        content = array_content((place / "00000.npy").read_bytes(), rng, place / "canary")
        (work / "00000.npy").write_bytes(content)
    else:
        beside = (place / "00000.json").read_bytes()
        (work / "00000.json").write_bytes(b"[" * 10**5 if seed % 9 == 0 else mutated(beside, rng))


def _read_shard(place: Path, work: Path) -> Any:
    found = Shards(work).read(0, STAMPS)
    if found is None:
        raise ValueError("It is made again.")
    return found


def _read_pca(place: Path, work: Path) -> Any:
    found = FeaturePCA.load(work / "pca.npz")
    return found.transform(np.ones((2, len(found.mean)))), found.made_by


def _read_pictures(place: Path, work: Path) -> Any:
    found = open_pictures(work / "pictures.npz")
    return found.classes, [found.read(k, 8) for k in range(len(found))]


def _forge_picture(place: Path, work: Path, seed: int) -> None:
    original = place / f"picture.{PICTURES[seed % len(PICTURES)]}"
    rng = np.random.default_rng(seed)
    (work / "picture").write_bytes(mutated(original.read_bytes(), rng))


KINDS = {
    "models": Kind(_forge_model, _read_model),
    "tables (CSV, Parquet)": Kind(_forge_table, _read_table),
    "results of studies": Kind(
        lambda place, work, seed: results_file(place, work / "r.sqlite", seed), _read_results
    ),
    "features": Kind(_forge_features, _read_features),
    "shards": Kind(_forge_shard, _read_shard),
    "PCA files": Kind(
        lambda place, work, seed: archive_file(
            place / "pca.npz", work / "pca.npz", seed, place / "canary"
        ),
        _read_pca,
    ),
    "archives of pictures": Kind(
        lambda place, work, seed: archive_file(
            place / "pictures.npz", work / "pictures.npz", seed, place / "canary"
        ),
        _read_pictures,
    ),
    "pictures": Kind(_forge_picture, lambda place, work: read_picture(work / "picture")),
}


def prepare(place: Path) -> None:
    """Write one whole file of each kind."""
    from PIL import Image

    rng = np.random.default_rng(0)
    size, vendor = rng.normal(size=160), np.repeat(["gold", "north", "south", "east"], 40)
    table = pa.table(
        {
            "size": size.round(4),
            "weight": pa.array(rng.normal(size=160).round(3), mask=np.arange(160) % 17 == 3),
            "colour": rng.choice(["red", "blue", "green"], 160),
            "verdict": np.where((size > 0) ^ (vendor == "east"), "keep", "return"),
            "vendor": vendor,
        }
    )  # fmt: skip
    csv.write_csv(table, place / "data.csv")
    parquet.write_table(table, place / "data.parquet")
    sw.save(TableModel("verdict", "vendor", "gold").fit(table), place / "model.skops")
    with ResultsFile(place / "r.sqlite", {"sourcewise": "1", "data": "synthetic"}) as file:
        file.add(
            Row("animals", target, "blur", n, 1.0, r, method, 0.1, 1.0, 1.0, 0.1, r)
            for target in ("black", "white")
            for n in (0, 10)
            for r in (0, 1)
            for method in ("paper", "all data", "reference only")
        )
    X = np.append(rng.normal(size=(40, 5)), np.ones((40, 1)), axis=1).astype(np.float32)
    for name in (FEATURES, IMAGE_FILES["blur"]):
        np.save(place / name, X)
    np.save(place / LABELS, rng.integers(0, 2, (40, 3)).astype(np.uint8))
    (place / "attributes.txt").write_text("a\nb\nc\n")
    (place / "extraction.json").write_text(json.dumps({"files": {FEATURES: "0", "n": [1]}}))
    Shards(place).write(0, Features(X[:20], {}), STAMPS)
    FeaturePCA.learn([X[:, :5].astype(float)], 2, "network").save(place / "pca.npz")
    image = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
    blobs = []
    for kind in PICTURES:
        image.save(place / f"picture.{kind}", format=kind)
        blobs.append((place / f"picture.{kind}").read_bytes())
    (place / "picture").write_bytes(blobs[0])
    np.savez(
        place / "pictures.npz",
        blob=np.frombuffer(b"".join(blobs[:2]), dtype=np.uint8),
        offsets=np.cumsum([0, *map(len, blobs[:2])]),
        y=np.array([0, 1]),
        classes=np.array(["cat", "dog"]),
    )


def outcome(kind: Kind, place: Path, work: Path, seed: int, whole: str) -> str:
    """Forge a file, read it, and say what became of it."""
    kind.forge(place, work, seed)
    try:
        with warnings.catch_warnings(action="ignore"):
            found = joblib.hash(kind.read(place, work))
    except (ValueError, OSError) as error:
        text = str(error)
        right = text.endswith(".") and len(text) < LONGEST_SENTENCE and "\n" not in text
        result = "refused" if right else f"FAILED: seed {seed}, {error!r:.300}"
    except Exception as error:  # that is what is counted
        result = f"FAILED: seed {seed}, {error!r:.300}"
    else:
        result = "alike" if found == whole else "other"
    if (place / "canary").exists():
        (place / "canary").unlink()
        result = f"CODE: seed {seed}"
    return result


def whole(kind: Kind, place: Path) -> str:
    """Return what comes out of a file that nobody has forged."""
    return joblib.hash(kind.read(place, place))


# -- outputs ---------------------------------------------------------------------------------------


def killed_while_writing(folder: Path, seed: int) -> str:
    """Kill -9 a process that writes two files again and again: each must be whole."""
    one, two = folder / "one", folder / "two"
    child = os.fork()
    if child == 0:
        for k in range(10**9):
            with staged(one, two) as files:
                for file in files:
                    file.write_bytes(k.to_bytes(8, "little") * 10_000)
    while not two.exists():
        time.sleep(0.001)
    time.sleep(float(np.random.default_rng(seed).uniform(0, 0.02)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    contents = [path.read_bytes() for path in (one, two)]
    torn = any(c != c[:8] * 10_000 for c in contents)
    for path in folder.iterdir():
        path.unlink()
    if torn:
        return f"FAILED: seed {seed}, a file is half-written"
    return "alike" if contents[0] == contents[1] else "other"  # one of the two is new


def _command(*arguments: Any, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from sourcewise_command import main; raise SystemExit(main())"]
        + [str(argument) for argument in arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how,
    )  # fmt: skip


def _judged(done: subprocess.Popen[str], codes: tuple[int, ...], folder: Path, seed: int) -> str:
    """One sentence, an exit code, and a folder in which nothing is new."""
    out, err = done.communicate(timeout=300)
    left = sorted(path.name for path in folder.iterdir())
    if done.returncode == 0:
        return "alike"
    right = done.returncode in codes and not out and err.count("\n") == 1 and err.endswith(".\n")
    return "refused" if right and left == ["old.csv"] else f"FAILED: seed {seed}, {err} {left}"


def disk_full(place: Path, folder: Path, seed: int) -> str:
    """Predict where no file may be longer than a few hundred bytes."""
    import resource  # not on Windows, where the tests import the rest

    most = int(np.random.default_rng(seed).integers(64, 4000))  # semaphores need 32
    (folder / "old.csv").write_bytes(b"old")
    how = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))}
    given = (place / "model.skops", place / "data.csv", "-q")
    done = _command("predict", *given, "-o", folder / "old.csv", **how)
    result = _judged(done, (2,), folder, seed)
    kept = (folder / "old.csv").read_bytes()
    if (kept == b"old") == (result == "alike"):
        return f"FAILED: seed {seed}, {result}, {len(kept)} bytes"
    return result


def device_full(place: Path, folder: Path, seed: int) -> str:
    """Predict into a device that is full; it must stay one."""
    (folder / "old.csv").write_bytes(b"old")
    done = _command(
        "predict", place / "model.skops", place / "data.csv", "-q", "-o", "/dev/full", cwd=folder
    )
    result = _judged(done, (2,), folder, seed)
    return result if Path("/dev/full").is_char_device() else "FAILED: /dev/full is gone"


def terminated(place: Path, folder: Path, seed: int) -> str:
    """SIGTERM at some time within a command."""
    (folder / "old.csv").write_bytes(b"old")
    told = ("--label", "verdict", "--source", "vendor", "--reference", "gold")
    done = _command("audit", place / "data.csv", *told, "-q", "-o", folder / "r.html")
    time.sleep(float(np.random.default_rng(seed).uniform(0.3, 4)))
    done.send_signal(signal.SIGTERM)
    result = _judged(done, (130,), folder, seed)
    page = folder / "r.html"
    if done.returncode == -signal.SIGTERM and page.exists():  # Python was leaving, all was done
        return "alike" if page.read_text().rstrip().endswith("</html>") else result
    return result


# -- counting --------------------------------------------------------------------------------------

HEAD = ("tries", "refused", "alike", "other", "FAILED", "CODE")


def _row(name: str, results: list[str]) -> bool:
    counts = Counter(result.split(":")[0] for result in results)
    counts["tries"] = len(results)
    print(f"| {name} | " + " | ".join(f"{counts[head]:,}" for head in HEAD) + " |", flush=True)
    for result in [r for r in results if r.startswith(("FAILED", "CODE"))][:5]:
        print(f"    {result}", file=sys.stderr)
    return not counts["FAILED"] + counts["CODE"]


def main() -> int:
    """Print the table; the exit code says whether anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=2000, help="forged files of each kind")
    tries = parser.parse_args().tries
    good = True
    print(f"| kind | {' | '.join(HEAD)} |\n| --- |{' ---: |' * len(HEAD)}")
    with tempfile.TemporaryDirectory() as name:
        place, work = Path(name, "place"), Path(name, "work")
        place.mkdir()
        work.mkdir()
        prepare(place)
        for kind_name, kind in KINDS.items():
            expected = whole(kind, place)
            seeds = range(tries)
            good &= _row(kind_name, [outcome(kind, place, work, s, expected) for s in seeds])
        for file in work.iterdir():
            file.unlink()
        few, fewer = max(tries // 5, 1), max(tries // 100, 1)
        good &= _row("two files, kill -9", [killed_while_writing(work, s) for s in range(few)])
        for what, fault in (
            ("predictions, disk full", disk_full),
            ("predictions, device full", device_full),
            ("audit, SIGTERM", terminated),
        ):
            results = []
            for seed in range(fewer):
                results.append(fault(place, work, seed))
                for file in work.iterdir():
                    file.unlink()
            good &= _row(what, results)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
