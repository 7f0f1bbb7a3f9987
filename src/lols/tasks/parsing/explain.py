"""How a parser searches one sentence: stack and buffer step by step, the deviations, and what each would have cost.

This is Figure 2 of the paper for a sentence of the user's, as `lols.tasks.tagging.explain` has it for tags. The costs
are those of the engine that trains; here they are only put into words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.errors import LolsError
from lols.io import conll
from lols.io.strings import Texts
from lols.tasks.explain import DRAWN, FollowedPath, draws_policies, follow
from lols.tasks.parsing.files import cut_columns
from lols.tasks.parsing.input import checked_trees, punctuation
from lols.tasks.parsing.options import ParserColumns
from lols.tasks.parsing.space import DEPTH, LABEL, NEXT, PENDING, RIGHT, SHIFT, on_stack
from lols.tasks.parsing.task import KINDS, NETWORK
from lols.tasks.parsing.treebank import Trees, taught
from lols.tasks.parsing.trees import read_heads, require_trees
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import checked_sentences
from lols.tasks.tokens.verbs import one_sentence

EMPTY = ("", "_")


@dataclass(frozen=True)
class Move:
    """One action that was legal.

    `predicted` is its cost as the model predicts it; `loss` that of the whole sentence when the roll-out has completed
    it, and `cost` how much more that is than with the best action here. Both are None where they are not known.
    `liked` says whether the teacher finds that there is nothing better.
    """

    action: str
    predicted: float
    loss: float | None
    cost: float | None
    taken: bool
    liked: bool


class Arc(NamedTuple):
    """An arc between words, counted from 1; 0 is the root."""

    head: int
    dependent: int
    relation: str


@dataclass(frozen=True)
class Step:
    """A state, and all legal moves by predicted cost.

    Words are counted from 1. The stack's top comes last; the buffer begins with the word `front`. `waiting` is the kind
    of arc that a relation is sought for, and `arc` the one that the move taken adds.
    """

    number: int
    stack: tuple[int, ...]
    front: int
    waiting: str
    arc: Arc | None
    moves: tuple[Move, ...]
    teacher: str | None

    @property
    def taken(self) -> Move:
        """What was done."""
        return next(m for m in self.moves if m.taken)

    @property
    def costly(self) -> bool:
        """Whether something else is known to have been better."""
        return self.taken.cost is not None and self.taken.cost > 1e-6

    def shown(self, top: int) -> list[Move]:
        """The `top` moves of the least predicted cost, the one taken, and one of the teacher's if there is none yet."""
        chosen = {k for k, m in enumerate(self.moves) if k < top or m.taken}
        if not any(self.moves[k].liked for k in chosen):
            chosen |= {k for k, m in enumerate(self.moves) if m.action == self.teacher}
        return [self.moves[k] for k in sorted(chosen)]

    def rest(self, top: int) -> Move | None:
        """The others as one, with the least of their numbers."""
        others = [m for m in self.moves if m not in self.shown(top)]
        if not others:
            return None
        loss = None if others[0].loss is None else min(m.loss or 0.0 for m in others)
        cost = None if others[0].cost is None else min(m.cost or 0.0 for m in others)
        return Move(f"+ {len(others)} more", others[0].predicted, loss, cost, False, False)


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


@dataclass(frozen=True)
class Parse:
    """A sentence, decision by decision.

    `loss` is that of the path taken; `roll_out` who completed the deviations, None if no costs are known.
    """

    words: tuple[ParsedWord, ...]
    steps: tuple[Step, ...]
    reference: str
    loss: float | None = None
    roll_out: str | None = None
    beta: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the true tree is known."""
        return self.words[0].true_head is not None

    def as_dict(self, top: int) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        made = asdict(replace(self, steps=tuple(replace(s, moves=tuple(s.shown(top))) for s in self.steps)))
        for plain, step in zip(made["steps"], self.steps, strict=True):
            plain["arc"] = None if step.arc is None else step.arc._asdict()
            plain["more_moves"] = len(step.moves) - len(plain["moves"])
        return made


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
    >>> made.loss, [(step.taken.action, step.taken.loss) for step in made.steps]
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
    labelled, liked = None, None
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
    if labelled is not None:
        liked = _preferred(task.space, task.reference(parser.reference), labelled, path.taken)
    steps = _labelled(task, _steps(task, examples, path, liked), words)
    return Parse(words, steps, parser.reference, path.loss, path.roll_out, path.beta, tuple(notes))


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


# --- what the teacher says --------------------------------------------------------------------------------------------


def _preferred(space: Any, reference: Any, examples: Examples, taken: np.ndarray) -> list[list[int]]:
    """For each step of the path the actions that the teacher finds best; roll-outs take the first."""
    x, y = examples.example(0)
    states, best = list(_states(space, examples, taken))[:-1], []
    if reference.action is not None:
        return [[int(reference.action(x, y, state))] for state in states]
    for state in states:
        legal, costs = np.zeros(space.sizes.actions, bool), np.zeros(space.sizes.actions)
        space.actions(x, state, legal)
        reference.costs(x, y, state, costs)
        best.append(np.flatnonzero(legal & (costs == costs[legal].min())).tolist())
    return best


def _states(space: Any, examples: Examples, taken: np.ndarray) -> Any:
    """Every state of the path, the start and the end included."""
    x = examples.example(0)[0]
    state = np.zeros(int(examples.states[0]), np.int64)
    space.start(x, state)
    yield state.copy()
    for action in taken:
        space.step(x, state, action)
        yield state.copy()


# --- numbers to names -------------------------------------------------------------------------------------------------


def _steps(
    task: Any, examples: Examples, path: FollowedPath, liked: Sequence[Sequence[int]] | None
) -> tuple[Step, ...]:
    names, made = [task.action_name(0, a) for a in range(len(task.actions))], []
    states = _states(task.space, examples, path.taken)
    for k, (state, action) in enumerate(zip(states, path.taken.tolist(), strict=False)):
        good = () if liked is None else liked[k]
        moves = tuple(Move(names[a], *numbers, a in good) for a, numbers in path.actions(k))
        stack = tuple(int(on_stack(state, back)) + 1 for back in range(int(state[DEPTH]) - 1, -1, -1))
        front, waiting = int(state[NEXT]) + 1, int(state[PENDING])
        arc = _arc(task, action, stack, front, waiting, int(examples.example(0)[0].length))
        teacher = names[good[0]] if good else None
        made.append(Step(k + 1, stack, front, KINDS[waiting] if waiting else "", arc, moves, teacher))
    return tuple(made)


def _labelled(task: Any, steps: tuple[Step, ...], words: Sequence[ParsedWord]) -> tuple[Step, ...]:
    """The steps with the relations that a network gave to the arcs afterwards."""
    if task.labelling != NETWORK:
        return steps
    named = {word.place: word.relation for word in words}
    return tuple(
        step if step.arc is None else replace(step, arc=step.arc._replace(relation=named[step.arc.dependent]))
        for step in steps
    )


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
