import importlib.util
import io
import json
import os
import pickle
import re
import sys
import zipfile
from dataclasses import is_dataclass, replace

import numpy as np
import pytest
import scipy.sparse
import sklearn
import skops.io
from benchmarks.faults import members, rewrite
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import sourcewise as sw
from sourcewise import files, persistence, validation
from sourcewise.core import choices
from sourcewise.estimators.rows import sparse_from_parts, sparse_parts
from sourcewise.extras import how_to_install
from sourcewise.persistence import load, save
from sourcewise.state import NAMES, NOT_ROWS, RECORDS

TREES = [
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
]
N_ROWS = 263


class ForeignLearner(LogisticRegression):
    """A class that neither skops nor sourcewise knows."""


class Shift:
    """An object whose method is a parameter."""

    def __init__(self, by):
        self.by = by

    def apply(self, X):
        return X + self.by


def data(kind="binary"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    signal = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N_ROWS)
    targets = {
        "binary": (signal > 0).astype(int),
        "three classes": np.digitize(signal, [-0.7, 0.7]),
        "words": np.where(signal > 0, "ja", "nein"),
        "objects": np.where(signal > 0, "ja", "nein").astype(object),
        "numbers": signal,
    }
    sources = np.repeat(["gold", "careful", "careless"], [83, 90, 90])
    y = targets[kind].copy()
    y[173:] = rng.permutation(y[173:])
    return X, y, sources


def fitted(kind="binary", *, regressor=False, **parameters):
    estimator = sw.SourceWeightedRegressor if regressor else sw.SourceWeightedClassifier
    X, y, sources = data(kind)
    model = estimator(**{"reference": "gold", "cv": 3, "random_state": 0, **parameters})
    return model.fit(X, y, sources=sources)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.fixture
def saved(model, path):
    save(model, path)
    return path


def header(path):
    return json.loads(members(path)[persistence.HEADER])


def assert_same(loaded, original, X):
    assert type(loaded) is type(original)
    np.testing.assert_array_equal(loaded.predict(X), original.predict(X))
    assert loaded.predict(X).dtype == original.predict(X).dtype
    assert hasattr(loaded, "predict_proba") == hasattr(original, "predict_proba")
    if hasattr(original, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(X), original.predict_proba(X))
    for name in ("sources_", "source_weights_", "discrepancies_", "source_sizes_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(original, name))
    assert loaded.report() == original.report()
    # As text: a NaN in it is not equal to itself.
    assert repr(loaded.reference_adequacy()) == repr(original.reference_adequacy())
    np.testing.assert_array_equal(loaded.selection_.losses, original.selection_.losses)


def refusal(path, **options):
    with pytest.raises(ValueError) as caught:
        load(path, **options)
    assert type(caught.value) is ValueError
    return str(caught.value)


# -- round trips -----------------------------------------------------------------------------

MODELS = {
    "binary": {},
    "three classes": {"kind": "three classes"},
    "words": {"kind": "words"},
    "objects": {"kind": "objects"},
    "paper": {"protocol": "paper"},
    "cross-fit": {"discrepancy": "cross-fit"},
    "infinite trade-off": {"trade_off": float("inf")},
    "random state": {"random_state": np.random.RandomState(0)},
    "regressor": {"kind": "numbers", "regressor": True},
    "support vectors": {"kind": "words", "estimator": SVC()},
    "pipeline": {
        "kind": "words",
        "estimator": make_pipeline(StandardScaler(), LogisticRegression()),
    },
}
TREE_MODELS = {
    "boosting": {"kind": "words", "estimator": HistGradientBoostingClassifier(max_iter=3)},
    "boosted numbers": {
        "kind": "numbers",
        "regressor": True,
        "estimator": HistGradientBoostingRegressor(max_iter=3),
    },
    "forest": {"kind": "three classes", "estimator": RandomForestClassifier(3)},
}


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_changes_nothing(name, path):
    original = fitted(**MODELS[name])
    save(original, path)
    assert_same(load(path), original, data()[0])


@pytest.mark.parametrize("name", TREE_MODELS)
def test_round_trip_of_trees_that_the_user_trusts(name, path):
    original = fitted(**TREE_MODELS[name])
    save(original, path)
    assert_same(load(path, trusted=TREES), original, data()[0])


def test_column_names_survive(path):
    pandas = pytest.importorskip("pandas")
    X, y, sources = data("words")
    frame = pandas.DataFrame(X, columns=["age", "height", "weight", "dose"])
    model = sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0)
    save(model.fit(frame, y, sources=sources), path)
    loaded = load(path)
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert_same(loaded, model, frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"dose": "doses"}))


def test_pipeline_around_a_model_loses_its_rows_too(path):
    X, y, sources = data()
    inner = sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), inner)
    pipeline.fit(X, y, sourceweightedclassifier__sources=sources)
    save(pipeline, path)
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))
    assert loaded[-1]._training is None
    assert pipeline[-1]._training is not None


def test_metadata_requests_do_not_get_in_the_way(path):
    X, y, sources = data()
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = sw.SourceWeightedClassifier(
            make_pipeline(scaler, LogisticRegression()), reference="gold", cv=3, random_state=0
        ).set_fit_request(sample_weight=True)
        model.fit(X, y, sources=sources)
        save(model, path)
        assert_same(load(path), model, X)
        assert model.get_metadata_routing().fit.requests["sample_weight"] is True
        assert scaler.get_metadata_routing().fit.requests["sample_weight"] is False


def test_versions_are_readable_without_skops(saved):
    assert header(saved) == {
        "format": persistence.FORMAT,
        "sourcewise": sw.__version__,
        "scikit-learn": sklearn.__version__,
        "skops": skops.__version__,
    }


# -- training rows ---------------------------------------------------------------------------


def row_arrays(path):
    arrays = [np.load(io.BytesIO(v)) for k, v in members(path).items() if k.endswith(".npy")]
    return [a for a in arrays if N_ROWS in a.shape]


@pytest.mark.parametrize("include_data", [False, True])
def test_rows_are_in_the_file_only_if_asked_for(include_data, path, monkeypatch):
    monkeypatch.setattr(choices, "DEFAULT", replace(choices.DEFAULT, without_copies=False))
    X, y, sources = data()
    X[17, 2] = 1.2345678901
    model = sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0)
    save(model.fit(X, y, sources=sources), path, include_data=include_data)
    raw = b"".join(members(path).values())
    assert (X[17, 2].tobytes() in raw) == include_data
    assert bool(row_arrays(path)) == include_data
    assert (r"\"training\"" in members(path)["schema.json"].decode()) == include_data


def test_without_rows_a_source_cannot_be_added(saved):
    X, y, _ = data()
    with pytest.raises(ValueError) as caught:
        load(saved).add_source(X, y, "new")
    assert str(caught.value) == validation.NO_DATA_KEPT


def test_with_rows_a_source_can_be_added(path):
    X, y, _ = data()
    original = fitted()
    save(original, path, include_data=True)
    loaded = load(path).add_source(X[:50], y[:50], "new")
    assert_same(loaded, original.add_source(X[:50], y[:50], "new"), X)


def test_sparse_rows_are_stored_as_arrays_and_a_source_can_be_added(path):
    X, y, sources = data()
    X = scipy.sparse.csr_array(np.where(X > 0.5, X, 0.0))
    original = sw.SourceWeightedClassifier(reference="gold", cv=3, random_state=0)
    original.fit(X, y, sources=sources)
    save(original, path, include_data=True)
    assert not any(name.endswith(".npz") for name in members(path))
    loaded = load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), original.predict_proba(X))
    new = X[:50], y[:50], "new"
    assert_same(loaded.add_source(*new), original.add_source(*new), X)


@pytest.mark.parametrize(
    "name, forged",
    [
        ("indices", lambda a: np.where(np.arange(len(a)) == 3, 10**6, a)),
        ("indices", lambda a: np.where(np.arange(len(a)) == 3, -1, a)),
        ("indices", lambda a: a[:-1]),
        ("indices", lambda a: a.astype(float)),
        ("indptr", lambda a: a[::-1]),
        ("indptr", lambda a: np.where(np.arange(len(a)) == 3, a[-1] + 1, a)),
        ("indptr", lambda a: np.zeros(len(a) + 10**6, dtype=a.dtype)),
        ("data", lambda a: a.reshape(1, -1)),
        ("data", lambda a: a.astype("S8")),
        ("n_columns", lambda n: float(n)),
    ],
)
def test_arrays_that_are_no_sparse_matrix_are_not_put_together(name, forged):
    X = scipy.sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(0))
    parts = sparse_parts(X)
    assert (sparse_from_parts(parts, 30) != X).nnz == 0
    with pytest.raises(ValueError, match="not those of a sparse matrix"):
        sparse_from_parts({**parts, name: forged(parts[name])}, 30)


def test_saving_leaves_the_model_as_it_was(path):
    model = fitted(estimator=LogisticRegression())
    before = dict(vars(model))
    save(model, path)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert model._training is not None


def test_rows_in_a_fitted_template_stay_behind(path):
    X, y, _ = data("words")
    template = SVC().fit(X, y)
    model = fitted("words", estimator=template)
    save(model, path)
    assert not hasattr(load(path).estimator, "support_vectors_")
    assert model.estimator is template
    assert hasattr(template, "support_vectors_")


def test_rows_in_a_model_within_a_model_stay_behind(path):
    inner = sw.SourceWeightedClassifier(reference="reference", cv=3)
    model = fitted(estimator=inner, trade_off=1.0)
    assert model.estimator_._training is not None
    save(model, path)
    assert load(path).estimator_._training is None
    assert not row_arrays(path)


def test_rows_in_models_by_name_stay_behind(path):
    model, inner = fitted(), fitted()
    model.parts_ = {"first": inner, "all": [inner, (inner, 1)]}
    save(model, path)
    parts = load(path).parts_
    assert parts["first"]._training is None
    assert parts["all"][0] is parts["all"][1][0] is parts["first"]
    assert model.parts_["first"] is inner
    assert inner._training is not None
    assert not row_arrays(path)


def test_frames_are_refused_as_rows(path):
    pandas = pytest.importorskip("pandas")
    X, y, sources = data()
    model = sw.SourceWeightedClassifier(LogisticRegression(), reference="gold", cv=3)
    model.fit(pandas.DataFrame(X, columns=list("abcd")), y, sources=sources)
    with pytest.raises(ValueError) as caught:
        save(model, path, include_data=True)
    assert str(caught.value) == NOT_ROWS.format(kind="DataFrame")
    assert not path.exists()


# -- what cannot be saved --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (LogisticRegression(), "LogisticRegression"),
        (make_pipeline(StandardScaler()), "Pipeline"),
        ("model", "str"),
        (sw.SourceWeightedClassifier, "the class SourceWeightedClassifier"),
        (sw.ReferenceKFold(3, reference="gold"), "ReferenceKFold"),
    ],
)
def test_only_our_estimators_are_saved(thing, kind, path):
    with pytest.raises(ValueError) as caught:
        save(thing, path)
    assert str(caught.value) == persistence.NOT_AN_ESTIMATOR.format(kind=kind)
    assert not path.exists()


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_only_fitted_estimators_are_saved(in_pipeline, path):
    model = sw.SourceWeightedRegressor()
    kind = "Pipeline" if in_pipeline else "SourceWeightedRegressor"
    with pytest.raises(ValueError) as caught:
        save(make_pipeline(StandardScaler(), model) if in_pipeline else model, path)
    assert str(caught.value) == persistence.NOT_FITTED.format(kind=kind)


def test_a_lambda_is_refused_when_saving_rather_than_when_loading(path):
    steps = make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression())
    model = fitted(estimator=steps)
    with pytest.raises(ValueError) as caught:
        save(model, path)
    names = repr(f"{__name__}.<lambda>")
    assert str(caught.value) == persistence.NOT_IMPORTABLE.format(
        kind="SourceWeightedClassifier", names=names
    )
    assert not path.exists()


def test_an_object_that_skops_cannot_store_is_refused(path):
    model = fitted()
    model.handle_ = open(os.devnull)  # noqa: SIM115
    try:
        with pytest.raises(ValueError) as caught:
            save(model, path)
    finally:
        model.handle_.close()
    error = caught.value.__cause__
    assert str(caught.value) == persistence.NOT_SAVEABLE.format(
        kind="SourceWeightedClassifier", error=error
    )
    assert not path.exists()


def test_missing_folder(model, tmp_path):
    path = tmp_path / "nowhere" / "model.skops"
    with pytest.raises(FileNotFoundError) as caught:
        save(model, path)
    assert str(caught.value) == files.NO_FOLDER.format(path=path, folder=path.parent)
    assert not path.parent.exists()


def test_a_folder_is_not_a_file(model, tmp_path):
    sentence = persistence.IS_FOLDER.format(path=tmp_path)
    with pytest.raises(ValueError) as caught:
        save(model, tmp_path)
    assert str(caught.value) == sentence
    assert refusal(tmp_path) == sentence


@pytest.mark.parametrize("old", [None, b"an older model"])
def test_a_failure_while_writing_leaves_everything_as_it_was(old, model, path, monkeypatch):
    if old is not None:
        path.write_bytes(old)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        save(model, path)
    assert [p.name for p in path.parent.iterdir()] == ([] if old is None else [path.name])
    assert old is None or path.read_bytes() == old


@pytest.mark.parametrize("call", [lambda m, p: save(m, p), lambda m, p: load(p)])
def test_without_skops(call, model, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError) as caught:
        call(model, path)
    assert str(caught.value) == persistence.SKOPS_MISSING.format(how=how_to_install("save"))


# -- files that are not models ---------------------------------------------------------------


def test_missing_file(path):
    with pytest.raises(FileNotFoundError) as caught:
        load(path)
    assert str(caught.value) == persistence.NO_FILE.format(path=path)


@pytest.mark.parametrize("content", [b"", b"some,columns\n1,2\n", b"\x00" * 1000])
def test_not_a_zip_archive(content, path):
    path.write_bytes(content)
    assert refusal(path) == persistence.NOT_A_MODEL.format(path=path)


@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
def test_truncated(share, saved):
    content = saved.read_bytes()
    saved.write_bytes(content[: max(int(share * len(content)), 4)])
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


def test_a_flipped_bit_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    position = content.index(b"\x93NUMPY") + 140
    content[position] ^= 1
    saved.write_bytes(content)
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


@pytest.mark.parametrize("missing", ["schema.json", "an array"])
def test_missing_member(missing, saved):
    name = next(k for k in members(saved) if k.endswith(".npy")) if "array" in missing else missing
    rewrite(saved, {name: None})
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


def test_skops_file_that_is_not_ours(path):
    skops.io.dump(LogisticRegression(), path)
    assert refusal(path) == persistence.NOT_A_MODEL.format(path=path)


def test_our_header_on_another_model(path, saved):
    text = members(saved)[persistence.HEADER]
    skops.io.dump(LogisticRegression(), path)
    rewrite(path, {persistence.HEADER: text})
    assert refusal(path) == persistence.NOT_A_MODEL.format(path=path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 0},
        {"format": True},
        {"format": "1"},
        {"sourcewise": "1.0\x1b[2J"},
        {"sourcewise": "9" * 50},
        {"skops": None},
        {"padding": "x" * persistence.HEADER_LIMIT},
    ],
)
def test_odd_headers(change, saved):
    rewrite(saved, {persistence.HEADER: json.dumps({**header(saved), **change})})
    assert refusal(saved) == persistence.NOT_A_MODEL.format(path=saved)


@pytest.mark.parametrize("text", ["[]", "1", "null"])
def test_header_that_is_no_table(text, saved):
    rewrite(saved, {persistence.HEADER: text})
    assert refusal(saved) == persistence.NOT_A_MODEL.format(path=saved)


def test_header_that_is_no_json(saved):
    rewrite(saved, {persistence.HEADER: "{" * 5000})
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


def test_newer_format_is_refused_before_skops_sees_it(saved, monkeypatch):
    newer = {**header(saved), "format": persistence.FORMAT + 1, "sourcewise": "7.1"}
    rewrite(saved, {persistence.HEADER: json.dumps(newer)})

    def fail(*_, **__):
        raise AssertionError("skops was asked")

    for name in ("load", "loads", "get_untrusted_types"):
        monkeypatch.setattr(skops.io, name, fail)
    assert refusal(saved) == persistence.NEWER_FORMAT.format(
        path=saved,
        theirs="7.1",
        format=persistence.FORMAT + 1,
        ours=sw.__version__,
        known=persistence.FORMAT,
    )


def test_other_versions_are_blamed_where_they_are_to_blame(saved):
    written = {**header(saved), "skops": "99.0"}
    schema = json.loads(members(saved)["schema.json"])
    texts = {persistence.HEADER: json.dumps(written)}
    rewrite(saved, texts)
    load(saved)  # nothing is wrong yet
    rewrite(saved, {"schema.json": json.dumps({**schema, "protocol": 99})})
    ours = f"sourcewise {sw.__version__}, scikit-learn {sklearn.__version__}, skops "
    assert refusal(saved) == persistence.OTHER_VERSIONS.format(
        path=saved, theirs=f"{ours}99.0", ours=f"{ours}{skops.__version__}"
    )


def test_zip_bombs_are_not_opened(saved, monkeypatch):
    rewrite(saved, {"bomb.npy": bytes(10**7)}, compression=zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 10**5

    def fail(*_, **__):
        raise AssertionError("a member was read")

    monkeypatch.setattr(zipfile.ZipFile, "read", fail)
    monkeypatch.setattr(zipfile.ZipFile, "open", fail)
    assert refusal(saved) == persistence.NOT_A_MODEL.format(path=saved)


def test_members_that_overlap_are_not_opened(saved):
    with zipfile.ZipFile(saved) as archive:
        infos = archive.infolist()
        largest = max(infos, key=lambda info: info.file_size)
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("tiny", b"")
        for copy_number in range(50):  # entries of the directory that share one member's bytes
            info = zipfile.ZipInfo(f"copy-{copy_number}.npy")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(info, name, getattr(largest, name))
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
    assert len(zipfile.ZipFile(saved).namelist()) > 50
    assert refusal(saved) == persistence.NOT_A_MODEL.format(path=saved)


# -- files that attack -----------------------------------------------------------------------


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):  # noqa: D105
        return open, (str(self.path), "w")


def text_node(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
    }


def node(loader, name, **content):
    module, _, kind = name.rpartition(".")
    return {"__class__": kind, "__module__": module, "__loader__": loader, **content}


def tuple_node(*items):
    return node("TupleNode", "builtins.tuple", content=list(items))


def dict_node(content, key_type="builtins.str"):
    keys = [node("TypeNode", key_type) for _ in content]
    types = node("ListNode", "builtins.list", content=keys)
    return node("DictNode", "builtins.dict", content=content, key_types=types)


def attacks(sentinel):
    shell, python = f"touch '{sentinel}'", f"open({str(sentinel)!r}, 'w').close()"
    call = tuple_node(text_node(shell))
    return {
        "constructor os.system": node("ConstructorFromReduceNode", "os.system", content=call),
        "constructor eval": node(
            "ConstructorFromReduceNode",
            "builtins.eval",
            content=tuple_node(text_node(python)),
        ),
        "reduce os.system": node(
            "LossNode", "os.system", __reduce__={"args": call}, content=dict_node({})
        ),
        "dict key os.system": dict_node({shell: text_node(1)}, key_type="os.system"),
        "set subprocess": node(
            "SetNode", "subprocess.check_call", content=[*map(text_node, ["touch", str(sentinel)])]
        ),
        "import": node("ObjectNode", "attacking_module.Anything"),
        "import by type": node("TypeNode", "attacking_module.Anything"),
        "import by function": node("FunctionNode", "attacking_module.anything"),
    }


def plant(path, attribute, state):
    schema = json.loads(members(path)["schema.json"])
    assert attribute in schema["content"]["content"]
    schema["content"]["content"][attribute] = state
    rewrite(path, {"schema.json": json.dumps(schema)})


@pytest.fixture
def sentinel(tmp_path, monkeypatch):
    path = tmp_path / "attacked"
    code = f"open({str(path)!r}, 'w').close()\nclass Anything: pass\nanything = Anything\n"
    (tmp_path / "attacking_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("attacking_module", None)


@pytest.mark.parametrize("attack", attacks(""))
def test_an_attack_is_refused_by_name_and_nothing_runs(attack, saved, sentinel):
    state = attacks(sentinel)[attack]
    plant(saved, "random_state", state)
    message = refusal(saved)
    assert not sentinel.exists()
    assert "attacking_module" not in sys.modules
    name = "os.system" if "os.system" in attack else f"{state['__module__']}.{state['__class__']}"
    assert message == persistence.UNKNOWN_TYPES.format(path=saved, names=repr(name))


@pytest.mark.parametrize("attack", attacks(""))
def test_the_attacks_are_real(attack, saved, sentinel):
    plant(saved, "random_state", attacks(sentinel)[attack])
    every_type = skops.io.get_untrusted_types(file=saved)
    assert not sentinel.exists()
    try:
        skops.io.load(saved, trusted=every_type)
    except Exception as error:  # after the deed: what it returned is not what was expected
        assert sentinel.exists(), error
    assert sentinel.exists()


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_older_protocol_is_no_way_around(protocol, saved, sentinel):
    for attack, state in attacks(sentinel).items():
        plant(saved, "random_state", state)
        schema = json.loads(members(saved)["schema.json"])
        rewrite(saved, {"schema.json": json.dumps({**schema, "protocol": protocol})})
        refusal(saved)
        assert not sentinel.exists(), attack
        assert "attacking_module" not in sys.modules, attack


def test_one_of_ours_does_not_vouch_for_its_neighbours(saved, sentinel):
    evil = attacks(sentinel)["constructor os.system"]
    plant(saved, "selection_", node("ObjectNode", persistence.TRUSTED_TYPES[-1], content=evil))
    assert "'os.system'" in refusal(saved)
    assert not sentinel.exists()


def test_names_that_only_look_like_ours_are_refused(saved):
    plant(saved, "random_state", node("TypeNode", "sourcewise.files.os"))
    names = repr("sourcewise.files.os")
    assert refusal(saved) == persistence.UNKNOWN_TYPES.format(path=saved, names=names)


def test_a_pickle_is_not_unpickled(path, sentinel):
    path.write_bytes(pickle.dumps(Touch(sentinel)))
    assert refusal(path) == persistence.NOT_A_MODEL.format(path=path)
    assert not sentinel.exists()
    pickle.loads(path.read_bytes()).close()
    assert sentinel.exists()  # it would have worked


def test_a_pickle_in_an_array_is_not_unpickled(saved, sentinel):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Touch(sentinel)], dtype=object), allow_pickle=True)
    arrays = [name for name in members(saved) if name.endswith(".npy")]
    rewrite(saved, dict.fromkeys(arrays, buffer.getvalue()))
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)
    assert not sentinel.exists()
    np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)[0].close()
    assert sentinel.exists()


def test_a_pickle_beside_the_schema_is_ignored(saved, model, sentinel):
    rewrite(saved, {"model.pkl": pickle.dumps(Touch(sentinel))})
    assert_same(load(saved), model, data()[0])
    assert not sentinel.exists()


def test_an_array_that_claims_to_be_huge(saved):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**60,)}
    )
    name = next(name for name in members(saved) if name.endswith(".npy"))
    rewrite(saved, {name: buffer.getvalue()})
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


def test_a_schema_that_goes_in_circles(saved):
    circle = {**node("ListNode", "builtins.list", content=[{"__id__": 1}]), "__id__": 1}
    plant(saved, "random_state", circle)
    assert refusal(saved) == persistence.DAMAGED.format(path=saved)


# -- trust -----------------------------------------------------------------------------------


def test_unknown_types_are_listed_and_can_be_trusted(path):
    original = fitted("words", estimator=ForeignLearner())
    save(original, path)
    name = f"{__name__}.ForeignLearner"
    assert refusal(path) == persistence.UNKNOWN_TYPES.format(path=path, names=repr(name))
    for trusted in ([name], (ForeignLearner,), name, ForeignLearner):
        assert_same(load(path, trusted=trusted), original, data()[0])


def test_a_bound_method_can_be_trusted(path):
    steps = make_pipeline(FunctionTransformer(Shift(1.0).apply), LogisticRegression())
    original = fitted(estimator=steps)
    save(original, path)
    names = [f"{__name__}.Shift", f"{__name__}.Shift.apply"]
    listed = ", ".join(map(repr, names))
    assert refusal(path) == persistence.UNKNOWN_TYPES.format(path=path, names=listed)
    assert_same(load(path, trusted=names), original, data()[0])


def test_trust_in_one_type_is_not_trust_in_another(path):
    save(fitted(estimator=ForeignLearner()), path)
    names = repr(f"{__name__}.ForeignLearner")
    message = refusal(path, trusted=["somewhere.else.ForeignLearner"])
    assert message == persistence.UNKNOWN_TYPES.format(path=path, names=names)


@pytest.mark.parametrize("trusted", [True, None, 3, [3]])
def test_trust_has_to_name_types(trusted, saved):
    value = 3 if trusted == [3] else trusted
    assert refusal(saved, trusted=trusted) == persistence.BAD_TRUSTED.format(value=value)


@pytest.mark.parametrize("gone", ["module", "class"])
def test_a_trusted_type_that_is_not_there(gone, path):
    save(fitted(estimator=ForeignLearner(), trade_off=1.0), path)
    name = "absent_module.Learner" if gone == "module" else f"{__name__}.AbsentLearner"
    module, _, kind = name.rpartition(".")
    schema = json.loads(members(path)["schema.json"])
    schema["content"]["content"]["estimator_"].update(__module__=module, __class__=kind)
    schema["content"]["content"]["estimator"] = schema["content"]["content"]["estimator_"]
    rewrite(path, {"schema.json": json.dumps(schema)})
    error = f"module {module!r} has no attribute {kind!r}"
    if gone == "module":
        error = f"No module named {module!r}"
    assert refusal(path, trusted=[name]) == persistence.NOT_INSTALLED.format(path=path, error=error)


@pytest.mark.parametrize("name", persistence.TRUSTED_TYPES)
def test_trusted_names_are_classes_of_ours(name):
    module, _, kind = name.rpartition(".")
    found = getattr(importlib.import_module(module), kind)
    assert isinstance(found, type)
    assert (found.__module__, found.__name__) == (module, kind)


def test_files_name_public_classes_only(path):
    X, y, sources = data()
    model = sw.SourceWeightedClassifier(LogisticRegression(), reference="gold", cv=3)
    save(model.fit(X, y, sources=sources), path, include_data=True)
    schema = members(path)["schema.json"].decode()
    named = set(re.findall(r'"__module__": "(sourcewise[\w.]*)"', schema))
    assert named == {"sourcewise.estimators.classifier"}


def test_a_record_that_is_unknown_is_refused(path):
    save(fitted(), path)
    schema = members(path)["schema.json"].decode()
    assert r"\"label test\"" in schema
    rewrite(path, {"schema.json": schema.replace("label test", "os.system")})
    assert refusal(path) == persistence.DAMAGED.format(path=path)


def test_names_of_records_are_of_one_class_each():
    assert len(RECORDS) == len(NAMES)
    assert all(is_dataclass(kind) or issubclass(kind, BaseEstimator) for kind in NAMES)


def test_a_file_of_before_the_first_release_is_refused_in_a_sentence(path):
    save(fitted(), path)
    header = json.loads(members(path)[persistence.HEADER])
    rewrite(path, {persistence.HEADER: json.dumps({**header, "format": 1})})
    theirs = header["sourcewise"]
    expected = persistence.OLDER_FORMAT.format(path=path, format=1, theirs=theirs)
    assert refusal(path) == expected


def test_every_public_estimator_is_trusted():
    public = [getattr(sw, name) for name in sw.__all__]
    if importlib.util.find_spec("sourcewise.baselines") is not None:
        baselines = importlib.import_module("sourcewise.baselines")
        public += [getattr(baselines, name) for name in baselines.__all__]
    estimators = {c for c in public if isinstance(c, type) and issubclass(c, BaseEstimator)}
    names = {f"{c.__module__}.{c.__name__}" for c in estimators}
    assert names <= set(persistence.TRUSTED_TYPES)
