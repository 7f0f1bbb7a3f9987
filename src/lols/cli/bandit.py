"""`lols bandit`: simulations of the structured bandit, and what can be done with its log."""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.bandit_log import audit, export, relearn
from lols.cli.base import Commands, Json, app, option, print_json
from lols.cli.generate import command, optional
from lols.errors import ConfigurationError

commands = typer.Typer(cls=Commands, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(
    commands, name="bandit", help="Improve a system from the losses of what it shows: `lols bandit simulate layout`."
)

WORLDS = ("layout", "tagging", "parsing")
BANDIT = "Options of the bandit (defaults depend on the world)"
LIFE = "How losses arrive"

# Options of `StructuredBandit`: types on the command line, and help.
OPTIONS: dict[str, tuple[Any, str]] = {
    "algorithm": (
        str,
        "gaps: every action is drawn by inverse gap weighting; deviations: one action of a round that explores; paper: "
        "Algorithm 2. By default gaps, or deviations if an option of these is given.",
    ),
    "gap": (float, "Of gaps: how fast exploration ends."),
    "optimism": (float, "Of gaps: how much uncertain actions are tried."),
    "pace": (str, "Of gaps: safe, the policy takes over as its losses allow; or free, at once."),
    "epsilon": (str, "How often to explore: a number, decay:FROM:POWER or theory:ROUNDS:STEPS:POLICIES."),
    "beta": (float, "The probability that the reference completes a deviation."),
    "exploration": (str, "How the action of a deviation is drawn: uniform, boltzmann, plausible or bag."),
    "width": (
        float,
        "Of boltzmann: the temperature; of plausible: the largest predicted cost above the best; of bag: the share of "
        "uniform exploration.",
    ),
    "bag": (int, "The number of policies in the bag."),
    "randomise": (str, "What is drawn: deviation, one action of a round that explores; or steps, every action."),
    "estimator": (str, "How one loss becomes costs: ips, direct, dr or mtr."),
    "exploit": (str, "The policy that acts when nothing is explored: last, drawn or average."),
    "keep": (int, "The number of policies to draw from."),
    "learner": (str, "csoaa, hinge or secoc."),
    "update": (str, "adagrad, nag, gd, ridge, sketch or perceptron."),
    "advice": (float, "How much cheaper the reference's action is predicted to be at first; 0 for no advice."),
    "baseline": (bool, "Whether to subtract the mean loss so far from losses."),
    "guard": (bool, "Show the reference until the policy is better with confidence."),
    "patience": (int, "The number of decisions to wait for a loss."),
}
FLAGS = {"baseline": "--baseline/--no-baseline", "guard": "--guard"}


@commands.callback()
def bandit() -> None:
    """Improve a system from the losses of what it shows."""


def simulate(
    world: Annotated[
        str,
        typer.Argument(
            metavar="layout|tagging|parsing",
            help="layout: pages whose only feedback is clicks; tagging, parsing: sentences whose only feedback is the "
            "share of wrong tags or heads.",
            show_default=False,
        ),
    ],
    rounds: Annotated[int, typer.Option(help="The number of objects.")] = 20000,
    seed: Annotated[int, typer.Option(help="The seed of all random numbers; with --seeds, the first one.")] = 0,
    seeds: Annotated[int, typer.Option(help="The number of seeds; with several, figures have 95 % intervals.")] = 1,
    jobs: Annotated[int, typer.Option(help="The number of processes; each simulates one seed at a time.")] = 2,
    data: Annotated[
        list[str] | None,
        option(
            "For tagging and parsing: a folder with ewt-train.conllu.gz and ewt-test.conllu.gz, by default LOLS_DATA; "
            "given twice, two CoNLL-U files. Without data, sentences are generated."
        ),
    ] = None,
    held_out: Annotated[int | None, option("The most held-out objects to compare policies on; by default all.")] = None,
    no_full_information: Annotated[
        bool, option("Leave out the learner that sees the truth.", "--no-full-information")
    ] = False,
    plot: Annotated[str | None, option("Plot the running loss, with bands over seeds, as .png, .svg or .pdf.")] = None,
    log: Annotated[str | None, option("Write decisions and losses to this SQLite file; for one seed only.")] = None,
    algorithm2: Annotated[
        bool, option("The bandit as printed in the paper.", "--algorithm2", rich_help_panel=BANDIT)
    ] = False,
    clicks: Annotated[
        bool, option("For layout: random clicks instead of their expected number.", "--clicks", rich_help_panel=LIFE)
    ] = False,
    delay: Annotated[
        int,
        typer.Option(
            metavar="D",
            help="Losses arrive D to 2 D rounds later, not in the order of decisions.",
            rich_help_panel=LIFE,
        ),
    ] = 0,
    lost: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of losses that never arrive.", rich_help_panel=LIFE)
    ] = 0.0,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Let a bandit learn in a world, compared with the reference, chance and a learner that sees the truth.

    `lols bandit simulate layout --rounds 50000 --seeds 10 --plot layout.png`
    """
    if world not in WORLDS:
        raise ConfigurationError(f"unknown world '{world}': choose {', '.join(WORLDS)}")
    if clicks and world != "layout":
        raise ConfigurationError(f"--clicks has no effect on {world}: only layout has clicks; leave it out")
    if data and world == "layout":
        raise ConfigurationError("--data has no effect on layout: its pages are generated; leave it out")
    if seeds < 1:
        raise ConfigurationError(f"--seeds is {seeds}; it must be at least 1")
    if plot is not None:
        from lols.plots import check_plot

        check_plot(plot)
    if log is not None:
        _check_log(log, seeds)
    given["epsilon"], given["guard"] = _number(given["epsilon"]), given["guard"] or None
    options = {name: value for name, value in given.items() if value is not None}
    more: dict[str, Any] = {"algorithm2": algorithm2, "delay": delay, "lost": lost}
    began = time.perf_counter()
    from lols.bandit.worlds.outcome import summarise
    from lols.bandit.worlds.simulate import simulate_seeds
    from lols.bandit.worlds.world import WorldSpec
    from lols.training.progress import Progress

    total = max(rounds, 1) * seeds
    with Progress(not as_json, total, world, "rounds") as progress:

        def watch(done: int, loss: float) -> None:
            progress.advance(done, loss=loss)
            if done == total:
                progress.say("comparing ...")

        outcomes = simulate_seeds(
            WorldSpec(world, _data(world, data), clicks, held_out),
            options,
            rounds,
            range(seed, seed + seeds),
            jobs=jobs,
            full_information=not no_full_information,
            log=log,
            watch=watch,
            **more,
        )
    result = {**summarise(outcomes), "options": {"clicks": clicks, **options, **more}}
    if options.get("guard"):
        held = [outcome.guard_margin <= 0.0 for outcome in outcomes]
        result |= {"guard_bound_held": all(held), "guard_bound_held_seeds": sum(held)}
    if plot is not None:
        from lols.plots import bandit_curves

        bandit_curves(result, plot)
        result["plot"] = plot
    if log is not None:
        result["log"] = log
    result["seconds_total"] = time.perf_counter() - began
    if as_json:
        print_json(result)
    else:
        from lols.cli.bandit_show import show

        show(result)


def _number(text: str | None) -> float | str | None:
    """A number if the text is one; the bandit checks other texts."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _data(world: str, given: list[str] | None) -> str | tuple[str, ...] | None:
    if given:
        return given[0] if len(given) == 1 else tuple(given)
    return None if world == "layout" else os.environ.get("LOLS_DATA") or None


def _check_log(log: str, seeds: int) -> None:
    if seeds > 1:
        raise ConfigurationError(f"--log is for one seed, not {seeds}: leave out --seeds or --log")
    if Path(log).exists():
        raise ConfigurationError(f"{log}: exists already, and a simulation needs a new log; give another file")


def _parameters() -> list[inspect.Parameter]:
    """The parameters of `simulate`, with the options of the bandit before `--algorithm2`."""
    own = [p for p in inspect.signature(simulate, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    bandit = []
    for name, (kind, help) in OPTIONS.items():
        flag = [FLAGS[name]] if name in FLAGS else []
        own_option = option(help, *flag, rich_help_panel=BANDIT)
        bandit.append(optional(name, Annotated[kind | None, own_option], None))
    at = [p.name for p in own].index("algorithm2")
    own = [p.replace(kind=p.KEYWORD_ONLY) for p in own]
    return [*own[:at], *bandit, *own[at:]]


command(commands, "simulate", _parameters(), simulate, inspect.getdoc(simulate) or "")
for each in (audit, relearn, export):
    commands.command()(each)
