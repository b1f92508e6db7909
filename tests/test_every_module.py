"""Every module has a test that imports it, or an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "sourcewise"


def modules():
    """Name all modules, without the package's own name."""
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts) for path in paths if path.name != "__init__")


def imported(tests):
    """Name what tests import of the package, modules and what is in them."""
    found = set(re.findall(r"\bsourcewise((?:\.\w+)+)", tests))
    for package, names in re.findall(
        r"from sourcewise((?:\.\w+)*) import (\([^)]*\)|[^\n]*)", tests
    ):
        found |= {f"{package}.{name}" for name in re.findall(r"\w+", names)}
    return {name.lstrip(".") for name in found}


def has_example(module):
    return ">>> " in (SOURCE / module.replace(".", "/")).with_suffix(".py").read_text("utf-8")


def test_every_module_has_a_test_or_an_example():
    paths = [path for path in HERE.rglob("*.py") if path.name != Path(__file__).name]
    known = imported("\n".join(path.read_text("utf-8") for path in paths))
    alone = [m for m in modules() if m not in known and not has_example(m)]
    assert not alone, f"give {alone} a test"
