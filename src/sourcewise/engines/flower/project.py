"""A small Flower project for one's own sites, as ``sourcewise federated init`` writes it."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Sequence
from typing import Any

PACKAGE = "fedsources"
LARGEST = 1_000_000  # bytes of a project's file that is looked at

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{package}"
version = "0.1.0"
description = "Learn from sites that keep their rows"
license = "BSD-3-Clause"
dependencies = []  # sourcewise[flower] is installed at every site beforehand

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "sourcewise"

[tool.flwr.app.components]
serverapp = "{package}.server:app"
clientapp = "{package}.client:app"

[tool.flwr.app.config]
# Where the server runs: the table of rows that you trust, its column of labels, where results go.
reference = {reference}
label = {label}
output = {output}
name = "reference"      # what the reference is called in the report
# "models-only", "shared-reference" or "gradients"; see the page on federated fits.
mode = "models-only"
discrepancy = "combined"  # with mode "gradients": "plug-in", or "paper" for the paper's protocol
task = "auto"           # "classification", "regression", or by the labels
sites = {sites}               # no result from fewer sites than this
wait = 60.0             # seconds to wait for them
timeout = 600.0         # seconds a site has for an answer
exact-selection = false # true asks for every gradient: dozens of rounds, or hundreds
show-rows = 0           # mode "shared-reference": only the first so many trusted rows; 0 for all
seed = 0
"""

SERVER = '''\
"""The server: fits one model by the configuration in pyproject.toml."""

from sourcewise.engines.flower import server_app

app = server_app()
'''

CLIENT = '''\
"""Nothing: sites run what they have installed (`sourcewise federated site`), never what is sent.

Flower wants every project to have this file. A site refuses a project in which it is another one.
"""

from flwr.clientapp import ClientApp

app = ClientApp()
'''

SITE = """\
# This file belongs to the owner of the data. It stays at the site; the server never sees it and
# cannot change it. Start the site with: sourcewise federated site THIS-FILE --superlink HOST:PORT
name = "{name}"
data = "{name}.csv"        # CSV or Parquet, relative to this file

# What a server may name, in its own words; without these two lines, any column of the table.
{named}
# Columns that are called otherwise here: the server's name = this table's name.
[columns]
# age = "age_at_admission"

[policy]
# Questions that are answered; all others are refused. Leave a line out to refuse its question.
questions = [
{questions}
]
least_rows = 20     # nothing is answered from fewer rows
clip = 0.0          # largest Euclidean norm of any array that leaves; 0 for no limit
noise = 0.0         # standard deviation of Gaussian noise on every number that leaves
log = "answers.jsonl"  # the ledger: what was asked, when, what became of it; never a row
repeats = 20        # times that the same question is answered once more, in other runs
most_questions = 0  # times that rows are ever looked at, in all runs together; 0 for no limit
most_rules = 5      # ways in which rows are ever read: columns, categories, classes, scales
least_group = 5     # what fewer rows have, and no others, is not seen in any column
most_bytes = 256000000  # larger questions are not fetched
"""

QUESTIONS = {
    "describe": "the number of rows",
    "look": "losses and agreement under the reference's models, the site's own fold models",
    "local": "the same without agreement and features",
    "derivatives": "gradient and curvature of the mean loss at some models",
    "gradients": "gradients of the mean loss at some models",
    "moments": "second moments of features and target (regression)",
    "square-gradients": "gradients of the mean squared loss (plug-in discrepancy)",
    "losses": "mean losses of the models found by them",
    "pull": "models of the site and the reference together; needs the reference's rows",
    "plug-in": "separating models; needs the reference's moments",
    "cross-fit": "the same, cross-fitted",
}

FLOWER_HOME = "flower"  # folder of the project for Flower's own files
CONNECTION = "sites"
ADDRESS = "127.0.0.1:8000"  # where a SuperLink listens unless it is told otherwise

FLOWER = """\
# Where `flwr run` finds the SuperLink. Flower reads this file if the environment says
#   FLWR_HOME={folder}
# or copy these lines into ~/.flwr/config.toml.
[superlink]
default = "{name}"

[superlink.{name}]
address = "{address}"
{security}
"""
ON_THIS_MACHINE = """\
insecure = true  # between machines, delete this line and name the authority's certificate:
# root-certificates = "/path/to/ca.crt"
"""

IGNORED = """\
flower/*
!flower/config.toml
*.csv
*.parquet
*.jsonl
model.skops
report.*
federated.json
"""


def project_files(
    reference: str,
    label: str,
    output: str,
    sites: int,
    name: str = "my-site",
    features: Sequence[str] = (),
) -> dict[str, str]:
    """Return the text of every file of a project, by its path in the project."""
    return {
        "pyproject.toml": PROJECT.format(
            package=PACKAGE,
            reference=_text(reference),
            label=_text(label),
            output=_text(output),
            sites=sites,
        ),
        f"{PACKAGE}/__init__.py": '"""Sites that keep their rows."""\n',
        f"{PACKAGE}/server.py": SERVER,
        f"{PACKAGE}/client.py": CLIENT,
        "site.toml": site_file(name, features, label),
        f"{FLOWER_HOME}/config.toml": flower_config(
            f"{output}/{FLOWER_HOME}", CONNECTION, ADDRESS, ON_THIS_MACHINE
        ),
        ".gitignore": IGNORED,
    }


def flower_config(folder: str, name: str, address: str, security: str) -> str:
    """Return the text of Flower's own configuration: how to get to the SuperLink."""
    return FLOWER.format(folder=folder, name=name, address=address, security=security.rstrip())


def site_file(name: str, features: Sequence[str] = (), label: str = "") -> str:
    """Return a site file that allows every question about some columns, with a word on each."""
    listed = ", ".join(map(_text, features)) or '"age", "dose"'
    named = f"features = [{listed}]\nlabel = {_text(label or 'outcome')}\n"
    if not features:
        named = "".join(f"# {line}\n" for line in named.splitlines())
    lines = [f"  {_text(question)},  # {what}" for question, what in QUESTIONS.items()]
    return SITE.format(name=name, questions="\n".join(lines), named=named)


def _text(value: Any) -> str:
    """Write a text as TOML: as JSON does."""
    return json.dumps(str(value))


def brings_code(bundle: bytes) -> bool:
    """Whether a project, as Flower sends it around, has code of its own for sites.

    It is read as data, two files of it. That none of it is ever loaded is what protects a site;
    this only tells an analyst who has changed the file that sites do not run it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as files:
            settings = tomllib.loads(_read(files, "pyproject.toml"))
            named = settings["tool"]["flwr"]["app"]["components"]["clientapp"]
            module = named.partition(":")[0].replace(".", "/")
            return _read(files, f"{module}.py").split() != CLIENT.split()
    except Exception:  # whatever is wrong with it: it is not a project of ours
        return True


def _read(files: zipfile.ZipFile, name: str) -> str:
    with files.open(name) as file:
        return file.read(LARGEST).decode()
