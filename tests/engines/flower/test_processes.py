"""Real processes on 127.0.0.1: a SuperLink, three sites, each with its own Parquet file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from made_up_sites import rows
from pyarrow import parquet

from sourcewise import load
from sourcewise.engines.flower import LocalCarrier, RunSettings, Site, read_site_file, run_server
from sourcewise.engines.flower.loopback import HOST, Loopback, Tls, free_port, program
from sourcewise.engines.flower.project import project_files


def there(program):
    return (Path(sys.executable).parent / program).exists() or shutil.which(program) is not None


PROGRAMS = ("flwr", "flower-superlink", "flower-supernode")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(there, PROGRAMS)), reason="Flower's programs are not installed here"
    ),
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes here"),
]
with_keys = pytest.mark.skipif(
    not (there("openssl") and there("ssh-keygen")), reason="openssl or ssh-keygen is missing here"
)

SECONDS = 900.0  # of one run at most, on a machine that does much else
NAMES = ["site-0", "site-1", "site-2"]

AVERAGING_SERVER = """
import json
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp

from sourcewise.engines.flower import TrustedFedAvg

app = ServerApp()


@app.main()
def main(grid, context):
    end = time.monotonic() + 300
    while len(nodes := sorted(grid.get_node_ids())) < 3 and time.monotonic() < end:
        time.sleep(0.2)
    strategy = TrustedFedAvg({nodes[0]: 0.5, nodes[1]: 0.5})
    start = ArrayRecord({"w": Array(np.zeros(3))})
    result = strategy.start(grid=grid, initial_arrays=start, num_rounds=1)
    found = {"w": result.arrays["w"].numpy().tolist(), "left_out": len(strategy.left_out)}
    Path(context.run_config["output"], "averaged.json").write_text(json.dumps(found))
"""

AVERAGING_CLIENT = """
import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message, context):
    # A client that claims 10^9 rows, whoever it is.
    arrays = ArrayRecord({"w": Array(message.content["arrays"]["w"].numpy() + 1.0)})
    metrics = MetricRecord({"num-examples": 10**9})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
"""

# What a curious server would have the sites run, and what it would ask of those that do not.
STEALING_CLIENT = """
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

Path({canary!r}).write_text("ran")
app = ClientApp()


@app.query()
def query(message, context):
    rows = ConfigRecord({{"rows": Path({table!r}).read_bytes()}})
    return Message(RecordDict({{"rows": rows}}), reply_to=message)
"""
STEALING_SERVER = """
import json
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp

app = ServerApp()


@app.main()
def main(grid, context):
    heard = []
    for kind in ("query", "train", "evaluate", "query.rows"):
        asked = RecordDict({"wanted": ConfigRecord({"code": "open('rows').read()"})})
        messages = [Message(asked, node, kind) for node in grid.get_node_ids()]
        for reply in grid.send_and_receive(messages, timeout=60):
            heard.append(str(reply.error.reason if reply.has_error() else reply.content))
    Path(context.run_config["output"], "heard.json").write_text(json.dumps(heard))
"""


def write_pool(folder, classes, seed=0):
    """Write the tables of the reference and of three sites; returns the site files."""
    X, y, names = rows(n_sites=3, m=60, d=3, classes=classes, seed=seed, bad=("site-1",))
    files = {}
    for name in dict.fromkeys(names.tolist()):
        mine = names == name
        columns = {f"x{k}": X[mine, k] for k in range(X.shape[1])}
        path = folder / f"{name}-{classes}.parquet"
        parquet.write_table(pa.table({**columns, "y": y[mine]}), path)
        files[name] = folder / f"{name}-{classes}.toml"
        text = f"name = '{name}'\ndata = '{path.name}'\n[policy]\nlog = '{name}-{classes}.jsonl'\n"
        files[name].write_text(text)
    return files


def make_app(folder, files, sites=3, server=None, client=None):
    reference = str(files["ours"].with_suffix(".parquet"))
    for path, text in project_files(reference, "y", str(folder), sites).items():
        if server is not None and path.endswith("server.py"):
            text = server
        if client is not None and path.endswith("client.py"):
            text = client
        (folder / "app" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "app" / path).write_text(text)
    return folder / "app"


def in_this_process(folder, files, names=NAMES, **settings):
    """Return the weights that the same app finds without any network."""
    folder.mkdir()
    sites = [Site.of_file(read_site_file(files[name])) for name in names]
    reference = str(files["ours"].with_suffix(".parquet"))
    wanted = RunSettings(reference, "y", str(folder), sites=len(names), **settings)
    return run_server(LocalCarrier(sites), wanted).source_weights_


def run(loop, folder, files, name, sites=3, **settings):
    output = folder / name
    output.mkdir()
    app = make_app(output, files, sites)
    code, printed = loop.run(app, {"timeout": 300.0, "wait": 300.0, **settings}, SECONDS)
    assert (output / "federated.json").exists(), printed[-2000:]
    assert code == 0
    return load(output / "model.skops"), json.loads((output / "federated.json").read_text())


def kill_after_first_round(loop, name):
    """Kill a node once all have said who they are."""
    end, log = time.monotonic() + SECONDS, loop.log("run")
    while time.monotonic() < end:
        # The run has yet to begin, perhaps.
        if log.exists() and "sites for describe" in log.read_text(errors="replace"):
            loop.kill(name)
            return
        time.sleep(0.05)


def alive(process):
    return process.poll() is None


def average_on_plain_nodes(loop, folder, files):
    """Average over Flower's own nodes, which run the client app that they are sent."""
    plain = []
    for node in range(3):
        options = ["--insecure", "--superlink", f"{HOST}:{loop.port}", "--host", HOST]
        options += ["--port", str(free_port())]
        plain.append(loop.start([program("flower-supernode")], options, f"plain-{node}"))
    app = make_app(folder / "averaging", files, server=AVERAGING_SERVER, client=AVERAGING_CLIENT)
    loop.run(app, {}, SECONDS)
    found = json.loads((folder / "averaging" / "averaged.json").read_text())
    assert found == {"w": [1.0, 1.0, 1.0], "left_out": 0}
    for process in plain:
        process.terminate()
        process.wait(60)


def refuse_what_others_would_have_them_run(loop, folder, files):
    """Send projects that are not ours: with another client, and with another server, too."""
    canary, table = folder / "canary", files["site-0"].with_suffix(".parquet")
    client = STEALING_CLIENT.format(canary=str(canary), table=str(table))
    sentence = "runs what it has installed, and this project brings code of its own"

    changed = folder / "changed"
    code, printed = loop.run(make_app(changed, files, client=client), {"wait": 300.0}, SECONDS)
    told = [line for line in printed.splitlines() if line.strip().startswith("sourcewise: ")]
    assert sentence in told[0]
    assert not (changed / "federated.json").exists()

    asking = folder / "asking"
    loop.run(make_app(asking, files, server=STEALING_SERVER), {}, SECONDS)
    heard = json.loads((asking / "heard.json").read_text())
    assert len(heard) == 12
    assert sum("bad-question" in words for words in heard) == 3
    assert sum("answers queries, not messages of the kind" in words for words in heard) == 9

    assert not canary.exists()
    for name in NAMES:
        log = loop.log(name).read_text()
        assert sentence in log
        last = [json.loads(line) for line in (folder / f"{name}-0.jsonl").read_text().splitlines()]
        assert [entry["outcome"] for entry in last[-5:]] == 5 * ["refused"]
        assert sentence in last[-5]["why"]


def test_three_sites_of_which_one_is_killed_in_the_last_run(tmp_path):
    numbers, two = write_pool(tmp_path, 0), write_pool(tmp_path, 2)
    site_files = {name: tmp_path / f"{name}.toml" for name in NAMES}
    for name in NAMES:
        shutil.copy(numbers[name], site_files[name])
    with Loopback(tmp_path / "processes") as loop:
        average_on_plain_nodes(loop, tmp_path, two)
        first = [loop.start_site(name, site_files[name]) for name in NAMES]
        settings = {"mode": "gradients", "discrepancy": "plug-in"}
        model, facts = run(loop, tmp_path, numbers, "gradients", **settings)
        here = in_this_process(tmp_path / "gradients-here", numbers, **settings)
        np.testing.assert_allclose(model.source_weights_, here, atol=1e-10)
        assert (facts["mode"], facts["left_out"]) == ("gradients", {})
        assert model.sources_.tolist() == ["reference", *NAMES]
        refuse_what_others_would_have_them_run(loop, tmp_path, numbers)
        assert all(alive(process) for process in first)

        # The same sites, now with classes to tell apart: owners change their own files.
        for name in NAMES:
            shutil.copy(two[name], site_files[name])
        loop.log("run").unlink()
        killer = threading.Thread(target=kill_after_first_round, args=(loop, "site-2"), daemon=True)
        killer.start()
        mode = "shared-reference"
        model, facts = run(loop, tmp_path, two, mode, sites=2, mode=mode)
        killer.join(10)
        log = (tmp_path / "site-0-2.jsonl").read_text().splitlines()
        asked = [json.loads(line)["question"] for line in log]
        assert set(asked) == {"describe", "look", "derivatives", "pull"}
        assert list(facts["left_out"]) == ["site-2"]
        assert "failed or left" in facts["left_out"]["site-2"]
        left = NAMES[:2]
        assert model.sources_.tolist() == ["reference", *left]
        here = in_this_process(tmp_path / "shared-here", two, left, mode=mode)
        np.testing.assert_allclose(model.source_weights_, here, atol=1e-10)
        assert (tmp_path / mode / "report.html").exists()
        everything = [*first, *loop.processes.values()]
    assert not any(alive(process) for process in everything)


@pytest.fixture
def keys(tmp_path):
    """Certificates of our own, and a key for each of four nodes."""
    folder = tmp_path / "keys"
    folder.mkdir()
    ending = ["-days", "2", "-nodes", "-newkey", "rsa:2048"]
    commands = [
        ["openssl", "req", "-x509", *ending, "-keyout", "ca.key", "-out", "ca.crt"],
        ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key"],
        ["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key"],
    ]
    commands[0] += ["-subj", "/CN=test-authority"]
    commands[1] += ["-out", "server.csr", "-subj", "/CN=localhost"]
    commands[2] += ["-CAcreateserial", "-out", "server.crt", "-days", "2", "-extfile", "names"]
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for node in range(4):
        commands.append(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", ""])
        commands[-1] += ["-f", f"node-{node}"]
    for command in commands:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@with_keys
def test_models_only_encrypted_and_with_registered_nodes_only(tmp_path, keys):
    files = write_pool(tmp_path, 0)
    tls = Tls(keys / "ca.crt", keys / "server.crt", keys / "server.key")
    with Loopback(tmp_path / "processes", tls) as loop:
        stranger = loop.start_site("stranger", files["ours"], keys / "node-3")
        for node, name in enumerate(NAMES):
            public = str(keys / f"node-{node}.pub")
            options = ["supernode", "register", public, "sourcewise-loopback"]
            assert loop.start([program("flwr")], options, "register").wait(180) == 0
            loop.start_site(name, files[name], keys / f"node-{node}")
        model, facts = run(loop, tmp_path, files, "models-only")
        here = in_this_process(tmp_path / "here", files)
        np.testing.assert_allclose(model.source_weights_, here, atol=1e-10)
        assert facts["mode"] == "models-only"
        assert [made["sites"] for made in facts["rounds"]] == [3, 3]
        assert stranger.wait(300) == 2  # turned away
        assert "does not let this site in" in loop.log("stranger").read_text()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_listens_any_more_once_the_program_is_killed(tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from sourcewise.engines.flower.loopback import Loopback\n"
        "from sourcewise.interruption import interruptible\n"
        "with interruptible(), Loopback(Path(sys.argv[1])) as loop:\n"
        "    print(loop.port, flush=True)\n"
        "    time.sleep(300)\n"
    )
    command = [sys.executable, str(program), str(tmp_path / "processes")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        assert listens(port)
        process.send_signal(how)
        process.wait(300)
    end = time.monotonic() + 60
    while listens(port) and time.monotonic() < end:
        time.sleep(0.1)
    assert not listens(port)


OTHER_USER = """
import encodings.idna, http.client, os, sys

os.setuid(int(sys.argv[2]))
link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
try:
    link.request("GET", "/docs")
    print(link.getresponse().status)
except (ConnectionError, http.client.HTTPException) as error:
    print(type(error).__name__)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_of_the_machine_gets_no_answer(tmp_path):
    with Loopback(tmp_path) as loop:
        heard = [
            subprocess.run(
                [sys.executable, "-c", OTHER_USER, str(loop.port), user],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            ).stdout.strip()
            for user in ("0", "65534")
        ]
    assert heard[0] == "200"
    assert heard[1] in ("RemoteDisconnected", "ConnectionResetError", "BadStatusLine")
