"""`lols explain`: an algorithm in words, or how a model decides about one example of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import MAKERS, Json, report
from lols.cli.generate import built_command, optional
from lols.cli.task_file import TaskOption, loaded
from lols.cli.verb import VerbOptions, file_argument
from lols.errors import ConfigurationError

HELP = """Say in words what an algorithm does: a preset, with the options that change it.

Options without an algorithm change lols. A contradiction is an error.

`lols explain MODEL FILE --sentence 3` shows how a model searches a sentence instead: the labels it takes, the one-step
deviations from them, and what the sentence would have cost in the end. For a parser, the tree and every action with its
stack and buffer. `lols explain MODEL FILE --row 3` shows how a classifier walks down its tree of classes with a row of
a table, and which of the row's values led it there.
"""
MODEL = "One example of a model's file"
Asked = Annotated[
    str | None,
    typer.Argument(
        metavar="ALGORITHM|MODEL",
        help="lols, aggrevate, dagger, cloning or searn; without it, they are listed. Or a model file.",
        show_default=False,
    ),
]
# The options of an algorithm; `roll_out` and `beta` also say how the deviations of a model are completed.
ALGORITHM = {
    "roll_in": "Which policy leads to the states learned from: reference, learned or mixture.",
    "roll_out": "Which policy completes the deviations: reference, mixture, learned or none. For a model, as in its "
    "training unless given.",
    "beta": "Probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA.",
    "mix": "Where the coin is tossed: state, rollout, example, expected or step.",
    "ties": "Which of equally cheap actions wins: first or random.",
    "returned": "The policy that training returns: average, last or drawn.",
}
BOTH = ("roll_out", "beta")


def explain_command() -> Any:
    """`lols explain`, with the options of all estimators."""
    options = VerbOptions("explain", panel=MODEL)
    numbers = list(dict.fromkeys(each.one for each in options.known.values()))  # options that name an example

    def explain(algorithm: str | None, file: str | None, task: str | None, as_json: bool, **typed: Any) -> None:
        from lols.training.algorithms import PRESETS

        if file is None and (algorithm is None or algorithm in PRESETS or not Path(algorithm).is_file()):
            why = "no model is given: lols explain MODEL FILE"
            options.values({name: typed[name] for name in typed if name not in ALGORITHM}, None, why)
            refuse({name: typed[name] for name in numbers} | {"json": as_json or None, "task": task}, why)
            explain_algorithm(algorithm, {name: typed[name] for name in ALGORITHM})
            return
        refuse({name: typed[name] for name in ALGORITHM if name not in BOTH}, "a model is explained")
        if file is None:
            from lols.tasks.registry import read_model

            verbs = read_model(str(algorithm)).verbs
            what = "examples, and with --task the file of its task," if verbs is None else verbs.unit
            raise ConfigurationError(f"{algorithm}: a model explains one example; name a file of {what} after it")
        estimator = loaded(str(algorithm), task)
        known = estimator.VERBS
        others = {name: typed[name] for name in numbers if name != known.one}
        refuse(others, f"the model is {known.described}; it takes --{known.one}")
        number = 1 if typed[known.one] is None else typed[known.one]
        report(estimator.explain_file(file, number, **options.values(typed, known)), {"model": str(algorithm)}, as_json)

    parameters = [
        optional("algorithm", Asked, None),
        optional("file", file_argument("For a model, a labelled file.", kind=str | None), None),
        *(optional(name, Annotated[str | None, typer.Option(help=text)], None) for name, text in ALGORITHM.items()),
        *(optional(name, number_option(name), None) for name in numbers),
        *options.parameters(without=BOTH),
        optional("task", TaskOption, None),
        optional("as_json", Json, False),
    ]
    return built_command("explain", parameters, explain, HELP)


def number_option(one: str) -> Any:
    """The option that names an example of a file."""
    text = f"Which {one} of the file, counted from 1; the first by default."
    return Annotated[int | None, typer.Option(help=text, show_default=False, rich_help_panel=MODEL)]


def refuse(typed: Mapping[str, Any], why: str) -> None:
    """Options that have no effect are a mistake."""
    for name, value in typed.items():
        if value is not None:
            raise ConfigurationError(f"--{name.replace('_', '-')} has no effect: {why}")


def explain_algorithm(name: str | None, choices: dict[str, Any]) -> None:
    """Print what an algorithm does, or list all of them."""
    from lols.training.algorithms import explain

    if name is None and all(value is None for value in choices.values()):
        list_presets()
    else:
        print(explain(name or "lols", **choices))


def list_presets() -> None:
    """The algorithms, one per line."""
    from lols.cli.console import plain_console
    from lols.tasks.show import plain_table
    from lols.training.algorithms import PRESETS

    table = plain_table("algorithm", "roll in", "roll out", "from")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.roll_in, preset.roll_out, preset.cites)
    say = plain_console()
    say.print(table)
    say.print("\n`lols explain NAME` says what one does, step by step.")


MAKERS["explain"] = explain_command
