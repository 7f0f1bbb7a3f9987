"""A tagging task: templates, columns, labels, scheme and loss; all of it goes into the model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from lols.contract.choosing import runs, some
from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.errors import ConfigurationError, LolsError, shown
from lols.kernels.kernel import kernel
from lols.tasks.problem import Defaults, HeldOut
from lols.tasks.tagging.data import Tagged, TagScan
from lols.tasks.tagging.space import LAST, POSITION, make_examples, make_space, references
from lols.tasks.tagging.span_oracle import completions
from lols.tasks.tagging.span_scores import span_scores
from lols.tasks.tagging.span_space import SPAN_FUNCTIONS, span_references
from lols.tasks.tagging.spans import automaton, convert_columns, make_labels, span_marks
from lols.tasks.tokens.corpus import WORD, Corpus, backward
from lols.tasks.tokens.encoding import Encoder, TemplateLayout
from lols.tasks.tokens.input import known_numbers
from lols.tasks.tokens.task import TokenTask
from lols.tasks.tokens.templates import parse_templates
from lols.tasks.tokens.vocabulary import NetworkVocabulary
from lols.training.calibration import Judged, most_judged
from lols.training.model import Model

MOST_TIMES = 1 << 10  # that labels are added
LOSSES = ("hamming", "f1")
DIRECTIONS = ("forward", "backward")
SCHEMES = ("bio", "iob1", "bilou", "bioes")
RARE = 0.5  # of the words are in no span: from there on spans are rare
BEFORE = 2  # tags that a network looks at
NETWORK_TEMPLATES = ["tag[-2] & tag[-1]"]  # says that a state's future depends on these tags

DEFAULT_TEMPLATES = """
word
lower
prefix1..4
suffix1..5
shape
class
length
lower[-2..-1]
lower[1..2]
suffix3[-1]
suffix3[+1]
prefix3[-1]
prefix3[+1]
shape[-1]
shape[+1]
lower[-1] & lower
lower & lower[+1]
tag[-1]
tag[-1] & tag[-2]
tag[-1] & lower
tag[-1] & lower[+1]
tag[-1] & shape
"""
# For every further column, such as a part of speech.
COLUMN_TEMPLATES = """
{0}[-2..2]
{0}[-2] & {0}[-1]
{0}[-1] & {0}
{0} & {0}[+1]
{0}[+1] & {0}[+2]
{0}[-1] & {0} & {0}[+1]
{0} & tag[-1]
{0}[+1] & tag[-1]
{0} & {0}[+1] & tag[-1]
"""


CLUSTER_TEMPLATES = """
{0}.prefix4
{0}.prefix6
{0}.prefix10
"""


def default_templates(columns: Sequence[str]) -> list[str]:
    """The templates for these columns where none are given.

    >>> default_templates(["word"])[:3], len(default_templates(["word", "pos"]))
    (['word', 'lower', 'prefix1..4'], 31)
    """
    text = DEFAULT_TEMPLATES if WORD in columns else "tag[-1]\ntag[-1] & tag[-2]\nbias\n"
    text += "".join(COLUMN_TEMPLATES.format(name) for name in columns if name != WORD)
    text += CLUSTER_TEMPLATES.format("cluster") if "cluster" in columns else ""
    return [line for line in text.split("\n") if line]


class TaggingTask(TokenTask):
    """What a tagger was made for.

    Parameters
    ----------
    labels
        The labels as the user writes them, sorted.
    columns
        Names of the columns of strings that templates may name.
    templates, more_templates
        Lines of the template language, by default those of `default_templates`; and further ones.
    scheme
        How spans are written in the labels: `"bio"`, `"iob1"`, `"bilou"`, `"bioes"`, or None for plain tags.
    inner_scheme
        How the tagger itself writes them, where that serves better; results are written as `scheme` says.
    direction
        `"forward"`, from the first word to the last, or `"backward"`. Places in templates count along it: `word[-1]` is
        the word that was tagged before.
    loss
        `"hamming"`, or for spans `"f1"`: see `lols.tasks.tagging.span_oracle`.
    grown
        Where labels were added later: how many there were each time before. They keep their numbers.
    vocabulary
        What a network knows of words; it needs no templates.

    """

    DEFAULTS = Defaults(rate=0.06, unit="tokens")  # the rate was chosen on the last tenth of the WSJ sample, and EWT
    DECISIONS = "tags"
    OPTIONS = ("columns", "templates", "scheme", "inner_scheme", "direction", "loss")

    def __init__(
        self,
        labels: Sequence[str],
        *,
        columns: Sequence[str] = (WORD,),
        templates: Sequence[str] | None = None,
        more_templates: Sequence[str] = (),
        scheme: str | None = None,
        inner_scheme: str | None = None,
        direction: str = "forward",
        loss: str = "hamming",
        grown: Sequence[int] = (),
        vocabulary: NetworkVocabulary | None = None,
    ):
        if direction not in DIRECTIONS:
            raise ConfigurationError(f"unknown direction '{direction}': choose one of {', '.join(DIRECTIONS)}")
        if loss == "spans":
            raise ConfigurationError("there is no loss 'spans' any more: it found fewer rare spans; use f1 or hamming")
        if loss not in LOSSES:
            raise ConfigurationError(f"unknown loss '{loss}': choose one of {', '.join(LOSSES)}")
        if loss == "f1" and scheme is None:
            raise ConfigurationError(f"loss '{loss}' needs span labels such as B-NP and I-NP; these are plain tags")
        if inner_scheme is not None and scheme is None:
            raise ConfigurationError("inner_scheme has no effect: these are plain tags, not spans; leave it out")
        self.columns, self.scheme, self.direction, self.loss = tuple(columns), scheme, direction, loss
        self.vocabulary = vocabulary
        if vocabulary is not None:
            templates, more_templates = NETWORK_TEMPLATES, ()
        self.templates = [*(default_templates(self.columns) if templates is None else templates), *more_templates]
        self.layout = TemplateLayout.of(parse_templates(self.templates, self.columns))
        self.inner_scheme = inner_scheme
        if scheme is not None and inner_scheme is None:
            self.inner_scheme = "bio" if scheme == "iob1" else scheme
        self.added = list(grown)
        self.labels, _ = in_turn(scheme, labels, self.added)
        self.inner_labels, first = in_turn(self.inner_scheme, self.labels, self.added)
        self.radix = 1 + first
        if len(self.inner_labels) < 2:
            raise LolsError(f"there is only one label, {self.labels}: nothing can be learned; check the column")
        self.machine = automaton(self.inner_scheme, self.inner_labels)

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The task as plain values and arrays, for model files."""
        made = {name: getattr(self, name) for name in ("labels", *self.OPTIONS)} | {"columns": list(self.columns)}
        return made | ({"grown": self.added} if self.added else {}), self.tensors()

    def with_labels(self, seen: Sequence[str]) -> Self:
        """The task with further labels, whose numbers come after those so far; itself if it knows them all."""
        more = [label for label in make_labels(self.scheme, [*self.labels, *seen]) if label not in self.labels]
        if not more:
            return self
        return type(self)([*self.labels, *more], **self.options(), grown=[*self.added, len(self.labels)])

    @classmethod
    def from_description(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Self:
        """The task that `describe` described."""
        for name in ("labels", "columns", "templates"):
            if not isinstance(task[name], list) or not all(isinstance(v, str) for v in task[name]):
                raise LolsError(f"the task's {name} are not a list of strings")
        options = {name: task[name] for name in cls.OPTIONS}
        if options["loss"] == "spans":  # of earlier versions; its states were the same
            options["loss"] = "f1"
        more = cls.stored_vocabulary(task, tensors)
        return cls(task["labels"], **options, grown=task.get("grown", ()), **more)

    # --- from data ---

    @classmethod
    def propose(cls, scan: TagScan, options: Any) -> Self:
        """The task that sentences pose, where the options of a tagger leave something open."""
        scheme = scan.scheme if options.scheme == "auto" else options.scheme
        if scheme is not None and scheme not in SCHEMES:
            raise ConfigurationError(f"unknown scheme '{scheme}': choose auto, {', '.join(SCHEMES)}, or None")
        inner = None if options.inner_scheme == "auto" else options.inner_scheme
        direction, loss = options.direction, options.loss
        if direction == "auto":
            direction = "forward" if scheme is None else "backward"
        if loss == "auto":
            learns = options.is_linear and options.learner == "hinge"
            rare = scheme is not None and scan.outside / max(scan.tokens, 1) > RARE
            loss = "f1" if rare and learns else "hamming"
        made = {"scheme": scheme, "inner_scheme": inner, "direction": direction, "loss": loss}
        if not options.is_linear:
            assert scan.corpus is not None
            made["vocabulary"] = options.network_vocabulary(scan.corpus)
        return cls(sorted(set(scan.names)), columns=tuple(scan.strings), **options.template_lines(), **made)

    def grown(self, data: Tagged, classes: Sequence[str] | None = None) -> tuple[Self, np.ndarray]:
        """The task with further labels, and what a network has to know of further words."""
        wider = self.with_labels(data.names if classes is None else classes)
        return wider.grown_by(data.corpus), np.arange(len(self.inner_labels))

    @cached_property
    def space(self) -> SearchSpace:
        """The search space."""
        functions = SPAN_FUNCTIONS if self.loss == "f1" else None
        return make_space(self.layout, len(self.inner_labels), self.machine, functions, self.radix)

    def references(self) -> dict[str, Reference]:
        """The teachers, which depend on the loss."""
        return span_references() if self.loss == "f1" else references()

    # --- between the user's labels and actions ---

    def actions_of(self, numbers: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Actions for labels by number, in the order of tagging; in another scheme where the tagger has its own."""
        turned = self.direction == "backward"
        if self.scheme is None:
            return numbers[backward(offsets)] if turned else numbers
        made, labels, scheme = numbers, self.labels, self.scheme
        if turned:
            made, labels, scheme = _turned(made, offsets, labels, scheme)
        return convert_columns(made, offsets, labels, self.inner_labels, scheme, str(self.inner_scheme))

    def labels_of(self, actions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Labels by number for actions."""
        turned = self.direction == "backward"
        if self.scheme is None or (self.scheme == self.inner_scheme and not turned):
            return actions[backward(offsets)] if turned else actions
        made, labels, scheme = actions, self.inner_labels, str(self.inner_scheme)
        if turned:
            made, labels, scheme = _turned(made, offsets, labels, scheme)
        return convert_columns(made, offsets, labels, self.labels, scheme, self.scheme)

    def label_costs(self, costs: np.ndarray, taken: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """From costs of actions, [step, action], to those of labels, [word, label].

        An action counts for the label that its word would have with it if all other actions stayed those taken. That
        depends on the actions beside it only, so every second word is changed at a time.
        """
        ordered = self.in_order(costs, offsets)
        if self.scheme is None or (self.scheme == self.inner_scheme and self.direction == "forward"):
            return ordered.copy()
        made = np.full((taken.size, len(self.labels)), np.inf, costs.dtype)
        for a in range(costs.shape[1]):
            for first in (0, 1):
                changed = np.zeros(taken.size, np.bool_)
                changed[first::2] = np.isfinite(costs[first::2, a])
                labels = self.labels_of(np.where(changed, a, taken).astype(np.int64), offsets)
                words = np.flatnonzero(self.in_order(changed, offsets))
                cells = words, labels[words]
                made[cells] = np.minimum(made[cells], ordered[words, a])
        return made

    def in_order(self, values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Values of steps in the order of the words."""
        return values[backward(offsets)] if self.direction == "backward" else values

    def number(self, strings: Sequence[str]) -> np.ndarray:
        """Numbers of labels; -1 for those that the tagger does not know."""
        known = {label: number for number, label in enumerate(self.labels)}
        return np.array([known.get(s, -1) for s in strings], np.int64)

    # --- what the estimator asks for ---

    def examples_of(self, data: Tagged, *, truth: bool = True) -> Examples:
        """The sentences, and their labels, which must be known."""
        numbers = known_numbers(self, data.names)[data.numbers] if truth else None
        return self.examples(data.corpus, numbers)

    def action_name(self, place: int, action: int) -> str:
        """The label that is given, as the tagger itself writes it."""
        return self.inner_labels[action]

    def notes(self, data: Tagged) -> list[str]:
        """Which way the tagger goes."""
        return (
            ["Steps are counted from the last word to the first, as the tagger goes."]
            if self.direction == "backward"
            else []
        )

    def predicted(self, model: Model, data: Any, *, confidence: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        """The numbers of the labels of all words, and how likely each is to be right."""
        offsets = data.corpus.offsets
        if data.size == 0:
            return np.zeros(0, np.int64), np.zeros(0) if confidence else None
        if not confidence:
            return self.labels_of(model.run(self.examples(data.corpus)).all_actions(), offsets), None
        calibration = model.calibrated()
        run = model.run(self.examples(data.corpus), temperature=calibration.temperature)
        sure = calibration.confidence(self.in_order(run.all_shares(), offsets))
        return self.labels_of(run.all_actions(), offsets), sure

    def named(self, outputs: np.ndarray) -> list[str]:
        """The labels with these numbers."""
        return [self.labels[n] for n in outputs.tolist()]

    def held_out(self, data: Tagged) -> HeldOut:
        """Sentences that nothing is learned from; labels that the tagger does not know count as wrong."""
        if data.size == 0:
            raise LolsError("there are no dev sentences to choose on: give some, or no dev data")
        return HeldOut(self, data, truth=False)

    def scores(self, model: Model, held: HeldOut) -> dict[str, float]:
        """Accuracy, and F1 for spans."""
        gold, offsets = self._gold(held.data), held.data.corpus.offsets
        made = self.labels_of(model.run(held.examples).all_actions(), offsets)
        entry = {"accuracy": float((made == gold).mean())}
        if self.scheme is not None:
            labels = [*self.labels, "B-?"]  # stands for labels that training never showed
            gold = np.where(gold < 0, len(labels) - 1, gold)
            entry["f1"] = span_scores(gold, made, offsets, labels, self.scheme).f1
        return entry

    def judged(self, model: Model, examples: Examples, data: Tagged, chosen: np.ndarray | None = None) -> Judged:
        """The tags that a model gives to sentences, as many as a calibration needs, and which are right."""
        gold, offsets = self._gold(data), data.corpus.offsets
        if chosen is not None:
            at, offsets = runs(offsets, chosen)
            gold = gold[at]
        count = int(np.searchsorted(offsets, most_judged(len(self.inner_labels)), side="left"))
        if count < offsets.size - 1:
            examples, offsets = some(examples, np.arange(count)), offsets[: count + 1]
        run = model.run(examples, scores=True)
        taken = run.all_actions()
        right = self.labels_of(taken, offsets) == gold[: int(offsets[-1])]
        return Judged(run.all_costs(), taken, self.in_order(right, offsets))  # turned round twice is as it was

    def _gold(self, data: Tagged) -> np.ndarray:
        """The numbers of true labels, below 0 for those that the tagger does not know."""
        return self.number(data.names)[data.numbers]

    def network(self, **options: Any) -> Any:
        """A network for the task that has learned nothing: it looks at words, and at the last tags."""
        from lols.torch.sentences import NetworkSizes, TagNetwork

        assert self.vocabulary is not None
        begin = {"seed": options.pop("seed", 0), "folder": self.vocabulary.folder}
        sizes = NetworkSizes(**self.vocabulary.sizes(), **options)
        actions = len(self.inner_labels)
        made = TagNetwork(sizes, actions=actions, before=BEFORE, positions=tag_positions, **begin)
        self.vocabulary.begin(made.encoder)
        return made

    # --- encoding ---

    def examples(self, corpus: Corpus, numbers: np.ndarray | None = None, encoder: Encoder | None = None) -> Examples:
        """Sentences, and where given the numbers of their true labels, as the engine reads them.

        An encoder of the task's layout remembers the strings of the pieces before.
        """
        corpus = corpus.with_columns(self.layout.columns)
        if self.direction == "backward":
            corpus = corpus.backward()
        encoded = (encoder or Encoder(self.layout)).encode(corpus.columns, corpus.offsets, corpus.extra)
        more = self.more_columns(corpus)
        if numbers is None:
            return make_examples(self.space, encoded, corpus.offsets, more=more)
        actions = self.actions_of(numbers, corpus.offsets)
        cost_to_go, spans = None, None
        if self.scheme is not None:
            cost_to_go = completions(actions, corpus.offsets, self.machine, self.loss)
        if self.loss == "f1":
            begins, ends = span_marks(actions, corpus.offsets, self.machine)
            lasts = np.full(begins.size, -1, np.int64)
            _find_lasts(begins, ends, corpus.offsets, lasts)
            spans = {"begins": begins, "ends": ends, "lasts": lasts}
        return make_examples(self.space, encoded, corpus.offsets, actions, cost_to_go, spans, more)


def tag_positions(states: Any) -> np.ndarray:
    """The word that is tagged next, and the tags before it, [state, 1 + BEFORE]."""
    made: np.ndarray = states.cells([POSITION, *range(LAST, LAST + BEFORE)])
    return made


def in_turn(scheme: str | None, labels: Sequence[str], grown: Sequence[int]) -> tuple[list[str], int]:
    """The labels of a scheme in the order in which they were added, and how many there were at first.

    >>> in_turn(None, ["b", "c", "a"], [2])
    (['b', 'c', 'a'], 2)
    """
    bounds = [0, *grown, len(labels)]
    whole = all(type(n) is int for n in grown) and all(a < b for a, b in pairwise(bounds)) and len(bounds) < MOST_TIMES
    if grown and not whole:
        raise LolsError(f"the labels cannot have grown from {shown(list(grown))} to {len(labels)}")
    made: list[str] = []
    first = 0
    for end in bounds[1:]:
        known = set(made)
        made += [label for label in make_labels(scheme, labels[:end]) if label not in known]
        first = first or len(made)
    return made, first


def _turned(
    numbers: np.ndarray, offsets: np.ndarray, labels: Sequence[str], scheme: str
) -> tuple[np.ndarray, list[str], str]:
    """Span labels from the end to the beginning, in a scheme that marks both ends: they change places."""
    both = make_labels("bilou", labels)
    made = convert_columns(numbers, offsets, labels, both, scheme, "bilou")[backward(offsets)]
    ends = {"B": "L", "L": "B"}
    numbers_of = {label: number for number, label in enumerate(both)}
    other = [numbers_of[ends.get(label[0], label[0]) + label[1:]] for label in both]
    return np.array(other, np.int64)[made], both, "bilou"


@kernel
def _find_lasts(begins, ends, offsets, lasts):
    """For a word that begins a span, the place in its sentence of the span's last word."""
    for k in range(offsets.size - 1):
        at = -1
        for t in range(offsets[k], offsets[k + 1]):
            if begins[t] >= 0:
                at = t
            if ends[t] and at >= 0:
                lasts[at] = t - offsets[k]
