"""Kernels of the lock-step driver: each continues all searches until they end or need the policy's costs.

Draws, teachers and sums are the same as in `roll_in`, `roll_out` and `algorithm1`, in a different order.
"""

from __future__ import annotations

import numpy as np

from lols.engine.algorithm1 import search_around
from lols.engine.calls import cost, key, step
from lols.engine.merging import merges, repeats
from lols.engine.policy import cheapest, gather
from lols.engine.predict import record_step, state_stream
from lols.engine.roll_in import asks_policy, choose, go_on, teacher_rolls_in, value_trail
from lols.engine.roll_out import copy_state, teacher_rolls_out
from lols.engine.search import Search, begin, final_loss, find_legal, turn_to
from lols.engine.structures import (
    AT_EXAMPLE,
    AT_STEP,
    BY_LEARNER,
    BY_TEACHER,
    CODE,
    COMPONENT,
    NO_ACTIONS,
    NOT_FINITE,
    ROLL_IN,
    ROLLED_IN,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
)
from lols.engine.teacher import teacher_action
from lols.kernels.dual import dual, has
from lols.kernels.hashing import mix
from lols.kernels.kernel import Kernel
from lols.kernels.layout import row


@dual
def wait(walks, i, number, t, at_step, stream, draw):
    """Move the walk at place i, after t steps of its own, to those that wait."""
    k = walks.waiting[0]
    walks.row[k], walks.example[k], walks.step[k] = walks.row[i], walks.example[i], at_step
    walks.number[k], walks.stream[k], walks.draw[k] = number, stream, draw
    walks.time[number] = t
    walks.waiting[0] = k + 1


# --- rolling in -------------------------------------------------------------------------------------------------------


def roll_in(space, reference, data, plan, scratch, rollins, level):
    """Continue the roll-ins of a level, with the policy's costs of their states if there are any."""
    search = Search(space, reference, None, plan, data.items, scratch)
    batch, walks, report, answered = rollins.batch, level.walks, scratch.report, level.costs.shape[0] > 0
    walks.waiting[0] = 0
    for i in range(level.rows):
        b = walks.number[i]
        example = batch.lessons.example[b]
        walks.example[i] = example
        here = turn_to(search, data, example, b, batch.round[b])
        at_row, trail = walks.row[i], row(rollins.trails, b)
        s, legal = walks.state[at_row, : data.states[example]], walks.legal[at_row]
        t, scored = walks.time[b], answered  # whether the policy's costs of the state are known
        if not answered:
            t = 0
            begin(search, here, s)
        while report[CODE] == 0:
            report[AT_STEP] = t
            if not scored:
                if not find_legal(search, here, s, legal):
                    if t == 0:
                        report[CODE] = NO_ACTIONS
                        break
                    batch.lessons.filled[b] = t
                    batch.losses[b, ROLLED_IN] = value_trail(search, here, s, t, trail, 1)
                    break
                if t >= here.limit:
                    report[CODE] = TOO_MANY_STEPS
                    break
            stream = mix(mix(here.key, ROLL_IN), t)
            teaching = teacher_rolls_in(plan, stream, batch.beta_in[b])
            if not scored and asks_policy(plan, teaching):
                wait(walks, i, b, t, t, stream, mix(stream, COMPONENT))
                break
            if rollins.predicted.shape[0] > 0:
                at = rollins.trails.action.offsets[b] + t
                for a in range(legal.size):
                    rollins.predicted[at, a] = level.costs[i, a] if scored else np.float32(np.nan)
            a = choose(search, here, s, legal, teaching, level.bits[i] if scored else scratch.seen.bits, stream)
            if report[CODE] != 0:
                break
            go_on(search, here, s, t, a, trail)
            t += 1
            scored = False
        if report[CODE] != 0:
            break


# --- costs to go ------------------------------------------------------------------------------------------------------


@dual
def find_slot(cache, b, owner, identity):
    """The slot of a state, or the empty slot for it."""
    first, mask = cache.first[b], cache.mask[b]
    h = mix(identity, owner) & mask
    while cache.owner[first + h] >= 0 and (cache.owner[first + h] != owner or cache.key[first + h] != identity):
        h = (h + 1) & mask
    return first + h


@dual
def claim(cache, slot, b, owner, identity):
    """Enter a state into an empty slot, if there is room; the slot, or -1."""
    if cache.filled[b] * 2 > cache.mask[b]:
        return np.int64(-1)
    cache.owner[slot], cache.key[slot], cache.settled[slot] = owner, identity, False
    cache.filled[b] += 1
    return np.int64(slot)


@dual
def store_value(cache, b, owner, identity, value):
    """Store the cost to go from a state."""
    slot = find_slot(cache, b, owner, identity)
    if cache.owner[slot] < 0:
        slot = claim(cache, slot, b, owner, identity)
        if slot >= 0:
            cache.settled[slot], cache.value[slot] = True, value


@dual
def recall_roll_in(search, here, trail, rollins, steps, cache):
    """Put a roll-in where `compare` expects it, and store the costs to go from its states."""
    scratch, plan, b = search.scratch, search.plan, here.number
    components = search.policy.chances.size
    for t in range(steps):
        scratch.base.action[t], scratch.base.value[t] = trail.action[t], trail.value[t]
        if rollins.predicted.shape[0] > 0:
            for a in range(scratch.legal.size):
                scratch.predicted[t, a] = rollins.predicted[rollins.trails.action.offsets[b] + t, a]
    if has(search.space, "key") and plan.merge and search.policy.asking[0]:
        for t in range(steps - 1, -1, -1):
            if repeats(plan, components, TEACHER_POLICY):
                store_value(cache, b, BY_TEACHER, np.int64(trail.key[t]), trail.value[t])
            if repeats(plan, components, 0):
                store_value(cache, b, BY_LEARNER, np.int64(trail.key[t]), trail.value[t])


def search_group(space, reference, data, plan, scratch, rollins, pending, group):
    """Record the deviations of some examples, to be completed; or, once they are, write the lessons.

    Lessons and their features are written without gaps.
    """
    search = Search(space, reference, pending, plan, data.items, scratch)
    batch, report, ends = rollins.batch, scratch.report, group.ends
    lessons = batch.lessons
    for b in range(group.low, group.high):
        if report[CODE] != 0:
            break
        example, steps = lessons.example[b], lessons.filled[b]
        here = turn_to(search, data, example, b, batch.round[b])
        recall_roll_in(search, here, row(rollins.trails, b), rollins, steps, group.cache)
        ends[0], ends[1] = search_around(search, here, scratch.state[: data.states[example]], batch, ends[0], ends[1])


# --- rolling out ------------------------------------------------------------------------------------------------------


def roll_out(space, reference, data, plan, scratch, rollins, rollouts, level):
    """Continue roll-outs, with the policy's costs of their states if there are any.

    A walk that reaches a state where another one was before ends there: both have the same cost to go.
    """
    search = Search(space, reference, None, plan, data.items, scratch)
    pending, walks, answered = rollouts.pending, level.walks, level.costs.shape[0] > 0
    walks.waiting[0] = 0
    last, reached = -1, 0
    for i in range(level.rows):
        w = walks.number[i]
        b, t = pending.example[rollouts.first + w], pending.time[rollouts.first + w]
        example = rollins.batch.lessons.example[b]
        walks.example[i] = example
        here = turn_to(search, data, example, b, rollins.batch.round[b])
        scratch.report[AT_STEP] = t
        d = walks.state[walks.row[i], : data.states[example]]
        if not answered:
            s, trail = scratch.state[: d.size], row(rollins.trails, b)
            if b != last or t < reached:
                begin(search, here, s)
                last, reached = b, 0
            while reached < t:
                step(space, here.x, s, trail.action[reached])
                reached += 1
            take_deviation(search, here, s, d, w, rollouts)
            walks.time[w] = 0
        continue_roll_out(search, here, d, i, w, rollouts, level)
        if scratch.report[CODE] != 0:
            break


@dual
def take_deviation(search, here, s, d, w, rollouts):
    """Take the action of a deviation at state `s`, into state `d`."""
    paths, a = rollouts.paths, rollouts.pending.action[rollouts.first + w]
    copy_state(search.plan, s, d)
    paths.cost[paths.first[w]] = cost(search.space, here.x, here.y, s, a)
    paths.joined[w], paths.value[w], paths.settled[w] = -1, 0.0, False
    step(search.space, here.x, d, a)


@dual
def continue_roll_out(search, here, d, i, w, rollouts, level):
    """Continue walk w, at place i, from state `d` until it ends or waits."""
    space, plan, report = search.space, search.plan, search.scratch.report
    pending, paths, cache, walks = rollouts.pending, rollouts.paths, rollouts.cache, level.walks
    legal, order, at = walks.legal[walks.row[i]], rollouts.first + w, paths.first[w]
    n, scored, who = walks.time[w], level.costs.shape[0] > 0, pending.who[order]
    merged = has(space, "key") and merges(plan, who)
    owner = BY_TEACHER if who == TEACHER_POLICY else BY_LEARNER
    while report[CODE] == 0:
        if not scored:
            if not find_legal(search, here, d, legal):
                if not has(space, "cost"):
                    paths.value[w] = final_loss(space, here.x, here.y, d, report)
                break
            if plan.horizon > 0 and n >= plan.horizon:
                break
            paths.slot[at + n] = -1
            if merged:
                identity = np.int64(key(space, here.x, d))
                slot = find_slot(cache, here.number, owner, identity)
                if cache.owner[slot] >= 0:
                    paths.joined[w] = slot
                    break
                paths.slot[at + n] = claim(cache, slot, here.number, owner, identity)
            if pending.time[order] + n + 1 >= here.limit:
                report[CODE], report[AT_STEP] = TOO_MANY_STEPS, here.limit
                break
        draw = mix(pending.stream[order], n)
        if teacher_rolls_out(who, pending.beta[order], draw):
            a = teacher_action(search, here, d, legal, mix(draw, TEACHER))
        elif scored:
            a = cheapest(level.bits[i], legal, plan.random_ties, mix(draw, TIE))
        else:
            wait(walks, i, w, n, pending.time[order], draw, mix(draw, TEACHER))
            break
        if report[CODE] != 0:
            break
        n += 1
        paths.cost[at + n] = cost(space, here.x, here.y, d, a)
        step(space, here.x, d, a)
        scored = False
    walks.time[w] = n


def settle(rollouts, count, walks, scratch):
    """Add up the costs of roll-outs from their ends backwards, first those that others have joined."""
    pending, paths, cache, report = rollouts.pending, rollouts.paths, rollouts.cache, scratch.report
    left = count
    while left > 0 and report[CODE] == 0:
        before = left
        for w in range(count):
            joined = paths.joined[w]
            if paths.settled[w] or (joined >= 0 and not cache.settled[joined]):
                continue
            value = cache.value[joined] if joined >= 0 else paths.value[w]
            first = paths.first[w]
            for k in range(first + walks.time[w], first, -1):
                value = paths.cost[k] + value
                slot = paths.slot[k - 1]
                if slot >= 0:
                    cache.settled[slot], cache.value[slot] = True, value
            if not np.isfinite(value):
                report_roll_out(report, NOT_FINITE, pending, rollouts.first + w)
            pending.value[rollouts.first + w] = paths.cost[first] + value
            paths.settled[w] = True
            left -= 1
        if left == before:  # each of them has joined another one: an endless loop
            for w in range(count):
                if not paths.settled[w]:
                    report_roll_out(report, TOO_MANY_STEPS, pending, rollouts.first + w)
                    break


@dual
def report_roll_out(report, code, pending, order):
    """Report an error of a roll-out."""
    report[CODE], report[AT_EXAMPLE], report[AT_STEP] = code, pending.example[order], pending.time[order]


# --- prediction -------------------------------------------------------------------------------------------------------


def follow(space, data, plan, drawn, scratch, level, ends):
    """Continue to follow the policy on examples, with its costs of their states if there are any."""
    search = Search(space, None, None, plan, data.items, scratch)
    walks, report, answered = level.walks, scratch.report, level.costs.shape[0] > 0
    walks.waiting[0] = 0
    for i in range(level.rows):
        w, example = walks.number[i], walks.example[i]
        here = turn_to(search, data, example, example, 0)
        s, legal = walks.state[walks.row[i], : data.states[example]], walks.legal[walks.row[i]]
        t = walks.time[w]
        if answered:
            a = cheapest(level.bits[i], legal, plan.random_ties, mix(walks.stream[i], TIE))
            record_step(ends, example, t, a, legal, level.costs[i])
            report[AT_STEP] = t
            step(space, here.x, s, a)
            t += 1
        else:
            t = 0
            begin(search, here, s)
        report[AT_STEP] = t
        if not find_legal(search, here, s, legal):
            for k in range(s.size):
                ends.states[ends.first[example] + k] = s[k]
            ends.taken[ends.first_step[example] + t] = -1
            continue
        if t >= here.limit:
            report[CODE] = TOO_MANY_STEPS
            break
        stream = np.int64(0)
        if drawn or plan.random_ties:
            gather(search, here, s, legal)
            stream = state_stream(search, here, s, legal, t)
            if report[CODE] != 0:
                break
        wait(walks, i, w, t, t, stream, mix(stream, COMPONENT))


roll_in_kernel = Kernel(roll_in)
search_kernel = Kernel(search_group)
roll_out_kernel = Kernel(roll_out)
settle_kernel = Kernel(settle)
follow_kernel = Kernel(follow)
