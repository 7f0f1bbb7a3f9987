"""One space for all mistakes, so that it is compiled once: an example says which mistake happens, and at which step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import SpaceError

(
    FINE,
    START,
    ACTIONS,
    STEP,
    FEATURES,
    ACTION_FEATURES,
    ITEMS,
    KEY,
    COST,
    LOSS,
    TEACHER_ACTION,
    TEACHER_FREE,
    TEACHER_COSTS,
    HELPER,
    OFF_THE_PATH,
    ENDLESS,
    CLOSED,
    COST_NAN,
    COST_INFINITE,
    LOSS_NAN,
    LOSS_INFINITE,
    LOSS_NEGATIVE,
    MANY_FEATURES,
    MANY_ACTION_FEATURES,
    MANY_ITEMS,
    NO_SUCH_ITEM,
    NO_SUCH_ROLE,
    FEATURE_NAN,
    ACTION_FEATURE_NAN,
    TEACHER_ILLEGAL,
    TEACHER_NOWHERE,
    TEACHER_NEGATIVE,
    TEACHER_FRACTION,
    TEACHER_NAN,
    TEACHER_FLOAT,
    FREE_ILLEGAL,
    FREE_NOTHING,
    COSTS_NAN,
    COSTS_MISSING,
    WILD,  # the first of the functions that use an index which is not there, in the order of `WILD_FUNCTIONS`
) = range(40)
WILD_FUNCTIONS = (
    *("start", "actions", "step", "features", "action_features", "items", "key", "cost", "loss"),
    *("action", "free", "costs"),
)


# --- the space: tagging with labels 0 and 1; label 2 is never legal ---------------------------------------------------


def wild(x, s, number):
    """The index that a function uses: 0, unless this is its mistake."""
    return x.index if x.fault == WILD + number and (s[0] == x.at or number in (0, 8)) else 0


def start(x, s):
    s[wild(x, s, 0)] = 0
    if x.fault == START:
        raise ValueError("no start")


def actions(x, s, legal):
    if x.fault == ACTIONS and s[0] == x.at:
        raise ValueError("no actions")
    if s[0] < x.n and x.fault != CLOSED:
        legal[wild(x, s, 1)] = legal[0] = legal[1] = True


def step(x, s, a):
    if x.fault == STEP and s[0] == x.at:
        raise ValueError("no step")
    s[2 + s[0]] = s[1] = a
    s[wild(x, s, 2)] += 0
    if x.fault != ENDLESS or s[0] != x.at:
        s[0] += 1


def helper(x, s):
    if x.fault == HELPER and s[0] == x.at:
        raise ValueError("no help")
    return s[1] + 0 * s[wild(x, s, 3)]


def features(x, s, out):
    if x.fault == FEATURES and s[0] == x.at:
        raise ValueError("no features")
    if x.fault == OFF_THE_PATH and s[0] == x.at and s[1] == 1:
        raise ValueError("nobody goes here")
    lols.emit(out, lols.feature(0, helper(x, s)), np.nan if x.fault == FEATURE_NAN and s[0] == x.at else 1.0)
    if x.fault == MANY_FEATURES and s[0] == x.at:
        for k in range(40):
            lols.emit(out, k)


def action_features(x, s, a, out):
    if x.fault == ACTION_FEATURES and s[0] == x.at:
        raise ValueError("no action features")
    value = -np.inf if x.fault == ACTION_FEATURE_NAN and s[0] == x.at else 0.5
    lols.emit(out, lols.feature(1, a, s[wild(x, s, 4)]), value)
    if x.fault == MANY_ACTION_FEATURES and s[0] == x.at:
        for k in range(40):
            lols.emit(out, k)


def items(x, s, out):
    if x.fault == ITEMS and s[0] == x.at:
        raise ValueError("no items")
    lols.look(out, s[wild(x, s, 5)])
    if s[0] == x.at:
        if x.fault == MANY_ITEMS:
            for _ in range(40):
                lols.look(out, 0)
        elif x.fault == NO_SUCH_ITEM:
            lols.look(out, 77)
        elif x.fault == NO_SUCH_ROLE:
            lols.look(out, 0, 5)


def key(x, s):
    if x.fault == KEY and s[0] == x.at:
        raise ValueError("no key")
    return s[wild(x, s, 6)] * 4 + s[1]


def cost(x, y, s, a):
    if s[0] == x.at:
        if x.fault == COST:
            raise ValueError("no cost")
        if x.fault == COST_NAN:
            return np.nan
        if x.fault == COST_INFINITE:
            return np.inf
    return 1.0 if a != y.tags[s[0] + wild(x, s, 7)] else 0.0


def loss(x, y, s):
    if x.fault == LOSS:
        raise ValueError("no loss")
    if x.fault == LOSS_NAN:
        return np.nan
    if x.fault == LOSS_INFINITE:
        return np.inf
    if x.fault == LOSS_NEGATIVE:
        return -1.0
    wrong = 0.0
    for i in range(x.n):
        wrong += s[2 + i] != y.tags[i + wild(x, s, 8)]
    return wrong


def output(x, s):
    return s[2 : 2 + x.n].tolist()


def encode(obj):
    x = {"n": len(obj["tags"]), "fault": obj.get("fault", FINE), "at": obj.get("at", 0)}
    x["index"] = obj.get("index", 0)
    return lols.Example(x, {"tags": obj["tags"]}, [[lols.feature(2, k)] for k in range(len(obj["tags"]))])


def teacher_action(x, y, s):
    if s[0] == x.at:
        if x.fault == TEACHER_ACTION:
            raise ValueError("no advice")
        if x.fault == TEACHER_ILLEGAL:
            return 2
        if x.fault == TEACHER_NOWHERE:
            return 99
        if x.fault == TEACHER_NEGATIVE:
            return -7
        if x.fault == TEACHER_FRACTION:
            return 0.7
        if x.fault == TEACHER_NAN:
            return np.nan
        if x.fault == TEACHER_FLOAT:
            return 1.0
    return y.tags[s[0] + wild(x, s, 9)]


def teacher_free(x, y, s, out):
    if s[0] == x.at:
        if x.fault == TEACHER_FREE:
            raise ValueError("nothing is free")
        if x.fault == FREE_ILLEGAL:
            out[2] = True
        if x.fault == FREE_NOTHING:
            return
    out[y.tags[s[0]] + wild(x, s, 10)] = True


def teacher_costs(x, y, s, out):
    if x.fault == TEACHER_COSTS and s[0] == x.at:
        raise ValueError("no costs")
    for a in range(2):
        out[a + wild(x, s, 11)] = 1.0 if a != y.tags[s[0]] else 0.0
    if s[0] == x.at:
        if x.fault == COSTS_NAN:
            out[1] = np.nan
        if x.fault == COSTS_MISSING:
            out[1] = np.inf


SPACE = lols.SearchSpace(
    start=start,
    actions=actions,
    step=step,
    features=features,
    action_features=action_features,
    items=items,
    key=key,
    cost=cost,
    loss=loss,
    output=output,
    encode=encode,
    sizes=lols.Sizes(
        state=lambda x: 2 + x.n, actions=3, features=4, action_features=4, items=4, roles=2, steps=lambda x: x.n
    ),
)
REFERENCE = lols.Reference(action=teacher_action, free=teacher_free, costs=teacher_costs)
TAGS = [0, 0, 1, 0]


def data(fault: int, at: int = 1, index: int = 0) -> list[dict[str, Any]]:
    """Seven examples, the fourth of which is faulty."""
    return [{"tags": TAGS, "fault": fault if i == 3 else FINE, "at": at, "index": index} for i in range(7)]


def mistakes(fault: int, at: int = 1, index: int = 0, **options: Any) -> str:
    """What training says of a mistake: the same whether compiled or not, and with any number of threads."""
    options = {"passes": 2, "batch_size": 4} | options
    said = []
    for how in ({"compiled": False}, {"compiled": True}, {"compiled": True, "threads": 2}):
        with pytest.raises(SpaceError) as caught:
            lols.train(SPACE, data(fault, at, index), REFERENCE, **options, **how)
        said.append(str(caught.value))
    assert said[0] == said[1] == said[2]
    assert "\n" not in said[0] and said[0].startswith("example 3")
    return said[0]


ROLLED_OUT: dict[str, Any] = {"tricks": {"closed_form": False}, "roll_out": "reference", "roll_in": "learned"}
