"""Print a constraints file: the oldest version of everything that pyproject.toml allows.

For ``make test-oldest``. Tools of development are left out: users never meet them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(
    (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)["project"]
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z][\w-]*)\s*>=\s*(?P<version>[\d.]+)")


def oldest() -> list[str]:
    """Return a constraint for every lower bound of what users install."""
    extras = PROJECT["optional-dependencies"]
    lines = [
        *PROJECT["dependencies"],
        *(line for name, found in extras.items() if name not in ("dev", "bench") for line in found),
    ]
    matches = (REQUIREMENT.match(line) for line in lines)
    return sorted({f"{match['name']}=={match['version']}" for match in matches if match})


if __name__ == "__main__":
    print("\n".join(oldest()))
