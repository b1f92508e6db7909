"""
Rows on a cluster
=================

For more rows than one machine holds: they stay in Parquet files, the workers of a Dask cluster read
them, and the weights are those of all rows in memory. Here the cluster is two workers on this
machine; with the address of a scheduler, nothing else changes.

Needs the extra ``dask``.
"""

# %%
import logging
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sourcewise as sw
from sourcewise.datasets import vendor_digits

if any(find_spec(name) is None for name in ("dask", "distributed", "pyarrow")):
    print("Needs dask, distributed and pyarrow: the extra dask.")
    sys.exit(77)

from distributed import Client, LocalCluster

from sourcewise.engines import DaskSources


# %%
# A folder of Parquet files, as deliveries make it: a file holds rows of several vendors, and a
# vendor is in several files.
def write_files(folder, digits):
    """Write the rows to eight files."""
    rows = pd.DataFrame(digits.X, columns=[f"pixel{k}" for k in range(digits.X.shape[1])])
    rows["label"], rows["vendor"] = digits.y, digits.vendor
    for k, part in enumerate(np.array_split(np.arange(len(rows)), 8)):
        rows.iloc[part].to_parquet(Path(folder, f"part-{k}.parquet"), index=False)


def on_cluster(digits):
    """Fit by a cluster that reads the files."""
    model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        write_files(folder, digits)
        return model.fit_sources(DaskSources(folder, label="label", source="vendor", client=client))


# %%
# Workers are processes that run the first lines of a script again. So what starts them stands under
# ``if __name__ == "__main__":``.
if __name__ == "__main__":
    digits = vendor_digits()
    far = on_cluster(digits)
    near = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    near.fit(digits.X, digits.y, sources=digits.vendor)
    difference = np.abs(far.source_weights_ - near.source_weights_).max()
    print(far.report())
    print("largest difference of a weight:", "below 1e-8" if difference < 1e-8 else difference)
    assert difference < 1e-8

# %%
# Both models in one picture: every point is on the diagonal.
if __name__ == "__main__":
    plt.plot([0, 0.25], [0, 0.25], color="0.8")
    plt.plot(near.source_weights_, far.source_weights_, "o", alpha=0.6)
    plt.xlabel("weight of a vendor, rows in memory")
    plt.ylabel("weight of a vendor, rows on the cluster")
    plt.show()
