"""Data flows one way: what is imported stands below, and no two parts import each other."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent.parent / "src" / "sourcewise"

# From the bottom to the top; those of one line know nothing of each other.
LAYERS = (
    ("extras", "files", "interruption", "safe_text"),
    ("progress",),
    ("core",),
    ("columns", "validation", "engines.memory", "report"),
    ("corruption", "estimators"),
    ("baselines", "datasets", "runs", "tables"),
    ("archives", "loaded", "persistence", "state"),
    ("sourcewise",),  # the names that users import
    ("engines", "experiments"),
    ("audit", "images"),
    ("cli",),
)
# Parts of one file, in effect.
TOGETHER = (set(LAYERS[6]),)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part(module: str) -> str:
    """Name the part that a module belongs to."""
    name = module.removeprefix("sourcewise").lstrip(".")
    if name.startswith("engines.memory"):
        return "engines.memory"
    return name.partition(".")[0] or "sourcewise"


def imports() -> dict[tuple[str, str], list[str]]:
    """Return which part imports which, and where."""
    found = defaultdict(list)
    for path in sorted(HERE.rglob("*.py")):
        steps = ["sourcewise", *path.relative_to(HERE).with_suffix("").parts]
        module = ".".join(steps).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
                if node.module in ("sourcewise", "sourcewise.engines"):
                    given = [a.name for a in node.names if a.name != "__version__"]  # a text
                    names = [_meant(node.module, name) for name in given]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                if name.partition(".")[0] == "sourcewise" and part(name) != part(module):
                    found[part(module), part(name)].append(f"{module} imports {name}")
    return found


def _meant(module: str, name: str) -> str:
    """Tell a module from a name that a package offers."""
    there = HERE.joinpath(*module.split(".")[1:], name)
    return f"{module}.{name}" if there.is_dir() or there.with_suffix(".py").exists() else module


def test_every_part_has_its_place():
    files = {path.stem for path in HERE.glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in HERE.glob("*/__init__.py")}
    assert set(LEVEL) - {"sourcewise", "engines.memory"} == files | folders


def test_nothing_imports_upwards_or_beside_itself():
    wrong = [
        places
        for (here, there), places in imports().items()
        if LEVEL[there] >= LEVEL[here] and not any({here, there} <= some for some in TOGETHER)
    ]
    assert not wrong


def test_no_two_parts_import_each_other():
    pairs = set(imports())
    both = {
        frozenset(pair)
        for pair in pairs
        if pair[::-1] in pairs and not any(set(pair) <= some for some in TOGETHER)
    }
    assert not both
