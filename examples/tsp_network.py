"""Round trips by a pointer network: city after city, attention over all that are left.

The teacher knows a nearly shortest trip of each training instance (2-opt and Or-opt, with kicks). Wherever the policy
has gone, it would visit the cities that are left in the order of that trip, in the better direction; what each next
city then costs is known in closed form, so that nothing is rolled out. The network sees the problem that is left as if
it were a new one, as in Drakulic et al. (2023): the city it is in, home, and the cities between. It needs PyTorch,
and a GPU.

    python examples/tsp_network.py --cities 50 --minutes 4
    python examples/tsp_network.py --cities 10 --minutes 0.2 --instances 256 --tests 32 --width 32 --layers 2
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import time
from math import sqrt
from typing import Any

import numba
import numpy as np
import torch
from torch import nn
from torch.nn import functional
from tsp_insertion import draw, lengths, optimum

import lols
from lols.torch import TorchPolicy

MOST = 1 << 18  # cities of states that the network reads at a time


# --- the task ---------------------------------------------------------------------------------------------------------


def far(x, a, b):
    """The distance of two cities."""
    return sqrt((x.east[a] - x.east[b]) ** 2 + (x.north[a] - x.north[b]) ** 2)


class Route(lols.Task):
    """The state: how many cities were visited, the last of them, which are left, and the trip so far.

    It begins and ends in city 0. In training, `order` is a short trip, and the teacher goes by it.
    """

    sizes = lols.Sizes(
        state=lambda x: 2 + 2 * x.n, steps=lambda x: x.n, actions=lambda x: x.n, features=0, action_features=1
    )

    def encode(given):
        places, order = given if isinstance(given, tuple) else (given, np.arange(len(given)))
        x = {"n": len(places), "east": places[:, 0], "north": places[:, 1]}
        return lols.Example(x, {"order": order})

    def start(x, s):
        s[0] = 1
        for c in range(1, x.n):
            s[2 + c] = 1

    def actions(x, s, legal):
        for c in range(x.n):
            legal[c] = s[2 + c] == 1

    def step(x, s, a):
        s[2 + x.n + s[0]] = a
        s[0] += 1
        s[1] = a
        s[2 + a] = 0

    def cost(x, y, s, a):
        return far(x, s[1], a) + (far(x, a, 0) if s[0] == x.n - 1 else 0.0)

    def loss(x, y, s):
        length = far(x, s[1], 0)
        for k in range(1, x.n):
            length += far(x, s[1 + x.n + k], s[2 + x.n + k])
        return length

    def action_features(x, s, a, out):
        pass  # the network looks at the map

    def output(x, s):
        return s[2 + x.n : 2 + 2 * x.n].tolist()

    def reference_costs(x, y, s, out):
        first = last = -1  # of the cities that are left, in the order of the trip
        around = 0.0
        for k in range(x.n):
            c = y.order[k]
            if s[2 + c] == 1:
                if last >= 0:
                    around += far(x, last, c)
                else:
                    first = c
                last = c
        around += far(x, last, first)
        before = here = -1
        for k in range(2 * x.n):  # twice, so that each city is met between its neighbours
            c = y.order[k % x.n]
            if s[2 + c] == 1:
                if before >= 0:
                    on, back = far(x, before, 0) - far(x, before, here), far(x, c, 0) - far(x, here, c)
                    out[here] = far(x, s[1], here) + around + min(on, back)
                before, here = here, c
        if first == last:  # one city is left
            out[first] = far(x, s[1], first) + far(x, first, 0)


# --- the network ------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """Attention among the cities of a state, and a perceptron for each of them."""

    def __init__(self, width: int, heads: int = 8):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, cities: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """New vectors of all cities, [state, city, width]; `there` says which of them are real."""
        states, count, width = cities.shape
        parts = self.look(self.before(cities)).view(states, count, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts, attn_mask=there[:, None, None, :])
        cities = cities + self.back(seen.transpose(1, 2).reshape(states, count, width))
        return cities + self.think(self.between(cities))


class Pointer(nn.Module):
    """Scores the cities that are left by attention among them, the city we are in and home; visited ones are gone."""

    def __init__(self, width: int = 128, layers: int = 6, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.place, self.kind = nn.Linear(6, width), nn.Embedding(3, width)
            self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
            self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))

    def inputs(self, states: Any) -> np.ndarray:
        """The city we are in, and for each city whether it is left."""
        return states.cells(range(1, 2 + states.actions))

    def encode(self, examples: Any) -> torch.Tensor:
        """Where the cities are; in learning, the map is turned and mirrored at random."""
        places = torch.stack([examples.padded("east"), examples.padded("north")], 2) - 0.5
        if self.training:
            turn = torch.rand(len(places), device=places.device) * (2 * np.pi)
            mirror = torch.where(torch.rand_like(turn) < 0.5, -1.0, 1.0)
            rows = [
                torch.stack([turn.cos(), -turn.sin() * mirror], 1),
                torch.stack([turn.sin(), turn.cos() * mirror], 1),
            ]
            places = places @ torch.stack(rows, 2)
        return places

    def forward(self, memory: torch.Tensor, states: Any) -> torch.Tensor:
        """The score of each city; states with about as many cities left are read together."""
        here, left = states.inputs[:, 0], states.inputs[:, 1:] == 1
        order = left.sum(1).argsort(stable=True)
        scores = memory.new_zeros(left.shape)
        for some in order.split(max(1, MOST // left.shape[1])):
            scores[some] = self.scored(memory[states.row[some]], here[some], left[some]).to(scores.dtype)
        return scores

    def scored(self, places: torch.Tensor, here: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
        """The scores of some states: only the cities that are left are read, behind the one we are in and home."""
        count = int(left.sum(1).max())
        chosen = left.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :count]
        there = left.gather(1, chosen)
        at = torch.cat([here[:, None], torch.zeros_like(here)[:, None], chosen], 1)
        found = places.gather(1, at[:, :, None].expand(-1, -1, 2))
        away, homeward = found - found[:, :1], found - found[:, 1:2]
        far = torch.cat([away.norm(dim=2, keepdim=True), homeward.norm(dim=2, keepdim=True)], 2)
        kind = torch.full_like(at, 2)
        kind[:, 0], kind[:, 1] = 0, 1
        cities = self.place(torch.cat([away, homeward, far], 2)) + self.kind(kind)
        there = functional.pad(there, (2, 0), value=True)
        for block in self.blocks:
            cities = block(cities, there)
        scores = self.out(cities)[:, 2:, 0].float() * there[:, 2:]
        return torch.zeros(left.shape, device=scores.device).scatter(1, chosen, scores)


# --- training instances -----------------------------------------------------------------------------------------------


@numba.njit(cache=True, parallel=True)
def short_trips(places: np.ndarray, kicks: int, seed: int) -> np.ndarray:
    """A nearly shortest trip of each instance: local search, kicked again and again; the better trip is kept."""
    count, n = places.shape[0], places.shape[1]
    found = np.empty((count, n), np.int64)
    for i in numba.prange(count):
        np.random.seed(seed + i)
        apart = np.empty((n, n))
        for a in range(n):
            for b in range(n):
                apart[a, b] = np.sqrt(((places[i, a] - places[i, b]) ** 2).sum())
        best = np.random.permutation(n)
        improve(apart, best)
        shortest = length(apart, best)
        for _ in range(kicks):
            cuts = np.sort(1 + np.random.permutation(n - 1)[:3])
            trip = np.concatenate((best[: cuts[0]], best[cuts[1] : cuts[2]], best[cuts[0] : cuts[1]], best[cuts[2] :]))
            improve(apart, trip)
            new = length(apart, trip)
            if new < shortest:
                best, shortest = trip, new
        found[i] = best
    return found


@numba.njit(cache=True)
def length(apart: np.ndarray, trip: np.ndarray) -> float:
    """The length of a round trip."""
    total = apart[trip[-1], trip[0]]
    for k in range(trip.size - 1):
        total += apart[trip[k], trip[k + 1]]
    return total


@numba.njit(cache=True)
def improve(apart: np.ndarray, trip: np.ndarray) -> None:
    """Turn parts of the trip round, and move parts of up to three cities, as long as that makes it shorter."""
    n, better = trip.size, True
    while better:
        better = False
        for i in range(n - 1):
            for j in range(i + 2, n):
                a, b, c, d = trip[i], trip[i + 1], trip[j], trip[(j + 1) % n]
                if a != d and apart[a, c] + apart[b, d] < apart[a, b] + apart[c, d] - 1e-10:
                    trip[i + 1 : j + 1] = trip[i + 1 : j + 1][::-1].copy()
                    better = True
        for size in range(1, 4):
            for _ in range(n):
                trip[:] = np.roll(trip, -1)  # the part is at the beginning, wherever it was
                first, last, before, after = trip[0], trip[size - 1], trip[n - 1], trip[size]
                saved = apart[before, first] + apart[last, after] - apart[before, after]
                for k in range(size, n - 1):
                    a, b = trip[k], trip[k + 1]
                    plain, turned = apart[a, first] + apart[last, b], apart[a, last] + apart[first, b]
                    if min(plain, turned) - apart[a, b] < saved - 1e-10:
                        part = trip[:size].copy()
                        trip[: k + 1 - size] = trip[size : k + 1].copy()
                        trip[k + 1 - size : k + 1] = part if plain <= turned else part[::-1]
                        better = True
                        break


def instances(count: int, cities: int, seed: int, kicks: int) -> list[Any]:
    """Maps and short trips on them."""
    places = np.random.default_rng(seed).random((count, cities, 2))
    return list(zip(places, short_trips(places, kicks, seed)))


# --- training and testing ---------------------------------------------------------------------------------------------


class Clock:
    """The share of the learning rate by the time that is left, from the first step on, and whether it is up."""

    def __init__(self, minutes: float):
        self.began, self.seconds = float("inf"), 60 * minutes

    def __call__(self, step: int) -> float:
        if step == 1:
            self.began = time.perf_counter()
        gone = max(0.0, (time.perf_counter() - self.began) / self.seconds)
        return min(1.0, (step + 1) / 200) * max(0.02, 1.0 - gone)

    def is_up(self, number: int, model: Any) -> bool:
        """Asked after each pass."""
        return time.perf_counter() - self.began > self.seconds


def best_of_64(model: lols.Model, places: np.ndarray) -> np.ndarray:
    """The shortest of 64 trips for each map: eight first cities, and eight ways to turn and mirror it."""
    turned = []
    for start in range(8):
        moved = np.roll(places, -start * (places.shape[1] // 8), axis=1) - 0.5
        for way in (moved, moved[:, :, ::-1]):
            turned += [way, way * [1, -1], way * [-1, 1], -way]
    count, every = len(places), np.concatenate(turned) + 0.5
    found = [lengths(p, trip) for p, trip in zip(every, model.predict(list(every)))]
    return np.array(found).reshape(-1, count).min(0)


def main(argv: list[str] | None = None) -> dict[str, float]:
    """Train, and print how much longer than the shortest trips those of the network are."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--cities", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=4.0, help="time to learn in (default 4)")
    parser.add_argument("--instances", type=int, default=20000, help="maps to learn from (default 20000)")
    parser.add_argument("--kicks", type=int, default=100, help="of the search for the teacher's trips (default 100)")
    parser.add_argument("--tests", type=int, default=1000, help="maps to test on (default 1000)")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--steps", type=int, default=8, help="of the optimiser for each 1,024 maps (default 8)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="bfloat16", help="float32 or bfloat16")
    parser.add_argument("--roll-in", default="learned", help="learned, reference or mixture")
    chosen = parser.parse_args(argv)
    maps = instances(chosen.instances, chosen.cities, chosen.seed, chosen.kicks)
    clock = Clock(chosen.minutes)
    policy = TorchPolicy(
        Pointer(chosen.width, chosen.layers, chosen.seed),
        optimizer=functools.partial(torch.optim.AdamW, lr=chosen.rate, weight_decay=0.01),
        schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, clock),
        steps=chosen.steps, average=0.99, clip=1.0, precision=chosen.precision, seed=chosen.seed, device=chosen.device,
    )  # fmt: skip
    model = lols.train(
        Route, maps, policy=policy, roll_in=chosen.roll_in, roll_out="reference", passes=10_000, progress=False,
        batch_size=min(1024, len(maps)), seed=chosen.seed, after_pass=clock.is_up,
    )  # fmt: skip
    places = np.stack([draw(np.random.default_rng([7, k]), chosen.cities) for k in range(chosen.tests)])
    began = time.perf_counter()
    greedy = np.array([lengths(p, trip) for p, trip in zip(places, model.predict(list(places)))])
    seconds = time.perf_counter() - began
    many = best_of_64(model, places)
    own = [lengths(p, trip.tolist()) for p, trip in zip(places, short_trips(places, chosen.kicks, 1))]
    found = {"cities": chosen.cities, "passes": len(model.report["progressive_loss"]), "greedy": float(greedy.mean())}
    found |= {"best of 64": float(many.mean()), "teacher": float(np.mean(own)), "ms each": 1000 * seconds / len(places)}
    if importlib.util.find_spec("elkai") is not None:
        least = np.array([optimum(p) for p in places])
        for name, values in (("greedy", greedy), ("best of 64", many), ("teacher", np.array(own))):
            found[f"{name}, % above the optimum"] = 100 * float((values / least - 1).mean())
    print(json.dumps(found))
    return found


if __name__ == "__main__":
    main()
