"""The first stage: roll in, deviate at every step, roll out every deviation; leave cost-sensitive examples behind.

Algorithm 1 of the paper, lines 3-11, for any roll-in and roll-out. Learning from what is left here is the second stage.
"""

from __future__ import annotations

import numpy as np

from lols.engine.compile.dual import cost, dual, has, key, loss, row, start, step, take
from lols.engine.compile.kernel import Kernel
from lols.engine.rolling import find_legal, forget, free_actions, remember, repeats, teacher_action
from lols.engine.scoring import (
    cheapest,
    draw_component,
    gather,
    gather_action,
    in_role,
    new_policy,
    own_items,
    score,
    types_of,
    worst_violation,
)
from lols.engine.structures import (
    COIN,
    COMPARE,
    COMPONENT,
    LOSS_NOT_FINITE,
    MIXTURE,
    NEGATIVE,
    NO_ACTIONS,
    REFERENCE,
    ROLL_IN,
    SAMPLE_STEP,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
)
from lols.engine.weighing import evaluate, relative_costs, weigh
from lols.hashing import mix, unit


@dual
def record(space, x, s, legal, of, first_item, sight, slots, slot, n, m, where):
    """Write the features of a state into a slot: its items' features first, then its own, then its actions'."""
    slots.start[slot] = n
    if has(space, "items"):
        for k in range(sight.items.size[0]):
            low, high = types_of(of, first_item + sight.items.items[k])
            for part in range(low, high):
                for f in range(of.start[of.types[part]], of.start[of.types[part] + 1]):
                    slots.ids[n] = in_role(of.ids[f], sight.items.roles[k])
                    slots.values[n] = of.values[f]
                    n += 1
    for k in range(sight.features.size[0]):
        slots.ids[n] = sight.features.ids[k]
        slots.values[n] = sight.features.values[k]
        n += 1
    slots.stop[slot] = n
    if has(space, "action_features"):
        for a in range(legal.size):
            slots.action_start[slot, a] = m
            if legal[a]:
                gather_action(space, x, s, a, sight.action_features, where)
                for k in range(sight.action_features.size[0]):
                    slots.action_ids[m] = sight.action_features.ids[k]
                    slots.action_values[m] = sight.action_features.values[k]
                    m += 1
            slots.action_stop[slot, a] = m
    return n, m


@dual
def roll_in(space, reference, x, y, s, limit, policy, plan, of, first_item, item_count, round_key, scratch, batch, b):
    """Roll in from the start state; the number of steps taken.

    Among the reference's equally good actions the one is taken that the learner likes best.
    """
    legal, base, sight, where = scratch.legal, scratch.base, scratch.sight, scratch.where
    start(space, x, s)
    t = 0
    while find_legal(space, x, s, legal):
        where[2] = t
        if t >= limit:
            where[0] = TOO_MANY_STEPS
            break
        gather(space, x, s, item_count, sight, where)
        stream = mix(mix(round_key, ROLL_IN), t)
        teaching = plan.roll_in == REFERENCE or (plan.roll_in == MIXTURE and unit(mix(stream, COIN)) < batch.beta_in[b])
        named = teaching and not plan.set_valued
        if not named or plan.prune > 0:
            component = draw_component(policy.chances, mix(stream, COMPONENT))
            score(
                space, x, s, legal, policy, component, plan.cache_items, of, first_item, sight, scratch.epoch[0], where
            )
            for j in range(legal.size):
                scratch.predicted[t, j] = sight.costs[j]
        else:
            scratch.predicted[t, 0] = np.nan
        if named:
            a = teacher_action(reference, x, y, s, legal, mix(stream, TEACHER), scratch.opinion, where)
        else:
            if teaching:
                free_actions(reference, x, y, s, legal, mix(stream, TEACHER), scratch.opinion, where)
            among = scratch.opinion.free if teaching else legal
            a = cheapest(sight.bits, among, plan.random_ties, mix(stream, TIE))
        if where[0] != 0:
            break
        base.action[t] = a
        base.cost[t] = cost(space, x, y, s, a)
        base.key[t] = key(space, x, s)
        step(space, x, s, a)
        t += 1
        where[2] = t
    if t == 0 and where[0] == 0:
        where[0] = NO_ACTIONS
    return t


@dual
def value_trail(space, x, y, s, steps, components, plan, base, memo, epoch, where):
    """What every state of the roll-in was worth, remembered for roll-outs that come back to it; the final loss."""
    final = float(loss(space, x, y, s))
    if not np.isfinite(final):
        where[0] = LOSS_NOT_FINITE
    elif final < 0.0:
        where[0] = NEGATIVE
    value = 0.0 if has(space, "cost") else final
    for t in range(steps - 1, -1, -1):
        value = base.cost[t] + value
        base.value[t] = value
        if has(space, "key") and plan.merge:
            if repeats(plan, components, TEACHER_POLICY):
                remember(memo, epoch, 0, base.key[t], value)
            if repeats(plan, components, 0):
                remember(memo, epoch, 1, base.key[t], value)
    return final


@dual
def passed_over(plan, costs, predicted, bits, sight):
    """Whether the policy that rolled in has a state so right that learning from it would change nothing.

    What `worst_violation` says, without branches: this is asked of every state. The cheapest actions cost 0.
    """
    if not np.isfinite(plan.slack):
        return False
    fine = True
    for a in range(predicted.size):
        fine &= np.isfinite(predicted[a])
    if not fine:  # nobody asked, or the weights ran away, which the learner will report
        return False
    if plan.margin < 0.0 or costs.size < 2:
        return worst_violation(costs, predicted, plan.margin)[2] < -plan.slack
    most = np.int32(2147483647)
    good, bad = most, most
    for a in range(costs.size):
        ordered = bits[a] ^ ((bits[a] >> np.int32(31)) & most)
        good = min(good, ordered if costs[a] == 0.0 else most)
        bad = min(bad, ordered if costs[a] > 0.0 and costs[a] < np.inf else most)
    if bad == most:
        return True
    sight.bits[0] = good ^ ((good >> np.int32(31)) & most)
    sight.bits[1] = bad ^ ((bad >> np.int32(31)) & most)
    return sight.costs[0] + (np.float32(plan.margin) - sight.costs[1]) < -plan.slack


def collect(space, reference, data, policy, plan, scratch, batch, counter):
    """Make the cost-sensitive examples of a batch; several threads share one counter and take a few at a time.

    In a large batch they take more, so that they do not write side by side all the time.
    """
    legal, where, slots = scratch.legal, scratch.where, batch.slots
    new_policy(scratch.sight)
    few = 1 + batch.example.size // 32 if batch.example.size >= 256 else 1
    n, until = np.int64(0), np.int64(0)
    while where[0] == 0:
        if n == until:
            n = take(counter) * few
            until = min(n + few, np.int64(batch.example.size))
            if n >= batch.example.size:
                break
        b = batch.order[n]
        n += 1
        example = batch.example[b]
        limit = data.steps[example]
        first_item, item_count = own_items(data.items.first, example)
        where[1], where[2], where[3] = b, 0, -1
        scratch.epoch[0] += 1
        forget(scratch.memo, limit * legal.size)
        x, y = row(data.x, example), row(data.y, example)
        s = scratch.state[: data.states[example]]
        round_key = mix(plan.seed, batch.round[b])
        s[:] = 0
        steps = roll_in(
            space,
            reference,
            x,
            y,
            s,
            limit,
            policy,
            plan,
            data.items,
            first_item,
            item_count,
            round_key,
            scratch,
            batch,
            b,
        )
        if where[0] != 0:
            break
        batch.filled[b] = steps
        batch.losses[b, 0] = value_trail(
            space, x, y, s, steps, policy.chances.size, plan, scratch.base, scratch.memo, scratch.epoch[0], where
        )
        s[:] = 0
        start(space, x, s)
        need = min(plan.sample_steps, steps) if plan.sample_steps > 0 else steps
        chosen_weight = np.float32(steps / need)
        compared = need - np.int64(unit(mix(round_key, COMPARE)) * need) if plan.compare else -1
        f, m = batch.first_feature[b], batch.first_action_feature[b]
        for t in range(steps):
            if where[0] != 0:
                break
            where[2] = t
            slot = batch.first[b] + t
            slots.start[slot] = slots.stop[slot] = f
            slots.weight[slot] = 0.0
            if need > 0 and unit(mix(mix(round_key, SAMPLE_STEP), t)) * (steps - t) < need:
                slots.weight[slot] = chosen_weight
                cut = weigh(
                    space, reference, x, y, s, t, limit, policy, plan, data.items, first_item, item_count, round_key,
                    need == compared, scratch, batch, b,
                )  # fmt: skip
                relative_costs(legal, scratch.values, scratch.value_bits, slots.costs, slot, where)
                seen, bits = scratch.predicted[t], scratch.predicted_bits[t]
                over = passed_over(plan, slots.costs[slot], seen, bits, scratch.sight)
                if cut and plan.exact and not over:
                    evaluate(
                        space, reference, x, y, s, t, limit, legal, policy, plan, data.items, first_item, item_count,
                        round_key, need == compared, False, scratch, batch, b,
                    )  # fmt: skip
                    relative_costs(legal, scratch.values, scratch.value_bits, slots.costs, slot, where)
                need -= 1
                if over:
                    slots.weight[slot] = 0.0
                else:
                    gather(space, x, s, item_count, scratch.sight, where)
                    find_legal(space, x, s, legal)
                    f, m = record(space, x, s, legal, data.items, first_item, scratch.sight, slots, slot, f, m, where)
            step(space, x, s, scratch.base.action[t])
    return where[0]


collect_kernel = Kernel(collect)
