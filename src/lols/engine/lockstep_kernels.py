"""Kernels of the lock-step driver: each takes all searches on until they end, or wait for the policy's opinion.

The same draws, teachers and sums as in the fused driver's (`collect`, `rolling`), in another order.
"""

from __future__ import annotations

import numpy as np

from lols.engine.collect import passed_over, record, value_trail
from lols.engine.compile.dual import cost, dual, has, key, loss, row, start, step
from lols.engine.compile.kernel import Kernel
from lols.engine.predict import state_stream
from lols.engine.rolling import find_legal, free_actions, merges, repeats, teacher_action
from lols.engine.scoring import cheapest, gather, own_items
from lols.engine.structures import (
    COIN,
    COMPARE,
    COMPONENT,
    DRAWN_POLICY,
    MIXTURE,
    NO_ACTIONS,
    NOT_FINITE,
    REFERENCE,
    ROLL_IN,
    SAMPLE_STEP,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
)
from lols.engine.weighing import relative_costs, weigh
from lols.hashing import mix, unit


@dual
def wait(walks, i, example, number, t, stream, draw):
    """Put the walk of row i among those that wait."""
    k = walks.waiting[0]
    if k < i:
        for j in range(walks.state.shape[1]):
            walks.state[k, j] = walks.state[i, j]
        for a in range(walks.legal.shape[1]):
            walks.legal[k, a] = walks.legal[i, a]
    walks.example[k], walks.number[k], walks.stream[k], walks.draw[k] = example, number, stream, draw
    walks.time[number] = t
    walks.waiting[0] = k + 1


# --- rolling in -------------------------------------------------------------------------------------------------------


def roll_in(space, reference, data, plan, scratch, batch, trails, predicted, walks, rows, costs, bits):
    """Go on with the roll-ins of the first `rows` rows, by the policy's `costs` of their states if there are any."""
    where, answered = scratch.where, costs.shape[0] > 0
    walks.waiting[0] = 0
    for i in range(rows):
        b = walks.number[i]
        example = batch.example[b]
        limit, round_key = data.steps[example], mix(plan.seed, batch.round[b])
        x, y = row(data.x, example), row(data.y, example)
        s, legal, base = walks.state[i, : data.states[example]], walks.legal[i], row(trails, b)
        where[1], where[2], where[3] = b, 0, -1
        t, told = walks.time[b], answered
        if not answered:
            t = 0
            s[:] = 0
            start(space, x, s)
        while where[0] == 0:
            where[2] = t
            if not told:
                if not find_legal(space, x, s, legal):
                    if t == 0:
                        where[0] = NO_ACTIONS
                        break
                    batch.filled[b] = t
                    memo, epoch = scratch.memo, scratch.epoch[0]
                    batch.losses[b, 0] = value_trail(space, x, y, s, t, 1, plan, base, memo, epoch, where)
                    break
                if t >= limit:
                    where[0] = TOO_MANY_STEPS
                    break
            stream = mix(mix(round_key, ROLL_IN), t)
            teaching = plan.roll_in == REFERENCE
            if plan.roll_in == MIXTURE:
                teaching = unit(mix(stream, COIN)) < batch.beta_in[b]
            named = teaching and not plan.set_valued
            if not told and (not named or plan.prune > 0):
                wait(walks, i, example, b, t, stream, mix(stream, COMPONENT))
                break
            if predicted.shape[0] > 0:
                at = trails.action.offsets[b] + t
                for a in range(legal.size):
                    predicted[at, a] = costs[i, a] if told else np.float32(np.nan)
            if named:
                a = teacher_action(reference, x, y, s, legal, mix(stream, TEACHER), scratch.opinion, where)
            else:
                if teaching:
                    free_actions(reference, x, y, s, legal, mix(stream, TEACHER), scratch.opinion, where)
                among = scratch.opinion.free if teaching else legal
                a = cheapest(bits[i], among, plan.random_ties, mix(stream, TIE))
            if where[0] != 0:
                break
            base.action[t] = a
            base.cost[t] = cost(space, x, y, s, a)
            base.key[t] = key(space, x, s)
            step(space, x, s, a)
            t += 1
            told = False
        if where[0] != 0:
            break


# --- what states cost -------------------------------------------------------------------------------------------------


@dual
def place_of(known, owner, identity):
    """Where a state is remembered, or the empty place where it belongs."""
    mask = known.mask[0]
    h = mix(identity, owner) & mask
    while known.owner[h] >= 0 and (known.owner[h] != owner or known.key[h] != identity):
        h = (h + 1) & mask
    return h


@dual
def claim(known, place, owner, identity):
    """Remember a state at an empty place, if there is room: the place, or -1."""
    if known.filled[0] * 2 > known.mask[0]:
        return np.int64(-1)
    known.owner[place], known.key[place], known.settled[place] = owner, identity, False
    known.filled[0] += 1
    return np.int64(place)


@dual
def know(known, owner, identity, value):
    """Remember what a state is worth."""
    place = place_of(known, owner, identity)
    if known.owner[place] < 0:
        place = claim(known, place, owner, identity)
        if place >= 0:
            known.settled[place], known.value[place] = True, value


def weigh_all(space, reference, data, plan, scratch, batch, trails, predicted, orders, known, low, high, ends):
    """Order the completions of all deviations of some examples; or, when they are there, write the cost vectors.

    Slots and features are written without gaps; `ends` says where the next features go.
    """
    where, slots, legal = scratch.where, batch.slots, scratch.legal
    taking = orders.taking[0]
    f, m = ends[0], ends[1]
    for b in range(low, high):
        if where[0] != 0:
            break
        example, steps = batch.example[b], batch.filled[b]
        first_item, item_count = own_items(data.items.first, example)
        where[1], where[2], where[3] = b, 0, -1
        x, y = row(data.x, example), row(data.y, example)
        s, base = scratch.state[: data.states[example]], row(trails, b)
        round_key = mix(plan.seed, batch.round[b])
        for t in range(steps):
            scratch.base.action[t], scratch.base.value[t] = base.action[t], base.value[t]
            if predicted.shape[0] > 0:
                for a in range(legal.size):
                    scratch.predicted[t, a] = predicted[trails.action.offsets[b] + t, a]
        if has(space, "key") and plan.merge and taking:
            for t in range(steps - 1, -1, -1):
                if repeats(plan, orders.chances.size, TEACHER_POLICY):
                    know(known, 2 * b, np.int64(base.key[t]), base.value[t])
                if repeats(plan, orders.chances.size, 0):
                    know(known, 2 * b + 1, np.int64(base.key[t]), base.value[t])
        s[:] = 0
        start(space, x, s)
        need = min(plan.sample_steps, steps) if plan.sample_steps > 0 else steps
        chosen_weight = np.float32(steps / need)
        compared = need - np.int64(unit(mix(round_key, COMPARE)) * need) if plan.compare else -1
        batch.first_feature[b], batch.first_action_feature[b] = f, m
        for t in range(steps):
            if where[0] != 0:
                break
            where[2] = t
            slot = batch.first[b] + t
            if not taking:
                slots.start[slot] = slots.stop[slot] = f
                slots.weight[slot] = 0.0
            if need > 0 and unit(mix(mix(round_key, SAMPLE_STEP), t)) * (steps - t) < need:
                weigh(
                    space, reference, x, y, s, t, data.steps[example], orders, plan, data.items, first_item, item_count,
                    round_key, need == compared, scratch, batch, b,
                )  # fmt: skip
                need -= 1
                if not taking:
                    relative_costs(legal, scratch.values, scratch.value_bits, slots.costs, slot, where)
                    seen, bits = scratch.predicted[t], scratch.predicted_bits[t]
                    if not passed_over(plan, slots.costs[slot], seen, bits, scratch.sight):
                        slots.weight[slot] = chosen_weight
                        gather(space, x, s, item_count, scratch.sight, where)
                        find_legal(space, x, s, legal)
                        sight = scratch.sight
                        f, m = record(space, x, s, legal, data.items, first_item, sight, slots, slot, f, m, where)
            step(space, x, s, scratch.base.action[t])
    ends[0], ends[1] = f, m


# --- rolling out ------------------------------------------------------------------------------------------------------


def roll_out(
    space, reference, data, plan, scratch, batch, trails, orders, first, walks, paths, known, rows, costs, bits
):
    """Go on with roll-outs, of the orders from `first` on, by the policy's `costs` of their states if there are any.

    A walk that comes to a state which another one was at ends there: both are worth the same.
    """
    where, answered = scratch.where, costs.shape[0] > 0
    walks.waiting[0] = 0
    last, reached = -1, 0
    for i in range(rows):
        w = walks.number[i]
        order = first + w
        b, t, who = orders.example[order], orders.time[order], orders.who[order]
        example = batch.example[b]
        limit = data.steps[example]
        x, y = row(data.x, example), row(data.y, example)
        d, legal = walks.state[i, : data.states[example]], walks.legal[i]
        where[1], where[2], where[3] = b, t, -1
        n, told = walks.time[w], answered
        if not answered:
            s, base = scratch.state[: data.states[example]], row(trails, b)
            if b != last or t < reached:
                s[:] = 0
                start(space, x, s)
                last, reached = b, 0
            while reached < t:
                step(space, x, s, base.action[reached])
                reached += 1
            for k in range(min(plan.live, s.size) if plan.live > 0 else s.size):
                d[k] = s[k]
            n = 0
            paths.cost[w, 0] = cost(space, x, y, s, orders.action[order])
            paths.joined[w], paths.value[w], paths.settled[w] = -1, 0.0, False
            step(space, x, d, orders.action[order])
        merged = has(space, "key") and merges(plan, who)
        owner = 2 * b if who == TEACHER_POLICY else 2 * b + 1
        while where[0] == 0:
            if not told:
                if not find_legal(space, x, d, legal):
                    if not has(space, "cost"):
                        paths.value[w] = float(loss(space, x, y, d))
                    break
                if plan.horizon > 0 and n >= plan.horizon:
                    break
                paths.place[w, n] = -1
                if merged:
                    identity = np.int64(key(space, x, d))
                    place = place_of(known, owner, identity)
                    if known.owner[place] >= 0:
                        paths.joined[w] = place
                        break
                    paths.place[w, n] = claim(known, place, owner, identity)
                if t + n + 1 >= limit:
                    where[0], where[2] = TOO_MANY_STEPS, limit
                    break
            draw = mix(orders.stream[order], n)
            teaching = who == TEACHER_POLICY
            if who == DRAWN_POLICY:
                teaching = unit(mix(draw, COMPONENT)) < orders.beta[order]
            if teaching:
                a = teacher_action(reference, x, y, d, legal, mix(draw, TEACHER), scratch.opinion, where)
            elif told:
                a = cheapest(bits[i], legal, plan.random_ties, mix(draw, TIE))
            else:
                wait(walks, i, example, w, n, draw, mix(draw, TEACHER))
                break
            if where[0] != 0:
                break
            n += 1
            paths.cost[w, n] = cost(space, x, y, d, a)
            step(space, x, d, a)
            told = False
        walks.time[w] = n
        if where[0] != 0:
            break


def settle(library, orders, first, count, walks, paths, known, scratch):
    """Add up the costs of roll-outs from their ends backwards, those first that others ended at."""
    where = scratch.where
    left = count
    while left > 0 and where[0] == 0:
        before = left
        for w in range(count):
            joined = paths.joined[w]
            if paths.settled[w] or (joined >= 0 and not known.settled[joined]):
                continue
            value = known.value[joined] if joined >= 0 else paths.value[w]
            for k in range(walks.time[w], 0, -1):
                value = paths.cost[w, k] + value
                place = paths.place[w, k - 1]
                if place >= 0:
                    known.settled[place], known.value[place] = True, value
            if not np.isfinite(value):
                where[0], where[1], where[2] = NOT_FINITE, orders.example[first + w], orders.time[first + w]
            orders.value[first + w] = paths.cost[w, 0] + value
            paths.settled[w] = True
            left -= 1
        if left == before:  # each of them waits for another one: they go round in a circle
            for w in range(count):
                if not paths.settled[w]:
                    where[0], where[1], where[2] = TOO_MANY_STEPS, orders.example[first + w], orders.time[first + w]
                    break


# --- prediction -------------------------------------------------------------------------------------------------------


def follow(space, data, plan, drawn, scratch, walks, rows, costs, bits, states, first, taken, first_step, scores):
    """Go on following the policy on examples, by its `costs` of their states if there are any."""
    where, answered, sight = scratch.where, costs.shape[0] > 0, scratch.sight
    walks.waiting[0] = 0
    for i in range(rows):
        w = walks.number[i]
        example = walks.example[i]
        x = row(data.x, example)
        s, legal = walks.state[i, : data.states[example]], walks.legal[i]
        where[1], where[3] = example, -1
        t = walks.time[w]
        if answered:
            a = cheapest(bits[i], legal, plan.random_ties, mix(walks.stream[i], TIE))
            taken[first_step[example] + t] = a
            if scores.shape[0] > 0:
                for j in range(legal.size):
                    scores[first_step[example] + t, j] = costs[i, j] if legal[j] else np.float32(np.inf)
            where[2] = t
            step(space, x, s, a)
            t += 1
        else:
            t = 0
            s[:] = 0
            start(space, x, s)
        where[2] = t
        if not find_legal(space, x, s, legal):
            for k in range(s.size):
                states[first[example] + k] = s[k]
            taken[first_step[example] + t] = -1
            continue
        if t >= data.steps[example]:
            where[0] = TOO_MANY_STEPS
            break
        stream = 0
        if drawn or plan.random_ties:
            first_item, item_count = own_items(data.items.first, example)
            gather(space, x, s, item_count, sight, where)
            stream = state_stream(space, x, s, legal, plan.seed, t, data.items, first_item, sight, where)
            if where[0] != 0:
                break
        wait(walks, i, example, w, t, stream, mix(stream, COMPONENT))


roll_in_kernel = Kernel(roll_in)
weigh_all_kernel = Kernel(weigh_all)
roll_out_kernel = Kernel(roll_out)
settle_kernel = Kernel(settle)
follow_kernel = Kernel(follow)
