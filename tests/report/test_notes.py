"""Sentences beside the table."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up import made_up_report

from sourcewise.report.notes import MEMBERS, TOLD, UNTOLD, member_notes


def test_parts_of_the_model_are_named_the_largest_first():
    shares = {"reference only": 0.3, "source as a feature": 0.08, "weighted sources": 0.62}
    assert member_notes(shares) == [
        "The model is an average: 62 % your estimator on weighted sources, 30 % your estimator on "
        "the reference alone, 8 % your estimator on all rows with the source as a feature."
    ]


@pytest.mark.parametrize("name", [TOLD, UNTOLD])
def test_what_does_not_use_the_weights_is_said(name):
    only = member_notes({name: 1.0})
    assert only[0].startswith(f"The model is {MEMBERS[name]}, which did best")
    assert only[1].startswith("The model does not use the weights of this table")
    some = member_notes({name: 0.4, "weighted sources": 0.6})
    assert some[1].startswith("40 % of the model does not use the weights of this table")
    assert len(member_notes({name: 0.1, "weighted sources": 0.9})) == 1


def test_what_is_not_the_users_estimator_is_said():
    notes = member_notes({"linear default": 0.9, "weighted sources": 0.1})
    assert notes[1:] == ["90 % of the model is the linear default and not your estimator."]
    only = member_notes({"linear default": 1.0})
    assert only[1:] == ["The model is the linear default and not your estimator."]


def test_every_form_of_a_report_has_the_notes():
    note = member_notes({TOLD: 1.0})[1]
    report = replace(made_up_report(["gold", "one"]), notes=(note,))
    assert note in " ".join(str(report).split())
    assert report.to_dict()["notes"] == [note]
    assert note in report.to_html()
