"""An audit that no fit had to make: for tests of the page."""

from __future__ import annotations

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
            reference=0,
            sizes=tuple(m.tolist()),
            witnesses=found.witnesses,
            adequacy=ReferenceAdequacy(60.0, 100.0, 0.45, 0.1, 0.99, np.inf),
            bound=generalization_bound(weights, d, m, complexity=0.1),
            parameters={"reference": "'gold'", "random_state": "0"},
        ),
    }
    return SourceReport.from_results(**{**given, **changes})


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
            shifts=(FeatureShift(names[2], 2.5, 0.0), FeatureShift("b", -1.0, np.inf)),
            agreement=0.5,
            reference_agreement=0.9,
        )
        for row in report.sources
        if row.reason in FOUND
    )
    methods = tuple(
        Expected(name, error, error - 0.03, error + 0.05)
        for name, error in (("reference only", 0.12), ("everything", 0.3), ("sourcewise", 0.08))
    )
    differences = (
        Expected("reference only", -0.04, -0.1, 0.02),
        Expected("everything", -0.22, -0.3, -0.1),
    )
    return Audit(
        report,
        ErrorComparison("error rate", 60, 5, methods, differences),
        cards,
        tuple((str(name), f"as it is; {name}") for name in names[:3]),
        {names[1]: 1},
        {"command": f"sourcewise audit {names[1]}", "seed": "0"},
    )
