from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from experiments.made_up import (
    all_products_rows,
    animals_rows,
    products_rows,
    results_of,
    rows_of,
)
from sourcewise.experiments.layout import Line, Sheet, Table, as_csv, as_latex, as_markdown, as_text
from sourcewise.experiments.names import BASELINES, CORRUPTIONS, METHODS
from sourcewise.experiments.tables import build_sheets, cut


def cells(table, label):
    """Cells of a row, by column."""
    (line,) = [line for line in table.lines if line.label == label]
    return dict(zip(table.columns, line.cells, strict=True))


def printed(table, label):
    """Cells of the row below, with the paper's own numbers."""
    place = [line.label for line in table.lines].index(label)
    below = table.lines[place + 1]
    assert below.printed
    return dict(zip(table.columns, below.cells, strict=True))


WON, LOST, EVEN = [0.1, 0.12, 0.14], [0.3, 0.32, 0.34], [0.12, 0.14, 0.16]


class TestAnimals:
    def test_one_sheet_for_each_method_and_p(self):
        sheets = build_sheets(results_of(animals_rows(shares=(1.0, 0.2))))
        assert [sheet.name for sheet in sheets] == [
            "animals-paper-p1",
            "animals-paper-p0.2",
            "animals-default-p1",
            "animals-default-p0.2",
            "animals-errors-p1",
            "animals-errors-p0.2",
        ]
        for sheet in sheets[:4]:
            over_all, *each = sheet.tables
            assert "all corruptions (corruptions: 6, targets: 2" in over_all.title
            for table, corruption in zip(each, CORRUPTIONS.values(), strict=True):
                assert corruption in table.title
            assert over_all.columns == ["n = 0", "n = 10", "n = 59"]
            assert all(table.columns == ["n = 10", "n = 59"] for table in each)

    def test_the_default_is_compared_with_the_papers_method_too(self):
        paper, default, _ = build_sheets(results_of(animals_rows()))
        labels = [line.label for line in paper.tables[0].lines]
        assert labels == list(BASELINES.values())
        assert [line.label for line in default.tables[0].lines] == [*labels, "Paper's method"]

    def test_mean_errors_over_targets_and_repeats(self):
        rows = []
        for target, level in (("black", 0.1), ("white", 0.3)):
            errors = {"paper": [level, level + 0.02], "default": [level, None]}
            rows += rows_of("animals", target, "blur", 10, 1.0, errors)
            errors = {"paper": [level, level + 0.02], "default": [level - 0.1, level]}
            rows += rows_of("animals", target, "blur", 20, 1.0, errors)
        sheet = build_sheets(results_of(rows))[-1]
        (table,) = sheet.tables
        paper, default = table.lines
        # At n = 10 the default lacks the second repeat, so only the first counts, for both.
        assert paper.cells == ["0.200 ± –", "0.210 ± 0.0100"]
        assert default.cells == ["0.200 ± –", "0.150 ± 0.0500"]
        assert default.bold == {1}
        assert table.notes == ["Runs left out because some methods lack them: 2."]
        assert sheet.records[-1]["error"] == pytest.approx(0.15)

    def test_counts_of_hand_made_errors(self):
        rows = []
        for corruption in ("label-bias", "blur"):
            rows += rows_of(
                "animals", "black", corruption, 10, 1.0, {"paper": WON, "all data": LOST}
            )
            rows += rows_of(
                "animals", "white", corruption, 10, 1.0, {"paper": WON, "all data": EVEN}
            )
        rows += rows_of("animals", "white", "blur", 20, 1.0, {"paper": LOST, "all data": WON})
        sheet, *_ = build_sheets(results_of(rows))
        over_all, bias, blur = sheet.tables
        assert cells(over_all, "All data") == {"n = 10": "2/2/0", "n = 20": "0/0/1"}
        assert cells(bias, "All data") == {"n = 10": "1/1/0", "n = 20": "–"}
        assert cells(blur, "All data") == {"n = 10": "1/1/0", "n = 20": "0/0/1"}
        assert cells(blur, "Batch norm") == {"n = 10": "–", "n = 20": "–"}

    def test_without_corruption_a_target_counts_once(self):
        rows = []
        for corruption in CORRUPTIONS:
            errors = {"paper": WON, "reference only": LOST}
            rows += rows_of("animals", "black", corruption, 0, 1.0, errors)
            rows += rows_of("animals", "black", corruption, 10, 1.0, errors)
        sheet, *_ = build_sheets(results_of(rows))
        assert cells(sheet.tables[0], "Reference only") == {"n = 0": "1/0/0", "n = 10": "6/0/0"}
        assert "cells: 7," in sheet.tables[0].title

    def test_without_corruption_runs_of_any_corruption_will_do(self):
        rows = rows_of("animals", "black", "label-bias", 10, 1.0, {"paper": WON, "all data": LOST})
        rows += rows_of("animals", "black", "blur", 0, 1.0, {"paper": WON, "all data": LOST})
        sheet, *_ = build_sheets(results_of(rows))
        assert cells(sheet.tables[0], "All data")["n = 0"] == "1/0/0"

    def test_only_clean_runs_give_one_table(self):
        rows = rows_of("animals", "black", "blur", 0, 1.0, {"paper": WON, "all data": LOST})
        sheet, *_ = build_sheets(results_of(rows))
        assert len(sheet.tables) == 1

    def test_missing_runs_are_counted_and_told(self):
        rows = rows_of("animals", "black", "blur", 10, 1.0, {"paper": WON, "all data": LOST})
        rows += rows_of(
            "animals", "white", "blur", 10, 1.0, {"paper": WON[:2], "all data": LOST[:2]}
        )
        rows += rows_of("animals", "small", "blur", 10, 1.0, {"paper": WON, "all data": LOST[:2]})
        sheet, *_ = build_sheets(results_of(rows))
        table = sheet.tables[1]
        assert cells(table, "All data") == {"n = 10": "2/0/0"}
        # Six baselines that were not run in three cells each, and one cell of the seventh.
        assert "Comparisons missing: 19 of 21." in table.notes[0]
        assert "fewer than 3 repeats: 1." in table.notes[1]
        record = next(r for r in sheet.records if r["baseline"] == "all data")
        assert (record["missing"], record["partial"]) == (1, 1)

    def test_a_full_grid_needs_no_note(self):
        for sheet in build_sheets(results_of(animals_rows())):
            assert all(table.notes == [] for table in sheet.tables)

    def test_the_papers_numbers_stand_below_ours_on_its_data_only(self):
        rows = animals_rows(shares=(1.0, 0.5))
        paper_1, paper_half, *_ = build_sheets(results_of(rows, data="published"))
        assert printed(paper_1.tables[0], "Reference only") == {
            "n = 0": "84/1/0",
            "n = 10": "505/5/0",
            "n = 59": "0/510/0",
        }
        assert printed(paper_half.tables[1], "Batch norm") == {
            "n = 10": "1/84/0",
            "n = 59": "76/9/0",
        }
        for data in ("awa1", "synthetic"):
            for sheet in build_sheets(results_of(rows, data=data)):
                assert not any(line.printed for table in sheet.tables for line in table.lines)
                assert any("stand in for the paper's" in remark for remark in sheet.remarks)

    def test_cells_that_the_paper_does_not_have_stay_empty(self):
        rows = animals_rows(numbers=(10, 11), corruptions=("blur",))
        sheet = build_sheets(results_of(rows, data="published"))[0]
        assert printed(sheet.tables[1], "All data") == {"n = 10": "0/85/0", "n = 11": ""}
        (record,) = [
            r
            for r in sheet.records
            if (r["baseline"], r["corruption"], r["n"]) == ("all data", "blur", 11)
        ]
        assert record["paper_better"] == ""

    def test_one_repeat_is_refused(self):
        with pytest.raises(ValueError, match=r"one repeat.*--runs 2"):
            build_sheets(results_of(animals_rows(repeats=1)))

    def test_baselines_alone_are_refused(self):
        with pytest.raises(ValueError, match="neither the paper's method"):
            build_sheets(results_of(animals_rows(methods=("all data", "reference only"))))

    def test_a_corruption_of_ones_own(self):
        sheet = build_sheets(results_of(animals_rows(corruptions=("blur", "rain_50%"))))[0]
        assert ["blurred images" in t.title for t in sheet.tables] == [False, True, False]
        assert r"rain\_50\%" in as_latex(sheet)


class TestProducts:
    def test_means_and_standard_errors(self):
        rows = rows_of("all-products", "a", "none", 0, 1.0, {"paper": [0.25]})
        rows += rows_of("all-products", "b", "none", 0, 1.0, {"paper": [0.5]})
        rows += rows_of("all-products", "c", "none", 0, 1.0, {"paper": [0.75]})
        (sheet,) = build_sheets(results_of(rows))
        (record,) = sheet.records
        assert record["error"] == 0.5
        assert record["standard_error"] == pytest.approx(0.25 / np.sqrt(3))
        # 0.25 / sqrt(3) = 0.14434: cut off, it ends in 3.
        assert cells(sheet.tables[0], "Paper's method") == {"Error": "0.500 ± 0.1443"}

    def test_digits_are_cut_off_as_in_the_paper(self):
        assert cut(0.28999, 3) == 0.289
        assert cut(0.00169, 4) == 0.0016
        # None of these is a float; the nearest to some of them lies just below.
        for digits in (0.29, 0.57, 0.58, 0.289, 0.301):
            assert cut(digits, 3) == digits

    def test_next_to_the_paper(self):
        (sheet,) = build_sheets(results_of(all_products_rows(), data="published"))
        table = sheet.tables[0]
        assert [line.label for line in table.lines] == list(METHODS.values())
        assert cells(table, "Robust loss")["In the paper"] == "0.353 ± 0.0021"
        assert cells(table, "Robust loss")["Authors' notebook"] == "0.35315 ± 0.00210"
        assert cells(table, "Default")["In the paper"] == "–"
        record = next(each for each in sheet.records if each["method"] == "paper")
        assert (record["notebook_error"], record["paper_error"]) == (0.28947, 0.289)
        (sheet,) = build_sheets(results_of(all_products_rows()))
        assert sheet.tables[0].columns == ["Error"]

    def test_the_best_stands_out(self):
        (sheet,) = build_sheets(results_of(all_products_rows()))
        best = min(sheet.records, key=lambda record: record["error"])
        (line,) = [line for line in sheet.tables[0].lines if line.bold]
        assert line.label == METHODS[best["method"]]

    def test_runs_that_a_method_lacks_are_left_out_for_all(self):
        errors = [("a", {"paper": [0.25], "all data": [0.5]}), ("b", {"paper": [0.75]})]
        rows = [
            row
            for target, by_method in errors
            for row in rows_of("all-products", target, "none", 0, 1.0, by_method)
        ]
        (sheet,) = build_sheets(results_of(rows))
        assert cells(sheet.tables[0], "Paper's method") == {"Error": "0.250 ± –"}
        assert "lack them: 1." in sheet.tables[0].notes[-1]

    def test_by_number_of_non_books(self):
        (sheet,) = build_sheets(results_of(products_rows(), data="published"))
        (table,) = sheet.tables
        assert table.columns == [f"n = {n}" for n in range(11)]
        assert "In the paper, Comp. median ranges from 0.338 to 0.375." in table.notes
        assert printed(table, "Comp. median")["n = 10"] == "0.3755"
        assert printed(table, "Robust loss")["n = 0"] == "0.3484"
        assert sum(line.printed for line in table.lines) == 2
        (plain,) = build_sheets(results_of(products_rows()))
        assert not any(line.printed for line in plain.tables[0].lines)
        rows = products_rows()
        at_three = [row.error for row in rows if row.n == 3 and row.method == "all data"]
        error, spread = cells(table, "All data")["n = 3"].split(" ± ")
        assert error == f"{np.mean(at_three):.3f}"
        assert spread == f"{np.std(at_three, ddof=1) / 2:.4f}"


def test_all_studies_of_a_file():
    rows = animals_rows() + products_rows() + all_products_rows()
    names = [sheet.name for sheet in build_sheets(results_of(rows))]
    assert names == [
        "products",
        "products-by-n",
        "animals-paper-p1",
        "animals-default-p1",
        "animals-errors-p1",
    ]


def test_no_rows():
    with pytest.raises(ValueError, match="empty"):
        build_sheets(results_of([]))


def test_a_study_without_tables():
    rows = rows_of("hospitals", "a", "none", 0, 1.0, {"paper": [0.1]})
    with pytest.raises(ValueError, match="'hospitals'"):
        build_sheets(results_of(rows))


def test_what_was_run_is_said():
    sheet = build_sheets(results_of(all_products_rows(), data="awa1"))[0]
    assert "Made by sourcewise 9.9, seed 5, data: awa1." in sheet.remarks


SHEET = Sheet(
    "name",
    "A title",
    ["A remark of 100 %."],
    [
        Table(
            "Table of a_b, n = 10",
            "Baseline",
            [f"n = {k}" for k in range(12)],
            [
                Line("First & best", ["0.1 ± 0.01"] * 12, bold=frozenset({0})),
                Line("", ["1/2/3"] * 11 + [""], printed=True),
            ],
            ["50% are missing."],
        )
    ],
    [{"method": "a, b", "n": 1, "error": 0.125}, {"method": "c", "n": 2, "error": ""}],
)


class TestLayout:
    def test_text_fits_a_terminal(self):
        lines = as_text(SHEET).splitlines()
        assert max(map(len, lines)) <= 80
        heads = [line for line in lines if line.startswith("Baseline")]
        assert re.findall(r"n = \d+", " ".join(heads)) == [f"n = {k}" for k in range(12)]
        assert len(heads) == 3
        assert sum("in the paper" in line for line in lines) == 3
        assert lines[-1] == "50% are missing."

    def test_real_sheets_fit_too(self):
        rows = animals_rows(numbers=(0, 10, 20, 30, 40, 50, 55, 59)) + products_rows()
        for sheet in build_sheets(results_of(rows, data="published")):
            assert max(map(len, as_text(sheet).splitlines())) <= 80

    def test_markdown(self):
        lines = as_markdown(SHEET).splitlines()
        assert lines[0] == "# A title"
        rows = [line for line in lines if line.startswith("|")]
        assert len(rows) == 4
        assert {row.count("|") for row in rows} == {14}
        assert rows[2].startswith("| First & best | **0.1 ± 0.01** | 0.1 ± 0.01 |")
        assert rows[3].startswith("| *in the paper* | *1/2/3* |")
        assert rows[3].endswith("| *1/2/3* |  |")

    def test_csv_can_be_read_back(self):
        rows = list(csv.DictReader(io.StringIO(as_csv(SHEET))))
        assert rows[0] == {"method": "a, b", "n": "1", "error": "0.125"}
        assert rows[1]["error"] == ""

    def test_latex(self):
        text = as_latex(SHEET)
        assert r"First \& best & \textbf{0.1 $\pm$ 0.01} & 0.1 $\pm$ 0.01" in text
        assert r"\caption{Table of a\_b, $n = 10$. 50\% are missing.}" in text
        assert r"\quad in the paper & 1/2/3" in text
        assert_latex(text)

    def test_latex_of_real_sheets(self):
        rows = animals_rows() + products_rows() + all_products_rows()
        for sheet in build_sheets(results_of(rows, data="published")):
            assert_latex(as_latex(sheet))


def assert_latex(text):
    """Braces, environments and columns match, and no character needs escaping."""
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert code.isascii()
    plain = re.sub(r"\\[&%$#_{}]", "", code)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert not re.search(r"[%#_~^]", plain)
    environments = re.findall(r"\\(begin|end)\{([a-z]+\*?)\}", plain)
    opened = []
    for what, name in environments:
        if what == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    for columns, body in re.findall(r"\\begin\{tabular\}\{([^}]*)\}(.*?)\\end", plain, re.DOTALL):
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert rows
        assert {row.count("&") + 1 for row in rows} == {len(re.findall("[lc]", columns))}
