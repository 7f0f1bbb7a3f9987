"""Tagging with the loss `f1`: false positives and false negatives, at prices that serve F1 over a corpus.

What a label costs is known once its span has ended, so the state also says where the open span began. The prices are
those of `lols.tasks.tagging.span_oracle`.
"""

from __future__ import annotations

import numpy as np

from lols.contract.features import uniform
from lols.contract.space import Reference, as_family
from lols.tasks.tagging import space as tagging
from lols.tasks.tagging.space import HEAD, OPEN, POSITION, STATE
from lols.tasks.tagging.span_oracle import FALSE_NEGATIVE, FALSE_POSITIVE, span_step, span_step_cost


def step(x, s, a):
    if x.opens[a]:
        s[OPEN] = s[POSITION]
    tagging.step(x, s, a)


def key(x, s):
    return tagging.key(x, s) * (x.length + 1) + (s[OPEN] + 1 if s[STATE] > 0 else 0)


def matching(y, s):
    """Whether the open span may still become a true one: it begins as one does, and that one has not ended before."""
    if s[STATE] == 0:
        return False
    begin = s[OPEN]
    return y.begins[begin] == s[STATE] - 1 and y.lasts[begin] >= s[POSITION] - 1


def cost(x, y, s, a):
    i, q = s[POSITION], s[STATE]
    return span_step_cost(y.begins, y.ends, i, q, matching(y, s), a, x.opens, x.closes, x.types)


def count(x, y, s):
    """Correct, predicted and true spans of an end state."""
    correct, predicted, gold = 0, 0, 0
    begin = -1
    for i in range(x.length):
        a = s[HEAD + i]
        gold += y.begins[i] >= 0
        if x.opens[a]:
            begin = i
        if x.types[a] < 0:
            continue
        last = i + 1 == x.length or x.closes[a]
        if not last:
            following = s[HEAD + i + 1]
            last = x.opens[following] or x.types[following] != x.types[a]
        if last:
            predicted += 1
            correct += y.begins[begin] == x.types[a] and y.lasts[begin] == i
    return correct, predicted, gold


def loss(x, y, s):
    correct, predicted, gold = count(x, y, s)
    return FALSE_POSITIVE * (predicted - correct) + FALSE_NEGATIVE * (gold - correct)


def best_costs(x, y, s, out):
    """The cost of false positives and negatives of each label followed by the cheapest legal completion."""
    for a in range(out.size):
        out[a] = completed(x, y, s, a)


def completed(x, y, s, a):
    """What a label costs when the cheapest legal completion follows; infinite if it is illegal."""
    i, q, match = s[POSITION], s[STATE], matching(y, s)
    after = x.following[q, a]
    if after < 0 or (i + 1 == x.length and not x.can_end[after]):
        return np.inf
    states = x.following.shape[0]
    after, still = span_step(y.begins, y.ends, i, q, match, a, x.following, x.opens, x.types)
    now = span_step_cost(y.begins, y.ends, i, q, match, a, x.opens, x.closes, x.types)
    return now + y.cost_to_go[(i + 1) * (states + 1) + (states if still else after)]


def best(x, y, s):
    """The true label where that is best, else the first label of a cheapest completion."""
    chosen, least = -1, np.inf
    for a in range(x.labels):
        value = completed(x, y, s, a)
        if value < least or (value == least and a == y.tags[s[POSITION]]):
            chosen, least = a, value
    return chosen


def suboptimal(x, y, s, rng):
    return best(x, y, s) if uniform(rng) < 0.5 else tagging.first_legal(x, s)


SPAN_FUNCTIONS = {"step": step, "key": key, "cost": cost, "loss": loss}


def teach(x, y, s, rng):
    """The action of one of these teachers, by its number."""
    if y.teacher == 0:
        return best(x, y, s)
    return suboptimal(x, y, s, rng) if y.teacher == 1 else tagging.bad(x, y, s)


def span_references() -> dict[str, Reference]:
    """The teachers."""
    teachers = {
        "optimal": Reference(action=best, costs=best_costs, name="optimal"),
        "suboptimal": Reference(action=suboptimal, name="suboptimal"),
        "bad": Reference(action=tagging.bad, name="bad"),
    }
    return as_family(teachers, action=teach, costs=best_costs)
