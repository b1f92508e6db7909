"""``sourcewise predict``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from sourcewise import load
from sourcewise.cli import options as o
from sourcewise.cli.output import (
    PREDICTIONS,
    check_output,
    outputs,
    print_json,
    prints_itself,
    say,
)
from sourcewise.progress import progress_bars, report_progress
from sourcewise.safe_text import cell
from sourcewise.tables.model import TableModel
from sourcewise.tables.reading import Table

NOT_A_TABLE_MODEL = (
    "{path} holds a model without its columns (a {kind}); load it in Python, or make one with "
    "sourcewise fit."
)
NAME_TAKEN = "The predictions need the name {name!r}, which --keep also gives to a column."


def predict(
    model: o.ModelFile,
    data: Annotated[Path, o.given("NEW", "Table with the same raw columns.")],
    output: Annotated[
        Path,
        o.output(
            "FILE", "Predictions to write (.csv, .parquet, or - to print), a line for each row."
        ),
    ],
    keep: Annotated[
        list[str] | None,
        o.told("COLUMNS", "Columns of NEW to copy beside the predictions (an identifier)."),
    ] = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Predict the label of every row of a table.

    Example: sourcewise predict model.skops new.csv -o predictions.csv
    """
    check_output(output, PREDICTIONS, model, data)
    quiet = prints_itself(as_json, output) or quiet
    fitted = load(model)
    if not isinstance(fitted, TableModel):
        raise ValueError(NOT_A_TABLE_MODEL.format(path=model, kind=type(fitted).__name__))
    table = fitted.open_table(data)
    columns = fitted.preprocessor_.columns_
    kept = o.listed(keep)
    table.check_columns([*columns, *kept])
    with progress_bars(quiet), outputs(output) as (temporary,):
        _write(_predicted(fitted, table, columns, kept), temporary, output.suffix.lower())
    if as_json:
        print_json({"predictions": str(output), "rows": table.n_rows})
    elif not quiet:
        what = "1 prediction" if table.n_rows == 1 else f"{table.n_rows} predictions"
        say(f"{what}: {output}")


def _predicted(
    fitted: TableModel, table: Table, columns: list[str], kept: tuple[str, ...]
) -> Iterator[Any]:
    """Yield record batches of predictions."""
    import pyarrow as pa

    for start, batch in table.batches(list(dict.fromkeys([*kept, *columns]))):
        rows = pa.Table.from_batches([batch])
        names, arrays = list(kept), [batch.column(name) for name in kept]
        names.append("prediction")
        if fitted.is_classifier:
            probabilities = fitted.predict_proba(rows)
            classes = fitted.classes_
            arrays.append(pa.array(classes[probabilities.argmax(axis=1)].tolist()))
            names += [f"probability_{c}" for c in classes.tolist()]
            arrays += [pa.array(p) for p in probabilities.T]
        else:
            arrays.append(pa.array(fitted.predict(rows)))
        for name in names:
            if names.count(name) > 1:
                raise ValueError(NAME_TAKEN.format(name=name))
        yield pa.record_batch(arrays, names=names)
        report_progress("predicting", start + batch.num_rows, table.n_rows)


def _write(batches: Iterator[Any], path: Path, suffix: str) -> None:
    from pyarrow import csv, parquet

    writer = None
    to_parquet = suffix in (".parquet", ".pq")
    try:
        for batch in batches if to_parquet else map(_guarded, batches):
            if writer is None and to_parquet:
                writer = parquet.ParquetWriter(path, batch.schema)
            elif writer is None:
                writer = csv.CSVWriter(
                    path, batch.schema, write_options=csv.WriteOptions(quoting_style="needed")
                )
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()


def _guarded(batch: Any) -> Any:
    """Pass names and texts through the guard of CSV; each text once, however often it occurs."""
    import pyarrow as pa

    arrays = []
    for values in batch.columns:
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            coded = values.dictionary_encode()
            texts = pa.array(map(cell, coded.dictionary.to_pylist()), type=kind)
            values = texts.take(coded.indices)
        arrays.append(values)
    return pa.record_batch(arrays, names=[cell(name) for name in batch.schema.names])
