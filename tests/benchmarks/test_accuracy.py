"""The accuracy benchmark: its design, and how it counts."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

from benchmarks.accuracy import report, summary  # noqa: E402
from benchmarks.accuracy.__main__ import main  # noqa: E402
from benchmarks.accuracy.data import DATA_SETS, REFERENCE, Absent, TooFewRows  # noqa: E402
from benchmarks.accuracy.design import (  # noqa: E402
    CORRUPTIONS,
    SHARES,
    Cell,
    cells_of,
    corrupt,
    data_set,
    is_development,
)
from benchmarks.accuracy.runner import (  # noqa: E402
    available,
    execute,
    extremes_plan,
    plan,
    quick_plan,
    without_prose,
    without_too_small,
)
from benchmarks.accuracy.variants import (  # noqa: E402
    OPTIONS,
    VARIANTS,
    changed,
    constants,
    half_and_double,
    with_changes,
)

from sourcewise import SourceWeightedClassifier  # noqa: E402
from sourcewise.core.choices import DEFAULT  # noqa: E402

NOWHERE = Path("there is no such folder")
BUNDLED = [data for data in DATA_SETS if data.name in ("digits, odd or even", "breast cancer")]


def test_the_grid_has_every_corruption_at_every_share():
    for data in DATA_SETS:
        cells = [cell for cell in cells_of(data) if cell.variation == "grid"]
        wanted = {("none", 0.0)} | {(c, s) for c in CORRUPTIONS for s in SHARES if s}
        assert Counter((cell.corruption, cell.bad) for cell in cells) == Counter(wanted)


def test_variations_change_one_thing_at_a_time():
    standard = Cell("wine", "none", 0.0)
    for cell in cells_of(data_set("wine")):
        changed = [
            cell.corrupted != standard.corrupted,
            cell.reference != standard.reference,
            cell.uneven != standard.uneven,
        ]
        assert sum(changed) == (cell.variation != "grid")


def test_choices_may_be_made_on_half_of_the_data_sets_and_half_of_the_seeds_only():
    halves = [[is_development(data, seed) for seed in range(20)] for data in DATA_SETS]
    assert Counter(sum(seeds) for seeds in halves) == {10: 5, 0: 5}


def test_the_quick_runs_still_meet_everything():
    runs = quick_plan(DATA_SETS, range(20))
    assert len(runs) <= 0.1 * len(plan(DATA_SETS, range(20)))
    every = {cell for data in DATA_SETS for cell in cells_of(data)}
    assert len({cell for cell, _ in runs}) > 0.9 * len(every)
    assert {cell.data for cell, _ in runs} == {data.name for data in DATA_SETS}
    assert {cell.corruption for cell, _ in runs} == {"none", *CORRUPTIONS}
    assert {cell.variation for cell, _ in runs} == {c.variation for c in cells_of(DATA_SETS[0])}


def test_the_extremes_are_all_cells_with_nothing_to_find_out():
    runs = extremes_plan(DATA_SETS, range(3))
    fast = [data for data in DATA_SETS if data.varied]
    wanted = {cell for data in fast for cell in cells_of(data) if cell.bad in (0.0, 1.0)}
    assert Counter(runs) == Counter((cell, seed) for cell in wanted for seed in range(3))


@pytest.mark.parametrize("data", BUNDLED, ids=lambda data: data.name)
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_only_bad_sources_are_touched(data, corruption):
    cell = Cell(data.name, corruption, 0.4)
    clean = data.draw(NOWHERE, 3, 100, False)
    spoiled, bad = corrupt(clean, cell, data, 3)
    assert len(bad) == 4 and REFERENCE not in bad
    changed = (spoiled.X != clean.X).any(axis=1) | (spoiled.y != clean.y)
    assert set(clean.sources[changed]) <= set(bad)
    assert len(set(clean.sources[changed])) == 4
    assert spoiled.X_test is clean.X_test and spoiled.y_test is clean.y_test


def test_rows_are_in_one_place_only():
    draw = BUNDLED[0].draw(NOWHERE, 1, 100, True)
    rows = np.concatenate([draw.X, draw.X_test])
    assert np.sum(draw.sources == REFERENCE) == 100
    assert min(Counter(draw.sources.tolist()).values()) == 10
    # Digits has few duplicates of its own; overlapping parts would have hundreds.
    assert len(np.unique(rows, axis=0)) > 0.99 * len(rows)


def test_absent_data_is_named_and_left_out():
    there, missing = available([data_set("wine"), data_set("awa1")], NOWHERE)
    assert [data.name for data in there] == ["wine"]
    assert len(missing) == 1 and missing[0].startswith("awa1 is left out: ")
    with pytest.raises(Absent):
        data_set("heart").draw(NOWHERE, 0, 100, False)


def test_a_data_set_that_is_too_small_for_a_cell_says_so():
    with pytest.raises(TooFewRows):
        data_set("wine").draw(NOWHERE, 0, 300, False)


def test_cells_too_large_for_the_data_are_named_and_left_out():
    runs, why = without_too_small(plan([data_set("wine")], [0, 1]), NOWHERE)
    assert {cell.reference for cell, _ in runs} == {100, 30}
    assert any("wine is too small for '300 trusted'" in words for words in why)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--only", "wine", "wein"], "there is no data set 'wein'"),
        (["--seeds", "0"], "at least 1"),
        (["--jobs", "0"], "at least 1"),
        (["--report"], "there are no results at"),
        (["--only", "awa1", "--data", "nowhere"], "nothing is left to run"),
        (["--variants", "--only", "wine"], "nothing is left to run"),
    ],
)
def test_mistakes_get_a_sentence(arguments, sentence, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([*arguments, "--results", str(tmp_path)])
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_holds_no_results_is_left_alone(tmp_path):
    path = tmp_path / "runs.parquet"
    path.write_text("junk")
    with pytest.raises(SystemExit, match="cannot be read as Parquet"):
        main(["--only", "wine", "--results", str(tmp_path)])
    assert path.read_text() == "junk"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(SystemExit, match="holds no results"):
        main(["--report", "--results", str(tmp_path)])


def test_one_draw_a_cell_gives_tables_without_standard_errors(tmp_path, capsys):
    results = made_up([0.0, 0.03], n_seeds=1).assign(code="x", corrupted=1.0, reference=100)
    results.assign(uneven=False, data="wine").to_parquet(tmp_path / "quick.parquet")
    main(["--quick", "--report", "--results", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "other code than the present" in printed
    assert "significantly" not in printed and "nan" not in printed
    assert "nan" not in (tmp_path / "quick" / "wine.md").read_text()
    assert (tmp_path / "quick" / "heat-map.png").exists()


def made_up(differences, spread=0.01, n_seeds=20):
    """Results in which the default's error exceeds every other method's by given amounts."""
    noise = np.random.default_rng(0).normal(scale=spread, size=n_seeds)
    noise -= noise.mean()
    rows = []
    for k, difference in enumerate(differences):
        for seed in range(n_seeds):
            common = {"data": "made up", "variation": "grid", "corruption": f"c{k}", "bad": 0.4}
            common |= {"seed": seed, "natural": False, "development": seed < n_seeds // 2}
            common |= {"auc": 1.0, "cpu_seconds": 0.1, "clean_below_005": 0.05}
            for method in ("sourcewise", "paper", "reference only", "all data", "oracle"):
                extra = difference if method == "sourcewise" else 0.0
                rows.append({**common, "method": method, "error": 0.2 + noise[seed] + extra})
    return pd.DataFrame(rows)


def test_counting_on_made_up_numbers():
    # Spreads are .01 each: the paper's rule wants differences beyond .02. The noise of a run is the
    # same for both methods, so the paired rule sees everything beyond .005.
    results = made_up([-0.03, -0.01, 0.0, 0.004, 0.01, 0.03])
    comparison = summary.compare_with(results, "all data")
    assert str(summary.count_abc(results, "all data")) == "1/4/1"
    assert summary.count_paired(comparison) == (2, 2, 2)


def test_regret_is_the_distance_of_the_means():
    results = made_up([0.0, 0.03])
    regret = summary.regrets(results)["sourcewise"]
    np.testing.assert_allclose(regret, [0.0, 0.03], atol=1e-12)
    average, worst = summary.lines(results)[:2]
    assert average.found == pytest.approx(0.015)
    assert worst.found == pytest.approx(0.03)
    assert (worst.broken_in, worst.of) == (1, 2) and "c1" in worst.where


def test_a_mean_auc_of_just_what_is_asked_for_holds_the_line():
    results = made_up([0.0, 0.0])
    results.loc[results["method"] == "all data", "error"] += 0.1  # bad sources do harm
    for auc, held in (({"c0": 0.98, "c1": 0.96}, True), ({"c0": 0.98, "c1": 0.95}, False)):
        results["auc"] = results["corruption"].map(auc)
        (line,) = (line for line in summary.lines(results) if "AUC" in line.promise)
        assert (line.found <= line.limit) == held


def cells_of_table(table):
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def test_extremes_are_compared_with_the_choice_that_is_right_there():
    results = made_up([0.0, 0.004, 0.01])
    results["bad"] = results["corruption"].map({"c0": 0.0, "c1": 1.0, "c2": 1.0})
    # Against the choice that is wrong there, the default may look as good or bad as it likes.
    wrong = (results["method"] == "all data") & (results["bad"] == 1.0)
    results.loc[wrong, "error"] += 0.3
    rows = cells_of_table(report.extremes_table(results))
    assert rows == [
        ["made up, grid, c2, 100% bad", "reference only", "+0.0100 ± 0.0000"],
        ["made up, grid, c1, 100% bad", "reference only", "+0.0040 ± 0.0000"],
        ["made up, grid, c0, 0% bad", "all data", "+0.0000 ± 0.0000"],
    ]
    assert cells_of_table(report.extremes_table(results, beyond=0.005)) == rows[:1]
    found = [row[1:5] for row in cells_of_table(report.extremes_lines(results))]
    assert found == [
        ["0.000", "+0.0070", "NO", ""],  # the mean where all are bad
        ["0.012", "+0.0100", "yes", "0 of 2"],
        ["0.006", "+0.0000", "yes", "0 of 1"],
    ]


def test_the_extremes_run_and_are_read_again(tmp_path, capsys):
    arguments = ["--extremes", "--only", "wine", "--seeds", "1", "--jobs", "1"]
    main([*arguments, "--results", str(tmp_path)])
    computed = capsys.readouterr().out
    results = pd.read_parquet(tmp_path / "extremes.parquet")
    assert set(results["method"]) == {"sourcewise", "paper", "reference only", "all data", "oracle"}
    assert set(results["bad"]) == {0.0, 1.0}
    main([*arguments, "--report", "--results", str(tmp_path)])
    table = report.extremes_table(results)
    assert table in computed and table in capsys.readouterr().out


@pytest.mark.parametrize("data", BUNDLED, ids=lambda data: data.name)
def test_the_solvers_tolerance_changes_no_prediction(data):
    draw, _ = corrupt(
        data.draw(NOWHERE, 5, 100, False), Cell(data.name, "flip_labels", 0.4), data, 5
    )
    for protocol in (None, "paper"):
        model = SourceWeightedClassifier(reference=REFERENCE, random_state=5, protocol=protocol)
        shipped = model.fit(draw.X, draw.y, sources=draw.sources).predict(draw.X_test)
        with changed({}):
            found = model.fit(draw.X, draw.y, sources=draw.sources).predict(draw.X_test)
        np.testing.assert_array_equal(found, shipped)


def test_every_constant_can_be_varied():
    known = constants()
    numbers = [name for name, value in vars(DEFAULT).items() if type(value) in (int, float)]
    assert sorted(known) == sorted(numbers)
    variants = half_and_double(list(known))
    assert len(variants) == 2 * len(known)
    for changes in [*variants.values(), *VARIANTS.values()]:
        (name, value), found = next(iter(changes.items())), with_changes(changes)
        if name not in OPTIONS:
            assert getattr(found, name) == value


def test_a_changed_constant_moves_the_model():
    draw = BUNDLED[0].draw(NOWHERE, 5, 100, False)
    draw, _ = corrupt(draw, Cell(BUNDLED[0].name, "flip_labels", 0.4), BUNDLED[0], 5)
    found = []
    for changes in ({}, {"pulled": 1.0}):
        with changed(changes):
            model = SourceWeightedClassifier(reference=REFERENCE, random_state=5)
            found.append(model.fit(draw.X, draw.y, sources=draw.sources).discrepancies_)
    assert (found[1] > found[0] + 1e-3).any()


def test_the_overview_shows_both_halves_and_every_method():
    text = report.overview(made_up([0.0, 0.03]))
    for words in (
        "Development: 20 runs",
        "Confirmation: 20 runs",
        "Both: 40 runs",
        "all data",
        "NO",
    ):
        assert words in text


def test_prose_does_not_count_as_code():
    code = "def f(body):\n    'Doc.'\n    return [b'x', body]  # why\n"
    assert without_prose(code) == without_prose(code.replace("Doc.", "Other.").replace("why", "!"))
    assert without_prose(code) != without_prose(code.replace("b'x'", "b'y'"))


def test_a_run_is_continued_and_not_mixed_with_other_code(tmp_path):
    path = tmp_path / "results" / "runs.parquet"
    runs = [(Cell("wine", "none", 0.0, reference=30), seed) for seed in (0, 1)]
    said = []
    first = execute(runs[:1], path, NOWHERE, jobs=1, say=said.append)
    both = execute(runs, path, NOWHERE, jobs=1, say=said.append)
    assert any("1 runs are there already, 1 are to do" in line for line in said)
    pd.testing.assert_frame_equal(both.iloc[: len(first)], first)
    assert set(both["seed"]) == {0, 1}
    first.assign(code="another").to_parquet(path)
    with pytest.raises(SystemExit, match="computed by other code"):
        execute(runs, path, NOWHERE, jobs=1)


def test_two_processes_write_what_one_does(tmp_path):
    runs = [(Cell("wine", "none", 0.0, reference=30), seed) for seed in range(7)]
    one, two = (
        execute(runs, tmp_path / f"{jobs}.parquet", NOWHERE, jobs=jobs, say=[].append)
        for jobs in (1, 2)
    )
    times = ["cpu_seconds"]  # timed for the first seed only
    pd.testing.assert_frame_equal(two.drop(columns=times), one.drop(columns=times))
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "2.parquet"), two)


def test_stopped_it_keeps_what_is_finished(tmp_path):
    runs = [(Cell("wine", "none", 0.0, reference=30), seed) for seed in range(3)]
    path = tmp_path / "runs.parquet"

    def stopped_at_two(data, draw, bad, seed):
        if seed == 2:
            raise KeyboardInterrupt
        yield {"method": "all data", "error": 0.1}

    with pytest.raises(KeyboardInterrupt):
        execute(runs, path, NOWHERE, jobs=1, fit_and_judge=stopped_at_two)
    assert pd.read_parquet(path)["seed"].tolist() == [0, 1]
