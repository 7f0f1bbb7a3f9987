"""What the classifier learns: cheaper mistakes, predicted costs by hand, streams, seeds, threads and teachers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lols
from lols import CostSensitiveClassifier
from lols.engine.table import lookup
from lols.errors import ConfigurationError, LolsError
from lols.kernels.hashing import mix
from lols.tasks.tables.tree_of_labels import NOTHING
from tests.tasks.tables.classifier_data import classifier, numbers, table, weights
from tests.tasks.tables.table_kinds import KINDS

X, Y = numbers(120)
TABLE, LABELS = table(150)
TREES: list[Any] = ["order", "frequency", "similarity", None, [[0], 1, [[2, 3], 4]]]
LEARNERS = ["hinge", "csoaa", "secoc"]

# --- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["hinge", "csoaa"])
@pytest.mark.parametrize("tree", ["order", None])
def test_costs_make_mistakes_cheaper(tree: Any, learner: str) -> None:
    noisy, labels = table(1500, noise=0.5, seed=3)
    unseen, truth = table(1500, noise=0.5, seed=4)
    costs = np.ones((5, 5)) - np.eye(5)
    costs[1:, 0] = 20.0  # dear: the first class for any other
    made = [
        classifier(tree=tree, learner=learner, cost_matrix=given, passes=5).fit(KINDS["pandas"](noisy), labels)
        for given in (costs, None)
    ]
    told, untold = (m.evaluate(KINDS["pandas"](unseen), truth, costs).cost for m in made)
    assert told < 0.6 * untold
    assert untold == pytest.approx(costs[truth, made[1].predict(KINDS["pandas"](unseen))].mean())


def test_scores_by_hand() -> None:
    made = classifier().fit(X, Y)
    truth = (Y + (np.arange(120) % 7 == 0)) % 4
    scores = made.evaluate(X, truth)
    predicted = made.predict(X)
    assert scores.error == pytest.approx(np.mean(predicted != truth)) == pytest.approx(scores.cost)
    assert scores.confusion.tolist() == [
        [int(((truth == a) & (predicted == b)).sum()) for b in range(4)] for a in range(4)
    ]
    vectors = np.random.default_rng(0).uniform(size=(120, 4))
    by_row = made.evaluate(X, None, vectors)
    assert by_row.cost == pytest.approx(vectors[np.arange(120), predicted].mean())
    assert by_row.as_dict()["rows"] == 120 and set(scores.by_class()) == {"0", "1", "2", "3"}
    with pytest.raises(LolsError, match="there are no rows to evaluate on"):
        made.evaluate(pd.DataFrame(X[:0]), [])


# --- predicted costs --------------------------------------------------------------------------------------------------


def slow_costs(model: CostSensitiveClassifier, X: Any) -> np.ndarray:
    """Down the tree from the root: at every node the weights of a row's features, added up, for each child."""
    policy, tree, task = model._fitted.policy, model.task_.tree, model.task_
    examples = task.examples(model._rows(X))
    items, chances = examples.items, np.diff(policy.chances, prepend=0.0)
    made = np.zeros((len(examples), tree.labels))

    def at_node(row: int, node: int, component: int) -> np.ndarray:
        columns = np.zeros(policy.stack.shape[2], np.float32)
        for k in items.types[items.bounds[row] : items.bounds[row + 1]]:
            part = np.zeros_like(columns)
            for f in range(items.start[k], items.start[k + 1]):
                feature = int(items.ids[f]) if node == 0 else mix(int(items.ids[f]), node)
                at = lookup(policy.shared, feature)
                if at >= 0:
                    part = part + items.values[f] * policy.stack[component, at]
            columns = columns + part
        if not policy.thresholds:
            return columns
        shares = (columns.reshape(policy.code.shape[0], policy.thresholds) > 0).mean(axis=1)
        votes = np.where(policy.code > 0, 1.0 - shares[:, np.newaxis], shares[:, np.newaxis])
        return np.asarray(votes.sum(axis=0), np.float32)

    def descend(row: int, node: int, component: int, above: float, chance: float) -> None:
        costs = at_node(row, node, component)
        legal = [a for a in range(tree.arity) if tree.children[node, a] != NOTHING]
        least = min(costs[a] for a in legal)
        for a in legal:
            child, total = int(tree.children[node, a]), above + costs[a] - least
            if child >= 0:
                descend(row, child, component, total, chance)
            else:
                made[row, tree.order[-child - 1]] += chance * total

    for row in range(len(examples)):
        for component, chance in enumerate(chances.tolist()):
            descend(row, 0, component, 0.0, chance)
    return made - made.min(axis=1, keepdims=True)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("tree", [TREES[0], TREES[3], TREES[4]], ids=str)
def test_predicted_costs_by_hand(tree: Any, learner: str) -> None:
    small, labels = table(30)
    made = classifier(tree=tree, learner=learner, numeric="both", passes=1).fit(KINDS["pandas"](small), labels)
    few = KINDS["pandas"]({name: column[:6] for name, column in small.items()})
    slow = slow_costs(made, few)
    assert np.allclose(made.predict_costs(few), slow, rtol=1e-5, atol=1e-5)
    plain = made.task_.class_costs(made._fitted.policy, made._rows(few), compiled=False)
    assert plain.tobytes() == made.predict_costs(few).astype(np.float32).tobytes()


@pytest.mark.parametrize("algorithm", ["lols", "searn"])
def test_predicted_costs_of_a_mixture_by_hand(algorithm: str) -> None:
    made = classifier(algorithm=algorithm, passes=3, tree="order").fit(KINDS["pandas"](TABLE), LABELS)
    few = KINDS["pandas"]({name: column[:8] for name, column in TABLE.items()})
    assert np.allclose(made.predict_costs(few), slow_costs(made, few), rtol=1e-4, atol=1e-4)
    assert (made._fitted.policy.chances.size > 1) == (algorithm == "searn")


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_prediction_is_the_class_that_seems_cheapest(tree: Any, learner: str) -> None:
    noisy, labels = table(200, noise=0.4)
    made = classifier(tree=tree, learner=learner).fit(KINDS["pandas"](noisy), labels)
    costs, predicted = made.predict_costs(KINDS["pandas"](noisy)), made.predict(KINDS["pandas"](noisy))
    assert costs.shape == (200, 5) and costs.dtype == np.float64 and costs.min() == 0.0
    assert (costs[np.arange(200), predicted] == 0.0).all()
    alone = (costs == 0.0).sum(axis=1) == 1
    assert (np.argmin(costs, axis=1) == predicted)[alone].all() and (learner == "secoc" or alone.mean() > 0.95)
    assert (made.decision_function(KINDS["pandas"](noisy)) == -costs).all()


def test_a_mixture_has_a_cheapest_class_on_average() -> None:
    made = classifier(algorithm="searn", passes=3).fit(X, Y)
    costs = made.predict_costs(X)
    assert (costs.min(axis=1) == 0.0).all() and np.mean(np.argmin(costs, axis=1) == Y) > 0.8


def test_two_classes_have_one_number_and_many_rows_go_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = classifier(numeric="both").fit(X, Y > 1)
    one = made.decision_function(X)
    assert one.shape == (120,) and ((one > 0) == made.predict(X)).all()
    whole = made.predict_costs(X)
    monkeypatch.setattr("lols.tasks.tables.estimator.TOGETHER", 7)
    assert made.predict_costs(X).tobytes() == whole.tobytes()
    empty = pd.DataFrame(X[:0])
    assert made.predict(empty).size == 0 and made.predict_costs(empty).shape == (0, 2)


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("tree", ["order", None])
def test_a_stream_in_pieces_is_the_stream(tree: Any, sparse: bool) -> None:
    from scipy.sparse import csr_matrix

    given: Any = csr_matrix(X) if sparse else X
    first = slice(0, 40)
    ends = []
    for cuts in ([40, 120], [40, 41, 60, 97, 120], [*range(40, 121)]):
        made = classifier(tree=tree).partial_fit(given[first], Y[first], classes=range(4))
        for low, high in pairwise(cuts):
            made.partial_fit(given[low:high], Y[low:high])
        ends.append(weights(made))
    assert ends[0] == ends[1] == ends[2]
    assert made.score(given, Y) > 0.6


def test_a_stream_goes_on_after_training() -> None:
    made = classifier().fit(X, Y)
    before, seen = weights(made), made.predict(X)
    made.partial_fit(X[:50], Y[:50])
    assert weights(made) != before and np.mean(made.predict(X) == seen) > 0.9
    costly = classifier(cost_matrix=1.0 - np.eye(4)).fit(X, Y)
    costly.partial_fit(X, Y, costs=1.0 - np.eye(4))
    costly.partial_fit(X, costs=1.0 - np.eye(4)[Y])
    with pytest.raises(ConfigurationError, match="the cost matrix is not that of the first call"):
        costly.partial_fit(X, Y, costs=2.0 - 2 * np.eye(4))
    with pytest.raises(ConfigurationError, match="the cost matrix is not that of the first call"):
        made.partial_fit(X, Y, costs=2.0 - 2 * np.eye(4))
    with pytest.raises(ConfigurationError, match="4 is a new class, and the model's cost matrix does not say"):
        costly.partial_fit(X, Y, classes=range(5))


def test_what_a_stream_needs(tmp_path: Any) -> None:
    with pytest.raises(ConfigurationError, match="the first call of partial_fit needs classes"):
        classifier().partial_fit(X, Y)
    made = classifier(classes=[0, 1, 2, 3]).partial_fit(X[:50], Y[:50])
    with pytest.raises(LolsError, match="label 9 is not among the classes"):
        made.partial_fit(X[:1], [9])
    made.save(tmp_path / "m.lols")
    with pytest.warns(UserWarning, match="m.lols has no learner's state: learning starts from its weights alone"):
        lols.load(tmp_path / "m.lols").partial_fit(X, Y)
    with pytest.raises(ConfigurationError, match="searn needs to know how much data there is"):
        classifier(algorithm="searn").partial_fit(X, Y, classes=range(4))


# --- what does and does not change the result -------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["lols", "searn", "dagger", "aggrevate"])
def test_threads_do_not_change_the_result_and_seeds_do(algorithm: str) -> None:
    one, two = (classifier(threads=n, algorithm=algorithm).fit(X, Y) for n in (1, 2))
    assert weights(one) == weights(two) == weights(classifier(algorithm=algorithm).fit(X, Y))
    assert one.predict_costs(X).tobytes() == two.predict_costs(X).tobytes()
    assert weights(classifier(seed=1, algorithm=algorithm).fit(X, Y)) != weights(one)


def test_the_pass_that_is_cheapest_on_dev_data_is_kept() -> None:
    noisy, labels = table(150, noise=0.6)
    other, truth = table(150, noise=0.6, seed=5)
    made = classifier(passes=8, patience=2).fit(KINDS["pandas"](noisy), labels, dev=(KINDS["pandas"](other), truth))
    history = [scores["cost"] for scores in made.model_.report["dev"]]
    best = int(np.argmin(history))
    assert made.model_.about["best_pass"] in (best, best + 1)
    assert made.evaluate(KINDS["pandas"](other), truth).cost == pytest.approx(history[best])
    assert len(history) == 8 or len(history) - 1 - best >= 2
    costs = 3.0 * (1 - np.eye(5))
    tripled = classifier(cost_matrix=costs).fit(KINDS["pandas"](noisy), labels, dev=(KINDS["pandas"](other), truth))
    assert tripled.model_.report["dev"][0]["cost"] == pytest.approx(
        3 * np.round(tripled.model_.report["dev"][0]["cost"] / 3, 9)
    )
    with pytest.raises(LolsError, match="there are no dev rows to choose on"):
        classifier().fit(KINDS["pandas"](noisy), labels, dev=(KINDS["pandas"]({n: [] for n in noisy}), []))


@pytest.mark.parametrize("reference", ["optimal", "suboptimal", "bad"])
@pytest.mark.parametrize("tree", ["order", None])
def test_lols_does_without_a_good_teacher(tree: Any, reference: str) -> None:
    made = classifier(tree=tree, reference=reference, passes=10).fit(X, Y)
    assert made.score(X, Y) > 0.95
