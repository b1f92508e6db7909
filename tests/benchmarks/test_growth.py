"""The benchmark of growth: lines, slopes, and the picture."""

import json

import pytest

pytest.importorskip("matplotlib")

from benchmarks import growth  # noqa: E402


def tiny(name):
    """Return a line of the benchmark at two small sizes."""
    pools = {
        "features": lambda d: growth.wide_pool(3, 30, d),
        "classes": lambda n: growth.class_pool(3, 60, 5, n, 1),
    }
    return growth.Line(f"{name} (tiny)", (2, 4) if name == "classes" else (5, 10), pools[name])


def test_the_slope_is_the_power_of_growth():
    sizes = (10, 100, 1000)
    assert growth.slope(sizes, [3.0 * size**1.1 for size in sizes]) == pytest.approx(1.1)


def test_the_lines_are_those_that_were_promised():
    assert growth.LINES["features"].sizes == (50, 200, 1_000, 5_000)
    assert growth.LINES["classes"].sizes == (2, 5, 10, 20, 50)
    assert list(growth.LINES) == ["rows", "sources", "features", "classes"]
    assert growth.LINES["rows"].pool(1_200).X.shape == (1_200, growth.COLUMNS)
    assert growth.LINES["sources"].pool(6).X.shape == (600, growth.COLUMNS)
    assert growth.LINES["features"].pool(50).X.shape == (4_000, 50)
    assert len(set(growth.LINES["classes"].pool(10).y.tolist())) == 10


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_lines_are_measured_written_and_drawn(suffix, tmp_path, monkeypatch, capsys):
    for name in ("features", "classes"):
        monkeypatch.setitem(growth.LINES, name, tiny(name))
    plot, numbers = tmp_path / f"growth.{suffix}", tmp_path / "growth.json"
    growth.main(["--only", "features", "classes", "--plot", str(plot), "--json", str(numbers)])
    result = json.loads(numbers.read_text())
    assert result["features"]["sizes"] == [5, 10] and len(result["classes"]["seconds"]) == 2
    assert capsys.readouterr().out.count("slope") == 2
    assert plot.stat().st_size > 1000


def test_a_picture_of_three_lines_has_no_empty_axes(tmp_path):
    line = {"title": "a", "sizes": [1, 10], "seconds": [1.0, 9.0], "slope": 0.95}
    growth.draw(tmp_path / "three.svg", dict.fromkeys("abc", line))
    assert (tmp_path / "three.svg").read_text().count("slope 0.95") == 3
