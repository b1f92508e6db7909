from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from sourcewise.core.discrepancy.local_exchange import answer_local
from sourcewise.core.feature_map import FeatureMap
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import BoundedLoss
from sourcewise.engines.flower import wire
from sourcewise.engines.flower.guards import check_ranges, into_range
from sourcewise.engines.flower.questions import LEARNERS, QUESTIONS, answer_derivatives
from sourcewise.engines.flower.setup import SETUP_CLASSES, Setup, TableRules
from sourcewise.estimators.row_rules import RowRules
from sourcewise.tables.preprocessing import ColumnRule


def there_and_back(message, known=LEARNERS):
    return wire.unpack(RecordDict(wire.pack(message, "m")), "m", known)


def same(first, second):
    if isinstance(second, np.ndarray):
        return np.array_equal(first, second) and first.dtype == second.dtype
    if isinstance(second, dict):
        return list(first) == list(second) and all(same(first[n], second[n]) for n in second)
    if hasattr(second, "__dataclass_fields__"):
        return all(same(getattr(first, n), getattr(second, n)) for n in vars(second))
    return first == second


def test_messages_come_back_as_they_were():
    family = LogisticFamily(2, np.array([0.1, 1.0]), tol=1e-7)
    assert same(there_and_back(family), family)
    sent = {"points": np.arange(12.0).reshape(2, 2, 3), "n": 2, "inner": {}, "pair": (1.5, "ü")}
    assert same(there_and_back(sent), sent)
    assert there_and_back(BoundedLoss(0, 2.5)) == BoundedLoss(0, 2.5)


def test_rules_travel_with_names_and_levels():
    features = FeatureMap(np.zeros(2), np.ones(2), True, np.inf, None)
    rules = RowRules("ours", features, ("age", "città"), 2, np.array(["no", "yes"]))
    column = ColumnRule("città", "category", levels=("Rōma", "Oslo"), other=True)
    setup = Setup(rules, TableRules((column,), "float32", "y", "category"))
    found = there_and_back(setup, SETUP_CLASSES)
    assert found.rules.columns == ("age", "città")
    assert list(found.rules.classes) == ["no", "yes"]
    assert found.rules.features.limit == np.inf
    assert found.table.preprocessor.rules_ == [column]


def content(**changes):
    packed = wire.pack({"points": np.ones((1, 1, 3))}, "m")
    arrays, numbers = packed["m.arrays"], packed["m.numbers"]
    for name, value in changes.items():
        (arrays if isinstance(value, Array) else numbers)[name.replace("_", ".", 1)] = value
    return RecordDict(packed)


HEADER = b"{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


def raw(descr, shape, data=b""):
    head = HEADER % (descr, shape)
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    whole = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data
    return Array("float64", (1,), "numpy.ndarray", whole)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"_points": raw(b"<f8", b"(1, 1, 3)", bytes(16))}, "claims 24 bytes and has 16"),
        ({"_points": raw(b"<f8", b"(10000000000000, 1000000)")}, "claims"),
        ({"_points": raw(b"|O", b"(1,)", bytes(8))}, "plain numbers"),
        ({"_points": raw(b"<U100", b"(1,)", bytes(400))}, "plain numbers"),
        ({"_points": Array("float64", (1,), "numpy.ndarray", b"rubbish")}, "plain numbers"),
        ({"_points": raw(b"<f8", b"(-1, -3)", bytes(24))}, "claims"),
        ({"_more": 1.0}, "nobody asked"),
        ({"/class": "Popen"}, "not known here"),
        ({"/class": "os.system"}, "not known here"),
        ({"/names": "points points"}, "nobody asked"),
        ({"/names": "points other"}, "no '.other'"),
    ],
)
def test_what_is_not_a_message_is_refused(changes, why):
    with pytest.raises(wire.BadMessage, match=why):
        wire.unpack(content(**changes), "m", LEARNERS)


def test_a_field_of_another_class_is_refused():
    packed = wire.pack(BoundedLoss(2), "m")
    packed["m.numbers"][".n_classes"] = "two"
    with pytest.raises(wire.BadMessage, match="not a int"):
        wire.unpack(RecordDict(packed), "m", LEARNERS)


def test_nothing_but_our_dataclasses_can_be_sent():
    @dataclass
    class Other:
        value: object

    with pytest.raises(TypeError, match="cannot travel"):
        wire.pack(Other(lambda: None), "m")
    with pytest.raises(wire.BadMessage, match="not known"):
        there_and_back(Other(1.0))


def test_large_messages_are_refused_by_their_length_alone():
    big = RecordDict({"m": ArrayRecord({"a": Array("f", (1,), "?", bytes(10_000))})})
    with pytest.raises(wire.BadMessage, match="10000 bytes, more than the 9999"):
        wire.check_bytes(big, 9999)
    wire.check_bytes(big, 10_000)
    assert wire.n_bytes(RecordDict({"c": ConfigRecord({"t": "four", "n": 1})})) == 12


def test_answers_are_compared_with_what_was_expected():
    expected = {"gradients": np.zeros((2, 3, 1, 1)), "hessians": np.zeros((2, 2, 2, 1))}
    wire.check_like(expected, expected, "derivatives")
    for wrong, why in [
        ({**expected, "gradients": np.zeros((2, 3, 1))}, "shape"),
        ({**expected, "gradients": np.zeros((2, 3, 1, 1), dtype=int)}, "holds"),
        ({**expected, "hessians": np.full((2, 2, 2, 1), np.inf)}, "NaN or infinity"),
        ({**expected, "more": np.zeros(1)}, "does not hold gradients, hessians"),
        (BoundedLoss(2), "does not hold gradients, hessians"),
        ({**expected, "gradients": 0.0}, "shape None"),
    ]:
        with pytest.raises(wire.BadMessage, match=why):
            wire.check_like(wrong, expected, "derivatives")


def test_noise_is_brought_back_into_range_and_lies_are_not():
    rng = np.random.default_rng(0)
    noisy = {"gradients": rng.normal(size=(1, 4, 1, 1)), "hessians": rng.normal(size=(1, 3, 3, 1))}
    with pytest.raises(wire.BadMessage, match="curvature"):
        check_ranges(noisy, None)
    once = into_range(noisy, None)
    check_ranges(once, None)
    np.testing.assert_allclose(into_range(once, None)["hessians"], once["hessians"], atol=1e-12)


def test_every_question_has_a_name_and_can_travel():
    assert len(QUESTIONS) == len(set(QUESTIONS.values()))
    assert QUESTIONS["local"] is answer_local
    for function in QUESTIONS.values():
        sent = dict.fromkeys(wire.wanted(function), 1)
        with pytest.raises(wire.BadMessage, match="no 'm'|has 'more'|not a"):
            wire.given(function, {**sent, "more": 1})


def test_a_message_holds_what_its_question_wants_and_nothing_else():
    points = np.ones((1, 1, 3))
    assert wire.given(answer_derivatives, {"points": points}) == {"points": points}
    for wrong, why in [
        ({}, "no 'points'"),
        ({"points": points, "names": 1}, "has 'names'"),
        (points, "no '/names'"),
        (BoundedLoss(2), "no '/names'"),
    ]:
        with pytest.raises(wire.BadMessage, match=why):
            wire.given(answer_derivatives, wrong)
    local = dict.fromkeys(wire.wanted(answer_local), 1) | {"loss": BoundedLoss(2)}
    assert wire.given(answer_local, local)["setting"] == 1.0
    for name in ("n_folds", "loss"):
        with pytest.raises(wire.BadMessage, match="not a"):
            wire.given(answer_local, {**local, name: "two"})


def test_parts_within_parts_without_end_are_refused():
    values = {"." + ".".join("0" * k) + "/length" if k else "/length": 1 for k in range(3000)}
    content = RecordDict({"m.arrays": ArrayRecord({}), "m.numbers": ConfigRecord(values)})
    with pytest.raises(wire.BadMessage, match="more than 20 times"):
        wire.unpack(content, "m", LEARNERS)


def test_a_path_that_is_an_array_and_a_number_is_refused():
    with pytest.raises(wire.BadMessage, match="nobody asked"):
        wire.unpack(content(_points=1.0), "m", LEARNERS)
