"""An audit that no fit had to make: for tests of the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sourcewise.audit import Audit, ErrorComparison, Expected, FeatureShift, LabelRate, SourceCard
from sourcewise.core.bound import generalization_bound
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.result import NO_WITNESS, Witness
from sourcewise.core.weights import solve_weights
from sourcewise.estimators.adequacy import ReferenceAdequacy
from sourcewise.report.reasons import FOUND
from sourcewise.report.source_report import ReportContext, SourceReport

WEIRD = [
    "gold",
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "a very long name " * 60,
    "x" * 3000,
    "🦊🧪 vendor",
    "ספק אמין",
    "مورد \u202e gnp.exe",
    "quote \" and ' and & and \\ and \u2028",
    "tab\tnewline\nescape \x1b[31m",
]


def made_up_report(names, trade_off=4.44, **changes) -> SourceReport:
    n = len(names)
    rng = np.random.default_rng(0)
    d = np.concatenate([[0.0], np.sort(rng.uniform(0.01, 0.8, n - 1))])
    m = rng.integers(50, 400, n).astype(float)
    weights, cutoff = solve_weights(d, m, trade_off, return_cutoff=True)
    witness = Witness("source model", "reference")
    found = Discrepancies(
        d,
        np.concatenate([[0.0], np.full(n - 1, 0.03)]),
        np.where(d > 0.3, 1e-5, 0.4),
        (NO_WITNESS, *(witness,) * (n - 1)),
    )
    given = {
        "names": list(names),
        "weights": weights,
        "discrepancies": found,
        "rows": m.astype(int),
        "reference": 0,
        "reference_gain": 0.2,
        "expected_errors": np.full(n, 0.01),
        "trade_off": trade_off,
        "cutoff": cutoff,
        "context": ReportContext(
            sizes=tuple(m.tolist()),
            witnesses=found.witnesses,
            adequacy=ReferenceAdequacy(60.0, 100.0, 0.45, 0.1, 0.99, np.inf),
            bound=generalization_bound(weights, d, m, complexity=0.1),
            parameters={"reference": "'gold'", "random_state": "0"},
        ),
    }
    return SourceReport.from_results(**{**given, **changes})


def made_up_errors(unit=1.0, measure="error rate") -> ErrorComparison:
    errors = {"reference only": 0.12, "everything": 0.3, "sourcewise": 0.08}
    methods = tuple(
        Expected(name, unit * error, unit * (error - 0.03), unit * (error + 0.05))
        for name, error in errors.items()
    )
    differences = (
        Expected("reference only", unit * -0.04, unit * -0.1, unit * 0.02),
        Expected("everything", unit * -0.22, unit * -0.3, unit * -0.12),
    )
    return ErrorComparison(measure, 60, 5, methods, differences)


def made_up_audit(names=WEIRD, **changes) -> Audit:
    report = made_up_report(names, **changes)
    cards = tuple(
        SourceCard(
            source=str(row.source),
            weight=row.weight,
            rows=row.rows,
            evidence="A model trained on this source does clearly worse on your reference.",
            kind="label bias",
            why=f"100% of its rows have the label {names[1]!r}.",
            question=f"Have {str(row.source)[:60]} label twenty of your trusted rows.",
            labels=(LabelRate(names[1], 1.0, 0.4), LabelRate("no", 0.0, 0.6)),
            shifts=(
                FeatureShift(names[min(2, len(names) - 1)], 2.5, 0.0),
                FeatureShift("b", -1.0, np.inf),
            ),
            agreement=0.5,
            reference_agreement=0.9,
        )
        for row in report.sources
        if row.reason in FOUND
    )
    return Audit(
        report,
        made_up_errors(),
        cards,
        tuple((str(name), f"as it is; {name}") for name in names[:3]),
        {names[1]: 1},
        {"command": f"sourcewise audit {names[1]}", "seed": "0"},
    )


def plain_audit(n_sources, kind="two classes") -> Audit:
    """Make up an audit of which one source in five is bad, as pages have it most often."""
    names = ["gold", *(f"vendor {k:03d}" for k in range(1, n_sources + 1))]
    n_good = 1 + n_sources - max(n_sources // 5, 1)
    good = np.arange(n_sources + 1) < n_good
    d = np.where(good, 0.02, np.linspace(0.3, 0.7, n_sources + 1))
    d[0] = 0.0
    p_values = np.where(good, 0.4, 1e-5)
    witnesses = (NO_WITNESS, *(Witness("source model", "reference"),) * n_sources)
    found = Discrepancies(d, np.where(d > 0, 0.03, 0.0), p_values, witnesses)
    weights = good / n_good
    audit = made_up_audit(names, weights=weights, discrepancies=found)
    if kind == "regression":
        rates = (
            LabelRate("mean", 479123.4, 217660.295),
            LabelRate("standard deviation", 37660.295, 145e3),
        )
        audit = replace(audit, comparison=made_up_errors(313835.0, "mean absolute error"))
    else:
        classes = "abcdef" if kind == "six classes" else "ab"
        rates = tuple(LabelRate(f"class {c}", k / 15, 1 / 6) for k, c in enumerate(classes))
    cards = tuple(replace(card, labels=rates) for card in audit.cards)
    return replace(audit, cards=cards, columns=(("size", "as it is"),), left_out={})
