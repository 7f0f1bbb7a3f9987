"""`lols explain` for parsers: the tree, and every action with its stack and buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lols.cli.console import say
from lols.cli.explain import ExplainRequest, completed

if TYPE_CHECKING:  # this needs Numba
    from lols.tasks.parsing.explain import Move, Parse, Step

__all__ = ["explain_parser"]

STACK, BUFFER = 26, 18  # how many characters of them are shown
WIDE = 100


def explain_parser(parser: Any, columns: Any, asked: ExplainRequest, top: int, options: dict[str, Any]) -> None:
    """Show how a parser searches a sentence."""
    from lols.tasks.parsing.explain import explain_parse, read_tree
    from lols.tasks.parsing.tree_svg import parse_page

    found = read_tree(parser, asked.file, asked.number, columns)
    made = explain_parse(parser, found.corpus, found.tree, **options)
    about = _about_parse(asked.model, made)
    asked.answer(
        found.count,
        made.as_dict(top),
        lambda heading: parse_page(made, heading=heading, about=about, top=top),
        lambda heading: _show_parse(made, heading, about, top),
    )


def _about_parse(model: str, made: Parse) -> list[str]:
    words, wrong = len(made.words), sum(w.wrong for w in made.words)
    count = "1 word" if words == 1 else f"{words} words"
    if not made.known:
        return [f"{count}, parsed by {model}; no true tree, and costs need one: predictions only"]
    heads = sum(w.head != w.true_head for w in made.words)
    counted = "all right" if wrong == 0 else f"{wrong} wrong ({heads} in the head)"
    loss = "" if made.loss is None else f", loss {made.loss:g}"
    lines = [f"{count}, {counted}; parsed by {model}{loss}", *completed(made, "an action")]
    if made.roll_out is not None and made.reference != "optimal":
        lines[-1] += f" The reference is {made.reference}."
    return lines


def _show_parse(made: Parse, heading: str, about: list[str], top: int) -> None:
    for line in [heading, *about, *made.notes]:
        say.print(escape(line))
    say.print()
    say.print(_tree_table(made), soft_wrap=False)
    say.print()
    known = made.roll_out is not None
    losses = known and made.roll_out != "none"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("stack", justify="right", no_wrap=True)
    table.add_column("buffer", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("action", no_wrap=True)
    for name, wanted in (("predicted", True), ("loss", losses), ("cost", known)):
        if wanted:
            table.add_column(name, justify="right", no_wrap=True)
    for step in made.steps:
        for k, move in enumerate(step.shown(top)):
            state = _state(made, step) if k == 0 else _new_arc(made, step) if k == 1 else ["", "", ""]
            table.add_row(*state, *_move(step, move))
        rest = step.rest(top)
        if rest is not None:
            lead = _new_arc(made, step) if len(step.shown(top)) == 1 else ["", "", ""]
            table.add_row(*lead, "", f"[dim]{rest.action}[/]", *(f"[dim]≥ {v}[/]" for v in _numbers(rest)))
    # A file or a pipe is as wide as need be.
    wide = say if say.is_terminal else Console(width=max(say.width, WIDE), highlight=False)
    wide.print(table)
    true = f", ✓ good in the eyes of the teacher ({made.reference})" if made.known else ""
    say.print(f"\n→ the action taken{true}; predicted: its cost in the eyes of the model")
    say.print("Shift: the next word onto the stack; Left: it becomes the head of the stack's top;")
    say.print("Right: the word below the top becomes its head")
    if losses:
        say.print("loss: words with a wrong head or relation, with that action here and the rest as said above")
    if known:
        say.print("cost: how much more than with the best action here")


def _tree_table(made: Parse) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    tagged = any(w.tag for w in made.words)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("word", overflow="fold", max_width=24)
    if tagged:
        table.add_column("tag", no_wrap=True)
    table.add_column("head", justify="right", no_wrap=True)
    for name in ("", "relation", "true" if any(w.wrong for w in made.words) else ""):
        table.add_column(name, overflow="fold", max_width=24)
    for w in made.words:
        style = "bold red" if w.wrong else "default"
        head = [f"[{style}]{w.head}[/]", f"[{style}]{escape(_word_at(made, w.head))}[/]"]
        true = f"✗ {w.true_head} {_word_at(made, w.true_head or 0)} {w.true_relation}" if w.wrong else ""
        row = [str(w.place), escape(w.word), *([escape(w.tag)] if tagged else []), *head]
        table.add_row(*row, f"[{style}]{escape(w.relation)}[/]", f"[green]{escape(true)}[/]")
    return table


def _word_at(made: Parse, place: int) -> str:
    return made.words[place - 1].word if place else ""


def _state(made: Parse, step: Step) -> list[str]:
    """Number, stack and buffer, as much of them as fits."""
    stack = " ".join(_word_at(made, k) for k in step.stack)
    buffer = " ".join(w.word for w in made.words[step.front - 1 :])
    stack = stack if len(stack) <= STACK else "…" + stack[len(stack) - STACK + 1 :]
    buffer = buffer if len(buffer) <= BUFFER else buffer[: BUFFER - 1] + "…"
    return [str(step.number), escape(stack), f"[dim]│[/] {escape(buffer)}"]


def _new_arc(made: Parse, step: Step) -> list[str]:
    """The arc that was added, in place of the state."""
    if step.arc is None:
        return ["", "", ""]
    text = f"{_word_at(made, step.arc.head) or 'root'} → {_word_at(made, step.arc.dependent)}"
    text = text if len(text) <= STACK else text[: STACK - 1] + "…"
    return ["", f"[dim]{escape(text)}[/]", ""]


def _move(step: Step, move: Move) -> list[str]:
    style = ("bold red" if step.costly else "bold") if move.taken else "green" if move.liked else "dim"
    mark, liked = "→" if move.taken else "", " ✓" if move.liked else ""
    return [f"[{style}]{mark}[/]", f"[{style}]{escape(move.action)}{liked}[/]", *_numbers(move)]


def _numbers(move: Move) -> list[str]:
    from lols.tasks.tokens.pages import number

    known = [number(v, signed=signed) for v, signed in ((move.loss, False), (move.cost, True)) if v is not None]
    return [f"{move.predicted:.2f}", *known]
