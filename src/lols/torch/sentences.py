"""Networks on sentences: an encoder of words, characters and given tags, a parser's and a tagger's scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from lols.contract.whole_numbers import check_whole
from lols.engine.states import States
from lols.errors import ConfigurationError, shown
from lols.torch.batches import ExampleBatch, StateBatch, on_device
from lols.torch.networks import mlp
from lols.torch.pretrained import RATE, PretrainedEncoder
from lols.torch.recurrent import Dropout, SentenceLSTM

MOST_WIDTH, MOST_LAYERS = 1 << 12, 16
UNKNOWN = 1  # the number of what is not in a vocabulary; 0 is nothing
MOST_ARCS = 1 << 14  # whose labels are scored at a time
ALIKE = 128  # numbers of words whose characters are read at a time on a GPU are multiples of it
DROPPED = 0.1  # the share of words that are unknown in learning, so that there is something to learn of such


@dataclass(frozen=True, kw_only=True)
class NetworkSizes:
    """How large a network on sentences is: the numbers of distinct words, characters and given tags, and its layers.

    Parameters
    ----------
    words
        Distinct words, with two numbers for nothing and for what is unknown.
    characters
        Distinct characters, likewise.
    given
        For each further column, its distinct values, likewise.
    longest
        The most characters of a word that are looked at.
    width
        The width of the LSTM, in each direction.
    layers
        Its layers.
    dropout
        The share of units that are left out in learning.
    vectors
        How many vectors were learned elsewhere, and their length.
    encoder
        The description of a pretrained encoder.

    """

    words: int
    characters: int
    given: Sequence[int] = ()
    longest: int = 18  # characters of a word that are looked at
    width: int = 400
    layers: int = 3
    dropout: float = 0.33
    vectors: tuple[int, int] | None = None  # how many that were learned elsewhere, and their length
    encoder: str | None = None  # the description of a pretrained encoder

    def __post_init__(self) -> None:
        check_whole("width", self.width, most=MOST_WIDTH)
        check_whole("layers", self.layers, most=MOST_LAYERS)
        if not isinstance(self.dropout, Real) or not 0.0 <= self.dropout < 1.0:
            raise ConfigurationError(f"dropout is {shown(self.dropout)}: give a share from 0 to below 1")

    @property
    def columns(self) -> int:
        """How many numbers describe a word: its form in the data set, its word, given tags, vector, characters."""
        return self.before + self.longest

    @property
    def before(self) -> int:
        """How many of them come before the characters."""
        return 2 + len(self.given) + (self.vectors is not None)


class EncodedSentences(NamedTuple):
    """Words of a batch, sentence after sentence."""

    words: torch.Tensor  # [word, feature]
    begins: np.ndarray  # [sentence]: its first word
    lengths: np.ndarray


class WordEncoder(nn.Module):
    """Embeddings of words, a convolution over their characters, embeddings of given tags, and a BiLSTM over it all.

    There can be vectors that were learned elsewhere, which stay as they are, and a pretrained encoder.

    Parameters
    ----------
    sizes
        The sizes of the encoder.
    folder
        Where the weights of a pretrained encoder are when learning begins.

    """

    def __init__(self, sizes: NetworkSizes, folder: str | None = None):
        super().__init__()
        self.sizes = sizes
        self.word = nn.Embedding(sizes.words, 128, padding_idx=0)
        self.character = nn.Embedding(sizes.characters, 48, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(48, 64, width, padding=width // 2) for width in (3, 5))
        self.given = nn.ModuleList(nn.Embedding(count, 48, padding_idx=0) for count in sizes.given)
        self.dropout = Dropout(sizes.dropout)
        self.vectors: nn.Embedding | None = None
        self.pretrained: PretrainedEncoder | None = None
        if sizes.vectors is not None:
            self.vectors = nn.Embedding(*sizes.vectors, padding_idx=0).requires_grad_(False)
            self.of_vectors = nn.Linear(sizes.vectors[1], 128)
        if sizes.encoder is not None:
            self.pretrained = PretrainedEncoder(sizes.encoder, folder)
            self.of_pretrained = nn.Linear(self.pretrained.width, 256)
        inputs = 256 + 48 * len(sizes.given) + 128 * (sizes.vectors is not None) + 256 * (sizes.encoder is not None)
        self.lstm = SentenceLSTM(inputs, sizes.width, sizes.layers, sizes.dropout)

    def forward(self, batch: ExampleBatch) -> EncodedSentences:
        """Encode the words of sentences."""
        rows = batch.array("network").reshape(-1, self.sizes.columns)
        lengths = batch.lengths("network") // self.sizes.columns
        _, first, form = np.unique(rows[:, 0], return_index=True, return_inverse=True)
        before = self.sizes.before
        numbers = on_device(rows[:, 1:before], batch.device)
        spelled = self._spelled(on_device(rows[first, before:], batch.device))
        word = numbers[:, 0]
        if self.training:
            word = torch.where((torch.rand_like(word, dtype=torch.float32) < DROPPED) & (word > 0), UNKNOWN, word)
        parts = [self.word(word), spelled[on_device(form, batch.device)]]
        parts += [embedding(numbers[:, 1 + k]) for k, embedding in enumerate(self.given)]
        begins = np.cumsum(lengths) - lengths
        if self.vectors is not None:
            parts.append(self.of_vectors(self.vectors(numbers[:, -1])))
        if self.pretrained is not None:
            parts.append(self.of_pretrained(self.pretrained(batch, len(rows), begins)))
        words = self.lstm(self.dropout(torch.cat(parts, 1)), lengths)
        return EncodedSentences(self.dropout(words), begins, lengths)

    def take_vectors(self, values: np.ndarray) -> None:
        """Use these vectors, [word, number]."""
        if self.vectors is not None:
            with torch.no_grad():
                self.vectors.weight[1:] = torch.from_numpy(values).to(self.vectors.weight.device)

    def groups_of(self, network: nn.Module) -> list[Any]:
        """The parameters of a network with this encoder; those of a pretrained one have a lower rate."""
        if self.pretrained is None:
            return [p for p in network.parameters() if p.requires_grad]
        own = {id(p) for p in self.pretrained.parameters()}
        others = [p for p in network.parameters() if p.requires_grad and id(p) not in own]
        return [{"params": others}, {"params": list(self.pretrained.parameters()), "lr": RATE}]

    def _spelled(self, characters: torch.Tensor) -> torch.Tensor:
        """The embeddings of distinct words by their characters."""
        count = characters.shape[0]
        if characters.is_cuda:  # where a convolution of a size that was not seen before takes long to plan
            characters = functional.pad(characters, (0, 0, 0, -count % ALIKE))
        embedded = self.character(characters).transpose(1, 2)
        return torch.cat([convolution(embedded).amax(2) for convolution in self.convolutions], 1)[:count]


class ArcMemory(NamedTuple):
    """What the scores of a batch's states are made of."""

    sentences: EncodedSentences
    places: torch.Tensor  # [(word, place), feature], and at the end what stands for no word


class ArcNetwork(nn.Module):
    """Scores the actions of a transition-based parser by the words at some places of stack and buffer.

    The label of an arc is a choice of its own, by a biaffine function of both words. It is learned beside the search.

    Parameters
    ----------
    sizes
        The sizes of the encoder.
    actions
        How many actions there are.
    labels
        How many labels of arcs there are; none are learned if there are fewer than two.
    places
        How many places of a state are looked at.
    positions
        From states to the words at these places: an array [state, place], -1 for none.
    hidden
        The size of hidden layers.
    seed
        Of the initial weights.
    folder
        Where the weights of a pretrained encoder are, if there is one.

    """

    def __init__(
        self,
        sizes: NetworkSizes,
        *,
        actions: int,
        labels: int,
        places: int,
        positions: Callable[[States], np.ndarray],
        hidden: int = 256,
        seed: int = 0,
        folder: str | None = None,
    ):
        super().__init__()
        self.inputs, self.places = positions, places
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = WordEncoder(sizes, folder)
            self.parts = nn.Linear(2 * sizes.width, places * hidden)
            self.nothing = nn.Parameter(torch.zeros(places, hidden))
            self.layers = mlp([hidden, hidden, actions])
            self.labels = LabelScorer(2 * sizes.width, labels) if labels > 1 else None

    def parameter_groups(self) -> list[Any]:
        """The parameters, for an optimiser."""
        return self.encoder.groups_of(self)

    def encode(self, examples: ExampleBatch) -> ArcMemory:
        """Encode sentences, and what each word contributes at each place."""
        found = self.encoder(examples)
        parts = self.parts(found.words).view(found.words.shape[0] * self.places, -1)
        return ArcMemory(found, torch.cat([parts, self.nothing.to(parts.dtype)]))

    def forward(self, memory: ArcMemory, states: StateBatch) -> torch.Tensor:
        """The score of each action."""
        # all places of a word are in one table, so that the sum over a state's places is one call
        begins, there = memory.sentences.begins, states.given >= 0
        word = np.where(there, states.given + begins[states.rows][:, np.newaxis], memory.sentences.words.shape[0])
        index = on_device(word * self.places + np.arange(self.places), states.device)
        seen = functional.embedding_bag(index, memory.places, mode="sum")
        scores: torch.Tensor = self.layers(seen.relu())
        return scores

    def own_loss(self, examples: ExampleBatch, memory: ArcMemory) -> torch.Tensor | None:
        """The log-loss of the labels of true arcs."""
        if self.labels is None:
            return None
        dependent, head = _arcs(examples.array("y.heads"), memory.sentences)
        labels = examples.array("y.relations")[dependent]
        known = labels >= 0  # others are not labels of the network
        if not known.any():
            return None
        dependent, head, labels = dependent[known], head[known], labels[known]
        wanted = on_device(labels, examples.device)
        words = memory.sentences.words
        scores = self.labels(words, on_device(dependent, examples.device), on_device(head, examples.device))
        return functional.cross_entropy(scores.float(), wanted)

    @torch.inference_mode()
    def label(self, memory: ArcMemory, heads: np.ndarray) -> np.ndarray:
        """The best label of each word's arc, 0 for the root; heads are counted within a sentence, -1 for the root."""
        found = np.zeros(heads.size, np.int64)
        dependent, head = _arcs(heads, memory.sentences)
        if self.labels is not None and dependent.size:
            best = []
            below, above = self.labels.parts(memory.sentences.words)
            for low in range(0, dependent.size, MOST_ARCS):
                some = (on_device(n[low : low + MOST_ARCS], below.device) for n in (dependent, head))
                best.append(self.labels.between(below, above, *some).argmax(1))
            found[dependent] = torch.cat(best).cpu().numpy()
        return found


def _arcs(heads: np.ndarray, sentences: EncodedSentences) -> tuple[np.ndarray, np.ndarray]:
    """The words with a head that is a word, and these heads."""
    lengths = sentences.lengths
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    dependent = np.flatnonzero(heads >= 0)
    return dependent, heads[dependent] + first[dependent]


class LabelScorer(nn.Module):
    """A biaffine function of a word and its head (Dozat & Manning 2017)."""

    def __init__(self, width: int, labels: int, size: int = 64):
        super().__init__()
        self.dependent, self.head = nn.Linear(width, size), nn.Linear(width, size)
        self.dropout = Dropout(0.33)
        self.weight = nn.Parameter(torch.empty(size + 1, labels, size + 1))
        nn.init.normal_(self.weight, std=1.0 / size)

    def forward(self, words: torch.Tensor, dependent: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        """The score of each label, [arc, label]."""
        return self.between(*self.parts(words), dependent, head)

    def parts(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Words as dependents, and as heads."""
        below = self._with_one(self.dropout(self.dependent(words).relu()))
        return below, self._with_one(self.dropout(self.head(words).relu()))

    def between(
        self, below: torch.Tensor, above: torch.Tensor, dependent: torch.Tensor, head: torch.Tensor
    ) -> torch.Tensor:
        """The scores of arcs between words whose parts are known."""
        size, labels, _ = self.weight.shape
        between = (below[dependent] @ self.weight.view(size, -1)).view(-1, labels, size)
        return torch.bmm(between, above[head][:, :, None])[:, :, 0]

    @staticmethod
    def _with_one(rows: torch.Tensor) -> torch.Tensor:
        return functional.pad(rows, (0, 1), value=1.0)


class TagNetwork(nn.Module):
    """Scores the tags of a word by its encoding and the tags before.

    Parameters
    ----------
    sizes
        The sizes of the encoder.
    actions
        How many tags there are.
    before
        How many tags before a word are looked at.
    positions
        From states to the word and the tags before it, as numbers from 1 on, 0 for none: an array [state, 1 + before].
    hidden
        The size of the hidden layer.
    seed
        Of the initial weights.
    folder
        Where the weights of a pretrained encoder are, if there is one.

    """

    def __init__(
        self,
        sizes: NetworkSizes,
        *,
        actions: int,
        before: int,
        positions: Callable[[States], np.ndarray],
        hidden: int = 256,
        seed: int = 0,
        folder: str | None = None,
    ):
        super().__init__()
        self.inputs = positions
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = WordEncoder(sizes, folder)
            self.word = nn.Linear(2 * sizes.width, hidden)
            self.tags = nn.ModuleList(nn.Embedding(actions + 1, hidden) for _ in range(before))
            for embedding in self.tags:
                nn.init.normal_(embedding.weight, std=0.1)
            self.out = nn.Linear(hidden, actions)

    def parameter_groups(self) -> list[Any]:
        """The parameters, for an optimiser."""
        return self.encoder.groups_of(self)

    def encode(self, examples: ExampleBatch) -> tuple[torch.Tensor, np.ndarray]:
        """Encode sentences: the words' part of the hidden layer, and where each sentence begins."""
        found = self.encoder(examples)
        return self.word(found.words), found.begins

    def forward(self, memory: Any, states: StateBatch) -> torch.Tensor:
        """The score of each tag."""
        words, begins = memory
        index = states.given.astype(np.int64)
        index[:, 0] += begins[states.rows]
        chosen = on_device(index, states.device)
        seen = words[chosen[:, 0]]
        for k, embedding in enumerate(self.tags):
            seen = seen + embedding(chosen[:, 1 + k])
        scores: torch.Tensor = self.out(seen.relu())
        return scores
