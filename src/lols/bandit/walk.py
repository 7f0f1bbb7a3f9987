"""One decision: a walk through the search space, with one random deviation, with one at each step, or with none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.engine.collect import record
from lols.engine.compile.dual import dual, row, start, step
from lols.engine.compile.kernel import Kernel
from lols.engine.rolling import find_legal, teacher_action
from lols.engine.scoring import cheapest, gather, new_policy, own_items, score
from lols.engine.structures import NO_ACTIONS, TEACHER, TIE, TOO_MANY_STEPS
from lols.hashing import mix, unit

__all__ = [
    "EXPLOIT",
    "EXPLORATIONS",
    "EXPLORE",
    "RANDOMISED",
    "REFERENCE",
    "Walked",
    "Way",
    "deviate_kernel",
    "walk_kernel",
]

EXPLOIT, REFERENCE, EXPLORE, RANDOMISED = 0, 1, 2, 3  # how a structure is made
UNIFORM, BOLTZMANN, PLAUSIBLE = 0, 1, 2  # how an action is drawn
EXPLORATIONS = {"uniform": UNIFORM, "boltzmann": BOLTZMANN, "plausible": PLAUSIBLE}
LENGTH, STEP, ACTION, COIN, FEATURES, ACTION_FEATURES, NOTES = range(7)  # the cells of a note
CHANCE_STEP, CHANCE_ACTION, PROPENSITY, CHANCES = range(4)
WHEN, WHICH, WHO, DRAW = 11, 12, 13, 14  # purposes of draws


class Way(NamedTuple):
    """How to walk: everything that is drawn is drawn from the stream."""

    mode: int
    stream: int
    beta: float  # the reference's chance to complete a deviation
    epsilon: float  # where each step is randomised, the most that any of them is: shared by as many as there may be
    exploration: int
    width: float  # the temperature, or how much dearer than the best an action may look to be plausible


class Walked(NamedTuple):
    """What a walk leaves behind."""

    state: np.ndarray  # the end state
    trail: np.ndarray  # the actions taken
    chances: np.ndarray  # of each of them
    note: np.ndarray
    chance: np.ndarray
    legal: np.ndarray  # at the state of the deviation
    predicted: np.ndarray  # costs there
    weights: np.ndarray  # scratch: chances of actions


@dual
def draw_chances(legal, predicted, exploration, width, out):
    """The chance of each legal action under an exploration; they add up to 1."""
    least = np.float32(np.inf)
    for a in range(legal.size):
        if legal[a]:
            least = min(least, predicted[a])
    total = 0.0
    for a in range(legal.size):
        out[a] = 0.0
        if legal[a]:
            above = np.float64(predicted[a] - least)
            if exploration == BOLTZMANN:
                out[a] = np.exp(-above / width)
            elif exploration == PLAUSIBLE:
                out[a] = 1.0 if above <= width else 0.0
            else:
                out[a] = 1.0
            total += out[a]
    for a in range(legal.size):
        out[a] /= total


@dual
def drawn(chances, u):
    """The action that a number in [0, 1) stands for."""
    last = -1
    for a in range(chances.size):
        if chances[a] > 0.0:
            last = a
            u -= chances[a]
            if u < 0.0:
                return a
    return last


@dual
def look_ahead(space, x, s, legal, policy, of, first_item, item_count, scratch):
    """Gather the features of a state, and predict the costs of its actions."""
    gather(space, x, s, item_count, scratch.sight, scratch.where)
    score(space, x, s, legal, policy, 0, True, of, first_item, scratch.sight, scratch.epoch[0], scratch.where)


@dual
def go(space, reference, x, y, s, t, limit, by_reference, policy, way, of, first_item, item_count, scratch, out):
    """Walk from step t to an end state; how many steps that are from the start."""
    legal, where = scratch.legal, scratch.where
    while where[0] == 0 and find_legal(space, x, s, legal):
        where[2] = t
        if t >= limit:
            where[0] = TOO_MANY_STEPS
            break
        draw = mix(way.stream, t)
        out.chances[t] = 1.0
        if by_reference:
            a = teacher_action(reference, x, y, s, legal, mix(draw, TEACHER), scratch.opinion, where)
        else:
            look_ahead(space, x, s, legal, policy, of, first_item, item_count, scratch)
            a = cheapest(scratch.sight.bits, legal, False, mix(draw, TIE))
            if way.mode == RANDOMISED:
                draw_chances(legal, scratch.sight.costs, way.exploration, way.width, out.weights)
                best = a
                share = way.epsilon / limit
                if unit(mix(draw, WHO)) < share:
                    a = np.int64(drawn(out.weights, unit(mix(draw, DRAW))))
                out.chances[t] = share * out.weights[a] + (1.0 - share if a == best else 0.0)
        if where[0] != 0:
            break
        out.trail[t] = a
        step(space, x, s, a)
        t += 1
    return t


@dual
def begin_again(space, x, s):
    """Put the start state back."""
    for k in range(s.size):
        s[k] = 0
    start(space, x, s)


@dual
def stand(space, x, s, at, policy, way, of, first, count, scratch, slots, out):
    """Go along the trail to step `at`: its features into slot 0, its legal actions, what they seem to cost and how
    likely each is drawn.
    """
    begin_again(space, x, s)
    for t in range(at):
        step(space, x, s, out.trail[t])
    legal, where = scratch.legal, scratch.where
    find_legal(space, x, s, legal)
    look_ahead(space, x, s, legal, policy, of, first, count, scratch)
    for a in range(legal.size):
        out.legal[a] = legal[a]
        out.predicted[a] = scratch.sight.costs[a] if legal[a] else np.float32(np.inf)
    draw_chances(legal, out.predicted, way.exploration, way.width, out.weights)
    out.note[STEP] = at
    out.note[FEATURES], out.note[ACTION_FEATURES] = record(
        space, x, s, legal, of, first, scratch.sight, slots, 0, 0, 0, where
    )


def walk(space, reference, data, policy, way, scratch, slots, out):
    """Make one structure; for a deviation, go to its state only.

    `note` and `chance` say what was drawn; slot 0 has the features of the state to learn from.
    """
    where, note, s, of = scratch.where, out.note, out.state, data.items
    where[0], where[1], where[2], where[3] = 0, 0, 0, -1
    new_policy(scratch.sight)
    scratch.epoch[0] += 1
    limit = data.steps[0]
    first, count = own_items(of.first, 0)
    x, y = row(data.x, 0), row(data.y, 0)
    begin_again(space, x, s)
    by_reference = way.mode == REFERENCE
    note[STEP], note[ACTION], note[COIN] = -1, -1, by_reference
    note[FEATURES], note[ACTION_FEATURES] = 0, 0
    out.chance[CHANCE_STEP] = out.chance[CHANCE_ACTION] = out.chance[PROPENSITY] = 1.0
    length = go(space, reference, x, y, s, 0, limit, by_reference, policy, way, of, first, count, scratch, out)
    if length == 0 and where[0] == 0:
        where[0] = NO_ACTIONS
    note[LENGTH] = length
    if where[0] != 0 or way.mode == EXPLOIT or by_reference:
        return where[0]
    # Where each step is drawn, the length depends on what was drawn; the time must not.
    times = limit if way.mode == RANDOMISED else np.int64(length)
    at = min(np.int64(unit(mix(way.stream, WHEN)) * times), np.int64(times - 1))
    if way.mode == RANDOMISED:
        for t in range(length):
            out.chance[PROPENSITY] *= out.chances[t]
        if at >= length:  # it had ended before: nothing to learn from
            return where[0]
    stand(space, x, s, at, policy, way, of, first, count, scratch, slots, out)
    out.chance[CHANCE_STEP] = 1.0 / times
    if way.mode == RANDOMISED:
        note[ACTION], out.chance[CHANCE_ACTION] = out.trail[at], out.chances[at]
        for t in range(at, length):
            step(space, x, s, out.trail[t])
    return where[0]


def deviate(space, reference, data, policy, way, scratch, slots, out):
    """From the state that `walk` went to: draw an action by `weights`, and complete the structure."""
    where, note, s, of = scratch.where, out.note, out.state, data.items
    first, count = own_items(of.first, 0)
    x, y = row(data.x, 0), row(data.y, 0)
    at, chosen = note[STEP], np.int64(drawn(out.weights, unit(mix(way.stream, WHICH))))
    by_reference = unit(mix(way.stream, WHO)) < way.beta
    note[ACTION], note[COIN], out.chance[CHANCE_ACTION] = chosen, by_reference, out.weights[chosen]
    out.trail[at] = chosen
    step(space, x, s, chosen)
    note[LENGTH] = go(
        space, reference, x, y, s, at + 1, data.steps[0], by_reference, policy, way, of, first, count, scratch, out
    )
    return where[0]


walk_kernel = Kernel(walk)
deviate_kernel = Kernel(deviate)
