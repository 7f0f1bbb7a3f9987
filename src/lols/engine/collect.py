"""The first stage: roll in, deviate at every step, roll out every deviation; leave cost-sensitive examples behind.

Algorithm 1 of the paper, lines 3-11, for any roll-in and roll-out. Learning from what is left here is the second stage.
"""

from __future__ import annotations

import numpy as np

from lols.engine.dual import Kernel, cost, dual, has, key, loss, row, start, step, take
from lols.engine.rolling import (
    deviate,
    find_legal,
    forget,
    free_actions,
    remember,
    repeats,
    teacher_action,
    teacher_costs,
)
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
    DRAWN_POLICY,
    EXAMPLE,
    EXPECTED,
    LEARNED,
    LOSS_NOT_FINITE,
    MIXTURE,
    NEGATIVE,
    NO_ACTIONS,
    NONE,
    NOT_FINITE,
    REFERENCE,
    ROLL_IN,
    ROLLOUT,
    SAMPLE_ACTION,
    SAMPLE_STEP,
    STEP,
    TEACHER,
    TEACHER_POLICY,
    TIE,
    TOO_MANY_STEPS,
)
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
def prune(space, reference, x, y, s, legal, most, taken, predicted, stream, kept, opinion, where):
    """Thin out `legal` to the best-liked actions, the one taken and the teacher's: no other is worth a roll-out.

    The teacher may find actions good that were not sampled, so that it is asked about all legal ones; with the stream
    of `sample_actions` it names the action that was kept there.
    """
    find_legal(space, x, s, kept)
    teacher = teacher_action(reference, x, y, s, kept, mix(stream, TEACHER), opinion, where)
    for a in range(legal.size):
        kept[a] = a in (taken, teacher)
    for _ in range(most):
        best = -1
        for a in range(legal.size):
            if legal[a] and (best < 0 or predicted[a] < predicted[best]):
                best = a
        if best < 0:
            break
        legal[best] = False
        kept[best] = True
    for a in range(legal.size):
        legal[a] = kept[a]


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
def immediate_costs(space, reference, x, y, s, legal, imitate, stream, values, opinion, where):
    """Without roll-outs an action costs what it adds to the loss, or 1 unless the reference would take it."""
    if has(space, "cost") and not imitate:
        for a in range(legal.size):
            if legal[a]:
                values[a] = cost(space, x, y, s, a)
    else:
        free_actions(reference, x, y, s, legal, stream, opinion, where)
        for a in range(legal.size):
            values[a] = 0.0 if opinion.free[a] else 1.0


@dual
def toss(plan, learned, beta, shared_stream, own_stream):
    """Who completes a deviation; the coin lies in the stream that `plan.mix` says."""
    if plan.roll_out == REFERENCE:
        return TEACHER_POLICY
    if plan.roll_out == LEARNED:
        return learned
    if plan.mix == STEP:
        return DRAWN_POLICY
    stream = own_stream if plan.mix == ROLLOUT else shared_stream
    return TEACHER_POLICY if unit(mix(stream, -1)) < beta else learned


@dual
def evaluate(
    space, reference, x, y, s, t, limit, legal, policy, plan, of, first_item, item_count, round_key, comparing, bound,
    scratch, batch, b,
):  # fmt: skip
    """Fill `scratch.values` with the cost of every chosen action at the roll-in's state at time t.

    With `bound`, what surely costs more than the action that was taken has some such cost, and True is given.
    """
    base, where = scratch.base, scratch.where
    beta = batch.beta[b] if plan.roll_out == MIXTURE else 0.0
    learned = 0 if policy.chances.size == 1 else DRAWN_POLICY
    expected = plan.roll_out == MIXTURE and plan.mix == EXPECTED
    closed = plan.closed_form and has(reference, "costs") and plan.horizon == 0
    if plan.roll_out == MIXTURE and plan.mix == ROLLOUT:
        closed = False  # teacher's and learner's values are compared, and closed-form ones may be off by a constant
    state_stream = mix(mix(round_key, COIN), t)
    shared_stream = mix(round_key, COIN) if plan.mix == EXAMPLE else state_stream
    if closed:
        teacher_costs(reference, x, y, s, legal, scratch.opinion.costs, where)
        for a in range(legal.size):
            scratch.values[a] = scratch.opinion.costs[a]
    shared = toss(plan, learned, beta, shared_stream, state_stream)
    apart = plan.roll_out == MIXTURE and plan.mix == ROLLOUT
    teacher_alone = shared == TEACHER_POLICY and not expected and not apart
    if closed and teacher_alone and not comparing:
        return False
    if plan.prune > 0 and not teacher_alone:  # whether the teacher's costs are known in closed form or not
        stream = mix(mix(round_key, SAMPLE_ACTION), t)
        prune(
            space, reference, x, y, s, legal, plan.prune, base.action[t], scratch.predicted[t], stream, scratch.here,
            scratch.opinion, where,
        )  # fmt: skip
    bounded = bound and has(space, "cost") and not expected and not apart
    bounded = bounded and not comparing and repeats(plan, policy.chances.size, shared)
    cut = False
    for a in range(legal.size):
        if not legal[a] or where[0] != 0:
            continue
        stream, who = state_stream, shared
        if plan.mix == ROLLOUT:
            stream = mix(state_stream, a)
            who = toss(plan, learned, beta, shared_stream, stream)
        compared = comparing and a == base.action[t]
        by_teacher, by_learner = scratch.values[a], 0.0
        for part in range(2):
            acting = TEACHER_POLICY if part == 0 else (who if who != TEACHER_POLICY else learned)
            needed = expected or compared or (who == TEACHER_POLICY) == (part == 0)
            if not needed or (part == 0 and closed and not compared):
                continue
            if plan.reuse and a == base.action[t] and repeats(plan, policy.chances.size, acting):
                value = base.value[t]
            elif bounded and a != base.action[t] and cost(space, x, y, s, a) > base.value[t]:
                value = cost(space, x, y, s, a)  # whatever follows, it costs more than the action that was taken
                cut = True
            else:
                share = beta if plan.mix == STEP else 0.0
                value = deviate(
                    space, reference, x, y, s, t, a, limit, policy, acting, share, plan, of, first_item, item_count,
                    stream, scratch,
                )  # fmt: skip
            if compared:
                batch.losses[b, 1 + part] = value
            if part == 1:
                by_learner = value
            elif not closed:
                by_teacher = value
        if expected:
            scratch.values[a] = beta * by_teacher + (1.0 - beta) * by_learner
        else:
            scratch.values[a] = by_teacher if who == TEACHER_POLICY else by_learner
    return cut


@dual
def sample_actions(reference, x, y, s, legal, most, taken, stream, kept, opinion, where):
    """Thin out `legal` to the action taken, the teacher's, and random others."""
    count = 0
    for a in range(legal.size):
        count += legal[a]
        kept[a] = a == taken
    if count <= most:
        return
    teacher = teacher_action(reference, x, y, s, legal, mix(stream, TEACHER), opinion, where)
    if teacher >= 0:
        kept[teacher] = True
    need, left = most, count
    for a in range(legal.size):
        if kept[a]:
            need -= 1
            left -= 1
    for a in range(legal.size):
        if legal[a] and not kept[a]:
            if need > 0 and unit(mix(stream, a)) * left < need:
                kept[a] = True
                need -= 1
            left -= 1
    for a in range(legal.size):
        legal[a] = kept[a]


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


@dual
def relative_costs(legal, values, bits, costs, slot, where):
    """Write the cost vector of a state: what each action costs more than the best one; `bits` are `values`."""
    wrong, most = False, np.int64(9223372036854775807)
    low = most
    for a in range(legal.size):
        wrong |= legal[a] & (not np.isfinite(values[a]))
        ordered = bits[a] ^ ((bits[a] >> np.int64(63)) & most)
        low = min(low, ordered if legal[a] else most)
    if wrong and where[0] == 0:
        where[0] = NOT_FINITE
    low = low ^ ((low >> np.int64(63)) & most)
    least = np.inf
    for a in range(legal.size):
        if legal[a] and bits[a] == low:
            least = values[a]
            break
    for a in range(legal.size):
        costs[slot, a] = values[a] - least if legal[a] else np.inf


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
                find_legal(space, x, s, legal)
                if plan.roll_out == NONE:
                    stream = mix(mix(round_key, TEACHER), t)
                    immediate_costs(
                        space, reference, x, y, s, legal, plan.imitate, stream, scratch.values, scratch.opinion, where
                    )
                if plan.sample_actions > 0:
                    stream = mix(mix(round_key, SAMPLE_ACTION), t)
                    taken = scratch.base.action[t]
                    sample_actions(
                        reference,
                        x,
                        y,
                        s,
                        legal,
                        plan.sample_actions,
                        taken,
                        stream,
                        scratch.here,
                        scratch.opinion,
                        where,
                    )
                cut = False
                if plan.roll_out != NONE:
                    cut = evaluate(
                        space, reference, x, y, s, t, limit, legal, policy, plan, data.items, first_item, item_count,
                        round_key, need == compared, plan.bound, scratch, batch, b,
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
