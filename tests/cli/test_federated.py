from __future__ import annotations

import subprocess
import sys
import tomllib

import numpy as np
import pytest
from flwr.cli.flower_config import parse_superlink_connection

from sourcewise import load
from sourcewise.cli import main
from sourcewise.cli.federated import FOLDER_EXISTS, NO_TABLE
from sourcewise.engines.flower import LocalCarrier, RunSettings, Site, read_site_file, run_server


def write_table(path, seed, n=80, flip=False):
    rng = np.random.default_rng(seed)
    age, town = rng.normal(50, 10, n), rng.choice(["Oslo", "Rome"], n)
    ill = (age + 8 * (town == "Rome") + rng.normal(0, 5, n) > 54) ^ flip
    lines = ["age,town,outcome"]
    lines += [
        f"{a:.2f},{t},{'ill' if y else 'well'}" for a, t, y in zip(age, town, ill, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_init_writes_a_project_that_works(tmp_path, capsys):
    reference, project = tmp_path / "trusted.csv", tmp_path / "project"
    write_table(reference, 0)
    command = ["federated", "init", str(project), "--reference", str(reference)]
    assert main([*command, "--label", "outcome"]) == 0
    told = capsys.readouterr().out
    assert f"flwr run {project}" in told
    assert f"FLWR_HOME={project}/flower" in told
    # Flower would report its use otherwise; at a site, our command sees to that.
    assert told.count("FLWR_TELEMETRY_ENABLED=0") == told.count("FLWR_DISABLE_UPDATE_CHECK=1") == 1
    assert "sourcewise federated site site.toml" in told
    connections = tomllib.loads((project / "flower" / "config.toml").read_text())["superlink"]
    name = connections["default"]
    found = parse_superlink_connection(connections[name], name)  # Flower's own reader
    assert (found.address, found.insecure) == ("127.0.0.1:8000", True)
    content = tomllib.loads((project / "pyproject.toml").read_text())
    config = content["tool"]["flwr"]["app"]["config"]
    settings = RunSettings.of(config)
    assert settings.reference == str(reference)
    for name in ("server", "client"):
        code = (project / "fedsources" / f"{name}.py").read_text()
        namespace: dict[str, object] = {}
        exec(compile(code, name, "exec"), namespace)  # it runs as it stands
        assert type(namespace["app"]).__name__ == f"{name.title()}App"

    # Each site has the file that init wrote, with its own name and table.
    sites = []
    for k, name in enumerate(["north", "south", "west"]):
        text = (project / "site.toml").read_text().replace("my-site", name)
        (tmp_path / f"{name}.toml").write_text(text)
        write_table(tmp_path / f"{name}.csv", k + 1, flip=name == "west")
        sites.append(Site.of_file(read_site_file(tmp_path / f"{name}.toml")))
    model = run_server(LocalCarrier(sites), settings)
    assert model.sources_.tolist() == ["reference", "north", "south", "west"]
    assert model.source_weights_[3] < 0.02 < min(model.source_weights_[1:3])
    assert load(project / "model.skops").classes_.tolist() == ["ill", "well"]
    assert {"report.html", "report.json", "federated.json"} <= {p.name for p in project.iterdir()}


def test_a_site_with_other_names_of_columns_is_read(tmp_path):
    write_table(tmp_path / "trusted.csv", 0)
    write_table(tmp_path / "north.csv", 1)
    text = (tmp_path / "north.csv").read_text().replace("age,town", "alder,by")
    (tmp_path / "north.csv").write_text(text)
    (tmp_path / "north.toml").write_text(
        "name = 'north'\ndata = 'north.csv'\n[columns]\nage = 'alder'\ntown = 'by'\n"
    )
    site = Site.of_file(read_site_file(tmp_path / "north.toml"))
    wanted = RunSettings(str(tmp_path / "trusted.csv"), "outcome", str(tmp_path))
    model = run_server(LocalCarrier([site]), wanted)
    assert model.source_weights_[1] > 0.2


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{there}"], FOLDER_EXISTS),
        (["{new}", "--reference", "{new}.csv"], NO_TABLE),
        (["{new}", "--sites", "0"], "--sites"),
        ([], "DIR"),
    ],
)
def test_init_refuses_in_a_sentence_and_writes_nothing(tmp_path, capsys, arguments, why):
    places = {"there": str(tmp_path), "new": str(tmp_path / "new")}
    assert main(["federated", "init", *(a.format(**places) for a in arguments)]) == 2
    told = capsys.readouterr().err
    assert why.format(path=arguments[-1].format(**places) if arguments else "") in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{there}/none.toml"], "There is no site file"),
        (["{there}/table.toml"], "There is no table {there}/none.csv"),
        (["{there}/bad.toml"], "the entry 'port', which means nothing"),
        (["{there}/ledger.toml"], "line 1 is not one of ours"),
        (["{there}/good.toml", "--key", "{there}/good.toml"], "is not a private key"),
        (["{there}/good.toml", "--root-certificates", "{there}/no"], "certificate {there}/no"),
        (["{there}/good.toml", "--superlink", "nowhere"], "'nowhere' is not an address"),
        ([], "SITE.TOML"),
    ],
)
def test_a_site_that_cannot_start_says_why_in_a_sentence(tmp_path, capfd, arguments, why):
    write_table(tmp_path / "north.csv", 1)
    lines = {
        "good": "data = 'north.csv'",
        "table": "data = 'none.csv'",
        "bad": "data = 'north.csv'\nport = 3",
        "ledger": "data = 'north.csv'\n[policy]\nlog = 'good.toml'",
    }
    for name, line in lines.items():
        (tmp_path / f"{name}.toml").write_text(f"name = 'north'\n{line}\n")
    given = [argument.format(there=tmp_path) for argument in arguments]
    assert main(["federated", "site", *given, "--max-retries", "0"]) == 2
    said = capfd.readouterr().err.strip().splitlines()[-1]
    assert why.format(there=tmp_path) in said


def test_a_superlink_that_is_not_there_is_told_in_a_sentence(tmp_path):
    write_table(tmp_path / "north.csv", 1)
    (tmp_path / "north.toml").write_text("name = 'north'\ndata = 'north.csv'\n")
    given = ["--superlink", "127.0.0.1:9", "--insecure", "--max-retries", "0"]
    # In a process of its own, as Flower ends by force what does not end soon.
    done = subprocess.run(
        [sys.executable, "-m", "sourcewise.cli", "federated", "site", tmp_path / "north.toml"]
        + given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    sentence = "The SuperLink 127.0.0.1:9 is not there, or does not let this site in"
    assert sentence in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"reference": "r.csv"}, "column of the labels"),
        ({"label": "y"}, "rows that you trust"),
        ({"label": "y", "reference": "r.csv", "sites": "two"}, "'sites' to be a whole number"),
        ({"label": "y", "reference": "r.csv", "modes": "x"}, "'modes', which means nothing"),
    ],
)
def test_the_configuration_is_checked(config, why):
    with pytest.raises(ValueError, match=why):
        RunSettings.of(config)


def test_without_flower_the_command_says_what_to_install():
    code = (
        "import sys\n"
        "sys.modules['flwr'] = None\n"
        "from sourcewise.cli import main\n"
        "sys.exit(main(['federated', 'demo']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'flwr" in done.stderr
