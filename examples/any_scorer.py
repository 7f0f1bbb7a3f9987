"""Any scorer as the policy: scikit-learn's SGDRegressor, and a small neural network, beside the linear learner.

Tiles come by in a row, each of one of four kinds. A tile shows four pixels, black or white, and a hint. The pixels tell
the kind only in pairs (is the first like the second, the third like the fourth?), which no weighted sum of them can
see; the hint is often wrong. Kinds last for a while, so that the kind before is a good guess, too.

    python examples/any_scorer.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.linear_model import SGDRegressor

import lols
from lols import emit, feature, hamming
from lols.policies import States

KINDS, PIXELS = 4, 4


# --- the task ---------------------------------------------------------------------------------------------------------


class Tiles(lols.Task):
    """Name the kinds of the tiles from left to right: s[0] tiles are named, the last of them s[1] - 1."""

    columns = lols.Columns(x=("pixels", "hints"), y=("kinds",))
    sizes = lols.Sizes(
        state=lambda x: 2 + len(x.hints), live=2, actions=KINDS, features=PIXELS + 3, steps=lambda x: len(x.hints)
    )

    def actions(x, s, legal):
        legal[:] = s[0] < len(x.hints)

    def step(x, s, a):
        s[2 + s[0]] = a
        s[0] += 1
        s[1] = 1 + a

    def features(x, s, out):
        for k in range(PIXELS):
            emit(out, feature(0, k), 1.0 if x.pixels[s[0] * PIXELS + k] else -1.0)
        emit(out, feature(1, x.hints[s[0]]))
        emit(out, feature(2, s[1]))
        emit(out, feature(3))

    def cost(x, y, s, a):
        return 1.0 if a != y.kinds[s[0]] else 0.0

    def key(x, s):
        return s[0] * 8 + s[1]

    def loss(x, y, s):
        return hamming(s[2:], y.kinds)

    def output(x, s):
        return s[2 : 2 + len(x.hints)].tolist()

    def reference(x, y, s):
        return y.kinds[s[0]]


def rows_of_tiles(count: int, seed: int) -> list[dict[str, list[int]]]:
    """Rows of 12 tiles; a kind stays with chance 0.7, a pixel is wrong with chance 0.03, a hint right with 0.6."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        kinds = [int(rng.integers(KINDS))]
        while len(kinds) < 12:
            kinds.append(kinds[-1] if rng.random() < 0.7 else int(rng.integers(KINDS)))
        first, third = rng.integers(2, size=(2, 12))
        bits = np.stack([first, first ^ (np.array(kinds) >> 1), third, third ^ (np.array(kinds) & 1)], axis=1)
        bits ^= rng.random(bits.shape) < 0.03
        hints = [k if rng.random() < 0.6 else int(rng.integers(KINDS)) for k in kinds]
        made.append({"pixels": bits.ravel().tolist(), "hints": hints, "kinds": kinds})
    return made


# --- two policies -----------------------------------------------------------------------------------------------------


class Regressors:
    """One of scikit-learn's regressors for each action, which learns from the costs that are known of it."""

    def __init__(self, actions: int, columns: int = 1 << 10):
        self.columns, self.models = (
            columns,
            [SGDRegressor(learning_rate="constant", random_state=0) for _ in range(actions)],
        )

    def costs(self, states: States) -> np.ndarray:
        seen = states.matrix(self.columns)
        return np.stack([m.predict(seen) if hasattr(m, "coef_") else np.zeros(len(states)) for m in self.models], 1)

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        seen = states.matrix(self.columns)
        for a, model in enumerate(self.models):
            known = np.flatnonzero(np.isfinite(costs[:, a]))
            if known.size:
                model.partial_fit(seen[known], costs[known, a], sample_weight=weights[known])


class Network:
    """A network with one hidden layer that predicts all costs at once; those that are not known pull at nothing."""

    def __init__(self, actions: int, columns: int = 256, hidden: int = 32, rate: float = 0.01, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.columns, self.rate, self.steps = columns, rate, 0
        self.weights = [
            rng.normal(0.0, 0.5, (columns, hidden)),
            np.zeros(hidden),
            rng.normal(0.0, 0.1, (hidden, actions)),
            np.zeros(actions),
        ]
        self.moments = [np.zeros((2, *w.shape)) for w in self.weights]

    def costs(self, states: States) -> np.ndarray:
        return self._forward(states.dense(self.columns))[1]

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        seen = states.dense(self.columns)
        for low in range(0, len(states), 64):
            self._step(seen[low : low + 64], costs[low : low + 64], weights[low : low + 64])

    def state(self) -> dict[str, np.ndarray]:
        arrays = {f"{name}{k}": a for name in ("weights", "moments") for k, a in enumerate(getattr(self, name))}
        return arrays | {"steps": np.array([self.steps])}

    def load(self, state: dict[str, np.ndarray]) -> None:
        for name in ("weights", "moments"):
            for k, array in enumerate(getattr(self, name)):
                array[:] = state[f"{name}{k}"]
        self.steps = int(state["steps"][0])

    def _forward(self, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hidden = np.maximum(seen @ self.weights[0] + self.weights[1], 0.0)
        return hidden, hidden @ self.weights[2] + self.weights[3]

    def _step(self, seen: np.ndarray, costs: np.ndarray, weights: np.ndarray) -> None:
        """One step of Adam (Kingma & Ba 2015) on the squared errors of the costs that are known."""
        hidden, predicted = self._forward(seen)
        wrong = np.where(np.isfinite(costs), predicted - costs, 0.0) * weights[:, np.newaxis] / len(seen)
        back = (wrong @ self.weights[2].T) * (hidden > 0.0)
        self.steps += 1
        gradients = (seen.T @ back, back.sum(0), hidden.T @ wrong, wrong.sum(0))
        for weight, moment, gradient in zip(self.weights, self.moments, gradients, strict=True):
            moment[0] += 0.1 * (gradient - moment[0])
            moment[1] += 0.001 * (gradient**2 - moment[1])
            mean, square = moment[0] / (1.0 - 0.9**self.steps), moment[1] / (1.0 - 0.999**self.steps)
            weight -= self.rate * mean / (np.sqrt(square) + 1e-8)


# --- all three --------------------------------------------------------------------------------------------------------


def accuracy(model: lols.Model, rows: list[dict[str, list[int]]]) -> float:
    return 1.0 - float(model.losses(rows).sum()) / sum(len(row["kinds"]) for row in rows)


def compare(count: int, *, passes: int = 5, test: int = 500, seed: int = 0, compiled: bool = True) -> dict[str, float]:
    """Train each policy on the same rows; its accuracy on others."""
    train, unseen = rows_of_tiles(count, 2 * seed + 1), rows_of_tiles(test, 2 * seed + 2)
    ways: dict[str, Any] = {
        "linear, fused driver": None,
        "SGDRegressor, lock-step": Regressors(KINDS),
        "neural network, lock-step": Network(KINDS, seed=seed),
    }
    how: dict[str, Any] = {"passes": passes, "batch_size": 50, "seed": seed, "compiled": compiled}
    return {name: accuracy(lols.train(Tiles, train, policy=policy, **how), unseen) for name, policy in ways.items()}


def main() -> None:
    """Train and show."""
    parser = argparse.ArgumentParser(description="The same task with three kinds of policies.")
    parser.add_argument("--rows", type=int, default=1000, help="rows of tiles to train on (default 1000)")
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    for name, right in compare(chosen.rows, passes=chosen.passes, seed=chosen.seed).items():
        print(f"{name:<26} {100 * right:5.1f} % right")


if __name__ == "__main__":
    main()
