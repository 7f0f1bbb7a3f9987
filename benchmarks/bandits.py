"""The bandit's defaults beside Vowpal Wabbit's explorers and LinUCB, on the same arrivals.

``python -m benchmarks.bandits [--seeds 5] [--rounds 10000] [--jobs 2] [--only digits slates]`` prints a table. Needs
``pip install vowpalwabbit scikit-learn``, and `LOLS_DATA` for mushroom, magic and shuttle.

In a table of data an action is a guess of the class, and only whether it was right is seen: the figures are mean losses
of all rounds. A slate is three of ten items in order; the figures are mean rewards (clicks a slot), with a loss for
each slot and with one for the whole. The rules that lols must be given guess class 0, and show popular items first.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import lols
from lols import emit, feature

TABLES = ("digits", "cancer", "wine", "made", "mushroom", "magic", "shuttle")
SLATES = ("slates, a loss a slot", "slates, one loss")
EXPLORERS = {"VW epsilon-greedy .05": "--epsilon 0.05", "VW squarecb": "--squarecb"}
SEEN = (0.9, 0.6, 0.4)  # how often a slot is looked at
WIDTH = 0.3  # of LinUCB's confidence

# --- tables -----------------------------------------------------------------------------------------------------------


@functools.cache
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of the same scale, and classes."""
    from sklearn import datasets

    if name == "made":
        x, y = datasets.make_classification(6000, 30, n_informative=12, n_classes=6, random_state=5)
    elif name in ("digits", "cancer", "wine"):
        x, y = getattr(datasets, {"cancer": "load_breast_cancer"}.get(name, f"load_{name}"))(return_X_y=True)
    else:
        with gzip.open(Path(os.environ["LOLS_DATA"]) / f"bandit-{name}.csv.gz", "rt") as file:
            rows = list(csv.reader(file))[1:]
        if name == "mushroom":
            columns = [np.array(column) for column in list(zip(*rows, strict=True))[1:]]
            x = np.concatenate([(c[:, None] == np.unique(c)[None]) * 1.0 for c in columns], axis=1)
            return x, np.unique([row[0] for row in rows], return_inverse=True)[1]
        x = np.array([[float(value) for value in row[:-1]] for row in rows])
        y = np.unique([row[-1] for row in rows], return_inverse=True)[1]
    scaled = x / 16 if name == "digits" else (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9)
    return scaled, y


def arrivals(name: str, seed: int, rounds: int) -> Iterator[tuple[np.ndarray, int]]:
    """Rows in random order, pass after pass."""
    x, y = table(name)
    draw = np.random.default_rng(seed)
    order = np.concatenate([draw.permutation(len(x)) for _ in range(-(-rounds // len(x)))])[:rounds]
    return ((x[k], int(y[k])) for k in order)


def guessing(columns: int, classes: int) -> lols.SearchSpace:
    """One step, whose action is a class."""

    def actions(x: Any, s: Any, legal: Any) -> None:
        if s[0] == 0:
            legal[:] = True

    def step(x: Any, s: Any, a: Any) -> None:
        s[0], s[1] = 1, a

    def features(x: Any, s: Any, out: Any) -> None:
        emit(out, feature(0))
        for k in range(len(x.row)):
            if x.row[k] != 0.0:
                emit(out, feature(1, k), x.row[k])

    return lols.SearchSpace(
        start=lambda x, s: None,
        actions=actions,
        step=step,
        features=features,
        loss=lambda x, y, s: 0.0,
        output=lambda x, s: int(s[1]),
        encode=lambda row: lols.Example({"row": row}),
        sizes=lols.Sizes(state=2, actions=classes, features=columns + 1, steps=1),
    )


def guess_by_lols(name: str, seed: int, rounds: int) -> float:
    x, y = table(name)
    first = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    bandit = lols.StructuredBandit(guessing(x.shape[1], int(y.max()) + 1), first, seed=seed)
    wrong = 0.0
    for row, right in arrivals(name, seed, rounds):
        shown = bandit.decide(row.tolist())
        wrong += shown.output != right
        bandit.learn(shown.id, float(shown.output != right))
    return wrong / rounds


def guess_by_vw(name: str, seed: int, rounds: int, explorer: str) -> float:
    import vowpalwabbit

    classes, wrong = int(table(name)[1].max()) + 1, 0.0
    vw = vowpalwabbit.Workspace(f"--cb_explore {classes} --quiet --random_seed {seed} {explorer}")
    draw = np.random.default_rng(seed)
    for row, right in arrivals(name, seed, rounds):
        line = "| " + " ".join(f"f{k}:{value:.6g}" for k, value in enumerate(row) if value)
        chances = np.array(vw.predict(line))
        action = int(draw.choice(classes, p=chances / chances.sum()))
        wrong += action != right
        vw.learn(f"{action + 1}:{float(action != right)}:{chances[action]:.6g} {line}")
    vw.finish()
    return wrong / rounds


def guess_by_linucb(name: str, seed: int, rounds: int) -> float:
    x, y = table(name)
    classes, width, wrong = int(y.max()) + 1, x.shape[1] + 1, 0.0
    inverse, sums = np.stack([np.eye(width)] * classes), np.zeros((classes, width))
    for row, right in arrivals(name, seed, rounds):
        z = np.append(row, 1.0)
        gain = inverse @ z
        action = int(np.argmin(np.einsum("kd,kd->k", gain, sums) - WIDTH * np.sqrt(np.maximum(gain @ z, 0.0))))
        wrong += action != right
        inverse[action] -= np.outer(gain[action], gain[action]) / (1.0 + z @ gain[action])
        sums[action] += z * float(action != right)
    return wrong / rounds


# --- slates -----------------------------------------------------------------------------------------------------------


def _actions(x: Any, s: Any, legal: Any) -> None:
    for a in range(len(x.item)):
        legal[a] = s[0] < 3 and a + 1 != s[1] and a + 1 != s[2]


def _step(x: Any, s: Any, a: Any) -> None:
    s[0] += 1
    s[s[0]] = a + 1


def _features(x: Any, s: Any, out: Any) -> None:
    emit(out, feature(0, s[0]))


def _action_features(x: Any, s: Any, a: Any, out: Any) -> None:
    last = x.kind[s[s[0]] - 1] if s[0] > 0 else -1
    emit(out, feature(1, x.item[a]))
    emit(out, feature(2, x.kind[a], x.reader))
    emit(out, feature(3, x.item[a], x.reader), 0.5)
    emit(out, feature(4, s[0]), x.popular[a])
    emit(out, feature(5, x.device), x.price[a])
    emit(out, feature(6, x.kind[a], last))
    emit(out, feature(7, s[0], x.kind[a]))


def _popular(x: Any, y: Any, s: Any) -> int:
    best = -1
    for a in range(len(x.item)):
        if a + 1 != s[1] and a + 1 != s[2] and (best < 0 or x.popular[a] > x.popular[best]):
            best = a
    return best


SLATE = lols.SearchSpace(
    start=lambda x, s: None,
    actions=_actions,
    step=_step,
    features=_features,
    action_features=_action_features,
    loss=lambda x, y, s: 0.0,
    output=lambda x, s: [int(a) - 1 for a in s[1:]],
    encode=lambda page: lols.Example(page),
    sizes=lols.Sizes(state=4, actions=10, features=1, action_features=7, steps=3),
)


def pages(seed: int, rounds: int) -> Iterator[tuple[dict[str, Any], random.Random]]:
    """Pages of ten of forty items for one of four readers, and a stream of random numbers for the clicks."""
    draw, clicks = random.Random(seed), random.Random(seed + 1)
    for _ in range(rounds):
        items = draw.sample(range(40), 10)
        page = {
            "item": items,
            "kind": [k % 6 for k in items],
            "price": [k * 37 % 100 / 100 for k in items],
            "popular": [k * 61 % 100 / 100 for k in items],
            "device": draw.randrange(3),
            "reader": draw.randrange(4),
        }
        yield page, clicks


def click_chance(page: dict[str, Any], a: int, slot: int) -> float:
    liked = page["kind"][a] == page["reader"]
    return SEEN[slot] * (0.7 if liked else 0.1 + 0.15 * page["popular"][a])


def shown_slate(
    seed: int, rounds: int, choose: Callable[[dict[str, Any]], list[int]], learn: Callable[[list[bool]], None]
) -> float:
    """The mean reward of what is chosen: the expected number of clicks a slot."""
    reward = 0.0
    for page, clicks in pages(seed, rounds):
        chances = [click_chance(page, a, slot) for slot, a in enumerate(choose(page))]
        reward += sum(chances) / 3
        learn([clicks.random() < chance for chance in chances])
    return reward / rounds


def slate_by_lols(seed: int, rounds: int, by_slot: bool) -> float:
    rules = lols.Reference(action=_popular, needs_truth=False)
    bandit, shown = lols.StructuredBandit(SLATE, rules, seed=seed), []

    def choose(page: dict[str, Any]) -> list[int]:
        shown[:] = [bandit.decide(page)]
        return list(shown[0].output)

    def learn(clicks: list[bool]) -> None:
        if by_slot:
            bandit.learn(shown[0].id, losses=[1.0 - click for click in clicks])
        else:
            bandit.learn(shown[0].id, 1.0 - sum(clicks) / 3)

    return shown_slate(seed, rounds, choose, learn)


def slate_by_vw(seed: int, rounds: int, by_slot: bool, explorer: str) -> float:
    import vowpalwabbit

    vw = vowpalwabbit.Workspace(f"--ccb_explore_adf -q UA -q AP -q UP --quiet --random_seed {seed} {explorer}")
    last: list[Any] = []

    def choose(page: dict[str, Any]) -> list[int]:
        lines = [f"ccb shared |U r{page['reader']} d{page['device']}"]
        for k, item in enumerate(page["item"]):
            numbers = f"price:{page['price'][k]} popular:{page['popular'][k]}"
            lines.append(f"ccb action |A i{item} k{page['kind'][k]} {numbers}")
        drawn = vw.predict(lines + [f"ccb slot |P p{slot}" for slot in range(3)])
        last[:] = [lines, [slot[0] for slot in drawn]]
        return [a for a, _ in last[1]]

    def learn(clicks: list[bool]) -> None:
        lines, drawn = last
        costs = [1.0 - click for click in clicks] if by_slot else [1.0 - sum(clicks) / 3] * 3
        labels = [f"{a}:{costs[slot]:.5g}:{max(chance, 1e-4):.5g}" for slot, (a, chance) in enumerate(drawn)]
        vw.learn(lines + [f"ccb slot {label} |P p{slot}" for slot, label in enumerate(labels)])

    reward = shown_slate(seed, rounds, choose, learn)
    vw.finish()
    return reward


def slate_by_rules(seed: int, rounds: int) -> float:
    def choose(page: dict[str, Any]) -> list[int]:
        return sorted(range(10), key=lambda a: -page["popular"][a])[:3]

    return shown_slate(seed, rounds, choose, lambda clicks: None)


# --- all --------------------------------------------------------------------------------------------------------------


def systems(what: str) -> dict[str, Callable[[int, int], float]]:
    """What is compared, by name: functions of a seed and a number of rounds."""
    if what in SLATES:
        by_slot = what == SLATES[0]
        return {
            "lols": functools.partial(slate_by_lols, by_slot=by_slot),
            **{name: functools.partial(slate_by_vw, by_slot=by_slot, explorer=e) for name, e in EXPLORERS.items()},
            "the rules": slate_by_rules,
        }
    return {
        "lols": functools.partial(guess_by_lols, what),
        **{name: functools.partial(guess_by_vw, what, explorer=e) for name, e in EXPLORERS.items()},
        "LinUCB .3": functools.partial(guess_by_linucb, what),
    }


def measured(what: str, name: str, seed: int, rounds: int) -> float:
    return systems(what)[name](seed, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="parts of names; all unless given")
    given = parser.parse_args()
    chosen = [w for w in (*TABLES, *SLATES) if not given.only or any(part in w for part in given.only)]
    with ProcessPoolExecutor(given.jobs) as pool:
        for what in chosen:
            print(what)
            for name in systems(what):
                jobs = [pool.submit(measured, what, name, seed, given.rounds) for seed in range(given.seeds)]
                found = np.array([job.result() for job in jobs])
                print(f"  {name:24} {found.mean():.4f}   from {found.min():.4f} to {found.max():.4f}", flush=True)


if __name__ == "__main__":
    main()
