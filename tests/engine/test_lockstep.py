"""The lock-step driver against the twin and the fused driver: the same cost vectors, weights and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lols
from lols.engine import states
from lols.engine.drivers import lock_step
from lols.engine.drivers.fused import FusedDriver
from lols.engine.drivers.lock_step import LockStepDriver
from lols.policies import LinearPolicy, States
from lols.specification import Choices, SlowPolicy, SlowSearch
from tests.engine.random_space import ACTIONS, VARIANTS, Variant, data_sets, random_data
from tests.engine.test_engine import STRATEGIES, cases, random_policy
from tests.engine.twin import collected, in_arrays
from tests.engine.twin_learner import TwinLearner


class FlatPolicy:
    """The twin's policy under the protocol, with nothing but the features that the states show."""

    def __init__(self, twin: SlowPolicy, batch: int | None = None):
        self.twin, self.random, self.sizes = twin, len(twin.chances) > 1, []
        if batch is not None:
            self.batch = batch

    def costs(self, states: States) -> np.ndarray:
        self.sizes.append(len(states))
        made = np.zeros((len(states), states.actions))
        for i in range(len(states)):
            component = SlowSearch.component(self, int(states.draws[i])) if self.random else 0  # type: ignore[arg-type]
            made[i] = self.twin.costs(component, shown(states, i), shown_by_action(states, i), states.actions)
        return made

    @property
    def policy(self) -> SlowPolicy:
        return self.twin

    def update(self, states: States, costs: np.ndarray, weights: np.ndarray) -> None:
        raise NotImplementedError


class LinearInParts(LinearPolicy):
    """A linear policy that is asked for the parts of a level at once."""

    parts = 0

    def costs_of_parts(self, parts: Any) -> list[np.ndarray]:
        self.parts = max(self.parts, len(parts))
        return [self.costs(states).copy() for states in parts]


def watched(policy: Any, sizes: list[int]) -> Any:
    """The policy, which notes how many states it is asked for."""
    costs = policy.costs
    policy.costs = lambda states: (sizes.append(len(states)), costs(states))[1]
    return policy


def shown(states: States, i: int) -> list[tuple[int, float]]:
    """The features of a state."""
    span = range(states.start[i], states.start[i + 1])
    return [(int(states.ids[k]), float(states.values[k])) for k in span]


def shown_by_action(states: States, i: int) -> dict[int, list[tuple[int, float]]]:
    """The features of a state's actions; those without any are left out."""
    made: dict[int, list[tuple[int, float]]] = {}
    for a in range(states.actions if states.action_start.size > 1 else 0):
        first, last = states.action_start[i * states.actions + a : i * states.actions + a + 2]
        if last > first:
            made[a] = [(int(states.action_ids[k]), float(states.action_values[k])) for k in range(first, last)]
    return made


def drivers(variant: Variant, data: Any, compiled: bool = False, **how: Any) -> tuple[FusedDriver, LockStepDriver]:
    examples = data if isinstance(data, lols.Examples) else lols.Examples(variant.space, data)
    return (
        FusedDriver(variant.space, examples, variant.reference, compiled=compiled),
        LockStepDriver(variant.space, examples, variant.reference, compiled=compiled, **how),
    )


def batch_of(driver: FusedDriver, policy: Any, plan: Any, beta: float = 0.5, beta_in: float = 0.5) -> Any:
    n = len(driver.examples)
    return driver.make_lessons(np.arange(n), np.arange(n) + 7, policy, plan, np.full(n, beta), np.full(n, beta_in))


def assert_same_batches(one: Any, other: Any) -> None:
    for b in range(one.lessons.example.size):
        assert collected(one, b) == collected(other, b)
    assert one.losses.tolist() == other.losses.tolist()
    assert one.lessons.filled.tolist() == other.lessons.filled.tolist()


# --- what is collected ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=25)
@given(st.data())
def test_cost_vectors_features_weights_and_losses_equal_the_twins(name: str, data: st.DataObject) -> None:
    variant, examples, policy, choices, seed, learner, _ = data.draw(cases(name))
    room, batch = data.draw(st.sampled_from([1, 2000, 1 << 20])), data.draw(st.sampled_from([None, 1, 3]))
    trainer = lols.Trainer(variant.space, variant.reference, seed=seed, learner=learner, **choices.options())
    plan = trainer.plan._replace(compare=choices.mix != "step")
    beta, beta_in = choices.beta, choices.beta if choices.beta_in is None else choices.beta_in
    driver = drivers(variant, examples, room=room)[1]
    batch = batch_of(driver, FlatPolicy(policy, batch), plan, beta, beta_in)
    twin = TwinLearner("hinge", learner.update, 1.0, ACTIONS, margin=learner.margin, slack=learner.slack)
    for b, example in enumerate(examples):
        how: dict[str, Any] = {"seed": seed, "number": b + 7, "beta": beta, "beta_in": beta_in, "learner": twin}
        expected, losses = SlowSearch(variant.space, variant.reference, example, policy, choices, **how).lessons()
        assert collected(batch, b) == expected
        assert batch.losses[b].tolist() == (losses if plan.compare else [losses[0], 0.0, 0.0])


@pytest.mark.parametrize("name", ["closed", "pictured"])
def test_compiled_code_collects_what_the_fused_driver_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_step, "FEW", 4)  # so that threads share small levels, too
    variant = VARIANTS[name]
    data = random_data(3, variant, count=5, depth=5, nodes=12, exact=False)
    (fused, lock), (_, threaded) = (drivers(variant, data, compiled=True, threads=n) for n in (1, 3))
    sizes: list[list[int]] = [[], []]
    parts = []
    for number, (into, out, mix) in enumerate(STRATEGIES):
        choices = Choices(
            roll_in=into, roll_out=out, mix=mix, ties=("first", "random")[number % 2],
            prune=(None, None, 1)[number % 3], horizon=None if out == "none" else (None, None, None, 1)[number % 4],
            sample_actions=(None, 2)[number % 2], sample_steps=(None, None, 2)[number % 3],
        )  # fmt: skip
        plan = lols.Trainer(variant.space, variant.reference, seed=number, **choices.options()).plan
        plan = plan._replace(compare=mix != "step")
        for components in (1, 3):
            policy = in_arrays(random_policy(number, variant, components=components), ACTIONS)
            linear, expected = LinearInParts(variant.space, weights=policy), batch_of(fused, policy, plan)
            assert_same_batches(batch_of(lock, linear, plan), expected)
            assert_same_batches(batch_of(threaded, linear, plan), expected)
            parts.append(linear.parts)
            for driver, seen in zip((lock, threaded), sizes, strict=True):
                batch_of(driver, watched(LinearPolicy(variant.space, weights=policy), seen), plan)
    assert max(parts) > 1
    assert sizes[0] == sizes[1] and max(sizes[0]) > 4  # threads do not decide what is scored together


def test_little_memory_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = VARIANTS["full"]
    data, policy = random_data(8, variant, count=6, depth=5, nodes=12), random_policy(8, variant)
    plan = lols.Trainer(variant.space, variant.reference, roll_out="learned").plan
    expected = batch_of(drivers(variant, data)[0], in_arrays(policy, ACTIONS), plan)
    for orders in (1, 8, 64):
        monkeypatch.setattr(lock_step, "MOST_PENDING", orders)
        for room in (1, 1000, 1 << 20):
            assert_same_batches(batch_of(drivers(variant, data, room=room)[1], FlatPolicy(policy), plan), expected)


def test_one_call_a_level_and_no_more_states_than_asked_for() -> None:
    variant = VARIANTS["pictured"]
    data, policy = random_data(9, variant, count=6, depth=5, nodes=12), random_policy(9, variant)
    plan = lols.Trainer(variant.space, variant.reference, roll_out="learned").plan
    deepest = int(lols.Examples(variant.space, data).steps.max())
    all_, some = FlatPolicy(policy), FlatPolicy(policy, batch=5)
    for asked in (all_, some):
        batch_of(drivers(variant, data)[1], asked, plan)
    assert len(all_.sizes) <= 2 * deepest and max(all_.sizes) > 5
    assert max(some.sizes) == 5 and sum(some.sizes) == sum(all_.sizes)


def test_roll_outs_meet_and_teachers_need_no_policy() -> None:
    variant = VARIANTS["full"]
    data, policy = random_data(10, variant, count=6, depth=5, nodes=12), random_policy(10, variant)
    plan = lols.Trainer(variant.space, variant.reference, roll_out="learned").plan
    asked = {}
    for merge in (True, False):
        flat = FlatPolicy(policy)
        batch_of(drivers(variant, data)[1], flat, plan._replace(merge=merge))
        asked[merge] = sum(flat.sizes)
    assert asked[True] < asked[False]
    plan = lols.Trainer(variant.space, variant.reference, roll_in="reference", roll_out="reference").plan
    flat = FlatPolicy(policy)
    batch_of(drivers(variant, data)[1], flat, plan)
    assert not flat.sizes


# --- states -----------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("name", "compiled"), [("bare", False), ("closed", False), ("pictured", False), ("closed", True)]
)
def test_what_is_learned_from_is_what_the_roll_in_saw(name: str, compiled: bool) -> None:
    variant = VARIANTS[name]
    data, policy = random_data(11, variant, count=5), random_policy(11, variant)
    for choices in (Choices(), Choices(sample_steps=2, sample_actions=2)):
        trainer = lols.Trainer(variant.space, variant.reference, **choices.options())
        driver = drivers(variant, data, compiled)[1]
        lesson, costs, weights = driver.lesson(batch_of(driver, FlatPolicy(policy), trainer.plan))
        at = 0
        for b, example in enumerate(data):
            search = SlowSearch(variant.space, variant.reference, example, policy, choices, number=b + 7)
            roll_in = search.roll_in()[0]
            for t, learned in enumerate(search.lessons()[0]):
                if learned.weight == 0.0:
                    continue
                assert lesson.example[at] == b
                assert lesson.vectors[at, : roll_in[t].size].tolist() == roll_in[t].tolist()
                assert np.flatnonzero(lesson.legal[at]).tolist() == search.legal(roll_in[t])
                assert shown(lesson, at) == learned.features and shown_by_action(lesson, at) == learned.by_action
                assert {a: c for a, c in enumerate(costs[at].tolist()) if np.isfinite(c)} == learned.costs
                assert weights[at] == np.float32(learned.weight)
                at += 1
        assert at == len(lesson) == costs.shape[0] == weights.size


def test_matrices_hold_the_features_by_hashed_columns() -> None:
    variant = VARIANTS["pictured"]
    data, policy = random_data(12, variant, count=4), random_policy(12, variant)
    driver = drivers(variant, data)[1]
    batch = batch_of(driver, FlatPolicy(policy), lols.Trainer(variant.space, variant.reference).plan)
    lesson = driver.lesson(batch)[0]
    for columns in (1, 3, 64, 1 << 20):
        made, by_action = lesson.matrix(columns), lesson.action_matrix(columns)
        assert made.shape == (len(lesson), columns) and by_action.shape == (len(lesson) * ACTIONS, columns)
        for i in range(len(lesson)):
            for row, features in [
                (made[[i]], shown(lesson, i)),
                *((by_action[[i * ACTIONS + a]], f) for a, f in shown_by_action(lesson, i).items()),
            ]:
                expected: dict[int, float] = {}
                for identity, value in features:
                    column = int(states.column_of(np.array([identity]), columns)[0])
                    expected[column] = expected.get(column, 0.0) + value
                assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == expected
    assert np.array_equal(lesson.dense(8), lesson.matrix(8).toarray())


def test_matrices_leave_the_features_as_they_are() -> None:
    ids, values = np.array([7, 3, 7, 5, 1]), np.arange(1.0, 6.0, dtype=np.float32)
    for columns in (1, 2, 1 << 16):
        made = states.hashed_matrix(np.array([0, 3, 3, 5]), ids, values, columns)
        assert made.sum(axis=1).ravel().tolist() == [[6.0, 0.0, 9.0]]
        assert ids.tolist() == [7, 3, 7, 5, 1] and values.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


# --- training ---------------------------------------------------------------------------------------------------------


class InLockStep(LockStepDriver):
    """The lock-step driver in the place of the fused one."""

    def __init__(self, *given: Any, together: int | None = None, **how: Any):
        super().__init__(*given, **how)

    def make_lessons(self, indices, rounds, policy, plan, beta, beta_in):
        own = LinearPolicy(self.space, weights=policy, compiled=self.compiled)
        return super().make_lessons(indices, rounds, own, plan, beta, beta_in)


def contents(model: lols.Model) -> tuple[Any, ...]:
    """What must be the same: weights by feature, exactly, and what training saw."""
    arrays = {name: (a.shape, a.tobytes()) for name, a in model.contents()[1].items()}
    return arrays, model.report["progressive_loss"], model.report["beta"], model.about["algorithm"]


LEARNERS: list[Any] = [
    "hinge", "csoaa", "secoc", lols.LearnerSettings("csoaa", "adagrad"), lols.LearnerSettings(bits=4),
    lols.LearnerSettings("hinge", "nag", margin="weighted"), lols.LearnerSettings(max_features=3),
]  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=12)
@given(st.data())
def test_training_in_lock_step_gives_the_very_weights(name: str, data: st.DataObject) -> None:
    variant = VARIANTS[name]
    preset = data.draw(st.sampled_from(["lols", "lols", "aggrevate", "dagger", "cloning", "searn"]))
    options: dict[str, Any] = {"algorithm": preset, "ties": data.draw(st.sampled_from(["first", "random"]))}
    if preset == "lols":
        into, out, mix = data.draw(st.sampled_from(STRATEGIES))
        beta = data.draw(st.sampled_from([0.25, "auto"] if mix not in ("step", "expected") else [0.5]))
        options |= Choices(roll_in=into, roll_out=out, mix=mix, beta=beta).options() if out != "none" else {}
        options["returned"] = data.draw(st.sampled_from(["average", "last", "drawn"]))
    if preset in ("lols", "searn") and options.get("roll_out") not in ("none", "reference"):
        options["prune"] = data.draw(st.sampled_from([None, 1, 2]))
    options["sample_steps"] = data.draw(st.sampled_from([None, 1, 2]))
    options["sample_actions"] = data.draw(st.sampled_from([None, 2]))
    if variant.space.cost and preset in ("lols", "aggrevate") and options.get("roll_out") != "none":
        options["horizon"] = data.draw(st.sampled_from([None, 1, 2]))
    learner = data.draw(st.sampled_from([*LEARNERS, lols.LearnerSettings(slack=0.5)]))
    if preset == "searn" and not isinstance(learner, str):
        learner = "hinge"
    if variant.space.action_features and learner == "secoc":
        learner = "csoaa"
    if isinstance(learner, str):  # a policy of its own does not settle margin and scale by the costs
        learner = lols.LearnerSettings(learner, "nag" if learner == "csoaa" else "adagrad")
    graphs = data.draw(data_sets(variant, exact=False))
    options |= {
        "learner": learner, "passes": 3, "batch_size": data.draw(st.integers(1, 3)),
        "seed": data.draw(st.integers(0, 9)), "compiled": False,
    }  # fmt: skip
    fused = lols.train(variant.space, graphs, variant.reference, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lols.policies.linear.FusedDriver", InLockStep)
        lock = lols.train(variant.space, graphs, variant.reference, **options)
    assert contents(lock) == contents(fused)
    if preset == "searn" or (isinstance(learner, lols.LearnerSettings) and learner.slack is not None):
        return
    del options["learner"]
    own = LinearPolicy(variant.space, learner, compiled=False)
    assert contents(lols.train(variant.space, graphs, variant.reference, policy=own, **options)) == contents(fused)


def test_a_linear_policy_trains_compiled_to_the_very_weights() -> None:
    variant = VARIANTS["closed"]
    data = random_data(13, variant, count=8, depth=5, nodes=12, exact=False)
    for learner in (lols.LearnerSettings(), lols.LearnerSettings("csoaa", "nag")):
        options: dict[str, Any] = {"passes": 3, "batch_size": 3, "beta": "auto"}
        fused = lols.train(variant.space, data, variant.reference, learner=learner, **options)
        own = LinearPolicy(variant.space, learner)
        assert contents(lols.train(variant.space, data, variant.reference, policy=own, **options)) == contents(fused)


# --- prediction -------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", ["keyed", "closed", "pictured"])
@pytest.mark.parametrize("components", [1, 3])
def test_predictions_are_those_of_the_fused_driver(name: str, components: int) -> None:
    variant = VARIANTS[name]
    data = random_data(14, variant, count=9, depth=5, nodes=12)
    for ties, compiled in (("first", False), ("random", False), ("random", True)):
        if compiled and name != "closed":
            continue
        plan = lols.Trainer(variant.space, variant.reference, ties=ties).plan
        policy = in_arrays(random_policy(14, variant, components=components), ACTIONS)
        fused, lock = drivers(variant, data, compiled, room=2000)
        own = LinearPolicy(variant.space, weights=policy, compiled=compiled)
        one, other = fused.predict(policy, plan, scores=True), lock.predict(own, plan, scores=True)
        assert one.taken.tolist() == other.taken.tolist() and one.states.tolist() == other.states.tolist()
        assert np.array_equal(one.all_costs(), other.all_costs())
        assert fused.losses(one, policy).tolist() == lock.losses(other, own).tolist()
        ways = fused.follow_teacher(plan, policy), lock.follow_teacher(plan, own)
        assert ways[0].states.tolist() == ways[1].states.tolist()
