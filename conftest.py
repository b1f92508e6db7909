"""What cannot be collected where an extra is not installed, and what takes long."""

from importlib.util import find_spec
from pathlib import Path

import pytest

# Its examples run torch; `make test` installs it.
collect_ignore = [] if find_spec("torch") else ["src/sourcewise/images/extractor.py"]

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
    """Mark what takes long."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
