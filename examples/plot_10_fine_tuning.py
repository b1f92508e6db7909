"""
Weights for a network of your own
=================================

The weights of the suppliers do not only serve the model that found them: ``row_weights`` gives one
weight a row for any other trainer. Here the last layers of a network are fine-tuned on pictures of
twenty suppliers, of which the odd ones deliver labels in another order: once on everything alike,
once with rows drawn in proportion to their weights.

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

usual = Path(globals().get("__file__", ".")).resolve().parents[2] / "shared" / "data"
data = Path(os.environ.get("SOURCEWISE_DATA", usual)) / "cifar10" / "cifar10_test_jpeg.npz"
if not data.is_file() or find_spec("torch") is None:
    print("Needs torch, and CIFAR-10 in the folder that SOURCEWISE_DATA names.")
    sys.exit(77)

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from sourcewise.images import FeatureExtractor, efficientnet_lite0, open_pictures

# %%
# The ten classes of CIFAR-10. All but the last layers stay as they are, so what they compute is
# computed once: 320 channels of 2 x 2.
torch.set_num_threads(1)
pictures = open_pictures(data)
classes, label = np.unique(pictures.classes, return_inverse=True)
rng = np.random.default_rng(0)
order = rng.permutation(len(pictures))
rows, test = order[:4000], order[4000:6000]
source = np.repeat(["trusted", *(f"supplier {k:02}" for k in range(1, 20))], 200)
y = label[rows]
for name in np.unique(source)[0:19:2]:
    y[source == name] = rng.permutation(y[source == name])

whole = efficientnet_lite0(size=64)
frozen = FeatureExtractor(whole.module, whole.preprocess, layer="_blocks.15", size=64)
X, X_test = (frozen.extract(pictures.take(some)).values for some in (rows, test))

# %%
# The audit looks at the channels' means.
means = X.reshape(len(X), 320, 4).mean(axis=2)
model = sw.SourceWeightedClassifier(reference="trusted", random_state=0)
model.fit(means, y, sources=source)
weights = model.row_weights(source)
print(model.report())


# %%
def fine_tune(sampler, seed):
    """Train the last layers for four passes; return the error on the test pictures."""
    torch.manual_seed(seed)
    own = efficientnet_lite0(size=64).module
    head = torch.nn.Sequential(
        torch.nn.Unflatten(1, (320, 2, 2)),
        own._conv_head.requires_grad_(),
        own._bn1.requires_grad_(),
        torch.nn.ReLU6(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(1280, len(classes)),
    )
    rows = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    loader = DataLoader(rows, batch_size=128, sampler=sampler, shuffle=sampler is None)
    optimiser = torch.optim.AdamW(head.parameters(), lr=1e-3)
    head.train()
    for _ in range(4):
        for inputs, targets in loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(head(inputs), targets).backward()
            optimiser.step()
    head.eval()
    with torch.inference_mode():
        predicted = head(torch.from_numpy(X_test)).argmax(dim=1).numpy()
    return np.mean(predicted != label[test])


# %%
# Rows of weight zero are never drawn. The other way is a weighted loss: ``cross_entropy(...,
# reduction="none")`` times the weights of the rows, averaged.
found = {}
for name, draw in (
    ("everything alike", lambda: None),
    ("rows drawn by weight", lambda: WeightedRandomSampler(weights, num_samples=len(weights))),
):
    errors = [fine_tune(draw(), seed) for seed in range(3)]
    found[name] = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(3)
    print("{:21} {:.3f} (standard error over three seeds {:.3f})".format(name, *found[name]))
assert found["rows drawn by weight"][0] < found["everything alike"][0]

# %%
plt.bar(list(found), [mean for mean, _ in found.values()], 0.5, color=["C1", "C0"])
plt.errorbar(range(2), *zip(*found.values(), strict=True), fmt="none", ecolor="black", capsize=4)
plt.ylabel("test error, mean of three seeds")
plt.show()
