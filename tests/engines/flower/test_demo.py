"""The demonstration, its processes replaced by sites in this one."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from sourcewise.datasets import vendor_digits
from sourcewise.engines.flower import LocalCarrier, RunSettings, Site, read_site_file, run_server
from sourcewise.engines.flower import demo as demonstration


class InThisProcess:
    """What the demonstration asks of processes."""

    def __init__(self, folder):
        self.sites = []

    def __enter__(self):
        """Start nothing."""
        return self

    def __exit__(self, *problem):
        """Stop nothing."""

    def start_site(self, name, file):
        self.sites.append(Site.of_file(read_site_file(file)))

    def run(self, app, settings, seconds):
        content = tomllib.loads((app / "pyproject.toml").read_text(encoding="utf-8"))
        config = content["tool"]["flwr"]["app"]["config"]
        run_server(LocalCarrier(self.sites), RunSettings.of(config))
        return 0, ""


class WithoutResult(InThisProcess):
    def run(self, app, settings, seconds):
        return 1, "a long log\n" * 100 + "and why"


def few_digits():
    return vendor_digits(n_bad=1, kind="shuffled", n_vendors=3, rows_per_vendor=60, trusted_rows=40)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(demonstration, "digits", few_digits)
    monkeypatch.setattr(demonstration, "Loopback", InThisProcess)


def test_it_sets_federated_weights_beside_those_in_memory(tmp_path):
    result = demonstration.run_demo(tmp_path)
    assert result.names == ["reference", "north", "south", "west"]
    for weights in (result.federated, result.in_memory):
        assert weights.sum() == pytest.approx(1.0)
    (bad,) = result.spoiled
    weights = dict(zip(result.names, result.federated, strict=True))
    assert weights[bad] == min(weights.values())
    assert np.abs(result.federated - result.in_memory).max() < 0.2
    lines = str(result).splitlines()
    (told,) = (line for line in lines if line.startswith(bad))
    assert told.endswith("labels shuffled")
    assert max(map(len, lines)) <= 80
    assert f"{result.rounds} rounds" in str(result)


def test_a_run_that_fails_is_told_by_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(demonstration, "Loopback", WithoutResult)
    with pytest.raises(ValueError, match="The federated run has failed.* and why$"):
        demonstration.run_demo(tmp_path)
