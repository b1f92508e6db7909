from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from budget import HERE, LOOSE, MISSING, OVER, complaints, counted

FOUND = {"core": {"lines": 1000, "modules": 10}}


@pytest.mark.parametrize(
    ("lines", "modules", "said"),
    [
        (1000, 10, []),
        (1029, 10, []),
        (999, 10, [OVER.format(part="core", found=1000, what="lines", most=999)]),
        (1000, 9, [OVER.format(part="core", found=10, what="modules", most=9)]),
        (1031, 10, [LOOSE.format(part="core", found=1000, what="lines", most=1031)]),
        (1000, 11, [LOOSE.format(part="core", found=10, what="modules", most=11)]),
    ],
)
def test_a_part_has_no_more_than_its_budget_and_not_much_less(lines, modules, said):
    assert complaints(FOUND, {"core": {"lines": lines, "modules": modules}}) == said


def test_every_part_has_a_budget():
    assert complaints(FOUND, {"cli": FOUND["core"]}) == [
        MISSING.format(part=part) for part in ("cli", "core")
    ]
    budgets = tomllib.loads((HERE / "budgets.toml").read_text(encoding="utf-8"))
    assert set(budgets) == set(counted(HERE / "src" / "sourcewise"))


def test_lines_and_modules_are_counted_by_folder(tmp_path):
    (tmp_path / "core" / "inner").mkdir(parents=True)
    for path, lines in (("a.py", 2), ("core/b.py", 3), ("core/inner/c.py", 4), ("core/d.txt", 9)):
        Path(tmp_path, path).write_text("x\n" * lines)
    assert counted(tmp_path) == {
        "core": {"lines": 7, "modules": 2},
        "files": {"lines": 2, "modules": 1},
    }
