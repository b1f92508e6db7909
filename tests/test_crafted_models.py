"""Model files made to cost more than they weigh, or to fail later: each is refused in words."""

import copy
import io
import json
import tracemalloc
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import sourcewise as sw
from sourcewise import persistence
from sourcewise.loaded import check_fields, check_loaded
from test_persistence import data, fitted, members, node, plant, refusal, rewrite, text_node

MATRIX = "scipy.sparse._csr.csr_matrix"
FACTOR = 60  # bytes of memory for a byte of a file: a node of a few dozen bytes is some objects


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("crafted") / "model.skops"
    sw.save(fitted(), path)
    return path.read_bytes()


@pytest.fixture
def saved(original, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(original)
    return path


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def array_node(file, identity=1, name="numpy.ndarray"):
    return node("NdArrayNode", name, type="numpy", file=file) | {"__id__": identity}


def list_node(*items, identity=None):
    return node("ListNode", "builtins.list", content=list(items)) | {"__id__": identity}


def assert_refused_cheaply(path):
    size = path.stat().st_size
    tracemalloc.start()
    try:
        message = refusal(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert message == persistence.DAMAGED.format(path=path)
    assert peak < FACTOR * size


def shared_lists(levels):
    """Nest a list of a list and the same list: 2 ** levels lists to walk through."""
    inside = list_node(text_node("x"), identity=10_000)
    for level in range(levels):
        inside = list_node(inside, {"__id__": inside["__id__"]}, identity=10_001 + level)
    return inside


def test_shared_lists_take_no_exponential_time(saved):
    plant(saved, "random_state", shared_lists(40))
    assert_refused_cheaply(saved)


def test_shared_lists_that_are_as_large_everywhere_are_no_way_around(saved):
    twin = list_node(text_node("x"), text_node("x"), identity=10_000)
    inside = list_node(text_node("x"), identity=10_000)
    plant(saved, "random_state", list_node(inside, twin, identity=10_001))
    assert_refused_cheaply(saved)


@pytest.mark.parametrize("identities", [range(1, 1001), [0] * 1000], ids=["own", "none"])
def test_a_member_is_read_for_one_object_only(identities, saved):
    rewrite(saved, {"large.npy": npy(np.zeros(100_000))})
    nodes = [array_node("large.npy", identity) for identity in identities]
    plant(saved, "random_state", list_node(*nodes, identity=-1))
    assert_refused_cheaply(saved)


def deflated_matrix():
    buffer = io.BytesIO()
    matrix = scipy.sparse.csr_array((np.zeros(10**6), ([0] * 10**6, range(10**6))))
    scipy.sparse.save_npz(buffer, matrix, compressed=True)
    return buffer.getvalue()


def void(n):
    return npy(np.array(n))


GROWING = {
    "deflated sparse matrix": (
        "m.npz",
        deflated_matrix,
        node("SparseMatrixNode", "scipy.sparse.spmatrix", type="scipy", file="m.npz"),
    ),
    "deflated arrays for an array": ("m.npz", deflated_matrix, array_node("m.npz")),
    "void of a number": ("v.npy", lambda: void(10**9), array_node("v.npy", name="numpy.void")),
    "pretended length": ("l.npy", lambda: npy(np.zeros(10))[:-8], array_node("l.npy")),
}


@pytest.mark.parametrize("name", GROWING)
def test_nothing_in_a_member_grows(name, saved):
    file, content, planted = GROWING[name]
    rewrite(saved, {file: content()})
    plant(saved, "random_state", planted)
    assert_refused_cheaply(saved)


def test_sparse_matrices_in_a_model_are_stored_without_compression(tmp_path):
    X, y, sources = data()
    model = sw.SourceWeightedClassifier(
        SVC(), reference="gold", trade_off=1.0, cv=3, random_state=0
    )
    model.fit(scipy.sparse.csr_array(X), y, sources=sources)
    sw.save(model, tmp_path / "model.skops")
    inside = [m for name, m in members(tmp_path / "model.skops").items() if name.endswith(".npz")]
    assert inside
    for member in inside:
        with zipfile.ZipFile(io.BytesIO(member)) as archive:
            assert {m.compress_type for m in archive.infolist()} == {zipfile.ZIP_STORED}
    loaded = sw.load(tmp_path / "model.skops", trusted=[MATRIX])
    X_new = scipy.sparse.csr_array(X)
    np.testing.assert_array_equal(loaded.predict(X_new), model.predict(X_new))


def test_a_sparse_matrix_that_points_beyond_its_end_is_refused(tmp_path):
    X, y, sources = data()
    model = sw.SourceWeightedClassifier(
        SVC(), reference="gold", trade_off=1.0, cv=3, random_state=0
    )
    model.fit(scipy.sparse.csr_array(X), y, sources=sources)
    path = tmp_path / "model.skops"
    sw.save(model, path)
    forged = {}
    for name, member in members(path).items():
        if name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(member)) as archive:
                parts = {k: archive.read(k) for k in archive.namelist()}
            indices = np.load(io.BytesIO(parts["indices.npy"]))
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w") as archive:
                for k, part in parts.items():
                    archive.writestr(k, npy(indices + 10**8) if k == "indices.npy" else part)
            forged[name] = buffer.getvalue()
    rewrite(path, forged)
    assert refusal(path, trusted=[MATRIX]) == persistence.DAMAGED.format(path=path)


def test_an_endless_device_is_not_read():
    assert refusal("/dev/zero") == persistence.NOT_A_MODEL.format(path="/dev/zero")


# -- well-typed, and wrong -----------------------------------------------------------------------


def array_of(path, attribute):
    """Name of the member that holds a fitted attribute, and the attribute."""
    state = json.loads(members(path)["schema.json"])["content"]["content"][attribute]
    return state["file"], np.load(io.BytesIO(members(path)[state["file"]]))


ARRAYS = (
    "coef_",
    "intercept_",
    "feature_range_",
    "classes_",
    "sources_",
    "source_weights_",
    "discrepancies_",
    "source_sizes_",
    "source_rows_",
)
FORGERIES = {
    "shorter": lambda array: array[:-1] if len(array) > 1 else array[:0],
    "longer": lambda array: np.concatenate([array, array]),
    "another dimension": lambda array: array[None],
    "a single value": lambda array: array.ravel()[0],
    "nothing": lambda array: array[:0],
    "not a number": lambda array: np.full(array.shape, np.nan),
    "complex": lambda array: np.full(array.shape, 1j),
    "dates": lambda array: np.full(array.shape, np.datetime64("2020-01-01")),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("attribute", ARRAYS)
def test_a_forged_array_is_refused_when_loading(attribute, forgery, saved):
    name, array = array_of(saved, attribute)
    rewrite(saved, {name: npy(FORGERIES[forgery](array))})
    if attribute == "sources_" and forgery in ("complex", "dates", "not a number"):
        sw.load(saved)  # names may be anything
    else:
        assert refusal(saved) == persistence.DAMAGED.format(path=saved)


SCALARS = ("trade_off_", "cutoff_", "C_", "reference_index_", "n_features_in_", "selection_")


@pytest.mark.parametrize("value", ["text", None, [1], -1, {"a": 1}, 10**12])
@pytest.mark.parametrize("attribute", SCALARS)
def test_a_forged_value_is_refused_when_loading(attribute, value, saved):
    plant(saved, attribute, text_node(value))
    if attribute in ("trade_off_", "cutoff_", "C_") and value == 10**12:
        sw.load(saved).report()
    else:
        assert refusal(saved) == persistence.DAMAGED.format(path=saved)


ATTRIBUTES = (
    *ARRAYS,
    *SCALARS,
    "_measured",
    "_training",
    "reference",
    "cv",
)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_a_missing_attribute_is_refused_or_not_needed(attribute, saved):
    schema = json.loads(members(saved)["schema.json"])
    del schema["content"]["content"][attribute]
    rewrite(saved, {"schema.json": json.dumps(schema)})
    if attribute in ("C_", "_training"):
        sw.load(saved).predict(data()[0])
    else:
        assert refusal(saved) == persistence.DAMAGED.format(path=saved)


def test_infinite_limits_of_features_are_as_fitted(tmp_path):
    model = fitted(protocol="paper")
    assert np.isinf(model.feature_range_).all()
    sw.save(model, tmp_path / "model.skops")
    sw.load(tmp_path / "model.skops")


def test_sparse_and_wrapped_models_are_loaded(tmp_path):
    X, y, sources = data("three classes")
    path = tmp_path / "model.skops"
    for estimator in (None, LogisticRegression()):
        model = sw.SourceWeightedClassifier(estimator, reference="gold", cv=3, random_state=0)
        model.fit(scipy.sparse.csr_array(X), y, sources=sources)
        sw.save(model, path, include_data=True)
        np.testing.assert_array_equal(sw.load(path).predict(X), model.predict(X))


# -- what is kept for later ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("crafted") / "rows.skops"
    sw.save(fitted(), path, include_data=True)
    return path.read_bytes()


def inside(schema, *names):
    """Walk down a schema by the names of attributes."""
    found = schema["content"]["content"]
    for name in names[:-1]:
        found = found[name]["content"]
        found = found.get("content", found) if "__loader__" in found else found
    return found, names[-1]


LATER = {
    "findings of fewer sources": (("_training", "findings", "missing"), 1),
    "measurements of fewer sources": (("_measured", "result", "values"), 0),
    "losses of fewer rows": (("_measured", "label_test", "own_random"), 2),
    "counts of fewer classes": (("_task", "counts"), 0),
    "labels of fewer classes": (("_task", "labels"), 0),
}


@pytest.mark.parametrize("name", LATER)
def test_what_add_source_and_the_report_need_is_checked_too(name, with_rows, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(with_rows)
    sw.load(path).report()
    names, axis = LATER[name]
    holder, last = inside(json.loads(members(path)["schema.json"]), *names)
    file = holder[last]["file"]
    array = np.load(io.BytesIO(members(path)[file]))
    rewrite(path, {file: npy(np.delete(array, 0, axis=axis))})
    assert refusal(path) == persistence.DAMAGED.format(path=path)


SPOILT = {
    "rows of one source only": (("_training", "rows", "codes"), 0),
    "findings that are not numbers": (("_training", "findings", "pulls"), np.nan),
    "negative discrepancies": (("_measured", "result", "values"), -0.1),
    "p-values beyond one": (("_measured", "result", "p_values"), 7.0),
    "measurements without a fold that are not numbers": (("_measured", "without_fold"), np.nan),
}


@pytest.mark.parametrize("name", SPOILT)
def test_numbers_that_no_fit_leads_to_are_refused(name, with_rows, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(with_rows)
    names, value = SPOILT[name]
    holder, last = inside(json.loads(members(path)["schema.json"]), *names)
    file = holder[last]["file"]
    array = np.load(io.BytesIO(members(path)[file]))
    rewrite(path, {file: npy(np.full_like(array, value))})
    assert refusal(path) == persistence.DAMAGED.format(path=path)


def test_findings_under_other_names_are_refused(with_rows, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(with_rows)
    schema = json.loads(members(path)["schema.json"])
    found, _ = inside(schema, "_training", "findings", "missing")
    found["lacking"] = found.pop("missing")
    rewrite(path, {"schema.json": json.dumps(schema)})
    assert refusal(path) == persistence.DAMAGED.format(path=path)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("reference", "careful"), ("discrepancy", "none"), ("trade_off_", 1e308)],
)
def test_options_that_add_source_could_not_use_are_refused(attribute, value, with_rows, tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(with_rows)
    plant(path, attribute, text_node(value))
    assert refusal(path) == persistence.DAMAGED.format(path=path)


def test_a_learner_that_lost_its_coefficients_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    model = sw.SourceWeightedClassifier(
        LogisticRegression(), reference="gold", trade_off=1.0, cv=3, random_state=0
    )
    X, y, sources = data()
    sw.save(model.fit(X, y, sources=sources), path)
    schema = members(path)["schema.json"].decode()
    for lost in ('"coef_"', '"solver"'):
        rewrite(path, {"schema.json": schema.replace(lost, '"lost"')})
        assert refusal(path) == persistence.DAMAGED.format(path=path)


# -- without a file ------------------------------------------------------------------------------


def test_a_sound_model_passes_and_one_that_was_changed_does_not():
    model = fitted()
    model.report()
    check_loaded(model)
    for name, value in {
        "source_weights_": 2.0 * model.source_weights_,
        "coef_": model.coef_[:, 1:],
        "reference_index_": True,
        "_seen": (),
        "_copies": None,
        "_told_by_sources_": 1,
        "_column_words": [1],
        "_measured": replace(model._measured, without_fold="text"),
        "selection_": replace(model.selection_, losses=model.selection_.losses[:, 1:]),
    }.items():
        changed = copy.copy(model)
        setattr(changed, name, value)
        with pytest.raises((ValueError, TypeError, AttributeError)):
            check_loaded(changed)


@dataclass
class Record:
    names: tuple[str, ...]
    pair: tuple[int, float]
    array: NDArray[np.float64] | None
    kind: Literal["a", "b"]
    more: Sequence[bool]


def test_fields_are_what_their_annotations_say():
    sound = Record(("a",), (1, 2), np.zeros(2), "a", [True])
    check_fields(sound)
    check_fields(replace(sound, array=None, names=(), more=(np.bool_(1),)))
    wrong = {"names": ["a"], "pair": (1, 2, 3), "array": np.array(["a"]), "kind": "c", "more": [1]}
    for name, value in {**wrong, "pair ": (True, 1.0), "array ": 1.0, "names ": ("a", 1)}.items():
        with pytest.raises(ValueError, match="do not fit together"):
            check_fields(replace(sound, **{name.strip(): value}))
    del sound.kind
    with pytest.raises(ValueError, match="do not fit together"):
        check_fields(sound)
