"""
Pictures from twenty suppliers
==============================

Animal or machine? One supplier is trusted; of the nineteen others ten deliver blurred pictures,
pictures with dead pixels, pictures whose red and blue are swapped, or labels in another order.

Needs the extra ``images`` and the test pictures of CIFAR-10 as JPEG: the environment variable
``SOURCEWISE_DATA`` names the folder that holds ``cifar10/cifar10_test_jpeg.npz``.
"""

# %%
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.baselines import AllData, ReferenceOnly

usual = Path(globals().get("__file__", ".")).resolve().parents[2] / "shared" / "data"
data = Path(os.environ.get("SOURCEWISE_DATA", usual)) / "cifar10" / "cifar10_test_jpeg.npz"
if not data.is_file() or find_spec("torch") is None:
    print("Needs torch, and CIFAR-10 in the folder that SOURCEWISE_DATA names.")
    sys.exit(77)

from sourcewise.images import FeaturePCA, efficientnet_lite0, open_pictures

# %%
# Twenty suppliers of 200 pictures, 2,000 pictures to test on, and 1,000 others to learn a PCA on:
# the network's 1,280 features are reduced to 100 dimensions.
pictures = open_pictures(data)
machines = {"airplane", "automobile", "ship", "truck"}
kind = np.where(np.isin(pictures.classes, list(machines)), "machine", "animal")
rng = np.random.default_rng(0)
order = rng.permutation(len(pictures))
suppliers, test, background = order[:4000].reshape(20, 200), order[4000:6000], order[6000:7000]
names = ["trusted", *(f"supplier {k:02}" for k in range(1, 20))]
kinds = ["blur", "dead-pixels", "rgb-swap", "shuffled labels"]
faults = {name: kinds[k % 4] for k, name in enumerate(names[1:11])}

network = efficientnet_lite0(size=64)
pca = FeaturePCA.learn([network.extract(pictures.take(background)).values])


def features(rows, corruption=None):
    """Corrupt, let the network look, reduce."""
    return pca.transform(network.extract(pictures.take(rows), corruption=corruption).values)


X, y = [], []
for name, rows in zip(names, suppliers, strict=True):
    fault = faults.get(name)
    X.append(features(rows, None if fault == "shuffled labels" else fault))
    y.append(rng.permutation(kind[rows]) if fault == "shuffled labels" else kind[rows])
X, y = np.concatenate(X), np.concatenate(y)
source = np.repeat(names, 200)
X_test, y_test = features(test), kind[test]

# %%
# Every supplier with its fault, if it has one, and what the model makes of it. Swapped colours hurt
# little, and cost little.
model = sw.SourceWeightedClassifier(reference="trusted", random_state=0)
model.fit(X, y, sources=source)
report = model.report()
for line in report.sources:
    print(f"{line.source:12} {faults.get(line.source, '-'):16} {line.weight:.3f}  {line.reason}")

# %%
# Test errors.
errors = {"sourcewise": 1 - model.score(X_test, y_test)}
for name, method in (("trusted only", ReferenceOnly), ("all alike", AllData)):
    other = method(reference="trusted", random_state=0).fit(X, y, sources=source)
    errors[name] = 1 - other.score(X_test, y_test)
for name, error in errors.items():
    print(f"{name:13} {error:.3f}")

# %%
groups = ["none", *dict.fromkeys(faults.values())]
for line in report.sources[1:]:
    fault = faults.get(line.source, "none")
    plt.plot(line.weight, groups.index(fault), "o", color="C0" if fault == "none" else "C1")
plt.yticks(range(len(groups)), groups)
plt.xlabel("weight of the supplier")
plt.ylabel("its fault")
plt.show()
