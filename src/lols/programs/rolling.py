"""Ways to run a program: by a policy alone, rolling in and recording each decision, and again from the start."""

from __future__ import annotations

from typing import Any

from lols.engine.deviations import teacher_stream
from lols.engine.policy import draw_component
from lols.engine.roll_in import teacher_rolls_in
from lols.engine.roll_out import teacher_rolls_out
from lols.engine.structures import COMPONENT, DRAWN_POLICY, MIXTURE, ROLL_IN, TEACHER, TEACHER_POLICY, TIE, Plan
from lols.errors import SpaceError
from lols.kernels.hashing import mix
from lols.programs.choices import Legal, Teacher
from lols.programs.search import ProgramSearch, Stop, ask_teacher, is_random


class Following(ProgramSearch):
    """Runs a program with the learned policy."""

    learning = False

    def result(self, x: Any, number: int, *, truth: bool, seed: int) -> tuple[Any, float]:
        """The program's result for an object, and its loss if the truth is available."""
        self._begin([])
        self.truth, self._seed, self._example = truth, seed, number
        self._draws = self._scorer.random_ties or self._scorer.components > 1
        return self._run(x, f"example {number}"), self._final

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        scorer = self._scorer
        self._check_steps(at)
        allowed = self._choices.legal(legal)
        seen = scorer.encode(features() if callable(features) else features)
        if not self._draws:
            return self._names[scorer.choose(seen, allowed)]
        stream = mix(self._seed, at)
        for identity in seen[0]:
            stream = mix(stream, identity)
        component = draw_component(scorer.policy.chances, mix(stream, COMPONENT))
        return self._names[scorer.choose(seen, allowed, component, mix(stream, TIE))]

    def loss(self, value: Any) -> None:
        """Add to the loss, except in prediction."""
        if self.truth:
            super().loss(value)


class FollowingTeacher(Following):
    """Runs a program with its reference."""

    learning = True

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        self._check_steps(at)
        stream = mix(mix(mix(self._seed, self._example), at), TEACHER)
        allowed = self._choices.legal(legal)
        return self._names[ask_teacher(self._choices, allowed, reference, costs, stream).first]


class ProgramTrail:
    """The decisions of a roll-in, step by step."""

    def __init__(self) -> None:
        self.actions: list[int] = []
        self.names: list[Any] = []  # the actions as the program got them
        self.legal: list[Legal] = []
        self.seen: list[Any] = []  # encoded features
        self.teachers: list[Teacher | None] = []
        self.imitated: dict[int, Teacher] = {}  # the answers of a random teacher for imitation
        self.sampled: dict[int, Teacher] = {}  # and for sampling actions
        self.keys: list[Any] = []
        self.costs: list[float] = []  # the loss after each decision
        self.preferred: list[int] = []  # the policy's action; -1 where it was not asked
        self.predicted: list[Any] = []  # predicted costs, if pruning needs them
        self.random = False  # whether the teacher draws at random
        self.before = 0.0  # the loss before the first decision

    @property
    def loss(self) -> float:
        """The loss of the whole roll-in."""
        return sum(self.costs, self.before)


class RollIn(ProgramSearch):
    """Rolls in by the reference, the learned policy or a mixture, and records the decisions."""

    def trail(self, x: Any, number: int, plan: Plan, round_key: int, beta_in: float) -> ProgramTrail:
        """Run the program on an object."""
        self._begin([])
        self._plan, self._round_key, self._key, self._beta_in = plan, round_key, mix(round_key, ROLL_IN), beta_in
        self._draws = plan.roll_in == MIXTURE or plan.random_ties or self._scorer.components > 1
        self._trail = trail = ProgramTrail()
        self._run(x, f"example {number}")
        if not trail.actions:
            raise SpaceError(f"example {number}: the program ended without a decision: leave such examples out")
        trail.costs.append(self._final)
        return trail

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        plan, trail, t = self._plan, self._trail, at
        if t:
            trail.costs.append(self._spent())
        else:
            trail.before = self._spent()
        self._check_steps(t)
        allowed = self._choices.legal(legal)
        seen = self._scorer.encode(features() if callable(features) else features)
        stream = component = 0
        random = is_random(reference)
        if self._draws or random:
            stream = mix(self._key, t)
            if self._scorer.components > 1:
                component = draw_component(self._scorer.policy.chances, mix(stream, COMPONENT))
        teaching = teacher_rolls_in(plan, stream, self._beta_in)
        answer = None
        if teaching or not (random or (reference is None and costs is None)):
            answer = ask_teacher(self._choices, allowed, reference, costs, mix(stream, TEACHER) if random else 0)
        preferred, predicted = -1, None
        if not teaching or plan.prune > 0:
            preferred = self._scorer.choose(seen, allowed, component, mix(stream, TIE) if plan.random_ties else 0)
            predicted = self._scorer.costs.copy() if plan.prune > 0 else None
        a = preferred
        if teaching and answer is not None:
            a = answer.first
            if answer.free is not None:
                among = self._choices.among(answer.free, allowed)
                a = self._scorer.choose(seen, among, component, mix(stream, TIE) if plan.random_ties else 0)
        name = self._names[a]
        trail.actions.append(a)
        trail.names.append(name)
        trail.legal.append(allowed)
        trail.seen.append(seen)
        trail.teachers.append(answer)
        if random:  # ask now for all later uses: the function reads variables of the program, which change
            trail.random = True
            trail.imitated[t] = ask_teacher(
                self._choices, allowed, reference, costs, mix(mix(self._round_key, TEACHER), t)
            )
            trail.sampled[t] = ask_teacher(self._choices, allowed, reference, costs, teacher_stream(self._round_key, t))
        trail.keys.append(key)
        trail.preferred.append(preferred)
        trail.predicted.append(predicted)
        return name


class Rerun(ProgramSearch):
    """Runs a program again: the roll-in up to one decision, another action there, and a policy for the rest."""

    memo = True

    def value(
        self, x: Any, number: int, plan: Plan, trail: ProgramTrail, t: int, a: int, who: int, share: float, stream: int
    ) -> float:
        """The loss after step `t` if action `a` is taken there and `who` completes; summed from the end backwards."""
        self._begin(trail.names[:t])
        self._plan, self._who, self._share, self._stream = plan, who, share, stream
        self._trail, self._t, self._a, self._costs = trail, t, a, []
        self._plainly = self.memo and not plan.random_ties
        self._cut = False
        what = f"example {number}, roll-out of action {self._names[a]!r} at step {t}"
        self._run(x, what)
        if self._at <= t:
            raise SpaceError(f"{what}: the program ended at step {self._at}, unlike before: is it random?")
        if not self._cut:
            self._costs.append(self._final)
        value = 0.0
        for cost in reversed(self._costs):
            value = cost + value
        return value

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        trail, plan = self._trail, self._plan
        if at == self._t:
            if self._choices.legal(legal) is not trail.legal[at]:
                raise SpaceError("other actions are legal than in the roll-in, after the same actions: is it random?")
            self._loss = 0.0
            return self._names[self._a]
        self._costs.append(self._spent())
        n = at - self._t - 1
        if self._cut or (plan.horizon > 0 and n >= plan.horizon):
            self._cut = True
            raise Stop
        self._check_steps(at)
        who = self._who
        draw = 0
        if who == DRAWN_POLICY or plan.random_ties or is_random(reference):
            draw = mix(self._stream, n)
        if who == DRAWN_POLICY:
            taught = teacher_rolls_out(who, self._share, draw)
            who = TEACHER_POLICY if taught else draw_component(self._scorer.policy.chances, mix(draw, TEACHER))
        allowed = self._choices.legal(legal)
        if who == TEACHER_POLICY:
            stream = mix(draw, TEACHER) if draw else 0
            return self._names[ask_teacher(self._choices, allowed, reference, costs, stream).first]
        if callable(features):
            features = features()
        if self._plainly and who == 0 and self._scorer.components == 1:
            return self._names[self._scorer.choose_again(features, allowed)]
        seen = self._scorer.encode(features)
        return self._names[self._scorer.choose(seen, allowed, who, mix(draw, TIE) if plan.random_ties else 0)]


def follows(trail: ProgramTrail, plan: Plan, components: int) -> tuple[list[bool], list[bool]]:
    """For each step, whether the teacher, and whether the learner, would take the rest of the trail."""
    steps = len(trail.actions)
    teacher, learner = [True] * steps, [True] * steps
    by_teacher = plan.horizon == 0 and not trail.random
    by_learner = plan.horizon == 0 and components == 1 and not plan.random_ties
    for t in range(steps - 1, -1, -1):
        teacher[t], learner[t] = by_teacher, by_learner
        answer = trail.teachers[t]
        by_teacher = by_teacher and answer is not None and answer.first == trail.actions[t]
        by_learner = by_learner and trail.preferred[t] == trail.actions[t]
    return teacher, learner
