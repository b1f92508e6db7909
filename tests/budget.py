"""Lines and modules of each part of the package, and how many it may have.

``make lint`` runs this. A budget (budgets.toml) is raised in the commit that needs it, with the
reason in its message, or not at all; it is lowered whenever a part has become smaller.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent.parent
SLACK = 1.02  # a budget further above what there is says nothing

OVER = "{part} has {found} {what}, and its budget is {most}: make it smaller, or say why not."
LOOSE = "{part} has {found} {what}, and its budget is {most}: lower it in budgets.toml."
MISSING = "{part} has no budget, or a budget and no code."


def counted(package: Path) -> dict[str, dict[str, int]]:
    """Return lines and modules by folder of the package; those of no folder are `files`."""
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        steps = path.relative_to(package).parts
        part = steps[0] if len(steps) > 1 else "files"
        lines[part] += len(path.read_text(encoding="utf-8").splitlines())
        modules[part] += 1
    return {part: {"lines": lines[part], "modules": modules[part]} for part in sorted(lines)}


def complaints(found: dict[str, dict[str, int]], budgets: dict[str, dict[str, int]]) -> list[str]:
    """Say what is over its budget, and which budget is far above what there is."""
    said = [MISSING.format(part=part) for part in sorted(set(found) ^ set(budgets))]
    for part in sorted(set(found) & set(budgets)):
        for what, most in budgets[part].items():
            count = found[part][what]
            room = max(SLACK * count, count + 30 if what == "lines" else count)
            if count > most or most > room:
                sentence = OVER if count > most else LOOSE
                said.append(sentence.format(part=part, found=count, what=what, most=most))
    return said


if __name__ == "__main__":
    budgets = tomllib.loads((HERE / "budgets.toml").read_text(encoding="utf-8"))
    found = counted(HERE / "src" / "sourcewise")
    said = complaints(found, budgets)
    print(
        "\n".join(said)
        or f"{sum(part['lines'] for part in found.values())} lines in "
        f"{sum(part['modules'] for part in found.values())} modules: within the budgets."
    )
    sys.exit(bool(said))
