"""Nobody else on this machine can use the cluster that we start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

# Knocks at every port: plainly, with keys of its own, and for a page of Dask's.
STRANGER = """
import asyncio, encodings.idna, json, os, sys, urllib.error, urllib.request

from distributed import Security
from distributed.core import connect

os.setuid(int(sys.argv[1]))
asked = json.loads(sys.argv[2])


async def knock(address, **options):
    try:
        comm = await connect(address, timeout=5, **options)
        await comm.write({"op": "identity", "reply": True})
        return str(await comm.read())
    except Exception as error:
        return type(error).__name__


async def main():
    keys = Security.temporary().get_connection_args("client")
    heard = {}
    for port in asked["ports"]:
        heard[port] = [
            await knock(f"tcp://127.0.0.1:{port}"),
            await knock(f"tls://127.0.0.1:{port}", **keys),
        ]
    for port in asked["pages"]:
        for page in ("/", "/health", "/metrics", "/info/main/workers.html", "/json/counts.json"):
            try:
                found = urllib.request.urlopen(f"http://127.0.0.1:{port}{page}", timeout=5).status
            except urllib.error.HTTPError as error:
                found = error.code
            heard.setdefault(f"page {port}", []).append(found)
    print(json.dumps(heard))


asyncio.run(main())
"""


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can be somebody else"
)
def test_another_user_is_refused_at_every_port(cluster):
    info = cluster.scheduler_info()
    workers = info["workers"]
    addresses = [info["address"], *workers, *(each["nanny"] for each in workers.values())]
    assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
    ports = [urlsplit(address).port for address in addresses]
    pages = [info["services"]["dashboard"]]
    pages += [each["services"]["dashboard"] for each in workers.values()]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, "65534", json.dumps({"ports": ports, "pages": pages})],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    heard = json.loads(done.stdout)
    assert len(heard) == len(ports) + len(pages)
    for port, answers in heard.items():
        if port.startswith("page"):
            assert set(answers) == {404}
        else:
            assert not any("type" in answer or "workers" in answer for answer in answers), answers
            assert all(answer.endswith(("Error", "Exception")) for answer in answers), answers


def test_the_owner_runs_functions_there(cluster):
    assert cluster.submit(abs, -3, pure=False).result() == 3
