from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.figure import Figure

from experiments.made_up import (
    all_products_rows,
    animals_rows,
    products_rows,
    results_of,
    rows_of,
)
from sourcewise.experiments.figures import draw_figures
from sourcewise.experiments.names import CORRUPTIONS
from sourcewise.extras import how_to_install


@pytest.fixture
def drawn(monkeypatch):
    """Figures as they are saved."""
    figures = []
    save = Figure.savefig

    def remember(self, *args, **kwargs):
        if self not in figures:
            figures.append(self)
        return save(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", remember)
    return figures


def lines_of(axes):
    return {line.get_label(): line for line in axes.get_lines() if line.get_label()[0] != "_"}


def test_the_notebooks_errors_stand_in_figure_1_on_the_papers_data_only():
    (theirs,) = draw_figures(results_of(products_rows(), data="published"))
    (others,) = draw_figures(results_of(products_rows()))
    assert "the authors' notebook" in theirs.caption
    assert "notebook" not in others.caption
    assert theirs.files["svg"].count(b"<path") > others.files["svg"].count(b"<path")


class TestFigure1:
    def test_means_and_bands(self, drawn):
        rows = [row for row in products_rows() if row.n in (0, 4)]
        (picture,) = draw_figures(results_of(rows))
        axes = drawn[0].axes[0]
        line = lines_of(axes)["All data"]
        errors = [[r.error for r in rows if (r.n, r.method) == (n, "all data")] for n in (0, 4)]
        mean, spread = np.mean(errors, axis=1), np.std(errors, axis=1, ddof=1) / 2
        assert line.get_xdata().tolist() == [0, 4]
        assert line.get_ydata() == pytest.approx(mean)
        edges = [band.get_paths()[0].vertices[:, 1] for band in axes.collections]
        assert any(
            np.isclose(edge.min(), (mean - spread).min())
            and np.isclose(edge.max(), (mean + spread).max())
            for edge in edges
        )
        assert "standard error" in picture.caption
        assert picture.name == "figure-1"

    def test_colours_of_the_paper(self, drawn):
        draw_figures(results_of(products_rows()))
        lines = lines_of(drawn[0].axes[0])
        hues = {
            name: matplotlib.colors.rgb_to_hsv(matplotlib.colors.to_rgb(lines[name].get_color()))[0]
            for name in ("Paper's method", "Reference only", "All data")
        }
        assert hues["Paper's method"] == pytest.approx(1 / 3, abs=0.13)  # green
        assert hues["Reference only"] == pytest.approx(0, abs=0.08)  # red
        assert hues["All data"] == pytest.approx(2 / 3, abs=0.13)  # blue
        assert same_color(lines["Default"].get_color(), "black")

    def test_what_the_paper_left_out_is_left_out_and_named(self, drawn):
        (picture,) = draw_figures(results_of(products_rows()))
        lines = lines_of(drawn[0].axes[0])
        assert len(lines) == 7
        assert "Comp. median" not in lines
        assert "Comp. median and Robust loss are left out" in picture.caption

    def test_no_two_lines_look_the_same(self, drawn):
        draw_figures(results_of(animals_rows(corruptions=("blur",))))
        lines = lines_of(drawn[0].axes[0]).values()
        assert len(lines) == 9
        assert len({line.get_color() for line in lines}) == 9
        assert len({line.get_marker() for line in lines}) == 9


class TestFigure2:
    def test_a_panel_for_each_corruption(self, drawn):
        (picture,) = draw_figures(results_of(animals_rows()))
        assert [axes.get_title() for axes in drawn[0].axes] == list(CORRUPTIONS.values())
        assert "without a panel" not in picture.caption
        assert picture.name == "figure-2-black-p1"

    @pytest.mark.parametrize("number", [1, 2, 5])
    def test_panels_that_are_absent_are_named(self, drawn, number):
        there = list(CORRUPTIONS)[-number:]
        (picture,) = draw_figures(results_of(animals_rows(corruptions=there)))
        assert len(drawn[0].axes) == number
        absent = list(CORRUPTIONS.values())[:-number]
        assert f"without a panel: {', '.join(absent)}." in picture.caption

    def test_means_and_standard_deviations_of_one_target(self, drawn):
        values = {10: [0.25, 0.5, 0.75], 20: [0.5, 0.5, 0.5]}
        rows = []
        for n, errors in values.items():
            rows += rows_of("animals", "black", "blur", n, 1.0, {"paper": errors})
            rows += rows_of("animals", "white", "blur", n, 1.0, {"paper": [0.9, 0.9, 0.9]})
        (picture,) = draw_figures(results_of(rows))
        axes = drawn[0].axes[0]
        assert lines_of(axes)["Paper's method"].get_ydata().tolist() == [0.5, 0.5]
        first, second = axes.collections[0].get_segments()
        assert first[:, 1].tolist() == [0.25, 0.75]
        assert second[:, 1].tolist() == [0.5, 0.5]
        assert "'black'" in picture.caption

    def test_target_and_p_can_be_chosen(self):
        results = results_of(animals_rows(corruptions=("blur",), shares=(1.0, 0.5)))
        (picture,) = draw_figures(results, target="white", share=0.5)
        assert picture.name == "figure-2-white-p0.5"

    def test_another_target_where_there_is_no_black(self):
        rows = animals_rows(targets=("quad/rapedal", "zoo"), corruptions=("blur",))
        (picture,) = draw_figures(results_of(rows))
        assert picture.name == "figure-2-quad_rapedal-p1"

    def test_one_repeat_is_drawn_without_bars(self):
        (picture,) = draw_figures(results_of(animals_rows(corruptions=("blur",), repeats=1)))
        assert "1 run each" in picture.caption

    def test_unknown_target_and_p(self):
        results = results_of(animals_rows())
        with pytest.raises(ValueError, match=r"no target 'blakc'; they have 'black', 'white'\."):
            draw_figures(results, target="blakc")
        with pytest.raises(ValueError, match=r"no p = 0\.3; they have 1\."):
            draw_figures(results, share=0.3)


def test_files_of_both_figures():
    rows = products_rows() + animals_rows(corruptions=("blur",))
    pictures = draw_figures(results_of(rows))
    assert [picture.name for picture in pictures] == ["figure-1", "figure-2-black-p1"]
    for picture in pictures:
        assert picture.files["png"].startswith(b"\x89PNG")
        assert b"<svg" in picture.files["svg"]


def test_the_same_results_give_the_same_files():
    results = results_of(animals_rows(corruptions=("blur",)))
    assert draw_figures(results) == draw_figures(results)


@pytest.mark.parametrize(("rows", "words"), [([], "empty"), (all_products_rows(), "all-products")])
def test_nothing_to_draw(rows, words):
    with pytest.raises(ValueError, match=words):
        draw_figures(results_of(rows))


def test_importing_needs_no_matplotlib_and_drawing_says_so():
    code = (
        "import sys\n"
        "sys.modules['matplotlib'] = None\n"
        "from sourcewise.experiments.figures import draw_figures\n"
        "try:\n"
        "    draw_figures(None)\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == f"Figures need matplotlib: {how_to_install('report')}.\n"
