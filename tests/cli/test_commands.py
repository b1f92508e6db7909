from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import read_csv

import sourcewise as sw
from cli.running import BAD, NAMES, TOLD, environment, make_rows, run, run_here, write_csv
from sourcewise.extras import how_to_install


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TestHelp:
    def test_newcomers_are_told_where_to_start(self):
        shown = run("--help")
        assert shown.code == 0
        for word in ("demo", "audit", "fit", "predict", "export", "Start with sourcewise demo"):
            assert word in shown.out

    @pytest.mark.parametrize("command", ["audit", "fit"])
    def test_every_option_of_the_contract_is_there(self, command):
        shown = run_here(command, "--help").out
        contract = (
            "label source reference reference-file features drop task discrepancy trade-off "
            "protocol scaling seed jobs quiet json output"
        )
        for option in contract.split(" "):
            assert f"--{option}" in shown

    def test_the_demo_has_a_folder_unless_told(self):
        assert "sourcewise-demo" in run_here("demo", "--help").out

    def test_version(self):
        assert run("--version").out == f"sourcewise {sw.__version__}\n"


class TestAudit:
    def test_json_is_all_there_is_on_standard_output(self, audited):
        result, _ = audited
        assert result.code == 0
        assert result.err == ""
        content = strict(result.out)
        assert content["verdict"]["sentence"] == (
            "2 of 3 sources agree with your reference; 1 is set aside."
        )
        assert [row["source"] for row in content["sources"]][0] == "gold"
        assert {row["source"] for row in content["sources"]} == set(NAMES)
        assert content["set_aside"][0]["source"] == BAD
        assert content["set_aside"][0]["kind"] == "flipped labels"
        assert content["made_by"]["seed"] == "0"
        assert content["made_by"]["command"].startswith("sourcewise audit ")

    def test_errors_are_ordered_as_they_should_be(self, audited):
        errors = {m["name"]: m for m in strict(audited[0].out)["errors"]["methods"]}
        assert list(errors) == ["reference only", "everything", "sourcewise"]
        assert errors["sourcewise"]["error"] <= errors["everything"]["error"]
        for method in errors.values():
            assert 0 <= method["low"] <= method["error"] <= method["high"] <= 1

    def test_columns_are_accounted_for(self, audited):
        done = {c["column"]: c["treatment"] for c in strict(audited[0].out)["columns"]}
        assert list(done) == ["size", "weight", "colour", "fragile"]
        assert done["size"].startswith("as it is")
        assert "with a column that says so" in done["weight"]
        assert done["colour"] == "3 categories, a column each"
        assert done["fragile"].startswith("true is 1, false is 0")

    def test_page_is_small_and_asks_for_nothing(self, audited):
        text = audited[1].read_text(encoding="utf-8")
        assert len(text) < 1.5e6
        assert "default-src 'none'" in text
        for word in ("http://", "https://", "@import", "src="):
            assert word not in text

    def test_names_cannot_become_markup(self, audited):
        text = audited[1].read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text

    def test_words_for_people(self, table, folder):
        shown = run_here("audit", table, *TOLD, "--trade-off", "theory")
        assert shown.code == 0
        assert shown.out.splitlines()[0].endswith("1 is set aside.")
        assert "Expected error rate (5-fold on 60 trusted rows):" in shown.out
        assert max(map(len, shown.out.splitlines())) <= 80

    def test_data_instead_of_a_page(self, table, tmp_path):
        done = run_here(
            "audit", table, *TOLD, "--trade-off", "theory", "-o", tmp_path / "r.json", "-q"
        )
        assert (done.code, done.out, done.err) == (0, "", "")
        assert strict((tmp_path / "r.json").read_text())["trade_off"] == pytest.approx(
            4.44, abs=0.01
        )


class TestFit:
    def test_weights_are_written(self, fitted):
        result, _, path = fitted
        assert result.code == 0
        assert result.err == ""
        lines = read(path)
        assert list(lines[0]) == [
            "source",
            "rows",
            "weight",
            "discrepancy",
            "p_value",
            "reason",
            "row_weight",
        ]
        weights = {line["source"]: float(line["weight"]) for line in lines}
        assert set(weights) == set(NAMES)
        assert sum(weights.values()) == pytest.approx(1.0)
        assert weights[BAD] == 0.0

    def test_row_weights_average_one_and_share_as_sources_do(self, fitted):
        lines = read(fitted[2])
        rows = np.array([float(line["rows"]) for line in lines])
        per_row = np.array([float(line["row_weight"]) for line in lines])
        assert rows @ per_row / rows.sum() == pytest.approx(1.0)
        shares = rows * per_row / rows.sum()
        assert shares == pytest.approx([float(line["weight"]) for line in lines])

    def test_model_takes_raw_tables_in_python_too(self, fitted, table):
        model = sw.load(fitted[1])
        found = model.predict(read_csv(table))
        assert set(found) == {"keep", "return"}
        assert model.report().sources[0].source == "gold"
        assert model.sources_[0] == "gold"
        assert model.source_weights_.sum() == pytest.approx(1.0)

    def test_json(self, table, tmp_path):
        done = run_here(
            "fit", table, *TOLD, "--trade-off", "2", "-o", tmp_path / "m.skops", "--json"
        )
        content = strict(done.out)
        assert content["trade_off"] == 2.0
        assert content["shares"] == [{"trade_off": 2.0, "share": 1.0}]
        assert len(content["sources"]) == 4

    def test_same_seed_same_file_of_weights(self, table, tmp_path):
        for name in "ab":
            done = run_here(
                *("fit", table, *TOLD, "--trade-off", "theory", "--seed", "3"),
                *("-o", tmp_path / f"{name}.skops", "--weights", tmp_path / f"{name}.csv", "-q"),
            )
            assert done.code == 0
        assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()

    def test_paper_protocol_and_other_discrepancies(self, table, tmp_path):
        out = ("-o", tmp_path / "m.skops", "--json")
        paper = strict(run_here("fit", table, *TOLD, "--protocol", "paper", *out).out)
        other = strict(run_here("fit", table, *TOLD, "--discrepancy", "cross-fit", *out).out)
        for content in (paper, other):
            far = {row["source"]: row["discrepancy"] for row in content["sources"]}
            assert far[BAD] > max(far["north"], far["south"])

    @pytest.mark.parametrize(
        ("how", "words"), [("standard", "standardised"), ("keep", "keep their proportions")]
    )
    def test_the_report_names_the_scaling_that_was_asked_for(self, how, words, table, tmp_path):
        shown = run_here("fit", table, *TOLD, "--scaling", how, "-o", tmp_path / "m.skops").out
        assert f"{words} by the reference (scaling)" in shown or f"{words} (scaling)" in shown


class TestOtherTables:
    def test_reference_file_and_folder_of_parquet_and_numbers(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 4)).astype(np.float32)
        y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=500)
        y[300:] *= -1
        columns = {f"x{j}": X[:, j] for j in range(4)}
        lab = np.repeat([0, 7, 9], [100, 200, 200])
        whole = pa.table({**columns, "y": y, "lab": lab})
        (tmp_path / "labs").mkdir()
        parquet.write_table(whole.slice(100, 250), tmp_path / "labs" / "a.parquet")
        parquet.write_table(whole.slice(350), tmp_path / "labs" / "b.parquet")
        parquet.write_table(whole.slice(0, 100).drop_columns("lab"), tmp_path / "gold.parquet")
        done = run_here(
            *("fit", tmp_path / "labs", "--label", "y", "--source", "lab"),
            *("--reference-file", tmp_path / "gold.parquet", "-o", tmp_path / "m.skops", "--json"),
        )
        content = strict(done.out)
        weights = {row["source"]: row["weight"] for row in content["sources"]}
        assert list(weights) == ["reference", "7", "9"]
        assert weights["9"] == 0.0 < weights["7"]
        new = run_here(
            "predict", tmp_path / "m.skops", tmp_path / "labs", "-o", tmp_path / "p.parquet"
        )
        assert new.code == 0
        predicted = parquet.read_table(tmp_path / "p.parquet")
        assert predicted.column_names == ["prediction"]
        assert predicted.num_rows == 400
        found = np.corrcoef(predicted["prediction"].to_numpy()[:200], y[100:300])[0, 1]
        assert found > 0.95

    def test_small_sources_can_be_left_out(self, tmp_path):
        columns = make_rows()
        columns["vendor"][-1] = "lonely"
        table = write_csv(tmp_path / "d.csv", columns)
        done = run_here(
            *("fit", table, *TOLD, "--min-rows", "2", "--trade-off", "theory"),
            *("-o", tmp_path / "m.skops", "--json"),
        )
        assert [row["source"] for row in strict(done.out)["sources"]] == list(NAMES)

    @pytest.mark.parametrize("delimiter", [";", "\t"])
    def test_other_delimiters(self, tmp_path, delimiter):
        text = (write_csv(tmp_path / "d.csv", make_rows())).read_text()
        (tmp_path / "d.csv").write_text(text.replace(",", delimiter))
        done = run_here(
            "fit", tmp_path / "d.csv", *TOLD, "--trade-off", "1", "-o", tmp_path / "m.skops"
        )
        assert done.code == 0


class TestPredict:
    def test_probabilities_beside_kept_columns(self, fitted, table, tmp_path):
        done = run("predict", fitted[1], table, "-o", tmp_path / "p.csv", "--keep", "vendor")
        assert done.code == 0
        assert done.out == f"420 predictions: {tmp_path / 'p.csv'}\n"
        lines = read(tmp_path / "p.csv")
        assert list(lines[0]) == ["vendor", "prediction", "probability_keep", "probability_return"]
        for line in lines[:20]:
            shares = {k: float(line[f"probability_{k}"]) for k in ("keep", "return")}
            assert sum(shares.values()) == pytest.approx(1.0)
            assert line["prediction"] == max(shares, key=shares.get)

    def test_new_categories_and_gaps_are_no_obstacle(self, fitted, tmp_path):
        rows = {
            "size": ["", "1.5", "-2"],
            "weight": ["12", "", "9"],
            "colour": ["violet", "red", ""],
            "fragile": ["true", "", "false"],
        }
        new = write_csv(tmp_path / "new.csv", rows)
        assert run_here("predict", fitted[1], new, "-o", tmp_path / "p.csv").code == 0
        assert len(read(tmp_path / "p.csv")) == 3


class TestExport:
    def test_nvflare(self, fitted):
        weights = strict(run("export", fitted[1], "--to", "nvflare").out)["aggregation_weights"]
        assert set(weights) == set(NAMES)
        assert sum(weights.values()) == pytest.approx(1.0)

    def test_nvflare_before_the_aggregator_multiplies_by_steps(self, fitted):
        once = strict(run_here("export", fitted[1], "--to", "nvflare").out)["aggregation_weights"]
        each = strict(run_here("export", fitted[1], "--to", "nvflare", "--per-step").out)
        rows = {line["source"]: float(line["rows"]) for line in read(fitted[2])}
        total = {k: rows[k] * v for k, v in each["aggregation_weights"].items()}
        assert {k: v / sum(total.values()) for k, v in total.items()} == pytest.approx(once)

    def test_json_to_a_file(self, fitted, tmp_path):
        done = run_here("export", fitted[1], "-o", tmp_path / "w.json")
        assert (done.code, done.out) == (0, "")
        content = strict((tmp_path / "w.json").read_text())
        assert len(content["sources"]) == 4
        assert sum(part["share"] for part in content["shares"]) == pytest.approx(1.0)


class TestInstallation:
    def test_the_library_needs_none_of_the_commands_packages(self):
        code = (
            "import sys\n"
            "for name in ('typer', 'rich', 'pyarrow', 'matplotlib', 'pandas', 'skops'):\n"
            "    sys.modules[name] = None\n"
            "import sourcewise, sourcewise.report, sourcewise.tables, sourcewise.audit\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    @pytest.mark.parametrize("name", ["typer", "rich", "pyarrow"])
    def test_what_is_missing_is_said_in_a_sentence(self, name):
        code = (
            "import sys\n"
            f"sys.modules[{name!r}] = None\n"
            "from sourcewise.cli import main\n"
            "sys.exit(main(['audit', sys.executable, '--label', 'a', '--source', 'b']))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
        )
        assert done.returncode == 2
        assert done.stdout == ""
        assert f"which is not installed: {how_to_install('cli')}." in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
