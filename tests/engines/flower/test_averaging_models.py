"""Real models averaged by Flower's own rounds: scikit-learn and torch, in this process."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from made_up_grid import MadeUpGrid, be_a_task, context
from made_up_sites import classifier, federated, rows
from sklearn.linear_model import SGDClassifier

from sourcewise.engines.flower import TrustedFedAvg

BAD = "site-0"
POOL = rows(n_sites=4, m=150, d=6, n_ref=100, bad=())
X, y, names = POOL
y[names == BAD] = 1 - y[names == BAD]
SITES = ["site-0", "site-1", "site-2", "site-3"]
NODES = [10, 11, 12, 13]


@pytest.fixture(autouse=True)
def task(monkeypatch):
    be_a_task(monkeypatch)


@pytest.fixture(scope="module")
def weights():
    """Weights of the nodes, by a fit to the same sites."""
    model, sources = federated(POOL, classifier())
    found = sources.node_weights(model)
    assert found[0] < 0.01 < found[1]
    return dict(zip(NODES, found.values(), strict=True))


def app_of(train, name):
    """Make a client app; whoever it is, it claims a thousand million rows."""
    app = ClientApp()
    mine = names == name

    @app.train()
    def train_round(message, its_context):
        arrays = train(message.content["arrays"], X[mine], y[mine])
        metrics = MetricRecord({"num-examples": 10**9 if name == BAD else 1})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app


def average(train, start, strategy, num_rounds=3):
    apps = {
        node: (app_of(train, name), context(node)) for node, name in zip(NODES, SITES, strict=True)
    }
    return strategy.start(grid=MadeUpGrid(apps), initial_arrays=start, num_rounds=num_rounds).arrays


# -- scikit-learn ----------------------------------------------------------------------------------


def as_sgd(arrays):
    model = SGDClassifier(loss="log_loss", alpha=1e-3, random_state=0)
    model.classes_ = np.array([0, 1])
    model.coef_ = arrays["coef"].numpy().astype(float)
    model.intercept_ = arrays["intercept"].numpy().astype(float)
    model.t_ = 1.0
    return model


def sgd_record(coef, intercept):
    return ArrayRecord({"coef": Array(coef), "intercept": Array(intercept)})


def train_sgd(arrays, X, y):
    model = as_sgd(arrays)
    fresh = SGDClassifier(loss="log_loss", alpha=1e-3, random_state=0, max_iter=20, tol=None)
    fresh.fit(X, y, coef_init=model.coef_, intercept_init=model.intercept_)
    return sgd_record(fresh.coef_, fresh.intercept_)


def right(arrays):
    """Share of the reference's rows that are told right."""
    own = names == "ours"
    scores = X[own] @ arrays["coef"].numpy().ravel() + arrays["intercept"].numpy()
    return float(np.mean((scores > 0) == y[own]))


def sgd_start():
    return sgd_record(np.zeros((1, X.shape[1])), np.zeros(1))


def test_a_scikit_learn_model_is_averaged_under_the_trust_weights(weights):
    found = average(train_sgd, sgd_start(), TrustedFedAvg(weights), num_rounds=1)
    alone = [train_sgd(sgd_start(), X[names == n], y[names == n]) for n in SITES]
    shares = np.array(list(weights.values())) / sum(weights.values())
    expected = sum(s * a["coef"].numpy() for s, a in zip(shares, alone, strict=True))
    np.testing.assert_allclose(found["coef"].numpy(), expected, rtol=1e-12)
    assert right(found) > 0.85
    # What the bad site claims would have decided otherwise.
    assert right(alone[0]) < 0.15


def test_a_judge_leaves_a_harmful_scikit_learn_model_out(weights):
    equal = dict.fromkeys(weights, 0.25)
    strategy = TrustedFedAvg(equal, judge=lambda arrays: 1.0 - right(arrays), most_harm=0.3)
    start = train_sgd(sgd_start(), X[names == "ours"], y[names == "ours"])
    found = average(train_sgd, start, strategy)
    assert [node for _, node in strategy.left_out] == [10, 10, 10]
    assert right(found) > 0.85


# -- torch -----------------------------------------------------------------------------------------


def test_a_torch_module_is_averaged_under_the_trust_weights(weights):
    torch = pytest.importorskip("torch")

    def module(arrays):
        made = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
        )
        if arrays is not None:
            made.load_state_dict(arrays.to_torch_state_dict())
        return made

    def train_torch(arrays, X, y):
        made = module(arrays)
        optimiser = torch.optim.Adam(made.parameters(), lr=0.05)
        rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        for _ in range(30):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(made(rows), labels).backward()
            optimiser.step()
        return ArrayRecord(made.state_dict())

    def loss(arrays):
        own = names == "ours"
        with torch.no_grad():
            scores = module(arrays)(torch.tensor(X[own], dtype=torch.float32))
            return float(torch.nn.functional.cross_entropy(scores, torch.tensor(y[own])))

    torch.manual_seed(0)
    start = ArrayRecord(module(None).state_dict())
    strategy = TrustedFedAvg(weights, judge=loss, most_harm=0.5)
    found = average(train_torch, start, strategy)
    own = names == "ours"
    told = module(found)(torch.tensor(X[own], dtype=torch.float32)).argmax(dim=1).numpy()
    assert np.mean(told == y[own]) > 0.85
    assert loss(found) < loss(start)
    assert list(found) == list(start)
    assert found["0.weight"].numpy().dtype == np.float32
