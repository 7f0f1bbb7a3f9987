"""`survey` is called once a state, before its features; curves and surfaces are continuous functions of values."""

from __future__ import annotations

import numpy as np
import pytest

import lols
from lols import emit, emit_curve, emit_surface, feature
from lols.contract.checks import check_space
from lols.contract.features import feature_buffer


class Boxes(lols.Task):
    """Take all boxes; each costs its size times its place, so large ones go first. The rule takes them as they come."""

    needs_truth = False
    sizes = lols.Sizes(
        state=lols.State(gone="count", late=1, rank=lols.reals("count"), best=lols.reals(1)),
        steps=lambda x: x.count,
        actions=lambda x: x.count,
        features=0,
        action_features=7,
    )

    def encode(sizes):
        return lols.Example({"count": len(sizes), "size": np.asarray(sizes, float)}, {})

    def actions(x, s, legal):
        for a in range(x.count):
            legal[a] = s.gone[a] == 0

    def survey(x, s, legal):
        s.best[0] = 1e9
        for a in range(x.count):
            if legal[a]:
                s.best[0] = min(s.best[0], x.size[a])
        for a in range(x.count):
            s.rank[a] = 0.0
            for b in range(x.count):
                if legal[b] and x.size[b] < x.size[a]:
                    s.rank[a] += 1.0

    def step(x, s, a):
        s.late[0] += 1
        s.gone[a] = s.late[0]

    def action_features(x, s, a, out):
        emit(out, feature(0), s.rank[a])
        emit_curve(out, feature(1), x.size[a] - s.best[0], 0.5)
        emit_surface(out, feature(2), s.rank[a], 1.0, x.size[a], 0.5)

    def loss(x, y, s):
        total = 0.0
        for a in range(x.count):
            total += s.gone[a] * x.size[a]
        return total

    def output(x, s):
        return s.gone.tolist()

    def reference(x, y, s):
        for a in range(x.count):
            if s.gone[a] == 0:
                return a
        return -1


class Fixed(Boxes):
    """The same with a fixed number of actions, as policies of any kind need it."""

    sizes = lols.Sizes(state=Boxes.sizes.state, steps=lambda x: x.count, actions=3, features=0, action_features=7)


class Peeking(Boxes):
    """Its rule reads what only features may read."""

    def reference(x, y, s):
        for a in range(x.count):
            if s.gone[a] == 0 and s.rank[a] == 0.0:
                return a
        return -1


def instances(count, seed):
    rng = np.random.default_rng(seed)
    return [np.round(rng.random(rng.integers(3, 6)) * 3, 2) for _ in range(count)]


def trained(**options):
    return lols.train(Boxes, instances(20, 0), passes=2, progress=False, **options)


def test_features_see_all_candidates():
    found = lols.train(Boxes, instances(60, 0), passes=3, progress=False, compiled=False)
    for sizes, places in zip(instances(20, 1), found.predict(instances(20, 1)), strict=True):
        assert (np.argsort(-sizes, kind="stable") == np.argsort(places)).all()


def test_compiled_and_plain_agree():
    compiled, plain = trained(), trained(compiled=False)
    np.testing.assert_array_equal(compiled.policy.single_stack, plain.policy.single_stack)
    assert compiled.predict(instances(9, 2), best_of=4) == plain.predict(instances(9, 2), best_of=4)


def test_lock_step_agrees():
    settings = lols.LearnerSettings("hinge", "adagrad", margin="cost")
    policy = lols.policies.LinearPolicy(Fixed, settings, compiled=False)
    given = [[1.5, 0.5, 1.0], [0.2, 2.0, 0.4], [3.0, 1.0, 2.0]] * 3
    one = lols.train(Fixed, given, learner=settings, passes=2, progress=False, compiled=False)
    two = lols.train(Fixed, given, policy=policy, passes=2, progress=False, compiled=False)
    np.testing.assert_array_equal(one.policy.single_stack, two.policy.single_stack)


def test_check_space_accepts_it():
    assert check_space(Boxes, instances(3, 0)) == []


def test_reading_a_survey_elsewhere_is_found():
    report = check_space(Peeking, instances(3, 0))
    assert "reads what `survey` writes" in str(report)


@pytest.mark.parametrize("value", [-2.3, 0.0, 0.7, 5.0])
def test_a_curve_is_linear_between_knots(value):
    out = feature_buffer(2)
    emit_curve(out, feature(3), value, 0.7)
    knots = {int(lols.mix(feature(3), k)): k * 0.7 for k in range(-5, 12)}
    assert sum(knots[int(i)] * float(v) for i, v in zip(out.ids, out.values, strict=True)) == pytest.approx(
        value, abs=1e-6
    )


def test_a_surface_is_bilinear():
    out = feature_buffer(4)
    emit_surface(out, feature(3), 1.3, 0.5, -0.4, 0.3)
    value = 0.0
    for i, v in zip(out.ids, out.values, strict=True):
        for j in range(-4, 6):
            for k in range(-4, 6):
                if int(lols.mix(lols.mix(feature(3), j), k)) == int(i):
                    value += float(v) * (j * 0.5) * (k * 0.3)
    assert value == pytest.approx(1.3 * -0.4, abs=1e-6)


def test_a_rule_that_draws_in_its_own_way_is_not_said_to_read_what_survey_writes() -> None:
    chance = np.random.default_rng(0)

    class Drawing(Boxes):
        def reference(x, y, s):
            free = [a for a in range(x.count) if s.gone[a] == 0]
            return free[int(chance.integers(len(free)))]

    for seed in range(5):
        found = check_space(Drawing, [[3, 1, 2], [2, 2]], seed=seed)
        assert [str(one).partition(": ")[2][:20] for one in found] == ["gives another answer"], found
