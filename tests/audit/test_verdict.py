from __future__ import annotations

import pytest

from sourcewise import SourceReport
from sourcewise.core.discrepancy.result import Witness
from sourcewise.report.reasons import AGREES, LABELS, REFERENCE, SMALL_REFERENCE, TOO_FEW
from sourcewise.report.source_report import SourceRow
from sourcewise.report.verdict import evidence_in_words, verdict

KINDS = {
    "a": (0.1, AGREES),
    "u": (0.0, AGREES),
    "s": (0.0, LABELS),
    "r": (0.0005, LABELS),  # a trace: 0.6 % of what a trusted row counts
    "d": (0.1, LABELS),
    "t": (0.1, TOO_FEW),
    "w": (0.1, SMALL_REFERENCE),
}


def said(letters):
    rows = [SourceRow("gold", 0.5, 0.0, 0.0, 1.0, 60, REFERENCE)]
    for k, letter in enumerate(letters):
        weight, reason = KINDS[letter]
        rows.append(SourceRow(k, weight, 0.1, 0.1, 0.5, 10, reason))
    return str(verdict(SourceReport(tuple(rows), 1.0, 0.2)))


@pytest.mark.parametrize(
    ("letters", "sentence"),
    [
        (
            "aaaaaasssst",
            "6 of 11 sources agree with your reference; 4 are set aside; 1 is too small to tell.",
        ),
        ("aaa", "3 of 3 sources agree with your reference."),
        ("asr", "1 of 3 sources agrees with your reference; 2 are set aside."),
        ("as", "1 of 2 sources agrees with your reference; 1 is set aside."),
        (
            "audd",
            "2 of 4 sources agree with your reference (1 of them hardly counted); 2 differ a "
            "little and count for less.",
        ),
        ("s", "The only source does not agree with your reference; 1 is set aside."),
        (
            "atww",
            "1 of 4 sources agrees with your reference; 1 is too small to tell; for 2 your "
            "reference is too small to tell.",
        ),
        ("t", "The only source is too small to tell whether it agrees with your reference."),
        ("w", "Your reference is too small to tell whether the only source agrees with it."),
        ("", "There is no source besides your reference."),
    ],
)
def test_sentence(letters, sentence):
    assert said(letters) == sentence


@pytest.mark.parametrize(
    "model",
    [
        "reference model",
        "source model",
        "joint model",
        "separating model of class 2",
        "agreement",
        "features",
    ],
)
@pytest.mark.parametrize("where", ["source", "reference"])
def test_every_witness_has_words(model, where):
    assert evidence_in_words(Witness(model, where)).endswith(".")
