"""``sourcewise demo``: bundled digits, most vendors bad; a table, a report, a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

from sourcewise import save
from sourcewise.audit import Settings, run_audit
from sourcewise.cli import options as o
from sourcewise.cli.audit import in_words
from sourcewise.cli.fit import wrapped
from sourcewise.cli.output import NOT_WRITABLE, facts, outputs
from sourcewise.datasets import VendorDigits, vendor_digits
from sourcewise.progress import progress_bars
from sourcewise.report.html import render
from sourcewise.safe_text import csv_text
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training


def demo(
    output: Annotated[
        Path, o.output("FILE", "Folder for the table, the report and the model.", show_default=True)
    ] = Path("sourcewise-demo"),
    quiet: o.Quiet = False,
) -> None:
    """See it work on bundled data: ten vendors of handwritten digits, six of them bad."""
    digits = vendor_digits(n_bad=6, random_state=0)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(NOT_WRITABLE.format(path=output, why=error.strerror)) from error
    table, page, model = (output / n for n in ("digits.csv", "report.html", "model.skops"))
    with outputs(table) as (temporary,):
        temporary.write_text(_table(digits), encoding="utf-8")
    command = f"sourcewise audit {table} --label parity --source vendor --reference gold -o {page}"
    with progress_bars(quiet):
        result, fitted = run_audit(
            read_training(TableRequest(table, "parity", "vendor", "gold")),
            Settings(),
            label="parity",
            source="vendor",
            facts=facts(0, command),
        )
    with outputs(page, model) as (page_file, model_file):
        page_file.write_bytes(render(result).encode())
        save(fitted, model_file)
    if quiet:
        return
    spoiled = sorted(digits.spoiled.items())
    words = ", ".join(f"{vendor} {kind}" for vendor, kind in spoiled)
    test = np.where(digits.y_test == 1, "odd", "even")
    kept_aside = {
        name: np.mean(model_at.predict(digits.X_test) != test)
        for name, model_at in [
            ("reference only", fitted.model_.at_trade_off(0.0)),
            ("everything", fitted.model_.at_trade_off(np.inf)),
            ("sourcewise", fitted.model_),
        ]
    }
    print("Is this handwritten digit odd or even? 60 rows you labelled yourself ('gold')")
    print(f"and 120 rows from each of ten vendors; {len(spoiled)} vendors have bad labels.")
    print()
    print(in_words(result))
    print(f"Error rate on {len(test)} rows that nobody was shown:")
    for name, rate in kept_aside.items():
        print(f"  {name:<18}{rate:>6.1%}")
    print()
    print("What was really wrong:")
    print(f"{wrapped(words, width=78)}.")
    print()
    print(f"Report: {page}")
    print(f"Model:  {model}")
    print("Now your own table:")
    print("  sourcewise audit DATA --label y --source vendor --reference gold -o r.html")


def _table(digits: VendorDigits) -> str:
    names = [f"pixel_{i // 8}_{i % 8}" for i in range(64)]
    return csv_text(
        [
            {
                **dict(zip(names, map(int, pixels), strict=True)),
                "parity": "odd" if label else "even",
                "vendor": vendor,
            }
            for pixels, label, vendor in zip(digits.X, digits.y, digits.vendor, strict=True)
        ]
    )
