"""Every sentence that a user of the Dask engine can get."""

from __future__ import annotations

DASK_MISSING = "Fitting on a cluster needs {name}, which is not installed: {how}."
NO_PATH = "There is no file or folder {path}."
NO_FILES = "{path} holds no Parquet files (*.parquet)."
NOT_READABLE = "{path} cannot be read as a Parquet file: {why}."
NOT_WITH_WORKERS = (
    "{path} is not where a worker looks for it; workers must find the rows at the same address as "
    "the client does, on a disk or a store that all of them share."
)
FILE_CHANGED = "{path} changed while it was read; wait until nothing writes to it and start again."
OTHER_COLUMNS = (
    "{path} has other columns than {first} ({what}); all files of a folder must have the same."
)
COLUMN_MISSING = "{path} has no column {name!r}{hint}"
SAME_COLUMN = "Column {name!r} cannot hold both the {one} and the {other}."
NO_ROWS = "{path} has no rows."
SOURCE_MISSING = "{path}: row {row} has no source (column {name!r} is empty); name every row's."
REFERENCE_ABSENT = "Column {name!r} has no value {reference!r}, so there are no trusted rows{hint}"
NAMES_DIFFER = (
    "{path} holds {found} in column {name!r}, and files before it {expected}; make them the same."
)
SOURCE_TOO_LARGE = (
    "Source {source!r} has {rows} rows, which take about {need} at a time, and the workers have a "
    "memory limit of {limit}; use workers with more memory, or split the source."
)
WORKERS_LOST = (
    "All workers of the cluster were lost and none came back within {seconds:.0f} seconds{resume}."
)
WORKER_DIES = (
    "{times} workers in a row died at the same rows, as they do where memory runs out; give the "
    "workers more memory (their limit is {limit}){resume}."
)
SCHEDULER_LOST = "The connection to the scheduler was lost{resume}."
NO_SCHEDULER = "There is no Dask scheduler at {address}: {why}."
TLS_WANTED = (
    "The scheduler at {address} wants TLS; give --tls-ca, --tls-cert and --tls-key with the "
    "address."
)
RESUME_HINT = "; the same command with --resume goes on from what is in {folder}"
CLOSED = (
    "The cluster that the rows were on is closed; keep it open around all that is asked of the "
    "model: with DaskSources(...) as sources."
)
NOT_A_FRAME = (
    "DaskSources takes the path of a folder of Parquet files or a Dask DataFrame; got {value!r}."
)
UNGUARDED = (
    "A script that starts a local Dask cluster runs its first lines again in every worker; put "
    "what it does under if __name__ == '__main__'."
)
NOT_A_FOLDER = "{path} is a file; --resume takes a folder."
