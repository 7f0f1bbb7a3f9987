"""The checks of a search space: a clean one passes, and every way to break the contract is found and named."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import lols
from lols import Example, Reference, SpaceError
from lols.contract.checks import Finding, assert_space, check_space
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.errors import ConfigurationError
from tests.engine.random_space import VARIANTS, random_data

DATA = [
    {"words": [7, 3, 5, 7, 4], "tags": [1, 0, 2, 1, 2]},
    {"words": [3, 5, 5], "tags": [0, 2, 1]},
    {"words": [4, 7, 3, 3], "tags": [2, 2, 0, 1]},
]
GOOD = tagging_space(labels=3)
TEACHER = tagging_references()["optimal"]
SEEN: dict[str, int] = {}  # a global for functions that must not have one


def sized(space=GOOD, **sizes):
    return replace(space, sizes=replace(space.sizes, **sizes))


def found(space, function, *, reference=None, data=DATA):
    """The messages about one function."""
    return [str(f) for f in check_space(space, data, reference, rollouts=10) if f.function == function]


def assert_found(space, function, *words, reference=None, data=DATA):
    """Exactly one message about a function has all of these words."""
    messages = found(space, function, reference=reference, data=data)
    matching = [m for m in messages if all(word in m for word in words)]
    assert len(matching) == 1, messages
    assert f"`{function}`" in matching[0]


# --- spaces with items and action features ----------------------------------------------------------------------------


def look_at_words(x, s, out):
    lols.look(out, s[0])
    if s[0] > 0:
        lols.look(out, s[0] - 1, 1)


def describe_action(x, s, a, out):
    lols.emit(out, lols.feature(20, a, x.words[s[0]]), 0.5)


def encode_items(obj):
    return Example({"words": obj["words"]}, {"tags": obj["tags"]}, [[w, w + 100] for w in obj["words"]])


RICH = replace(
    sized(items=2, roles=2, action_features=1),
    items=look_at_words,
    action_features=describe_action,
    encode=encode_items,
)


# --- clean ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("teacher", ["optimal", "suboptimal", "bad"])
def test_a_clean_space_has_no_findings(teacher):
    reference = tagging_references()[teacher]
    assert check_space(GOOD, DATA, reference) == []
    assert check_space(GOOD, tagging_data(2, labels=3), reference, rollouts=3, seed=5) == []


def test_a_clean_space_with_items_and_action_features_has_no_findings():
    assert check_space(RICH, DATA, TEACHER) == []


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_random_graphs_have_no_findings(variant):
    data = random_data(1, variant, count=2, exact=False, offset=1.5)
    assert check_space(variant.space, data, variant.reference) == []


def test_a_clean_space_without_cost_and_key_has_no_findings():
    assert check_space(replace(GOOD, cost=None, key=None), DATA, TEACHER) == []


def test_encoded_examples_and_unlabelled_ones_can_be_checked():
    assert check_space(GOOD, lols.Examples(GOOD, DATA), TEACHER) == []
    unlabelled = [{"words": [1, 2, 3]}]
    assert check_space(GOOD, unlabelled) == []
    assert_found(GOOD, "encode", "truth", "labelled", reference=TEACHER, data=unlabelled)
    rules = Reference(action=lambda x, y, s: 0, needs_truth=False)
    assert check_space(GOOD, unlabelled, rules) == []


def test_numbers_are_as_wide_as_in_compiled_code():
    # in 32 bits this key would overflow, and merge states
    assert check_space(replace(GOOD, key=lambda x, s: (s[0] * 2**20 + s[1] + 1) * 2**20 + s[2] + 1), DATA) == []


def test_the_checks_do_not_import_numba():
    code = (
        "import sys, lols, lols.datasets.worlds as w; "
        "assert not lols.checks.check_space(w.tagging_space(labels=2), [{'words': [1, 2], 'tags': [0, 0]}]); "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- findings ---------------------------------------------------------------------------------------------------------


def test_a_finding_is_one_line():
    assert str(Finding("key", 2, 3, "is wrong: mend it")) == "`key`, example 2, step 3: is wrong: mend it"
    assert str(Finding("encode", None, None, "fails")) == "`encode`: fails"


def test_the_same_seed_gives_the_same_findings():
    broken = sized(replace(GOOD, key=lambda x, s: s[0]), features=3, live=1)
    assert check_space(broken, DATA, TEACHER, seed=3) == check_space(broken, DATA, TEACHER, seed=3)


def test_assert_space_raises_all_findings_in_words():
    assert_space(GOOD, DATA, TEACHER)
    with pytest.raises(SpaceError) as raised:
        assert_space(sized(replace(GOOD, loss=lambda x, y, s: -1.0), features=3), DATA)
    assert "`features`" in str(raised.value)
    assert "`loss`" in str(raised.value)


def test_a_failing_encode_is_found():
    assert_found(replace(GOOD, encode=lambda obj: Example({"words": obj["text"]})), "encode", "example 0", "text")


# --- the reference ----------------------------------------------------------------------------------------------------


def not_twice(x, s, legal):
    if s[0] < len(x.words):
        legal[:] = True
        if s[0] > 0:
            legal[s[1]] = False


def mark(out, *actions):
    for a in actions:
        out[a] = True


def free_of_truth(x, y, s, out):
    out[y.tags[s[0]]] = True


def write_costs(x, y, s, out):
    for a in range(len(out)):
        out[a] = 7.0 + (a != y.tags[s[0]])


@pytest.mark.parametrize(
    ("reference", "function", "words"),
    [
        (Reference(action=lambda x, y, s: y.tags[s[0]] + 1), "Reference.action", ["action 3", "does not exist"]),
        (Reference(action=lambda x, y, s: -1), "Reference.action", ["action -1", "does not exist"]),
        (Reference(free=lambda x, y, s, out: mark(out, 2)), "Reference.free", ["does not allow"]),
        (Reference(free=lambda x, y, s, out: None), "Reference.free", ["marks no action"]),
    ],
)
def test_an_illegal_reference_is_found(reference, function, words):
    assert_found(replace(GOOD, actions=not_twice), function, *words, reference=reference)


def test_an_action_that_is_illegal_only_after_a_deviation_is_found():
    data = [{"words": [3, 5, 4, 6], "tags": [0, 1, 0, 2]}]
    space = replace(GOOD, actions=not_twice)
    assert_found(space, "Reference.action", "does not allow", "take another", reference=TEACHER, data=data)


def test_an_action_that_is_not_free_is_found():
    reference = Reference(action=lambda x, y, s: 0, free=free_of_truth)
    assert_found(GOOD, "Reference.action", "action 0", "`free` does not mark", reference=reference)


def test_right_closed_form_costs_are_accepted_with_and_without_an_action():
    assert check_space(GOOD, DATA, Reference(costs=write_costs)) == []
    assert check_space(replace(GOOD, cost=None, key=None), DATA, Reference(costs=write_costs)) == []
    assert check_space(GOOD, DATA, Reference(action=TEACHER.action, free=free_of_truth, costs=write_costs)) == []
    # a bad teacher's own action need not be the cheapest
    assert check_space(GOOD, DATA, Reference(action=lambda x, y, s: 0, costs=write_costs)) == []


def test_closed_form_costs_that_differ_from_roll_outs_are_found():
    def costs(x, y, s, out):
        for a in range(len(out)):
            out[a] = 1.0 + 2.0 * (a != y.tags[s[0]])

    words = ["costs 2 more", "rolled out", "costs 1 more"]
    assert_found(GOOD, "Reference.costs", *words, reference=Reference(costs=costs))
    assert_found(replace(GOOD, cost=None, key=None), "Reference.costs", *words, reference=Reference(costs=costs))


def test_closed_form_costs_that_contradict_free_are_found():
    reference = Reference(free=lambda x, y, s, out: mark(out, 0, 1, 2), costs=write_costs)
    assert_found(GOOD, "Reference.costs", "equally good", "from 7 to 8", reference=reference)


def test_closed_form_costs_without_a_number_are_found():
    reference = Reference(action=TEACHER.action, costs=lambda x, y, s, out: None)
    assert_found(GOOD, "Reference.costs", "nan for action 0", "every legal action", reference=reference)


@pytest.mark.parametrize("name", ["action", "free", "costs"])
def test_a_reference_that_reads_a_truth_it_does_not_need_is_found(name):
    functions = {"action": TEACHER.action, "free": free_of_truth, "costs": write_costs}
    reference = Reference(**{name: functions[name]}, needs_truth=False)
    assert_found(GOOD, f"Reference.{name}", "needs_truth is False", reference=reference)


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_dead_end_is_found(value):
    def actions(x, s, legal):
        if s[0] < len(x.words) and s[1] != 2:
            legal[:] = True

    def loss(x, y, s):
        return value if s[0] < len(x.words) else 0.0

    assert_found(replace(GOOD, actions=actions, loss=loss, cost=None), "loss", "dead end", str(value))


def test_loss_and_output_that_raise_are_found():
    def fail(*_):
        raise RuntimeError("no tree")

    broken = replace(GOOD, loss=lambda x, y, s: fail(), output=lambda x, s: fail())
    assert_found(broken, "loss", "end state", "RuntimeError: no tree", "test_checks.py")
    assert_found(broken, "output", "end state", "RuntimeError: no tree")


def test_a_start_without_actions_is_found():
    assert_found(GOOD, "actions", "nothing at the start state", data=[{"words": [], "tags": []}, *DATA])


@pytest.mark.parametrize("name", ["loss", "cost"])
@pytest.mark.parametrize(("value", "word"), [(-1.0, "negative"), (math.nan, "finite")])
def test_negative_and_undefined_losses_and_costs_are_found(name, value, word):
    function = {"loss": lambda x, y, s: value, "cost": lambda x, y, s, a: value}[name]
    assert_found(replace(GOOD, **{name: function}), name, word)


def test_costs_that_do_not_add_up_to_the_loss_are_found():
    assert_found(replace(GOOD, cost=lambda x, y, s, a: 1.0), "cost", "adds up to 5", "`loss` is")


def test_an_endless_search_is_found():
    def actions(x, s, legal):
        legal[:] = True

    def step(x, s, a):
        s[1] = a

    assert_found(replace(GOOD, actions=actions, step=step), "step", "goes on", "Sizes.steps = 5")


def test_too_few_steps_are_found():
    assert_found(sized(steps=lambda x: len(x.words) - 1), "Sizes.steps", "gives 4", "takes 5 steps", "raise it")


def test_a_state_that_is_too_small_is_found():
    assert_found(sized(state=lambda x: 2 + len(x.words)), "step", "index 7 of the state", "raise Sizes.state")


# --- sizes and indices ------------------------------------------------------------------------------------------------


def emit_values(value):
    return lambda x, s, out: lols.emit(out, 1, value)


@pytest.mark.parametrize(
    ("space", "function", "words"),
    [
        (sized(features=9), "features", ["emits 10 features", "Sizes.features is 9"]),
        (sized(RICH, items=1), "items", ["looks at 2 items", "Sizes.items is 1"]),
        (sized(RICH, roles=1), "items", ["role 1", "Sizes.roles is 1"]),
        (replace(RICH, items=lambda x, s, out: lols.look(out, s[0] + 1)), "items", ["item 5", "5 items"]),
        (replace(RICH, items=lambda x, s, out: lols.look(out, s[0] - 1)), "items", ["item -1"]),
        (
            replace(RICH, action_features=lambda x, s, a, out: [lols.emit(out, i) for i in range(a)]),
            "action_features",
            ["emits 2 features", "Sizes.action_features is 1"],
        ),
        (replace(GOOD, features=emit_values(math.nan)), "features", ["nan", "finite"]),
        (replace(GOOD, features=emit_values(1e300)), "features", ["inf", "finite"]),
        (replace(GOOD, key=lambda x, s: s[99]), "key", ["index 99 of the state", "Sizes.state"]),
        (replace(GOOD, key=lambda x, s: s[s[0] - 1]), "key", ["index -1 of the state", "negative"]),
        (replace(GOOD, features=lambda x, s, out: x.words[s[0] - 1]), "features", ["index -1 of x.words", "negative"]),
        (replace(GOOD, features=lambda x, s, out: x.words[s[0] + 1]), "features", ["index 5 of x.words", "check"]),
        (replace(GOOD, cost=lambda x, y, s, a: y.tags[s[0] - 1]), "cost", ["index -1 of y.tags", "negative"]),
        (sized(actions=2, state=lambda x: 2), "start", ["index 2 of the state"]),
    ],
)
def test_what_breaks_the_sizes_is_found(space, function, words):
    assert_found(space, function, *words)


@pytest.mark.parametrize(("action", "word"), [(-1, "negative"), (3, "Sizes.actions")])
def test_legal_actions_that_do_not_exist_are_found(action, word):
    def actions(x, s, legal):
        legal[action] = True

    assert_found(replace(GOOD, actions=actions), "actions", f"index {action} of legal", word)


def test_a_reference_that_marks_beyond_the_actions_is_found():
    reference = Reference(free=lambda x, y, s, out: mark(out, 3))
    assert_found(GOOD, "Reference.free", "index 3 of out", "one entry for each action", reference=reference)


def test_more_live_cells_than_cells_are_found():
    assert_found(sized(live=7), "Sizes.live", "is 7", "6 cells", data=[DATA[1]])


# --- modifying --------------------------------------------------------------------------------------------------------


def with_state_change(name, owner=GOOD):
    """The function of this name, preceded by a write to the state."""
    original = getattr(owner, name)
    place = list(original.__code__.co_varnames).index("s")

    def call(*arguments):
        arguments[place][0] += 1
        try:
            return original(*arguments)
        except Exception:
            return 0

    # the contract counts arguments
    count = original.__code__.co_argcount
    wrappers = {2: lambda a, b: call(a, b), 3: lambda a, b, c: call(a, b, c), 4: lambda a, b, c, d: call(a, b, c, d)}
    return wrappers[count]


@pytest.mark.parametrize("name", ["actions", "features", "loss", "cost", "key", "items", "action_features"])
def test_a_function_that_changes_the_state_is_found(name):
    broken = replace(RICH, **{name: with_state_change(name, RICH)})
    assert_found(broken, name, "changes cell 0 of the state", "only `start` and `step`")


@pytest.mark.parametrize("name", ["action", "free", "costs"])
def test_a_reference_that_changes_the_state_is_found(name):
    whole = Reference(action=TEACHER.action, free=free_of_truth, costs=write_costs)
    reference = replace(whole, **{name: with_state_change(name, whole)})
    assert_found(GOOD, f"Reference.{name}", "changes cell 0 of the state", reference=reference)


def test_an_output_that_changes_the_state_is_found():
    assert_found(replace(GOOD, output=lambda x, s: s.sort()), "output", "changes the state")


def test_functions_that_change_x_or_y_are_found():
    def features(x, s, out):
        x.words[0] = 1

    def step(x, s, a):
        x.words.sort()
        s[0] += 1

    def loss(x, y, s):
        y.tags[0] = 0
        return 0.0

    assert_found(replace(GOOD, features=features), "features", "writes to x.words", "only read")
    assert_found(replace(GOOD, step=step), "step", "writes to x or y", "only read")
    assert_found(replace(GOOD, loss=loss), "loss", "writes to y.tags", "only read")
    assert_found(replace(GOOD, output=lambda x, s: x.words.sort()), "output", "read-only")


# --- what functions must not know -------------------------------------------------------------------------------------


def count_up():
    SEEN["count"] = SEEN.get("count", 0) + 1
    return SEEN["count"]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("features", lambda x, s, out: lols.emit(out, count_up())),
        ("loss", lambda x, y, s: count_up()),
        ("key", lambda x, s: count_up()),
        ("cost", lambda x, y, s, a: count_up()),
    ],
)
def test_functions_that_are_not_deterministic_are_found(name, function):
    assert_found(replace(GOOD, **{name: function}), name, "another answer", "same arguments")


def test_a_step_that_draws_at_random_is_found():
    def step(x, s, a):
        s[0] += 1
        s[1] = count_up()

    assert_found(replace(GOOD, step=step), "step", "another answer")


def test_a_reference_may_draw_at_random_from_its_stream_only():
    elsewhere = Reference(action=lambda x, y, s, rng: count_up() % 3)
    assert_found(GOOD, "Reference.action", "another answer", "`rng` argument only", reference=elsewhere)
    assert_found(GOOD, "Reference.action", "another answer", reference=Reference(action=lambda x, y, s: count_up() % 3))


def test_features_that_change_when_only_the_truth_changes_are_found():
    def cost(x, y, s, a):
        SEEN["tag"] = int(y.tags[s[0]])
        return 1.0 if a != y.tags[s[0]] else 0.0

    broken = replace(GOOD, cost=cost, features=lambda x, s, out: lols.emit(out, SEEN.get("tag", 0)))
    assert_found(broken, "features", "only the truth `y` changes", "global")


def test_a_truth_copied_into_the_input_is_found():
    broken = replace(
        GOOD, encode=lambda obj: Example({"words": obj["words"], "hint": obj["tags"]}, {"tags": obj["tags"]})
    )
    assert_found(broken, "encode", "'hint' of x", "'tags' of y", "leak")


def test_a_number_copied_into_the_input_is_found():
    broken = replace(
        GOOD,
        encode=lambda obj: Example(
            {"words": obj["words"], "hint": obj["tags"][0]}, {"tags": obj["tags"], "first": obj["tags"][0]}
        ),
    )
    assert_found(broken, "encode", "'hint' of x", "'first' of y", "leak")


@pytest.mark.parametrize("name", ["features", "key"])
def test_functions_that_read_beyond_the_live_cells_are_found(name):
    assert_found(sized(live=2), name, "beyond its first 2 cells", "raise Sizes.live")


def test_other_readers_beyond_the_live_cells_are_found():
    def step(x, s, a):
        s[2] = s[3]
        s[0] += 1

    def actions(x, s, legal):
        if s[0] < len(x.words):
            legal[: 1 + s[3] % 2] = True

    live = "beyond its first 3 cells"
    assert_found(replace(GOOD, step=step), "step", live)
    assert_found(replace(GOOD, actions=actions), "actions", live)
    assert_found(replace(GOOD, cost=lambda x, y, s, a: float(s[3] % 2)), "cost", live)
    assert_found(replace(RICH, items=lambda x, s, out: lols.look(out, 0, s[3] % 2)), "items", live)
    assert_found(replace(RICH, action_features=lambda x, s, a, out: lols.emit(out, s[3])), "action_features", live)
    assert_found(GOOD, "Reference.action", live, reference=Reference(action=lambda x, y, s: s[3] % 3))


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_that_merges_states_with_other_features_is_found():
    assert_found(replace(GOOD, key=lambda x, s: s[0]), "key", "two states", "features differ")


def test_a_key_that_merges_states_with_other_actions_is_found():
    blind = replace(GOOD, actions=not_twice, features=lambda x, s, out: None, key=lambda x, s: s[0])
    assert_found(blind, "key", "two states", "legal actions differ")


def blind_pairs(**changes):
    """A space that looks at no history, and whose cost is that of repeated tags."""

    def cost(x, y, s, a):
        return 1.0 if s[0] > 0 and a == s[1] else 0.0

    def loss(x, y, s):
        total = 0.0
        for i in range(1, len(x.words)):
            total += s[3 + i] == s[2 + i]
        return total

    def features(x, s, out):
        lols.emit(out, x.words[s[0]])

    return replace(GOOD, cost=cost, loss=loss, features=features, **changes)


def test_a_key_that_merges_states_with_other_remaining_costs_is_found():
    assert check_space(blind_pairs(key=lambda x, s: s[0] * 10 + s[1] + 1), DATA) == []
    assert_found(blind_pairs(key=lambda x, s: s[0]), "key", "two states", "remaining cost differs", "same actions")


def test_without_costs_a_key_must_tell_final_losses_apart():
    space = replace(blind_pairs(key=lambda x, s: s[0] * 10 + s[1] + 1), cost=None)
    assert_found(space, "key", "two states", "final loss differs")


def test_a_key_must_know_what_the_reference_looks_at():
    # the same actions cost the same from states with one key, but this teacher takes others
    space = replace(GOOD, features=lambda x, s, out: lols.emit(out, x.words[s[0]]), key=lambda x, s: s[0])
    assert check_space(space, DATA, TEACHER) == []
    reference = Reference(action=lambda x, y, s: max(s[1], 0))
    assert_found(space, "key", "remaining cost differs", "the reference finishes", reference=reference)


def test_no_more_than_twenty_findings_are_reported():
    def fail(x, s, out):
        raise RuntimeError

    broken = replace(RICH, features=fail, items=fail, key=lambda x, s: s[-1], loss=lambda x, y, s: np.nan)
    findings = check_space(broken, DATA, Reference(action=lambda x, y, s: 9, free=lambda x, y, s, out: None))
    assert 5 <= len(findings) <= 20
    assert all("\n" not in str(f) for f in findings)


# --- large tasks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_clock(monkeypatch):
    """What is sampled follows from counting; a slow machine must not change it here."""
    monkeypatch.setattr("lols.contract.checks.budget.monotonic", lambda: 0.0)


def texts(*lengths):
    rng = np.random.default_rng(1)
    return [{"words": rng.integers(3, 9, n).tolist(), "tags": rng.integers(0, 3, n).tolist()} for n in lengths]


def read_all(x, s, out):
    SEEN["looks"] = SEEN.get("looks", 0) + 1
    total = 0
    for i in range(len(x.words)):
        total += x.words[i] + s[3 + i]
    lols.emit(out, lols.feature(0, total))


LARGE = sized(replace(GOOD, features=read_all, key=None), live=None)
LENGTHS = [40, 200, 120, 60, 180]


def counted(*arguments, **options):
    """The report, and how often features were asked for."""
    SEEN["looks"] = 0
    return check_space(*arguments, **options), SEEN["looks"]


def test_of_a_large_task_a_sample_is_looked_at(no_clock):
    report, looks = counted(LARGE, texts(*LENGTHS), TEACHER)
    said = report.coverage
    assert report == [] and not said.complete
    assert 0 < looks < 5000  # twice at each of 12000 states, and more, if all were looked at
    assert said.states < said.states_met and said.walks < said.walks_asked == 100 and said.examples_given == 5
    for part in (f"{said.examples} of 5 examples", f"{said.walks} of 100 walks", f"{said.states} of {said.states_met}"):
        assert part in report.summary
    assert "thorough=True" in report.summary


def test_fewer_seconds_mean_fewer_looks(no_clock):
    looks = [counted(LARGE, texts(*LENGTHS), TEACHER, seconds=seconds)[1] for seconds in (4.0, 1.0, 0.25, 0.001)]
    assert looks == sorted(looks, reverse=True) and looks[0] > 2 * looks[2]


def test_thorough_looks_at_everything():
    data = texts(150, 100)
    sampled = check_space(LARGE, data, TEACHER, rollouts=3, seconds=0.1).coverage
    assert not sampled.complete
    report = check_space(LARGE, data, TEACHER, rollouts=3, thorough=True)
    assert report.coverage.complete and report.coverage.states == report.coverage.states_met == 3 * 250
    assert report.summary == "looked at 2 of 2 examples, on 6 of 6 walks, at 750 of 750 states"


def test_small_tasks_are_looked_at_completely(no_clock):
    report = check_space(GOOD, DATA, TEACHER)
    assert report.summary == "looked at 3 of 3 examples, on 60 of 60 walks, at 240 of 240 states"
    assert report == check_space(GOOD, DATA, TEACHER, thorough=True)


def at_step(step, length):
    """Features that read beyond the words at one step of examples of one length."""

    def features(x, s, out):
        read_all(x, s, out)
        if s[0] == step and len(x.words) == length:
            lols.emit(out, x.words[len(x.words)])

    return replace(LARGE, features=features)


@pytest.mark.parametrize("step", [0, 199])
def test_both_ends_of_the_longest_example_are_looked_at(no_clock, step):
    (finding,) = check_space(at_step(step, 200), texts(*LENGTHS), TEACHER)
    assert (finding.function, finding.example, finding.step) == ("features", 1, step)
    (finding,) = check_space(at_step(step, 200), texts(*LENGTHS), TEACHER, seconds=0.2)
    assert (finding.example, finding.step) == (1, step)


def test_the_last_step_is_looked_at_where_sizes_give_more(no_clock):
    roomy = sized(at_step(199, 200), steps=lambda x: 5 * len(x.words))
    assert [finding.step for finding in check_space(roomy, texts(*LENGTHS), TEACHER, seconds=1.0)] == [199]


def test_a_reference_is_heard_at_every_state_it_leads_through(no_clock):
    reference = Reference(action=lambda x, y, s: 7 if s[0] == 101 else y.tags[s[0]])
    (finding,) = check_space(LARGE, texts(200, 200), reference, seconds=1.0)
    assert finding.function == "Reference.action" and finding.step == 101


def test_costs_and_keys_of_a_large_task_are_compared(no_clock):
    def functions(space, reference=TEACHER):
        return [finding.function for finding in check_space(space, texts(*LENGTHS), reference, seconds=1.0)]

    def costs(x, y, s, out):
        for a in range(len(out)):
            out[a] = 2.0 * (a != y.tags[s[0]])

    assert functions(LARGE) == []
    assert functions(replace(LARGE, key=lambda x, s: s[0])) == ["key"]
    assert functions(replace(LARGE, cost=lambda x, y, s, a: 1.0)) == ["cost"]
    assert functions(LARGE, Reference(costs=costs)) == ["Reference.costs"]


def test_one_seed_gives_one_sample(no_clock):
    broken = replace(at_step(150, 200), key=lambda x, s: s[0])
    one, two = (counted(broken, texts(*LENGTHS), TEACHER, seed=4, seconds=1.0) for _ in range(2))
    assert one == two and one[0].coverage == two[0].coverage and not one[0].coverage.complete


def test_slow_functions_are_stopped_by_the_clock(monkeypatch):
    now = [0.0]

    def tick():
        now[0] += 0.001
        return now[0]

    monkeypatch.setattr("lols.contract.checks.budget.monotonic", tick)
    report = check_space(GOOD, texts(*[20] * 10), TEACHER)
    assert now[0] < 5.01 and report == []
    assert not report.coverage.complete and report.coverage.walks < 20
    assert report.coverage.examples > 2  # the first one is not all there is time for


def test_of_very_many_objects_the_first_are_encoded(monkeypatch):
    monkeypatch.setattr("lols.contract.checks.MOST_ENCODED", 2)
    report = check_space(GOOD, DATA, TEACHER)
    assert "objects after the first 2 were not encoded" in report.summary and not report.coverage.complete
    assert check_space(GOOD, DATA, TEACHER, thorough=True).coverage.examples == 3


def test_assert_space_takes_the_same_options():
    broken = at_step(49, 100)
    assert_space(LARGE, texts(100), TEACHER, rollouts=1, seconds=0.05)
    with pytest.raises(SpaceError, match=r"step 49: (.|\n)*on 1 of 1 walks, at 100 of 100 states"):
        assert_space(broken, texts(100), TEACHER, rollouts=1, thorough=True)


def test_seconds_are_above_zero():
    with pytest.raises(ConfigurationError, match="seconds is 0; it must be above 0"):
        check_space(GOOD, DATA, seconds=0)
