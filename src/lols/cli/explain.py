"""`lols explain`: an algorithm in words, or how a model searches a sentence, or decides about a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lols.cli.base import Json, app, print_json
from lols.cli.console import say
from lols.cli.options import AnyHeader, Column, Files, Format, OneTable, Separator, TableLabel, Use
from lols.errors import ConfigurationError, LolsError

if TYPE_CHECKING:  # these need Numba, and explaining an algorithm does not
    from lols.tasks.parsing.explain import Parse
    from lols.tasks.tagging.explain import Explanation, FileSentence, WordDecision

MODEL = "A sentence or row of a model"


@app.command()
def explain(
    algorithm: Annotated[
        str | None,
        typer.Argument(
            metavar="ALGORITHM|MODEL",
            help="lols, aggrevate, dagger, cloning or searn; without it, they are listed. Or a model file.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help=f"For a model: a labelled file. {Files} {OneTable}", show_default=False),
    ] = None,
    roll_in: Annotated[
        str | None, typer.Option(help="Who leads to the states learned from: reference, learned or mixture.")
    ] = None,
    roll_out: Annotated[
        str | None,
        typer.Option(
            help="Who completes the deviations: reference, mixture, learned or none. For a model, as in its training "
            "unless given."
        ),
    ] = None,
    beta: Annotated[
        str | None,
        typer.Option(
            help="Probability of the reference in a mixture: a number, auto, linear:FROM:TO or geometric:ALPHA."
        ),
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help="Where the coin is tossed: state, rollout, example, expected or step.")
    ] = None,
    ties: Annotated[str | None, typer.Option(help="Which of equally cheap actions wins: first or random.")] = None,
    returned: Annotated[
        str | None, typer.Option(help="The policy that training gives: average, last or drawn.")
    ] = None,
    sentence: Annotated[
        int | None,
        typer.Option(help="Which sentence of the file, counted from 1; the first unless given.", rich_help_panel=MODEL),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(
            help="Of a classifier: which row of the table, counted from 1; the first unless given.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="How many best-liked labels to show, and the true one; or actions of a parser, and the teacher's; or "
            "features of a decision of a classifier. 5 labels or features or 3 actions unless given.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="The teacher: optimal, suboptimal or bad; as in training unless given.", rich_help_panel=MODEL
        ),
    ] = None,
    html: Annotated[
        str | None, typer.Option(help="Draw it as a page, and write that to this file.", rich_help_panel=MODEL)
    ] = None,
    column: Column = None,
    word: Annotated[str | None, typer.Option(help="The column of the words; as in training unless given.")] = None,
    use: Use = None,
    file_format: Format = None,
    header: AnyHeader = None,
    label: TableLabel = None,
    separator: Separator = None,
    as_json: Json = False,
) -> None:
    """Say in words what an algorithm does: a preset, with the options that change it.

    Options without an algorithm change lols. A contradiction is an error.

    `lols explain MODEL FILE --sentence 3` shows how a model searches a sentence instead: the labels it takes, the
    one-step deviations from them, and what the sentence would have cost in the end. Of a parser, the tree and every
    action with its stack and buffer. `lols explain MODEL FILE --row 3` shows how a classifier walks down its tree of
    classes with a row of a table, and which of the row's values led it there.
    """
    from lols.training.algorithms import PRESETS
    from lols.training.algorithms import explain as in_words

    options = {"roll_in": roll_in, "roll_out": roll_out, "beta": beta, "mix": mix, "ties": ties, "returned": returned}
    given = {"--sentence": sentence, "--top": top, "--html": html, "--column": column, "--word": word, "--use": use}
    tables = {"--row": row, "--label": label, "--separator": separator}
    given |= tables | {"--reference": reference, "--format": file_format, "--header": header, "--json": as_json or None}
    if file is not None or (algorithm is not None and algorithm not in PRESETS and Path(algorithm).is_file()):
        _refuse({name: options[name] for name in ("roll_in", "mix", "ties", "returned")}, "a model is explained")
        if file is None:
            raise ConfigurationError(
                f"{algorithm}: a model explains a sentence or a row; name a file of sentences or rows after it"
            )
        from lols.front import load

        estimator = load(str(algorithm))
        if estimator.READS == "tables":
            from lols.cli.explain_classifier import explain_classifier

            without = {"--roll-out": roll_out, "--beta": beta, "--json": None, "--header": None, "--top": None}
            _refuse(given | dict.fromkeys(tables) | without, "the model is a classifier")
            if top is not None and top < 0:
                raise ConfigurationError(f"--top is {top}: give at least 0")
            shown = 5 if top is None else top
            at = (label, header, separator)
            explain_classifier(estimator, str(algorithm), file, 1 if row is None else row, at, shown, as_json)
            return
        _refuse(tables, "the model is no classifier")
        asked = ExplainRequest(str(algorithm), file, 1 if sentence is None else sentence, html, as_json)
        places = (word, column, use, file_format, header)
        _explain_model(estimator, asked, places, top, reference, {"roll_out": roll_out, "beta": beta})
        return
    _refuse(given, "no model is given: lols explain MODEL FILE")
    if algorithm is None and all(value is None for value in options.values()):
        _list_presets()
    else:
        print(in_words(algorithm or "lols", **options))


def _refuse(given: dict[str, Any], why: str) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigurationError(f"{name} has no effect: {why}")


def _list_presets() -> None:
    from lols.training.algorithms import PRESETS

    table = Table(box=None, pad_edge=False)
    for heading in ("algorithm", "roll in", "roll out", "from"):
        table.add_column(heading)
    for name, preset in PRESETS.items():
        table.add_row(name, preset.roll_in, preset.roll_out, preset.cites)
    out = Console(highlight=False)
    out.print(table)
    out.print("\n`lols explain NAME` says what one does, step by step.")


# --- a sentence of a model --------------------------------------------------------------------------------------------


class ExplainRequest(NamedTuple):
    """Which sentence, and how the answer is wanted."""

    model: str
    file: str
    number: int
    html: str | None
    as_json: bool

    def answer(
        self, count: int, values: dict[str, Any], page: Callable[[str], str], show: Callable[[str], None]
    ) -> None:
        """Write the page, and print plain values or text; page and text are made with the heading."""
        heading = f"Sentence {self.number:,} of {count:,} in {self.file}"
        if self.html is not None:
            _write(self.html, page(heading))
        if self.as_json:
            print_json({"model": self.model, "file": self.file, "sentence": self.number, "sentences": count, **values})
            return
        show(heading)
        if self.html is not None:
            say.print(f"\n{escape(self.html)} written", highlight=False)


def _explain_model(
    estimator: Any,
    asked: ExplainRequest,
    places: tuple[Any, ...],
    top: int | None,
    reference: str | None,
    options: dict[str, Any],
) -> None:
    from lols.cli.explain_parser import explain_parser
    from lols.cli.predict import file_columns
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.tagging.estimator import Tagger

    if top is not None and top < 1:
        raise ConfigurationError(f"--top is {top}: give at least 1")
    if not isinstance(estimator, Tagger | Parser):
        raise ConfigurationError(f"{asked.model}: neither a tagger nor a parser: there is no single search to explain")
    if reference is not None:
        estimator.task_.reference(reference)  # which must be one
        estimator.set_params(reference=reference)
    columns = file_columns(estimator, *places)
    if isinstance(estimator, Parser):
        explain_parser(estimator, columns, asked, top or 3, options)
    else:
        _explain_tagger(estimator, columns, asked, top or 5, options)


def _explain_tagger(tagger: Any, columns: Any, asked: ExplainRequest, top: int, options: dict[str, Any]) -> None:
    from lols.tasks.tagging.explain import explain_sentence, read_sentence
    from lols.tasks.tagging.explain_html import page

    found = read_sentence(tagger, asked.file, asked.number, columns)
    made = explain_sentence(tagger, found.corpus, found.labels, **options)
    about = _about(asked.model, made)
    asked.answer(
        found.count,
        made.as_dict(top),
        lambda heading: page(made, heading=heading, about=about, top=top),
        lambda heading: _show(made, found, heading, about, top),
    )


def _about(model: str, made: Explanation) -> list[str]:
    """What the reader must know of the numbers."""
    wrong = sum(d.wrong for d in made.decisions)
    if made.decisions[0].true is None:
        return [f"{len(made.decisions)} words, tagged by {model}; no labels, so nothing is known of losses"]
    counted = "all right" if wrong == 0 else f"{wrong} wrong"
    lines = [f"{len(made.decisions)} words, {counted}; tagged by {model}"]
    if made.loss is not None:
        lines[0] += f", loss {made.loss:g} ({made.loss_name})"
    return lines + completed(made, "a label")


def completed(made: Explanation | Parse, what: str) -> list[str]:
    """Who completes deviations, as a line, if anybody does."""
    who = {
        None: "",
        "learned": "by the learned policy",
        "reference": "by the reference",
        "none": f"not at all: a cost is what {what} adds to the loss by itself",
        "mixture": f"by the reference and by the learned policy, costs averaged (β = {made.beta or 0:g})",
    }
    return [f"Deviations are completed {who[made.roll_out]}."] if made.roll_out is not None else []


def _show(made: Explanation, found: FileSentence, heading: str, about: list[str], top: int) -> None:
    from lols.tasks.tokens.pages import number

    for line in [heading, *about, made.note]:
        if line:
            say.print(escape(line))
    known = made.roll_out is not None
    losses = known and made.roll_out != "none"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("word", overflow="fold", max_width=30)
    table.add_column("", no_wrap=True)
    table.add_column("label", no_wrap=True)
    for name, wanted in (("predicted", True), ("loss", losses), ("cost", known)):
        if wanted:
            table.add_column(name, justify="right", no_wrap=True)
    for decision in made.decisions:
        for k, d in enumerate(decision.shown(top)):
            mark = "→" if d.taken else ""
            label = escape(d.label) + (" ✓" if d.true else "")
            style = ("bold red" if decision.wrong else "bold") if d.taken else "green" if d.true else "dim"
            row = [str(decision.place), escape(_word(decision))] if k == 0 else ["", ""]
            row += [f"[{style}]{mark}[/]", f"[{style}]{label}[/]", f"{d.predicted:.2f}"]
            row += [number(d.loss)] if d.loss is not None else []
            row += [number(d.cost, signed=True)] if d.cost is not None else []
            table.add_row(*row)
    say.print()
    say.print(table, soft_wrap=False)
    true = ", ✓ the true one" if found.labels is not None else ""
    say.print(f"\n→ the label taken{true}; predicted: its cost in the eyes of the model")
    if losses:
        say.print("loss: of the whole sentence, with that label here and the rest as said above")
    if known:
        say.print("cost: how much more than with the best label here")


def _word(decision: WordDecision) -> str:
    legal = decision.true is None or any(d.true for d in decision.deviations)
    wrong = " ✗" if decision.wrong else ""
    return decision.word + wrong + ("" if legal else f" (true: {decision.true}, not legal here)")


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error
