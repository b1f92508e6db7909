"""A cluster of two processes on this machine."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def cluster():
    from sourcewise.engines.dask.cluster import local_cluster

    with local_cluster(2, "1GiB") as client:
        yield client
