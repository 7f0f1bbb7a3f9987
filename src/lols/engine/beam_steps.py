"""The steps of a beam search, compiled: the paths of a beam, their candidates, and the best of them at each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.engine.calls import key, step
from lols.engine.memory import state_type
from lols.engine.policy import cheapest, gather, new_policy, score
from lols.engine.search import Search, begin, find_legal, turn_to
from lols.engine.structures import AT_STEP, CODE, TOO_MANY_STEPS, Plan
from lols.kernels.dual import dual, has
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct

REGRET, COST, SURPRISE = range(3)
MOST = float(np.finfo(np.float64).max)  # the largest score; infinity stands for "no candidate"


class Beam(Struct):
    """The settings of a beam search."""

    plan: Plan
    scored: int
    temperature: float
    recombine: bool


class BeamPaths(Struct):
    """The beam of one thread, best path first: states and scores, candidates for the next step, and back pointers."""

    states: np.ndarray  # [before or after the step, path, cell]
    scores: np.ndarray
    live: np.ndarray  # whether the path has not ended
    keys: np.ndarray
    legal: np.ndarray  # [path, action]
    regrets: np.ndarray  # [path, action]: relative to the greedy action; infinite if illegal, or already extended
    base: np.ndarray  # the score of the path after the greedy action
    head: np.ndarray  # the best candidate of the path: an action, or -1 for staying at the end
    least: np.ndarray  # the score after it
    parent: np.ndarray  # [step, path]: the rank of the path before the step
    action: np.ndarray  # [step, path]: -1 once the path has ended


def beam_paths(examples: Examples, width: int, compiled: bool) -> BeamPaths:
    """Memory for one beam."""
    states, steps = int(examples.states.max(initial=1)), int(examples.steps.max(initial=1))
    actions = examples.most_actions
    return BeamPaths(
        states=np.zeros((2, width, states), state_type(compiled)),
        scores=np.zeros(width),
        live=np.zeros(width, np.bool_),
        keys=np.zeros(width, np.int64),
        legal=np.zeros((width, actions), np.bool_),
        regrets=np.zeros((width, actions)),
        base=np.zeros(width),
        head=np.zeros(width, np.int64),
        least=np.zeros(width),
        parent=np.zeros((steps, width), np.int32),
        action=np.zeros((steps, width), np.int32),
    )


class Found(Struct):
    """The `best` paths of all examples."""

    counts: np.ndarray
    scores: np.ndarray  # [example, rank]
    states: np.ndarray
    first: np.ndarray
    taken: np.ndarray  # actions, and -1 after the last one
    first_step: np.ndarray


@dual
def bounded(value):
    """The value, or the largest number if it overflows."""
    return max(value, -MOST) if value < MOST else MOST


@dual
def price(paths, p, view, beam):
    """Compute the regrets of the actions of a path, and its score after the greedy one."""
    scored = beam.scored
    greedy = cheapest(view.bits, paths.legal[p], False, np.int64(0))
    least, scale, shares = np.float64(view.costs[greedy]), beam.temperature if scored == SURPRISE else 1.0, 0.0
    for a in range(paths.regrets.shape[1]):
        paths.regrets[p, a] = bounded((np.float64(view.costs[a]) - least) / scale) if paths.legal[p, a] else np.inf
        shares += np.exp(-paths.regrets[p, a])
    paths.regrets[p, greedy] = 0.0
    already = least if scored == COST else np.log(shares) if scored == SURPRISE else 0.0
    paths.base[p] = bounded(paths.scores[p] + already)


@dual
def find_head(paths, p):
    """Find the best action of a path that was not extended yet; of equal ones the first."""
    least, head = np.inf, -1
    for a in range(paths.regrets.shape[1]):
        if paths.regrets[p, a] < least:
            least, head = paths.regrets[p, a], a
    paths.head[p] = head
    paths.least[p] = bounded(paths.base[p] + least) if head >= 0 else np.inf


@dual
def best_path(paths, count):
    """The path whose candidate is best, of equal ones the first; -1 if no candidate is left."""
    least, best = np.inf, -1
    for p in range(count):
        if paths.least[p] < least:
            least, best = paths.least[p], p
    return best


@dual
def met(paths, kept):
    """Whether a new path meets one that was kept before it, which is at least as good."""
    for q in range(kept):
        if paths.live[q] and paths.keys[q] == paths.keys[kept]:
            return True
    return False


@dual
def extend(search, here, size, t, count, recombine, paths):
    """Replace the paths by their best continuations; their number, and whether one of them has not ended."""
    space, report = search.space, search.scratch.report
    kept, going = 0, False
    while kept < paths.scores.size:
        p = best_path(paths, count)
        if p < 0:
            break
        total, a = paths.least[p], paths.head[p]
        s, d = paths.states[t & 1, p, :size], paths.states[(t + 1) & 1, kept, :size]
        for k in range(size):
            d[k] = s[k]
        live = False
        if a < 0:
            paths.least[p] = np.inf
        else:
            paths.regrets[p, a] = np.inf
            find_head(paths, p)
            report[AT_STEP] = t
            step(space, here.x, d, a)
            report[AT_STEP] = t + 1
            live = find_legal(search, here, d, paths.legal[kept])
            if has(space, "key") and recombine and live:
                paths.keys[kept] = np.int64(key(space, here.x, d))
                if met(paths, kept):
                    continue
        paths.live[kept], paths.scores[kept] = live, total
        paths.parent[t, kept], paths.action[t, kept] = p, a
        going |= live
        kept += 1
    return kept, going


@dual
def write_out(paths, count, t, size, example, found):
    """Copy the best paths of a beam after `t` steps to the results."""
    best, room = found.scores.shape[1], found.first_step[example + 1] - found.first_step[example]
    found.counts[example] = min(best, count)
    for k in range(found.counts[example]):
        found.scores[example, k] = paths.scores[k]
        at = found.first[example] * best + k * size
        for cell in range(size):
            found.states[at + cell] = paths.states[t & 1, k, cell]
        at = found.first_step[example] * best + k * room
        p = k
        for u in range(t - 1, -1, -1):
            found.taken[at + u] = paths.action[u, p]
            p = paths.parent[u, p]


@dual
def look(search, here, size, t, count, beam, paths):
    """Find the candidates of all paths; False on an error."""
    report, view = search.scratch.report, search.scratch.seen
    for p in range(count):
        if not paths.live[p]:
            paths.least[p], paths.head[p] = paths.scores[p], -1
            continue
        s = paths.states[t & 1, p, :size]
        gather(search, here, s, paths.legal[p])
        if report[CODE] == 0:
            score(search, here, s, paths.legal[p], 0)
        if report[CODE] != 0:
            return False
        price(paths, p, view, beam)
        find_head(paths, p)
    return True


def search_beam(space, data, policy, beam, scratch, paths, span, found):
    """Search examples `span[0]` to `span[1]`, keeping as many paths at each step as the beam is wide."""
    search = Search(space, None, policy, beam.plan, data.items, scratch)
    report = scratch.report
    new_policy(scratch.seen)
    for example in range(span[0], span[1]):
        here = turn_to(search, data, example, example, 0)
        size = data.states[example]
        begin(search, here, paths.states[0, 0, :size])
        going = find_legal(search, here, paths.states[0, 0, :size], paths.legal[0])
        paths.live[0], paths.scores[0] = going, 0.0
        t, count = 0, 1
        while going:
            report[AT_STEP] = t
            if t >= here.limit:
                report[CODE] = TOO_MANY_STEPS
                return report[CODE]
            if not look(search, here, size, t, count, beam, paths):
                return report[CODE]
            count, going = extend(search, here, size, t, count, beam.recombine, paths)
            t += 1
        write_out(paths, count, t, size, example, found)
    return report[CODE]


class Scored(NamedTuple):
    """The predicted costs of a state, and the same memory as integers."""

    costs: np.ndarray
    bits: np.ndarray


class BeamTurn(Struct):
    """One example whose beam waits for the costs of its live paths, [path, action], in the order of the paths."""

    progress: np.ndarray  # example, step (-1 before the first), paths, whether one of them has not ended
    costs: np.ndarray
    bits: np.ndarray


def advance_beam(space, data, beam, scratch, paths, turn, found):
    """Begin the beam of one example, or take its next step; if that was the last one, write its results."""
    search = Search(space, None, None, beam.plan, data.items, scratch)
    report, progress = scratch.report, turn.progress
    example, t, count = progress[0], progress[1], progress[2]
    here, size = turn_to(search, data, example, example, 0), data.states[example]
    if t < 0:
        begin(search, here, paths.states[0, 0, :size])
        going = find_legal(search, here, paths.states[0, 0, :size], paths.legal[0])
        paths.live[0], paths.scores[0], count = going, 0.0, 1
    else:
        report[AT_STEP], at = t, 0
        for p in range(count):
            if paths.live[p]:
                price(paths, p, Scored(turn.costs[at], turn.bits[at]), beam)
                find_head(paths, p)
                at += 1
            else:
                paths.least[p], paths.head[p] = paths.scores[p], -1
        count, going = extend(search, here, size, t, count, beam.recombine, paths)
    t += 1
    progress[1], progress[2], progress[3] = t, count, going
    if not going:
        write_out(paths, count, t, size, example, found)
    elif t >= here.limit:
        report[CODE] = TOO_MANY_STEPS


beam_kernel = Kernel(search_beam)
advance_kernel = Kernel(advance_beam)
