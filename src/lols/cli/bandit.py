"""`lols bandit`: try the structured bandit in a world."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, print_json
from lols.errors import ConfigurationError

commands = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(
    commands,
    name="bandit",
    help="Learn from the loss of what was shown, to get better than rules: `lols bandit simulate layout`.",
)

WORLDS = ("layout", "tagging", "parsing")
BANDIT = "The bandit (its own defaults unless given)"
LIFE = "How losses come"


@commands.callback()
def bandit() -> None:
    """Learn from the loss of what was shown, to get better than rules."""


@commands.command()
def simulate(
    world: Annotated[
        str,
        typer.Argument(
            metavar="layout|tagging|parsing",
            help="layout: pages whose only feedback is clicks; tagging, parsing: sentences of which only the share of "
            "wrong tags or heads is seen.",
            show_default=False,
        ),
    ],
    rounds: Annotated[int, typer.Option(help="How many objects arrive.")] = 20000,
    seed: Annotated[int, typer.Option(help="One number behind all randomness; the first one with --seeds.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds; figures then come with 95 % intervals.")] = 1,
    jobs: Annotated[int, typer.Option(help="How many seeds at a time, each in a process of its own.")] = 2,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Of tagging and parsing: a folder that holds ewt-train.conllu.gz and ewt-test.conllu.gz, LOLS_DATA "
            "unless given; or given twice, two CoNLL-U files. Without, sentences are generated.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        int | None,
        typer.Option(
            help="Compare policies on at most so many held-out objects; on all unless given.", show_default=False
        ),
    ] = None,
    no_full_information: Annotated[
        bool, typer.Option("--no-full-information", help="Leave out the learner that sees the truth.")
    ] = False,
    plot: Annotated[
        str | None,
        typer.Option(help="Draw the running loss, with bands over seeds, as .png, .svg or .pdf.", show_default=False),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="Write decisions and losses to this SQLite file; for one seed.", show_default=False),
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            help="How often to explore: a number, decay:FROM:POWER or theory:ROUNDS:STEPS:POLICIES.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    beta: Annotated[
        float | None,
        typer.Option(
            help="The probability with which the reference completes a deviation.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    exploration: Annotated[
        str | None,
        typer.Option(
            help="How a deviation's action is drawn: uniform, boltzmann, plausible or bag.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(
            help="Of boltzmann: the temperature; of plausible: how much more than the best an action may seem to cost; "
            "of bag: the share for all actions alike.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    bag: Annotated[
        int | None, typer.Option(help="How many policies are in the bag.", show_default=False, rich_help_panel=BANDIT)
    ] = None,
    randomise: Annotated[
        str | None,
        typer.Option(
            help="What is drawn at random: deviation, one action of a round that explores; or steps, every action.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="How one loss becomes costs: ips, direct, dr or mtr.", show_default=False, rich_help_panel=BANDIT
        ),
    ] = None,
    exploit: Annotated[
        str | None,
        typer.Option(
            help="Which policy acts when nothing is explored: last, drawn or average.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(help="How many policies to draw from.", show_default=False, rich_help_panel=BANDIT),
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="csoaa, hinge or secoc.", show_default=False, rich_help_panel=BANDIT)
    ] = None,
    update: Annotated[
        str | None,
        typer.Option(help="adagrad, nag, gd, ridge or perceptron.", show_default=False, rich_help_panel=BANDIT),
    ] = None,
    advice: Annotated[
        float | None,
        typer.Option(
            help="How much cheaper the reference's action seems at first; 0 to start from nothing.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    baseline: Annotated[
        bool | None,
        typer.Option(
            "--baseline/--no-baseline",
            help="Whether losses are taken relative to their mean so far.",
            show_default=False,
            rich_help_panel=BANDIT,
        ),
    ] = None,
    guard: Annotated[
        bool,
        typer.Option("--guard", help="Show the rules until the policy is surely better.", rich_help_panel=BANDIT),
    ] = False,
    patience: Annotated[
        int | None,
        typer.Option(help="For how many decisions a loss is waited for.", show_default=False, rich_help_panel=BANDIT),
    ] = None,
    algorithm2: Annotated[
        bool,
        typer.Option("--algorithm2", help="The bandit as the paper prints it.", rich_help_panel=BANDIT),
    ] = False,
    clicks: Annotated[
        bool,
        typer.Option("--clicks", help="Of layout: clicks that are drawn, not expected ones.", rich_help_panel=LIFE),
    ] = False,
    delay: Annotated[
        int,
        typer.Option(
            metavar="D", help="Losses come D to 2 D rounds later, not in the order of decisions.", rich_help_panel=LIFE
        ),
    ] = 0,
    lost: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of losses that never come.", rich_help_panel=LIFE)
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Let a bandit learn in a world, beside the rules, chance and a learner that sees the truth.

    `lols bandit simulate layout --rounds 50000 --seeds 10 --plot layout.png`
    """
    if world not in WORLDS:
        raise ConfigurationError(f"unknown world '{world}': choose {', '.join(WORLDS)}")
    if clicks and world != "layout":
        raise ConfigurationError(f"--clicks has no effect on {world}: only pages are clicked on; leave it out")
    if data and world == "layout":
        raise ConfigurationError("--data has no effect on layout: its pages are generated; leave it out")
    if seeds < 1:
        raise ConfigurationError(f"--seeds is {seeds}; it must be at least 1")
    if plot is not None:
        from lols.plots import check_plot

        check_plot(plot)
    if log is not None:
        _check_log(log, seeds)
    given = {
        "epsilon": _number(epsilon),
        "beta": beta,
        "exploration": exploration,
        "width": width,
        "bag": bag,
        "randomise": randomise,
        "estimator": estimator,
        "exploit": exploit,
        "keep": keep,
        "learner": learner,
        "update": update,
        "advice": advice,
        "baseline": baseline,
        "guard": guard or None,
        "patience": patience,
    }
    options = {name: value for name, value in given.items() if value is not None}
    more: dict[str, Any] = {"algorithm2": algorithm2, "delay": delay, "lost": lost}
    began = time.perf_counter()
    from lols.bandit.worlds.outcome import summarise
    from lols.bandit.worlds.simulate import WorldPlace, simulate_seeds
    from lols.training.progress import Progress

    total = max(rounds, 1) * seeds
    with Progress(False if as_json else None, total, world, "rounds") as progress:

        def watch(done: int, loss: float) -> None:
            progress.advance(done, loss=loss)
            if done == total:
                progress.say("comparing ...")

        outcomes = simulate_seeds(
            WorldPlace(world, _data(world, data), clicks, held_out),
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
    if guard:
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
    """`"0.1"` as a number; what is none is left to the bandit."""
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
        raise ConfigurationError(f"{log}: is there already, and a simulation begins with an empty log; name another")
