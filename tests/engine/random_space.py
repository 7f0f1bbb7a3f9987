"""One search space for all tests of the engine: a random layered graph, read from tables that come with the example.

All variants below share the functions of this module; a variant chooses which of the optional ones the space has and
what its reference offers. A pair of space and reference is compiled once, whatever the tables hold: there are few.

========  ====================================================  ============================================
variant   the space has                                         the reference
========  ====================================================  ============================================
bare      only what is needed; a loss that remembers the path   draws at random
keyed     `key`; a loss of the end state alone                  a set of equally good actions
full      `cost`, `key`, `items`, `live`                        an action
closed    as full                                               an action, and its costs in closed form
pictured  `cost`, `action_features`, `live`                     closed-form costs alone (the best possible)
========  ====================================================  ============================================

States are shared: many paths lead to one node, so that roll-outs really meet. The cells behind `live` hold the path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lols import Example, Examples, Reference, SearchSpace, Sizes, emit, feature, look, mix, uniform
from lols.contract.examples import Items

ACTIONS, WIDTH, LOOKS, ROLES, ACTION_WIDTH = 4, 3, 2, 2, 2
POOL = [feature(0, k) for k in range(6)]
ITEM_POOL = [feature(1, k) for k in range(5)]
ACTION_POOL = [feature(2, k) for k in range(5)]


# --- the space --------------------------------------------------------------------------------------------------------


def start(x, s):
    s[0] = x.root


def actions(x, s, legal):
    for a in range(legal.size):
        legal[a] = x.next[s[0] * ACTIONS + a] >= 0


def step(x, s, a):
    s[2 + s[1]] = s[0] * ACTIONS + a + 1
    s[1] += 1
    s[0] = x.next[s[0] * ACTIONS + a]


def features(x, s, out):
    for k in range(x.first[s[0]], x.first[s[0] + 1]):
        emit(out, x.ids[k], x.values[k])


def items(x, s, out):
    for k in range(LOOKS):
        at = (s[0] * LOOKS + k) * 2
        if x.looks[at] >= 0:
            look(out, x.looks[at], x.looks[at + 1])


def action_features(x, s, a, out):
    for k in range(ACTION_WIDTH):
        at = (s[0] * ACTIONS + a) * ACTION_WIDTH + k
        if x.action_values[at] != 0.0:
            emit(out, x.action_ids[at], x.action_values[at])


def loss_of_path(x, y, s):
    total = y.final[s[0]]
    for t in range(s[1] - 1, -1, -1):
        total = y.price[s[2 + t] - 1] + total
    return total


def loss_of_end(x, y, s):
    return y.final[s[0]]


def cost(x, y, s, a):
    return y.price[s[0] * ACTIONS + a]


def key(x, s):
    return feature(3, s[0])


def output(x, s):
    return s[2 : 2 + s[1]].tolist()


def encode(obj):
    return obj


# --- the references ---------------------------------------------------------------------------------------------------


def teach(x, y, s):
    return y.teach[s[0]]


def teach_at_random(x, y, s, rng):
    return y.teach[s[0]] if uniform(rng) < 0.5 else y.other[s[0]]


def free(x, y, s, out):
    for a in range(out.size):
        out[a] = y.free[s[0] * ACTIONS + a] > 0


def costs(x, y, s, out):
    for a in range(out.size):
        out[a] = y.cost_to_go[s[0] * ACTIONS + a] + y.offset[s[0]]


# --- variants ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A space, a reference, and the kind of tables they go with."""

    name: str
    space: SearchSpace
    reference: Reference
    kind: str  # which losses count: those of the "end", of the "path", or "both"
    best: bool = False  # closed-form costs are those of the best policy, not of `teach`


SIZES = Sizes(
    state=lambda x: 2 + int(x.depth),
    actions=ACTIONS,
    features=WIDTH,
    steps=lambda x: int(x.depth),
    items=LOOKS,
    roles=ROLES,
    action_features=ACTION_WIDTH,
)
BARE = SearchSpace(
    start=start,
    actions=actions,
    step=step,
    features=features,
    loss=loss_of_path,
    output=output,
    encode=encode,
    sizes=replace(SIZES, items=0, action_features=0),
    name="bare",
)
FULL = replace(BARE, cost=cost, key=key, items=items, sizes=replace(SIZES, live=2, action_features=0), name="full")
PICTURED = replace(
    BARE, cost=cost, action_features=action_features, sizes=replace(SIZES, live=2, items=0), name="pictured"
)
VARIANTS = {
    v.name: v
    for v in (
        Variant("bare", BARE, Reference(action=teach_at_random), "both"),
        Variant("keyed", replace(BARE, key=key, loss=loss_of_end, name="keyed"), Reference(free=free), "end"),
        Variant("full", FULL, Reference(action=teach), "path"),
        Variant("closed", FULL, Reference(action=teach, costs=costs), "path"),
        Variant("pictured", PICTURED, Reference(costs=costs), "path", best=True),
    )
}


# --- tables -----------------------------------------------------------------------------------------------------------


def random_example(
    rng: np.random.Generator,
    variant: Variant,
    *,
    depth: int = 4,
    nodes: int = 10,
    exact: bool = True,
    offset: float = 0.0,
) -> Example:
    """One random graph. With `exact`, numbers are small multiples of 1/4, whose sums are exact in any order."""

    def numbers(size: int) -> np.ndarray:
        return rng.integers(1, 9, size) / 4.0 if exact else rng.uniform(0.1, 2.0, size)

    layer = np.concatenate([[0], np.sort(rng.integers(1, depth + 1, nodes - 1))])
    name = rng.permutation(nodes)  # nodes in order of their layers → their numbers in the tables
    following = np.full((nodes, ACTIONS), -1, np.int64)
    for k in range(nodes):
        later = np.flatnonzero(layer > layer[k])
        for a in range(ACTIONS):
            if later.size and (rng.random() < 0.7 or (k == 0 and a == 1)):
                near = later[layer[later] == layer[later[0]]]
                following[name[k], a] = name[rng.choice(near if rng.random() < 0.8 else later)]
    legal = following >= 0
    price = numbers(nodes * ACTIONS).reshape(nodes, ACTIONS) * (rng.random((nodes, ACTIONS)) < 0.7)
    final = numbers(nodes) * (rng.random(nodes) < 0.8)
    price = np.zeros_like(price) if variant.kind == "end" else price
    final = np.zeros_like(final) if variant.kind == "path" else final
    chosen = np.array([[rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in legal] for _ in range(2)])
    good = legal & (rng.random(legal.shape) < 0.5)
    good[np.arange(nodes), chosen[0]] |= legal.any(axis=1)

    cost_to_go, length = np.zeros((nodes, ACTIONS)), np.zeros(nodes, np.int64)
    worth = final.copy()
    for k in range(nodes - 1, -1, -1):
        n = name[k]
        if legal[n].any():
            ways = np.flatnonzero(legal[n])
            cost_to_go[n, ways] = price[n, ways] + worth[following[n, ways]]
            worth[n] = cost_to_go[n, ways].min() if variant.best else cost_to_go[n, chosen[0, n]]
            length[n] = 1 + length[following[n, ways]].max()

    picked = [rng.choice(len(POOL), rng.integers(0, WIDTH + 1), replace=False) for _ in range(nodes)]
    first = np.concatenate([[0], np.cumsum([p.size for p in picked])])
    tokens = int(rng.integers(1, 4))
    looks = np.stack([rng.integers(-1, tokens, (nodes, LOOKS)), np.tile([0, 1], (nodes, 1))], axis=2)
    worn = [rng.choice(len(ITEM_POOL), rng.integers(0, 3), replace=False) for _ in range(tokens)]
    shown = nodes * ACTIONS * ACTION_WIDTH
    pairs = np.array([rng.choice(len(ACTION_POOL), ACTION_WIDTH, replace=False) for _ in range(nodes * ACTIONS)])
    return Example(
        {
            "root": int(name[0]),
            "depth": int(length[name[0]]),
            "next": following.ravel(),
            "first": first.astype(np.int64),
            "ids": np.array([POOL[k] for p in picked for k in p], np.int64),
            "values": numbers(int(first[-1])),
            "looks": looks.ravel().astype(np.int64),
            "action_ids": np.array([ACTION_POOL[k] for k in pairs.ravel()], np.int64),
            "action_values": numbers(shown) * (rng.random(shown) < 0.7),
        },
        {
            "price": price.ravel(),
            "final": final,
            "teach": chosen[0].astype(np.int64),
            "other": chosen[1].astype(np.int64),
            "free": good.ravel().astype(np.int64),
            "cost_to_go": cost_to_go.ravel(),
            "offset": np.full(nodes, offset) * rng.integers(0, 4, nodes),
        },
        [([ITEM_POOL[k] for k in w], numbers(w.size)) for w in worn],
    )


def random_data(
    seed: int, variant: Variant, *, count: int = 4, depth: int = 4, nodes: int = 10, **options: Any
) -> list[Example]:
    """Several random graphs."""
    rng = np.random.default_rng(seed)
    return [random_example(rng, variant, depth=depth, nodes=nodes, **options) for _ in range(count)]


def in_parts(examples: Examples, parts: int, seed: int = 0) -> Examples:
    """The same data set with every item's features cut at random into so many types, some of them empty."""
    rng, of = np.random.default_rng(seed), examples.items
    types: dict[tuple[tuple[int, float], ...], int] = {}
    made = []
    for kind in of.types:
        span = range(of.start[kind], of.start[kind + 1])
        features = [(int(of.ids[k]), float(of.values[k])) for k in span]
        cuts = [0, *np.sort(rng.integers(0, len(features) + 1, parts - 1)), len(features)]
        for k in range(parts):
            made.append(types.setdefault(tuple(features[cuts[k] : cuts[k + 1]]), len(types)))
    start = np.concatenate([[0], np.cumsum([len(features) for features in types])]).astype(np.int64)
    ids, values = ([pair[k] for features in types for pair in features] for k in range(2))
    return Examples.from_columns(
        examples.space,
        len(examples),
        examples.x._asdict(),
        examples.y._asdict(),
        Items(
            of.first,
            np.array(made, np.int64),
            start,
            np.array(ids, np.int64),
            np.array(values, np.float32),
            parts=parts,
        ),
    )


@st.composite
def data_sets(draw: Any, variant: Variant, *, exact: bool = True) -> list[Example]:
    """Data sets of one to four graphs with up to five layers and twelve nodes."""
    return random_data(
        draw(st.integers(0, 2**32 - 1)),
        variant,
        count=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 5)),
        nodes=draw(st.integers(2, 12)),
        exact=exact,
    )


def all_features(variant: Variant) -> tuple[list[int], list[int]]:
    """All ids that states can show, items in their roles among them, and all ids that actions can show."""
    states = [*POOL, *ITEM_POOL, *(mix(k, 1) for k in ITEM_POOL)] if variant.space.items else list(POOL)
    return states, list(ACTION_POOL) if variant.space.action_features else []
