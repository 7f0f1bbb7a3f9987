"""Parts of a state that are one number; and the one line that is said where a part is taken for what it is not."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

import lols
from lols import emit, feature
from lols.contract.identity import identity_of, source_digest
from lols.errors import ConfigurationError, SpaceError
from lols.kernels.digest import digest_functions
from lols.specification import Choices, SlowPolicy, SlowSearch

OPTIONS: dict[str, Any] = {"passes": 2, "seed": 1, "progress": False}


class Couriers(lols.Task):
    """Give each order to a courier; an order waits until its courier is free."""

    needs_truth = False
    nonnegative = True
    sizes = lols.Sizes(
        state=lols.State(
            t=int, now=float, waited=lols.reals(1), paid=float, free=lols.reals("couriers"), load="couriers"
        ),
        steps="orders", actions="couriers", features=0, action_features=3,
    )  # fmt: skip

    def encode(day):
        times, far = day
        return lols.Example({"couriers": len(far), "orders": len(times), "time": np.asarray(times, float), "far": far})

    def actions(x, s, legal):
        legal[:] = s.t < x.orders

    def survey(x, s, legal):
        s.waited[0] = 1e9
        for c in range(x.couriers):
            s.waited[0] = min(s.waited[0], s.free[c])

    def step(x, s, a):
        s.now = x.time[s.t]
        end = max(s.now, s.free[a]) + x.far[a]
        s.paid += end - s.now
        s.free[a] = end
        s.load[a] += 1
        s.t += 1

    def action_features(x, s, a, out):
        emit(out, feature(0), x.far[a])
        emit(out, feature(1), max(0.0, s.free[a] - x.time[s.t]))
        emit(out, feature(2, s.t == 0), max(s.waited[0], s.now) / 10.0)

    def cost(x, y, s, a):
        return max(0.0, s.free[a] - x.time[s.t]) + x.far[a]

    def loss(x, y, s):
        return s.paid

    def output(x, s):
        return [s.t, s.now, s.paid, s.load.tolist()]

    def reference(x, y, s):
        best, least = 0, 1e18
        for c in range(x.couriers):
            if max(s.free[c], s.now) + x.far[c] < least:
                best, least = c, max(s.free[c], s.now) + x.far[c]
        return best


class InCells(Couriers):
    """The same with arrays of one cell."""

    sizes = lols.Sizes(
        state=lols.State(
            t=1, now=lols.reals(1), waited=lols.reals(1), paid=lols.reals(1), free=lols.reals("couriers"),
            load="couriers",
        ),
        steps="orders", actions="couriers", features=0, action_features=3,
    )  # fmt: skip

    def actions(x, s, legal):
        legal[:] = s.t[0] < x.orders

    def step(x, s, a):
        s.now[0] = x.time[s.t[0]]
        end = max(s.now[0], s.free[a]) + x.far[a]
        s.paid[0] += end - s.now[0]
        s.free[a] = end
        s.load[a] += 1
        s.t[0] += 1

    def action_features(x, s, a, out):
        emit(out, feature(0), x.far[a])
        emit(out, feature(1), max(0.0, s.free[a] - x.time[s.t[0]]))
        emit(out, feature(2, s.t[0] == 0), max(s.waited[0], s.now[0]) / 10.0)

    def cost(x, y, s, a):
        return max(0.0, s.free[a] - x.time[s.t[0]]) + x.far[a]

    def loss(x, y, s):
        return s.paid[0]

    def output(x, s):
        return [*s.t.tolist(), *s.now.tolist(), *s.paid.tolist(), s.load.tolist()]

    def reference(x, y, s):
        best, least = 0, 1e18
        for c in range(x.couriers):
            if max(s.free[c], s.now[0]) + x.far[c] < least:
                best, least = c, max(s.free[c], s.now[0]) + x.far[c]
        return best


def days(count: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [(np.sort(rng.uniform(0, 20, 6)), rng.uniform(1, 5, 3)) for _ in range(count)]


def test_numbers_and_cells_compiled_and_plain_learn_the_same() -> None:
    models = [
        lols.train(task, days(10), compiled=compiled, **OPTIONS)
        for task in (Couriers, InCells)
        for compiled in (True, False)
    ]
    first = models[0]
    for model in models[1:]:
        assert np.array_equal(model.policy.single_stack, first.policy.single_stack)
        assert model.predict(days(5, 1)) == first.predict(days(5, 1))
        assert np.array_equal(model.reference_losses(days(5)), first.reference_losses(days(5)))


def test_the_specification_sees_the_same() -> None:
    weights = {feature(0): 0.25, feature(1): 1.0, feature(2, 1): -0.5}
    policy = SlowPolicy([{}], [weights], [1.0], np.zeros((0, 3), np.float32))
    lessons = []
    for task in (Couriers, InCells):
        examples = [task.space.encode(day) for day in days(3)]
        searches = [SlowSearch(task.space, task.teacher, one, policy, Choices(), seed=1) for one in examples]
        lessons.append([search.lessons() for search in searches])
    assert lessons[0] == lessons[1]


def test_such_a_space_is_checked_as_any_other() -> None:
    assert lols.checks.check_space(Couriers, days(3)) == []


def test_the_digest_covers_what_a_state_is_made_of() -> None:
    def step(x, s, a):
        s.t[0] = a

    states = [lols.State(t=1, u=2), lols.State(t=int, u=2), lols.State(t=float, u=2), lols.State(u=1, t=2)]
    wrapped = [state.wrapped({"step": step}) for state in states]
    for digest in (source_digest, identity_of, digest_functions):
        assert len({digest(functions) for functions in wrapped}) == 4
    grown = [lols.State(t=lambda x: x.n).wrapped({"step": step}) for _ in range(2)]
    assert digest_functions(grown[0]) == digest_functions(grown[1])  # no address of a function is part of it


def test_a_state_shows_its_parts() -> None:
    state = lols.State(done="jobs", t=int, now=float)
    x = types.SimpleNamespace(jobs=2)
    parts = state.view(x, np.zeros(state.size(x), np.int32))
    parts.t += 3
    parts.now = np.float32(0.5)
    parts.t = np.bool_(True)
    assert repr(parts) == "State(done=[0, 0], t=1, now=0.5)" and repr(state) == "State(done='jobs', t=int, now=float)"
    assert type(parts.t) is int and type(parts.now) is float


def test_a_function_that_changes_a_part_is_told_its_name() -> None:
    class Writing(Couriers):
        def action_features(x, s, a, out):
            s.now = 1.0

    found = [str(one) for one in lols.checks.check_space(Writing, days(2))]
    assert "changes `now` of the state: only `start` and `step` may write it" in found[0]


@pytest.mark.parametrize("kind", [bool, str, np.int64, lols.reals(float)])
def test_numbers_are_int_or_float(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="one number is `t=int` or `t=float`"):
        lols.State(t=kind)


# --- mistakes ---------------------------------------------------------------------------------------------------------

ONE = "`s.{0}` has one cell: write `s.{0}[0]`, or declare it as a number, lols.State({0}={1})"
NOW, T, PAID = ONE.format("now", "float"), ONE.format("t", "int"), ONE.format("paid", "float")
ARRAY = "`s.free` is an array: name one of its cells, `s.free[i]`, or write to all of them, `s.free[:]`"
NO_PART = "the state has no part `lat`, only t, now, waited, paid, free, load"
WHOLE = "`t` of the state is a whole number, and is given "

# The task, the function and its lines; what is said; and, if it differs, what is said of compiled code.
MISTAKES: dict[str, tuple[type, str, str, str]] = {
    "compares": (InCells, "step(x, s, a)", "if s.now < 3: s.load[a] += 1", NOW),
    "tests": (InCells, "step(x, s, a)", "if s.now: s.load[a] += 1", NOW),
    "adds": (InCells, "step(x, s, a)", "s.paid += 1.5", PAID),
    "reads": (InCells, "step(x, s, a)", "s.free[a] = 1.0 + s.now", NOW),
    "indexes": (InCells, "step(x, s, a)", "s.free[a] = x.time[s.t]", T),
    "assigns": (InCells, "step(x, s, a)", "s.t = 3", T),
    "returns": (InCells, "loss(x, y, s)", "return s.paid", PAID),
    "misspells": (InCells, "step(x, s, a)", "s.lat[a] = 1", NO_PART),
    "nearly": (InCells, "step(x, s, a)", "s.now[0] = s.piad[0]", "did you mean `s.paid`?"),
    "forgets": (InCells, "loss(x, y, s)", "x.far[0]", "returns nothing, and must return a number"),
    "sometimes": (Couriers, "loss(x, y, s)", "if s.t > 99: return 1.0", "returns nothing"),
    "numbers": (Couriers, "step(x, s, a)", "s.t[0] += 1", "`s.t` is a number: write `s.t`, without an index"),
    "halves": (Couriers, "step(x, s, a)", "s.t += 0.5", WHOLE),
    "nothing": (Couriers, "step(x, s, a)", "s.now = None", "`now` of the state is a number, and is given"),
    "longer": (Couriers, "step(x, s, a)", "s.free = 3.0", ARRAY),
    "compared": (Couriers, "step(x, s, a)", "if s.free < 3: s.t += 1", ARRAY),
    "vector": (Couriers, "step(x, s, a)", "s[0] += 1", "the state has named parts: write `s.t`, not `s[...]`"),
    "new": (Couriers, "step(x, s, a)", "s.lat = 3", NO_PART),
    "beyond": (Couriers, "step(x, s, a)", "s.t += 2**31 - 1 - s.t; s.t += a + 1", "a number beyond 32 bits"),
    "column": (InCells, "reference(x, y, s)", "return x.nix", "no column"),
}


def wrong(tmp_path: Any, base: type, signature: str, body: str) -> tuple[type, str]:
    """A task with a wrong function, and the line of the mistake."""
    path = tmp_path / "wrong.py"
    path.write_text(f"class Wrong(Base):\n    def {signature}:\n        {body}\n")
    names: dict[str, Any] = {"Base": base, "lols": lols, "__name__": "wrong"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["Wrong"], f"{path}:3"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_plain_python_is_named_at_its_line(tmp_path: Any, name: str) -> None:
    base, signature, body, said = MISTAKES[name]
    task, line = wrong(tmp_path, base, signature, body)
    with pytest.raises(SpaceError) as caught:
        lols.train(task, days(2), compiled=False, **OPTIONS)
    message, function = str(caught.value), signature.partition("(")[0]
    at = line if name != "forgets" and name != "sometimes" else line[:-1] + "2"  # nothing is returned: the first line
    assert said in message and f"`{function}`" in message and at in message and "\n" not in message, message


@pytest.mark.parametrize("name", MISTAKES)
def test_check_space_names_it_too(tmp_path: Any, name: str) -> None:
    base, signature, body, said = MISTAKES[name]
    task, _ = wrong(tmp_path, base, signature, body)
    found = [str(one) for one in lols.checks.check_space(task, days(2))]
    assert said in found[0] and "wrong.py:" in found[0], found


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_compiled_code_is_named_at_its_line(tmp_path: Any, name: str) -> None:
    from lols.contract.examples import Examples
    from lols.engine.diagnose import diagnose

    base, signature, body, said = MISTAKES[name]
    task, line = wrong(tmp_path, base, signature, body)
    space: Any = task.space  # type: ignore[attr-defined]
    examples = Examples(space, days(2))
    chosen = signature.partition("(")[0]
    own = space.functions()
    functions, reference = ({chosen: own[chosen]}, {}) if chosen in own else ({}, space.teacher.functions())
    message = diagnose(functions, reference, examples, 3)
    if name == "beyond":  # which depends on the numbers: kernels check them
        assert message is None
        return
    at = line if name not in ("forgets", "sometimes") else line[:-1] + "2"
    assert message is not None and said in message, message
    assert f"`{chosen}` cannot be compiled" in message and at in message and "\n" not in message


def test_a_number_beyond_its_cell_is_an_error_of_kernels_too(tmp_path: Any) -> None:
    base, signature, body, said = MISTAKES["beyond"]
    task, line = wrong(tmp_path, base, signature, body)
    with pytest.raises(SpaceError) as caught:
        lols.train(task, days(2), **OPTIONS)
    assert said in str(caught.value) and line in str(caught.value) and "`step`" in str(caught.value)


def test_a_whole_number_is_a_real_one_and_a_comparison_a_number() -> None:
    class Compared(Couriers):
        def step(x, s, a):
            s.now = s.t + 1
            s.paid += float(a != s.t)
            s.t += s.t < x.orders

    models = [lols.train(Compared, days(4), compiled=compiled, **OPTIONS) for compiled in (True, False)]
    assert models[0].predict(days(4)) == models[1].predict(days(4))


def test_min_with_a_key_says_what_to_write(tmp_path: Any) -> None:
    task, _ = wrong(tmp_path, Couriers, "reference(x, y, s)", "return min(range(3), key=lambda c: s.free[c])")
    with pytest.raises(
        SpaceError, match="`reference` cannot be compiled: `min` with `key` has no compiled form: write a"
    ):
        lols.train(task, days(2), **OPTIONS)


# --- a task whose rule and loss need no truth -------------------------------------------------------------------------


def as_mapping(day):
    return Couriers.space.encode(day).x


def as_example(day):
    return lols.Example(as_mapping(day))


@pytest.mark.parametrize("encode", [as_mapping, as_example])
@pytest.mark.parametrize("needs_truth", [False, None])
def test_where_no_truth_is_needed_none_is_asked_for(encode: Any, needs_truth: bool | None) -> None:
    task: Any = type("Unlabelled", (Couriers,), {"encode": staticmethod(encode), "needs_truth": needs_truth})
    model = lols.train(task, days(4), compiled=False, held_out=days(8, 1), **OPTIONS)
    assert model.evaluate(days(4)) > 0.0 and model.reference_losses(days(4)).shape == (4,)
    assert lols.checks.check_space(task, days(2)) == []


# --- nothing to decide ------------------------------------------------------------------------------------------------

NO_ORDERS = (np.zeros(0), np.ones(3))


def test_examples_without_a_decision_are_left_out_of_training_and_can_be_predicted() -> None:
    with pytest.warns(UserWarning, match="1 of 5 examples are left out, .* Sizes.steps gives 0 .*is example 1"):
        model = lols.train(Couriers, [*days(1), NO_ORDERS, *days(3, 1)], compiled=False, **OPTIONS)
    same = lols.train(Couriers, [*days(1), *days(3, 1)], compiled=False, **OPTIONS)
    assert np.array_equal(model.policy.single_stack, same.policy.single_stack)
    assert model.predict([NO_ORDERS]) == [[0, 0.0, 0.0, [0, 0, 0]]] and model.evaluate([NO_ORDERS]) == 0.0
    assert lols.checks.check_space(Couriers, [NO_ORDERS, *days(1)]) == []
    with pytest.raises(SpaceError, match=r"nothing to decide in any example: Sizes\.steps gives 0"):
        lols.train(Couriers, [NO_ORDERS], compiled=False, **OPTIONS)
