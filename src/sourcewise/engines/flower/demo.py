"""The demonstration: three sites as real processes on this machine, one of them with bad labels."""

from __future__ import annotations

import json
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sourcewise import SourceWeightedClassifier
from sourcewise.datasets import VendorDigits, vendor_digits
from sourcewise.engines.flower.loopback import Loopback
from sourcewise.engines.flower.project import project_files
from sourcewise.engines.flower.server import FACTS

RUN_FAILED = "The federated run has failed; the end of its log says: {tail}"

SITES = {"vendor-01": "north", "vendor-02": "south", "vendor-03": "west"}
WIDTH = 79
RUN_SECONDS = 900.0  # on a busy machine; a minute or two on an idle one
WAIT = 300.0  # for the sites to come, on such a machine


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration shows."""

    names: list[str]  # the reference first
    federated: np.ndarray  # weights, in the order of the names
    in_memory: np.ndarray
    spoiled: dict[str, str]  # sites with bad labels, and what is wrong with them
    rounds: int
    bytes_down: int
    bytes_up: int
    waited: float  # seconds, for answers
    seconds: float  # in all
    rule: str  # what of the weights is exact and what is not

    def __str__(self) -> str:
        """Return a table, and what it has cost."""
        lines = [f"{'source':<12}{'federated':>11}{'in memory':>11}"]
        for name, weight, exact in zip(self.names, self.federated, self.in_memory, strict=True):
            mark = f"  labels {self.spoiled[name]}" if name in self.spoiled else ""
            lines.append(f"{name:<12}{weight:>11.3f}{exact:>11.3f}{mark}")
        lines.append("")
        lines.append(
            f"{self.rounds} rounds in {self.waited:.0f} s; {self.bytes_down / 1e6:.1f} MB sent to "
            f"three sites, {self.bytes_up / 1e6:.1f} MB received."
        )
        lines.append(f"{self.seconds:.0f} s in all, the start of five processes included.")
        lines += ["", *textwrap.wrap(f"Federated weights are {self.rule}.", WIDTH)]
        return "\n".join(lines)


def digits() -> VendorDigits:
    """Return the rows of the demonstration: no site has so many that it would be capped."""
    return vendor_digits(
        n_bad=1, kind="shuffled", n_vendors=3, rows_per_vendor=160, trusted_rows=80
    )


def write_sites(folder: Path, data: VendorDigits) -> dict[str, Path]:
    """Write the reference's table, and for each site a table and a site file."""
    import pyarrow as pa
    from pyarrow import parquet

    def write(rows: np.ndarray, path: Path) -> None:
        columns = {f"pixel_{k // 8}_{k % 8}": data.X[rows, k] for k in range(64)}
        labels = np.where(data.y[rows] == 1, "odd", "even")
        parquet.write_table(pa.table({**columns, "parity": labels}), path)

    write(data.vendor == "gold", folder / "reference.parquet")
    files = {}
    for vendor, name in SITES.items():
        write(data.vendor == vendor, folder / f"{name}.parquet")
        files[name] = folder / f"{name}.toml"
        files[name].write_text(f"name = '{name}'\ndata = '{name}.parquet'\n", encoding="utf-8")
    return files


def run_demo(folder: Path) -> DemoResult:
    """Start everything, run, stop everything, and compare with all rows in memory."""
    begin = time.monotonic()
    data = digits()
    files = write_sites(folder, data)
    app = folder / "app"
    texts = project_files(str(folder / "reference.parquet"), "parity", str(folder), len(files))
    for path, text in texts.items():
        (app / path).parent.mkdir(parents=True, exist_ok=True)
        (app / path).write_text(text, encoding="utf-8")
    with Loopback(folder / "processes") as loop:
        for name, file in files.items():
            loop.start_site(name, file)
        code, printed = loop.run(app, {"wait": WAIT}, RUN_SECONDS)
    if code or not (folder / FACTS).exists():
        raise ValueError(RUN_FAILED.format(tail=" ".join(printed[-600:].split())))
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    names = list(facts["sites"])
    return DemoResult(
        names,
        np.array([facts["sites"][name] for name in names]),
        _weights_in_memory(data, names),
        {SITES[vendor]: kind for vendor, kind in data.spoiled.items()},
        len(facts["rounds"]),
        facts["bytes_down"],
        facts["bytes_up"],
        facts["seconds"],
        time.monotonic() - begin,
        facts["rule"],
    )


def _weights_in_memory(data: VendorDigits, names: list[str]) -> np.ndarray:
    source = np.array([SITES.get(vendor, "reference") for vendor in data.vendor])
    labels = np.where(data.y == 1, "odd", "even")
    model = SourceWeightedClassifier(reference="reference", random_state=0, keep_data=False)
    model.fit(data.X, labels, sources=source)
    weight = dict(zip(model.sources_.tolist(), model.source_weights_, strict=True))
    return np.array([weight[name] for name in names])
