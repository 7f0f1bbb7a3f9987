"""Tagging: one decision per word, left to right, with the tags before as history and legal transitions only.

The functions are the same for any templates and labels: those come as settings and columns, so they are compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.contract.examples import Examples, Ragged, Scalar
from lols.contract.features import emit, look, uniform
from lols.contract.space import Example, Reference, SearchSpace, Sizes, as_family
from lols.kernels.hashing import mix
from lols.tasks.tagging.spans import Automaton
from lols.tasks.tokens.encoding import Encoded, TemplateLayout

# The state: position, the last three tags plus one (0 outside the sentence), the automaton's state, where the open span
# began (for losses of spans); then the tags given.
POSITION, LAST, STATE, OPEN, HEAD = 0, 1, 4, 5, 6


def start(x, s):
    pass


def actions(x, s, legal):
    i = s[POSITION]
    if i < x.length:
        if x.constrained:
            for a in range(legal.size):
                after = x.following[s[STATE], a]
                legal[a] = after >= 0 and (i + 1 < x.length or x.can_end[after])
        else:
            legal[:] = True


def step(x, s, a):
    s[HEAD + s[POSITION]] = a
    s[LAST + 2] = s[LAST + 1]
    s[LAST + 1] = s[LAST]
    s[LAST] = a + 1
    s[STATE] = x.following[s[STATE], a] if x.constrained else 0
    s[POSITION] += 1


def items(x, s, out):
    look(out, s[POSITION])


def features(x, s, out):
    count = x.masks.size
    at = s[POSITION] * count
    for k in range(count):
        if x.bases[at + k] != 0:
            emit(out, mix(x.bases[at + k], tags_before(x, s, x.masks[k])))


def tags_before(x, s, mask):
    """The tags that a template looks at, as one number, which does not change when more labels are learned later."""
    code = np.int64(0)
    for back in range(3):
        if mask >> back & 1:
            tag = np.int64(s[LAST + back])
            code = code * x.radix + tag if tag < x.radix else mix(code, tag)  # type: ignore[arg-type,assignment]
    return code


def key(x, s):
    code = np.int64(s[POSITION])
    for back in range(x.order):
        code = code * (x.labels + 1) + s[LAST + back]
    return code * (x.following.shape[0] + 1) + s[STATE]


def cost(x, y, s, a):
    return 1.0 if a != y.tags[s[POSITION]] else 0.0


def loss(x, y, s):
    wrong = 0.0
    for i in range(x.length):
        wrong += s[HEAD + i] != y.tags[i]
    return wrong


def output(x: Any, s: Any) -> list[int]:
    return list(s[HEAD : HEAD + x.length].tolist())


def encode(obj: Any) -> Example:
    raise TypeError("a tagging space is filled by columns: use lols.Tagger, or Examples.from_columns")


# --- teachers ---------------------------------------------------------------------------------------------------------


def best_costs(x, y, s, out):
    """Hamming loss of each label followed by the cheapest legal completion."""
    i = s[POSITION]
    states = x.following.shape[0] + 1
    for a in range(out.size):
        out[a] = 1.0 if a != y.tags[i] else 0.0
        if x.constrained:
            after = x.following[s[STATE], a]
            if after >= 0:
                out[a] += y.cost_to_go[(i + 1) * states + after]


def best(x, y, s):
    """The true label where that is legal and best, else the first label of a cheapest completion."""
    i = s[POSITION]
    if not x.constrained:
        return y.tags[i]
    states = x.following.shape[0] + 1
    chosen, least = -1, np.inf
    for a in range(x.labels):
        after = x.following[s[STATE], a]
        if after >= 0 and (i + 1 < x.length or x.can_end[after]):
            value = y.cost_to_go[(i + 1) * states + after] + (1.0 if a != y.tags[i] else 0.0)
            if value < least or (value == least and a == y.tags[i]):
                chosen, least = a, value
    return chosen


def first_legal(x, s):
    """Label 0, or the first label that may stand here."""
    if x.constrained:
        for a in range(x.labels):
            after = x.following[s[STATE], a]
            if after >= 0 and (s[POSITION] + 1 < x.length or x.can_end[after]):
                return a
    return 0


def bad(x, y, s):
    return first_legal(x, s)


def suboptimal(x, y, s, rng):
    return best(x, y, s) if uniform(rng) < 0.5 else first_legal(x, s)


def teach(x, y, s, rng):
    """The action of one of these teachers, by its number."""
    if y.teacher == 0:
        return best(x, y, s)
    return suboptimal(x, y, s, rng) if y.teacher == 1 else bad(x, y, s)


def references() -> dict[str, Reference]:
    """The teachers: `optimal`, the truth; `suboptimal`, the truth half of the time, else label 0; `bad`, label 0."""
    teachers = {
        "optimal": Reference(action=best, costs=best_costs, name="optimal"),
        "suboptimal": Reference(action=suboptimal, name="suboptimal"),
        "bad": Reference(action=bad, name="bad"),
    }
    return as_family(teachers, action=teach, costs=best_costs)


# --- spaces and examples ----------------------------------------------------------------------------------------------


def make_space(
    layout: TemplateLayout,
    labels: int,
    machine: Automaton,
    functions: Mapping[str, Any] | None = None,
    radix: int | None = None,
) -> SearchSpace:
    """The space of taggings with these templates, labels and legal transitions; `functions` for a loss of its own.

    `radix` is one more than the number of labels that there were at first.
    """
    sizes = Sizes(
        state=lambda x: HEAD + x.length,
        live=HEAD,
        actions=labels,
        features=max(len(layout.history), 1),
        items=1,
        steps=lambda x: x.length,
    )
    settings = {
        "masks": layout.masks(),
        "order": layout.order,
        "labels": labels,
        "radix": radix or labels + 1,
        "constrained": bool((machine.next < 0).any()),
        "following": machine.next,
        "can_end": machine.can_end,
        "opens": machine.opens,
        "closes": machine.closes,
        "types": machine.types,
    }
    chosen = {"step": step, "loss": loss, "cost": cost, "key": key} | dict(functions or {})
    return SearchSpace(
        start=start, actions=actions, features=features, items=items, output=output, encode=encode, sizes=sizes,
        settings=settings, nonnegative=True, name="lols.tasks.tagging", **chosen,
    )  # fmt: skip


def make_examples(
    space: SearchSpace,
    encoded: Encoded,
    offsets: np.ndarray,
    tags: np.ndarray | None = None,
    cost_to_go: np.ndarray | None = None,
    spans: Mapping[str, np.ndarray] | None = None,
    more: Mapping[str, Ragged | Scalar] | None = None,
) -> Examples:
    """Examples from encoded sentences, with what is known of the truth, and `more` columns of x.

    That is the true tags, the costs of completions where labels may be illegal, and true spans for losses of spans.
    """
    lengths = np.diff(offsets)
    history = space.settings["masks"].size
    x: dict[str, Ragged | Scalar] = {"bases": Ragged(encoded.bases, offsets * history), "length": Scalar(lengths)}
    x |= more or {}
    y: dict[str, Ragged | Scalar] | None = None
    if tags is not None:
        states = space.settings["following"].shape[0] + 1
        rows = (offsets + np.arange(offsets.size)) * states if cost_to_go is not None else np.zeros_like(offsets)
        cost_to_go = np.zeros(0, np.float32) if cost_to_go is None else cost_to_go
        y = {"tags": Ragged(tags, offsets), "cost_to_go": Ragged(cost_to_go.reshape(-1), rows)}
        y |= {name: Ragged(column, offsets) for name, column in (spans or {}).items()}
    return Examples.from_columns(space, lengths.size, x, y, encoded.items, states=HEAD + lengths, steps=lengths)
