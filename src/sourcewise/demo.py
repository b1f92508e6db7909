"""A first look: digits labelled by vendors, most of them bad (``make demo``)."""

from __future__ import annotations

from sourcewise.datasets import VendorDigits, vendor_digits
from sourcewise.estimators import SourceWeightedClassifier


def run_demo(random_state: int = 0) -> str:
    """Fit the bundled digits and describe the result in a text of at most 80 columns."""
    digits = vendor_digits(n_bad=6, random_state=random_state)
    model = SourceWeightedClassifier(reference="gold", random_state=random_state)
    model.fit(digits.X, digits.y, sources=digits.vendor)
    # The same learner and the same choice of regularisation at the two ends of the trade-off.
    errors = {
        "sourcewise": _error(model, digits),
        "reference only": _error(_at(0.0, digits, random_state), digits),
        "all data": _error(_at(float("inf"), digits, random_state), digits),
    }
    lines = [
        "Is this handwritten digit odd or even? 60 rows you labelled yourself ('gold')",
        f"and 120 rows from each of ten vendors; {len(digits.spoiled)} vendors have bad labels.",
        "",
        str(model.report()),
        str(model.reference_adequacy()),
        "",
        "What was really wrong: "
        + ", ".join(f"{v} {k}" for v, k in sorted(digits.spoiled.items())[:3])
        + ",",
        "  " + ", ".join(f"{v} {k}" for v, k in sorted(digits.spoiled.items())[3:]) + ".",
        "",
        f"Error on {len(digits.y_test)} test rows:",
        *(f"  {name:<16}{error:6.1%}" for name, error in errors.items()),
    ]
    return "\n".join(lines)


def _at(trade_off: float, digits: VendorDigits, random_state: int) -> SourceWeightedClassifier:
    model = SourceWeightedClassifier(
        reference="gold", trade_off=trade_off, random_state=random_state
    )
    return model.fit(digits.X, digits.y, sources=digits.vendor)


def _error(model: SourceWeightedClassifier, digits: VendorDigits) -> float:
    return 1.0 - float(model.score(digits.X_test, digits.y_test))


if __name__ == "__main__":
    print(run_demo())
