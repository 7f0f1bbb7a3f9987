"""`lols explain`: an algorithm in words, or how a model decides about one example of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lols.cli.base import Json, app, report
from lols.cli.generate import command, optional
from lols.cli.verb import VerbOptions, file_help
from lols.errors import ConfigurationError

HELP = """Say in words what an algorithm does: a preset, with the options that change it.

Options without an algorithm change lols. A contradiction is an error.

`lols explain MODEL FILE --sentence 3` shows how a model searches a sentence instead: the labels it takes, the one-step
deviations from them, and what the sentence would have cost in the end. For a parser, the tree and every action with its
stack and buffer. `lols explain MODEL FILE --row 3` shows how a classifier walks down its tree of classes with a row of
a table, and which of the row's values led it there.
"""
MODEL = "One example of a model's file"
OPTIONS = VerbOptions("explain", panel=MODEL)
NUMBERS = list(dict.fromkeys(each.one for each in OPTIONS.known.values()))  # options that name an example

Asked = Annotated[
    str | None,
    typer.Argument(
        metavar="ALGORITHM|MODEL",
        help="lols, aggrevate, dagger, cloning or searn; without it, they are listed. Or a model file.",
        show_default=False,
    ),
]
File = Annotated[
    str | None, typer.Argument(metavar="FILE", help=file_help("For a model, a labelled file. "), show_default=False)
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


def explain(algorithm: str | None, file: str | None, as_json: bool, **typed: Any) -> None:
    """Explain an algorithm or a model."""
    from lols.training.algorithms import PRESETS
    from lols.training.algorithms import explain as in_words

    if file is not None or (algorithm is not None and algorithm not in PRESETS and Path(algorithm).is_file()):
        for name in ALGORITHM:
            if name not in BOTH and typed[name] is not None:
                raise ConfigurationError(f"--{name.replace('_', '-')} has no effect: a model is explained")
        explain_model(str(algorithm), file, as_json, typed)
        return
    others = {name: value for name, value in typed.items() if name not in ALGORITHM}
    nothing = "no model is given: lols explain MODEL FILE"
    OPTIONS.values(others, None, nothing)
    for name in NUMBERS:
        if typed[name] is not None:
            raise ConfigurationError(f"--{name} has no effect: {nothing}")
    if as_json:
        raise ConfigurationError(f"--json has no effect: {nothing}")
    choices = {name: typed[name] for name in ALGORITHM}
    if algorithm is None and all(value is None for value in choices.values()):
        list_presets()
    else:
        print(in_words(algorithm or "lols", **choices))


def explain_model(model: str, file: str | None, as_json: bool, typed: dict[str, Any]) -> None:
    """Show how a model decides about one example of a file."""
    from lols.front import load

    if file is None:
        raise ConfigurationError(
            f"{model}: a model explains an example of a file; name a file of sentences or rows after it"
        )
    estimator = load(model)
    for name in NUMBERS:
        if typed[name] is not None and name != estimator.VERBS.one:
            what = f"the model is {estimator.VERBS.described}; it takes --{estimator.VERBS.one}"
            raise ConfigurationError(f"--{name} has no effect: {what}")
    number = typed[estimator.VERBS.one]
    options = OPTIONS.values(typed, estimator.VERBS)
    made = estimator.explain_file(file, 1 if number is None else number, **options)
    report(made, {"model": model}, as_json)


def list_presets() -> None:
    """The algorithms, one per line."""
    from rich.console import Console

    from lols.tasks.show import plain_table
    from lols.training.algorithms import PRESETS

    table = plain_table("algorithm", "roll in", "roll out", "from")
    for name, preset in PRESETS.items():
        table.add_row(name, preset.roll_in, preset.roll_out, preset.cites)
    console = Console(highlight=False)
    console.print(table)
    console.print("\n`lols explain NAME` says what one does, step by step.")


command(
    app,
    "explain",
    [
        optional("algorithm", Asked, None),
        optional("file", File, None),
        *(optional(name, Annotated[str | None, typer.Option(help=text)], None) for name, text in ALGORITHM.items()),
        *(
            optional(
                name,
                Annotated[
                    int | None,
                    typer.Option(help=f"Which {name} of the file, counted from 1; the first by default.", rich_help_panel=MODEL),
                ],
                None,
            )
            for name in NUMBERS
        ),
        *OPTIONS.parameters(without=BOTH),
        optional("as_json", Json, False),
    ],
    explain,
    HELP,
)
