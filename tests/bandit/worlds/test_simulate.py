"""A bandit in a world: the simulation, late and lost losses, several seeds, and `lols bandit simulate`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import lols
from lols.bandit import MemoryLog, SqliteLog, StructuredBandit
from lols.bandit.entries import WHOLE, Decision, Loss
from lols.bandit.worlds import registry
from lols.bandit.worlds.layout import layout_world
from lols.bandit.worlds.outcome import Outcome, interval, summarise, windows
from lols.bandit.worlds.simulate import simulate, simulate_seeds
from lols.bandit.worlds.world import World, WorldSpec
from lols.datasets.worlds import tagging_space
from lols.errors import ConfigurationError
from lols.kernels.hashing import mix, unit
from tests.cli.command_line import error_line, run

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

LABELS = 3
PLAIN = {"compiled": False, "epsilon": 0.5, "beta": 0.5, "exploration": "uniform", "exploit": "last", "advice": 0.0}


def sentence(k: int, seed: int) -> dict[str, Any]:
    return {"words": [abs(mix(mix(seed, k), j)) % 6 for j in range(1 + k % 3)]}


def truth(obj: Any) -> list[int]:
    return [word % LABELS for word in obj["words"]]


def share_wrong(obj: Any, tags: list[int]) -> float:
    return sum(a != b for a, b in zip(tags, truth(obj), strict=True)) / len(tags)


def noisy(obj: Any, tags: list[int], seed: int) -> float:
    return min(1.0, share_wrong(obj, tags) + 0.25 * (seed % 2))


def drawn(obj: Any, seed: int) -> list[int]:
    return [int(unit(mix(seed, j)) * LABELS) for j in range(len(obj["words"]))]


SMALL = World(
    name="small",
    space=tagging_space(labels=LABELS),
    reference=lols.Reference(action=lambda x, y, s: 0, needs_truth=False),
    arrivals=lambda count, seed: [sentence(k, seed) for k in range(count)],
    held_out=[sentence(k, 99) for k in range(12)],
    loss=share_wrong,
    feedback=noisy,
    at_random=drawn,
    full_information=lambda objects, seed: lambda given: [[1] * len(obj["words"]) for obj in given],
    best=truth,
)


# --- one seed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [False, True])
def test_it_is_the_obvious_loop(guard: bool) -> None:
    seed, rounds = 3, 80
    made = simulate(SMALL, {**PLAIN, "guard": guard}, rounds, seed)
    bandit = StructuredBandit(SMALL.space, SMALL.reference, seed=seed, guard=guard, **PLAIN)
    total, margin = 0.0, -np.inf
    for n in range(rounds):
        obj = sentence(n, seed)
        shown = bandit.decide(obj)
        loss, rules = noisy(obj, shown.output, seed), noisy(obj, [0] * len(obj["words"]), seed)
        bandit.learn(shown.id, loss)
        total += loss - rules
        margin = max(margin, total - 0.5 * (n + 1) - 3 * np.sqrt(n + 1))
        assert made.losses[n] == loss and made.reference[n] == rules
    assert made.guard_margin == pytest.approx(margin)
    assert made.report == bandit.report()
    held = SMALL.held_out
    assert made.held_out["policy"] == np.mean([share_wrong(obj, bandit.predict(obj)) for obj in held])
    assert made.held_out["reference"] == np.mean([share_wrong(obj, [0] * len(obj["words"])) for obj in held])
    assert made.held_out["full_information"] == np.mean([share_wrong(obj, [1] * len(obj["words"])) for obj in held])
    assert made.held_out["optimum"] == 0.0
    assert made.random[5] == noisy(sentence(5, seed), drawn(sentence(5, seed), mix(mix(seed, 34), 5)), seed)
    assert 0.6 < made.random.mean() < 0.9 and 0.5 < made.held_out["random"] < 0.8


def test_what_there_is_not_is_left_out() -> None:
    made = simulate(replace(SMALL, best=None), PLAIN, 10, full_information=False)
    assert sorted(made.held_out) == ["policy", "random", "reference"]
    assert made.gap_closed is None
    figures = summarise([made])
    assert figures["optimum_loss"] is None and figures["full_information_loss"] is None


def test_algorithm_2_is_the_papers_preset() -> None:
    made = simulate(SMALL, {"compiled": False, "epsilon": 0.5}, 60, 2, algorithm2=True)
    bandit = StructuredBandit.algorithm2(SMALL.space, SMALL.reference, compiled=False, epsilon=0.5, seed=2)
    losses = []
    for n in range(60):
        shown = bandit.decide(sentence(n, 2))
        losses.append(noisy(sentence(n, 2), shown.output, 2))
        bandit.learn(shown.id, losses[-1])
    assert made.losses.tolist() == losses


# --- losses that come late, or never ----------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 1, 7])
def test_losses_come_late_and_in_another_order(delay: int) -> None:
    log, rounds = MemoryLog(), 100
    made = simulate(SMALL, PLAIN, rounds, 1, delay=delay, log=log)
    seen, came = 0, dict[int, int]()  # of each loss: after how many decisions
    for entry in log.replay():
        if isinstance(entry, Decision):
            seen += 1
        else:
            assert isinstance(entry, Loss)
            came[int(entry.id)] = seen - 1
            assert entry.losses == {WHOLE: made.losses[int(entry.id)]}
    assert all(n + delay <= at <= n + 2 * delay for n, at in came.items())
    assert set(range(rounds - 2 * delay)) <= set(came)
    assert (list(came) == sorted(came)) == (delay == 0)


def test_losses_get_lost() -> None:
    for share, least, most in ((0.0, 200, 200), (0.3, 120, 160), (1.0, 0, 0)):
        made = simulate(SMALL, PLAIN, 200, 5, lost=share, full_information=False)
        assert least <= made.report["losses"] <= most
    assert made.losses.size == 200  # what never came was lost nonetheless


# --- figures ----------------------------------------------------------------------------------------------------------


def outcome(seed: int, rounds: int = 130, **held: float) -> Outcome:
    draw = np.random.default_rng(seed)
    losses = {"random": 0.8, "reference": 0.6, "policy": 0.5 - seed / 100, "full_information": 0.4, **held}
    return Outcome("layout", seed, *draw.random((3, rounds)), -1.0, losses, 9, {})  # type: ignore[misc]


def test_figures_are_means_over_seeds() -> None:
    made = [outcome(seed) for seed in range(4)]
    result = summarise(made)
    assert result["final_loss"] == pytest.approx(np.mean([o.losses[-13:].mean() for o in made]))
    assert result["total_loss"] == pytest.approx(np.mean([o.losses.sum() for o in made]))
    assert result["reference_loss"] == pytest.approx(np.mean([o.reference.mean() for o in made]))
    closed = [(0.6 - (0.5 - seed / 100)) / 0.2 for seed in range(4)]
    assert result["gap_closed"] == pytest.approx(np.mean(closed))
    low, high = stats.t.interval(0.95, 3, np.mean(closed), stats.sem(closed))
    assert result["intervals"]["gap_closed"] == pytest.approx((high - low) / 2)
    assert result["intervals"]["full_information_loss"] == 0.0
    assert summarise(made[:1])["intervals"]["final_loss"] is None
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize("rounds", [1, 7, 50, 130])
def test_a_curve_is_means_of_windows(rounds: int) -> None:
    made = [outcome(seed, rounds) for seed in range(3)]
    curve, edges = summarise(made)["curve"], windows(rounds)
    assert edges[0] == 0 and edges[-1] == rounds and len(edges) == min(10, rounds) + 1
    for k in range(len(edges) - 1):
        means = [o.losses[edges[k] : edges[k + 1]].mean() for o in made]
        assert curve["rounds"][k] == edges[k + 1]
        assert curve["loss"][k] == pytest.approx(np.mean(means))
        assert curve["loss_interval"][k] == pytest.approx(interval(means))
        assert curve["reference_so_far"][k] == pytest.approx(np.mean([o.reference[: edges[k + 1]] for o in made]))


def test_a_gap_that_is_none_cannot_be_closed() -> None:
    assert outcome(0, full_information=0.6).gap_closed is None
    assert summarise([outcome(0), outcome(1, full_information=0.7)])["gap_closed"] is None


# --- several seeds, and the command line ------------------------------------------------------------------------------


@pytest.fixture
def small_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few held-out pages, so that a run takes no time."""
    monkeypatch.setattr(registry, "layout_world", lambda clicks: layout_world(clicks=clicks, held_out=20))


def test_seeds_in_processes_are_those_in_a_row() -> None:
    told: list[tuple[int, float]] = []
    place = WorldSpec("layout", held_out=10)
    simulate_all = partial(simulate_seeds, place, {"epsilon": 0.5}, 40, [4, 5], full_information=False)
    one, two = simulate_all(jobs=1), simulate_all(jobs=2, watch=lambda done, loss: told.append((done, loss)))
    assert json.dumps(summarise(one)) == json.dumps(summarise(two))
    assert told[-1] == (80, pytest.approx(summarise(one)["mean_loss"]))
    with pytest.raises(ConfigurationError, match="unknown estimator 'best'"):
        simulate_seeds(place, {"estimator": "best"}, 5, range(2), jobs=2)


def test_json_has_what_scripts_rely_on(small_layout: None, tmp_path: Path) -> None:
    arguments = ("bandit", "simulate", "layout", "--rounds", 50, "--seeds", 2, "--jobs", 1, "--seed", 7, "--json")
    printed = run(*arguments, "--plot", tmp_path / "a.png", "--guard", "--epsilon", "decay:1:0.3")
    assert printed.exit_code == 0, printed.output
    result = json.loads(printed.stdout)
    for name in ("random_loss", "reference_loss", "full_information_loss", "final_loss", "policy_loss", "optimum_loss"):
        assert 0.0 < result[name] < 1.0
    assert result["total_loss"] == pytest.approx(50 * result["mean_loss"])
    assert result["optimum_loss"] < result["held_out_reference_loss"] < result["held_out_random_loss"]
    assert result["seeds"] == [7, 8] and result["guard_bound_held"] is True
    assert result["options"]["epsilon"] == "decay:1:0.3" and "beta" not in result["options"]
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_people_get_a_table_and_a_sentence(small_layout: None, tmp_path: Path) -> None:
    log = tmp_path / "shown.log"
    printed = run("bandit", "simulate", "layout", "--rounds", 30, "--clicks", "--guard", "--log", log, "--held-out", 13)
    assert printed.exit_code == 0, printed.output
    for word in ("random", "reference", "bandit, last 10 %", "final policy", "full information", "optimum"):
        assert word in printed.stdout
    assert "30 rounds  13 held out" in printed.stdout
    assert "After 30 rounds the bandit's policy loses 0." in printed.stdout
    assert "after every round n: yes" in printed.stdout
    with SqliteLog(log, identity=None) as written:
        assert written.decisions() == 30


@pytest.mark.parametrize("world", ["tagging", "parsing"])
def test_sentences_are_generated_unless_given(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOLS_DATA", raising=False)
    words = "--rounds 20 --held-out 15 --no-full-information --json"
    result = json.loads(run("bandit", "simulate", world, *words.split()).stdout)
    assert result["world"] == world and result["held_out_objects"] == 15
    assert result["held_out_reference_loss"] < result["held_out_random_loss"] and result["gap_closed"] is None


@pytest.mark.parametrize("found", [[], ["only-one.conllu"]])
def test_data_that_is_not_there(
    found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    places = [tmp_path / name for name in found] or [tmp_path]
    given = [word for place in places for word in ("--data", place)]
    said = error_line(monkeypatch, capsys, "bandit", "simulate", "tagging", *given)
    assert str(places[0]) in said
    monkeypatch.setenv("LOLS_DATA", str(tmp_path / "nowhere"))
    assert "nowhere" in error_line(monkeypatch, capsys, "bandit", "simulate", "parsing")


def test_options_reach_the_bandit(small_layout: None, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def spy(self: StructuredBandit, space: Any, rules: Any, **options: Any) -> None:
        given.update(options)
        raise ConfigurationError("enough")

    monkeypatch.setattr(StructuredBandit, "__init__", spy)
    words = "--epsilon 0.3 --beta 0.2 --exploration plausible --width 0.4 --estimator dr --exploit drawn --bag 3"
    more = "--learner hinge --randomise steps --keep 4 --patience 9 --update nag --advice 0.1 --no-baseline --seed 5"
    run("bandit", "simulate", "layout", *words.split(), *more.split())
    assert given.pop("log") is None
    assert given == {
        **{"epsilon": 0.3, "beta": 0.2, "exploration": "plausible", "width": 0.4, "estimator": "dr", "seed": 5},
        **{"bag": 3, "randomise": "steps", "keep": 4, "patience": 9},
        **{"exploit": "drawn", "learner": "hinge", "update": "nag", "advice": 0.1, "baseline": False},
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nowhere", "unknown world 'nowhere': choose layout, tagging, parsing"),
        ("layout --rounds 0", "rounds is 0; it must be at least 1"),
        ("layout --seeds 0", "--seeds is 0"),
        ("layout --held-out 0", "held_out is 0"),
        ("layout --jobs 0", "jobs is 0"),
        ("layout --epsilon 2", "epsilon is 2.0"),
        ("layout --epsilon often", "epsilon is 'often'"),
        ("layout --delay -1", "delay is -1"),
        ("layout --lost 1.5", "lost is 1.5; it is a share"),
        ("layout --algorithm2 --exploit last", "exploit is part of Algorithm 2"),
        ("layout --data somewhere", "--data has no effect on layout"),
        ("tagging --clicks", "--clicks has no effect on tagging"),
        ("layout --seeds 2 --log x.log", "--log is for one seed, not 2"),
        ("layout --plot curve.bmp", "a drawing is .png, .svg or .pdf"),
    ],
)
def test_mistakes_are_one_line(
    arguments: str, said: str, small_layout: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in error_line(monkeypatch, capsys, "bandit", "simulate", *arguments.split())


def test_a_log_is_neither_gone_on_with_nor_left_empty(
    small_layout: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "shown.log"
    error_line(monkeypatch, capsys, "bandit", "simulate", "layout", "--log", log, "--estimator", "x")
    assert not list(tmp_path.iterdir())
    log.write_bytes(b"")
    assert "give another file" in error_line(monkeypatch, capsys, "bandit", "simulate", "layout", "--log", log)
