"""How a parser searches one sentence: stack and buffer step by step, the deviations, and what each would have cost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.io import conll
from lols.io.strings import Texts
from lols.tasks.explain import (
    DRAWN,
    TINY,
    ExplainedDecision,
    Explanation,
    FollowedPath,
    cut,
    draws_policies,
    follow,
    right_actions,
)
from lols.tasks.parsing.files import cut_columns
from lols.tasks.parsing.input import checked_trees, punctuation
from lols.tasks.parsing.inspect import KINDS, action_name
from lols.tasks.parsing.options import ParserColumns
from lols.tasks.parsing.space import DEPTH, LABEL, NEXT, PENDING, RIGHT, SHIFT, on_stack
from lols.tasks.parsing.task import NETWORK
from lols.tasks.parsing.tree_svg import tree_svg
from lols.tasks.parsing.treebank import Trees, taught
from lols.tasks.parsing.trees import read_heads, require_trees
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import checked_sentences
from lols.tasks.tokens.verbs import one_sentence
from lols.training.deviation_costs import states_along

if TYPE_CHECKING:
    from rich.console import Console

EMPTY = ("", "_")
STACK, BUFFER = 26, 18  # how many characters of them are printed
FEW = 4  # words of them on a page


class Arc(NamedTuple):
    """An arc between words, counted from 1; 0 is the root."""

    head: int
    dependent: int
    relation: str


@dataclass(frozen=True)
class ParsedWord:
    """A word with its head and relation, and the true ones where they are known."""

    place: int
    word: str
    tag: str
    head: int
    relation: str
    true_head: int | None
    true_relation: str | None
    wrong: bool


@dataclass(frozen=True, kw_only=True)
class Parse(Explanation):
    """A sentence, decision by decision.

    The state of each is the stack, whose top comes last, and the word `front` with which the buffer begins; words are
    counted from 1. `waiting` is the kind of arc that a relation is sought for, and `arc` the one that is added.
    """

    words: tuple[ParsedWord, ...]

    LOSS = "words with a wrong head or relation"
    SIGNS: ClassVar = {
        "Shift": "the next word onto the stack",
        "Left": "the next word becomes the head of the stack's top",
        "Right": "the word below the top becomes its head",
    }

    @property
    def known(self) -> bool:
        """Whether the true tree is known."""
        return self.words[0].true_head is not None

    def about(self, model: str) -> list[str]:
        """What the reader must know of the numbers."""
        words, wrong = len(self.words), sum(w.wrong for w in self.words)
        count = "1 word" if words == 1 else f"{words} words"
        if not self.known:
            return [f"{count}, parsed by {model}; no true tree, and costs need one: predictions only"]
        heads = sum(w.head != w.true_head for w in self.words)
        counted = "all right" if wrong == 0 else f"{wrong} wrong ({heads} in the head)"
        completed = self.roll_out_text()
        if completed and self.reference != "optimal":
            completed[-1] += f" The reference is {self.reference}."
        return [f"{count}, {counted}; parsed by {model}{self.loss_text()}", *completed]

    def cells(self, decision: ExplainedDecision) -> dict[str, list[str]]:
        """Stack and buffer, a few words of each."""
        stack, buffer = self._stack(decision), self._buffer(decision)
        stack = ["…", *stack[-FEW:]] if len(stack) > FEW else stack
        return {"stack": stack, "buffer": [*buffer[:FEW], "…"] if len(buffer) > FEW else buffer}

    def row(self, decision: ExplainedDecision) -> list[Any]:
        """Stack and buffer, as much of them as fits."""
        stack, buffer = " ".join(self._stack(decision)), " ".join(self._buffer(decision))
        stack = stack if len(stack) <= STACK else "…" + stack[len(stack) - STACK + 1 :]
        return [stack, f"│ {cut(buffer, BUFFER)}"]

    def added(self, decision: ExplainedDecision) -> list[str]:
        """The arc that was added, or that is waiting for its relation."""
        arc, waiting = decision.state["arc"], decision.state["waiting"]
        lines = [f"{waiting}: which relation?"] if waiting else []
        if arc is None:
            return lines
        relation = f" ({arc['relation']})" if arc["relation"] else ""
        return [*lines, f"{self._word(arc['head']) or 'root'} → {self._word(arc['dependent'])}{relation}"]

    def _stack(self, decision: ExplainedDecision) -> list[str]:
        return [self._word(place) for place in decision.state["stack"]]

    def _buffer(self, decision: ExplainedDecision) -> list[str]:
        return [w.word for w in self.words[decision.state["front"] - 1 :]]

    def _word(self, place: int) -> str:
        return self.words[place - 1].word if place else ""

    def show_output(self, console: Console) -> None:
        """Print the tree."""
        from lols.tasks.show import plain_table, styled, write

        table, tagged = plain_table(padding=(0, 2, 0, 0)), any(w.tag for w in self.words)
        table.add_column("#", justify="right", no_wrap=True)
        table.add_column("word", overflow="fold", max_width=24)
        if tagged:
            table.add_column("tag", no_wrap=True)
        table.add_column("head", justify="right", no_wrap=True)
        for name in ("", "relation", "true" if any(w.wrong for w in self.words) else ""):
            table.add_column(name, overflow="fold", max_width=24)
        for w in self.words:
            style = "bold red" if w.wrong else "default"
            head = [styled(str(w.head), style), styled(self._word(w.head), style)]
            true = f"✗ {w.true_head} {self._word(w.true_head or 0)} {w.true_relation}" if w.wrong else ""
            row: list[Any] = [str(w.place), w.word, *([w.tag] if tagged else []), *head]
            table.add_row(*row, styled(w.relation, style), styled(true, "green"))
        write(console)
        write(console, table, soft_wrap=False)

    def drawing(self) -> str:
        """The tree, with the true arcs in place of wrong ones below the words."""
        words = self.words
        true = [(w.true_head or 0, w.true_relation or "") for w in words] if self.known else None
        tree, tags = [(w.head, w.relation) for w in words], [w.tag for w in words]
        return tree_svg([w.word for w in words], tree, true, tags=tags, wrong=[w.wrong for w in words])

    def drawing_signs(self) -> list[tuple[str, str, str]]:
        """The kinds of arcs."""
        if not any(w.wrong for w in self.words):
            return [("key path", "", "predicted")]
        kinds = {"path": "predicted, and right", "bad": "predicted, wrong", "good": "the true arc"}
        return [(f"key {kind}", "", meaning) for kind, meaning in kinds.items()]

    def as_dict(self, top: int | None = None) -> dict[str, Any]:
        """Plain values, with those of the words."""
        return super().as_dict(top) | {"words": [asdict(word) for word in self.words]}

    def old_values(self, top: int | None) -> dict[str, Any]:
        """The decisions by other names."""
        names = ("action", "predicted", "loss", "cost", "taken")
        return {
            "steps": [
                {
                    "number": each.number,
                    **each.state,
                    "moves": [{name: getattr(a, name) for name in names} | {"liked": a.right} for a in each.shown(top)],
                    "teacher": each.reference,
                    "more_moves": len(each.others(top)),
                }
                for each in self.decisions
            ]
        }


def explain_parse(
    parser: Any,
    sentence: Sequence[Any] | Corpus,
    tree: Sequence[Any] | None = None,
    *,
    roll_out: str | None = None,
    beta: Any = None,
    compiled: bool = True,
) -> Parse:
    """Follow a parser through a sentence, and evaluate its deviations where the true tree is given.

    The deviations are completed as in the parser's training, unless `roll_out` and `beta` say otherwise; a mixture's
    costs are averages, not draws.

    >>> from lols import Parser
    >>> sentences, trees = [["the", "dog", "barks"]] * 3, [[(2, "det"), (3, "nsubj"), (0, "root")]] * 3
    >>> made = explain_parse(Parser().fit(sentences, trees), ["the", "dog"], [(2, "det"), (0, "root")])
    >>> made.loss, [(each.taken.action, each.taken.loss) for each in made.decisions]
    (0.0, [('Shift', 0.0), ('Left det', 0.0), ('Shift', 0.0)])
    """
    corpus = sentence if isinstance(sentence, Corpus) else corpus_of(checked_sentences([sentence]))
    task, model = parser.task_, parser._fitted
    if corpus.tokens == 0:
        raise LolsError("there are no words in this sentence: nothing is decided")
    missing = [name for name in task.columns if name not in corpus.columns]
    if missing:
        raise LolsError(f"the parser looks at the column '{missing[0]}': say where it is, --use {missing[0]}=COLUMN")
    examples, notes = task.examples(corpus), []
    if parser.beam > 1:
        notes.append(f"The greedy search is shown; predictions are those of a beam of {parser.beam}.")
    true = None if tree is None else checked_trees([range(corpus.tokens)], [tree])
    labelled = None
    if true is not None:
        gold, changed = _gold(task, *true)
        notes += changed
        weights = None if parser.punctuation else (~punctuation(corpus)).astype(np.float64)
        labelled = task.examples(corpus, gold, weights)
        if draws_policies(model):
            notes.append(DRAWN)
        elif task.labelling == NETWORK:
            notes.append("The network labels arcs after the search: losses and costs count heads only.")
    path = follow(parser, examples, labelled, roll_out=roll_out, beta=beta, compiled=compiled)
    greedy = task.parsing(corpus)(model) if task.labelling == NETWORK else task.parses(path.taken, corpus.offsets)
    words = _words(task, corpus, greedy, true)
    reference = task.reference(parser.reference)
    right = None if labelled is None else right_actions(reference, labelled, path.taken)
    return Parse(
        decisions=_decisions(task, examples, path, right, words),
        output=[[w.head, w.relation] for w in words],
        reference=parser.reference,
        notes=tuple(notes),
        words=words,
        **path.facts(),
    )


def _gold(task: Any, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str]) -> tuple[Trees, list[str]]:
    """A true tree as the parser would be taught it, and what was changed for that."""
    gold, notes = taught(task, heads, numbers, names, np.array([0, heads.size], np.int64)), []
    if gold.mended:
        notes.append("The true tree has several roots: losses are those with all but the first attached to it.")
    if gold.lifted:
        were = "1 word" if gold.lifted == 1 else f"{gold.lifted} words"
        notes.append(f"The true tree is not projective: losses are those of the tree as it is taught, {were} lifted.")
    if gold.unseen:
        notes.append(f"Never seen in training, and so always wrong: {', '.join(gold.unseen)}.")
    return gold.trees, notes


# --- numbers to names -------------------------------------------------------------------------------------------------


def _decisions(
    task: Any, examples: Examples, path: FollowedPath, right: list[list[int]] | None, words: Sequence[ParsedWord]
) -> tuple[ExplainedDecision, ...]:
    name, decisions = partial(action_name, task), []
    states, length = states_along(task.space, examples, path.taken), int(examples.example(0)[0].length)
    for k, (state, action) in enumerate(zip(states, path.taken.tolist(), strict=False)):
        best = right[k] if right is not None else []
        stack = [int(on_stack(state, back)) + 1 for back in range(int(state[DEPTH]) - 1, -1, -1)]
        front, waiting = int(state[NEXT]) + 1, int(state[PENDING])
        arc = _arc(task, action, stack, front, waiting, length)
        if arc is not None and task.labelling == NETWORK:  # which gives relations afterwards
            arc = arc._replace(relation=words[arc.dependent - 1].relation)
        shown = {"stack": stack, "front": front, "waiting": KINDS[waiting] if waiting else ""}
        shown["arc"] = None if arc is None else arc._asdict()
        costly = path.costs is not None and bool(path.costs[k, action] > TINY)
        reference = name(best[0]) if best else None
        decisions.append(ExplainedDecision(k + 1, shown, path.actions(k, name, best), reference, costly))
    return tuple(decisions)


def _arc(task: Any, action: int, stack: Sequence[int], front: int, waiting: int, length: int) -> Arc | None:
    """The arc that an action adds, if it does."""
    kind, relation, _ = task.actions[action]
    if kind == SHIFT or (task.labelling == "second" and kind != LABEL):
        return None
    kind = waiting if kind == LABEL else kind
    head = stack[-2] if kind == RIGHT else front if front <= length else 0
    return Arc(head, stack[-1], task.relations[relation if head else task.root])


def _words(task: Any, corpus: Corpus, found: Trees, true: tuple[Any, Any, Any] | None) -> tuple[ParsedWord, ...]:
    """The tree that was found beside the true one; the root's relation does not count."""
    words = _strings(corpus, WORD)
    tags = _strings(corpus, "upos" if "upos" in corpus.columns else "xpos")
    made = []
    for k in range(corpus.tokens):
        head, relation = int(found.heads[k]) + 1, task.plain[int(found.relations[k])]
        true_head = None if true is None else int(true[0][k]) + 1
        true_relation = None if true is None else true[2][int(true[1][k])]
        mislabelled = head > 0 and relation != true_relation and task.labelling != "none"
        wrong = true is not None and (head != true_head or mislabelled)
        made.append(ParsedWord(k + 1, words[k], tags[k], head, relation, true_head, true_relation, wrong))
    return tuple(made)


def _strings(corpus: Corpus, name: str) -> list[str]:
    """The strings of a column, token by token; empty ones if there is no such column."""
    if name not in corpus.columns:
        return [""] * corpus.tokens
    texts = corpus.columns[name].texts.strings()
    return [texts[k] for k in corpus.columns[name].numbers.tolist()]


# --- where sentences come from ----------------------------------------------------------------------------------------


def read_tree(
    parser: Any, path: str | os.PathLike[str], number: int, columns: ParserColumns
) -> tuple[Corpus, list[tuple[int, str]] | None, int]:
    """Sentence `number` of a file, counted from 1, its tree if it has one, and how many sentences there are.

    Other sentences may be wrong.
    """
    use = dict(columns.use or {})
    trees = [columns.head, columns.relation]
    wanted = [columns.word, *trees, *use.values()]
    whole = conll.read(path, wanted, format=columns.format, header=columns.header, optional=trees)
    one, count = one_sentence(whole, number, path)
    corpus = Corpus(cut_columns(one, [WORD, "", "", *use]), one.offsets)
    heads, relations = (Texts(one.buffer, one.begin[k], one.end[k]).strings() for k in (1, 2))
    nameless = set(relations) <= set(EMPTY)
    flat = set(heads) <= {"0"} and len(heads) > 1 and (nameless or parser.task_.roots == "one")
    if set(heads) <= set(EMPTY) or flat:
        return corpus, None, count
    numbers = read_heads(one, 1)
    require_trees(numbers, one)
    if nameless:
        relations = ["dep"] * len(relations)
    return corpus, list(zip((numbers + 1).tolist(), relations, strict=True)), count
