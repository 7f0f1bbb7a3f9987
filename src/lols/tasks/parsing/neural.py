"""The parser's task for a network: words instead of templates, and labels that the network gives to the arcs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from lols.contract.choosing import runs
from lols.kernels.hashing import mix
from lols.kernels.kernel import kernel
from lols.tasks.parsing.space import (
    DEPTH,
    FIELDS,
    FUNCTIONS,
    HEAD,
    HEADER,
    HIGH,
    LOW,
    NEXT,
    RELATION,
    RIGHT,
    ROOT,
    SHIFT,
    STACK,
    cell,
)
from lols.tasks.parsing.task import NETWORK, ParsingTask
from lols.tasks.parsing.templates import ParsingTemplate
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.vocabulary import NetworkVocabulary
from lols.training.model import Model

PLACES = 4  # that the network looks at: three words of the stack, and the front of the buffer
TOGETHER = 2048  # sentences that are parsed at a time, at most as many as a network encodes


def stack_step(x, s, a):
    """A step without what only templates look at; each word of the stack has a hash of the stack up to it."""
    kind, depth = x.kinds[a], s[DEPTH]
    if kind == SHIFT:
        word = s[NEXT]
        code = mix(stack_hash(s, depth), word)
        s[cell(depth, STACK)] = word
        s[cell(depth, LOW)] = (code & 4294967295) - 2147483648
        s[cell(depth, HIGH)] = code >> 32
        s[NEXT], s[DEPTH] = word + 1, depth + 1
        return
    dependent = s[cell(depth - 1, STACK)]
    s[DEPTH] = depth - 1
    s[cell(dependent, RELATION)] = x.relations[a]
    if kind == RIGHT:
        s[cell(dependent, HEAD)] = s[cell(depth - 2, STACK)] + 2
    else:
        s[cell(dependent, HEAD)] = s[NEXT] + 2 if s[NEXT] < x.length else ROOT


def stack_hash(s, depth):
    """A hash of the lowest words of the stack."""
    code: Any = np.int64(0)
    if depth > 0:
        code = np.int64(s[cell(depth - 1, HIGH)]) * 4294967296 + s[cell(depth - 1, LOW)]
    return code


def stack_key(x, s):
    """What a network sees of a state, and all that its future depends on: the stack and the front of the buffer."""
    return mix(stack_hash(s, s[DEPTH]), s[NEXT])


class NeuralParsingTask(ParsingTask):
    """A parsing task without templates, whose examples have numbers of words, characters and given tags."""

    TEMPERATURE = 1.0  # scores are logarithms of probabilities
    FUNCTIONS: ClassVar[Mapping[str, Any]] = FUNCTIONS | {"key": stack_key, "step": stack_step}

    def __init__(self, *arguments: Any, vocabulary: NetworkVocabulary, **options: Any):
        super().__init__(*arguments, **options | {"templates": []})
        self.vocabulary = vocabulary

    def parsed_templates(self) -> list[ParsingTemplate]:
        """None: the network looks at words."""
        return []

    def parsing(self, corpus: Corpus, beam: int = 1) -> Callable[[Model], Trees]:
        """What parses these sentences with a model; the network is asked for labels while it remembers the words.

        Sentences of about the same length are parsed together.
        """
        order = np.argsort(-np.diff(corpus.offsets), kind="stable")
        chosen = [order[low : low + TOGETHER] for low in range(0, order.size, TOGETHER)]
        corpora = [corpus.select(numbers) for numbers in chosen]
        parts = [(part.offsets, self.examples(part)) for part in corpora]
        whole = np.concatenate([runs(corpus.offsets, numbers)[0] for numbers in chosen])

        def parsed(model: Model) -> Trees:
            found = []
            for offsets, examples in parts:
                policy = model.policy.begin(examples, np.arange(len(examples)))
                trees = self.trees(self.found_actions(model.replaced(policy=policy), examples, beam), offsets)
                with policy.computing():
                    labels = policy.network.label(policy.memory, trees.heads)
                relations = np.where(trees.heads >= 0, labels, self.root)
                found.append(self._named.restore(Trees(trees.heads, relations), offsets))
            made = Trees(np.empty(whole.size, np.int64), np.empty(whole.size, np.int64))
            for column, parts_of_it in zip(made, zip(*found, strict=True), strict=True):
                column[whole] = np.concatenate(parts_of_it)
            return made

        return parsed

    def network(self, **options: Any) -> Any:
        """A network for the task that has learned nothing."""
        from lols.torch.sentences import ArcNetwork, NetworkSizes

        assert self.vocabulary is not None
        begin = {"seed": options.pop("seed", 0), "folder": self.vocabulary.folder}
        labels = len(self.relations) if self.labelling == NETWORK else 0
        sizes = NetworkSizes(**self.vocabulary.sizes(), **options)
        actions = len(self.actions)
        made = ArcNetwork(sizes, actions=actions, labels=labels, places=PLACES, positions=positions, **begin)
        self.vocabulary.begin(made.encoder)
        return made


def positions(states: Any) -> np.ndarray:
    """The words at the places that the network looks at, [state, place]; -1 where there is none."""
    made = np.empty((len(states), PLACES), np.int64)
    _find_positions(states.memory, states.rows, states.example, states.examples.x.length.values, made)
    return made


@kernel
def _find_positions(memory, rows, example, lengths, out):
    """The top three words of the stack, the deepest first, and the front of the buffer."""
    for i in range(out.shape[0]):
        r = rows[i]
        depth, front = memory[r, DEPTH], memory[r, NEXT]
        for k in range(3):
            at = depth - 3 + k
            out[i, k] = memory[r, HEADER + at * FIELDS + STACK] if at >= 0 else -1
        out[i, 3] = front if front < lengths[example[i]] else -1
