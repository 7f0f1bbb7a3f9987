"""One decision: a walk through the search space with no random action, one of them, or one at each step."""

from __future__ import annotations

import numpy as np

from lols.engine.calls import step
from lols.engine.lessons import write_features
from lols.engine.policy import cheapest, gather, new_policy, score
from lols.engine.search import Search, begin, find_legal, instance, turn_to
from lols.engine.structures import AT_STEP, CODE, NO_ACTIONS, TEACHER, TIE, TOO_MANY_STEPS, Plan, following
from lols.engine.teacher import teacher_action
from lols.kernels.dual import dual
from lols.kernels.hashing import mix, unit
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct

EXPLOIT, REFERENCE, EXPLORE, RANDOMISED = 0, 1, 2, 3  # the modes of a walk
UNIFORM, BOLTZMANN, PLAUSIBLE = 0, 1, 2  # the distributions of actions
EXPLORATIONS = {"uniform": UNIFORM, "boltzmann": BOLTZMANN, "plausible": PLAUSIBLE}
LENGTH, STEP, ACTION, COIN, FEATURES, ACTION_FEATURES, NOTES = range(7)  # the cells of `Walked.note`
CHANCE_STEP, CHANCE_ACTION, PROPENSITY, CHANCES = range(4)  # the cells of `Walked.chance`
WHEN, WHICH, WHO, DRAW = 11, 12, 13, 14  # purposes of draws


FOLLOWING = following(0, False)


class WalkPlan(Struct):
    """How to walk. All random numbers come from the stream."""

    mode: int
    stream: int
    beta: float  # the reference's chance to complete a deviation
    epsilon: float  # if each step is randomised: their total chance to be, shared by the most steps there may be
    exploration: int
    width: float  # the temperature, or the largest predicted excess cost of a plausible action
    plan: Plan = FOLLOWING


class Walked(Struct):
    """The results of a walk."""

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
    """The action drawn by a number in [0, 1)."""
    last = -1
    for a in range(chances.size):
        if chances[a] > 0.0:
            last = a
            u -= chances[a]
            if u < 0.0:
                return a
    return last


@dual
def look_ahead(search, here, s, legal):
    """Gather the features of a state, and predict the costs of its actions."""
    gather(search, here, s, legal)
    score(search, here, s, legal, 0)


@dual
def go(search, here, s, t, by_reference, walk_plan, out):
    """Walk from step t to an end state; the number of steps from the start."""
    scratch = search.scratch
    legal, view, report = scratch.legal, scratch.seen, scratch.report
    while report[CODE] == 0 and find_legal(search, here, s, legal):
        report[AT_STEP] = t
        if t >= here.limit:
            report[CODE] = TOO_MANY_STEPS
            break
        draw = mix(walk_plan.stream, t)
        out.chances[t] = 1.0
        if by_reference:
            a = teacher_action(search, here, s, legal, mix(draw, TEACHER))
        else:
            look_ahead(search, here, s, legal)
            a = cheapest(view.bits, legal, False, mix(draw, TIE))
            if walk_plan.mode == RANDOMISED:
                draw_chances(legal, view.costs, walk_plan.exploration, walk_plan.width, out.weights)
                best = a
                share = walk_plan.epsilon / here.limit
                if unit(mix(draw, WHO)) < share:
                    a = np.int64(drawn(out.weights, unit(mix(draw, DRAW))))
                out.chances[t] = share * out.weights[a] + (1.0 - share if a == best else 0.0)
        if report[CODE] != 0:
            break
        out.trail[t] = a
        step(search.space, here.x, s, a)
        t += 1
    return t


@dual
def stand(search, here, s, at, walk_plan, slots, out):
    """Follow the trail to step `at`; write features to slot 0, and the legal actions, predicted costs and chances."""
    begin(search, here, s)
    for t in range(at):
        step(search.space, here.x, s, out.trail[t])
    legal, costs = search.scratch.legal, search.scratch.seen.costs
    find_legal(search, here, s, legal)
    look_ahead(search, here, s, legal)
    for a in range(legal.size):
        out.legal[a] = legal[a]
        out.predicted[a] = costs[a] if legal[a] else np.float32(np.inf)
    draw_chances(legal, out.predicted, walk_plan.exploration, walk_plan.width, out.weights)
    out.note[STEP] = at
    out.note[FEATURES], out.note[ACTION_FEATURES] = write_features(search, here, s, legal, slots, 0, 0, 0)


def walk(space, reference, data, policy, walk_plan, scratch, slots, out):
    """Make one structure; for a deviation, stop at its state.

    What was drawn is in `note` and `chance`; slot 0 has the features of the state to learn from.
    """
    report, note, s = scratch.report, out.note, out.state
    search = Search(space, reference, policy, walk_plan.plan, data.items, scratch)
    report[CODE] = 0
    new_policy(scratch.seen)
    here = turn_to(search, data, 0, 0, 0)
    begin(search, here, s)
    by_reference = walk_plan.mode == REFERENCE
    note[STEP], note[ACTION], note[COIN] = -1, -1, by_reference
    note[FEATURES], note[ACTION_FEATURES] = 0, 0
    out.chance[CHANCE_STEP] = out.chance[CHANCE_ACTION] = out.chance[PROPENSITY] = 1.0
    length = go(search, here, s, 0, by_reference, walk_plan, out)
    if length == 0 and report[CODE] == 0:
        report[CODE] = NO_ACTIONS
    note[LENGTH] = length
    if report[CODE] != 0 or walk_plan.mode == EXPLOIT or by_reference:
        return report[CODE]
    # If each step is drawn, the length depends on the draws, so the step to learn from must not depend on the length.
    times = here.limit if walk_plan.mode == RANDOMISED else np.int64(length)
    at = min(np.int64(unit(mix(walk_plan.stream, WHEN)) * times), np.int64(times - 1))
    if walk_plan.mode == RANDOMISED:
        for t in range(length):
            out.chance[PROPENSITY] *= out.chances[t]
        if at >= length:  # the walk ended before this step: nothing to learn from
            return report[CODE]
    stand(search, here, s, at, walk_plan, slots, out)
    out.chance[CHANCE_STEP] = 1.0 / times
    if walk_plan.mode == RANDOMISED:
        note[ACTION], out.chance[CHANCE_ACTION] = out.trail[at], out.chances[at]
        for t in range(at, length):
            step(space, here.x, s, out.trail[t])
    return report[CODE]


def deviate(space, reference, data, policy, walk_plan, scratch, slots, out):
    """From the state where `walk` stopped, draw an action by `weights`, and complete the structure."""
    note, s = out.note, out.state
    search = Search(space, reference, policy, walk_plan.plan, data.items, scratch)
    here = instance(data, 0, 0, 0)
    at, chosen = note[STEP], np.int64(drawn(out.weights, unit(mix(walk_plan.stream, WHICH))))
    by_reference = unit(mix(walk_plan.stream, WHO)) < walk_plan.beta
    note[ACTION], note[COIN], out.chance[CHANCE_ACTION] = chosen, by_reference, out.weights[chosen]
    out.trail[at] = chosen
    step(space, here.x, s, chosen)
    note[LENGTH] = go(search, here, s, at + 1, by_reference, walk_plan, out)
    return scratch.report[CODE]


walk_kernel = Kernel(walk)
deviate_kernel = Kernel(deviate)
