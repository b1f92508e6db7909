"""One table, audited and fitted once."""

from __future__ import annotations

import numpy as np
import pytest

from cli.running import TOLD, make_rows, run, write_csv


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="session")
def table(folder):
    columns = make_rows()
    order = np.random.default_rng(1).permutation(len(columns["size"]))
    return write_csv(folder / "data.csv", columns, order=order)


@pytest.fixture(scope="session")
def audited(folder, table):
    """Audit once: JSON and page."""
    page = folder / "report.html"
    return run("audit", table, *TOLD, "-o", page, "--json"), page


@pytest.fixture(scope="session")
def fitted(folder, table):
    """Fit once: model and weights."""
    model, weights = folder / "model.skops", folder / "weights.csv"
    return run("fit", table, *TOLD, "-o", model, "--weights", weights), model, weights
