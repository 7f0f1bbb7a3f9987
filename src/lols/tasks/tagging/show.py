"""A tagger's reports as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lols.tasks.explain import SentenceReport, roll_out_text
from lols.tasks.show import show_again, show_calibration, show_legend, show_scores, step_table, styled, write
from lols.tasks.tagging.explain import Explanation, WordDecision
from lols.tasks.tagging.explain_html import page as tagging_page
from lols.tasks.tagging.options import TaggerExplainOptions
from lols.tasks.tokens.pages import number

if TYPE_CHECKING:
    from rich.console import Console

    from lols.tasks.tagging.scores import TagScores


def show_tag_scores(scores: TagScores, console: Console, *, whole: bool = False) -> None:
    """Accuracy, spans, each label, and which labels are confused."""
    values, spans = scores.as_dict(), scores.spans
    headline = [f"accuracy {100 * scores.accuracy:.2f} on {scores.tokens:,} tokens"]
    if spans is not None:
        precision, recall, f1 = (100 * value for value in (spans.precision, spans.recall, spans.f1))
        headline.append(f"spans: precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}")
    for line in headline:
        write(console, line)
    write(console, f"sentences all right {100 * scores.sentence_accuracy:.2f} of {scores.sentences:,}")
    if scores.unknown_accuracy is not None:
        share = 100 * scores.unknown_tokens / scores.tokens
        write(
            console,
            f"unknown words {100 * scores.unknown_accuracy:.2f} on {scores.unknown_tokens:,} tokens ({share:.1f} %)",
        )
    if scores.unseen_labels:
        write(console, f"labels never seen in training, counted as wrong: {', '.join(scores.unseen_labels)}")
    show_calibration(console, scores.reliability)
    write(console)
    rows = values.get("types", values["tags"])
    by_count = dict(sorted(rows.items(), key=lambda item: -item[1]["count"]))
    lines = show_scores(console, "label" if spans is None else "span type", by_count, whole=whole)
    if scores.confusions:
        write(console, "\nmost frequent mistakes (true → predicted):")
        write(console, ", ".join(f"{a} → {b} {n}" for a, b, n in scores.confusions))
    show_again(console, headline, lines)


@dataclass(frozen=True)
class TaggerReport(SentenceReport):
    """How a sentence of a file is tagged."""

    found: Explanation
    asked: TaggerExplainOptions

    def about(self) -> list[str]:
        """What the reader must know of the numbers."""
        found = self.found
        count, wrong = len(found.decisions), sum(d.wrong for d in found.decisions)
        if found.decisions[0].true is None:
            return [f"{count} words, tagged by {self.model}; no labels, so nothing is known of losses"]
        counted = "all right" if wrong == 0 else f"{wrong} wrong"
        loss = "" if found.loss is None else f", loss {found.loss:g} ({found.loss_name})"
        return [
            f"{count} words, {counted}; tagged by {self.model}{loss}",
            *roll_out_text(found.roll_out, found.beta, "a label"),
        ]

    def page(self) -> str:
        """The page."""
        return tagging_page(self.found, heading=self.heading, about=self.about(), top=self.asked.top)

    def show(self, console: Console) -> None:
        """Print a line for each label that is shown of each word."""
        found = self.found
        for line in [self.heading, *self.about(), found.note]:
            if line:
                write(console, line)
        table = step_table(["#", "word", "", "label"], found.roll_out, wide="word")
        for decision in found.decisions:
            for k, d in enumerate(decision.shown(self.asked.top)):
                style = ("bold red" if decision.wrong else "bold") if d.taken else "green" if d.true else "dim"
                row: list[Any] = [str(decision.place), _word(decision)] if k == 0 else ["", ""]
                label = d.label + (" ✓" if d.true else "")
                row += [styled("→" if d.taken else "", style), styled(label, style), f"{d.predicted:.2f}"]
                row += [number(d.loss)] if d.loss is not None else []
                row += [number(d.cost, signed=True)] if d.cost is not None else []
                table.add_row(*row)
        write(console)
        write(console, table, soft_wrap=False)
        true = ", ✓ the true one" if found.decisions[0].true is not None else ""
        show_legend(console, "label", found.roll_out, "of the whole sentence", true)
        if self.asked.html is not None:
            write(console, f"\n{self.asked.html} written")


def _word(decision: WordDecision) -> str:
    legal = decision.true is None or any(d.true for d in decision.deviations)
    wrong = " ✗" if decision.wrong else ""
    return decision.word + wrong + ("" if legal else f" (true: {decision.true}, not legal here)")
