"""
A network of your own, in seconds
=================================

``row_weights`` gives one weight a row for any other trainer. Here a small PyTorch network learns
from ten vendors, of which six label badly: from all rows alike, and from rows that are drawn in
proportion to their weights. (:ref:`sphx_glr_gallery_plot_10_fine_tuning.py` does it with pictures.)

Needs ``torch``.
"""

# %%
import sys
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.datasets import vendor_digits

if find_spec("torch") is None:
    print("Needs torch.")
    sys.exit(77)

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

# %%
# sourcewise finds the weights; its own model is not used further.
digits = vendor_digits()
model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
model.fit(digits.X, digits.y, sources=digits.vendor)
weights = model.row_weights(digits.vendor)

# %%
# Pixels go from 0 to 16.
torch.set_num_threads(1)
X, X_test = (torch.tensor(rows / 16.0, dtype=torch.float32) for rows in (digits.X, digits.X_test))
rows = TensorDataset(X, torch.tensor(digits.y))


def train(sampler, seed, passes=20):
    """Train a network; return its error on rows of no vendor after each pass."""
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    loader = DataLoader(rows, batch_size=64, sampler=sampler, shuffle=sampler is None)
    errors = []
    for _ in range(passes):
        for inputs, targets in loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(inputs), targets).backward()
            optimiser.step()
        with torch.inference_mode():
            predicted = network(X_test).argmax(dim=1).numpy()
        errors.append(np.mean(predicted != digits.y_test))
    return errors


# %%
# The sampler is the only difference. Rows of weight zero are never drawn. The other way is a
# weighted loss: ``cross_entropy(..., reduction="none")`` times the weights of the rows, averaged.
def by_weight():
    """Draw as many rows as there are, in proportion to their weights."""
    return WeightedRandomSampler(weights, num_samples=len(weights))


errors = {}
for name, draw in (("everything alike", lambda: None), ("rows drawn by weight", by_weight)):
    errors[name] = np.array([train(draw(), seed) for seed in range(3)])
    last = errors[name][:, -1]
    print(f"{name:21} {last.mean():.3f} (standard error {last.std(ddof=1) / np.sqrt(3):.3f})")
assert errors["rows drawn by weight"][:, -1].max() < errors["everything alike"][:, -1].min()

# %%
for name, found in errors.items():
    plt.plot(range(1, found.shape[1] + 1), found.mean(axis=0), label=name)
plt.xlabel("passes over the rows")
plt.ylabel("test error, mean of three seeds")
plt.ylim(bottom=0)
plt.legend()
plt.show()
