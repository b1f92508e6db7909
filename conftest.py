"""What cannot be collected everywhere, what takes long, and what comes first."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Their examples run torch and a network; `make test` installs both.
collect_ignore = [] if find_spec("torch") else ["src/sourcewise/images/extractor.py"]
if not find_spec("torch") or not find_spec("efficientnet_lite_pytorch"):
    collect_ignore.append("src/sourcewise/images/efficientnet.py")

# Signals, limits and terminals as Unix has them, and processes as Linux lists them in /proc.
LINUX = ("tests/engines/flower/test_processes.py", "tests/test_runs.py")
UNIX = (
    "tests/cli/test_tables_and_figures.py",
    "tests/cli/test_wrong_input.py",
    "tests/engines/test_dask_faults.py",
    "tests/experiments/test_experiment_runner.py",
)
if sys.platform != "linux":
    collect_ignore += LINUX
if sys.platform == "win32":
    collect_ignore += UNIX

# Half a minute and more each: first, so that no process is left alone with them at the end.
LONGEST = ("tests/engines/flower/test_processes.py", "tests/test_examples.py")

# Left out by `make test-fast`: they start processes, run whole studies, or run every document.
SLOW = (
    "tests/benchmarks",
    "tests/cli",
    "tests/engines",
    "tests/experiments",
    "tests/images",
    "tests/report/test_browser.py",
    "tests/test_crafted_models.py",
    "tests/test_docs.py",
    "tests/test_examples.py",
    "tests/test_fuzz.py",
    "tests/test_persistence.py",
    "tests/test_runs.py",
)


def pytest_collection_modifyitems(items):
    """Mark what takes long, and put the longest first."""
    here = Path(__file__).parent
    names = {item: item.path.relative_to(here).as_posix() for item in items}
    for item in items:
        if names[item].startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not names[item].startswith(LONGEST))
