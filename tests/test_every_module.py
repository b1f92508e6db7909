"""Every module has a test that imports it or an example that runs; of all others it is said why."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "sourcewise"

# Modules that only others of the package call. What they do shows in the result of the caller, and
# that is what the test on the right compares with a definition, another way, or a document.
THROUGH_CALLERS = {
    "core.discrepancy.plug_in_queries": "engines/flower/test_modes.py",
    "engines.dask.frame_parts": "engines/test_dask_results.py",
    "engines.dask.reading": "engines/test_dask_results.py",
    "engines.dask.tasks": "engines/test_dask_results.py",
    "engines.flower.copies": "engines/flower/test_guards.py",
    "engines.flower.engine": "engines/flower/test_modes.py",
}


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


def test_every_module_is_tested_by_itself_or_through_its_callers():
    paths = [path for path in HERE.rglob("*.py") if path.name != Path(__file__).name]
    known = imported("\n".join(path.read_text("utf-8") for path in paths))
    alone = [m for m in modules() if m not in known and not has_example(m)]
    unsaid = set(alone) - set(THROUGH_CALLERS)
    assert not unsaid, f"give {unsaid} a test, or name the one that reaches it in THROUGH_CALLERS"
    assert all((HERE / path).is_file() for path in THROUGH_CALLERS.values())
