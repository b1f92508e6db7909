"""docs/accuracy.md shows what the published results hold, all of it."""

from pathlib import Path

import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from benchmarks.accuracy import paired, report  # noqa: E402
from benchmarks.accuracy.data import DATA_SETS  # noqa: E402
from benchmarks.accuracy.design import cells_of  # noqa: E402
from benchmarks.accuracy.runner import KEY, extremes_plan, read  # noqa: E402
from benchmarks.accuracy.summary import MARGIN  # noqa: E402

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
PUBLISHED = ROOT / "benchmarks" / "accuracy" / "published"


@pytest.fixture(scope="module")
def runs():
    return read(PUBLISHED / "runs.parquet")


@pytest.fixture(scope="module")
def extremes():
    return read(PUBLISHED / "extremes.parquet")


@pytest.mark.parametrize("half", ["both", "confirmation", "development"])
def test_the_page_shows_the_lines_of_both_halves(runs, half):
    assert report.lines_table(report.half(runs, half)) in PAGE


@pytest.mark.parametrize(
    "table", [report.methods_table, report.data_table, report.variations_table]
)
def test_the_page_shows_the_tables(runs, table):
    assert table(runs) in PAGE


def test_the_page_shows_what_sixty_draws_say(extremes):
    assert report.extremes_lines(extremes) in PAGE
    assert report.extremes_table(extremes, beyond=MARGIN) in PAGE


def test_the_page_shows_what_the_present_form_changes(runs):
    after = read(PUBLISHED / "three-parts.parquet")
    both = paired.paired(after, runs)
    assert len(both[both["method"] == "sourcewise"]) == len(after)
    assert not after["development"].any()
    assert paired.table(both) in PAGE


def test_no_cell_is_left_out(runs, extremes):
    # Some data sets are too small for some variations; the grid is for all.
    grid = {cell for data in DATA_SETS for cell in cells_of(data) if cell.variation == "grid"}
    assert {cell.key() for cell in grid} <= found(runs)
    wanted = {cell.key() for cell, _ in extremes_plan(DATA_SETS, [0]) if cell.variation == "grid"}
    assert wanted <= found(extremes)
    for results in (runs, extremes):
        assert results["error"].notna().all()
        assert not results.duplicated([*KEY, "method"]).any()


def found(results):
    cells = results[[name for name in KEY if name != "seed"]].drop_duplicates()
    return set(cells.itertuples(index=False, name=None))
