"""Features from a network: equal to the definition in any batches; bad pictures set apart."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from images.made_up_pictures import as_tensor, colours, encoded, extractor, pixels  # noqa: E402
from sourcewise.corruption import blur, dead_pixels, swap_channels  # noqa: E402
from sourcewise.images import FeatureExtractor, Pictures, read_picture  # noqa: E402
from sourcewise.images import extractor as module  # noqa: E402
from sourcewise.progress import listening  # noqa: E402


def some(n=7):
    return [pixels(seed=k) for k in range(n)]


@pytest.mark.parametrize("batch_size", [1, 3, 7, 50])
def test_features_are_what_the_network_computes(batch_size):
    found = extractor(size=None, batch_size=batch_size).extract(some())
    expected = [colours(picture) for picture in some()]
    assert found.values.dtype == np.float32 and found.problems == {}
    np.testing.assert_allclose(found.values, expected, rtol=1e-4)


def test_pictures_of_different_sizes_go_through_one_network():
    pictures = [pixels(8, 9), pixels(16, 12, seed=1), pixels(8, 9, seed=2)]
    found = extractor(size=None).extract(pictures)
    np.testing.assert_allclose(found.values, [colours(p) for p in pictures], rtol=1e-4)
    found = extractor(size=8).extract(pictures)
    square = [colours(read_picture(p, size=8)) for p in pictures]
    np.testing.assert_allclose(found.values, square, rtol=1e-4)


def test_a_layer_is_taken_by_name_and_flattened():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten(), torch.nn.Linear(72, 4)
    )
    picture = pixels(8, 8)
    inner = FeatureExtractor(network, as_tensor, layer="0").extract([picture]).values
    with torch.inference_mode():
        expected = network[0](as_tensor(picture)[None]).reshape(1, -1).numpy()
    np.testing.assert_allclose(inner, expected, rtol=1e-4, atol=1e-3)
    assert FeatureExtractor(network, as_tensor).extract([picture]).values.shape == (1, 4)


@pytest.mark.parametrize(
    "name, corrupt",
    [("blur", blur), ("dead-pixels", dead_pixels), ("rgb-swap", swap_channels)],
)
def test_pictures_are_corrupted_at_their_size_before_all_else(name, corrupt):
    network = extractor(size=16)
    found = network.extract(some(3), corruption=name, seed=5)
    square = np.stack([read_picture(p, size=16) for p in some(3)])
    done = corrupt(square, [0, 0, 0], random_state=0).X
    # Dead pixels lie elsewhere under another seed: their mean is about the same.
    tolerance = 0.15 if name == "dead-pixels" else 1e-4
    expected = [colours(p) for p in done]
    np.testing.assert_allclose(found.values, expected, atol=tolerance)
    np.testing.assert_array_equal(
        found.values, network.extract(some(3), corruption=corrupt, seed=5).values
    )


def test_what_happens_to_a_picture_depends_on_its_name_alone():
    network, pictures = extractor(), Pictures(list("abcd"), some(4))
    whole = network.extract(pictures, corruption="dead-pixels", seed=1).values
    turned = network.extract(pictures.take([3, 1]), corruption="dead-pixels", seed=1).values
    np.testing.assert_allclose(turned, whole[[3, 1]], rtol=1e-5)
    other = network.extract(pictures, corruption="dead-pixels", seed=2).values
    assert (np.abs(other - whole) > 1e-6).any()


def test_one_bad_picture_does_not_lose_the_others():
    pictures = [pixels(), encoded(pixels(200, 200), "JPEG")[:-300], pixels(seed=2), b""]
    found = extractor().extract(pictures)
    assert list(found.problems) == [1, 3]
    assert found.problems[1].startswith("Picture 1 is a damaged JPEG picture")
    assert found.problems[3] == "Picture 3 is empty."
    assert np.isnan(found.values).all(axis=1).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(
        found.values[[0, 2]], extractor().extract([pictures[0], pictures[2]]).values
    )


def test_only_bad_pictures_have_no_features():
    found = extractor().extract([b"", b"x"])
    assert found.values.shape == (2, 0) and len(found.problems) == 2
    assert extractor().extract([]).values.shape == (0, 0)


def test_an_output_that_is_not_finite_is_a_problem_of_that_picture():
    class Divides(torch.nn.Module):
        def forward(self, batch):
            return 1 / batch.mean(dim=(1, 2, 3))[:, None]

    found = FeatureExtractor(Divides(), as_tensor).extract([pixels(), 0 * pixels()])
    assert found.problems == {1: "Picture 1: the network's output holds NaN or infinity."}


class TestGoingOn:
    @pytest.fixture(autouse=True)
    def small_shards(self, monkeypatch):
        monkeypatch.setattr(module, "SHARD_ROWS", 3)

    def files(self, tmp_path, n=8):
        for k in range(n):
            (tmp_path / f"{k}.png").write_bytes(encoded(pixels(seed=k)))
        return [tmp_path / f"{k}.png" for k in range(n)]

    def counted(self, monkeypatch):
        """Names of the pictures that are read."""
        names = []
        before = Pictures.read

        def read(pictures, position, size=None):
            names.append(pictures.names[position])
            return before(pictures, position, size)

        monkeypatch.setattr(Pictures, "read", read)
        return names

    def test_finished_parts_are_not_made_again(self, tmp_path, monkeypatch):
        paths, folder = self.files(tmp_path), tmp_path / "parts"
        whole = extractor().extract(paths).values
        first = extractor().shards(paths, folder=folder)
        next(first), next(first)
        del first  # interrupted after two of three parts
        names = self.counted(monkeypatch)
        np.testing.assert_array_equal(extractor().extract(paths, folder=folder).values, whole)
        assert names == [str(path) for path in paths[6:]]
        names.clear()
        np.testing.assert_array_equal(extractor().extract(paths, folder=folder).values, whole)
        assert names == []

    def test_mended_changed_and_damaged_pictures_are_read_again_and_no_other(
        self, tmp_path, monkeypatch
    ):
        paths, folder = self.files(tmp_path), tmp_path / "parts"
        paths[1].write_bytes(b"")
        found = extractor().extract(paths, folder=folder)
        assert list(found.problems) == [1]
        paths[1].write_bytes(encoded(pixels(seed=1)))
        paths[7].write_bytes(encoded(pixels(30, 40, seed=70)))
        names = self.counted(monkeypatch)
        found = extractor().extract(paths, folder=folder)
        assert names == [str(paths[1]), str(paths[7])] and found.problems == {}
        names.clear()
        np.testing.assert_array_equal(found.values, extractor().extract(paths).values)
        (folder / "00001.npy").write_bytes(b"cut off")
        names.clear()
        again = extractor().extract(paths, folder=folder)
        assert names == [str(path) for path in paths[3:6]]
        np.testing.assert_array_equal(again.values, found.values)

    def test_a_part_of_bad_pictures_only(self, tmp_path):
        paths, folder = self.files(tmp_path), tmp_path / "parts"
        for path in paths[:3]:
            path.write_bytes(b"")
        for _ in range(2):
            found = extractor().extract(paths, folder=folder)
            assert list(found.problems) == [0, 1, 2] and found.values.shape == (8, 6)
        paths[0].write_bytes(encoded(pixels(seed=0)))
        found = extractor().extract(paths, folder=folder)
        assert list(found.problems) == [1, 2] and np.isfinite(found.values[0]).all()

    def test_parts_made_in_another_way_are_refused(self, tmp_path):
        paths, folder = self.files(tmp_path, 2), tmp_path / "parts"
        extractor().extract(paths, folder=folder)
        for call, what in [
            (lambda: extractor(size=9).extract(paths, folder=folder), "network"),
            (lambda: extractor().extract(paths[:1], folder=folder), "pictures"),
            (lambda: extractor().extract(paths, folder=folder, corruption="blur"), "corruption"),
            (lambda: extractor().extract(paths, folder=folder, seed=1), "seed"),
        ]:
            with pytest.raises(ValueError, match=rf"other settings \({what} differs\)"):
                call()
        (folder / "made-by.json").write_text("[]")
        with pytest.raises(ValueError, match="does not say how"):
            extractor().extract(paths, folder=folder)

    def test_progress_counts_every_picture_once(self, tmp_path):
        heard = []
        with listening(lambda *said: heard.append(said)):
            extractor(batch_size=2).extract(self.files(tmp_path), folder=tmp_path / "parts")
        assert [done for _, done, _ in heard] == [2, 3, 5, 6, 8]
        assert {(stage, total) for stage, _, total in heard} == {("pictures", 8)}


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"layer": "head"}, "no layer 'head'; it has 'pool'"),
        ({"size": 0}, "size must be a whole number, at least 1; got 0"),
        ({"batch_size": 1.5}, "batch_size must be a whole number"),
        ({"batch_size": None}, "batch_size must be a whole number"),
    ],
)
def test_settings_that_make_no_sense_are_named(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        extractor(**arguments)


def test_other_misunderstandings_are_explained():
    with pytest.raises(ValueError, match=r"must be a torch\.nn\.Module; got str"):
        FeatureExtractor("resnet", as_tensor)
    network = extractor().module
    with pytest.raises(ValueError, match="preprocess must be a function"):
        FeatureExtractor(network, None)
    with pytest.raises(ValueError, match="preprocess returns must be one tensor; got ndarray"):
        FeatureExtractor(network, np.asarray).extract(some(1))
    with pytest.raises(ValueError, match=r"shape \(channels, height, width\)"):
        FeatureExtractor(network, lambda p: as_tensor(p)[None]).extract(some(1))
    with pytest.raises(ValueError, match="'noise'; choose among 'blur'"):
        extractor().extract(some(1), corruption="noise")
    flat = FeatureExtractor(torch.nn.Flatten(), as_tensor)
    with pytest.raises(ValueError, match="different sizes become 12 and 27 features"):
        flat.extract([pixels(2, 2), pixels(3, 3)])


def test_torch_keeps_to_one_thread_and_gets_its_own_back(monkeypatch):
    seen = []
    before = torch.get_num_threads()

    class Looks(torch.nn.Module):
        def forward(self, batch):
            seen.append(torch.get_num_threads())
            return batch.mean(dim=(2, 3))

    FeatureExtractor(Looks(), as_tensor).extract(some(2))
    assert seen == [1] and torch.get_num_threads() == before
