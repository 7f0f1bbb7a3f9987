"""A parsing task: templates, columns, relations, roots and loss; all of it goes into the model file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.examples import Examples, Items, Ragged, Scalar
from lols.contract.space import Reference, SearchSpace, Sizes
from lols.errors import ConfigurationError
from lols.kernels.hashing import mix
from lols.kernels.kernel import kernel
from lols.tasks.parsing.defaults import default_parsing_templates
from lols.tasks.parsing.space import ANY, FIELDS, FUNCTIONS, HEADER, LABEL, LEFT, NEVER, ONLY, RIGHT, SHIFT
from lols.tasks.parsing.teachers import references
from lols.tasks.parsing.templates import ParsingTemplate, TemplatePlace, arrays, parse_parsing_templates
from lols.tasks.parsing.treebank import Relations, Trees
from lols.tasks.problem import Defaults
from lols.tasks.tokens.attributes import NOTHING, Attribute, attribute_values, hash_text
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.task import TokenTask
from lols.training.model import Model

HASHING = 1  # to be raised when features get other numbers: models trained before would not know them again
LABELLINGS = ("joint", "second", "none")
NETWORK = "network"  # arcs are decided by the search, and their relations by the network afterwards
ROOTS = ("one", "many")


class ParsingTask(TokenTask):
    """What a parser's search space is made of.

    Parameters
    ----------
    relations
        The names of the relations.
    right, left
        The numbers of those that ReduceRight and ReduceLeft may give.
    root
        The number of the root's relation.
    columns, templates, more_templates
        The columns of the input; the lines of the templates, None for the default ones; and further lines.
    labelling
        `"joint"`: an action is an arc with its relation; `"second"`: the relation is a decision of its own after the
        arc; `"none"`: arcs only.
    roots
        `"one"` or `"many"` per sentence.

    """

    # The rate was chosen on the last tenth of the WSJ sample and on EWT's dev part. A learner's state would take
    # several times the memory of the weights.
    DEFAULTS = Defaults(rate=0.03, keeps=False)
    DECISIONS = "heads"
    TEMPERATURE = 0.5  # of the beam search
    OPTIONS = ("columns", "templates", "labelling", "roots")
    FUNCTIONS: ClassVar[Mapping[str, Any]] = FUNCTIONS  # of the space

    def __init__(
        self,
        relations: Sequence[str],
        right: Sequence[int],
        left: Sequence[int],
        root: int,
        *,
        columns: Sequence[str] = ("word",),
        templates: Sequence[str] | None = None,
        more_templates: Sequence[str] = (),
        labelling: str = "joint",
        roots: str = "one",
    ):
        if labelling not in (*LABELLINGS, NETWORK):
            raise ConfigurationError(f"unknown labelling '{labelling}': choose {', '.join(LABELLINGS)}")
        if roots not in ROOTS:
            raise ConfigurationError(f"unknown roots '{roots}': choose {', '.join(ROOTS)}")
        self.relations, self.right, self.left, self.root = list(relations), list(right), list(left), root
        count = len(self.relations)
        if not self.right or not all(0 <= r < count for r in (*self.right, *self.left, root)):
            raise ConfigurationError("a relation is not among those named, or there is none for ReduceRight")
        if any(len(set(numbers)) < len(numbers) for numbers in (self.right, self.left)):
            raise ConfigurationError("a relation is named twice for ReduceRight or ReduceLeft")
        self.columns, self.labelling, self.roots = tuple(columns), labelling, roots
        if templates is None:
            templates = default_parsing_templates(self.columns, labelled=labelling != "none")
        self.templates = [*templates, *more_templates]
        parsed = self.parsed_templates()
        self.search = [t for t in parsed if t.place is None]
        self.viewed: dict[TemplatePlace, list[ParsingTemplate]] = {}
        for template in parsed:
            if template.place is not None:
                self.viewed.setdefault(template.place, []).append(template)

    def parsed_templates(self) -> list[ParsingTemplate]:
        """The templates, parsed."""
        return parse_parsing_templates(self.templates, self.columns)

    # --- the space ---

    @cached_property
    def actions(self) -> list[tuple[int, int, int]]:
        """Every action: its kind, its relation, and whether it may, must or must not take the root as head."""
        many = self.roots == "many"
        if self.labelling == "joint":
            made = [(SHIFT, 0, ANY), *((RIGHT, r, ANY) for r in self.right), *((LEFT, r, NEVER) for r in self.left)]
            made += [(LEFT, self.root, ONLY)] if many else []
        else:
            plain = ANY if many else NEVER
            made = [(SHIFT, 0, ANY), (RIGHT, 0, ANY), (LEFT, 0, plain)]
            if self.labelling == "second":
                made += [(LABEL, r, ANY) for r in range(len(self.relations))]
        return made

    @cached_property
    def sources(self) -> dict[tuple[str, Attribute], int]:
        """The attributes that templates look at, numbered."""
        made: dict[tuple[str, Attribute], int] = {}
        for template in [*self.search, *(t for group in self.viewed.values() for t in group)]:
            for atom in template.atoms:
                if atom.attribute is not None:
                    made.setdefault((atom.column, atom.attribute), len(made))
        return made

    @cached_property
    def classes(self) -> list[tuple[str, ...]]:
        """The different sets of templates that places have of their own."""
        return list(dict.fromkeys(_signature(group) for group in self.viewed.values()))

    @cached_property
    def space(self) -> SearchSpace:
        """The search space."""
        made = arrays(self.search, self.sources)
        places = {TemplatePlace(*p): k for k, p in enumerate(made["places"].tolist())}
        at = [places.setdefault(p, len(places)) for p in self.viewed]
        made["places"] = np.array(list(places), np.int64).reshape(-1, 4)
        settings = made | {
            "kinds": np.array([a[0] for a in self.actions], np.int64),
            "relations": np.array([a[1] for a in self.actions], np.int64),
            "root_at": np.array([a[2] for a in self.actions], np.int64),
            "item_places": np.array(at, np.int64),
            "item_classes": np.array([self.classes.index(_signature(g)) for g in self.viewed.values()], np.int64),
            "classes": len(self.classes),
            "width": len(self.sources),
            "labels_later": self.labelling == "second",
            "labelled": self.labelling in ("joint", "second"),
            "many_roots": self.roots == "many",
            "root_relation": self.root,
        }
        roles = max(len(self.viewed), 1)
        sizes = Sizes(
            state=lambda x: HEADER + FIELDS * (x.length + 1),
            actions=len(self.actions),
            # The features, and room to compute them in.
            features=max(len(self.search), 1) + made["places"].shape[0] + made["atoms"].shape[0],
            items=roles,
            roles=roles * (3 if self.labelling == "second" else 1),
            steps=self.steps,
        )
        return SearchSpace(
            sizes=sizes, settings=settings, nonnegative=True, name="lols.tasks.parsing", **self.FUNCTIONS
        )

    def steps(self, x: Any) -> int:
        """The number of steps from start to end."""
        return int(self.steps_of(x.length))

    def steps_of(self, lengths: Any) -> Any:
        arcs = np.maximum(lengths - (self.roots == "one"), 0)
        return lengths + arcs * (2 if self.labelling == "second" else 1)

    def references(self) -> dict[str, Reference]:
        """The paper's teachers."""
        return references()

    # --- examples ---

    def examples(self, corpus: Corpus, trees: Trees | None = None, weights: np.ndarray | None = None) -> Examples:
        """Encode sentences; `weights` say how much each word's head counts, 1 unless given."""
        corpus = corpus.with_columns(self.columns)
        offsets = corpus.offsets
        lengths = np.diff(offsets)
        numbers = np.stack([corpus.columns[name].numbers for name in self.columns])
        kinds = _distinct(numbers)
        values = self._values(corpus, numbers, kinds)
        x: dict[str, Ragged | Scalar] = {
            "length": Scalar(lengths),
            "values": Ragged(values[kinds.of].reshape(-1), offsets * values.shape[1]),
            **self.more_columns(corpus),
        }
        y: dict[str, Ragged | Scalar] | None = None
        if trees is not None:
            first, last = np.empty((2, corpus.tokens), np.int64)
            _find_children(trees.heads, offsets, first, last)
            counted = np.ones(corpus.tokens) if weights is None else weights.astype(np.float64)
            columns = {
                "heads": trees.heads,
                "relations": trees.relations,
                "weights": counted,
                "first_child": first,
                "last_child": last,
            }
            y = {name: Ragged(column, offsets) for name, column in columns.items()}
        states, steps = HEADER + FIELDS * (lengths + 1), self.steps_of(lengths)
        items = self._items(values, kinds.of, offsets)
        return Examples.from_columns(self.space, lengths.size, x, y, items, states=states, steps=steps)

    def _values(self, corpus: Corpus, numbers: np.ndarray, kinds: _Kinds) -> np.ndarray:
        """What the attributes of each distinct word are, [kind of word, attribute]."""
        made = np.zeros((kinds.first.size, max(len(self.sources), 1)), np.int64)
        for name in self.columns:
            wanted = [(a, k) for (column, a), k in self.sources.items() if column == name]
            if wanted:
                values = attribute_values(corpus.columns[name].texts, [a for a, _ in wanted])
                own = numbers[self.columns.index(name)][kinds.first]
                made[:, [k for _, k in wanted]] = values[:, own].T
        return made

    def _items(self, values: np.ndarray, kind: np.ndarray, offsets: np.ndarray) -> Items:
        """Every word in every class, and at the end of a sentence one item for places with no word."""
        classes, count = max(len(self.classes), 1), values.shape[0]
        first = offsets * classes + np.arange(offsets.size)
        types = np.full(int(first[-1]), count * classes, np.int64)
        at = np.repeat(first[:-1] - offsets[:-1] * classes, np.diff(offsets)) + np.arange(kind.size) * classes
        for c in range(classes):
            types[at + c] = kind * classes + c
        members = [next(g for g in self.viewed.values() if _signature(g) == s) for s in self.classes]
        lengths = np.array([len(group) for group in members], np.int64)
        keys = np.array([key(placeless(t)) for group in members for t in group], np.int64)
        uses = [[self.sources[a.column, a.attribute] for a in t.atoms if a.attribute] for g in members for t in g]
        bounds = np.cumsum([0, *(len(u) for u in uses)]).astype(np.int64)
        flat = np.array([u for one in uses for u in one], np.int64)
        start = np.empty(count * classes + 2, np.int64)
        ids = np.empty(count * keys.size + 1, np.int64)
        used = _item_features(values, lengths, keys, bounds, flat, mix(hash_text("nothing here"), 0), start, ids)
        ids = ids[:used].copy()
        return Items(first, types, start, ids, np.ones(ids.size, np.float32), 1, count * classes + 1)

    # --- results ---

    def replay(self, actions: np.ndarray, offsets: np.ndarray) -> tuple[Trees, np.ndarray]:
        """The projective trees that the actions of all sentences build, and the step that decided on each word's head.

        Steps are counted over all sentences. That of a single root, which no step attaches, is the last one of its
        sentence: it leaves the word alone.
        """
        lengths = np.diff(offsets)
        steps = self.steps_of(lengths)
        heads, relations = np.full(int(offsets[-1]), -1, np.int64), np.full(int(offsets[-1]), self.root, np.int64)
        decided = np.repeat(np.cumsum(steps) - 1, lengths)
        kinds, given = (self.space.settings[name] for name in ("kinds", "relations"))
        stack = np.empty(int(lengths.max(initial=0)), np.int64)
        later = self.labelling == "second"
        _build(actions, steps, offsets, kinds, given, later, self.root, stack, heads, relations, decided)
        return Trees(heads, relations), decided

    def trees(self, actions: np.ndarray, offsets: np.ndarray) -> Trees:
        """The projective trees alone."""
        return self.replay(actions, offsets)[0]

    def restored(self, trees: Trees, offsets: np.ndarray) -> Trees:
        """Trees as the treebank has them: lifted words lowered, relations as numbered in `plain`."""
        return self._named.restore(trees, offsets)

    def parses(self, actions: np.ndarray, offsets: np.ndarray) -> Trees:
        """The trees that the actions of all sentences build, as the treebank has them."""
        return self.restored(self.trees(actions, offsets), offsets)

    def parsing(self, corpus: Corpus, beam: int = 1) -> Callable[[Model], Trees]:
        """What parses these sentences with a model, again and again; a beam of 1 is greedy."""
        examples = self.examples(corpus)
        return lambda model: self.parses(self.found_actions(model, examples, beam), corpus.offsets)

    def found_actions(self, model: Model, examples: Examples, beam: int) -> np.ndarray:
        """The actions of all sentences, one after the other."""
        if beam == 1:
            return model.run(examples).all_actions()
        from lols.engine.beam import beam_search

        how: Any = {"score": "surprise", "temperature": self.TEMPERATURE}
        found = beam_search(model, examples, width=beam, best=1, **how)
        return np.concatenate([found.actions(k)[0] for k in range(len(examples))]).astype(np.int64)

    @property
    def plain(self) -> list[str]:
        """The names of the relations in results."""
        return self._named.plain

    @cached_property
    def _named(self) -> Relations:
        return Relations(self.relations)

    # --- model files ---

    def describe(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays, for model files."""
        names = ("relations", "right", "left", "root", *self.OPTIONS)
        made = {name: getattr(self, name) for name in names} | {"columns": list(self.columns), "hashing": HASHING}
        return made, self.tensors()

    def examples_of(self, data: Any, *, truth: bool = True) -> Examples:
        """Sentences without trees."""
        return self.examples(data)

    def judged(self, model: Model, examples: Examples, data: Any, chosen: np.ndarray | None = None) -> Any:
        """See `lols.tasks.parsing.confidence`."""
        raise NotImplementedError

    @classmethod
    def from_description(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Self:
        """What `describe` described; anything else is an error."""
        if task["hashing"] != HASHING:
            raise ValueError(
                f"its features are hashed in way {task['hashing']}, and this version of lols knows {HASHING}"
            )
        if not all(isinstance(task[n], list) for n in ("relations", "columns", "templates", "right", "left")):
            raise ValueError("a list in it is not a list")
        strings = [*task["relations"], *task["columns"], *task["templates"], task["labelling"], task["roots"]]
        numbers = [*task["right"], *task["left"], task["root"]]
        if not all(isinstance(s, str) for s in strings) or not all(type(n) is int for n in numbers):
            raise ValueError("its lists are not of strings and numbers")
        options = {name: task[name] for name in cls.OPTIONS}
        options |= cls.stored_vocabulary(task, tensors)
        return cls(task["relations"], task["right"], task["left"], task["root"], **options)


def placeless(template: ParsingTemplate) -> ParsingTemplate:
    """A template without its place, which is a role of the item: the same features serve all places."""
    return template._replace(text=" & ".join(part.split(".", 1)[1] for part in template.text.split(" & ")))


def _signature(group: Sequence[ParsingTemplate]) -> tuple[str, ...]:
    return tuple(placeless(t).text for t in group)


class _Kinds(NamedTuple):
    """Distinct words: the first token of each, and the kind of every token."""

    first: np.ndarray
    of: np.ndarray


def _distinct(numbers: np.ndarray) -> _Kinds:
    """Number the words that are different in some column."""
    code = numbers[0]
    for row in numbers[1:]:
        code = np.unique(code * (int(row.max(initial=0)) + 1) + row, return_inverse=True)[1]
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return _Kinds(first, of)


@kernel
def _find_children(heads, offsets, first, last):
    """The first and the last dependent of every word; none is a first beyond the end and a last before the start."""
    for k in range(offsets.size - 1):
        low, high = offsets[k], offsets[k + 1]
        for t in range(low, high):
            first[t], last[t] = high - low, -1
        for t in range(low, high):
            if heads[t] >= 0:
                if last[low + heads[t]] < 0:
                    first[low + heads[t]] = t - low
                last[low + heads[t]] = t - low


@kernel
def _item_features(values, lengths, keys, bounds, uses, nothing, start, ids):
    """The features of every kind of word in every class, and one for no word; how many there are."""
    n = 0
    for kind in range(values.shape[0]):
        t = 0
        if lengths.size == 0:
            start[kind] = 0
        for c in range(lengths.size):
            start[kind * lengths.size + c] = n
            for _ in range(lengths[c]):
                identity = keys[t]
                for k in range(bounds[t], bounds[t + 1]):
                    value = values[kind, uses[k]]
                    identity = mix(identity, value) if value != NOTHING and identity != NOTHING else NOTHING
                if identity != NOTHING:
                    ids[n] = identity
                    n += 1
                t += 1
    start[start.size - 2] = n
    ids[n] = nothing
    start[start.size - 1] = n + 1
    return n + 1


@kernel
def _build(actions, steps, offsets, kinds, given, labels_later, root, stack, heads, relations, decided):
    """Replay actions; the stack has room for the words of the longest sentence."""
    at = 0
    for k in range(offsets.size - 1):
        low, length = offsets[k], offsets[k + 1] - offsets[k]
        depth, front, pending = 0, 0, 0
        for _ in range(steps[k]):
            kind, relation = kinds[actions[at]], given[actions[at]]
            at += 1
            if kind == SHIFT:
                stack[depth] = front
                depth += 1
                front += 1
                continue
            if labels_later and kind != LABEL:
                pending = kind
                continue
            depth -= 1
            word = low + stack[depth]
            decided[word] = at - 2 if kind == LABEL else at - 1
            if (pending if kind == LABEL else kind) == RIGHT:
                heads[word] = stack[depth - 1]
            else:
                heads[word] = front if front < length else -1
            relations[word] = relation if heads[word] >= 0 else root
