"""What `python -m benchmarks.coverage` draws, and what it calls true."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.accuracy.data import REFERENCE  # noqa: E402
from benchmarks.coverage import __main__ as command  # noqa: E402
from benchmarks.coverage.data import CASES, Case, World, dealt  # noqa: E402
from benchmarks.coverage.redraws import SHARE, noise_of, spoil  # noqa: E402
from benchmarks.coverage.statements import (  # noqa: E402
    bars_of_sources,
    held,
    of_errors,
    of_sources,
    table,
)

MADE_UP = Case("made up", lambda folder: None, natural=True)
RNG = np.random.default_rng(0)
WORLD = World(
    (RNG.normal(size=(300, 2)), np.arange(300)),
    tuple((RNG.normal(size=(80, 2)), 1000 * k + np.arange(80)) for k in (1, 2, 3)),
)


def test_redraws_take_other_rows_of_the_same_target_and_sources():
    one, other = WORLD.draw(0), WORLD.draw(1)
    for draw in (one, other):
        trusted = draw.y[draw.sources == REFERENCE]
        assert len(trusted) == 60 and not set(trusted) & set(draw.y_test)
        assert {label // 1000 for label in draw.y[draw.sources == "source 1"]} == {2}
        assert np.sum(draw.sources == "source 1") == 40  # half of a small source
    assert set(one.y) != set(other.y)


def test_some_of_the_target_is_left_for_fresh_rows():
    draw = WORLD.draw(0, trusted=1000)
    assert np.sum(draw.sources == REFERENCE) == 200
    assert len(draw.y_test) == 100


def test_every_class_is_among_the_trusted_rows():
    y = np.repeat(np.arange(10), 12)
    world = World((RNG.normal(size=(120, 2)), y), ())
    for seed in range(10):
        draw = world.draw(seed, trusted=20)
        assert set(draw.y[draw.sources == REFERENCE]) == set(range(10))


def test_no_error_in_a_few_fresh_rows_is_no_proof_that_there_is_none():
    assert noise_of(np.zeros(50), ()) == 0.0
    assert 0.02 < noise_of(np.zeros(50), SHARE) < 0.03
    values = np.random.default_rng(0).normal(size=100)
    assert noise_of(values, ()) == pytest.approx(values.std(ddof=1) / 10.0)


@pytest.mark.parametrize(
    ("truth", "noise", "so"),
    [(0.09, 0.0, True), (0.39, 0.0, True), (0.41, 0.0, False), (0.05, 0.0, False)]
    + [(0.05, 0.03, True), (0.05, 0.01, False), (0.42, 0.06, True)],
)
def test_the_noise_of_fresh_rows_is_added_to_the_side_they_are_on(truth, noise, so):
    one = {
        "errors": {"all": [0.08, 0.1, 0.4]},
        "fresh": {"all": truth},
        "noise": {"all": noise},
    }
    assert held(one, "errors", "all") == so


def test_half_of_the_labels_of_every_second_source_are_exchanged():
    draw = WORLD.draw(0)
    spoilt = spoil(draw, 0)
    changed = draw.y != spoilt.y
    assert set(draw.sources[changed]) == {"source 1"}
    assert 10 <= changed.sum() <= 20
    np.testing.assert_array_equal(np.sort(spoilt.y), np.sort(draw.y))


def test_sources_dealt_at_random_share_no_row():
    world = dealt(np.arange(100)[:, None], np.arange(100), 3, 20)
    rows = np.concatenate([world.target[1], *(y for _, y in world.sources)])
    assert sorted(rows) == list(range(100))


def test_coverage_is_counted_around_the_mean_over_redraws():
    redraws = [
        {
            "discrepancies": [0.1 + off, 0.2],
            "standard_errors": [0.01, 0.01],
            "p_values": [0.5, 0.01],
            "detectable": 0.15,
            "power": [0.9],
        }
        for off in (-0.05, 0.0, 0.05)
    ]
    found = of_sources(MADE_UP, redraws)
    assert found["held"] == pytest.approx(4 / 6)
    assert (found["natural"], found["found"], found["said"]) == (0.0, 1.0, pytest.approx(0.9))
    assert (found["above"], found["above found"]) == (1, 1.0)


def test_power_is_held_against_what_was_said_on_both_sides():
    lines = [
        {"held": 1.0, "said": said, "found": found} for said, found in ((0.5, 0.45), (0.2, 0.9))
    ]
    _, less, more = bars_of_sources(lines)
    assert less[2:] == ("-0.32, +0.05", "yes")
    assert more[2:] == ("+0.32, +0.70", "NO")


def test_a_claim_is_wrong_where_fresh_rows_say_otherwise():
    def redraw(high, truth):
        return {
            "errors": {"reference only": [0.1, 0.2, 0.3]},
            "differences": {"reference only": [-0.2, -0.1, high]},
            "fresh": {"reference only": 0.25, "less reference only": truth},
            "noise": {"reference only": 0.0, "less reference only": 0.0},
        }

    # The second's interval lies below 0, but not by its own length.
    redraws = [redraw(0.1, 0.5), redraw(-0.01, -0.1), redraw(-0.06, -0.1), redraw(-0.06, 0.01)]
    found = of_errors(MADE_UP, redraws)
    assert (found["claimed"], found["wrong"]) == (2, 1)
    assert found["errors"] == 1.0
    assert found["differences"] == pytest.approx(1 / 2)


def test_the_command_runs_and_continues(tmp_path, capsys):
    options = ["--only", "wine", "--part", "sources", "--results", str(tmp_path)]
    for redraws in (1, 2):
        command.main([*options, "--redraws", str(redraws)])
        lines = (tmp_path / "wine.sources.jsonl").read_text().splitlines()
        assert [json.loads(line)["seed"] for line in lines] == list(range(redraws))
    assert "Statements about sources" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--report", "--only", "wine", "--results", str(tmp_path / "nowhere")])


def test_data_that_is_not_there_is_left_out(tmp_path):
    with pytest.raises(SystemExit):
        command.main(["--only", "awa1", "--data", str(tmp_path), "--results", str(tmp_path)])
    assert not list(Path(tmp_path).glob("*.jsonl"))
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("part", ["sources", "errors"])
def test_the_page_shows_what_the_published_redraws_hold(part):
    folder = Path(command.__file__).with_name("published")
    page = Path(command.__file__).parents[2] / "docs" / "accuracy.md"
    found = {case: command.read(folder / command.file_name(case, part)) for case in CASES}
    assert all(found.values())
    assert table(part, found) in page.read_text(encoding="utf-8")
