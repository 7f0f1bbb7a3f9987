"""Every option of the commands that are not about a model changes something, or is refused with a reason.

The options are read from the commands themselves: one without a case here fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from lols.bandit import StructuredBandit
from lols.bandit.worlds import registry, simulate
from lols.bandit.worlds.layout import layout_world
from lols.bandit.worlds.world import World
from lols.cli import app, warmup
from lols.cli.base import COMMANDS
from lols.errors import LolsError
from lols.heuristics.optimise import Optimised
from lols.heuristics.report import OptimisationReport
from lols.reproduction import data
from lols.reproduction import run as running
from lols.training.trainer import Trainer
from tests.cli.command_line import run
from tests.cli.test_verb_options import VERBS
from tests.heuristics.small_shop import Shop as Known
from tests.reproduction.report_result import made_result

BANDIT, OPTIMISE, REPRODUCE, NEW_TASK, WARMUP = "bandit simulate", "optimise", "reproduce", "new-task", "warmup"
# What is typed for each option, and what must come with it.
CASES: dict[str, dict[str, tuple[str, ...]]] = {
    BANDIT: {
        "--rounds": ("13",),
        "--seed": ("3",),
        "--seeds": ("2", "--jobs", "1"),
        "--jobs": ("2", "--seeds", "2"),
        "--data": ("FOLDER",),
        "--held-out": ("4",),
        "--no-full-information": (),
        "--plot": ("FOLDER/curve.svg",),
        "--log": ("FOLDER/shown.log",),
        "--algorithm": ("paper",),
        "--epsilon": ("0.9",),
        "--beta": ("0.9",),
        "--exploration": ("boltzmann",),
        "--width": ("0.9",),
        "--bag": ("3", "--exploration", "bag"),
        "--gap": ("2",),
        "--optimism": ("2",),
        "--pace": ("free",),
        "--randomise": ("steps",),
        "--estimator": ("ips",),
        "--exploit": ("last",),
        "--keep": ("2", "--exploit", "drawn"),
        "--learner": ("hinge",),
        "--update": ("adagrad",),
        "--advice": ("0.5",),
        "--baseline": ("--algorithm", "deviations", "--epsilon", "1"),
        "--guard": (),
        "--patience": ("1", "--delay", "3"),
        "--algorithm2": (),
        "--clicks": (),
        "--delay": ("5",),
        "--lost": ("0.5",),
        "--json": (),
    },
    OPTIMISE: {
        "--task": ("Same",),
        "--instances": ("listed",),
        "--minutes": ("0.02",),
        "--best-of": ("2",),
        "--seed": ("3",),
        "--output": ("FOLDER/found.lols",),
        "--resume": ("first.lols",),
        "--picture": ("FOLDER/plans.svg",),
        "--sample-steps": ("3",),
        "--threads": ("1",),
        "--json": (),
    },
    REPRODUCE: {
        "--data": ("FOLDER",),
        "--download": (),
        "--quick": (),
        "--seeds": ("2",),
        "--only": ("learned/mixture",),
        "--workers": ("5",),
        "--engine": ("processes",),
        "--address": ("auto",),
        "--json": ("FOLDER/figures.json",),
        "--html": ("FOLDER/report.html",),
        "--plots": ("FOLDER/pictures",),
        "--resume": ("--json", "FOLDER/before.json"),
    },
    NEW_TASK: {"--folder": ("FOLDER/there",), "--force": ()},
    WARMUP: {"--all": (), "--json": ()},
}

USUAL = ["--rounds", "50", "--epsilon", "0.8"]  # of a simulation; what is typed later counts


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A command, or those under it."""
    command = group.get_command(None, name)
    if not hasattr(command, "commands"):
        yield name, command
    else:
        for inner in command.commands:
            yield from ((f"{name} {found}", each) for found, each in commands(command, inner))


GROUP: Any = typer.main.get_command(app)
OTHERS = [name for name in COMMANDS if name != "train" and name not in VERBS]
OPTIONS = [
    (name, option.opts[0])
    for other in OTHERS
    for name, command in commands(GROUP, other)
    for option in command.params
    if option.param_type_name == "option"
]


# Commands on logs of bandits, whose options are tried in tests/bandit/test_relearn.py.
OF_LOGS = {
    "bandit audit": ("--bandit", "--json"),
    "bandit export": ("--output", "--json"),
    "bandit relearn": ("--bandit", "--output", "--held-out", "--json"),
}


def test_the_cases_are_of_options_that_there_are() -> None:
    known = {**CASES, **OF_LOGS}
    assert sorted((name, flag) for name, cases in known.items() for flag in cases) == sorted(OPTIONS)


class PlainBandit(StructuredBandit):
    """A bandit that nothing is compiled for."""

    def __init__(self, *problem: Any, compiled: bool = True, **options: Any) -> None:
        super().__init__(*problem, compiled=False, **options)


def small_world(clicks: bool) -> World:
    """Pages, few of them held out, with a learner that knows all from the beginning."""
    world = layout_world(clicks=clicks, held_out=5)
    return replace(world, full_information=lambda objects, seed: lambda pages: [world.best(page) for page in pages])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to write to, with little to be done in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOLS_DATA", raising=False)
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "layout_world", small_world)
    monkeypatch.setattr(simulate, "StructuredBandit", PlainBandit)
    simulate._world_of.cache_clear()
    simulate._baselines_of.cache_clear()
    return tmp_path


def outcome(folder: Path, command: str, *typed: str) -> Any:
    """What a command prints, without times, and which files it leaves; or the error."""
    there = folder / "left"
    there.mkdir(exist_ok=True)
    arguments = [each.replace("FOLDER", str(there)) for each in typed]
    made = run(*command.split(), *arguments)
    if made.exit_code != 0:
        assert isinstance(made.exception, LolsError), (made.exception, made.output)
        return str(made.exception)
    files = {path.relative_to(folder): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    try:
        printed = {key: value for key, value in json.loads(made.stdout).items() if "second" not in key}
    except ValueError:
        printed = made.stdout
    for path in files:
        (folder / path).unlink()
    return printed, files


def typed_case(command: str, flag: str) -> tuple[list[str], list[str]]:
    """What is typed without the option and with it."""
    case = CASES[command][flag]
    value = [] if not case or case[0].startswith("--") else [case[0]]
    rest = list(case[len(value) :])
    return rest, [flag, *value, *rest]


@pytest.fixture(scope="module")
def simulated() -> dict[tuple[str, ...], Any]:
    """What simulations gave without the option."""
    return {}


@pytest.mark.parametrize("flag", [flag for name, flag in OPTIONS if name == BANDIT])
def test_options_of_bandit_simulate(
    folder: Path, simulated: dict[tuple[str, ...], Any], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    def processes(jobs: int, *more: Any) -> None:
        raise LolsError(f"{jobs} processes")

    monkeypatch.setattr(simulate, "ProcessPoolExecutor", processes)
    without, given = typed_case(BANDIT, flag)
    if flag == "--jobs":
        without += ["--jobs", "1"]
    elif flag == "--baseline":
        given[0] = "--no-baseline"
    common = ["layout", *([] if flag == "--json" else ["--json"])]
    usual = (*common, *USUAL, *without)
    if usual not in simulated:
        simulated[usual] = outcome(folder, BANDIT, *usual)
    before, after = simulated[usual], outcome(folder, BANDIT, *common, *USUAL, *given)
    assert not isinstance(before, str), before
    assert stripped(before) != stripped(after), f"lols {BANDIT} {' '.join(given)} changes nothing"


SHOP = """
from tests.heuristics.small_shop import Shop as Known, draw, shops

listed = shops(12)


class Shop(Known):
    pass


def show(axes, instance, output):
    axes.barh([0], [output])
"""


@pytest.mark.parametrize("flag", [flag for name, flag in OPTIONS if name == OPTIMISE])
def test_options_of_optimise(folder: Path, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    asked: list[Any] = []
    made = Trainer(Known, Known.teacher, passes=1).untrained()
    made.save(folder / "first.lols")

    def learn(task: Any, source: Any, **options: Any) -> Optimised:
        asked.append((task.__name__, callable(source), {k: v for k, v in options.items() if k != "progress"}))
        report = OptimisationReport((), "nothing", 1, (), 0.0, kept_heuristic=False)
        return Optimised(made, Known.teacher, report)

    monkeypatch.setattr("lols.heuristics.optimise.optimise", learn)
    (folder / "shop.py").write_text(SHOP + ("\n\nclass Same(Known):\n    pass\n" if flag == "--task" else ""), "utf-8")
    without, given = typed_case(OPTIMISE, flag)
    without = ["--task", "Shop"] if flag == "--task" else without
    found = []
    for more in (without, given):
        (folder / "left").mkdir(exist_ok=True)
        printed = run(OPTIMISE, "shop.py", *[each.replace("FOLDER", str(folder / "left")) for each in more])
        assert printed.exit_code == 0, printed.output
        found.append((printed.stdout, asked.pop(), sorted((folder / "left").iterdir())))
    assert found[0] != found[1], f"lols optimise {' '.join(given)} changes nothing"


@pytest.mark.parametrize(
    ("text", "typed", "says"),
    [
        ("x = 1\n", "", "shop.py: has no lols.Task"),
        ("raise ValueError('no')\n", "", "shop.py: running it fails with ValueError: no"),
        (SHOP, "--task Shed", "shop.py: has no task 'Shed': it has Shop"),
        (SHOP + "\n\nclass Two(Known):\n    pass\n", "", "shop.py: has 2 tasks, Shop, Two: choose one by --task"),
        (SHOP.replace("draw, ", ""), "", "shop.py: has neither `draw` nor `instances`"),
        (SHOP, "--instances none", "shop.py: has no `none`"),
        (SHOP, "--minutes 0", "minutes is 0.0; it must be a positive number"),
        (SHOP.replace("def show", "def hide"), "--picture plans.svg", "shop.py: has no `show`: --picture draws by"),
        (SHOP, "--picture plans.txt", "a drawing is"),
    ],
)
def test_files_that_cannot_be_optimised(folder: Path, text: str, typed: str, says: str) -> None:
    (folder / "shop.py").write_text(text, "utf-8")
    failed = run(OPTIMISE, "shop.py", *typed.split())
    assert failed.exit_code != 0 and isinstance(failed.exception, LolsError)
    assert says in str(failed.exception)


PAYING = """
import lols

def pay(search, amount):
    paid = 0
    while paid < amount:
        paid += search.predict([min(amount - paid, 9)], [c for c in (4, 3, 1) if c <= amount - paid], 1)
        search.loss(1)
    return paid

task = lols.Program(pay, labels=[4, 3, 1])
instances = range(1, 40)
"""


def test_a_program_is_optimised_from_a_file_and_gone_on_from(folder: Path) -> None:
    (folder / "pay.py").write_text(PAYING, "utf-8")
    options = ("pay.py", "--minutes", "0.01", "--best-of", "1", "-o", "m.lols", "--json")
    first = run(OPTIMISE, *options)
    assert first.exit_code == 0, first.output
    second = run(OPTIMISE, *options, "--resume", "m.lols")
    values = json.loads(second.stdout)
    assert values["task"] == "task" and values["earlier"] > 0.0 and not values["interrupted"]
    assert run("inspect", "m.lols").exit_code == 0


def test_what_was_interrupted_is_written_and_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(self: Any, done: int, *, loss: float) -> None:
        raise KeyboardInterrupt

    (folder / "pay.py").write_text(PAYING, "utf-8")
    monkeypatch.setattr("lols.heuristics.budget.Watch.advance", advance)
    printed = run(OPTIMISE, "pay.py", "--best-of", "1", "-o", "m.lols")
    assert printed.exit_code == 130 and "interrupted after" in printed.stdout and (folder / "m.lols").exists()
    assert "lols optimise pay.py --resume m.lols goes on" in printed.stdout

    def interrupted(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lols.heuristics.optimise.optimise", interrupted)
    printed = run(OPTIMISE, "pay.py")
    assert printed.exit_code == 130 and "lols: interrupted" in printed.output


def stripped(outcome: Any) -> Any:
    """An outcome without the list of the options themselves."""
    if isinstance(outcome, str) or not isinstance(outcome[0], dict):
        return outcome
    return {key: value for key, value in outcome[0].items() if key != "options"}, outcome[1]


@pytest.mark.parametrize("flag", [flag for name, flag in OPTIONS if name == REPRODUCE])
def test_options_of_reproduce(folder: Path, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    asked: list[Any] = []
    result = made_result(seeds=1, passes=2) | {"theory": None, "bandit": None, "certificates": None}
    result["tables"] = {"table3": result["tables"]["table3"]}

    def run_work(work: Any, engine: Any, keep: Any, watch: Any) -> None:
        asked.append(([one.name for one in work], engine))  # not their arguments, which name temporary folders

    monkeypatch.setattr(data, "SIZES", dict.fromkeys(data.SIZES, (30, 10, 1)))
    monkeypatch.setattr(data, "QUICK", dict.fromkeys(data.QUICK, (20, 10, 1)))
    monkeypatch.setattr(running, "run_work", run_work)
    monkeypatch.setattr(running._State, "result", lambda self: result | {"settings": self.settings(), "runs": {}})
    (folder / "left").mkdir()
    without, given = typed_case(REPRODUCE, flag)
    found = []
    for more in (without, given):
        if flag == "--resume":
            settings = running._State("theory", [], True, 2, None, "", None).settings()
            done = result | {"theory": {"computed": True}, "settings": settings, "runs": {}}
            (folder / "left" / "before.json").write_text(json.dumps(done), "utf-8")
            more = [*more, "--quick"]
        part = "theory" if flag == "--resume" else "table3"
        found.append((outcome(folder, REPRODUCE, part, *more), asked[-1:]))
        asked.clear()
    assert not isinstance(found[0][0], str), found[0]
    assert found[0] != found[1], f"lols reproduce {' '.join(given)} changes nothing"


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("theory --data .", "--data has no effect on theory: it needs no data"),
        ("theory --seeds 2", "--seeds has no effect on theory: it is computed exactly"),
        ("story --seeds 2", "--seeds has no effect on story: it always has three"),
        ("theory --only searn", "--only has no effect on theory: it has no rows"),
        ("theory --download", "--download has no effect on theory"),
        ("bandit --download", "--download has no effect on bandit"),
        ("bandit --data .", "holds no ewt-train.conllu.gz and ewt-test.conllu.gz"),
    ],
)
def test_what_a_part_of_the_reproduction_does_not_use_is_refused(folder: Path, typed: str, says: str) -> None:
    assert says in outcome(folder, REPRODUCE, *typed.split())


@pytest.mark.parametrize("flag", [flag for name, flag in OPTIONS if name == NEW_TASK])
def test_options_of_new_task(folder: Path, flag: str) -> None:
    without, given = typed_case(NEW_TASK, flag)
    found = []
    for more in (without, given):
        if flag == "--force":
            (folder / "spelling.py").write_text("mine")
        found.append(outcome(folder, NEW_TASK, "spelling", *more))
    assert found[0] != found[1] and not isinstance(found[1], str)


@pytest.mark.parametrize("flag", [flag for name, flag in OPTIONS if name == WARMUP])
def test_options_of_warmup(folder: Path, monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    class Kind:
        @staticmethod
        def warmup_steps(everything: bool) -> Iterator[str]:
            return iter(["the rest"] if everything else [])

    monkeypatch.setattr(warmup, "estimator", lambda name: Kind)
    more = [] if flag == "--json" else ["--json"]
    (before, _), (after, _) = outcome(folder, WARMUP, *more), outcome(folder, WARMUP, *more, flag)
    if flag == "--json":
        assert isinstance(before, str) and isinstance(after, dict)
    else:
        assert len(before["steps"]) < len(after["steps"])
