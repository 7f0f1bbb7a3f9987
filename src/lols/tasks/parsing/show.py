"""A parser's reports as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lols.tasks.explain import SentenceReport, roll_out_text
from lols.tasks.parsing.explain import Move, Parse, Step
from lols.tasks.parsing.options import ParserExplainOptions
from lols.tasks.parsing.tree_svg import parse_page
from lols.tasks.show import (
    PlainTable,
    plain_table,
    show_again,
    show_calibration,
    show_legend,
    show_scores,
    step_table,
    styled,
    write,
)
from lols.tasks.tokens.pages import number

if TYPE_CHECKING:
    from lols.tasks.parsing.scores import TreeScores
    from lols.training.calibration import Reliability

STACK, BUFFER = 26, 18  # how many characters of them are shown
WIDE = 100
SHARES = ("uas", "las", "clas", "las_full", "exact_heads", "exact")


@dataclass(frozen=True)
class ParserScores:
    """Attachment scores, and every relation; of a pipeline also the share of right tags in each column."""

    scores: TreeScores
    labelled: bool
    punctuation: bool
    tags: Mapping[str, float] = field(default_factory=dict)
    tagged: int = 0  # words with tags; punctuation always counts among them
    of_tags: Mapping[str, Reliability] = field(default_factory=dict)  # of the confidence in tags

    @classmethod
    def of_parts(cls, parts: Sequence[ParserScores]) -> ParserScores:
        """The scores of all parts of a corpus, from those of each."""
        from lols.tasks.parsing.scores import TreeScores
        from lols.training.calibration import added

        first, tagged = parts[0], sum(part.tagged for part in parts)
        tags = {name: sum(round(part.tags[name] * part.tagged) for part in parts) / tagged for name in first.tags}
        sure = {name: added(part.of_tags.get(name) for part in parts) for name in first.of_tags}
        known = {name: seen for name, seen in sure.items() if seen is not None}
        whole = TreeScores.of_parts([part.scores for part in parts])
        return cls(whole, first.labelled, first.punctuation, tags, tagged, known)

    @property
    def reliability(self) -> dict[str, Reliability]:
        """How reliable confidence is, in heads and in each column of tags; empty if it is unknown."""
        heads = self.scores.reliability
        return {} if heads is None else {"head": heads, **self.of_tags}

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        relations = {name: counts.as_dict() for name, counts in self.scores.by_relation.items()}
        plain = {name: getattr(self.scores, name) for name in SHARES}
        counts = {"tokens": self.scores.words, "sentences": self.scores.sentences}
        if self.scores.reliability is not None:
            plain |= self.scores.reliability.as_dict()
        if self.of_tags:
            plain["calibration_errors"] = {name: seen.error for name, seen in self.reliability.items()}
        return ({"tags": dict(self.tags)} if self.tags else {}) | counts | plain | {"relations": relations}

    def show(self, console: Console, *, whole: bool = False) -> None:
        """Print them."""
        found = self.as_dict()
        without = "" if self.punctuation else ", punctuation not counted"
        headline = [f"{name} {100 * share:.2f}" for name, share in self.tags.items()]
        headline.append(f"UAS {100 * found['uas']:.2f} on {found['tokens']:,} tokens{without}")
        if self.labelled:
            headline.append(f"LAS {100 * found['las']:.2f}, with subtypes {100 * found['las_full']:.2f}")
        for line in headline:
            write(console, line)
        if self.labelled:
            write(console, f"CLAS {100 * found['clas']:.2f}")
        right = f"sentences without a mistake: {100 * found['exact_heads']:.2f} % by heads"
        write(console, right + (f", {100 * found['exact']:.2f} % with relations" if self.labelled else ""))
        for name, seen in self.reliability.items():
            show_calibration(console, seen, f"confidence in {name}")
        if self.labelled:
            write(console)
            rows = dict(sorted(found["relations"].items(), key=lambda item: -item[1]["count"]))
            lines = show_scores(console, "relation", rows, {"attached": "head right"}, whole=whole)
            show_again(console, headline, lines)


@dataclass(frozen=True)
class ParserReport(SentenceReport):
    """How a sentence of a file is parsed."""

    found: Parse
    asked: ParserExplainOptions

    def about(self) -> list[str]:
        """What the reader must know of the numbers."""
        parse = self.found
        words, wrong = len(parse.words), sum(w.wrong for w in parse.words)
        count = "1 word" if words == 1 else f"{words} words"
        if not parse.known:
            return [f"{count}, parsed by {self.model}; no true tree, and costs need one: predictions only"]
        heads = sum(w.head != w.true_head for w in parse.words)
        counted = "all right" if wrong == 0 else f"{wrong} wrong ({heads} in the head)"
        loss = "" if parse.loss is None else f", loss {parse.loss:g}"
        completed = roll_out_text(parse.roll_out, parse.beta, "an action")
        if completed and parse.reference != "optimal":
            completed[-1] += f" The reference is {parse.reference}."
        return [f"{count}, {counted}; parsed by {self.model}{loss}", *completed]

    def page(self) -> str:
        """The page."""
        return parse_page(self.found, heading=self.heading, about=self.about(), top=self.asked.top)

    def show(self, console: Console) -> None:
        """Print the tree, and a line for each action that is shown of each step."""
        parse, top = self.found, self.asked.top
        for line in [self.heading, *self.about(), *parse.notes]:
            write(console, line)
        write(console)
        write(console, _tree_table(parse), soft_wrap=False)
        write(console)
        table = step_table(["#", "stack", "buffer", "", "action"], parse.roll_out)
        for step in parse.steps:
            for k, move in enumerate(step.shown(top)):
                state = _state(parse, step) if k == 0 else _new_arc(parse, step) if k == 1 else ["", "", ""]
                table.add_row(*state, *_move(step, move))
            rest = step.rest(top)
            if rest is not None:
                lead = _new_arc(parse, step) if len(step.shown(top)) == 1 else ["", "", ""]
                table.add_row(*lead, "", styled(rest.action, "dim"), *(styled(f"≥ {v}", "dim") for v in _numbers(rest)))
        # A file or a pipe is as wide as need be.
        narrow = console.is_terminal or console.width >= WIDE
        wide = console if narrow else Console(width=WIDE, highlight=False, file=console.file)
        write(wide, table, soft_wrap=False)
        true = f", ✓ as good as any to the teacher ({parse.reference})" if parse.known else ""
        actions = [
            "Shift: the next word onto the stack; Left: it becomes the head of the stack's top;",
            "Right: the word below the top becomes its head",
        ]
        show_legend(console, "action", parse.roll_out, "words with a wrong head or relation", true, actions)
        if self.asked.html is not None:
            write(console, f"\n{self.asked.html} written")


def _tree_table(parse: Parse) -> PlainTable:
    table = plain_table(padding=(0, 2, 0, 0))
    tagged = any(w.tag for w in parse.words)
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("word", overflow="fold", max_width=24)
    if tagged:
        table.add_column("tag", no_wrap=True)
    table.add_column("head", justify="right", no_wrap=True)
    for name in ("", "relation", "true" if any(w.wrong for w in parse.words) else ""):
        table.add_column(name, overflow="fold", max_width=24)
    for w in parse.words:
        style = "bold red" if w.wrong else "default"
        head = [styled(str(w.head), style), styled(_word_at(parse, w.head), style)]
        true = f"✗ {w.true_head} {_word_at(parse, w.true_head or 0)} {w.true_relation}" if w.wrong else ""
        row: list[Any] = [str(w.place), w.word, *([w.tag] if tagged else []), *head]
        table.add_row(*row, styled(w.relation, style), styled(true, "green"))
    return table


def _word_at(parse: Parse, place: int) -> str:
    return parse.words[place - 1].word if place else ""


def _state(parse: Parse, step: Step) -> list[Any]:
    """Number, stack and buffer, as much of them as fits."""
    stack = " ".join(_word_at(parse, k) for k in step.stack)
    buffer = " ".join(w.word for w in parse.words[step.front - 1 :])
    stack = stack if len(stack) <= STACK else "…" + stack[len(stack) - STACK + 1 :]
    buffer = buffer if len(buffer) <= BUFFER else buffer[: BUFFER - 1] + "…"
    return [str(step.number), stack, styled("│", "dim").append(f" {buffer}", "not dim")]


def _new_arc(parse: Parse, step: Step) -> list[Any]:
    """The arc that was added, in place of the state."""
    if step.arc is None:
        return ["", "", ""]
    text = f"{_word_at(parse, step.arc.head) or 'root'} → {_word_at(parse, step.arc.dependent)}"
    text = text if len(text) <= STACK else text[: STACK - 1] + "…"
    return ["", styled(text, "dim"), ""]


def _move(step: Step, move: Move) -> list[Any]:
    style = ("bold red" if step.costly else "bold") if move.taken else "green" if move.liked else "dim"
    mark, liked = "→" if move.taken else "", " ✓" if move.liked else ""
    return [styled(mark, style), styled(move.action + liked, style), *_numbers(move)]


def _numbers(move: Move) -> list[str]:
    known = [number(v, signed=signed) for v, signed in ((move.loss, False), (move.cost, True)) if v is not None]
    return [f"{move.predicted:.2f}", *known]
