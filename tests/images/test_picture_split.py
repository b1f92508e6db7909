"""The two parts of an archive have its pictures, each once, in its order."""

import numpy as np
import pytest

pytest.importorskip("PIL")

from benchmarks.pictures import split

from images.made_up_pictures import encoded, pixels
from sourcewise.images import open_pictures
from sourcewise.images.feature_files import read_attributes


def test_the_parts_are_the_whole(tmp_path):
    contents = [encoded(pixels(seed=k)) for k in range(5)]
    np.savez(
        tmp_path / "whole.npz",
        blob=np.frombuffer(b"".join(contents), dtype=np.uint8),
        offsets=np.cumsum([0, *map(len, contents)]),
        y=[0, 1, 1, 0, 1],
        classes=["cat", "ship"],
    )
    split(tmp_path / "whole.npz", tmp_path / "parts", 3)
    parts = [open_pictures(tmp_path / "parts" / f"{k}.npz") for k in ("study", "background")]
    assert [*parts[0].content, *parts[1].content] == contents
    assert [*parts[0].classes, *parts[1].classes] == ["cat", "ship", "ship", "cat", "ship"]
    found = read_attributes(tmp_path / "parts" / "animals.csv")
    assert found.values.ravel().tolist() == [1, 0]
