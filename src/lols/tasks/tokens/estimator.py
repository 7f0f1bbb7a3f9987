"""What taggers and parsers share: their options, networks, and what a model file keeps of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from lols.contract.threads import Threads, chosen_threads
from lols.errors import ConfigurationError, LolsError, shown
from lols.io.opening import read_text
from lols.io.strings import Interner
from lols.tasks.estimator import Estimator
from lols.tasks.options import INPUT, NETWORK, SEARCH, estimator, option
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import check_options, checked_sentences, string_tensors, strings_of
from lols.tasks.tokens.neural import check_file, check_going_on, check_policy, empty_policy, learn_on, neural_trainer
from lols.tasks.tokens.vocabulary import NetworkVocabulary
from lols.training.algorithms import Algorithm, algorithm
from lols.training.trainer import Trainer

PRUNE = 2
MOST_VALUES = 1 << 12  # of a further column that are kept in the model file, for `lols inspect`
UNNOTED = ("cluster",)  # columns whose values the model file has elsewhere


def read_templates(path: str) -> list[str]:
    """The lines of a file of templates."""
    return read_text(path).splitlines()


@estimator
class TokenOptions(Estimator):
    """An estimator on sentences, whose features are written as templates, or whose policy is a network."""

    # A model file does not have where a network computes, nor templates, which the problem describes.
    NOT_KEPT: ClassVar[tuple[str, ...]] = (*Estimator.NOT_KEPT, "device", "templates", "more_templates")

    task_: Any = field(init=False)  # a `TokenTask`, in a subclass of its own kind
    vocabulary_: list[str] = field(init=False)
    column_values_: dict[str, list[str]] = field(init=False)
    fingerprint_: str = field(init=False)

    templates: Sequence[str] | str | None = option(
        default=None,
        help="Lines of the template language, in place of the default templates.",
        panel=INPUT,
        typed="A file of templates, one per line, in place of the default ones.",
        kind=str | None,
        parse=read_templates,
    )
    more_templates: Sequence[str] | None = option(
        default=None,
        help="Further templates, such as 'word[-1] & word' for a tagger or 'S0.upos & N0.upos' for a parser.",
        panel=INPUT,
        flag="--template",
        typed="A further template, such as 'word[-1] & word' or 'S0.upos & N0.upos'; may be repeated.",
        kind=list[str] | None,
    )
    prune: int | str | None = option(
        default="auto",
        help="Roll out only this many actions that the learner prefers, and the reference's; None rolls out all, as in "
        "Algorithm 1. auto is 2 with the optimal reference and the hinge, else None.",
        panel=SEARCH,
        typed="Roll out only this many actions that the learner prefers, and the reference's; 0 for all, as in "
        "Algorithm 1. By default 2 with the optimal reference and the hinge, else all.",
        kind=int | None,
        initial=None,
        parse=lambda count: count or None,
    )
    policy: str = option(
        default="linear",
        help="linear, on templates; or neural, on words, characters and given tags, which needs PyTorch: "
        "pip install lols[torch].",
        panel=NETWORK,
        common=True,
    )
    device: str = option(
        default="auto",
        help="Where a neural policy computes: cpu, cuda, or auto for a GPU if there is one.",
        panel=NETWORK,
    )
    precision: str = option(
        default="float32",
        help="bfloat16 lets a neural policy compute in mixed precision, which is faster on a GPU.",
        panel=NETWORK,
    )
    width: int = option(default=400, help="The width of a neural policy's BiLSTM, in each direction.", panel=NETWORK)
    layers: int = option(default=3, help="The layers of a neural policy's BiLSTM.", panel=NETWORK)
    vectors: str | None = option(
        default=None,
        help="A file of word vectors for a neural policy: text with a word and its numbers on each line, or NAME.npy "
        "with the words in NAME.txt. The model file keeps what it needs of them.",
        panel=NETWORK,
    )
    encoder: str | None = option(
        default=None,
        help="A folder with an encoder of Hugging Face that a neural policy reads sentences with and tunes; needs "
        "pip install lols[transformers]. The model file has its weights.",
        panel=NETWORK,
    )
    dropout: float = option(
        default=0.33, help="The share of a neural policy's units that are left out in learning.", panel=NETWORK
    )
    steps: int | None = option(
        default=None,
        help="How many steps a neural policy's optimiser takes for each batch of sentences; by default one for 64 of "
        "them, or for fewer if there are few sentences and passes.",
        panel=NETWORK,
    )

    def template_lines(self) -> dict[str, Any]:
        """The templates as a problem takes them: lines or None for the default ones, and further lines."""
        lines = self.templates.splitlines() if isinstance(self.templates, str) else self.templates
        return {"templates": lines, "more_templates": self.more_templates or ()}

    # --- algorithm and policy ---

    @property
    def is_linear(self) -> bool:
        """Whether the policy is linear."""
        return self.policy == "linear"

    def _pruned(self, chosen: Algorithm) -> Algorithm:
        # Under another teacher the best action may be neither the teacher's nor one that the learner likes yet, and a
        # learner that starts anew likes nothing yet.
        fits = self.learner == "hinge" and self.reference == "optimal" and not chosen.restart
        prune: Any = (PRUNE if fits else None) if self.prune == "auto" else self.prune
        if prune is not None and chosen.roll_out in ("mixture", "learned"):
            return algorithm(chosen, prune=prune)
        if prune is not None and self.prune != "auto":
            raise ConfigurationError(f"prune has no effect: roll-outs are by {chosen.roll_out}, not by the learner")
        return chosen

    def _algorithm(self) -> str | Algorithm:
        """The algorithm that is meant; under a poor teacher, a network learns from a fixed mixture.

        With `beta="auto"`, a network that has imitated the teacher at first looks no better than it, and stays so.
        """
        chosen = super()._algorithm()
        adapted = self.algorithm == "auto" and isinstance(chosen, Algorithm)
        return "lols" if adapted and not self.is_linear else chosen

    def _trainer(self, problem: Any, examples: int | None = None) -> Trainer:
        check_policy(self)
        if self.is_linear:
            return super()._trainer(problem)
        return neural_trainer(self, problem, int(examples or 0))

    def network_vocabulary(self, corpus: Corpus) -> NetworkVocabulary:
        """What a network knows of the strings of a corpus, and what was learned elsewhere."""
        columns = [name for name in corpus.columns if name != WORD]
        return NetworkVocabulary.of(corpus, columns, vectors=self.vectors, encoder=self.encoder)

    def threads_for(self, threads: Threads) -> int:
        """How many threads may share the policy: a network is used by one, and has its own threads."""
        return chosen_threads(threads) if self.is_linear else 1

    def _check_going_on(self) -> None:
        check_going_on(self)

    def _stream_for(self, problem: Any, places: np.ndarray | None) -> Any:
        if self.is_linear:
            return super()._stream_for(problem, places)
        check_policy(self)
        if self.__sklearn_is_fitted__() and self._stream is None:
            check_going_on(self)
            self._say_from_weights()
        return learn_on(self, problem)

    def _empty_policy(self, problem: Any) -> Any:
        return None if self.is_linear else empty_policy(self, problem)

    # --- sentences ---

    def _corpus(self, X: Sequence[Any]) -> Corpus:
        return corpus_of(checked_sentences(X))

    def note_strings(self, corpus: Corpus, *, anew: bool) -> None:
        """Note the words and the values of further columns; what is known already takes no time."""
        self.note_values({name: column.texts.strings() for name, column in corpus.columns.items()}, anew=anew)

    def note_values(self, columns: Mapping[str, list[str]], *, anew: bool) -> None:
        """The same, for the strings of each column."""
        given = {name: values for name, values in columns.items() if name not in UNNOTED}
        words = given.pop(WORD, [])
        if anew or not hasattr(self, "vocabulary_"):
            self.vocabulary_, self.column_values_ = [], {}
        if anew or len(vars(self).get("_words", ())) != len(self.vocabulary_) or not self.vocabulary_:
            self._words = set(self.vocabulary_)
        self.vocabulary_ += [w for w in words if w not in self._words]
        self._words.update(words)
        for name, values in given.items():
            seen = self.column_values_.get(name, [])
            self.column_values_[name] = list(dict.fromkeys([*seen, *values]))
        self.column_values_ = {n: v for n, v in self.column_values_.items() if len(v) <= MOST_VALUES}
        self._note_files()

    def _note_files(self) -> None:
        """Note the files of what was learned elsewhere: they cannot be exchanged later on."""
        self.learned_elsewhere_ = {"vectors": self.vectors, "encoder": self.encoder}

    # --- files ---

    @property
    def used_columns(self) -> list[str]:
        """The columns beside the words that the model was trained with."""
        return [name for name in self.task_.columns if name != WORD]

    def asked(self, verb: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Split the options of a verb; a column that the model was not trained with has no effect."""
        check_use(given, self.used_columns)
        return super().asked(verb, given)

    def prepare(self) -> None:
        """Read more strings than a new table has room for."""
        Interner().grow()

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A fingerprint of the data, the words, and the values of further columns."""
        tensors = string_tensors("vocabulary", self.vocabulary_)
        for name, values in self.column_values_.items():
            tensors |= string_tensors(f"column.{name}", values)
        return {"fingerprint": self.fingerprint_}, tensors

    @classmethod
    def _stored_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        check_options(options)
        if options.get("policy", "linear") not in ("linear", "neural"):
            raise ValueError(f"the policy is {shown(options['policy'])}")
        return dict(options)

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        if self.is_linear:
            self.templates = self.task_.templates
        self.device = "auto"
        self.fingerprint_ = str(task["fingerprint"])
        self.vocabulary_ = strings_of("vocabulary", tensors)
        names = [name for name in self.task_.columns if f"column.{name}" in tensors]
        self.column_values_ = {name: strings_of(f"column.{name}", tensors) for name in names}
        self._note_files()

    def _stored_policy(self, tensors: Mapping[str, np.ndarray]) -> Any:
        if not self.is_linear:
            check_file(self, self.task_, tensors)
        return super()._stored_policy(tensors)


def check_use(given: Mapping[str, Any], used: Sequence[str]) -> None:
    """Raise an error if a column is named that a model does not use."""
    unknown = next((name for name in given.get("use") or () if name not in used), None)
    if unknown is not None:
        known = f"the model uses {', '.join(used)}" if used else "the model uses words only"
        raise ConfigurationError(f"--use {unknown} has no effect: {known}")


def check_words(corpus: Corpus) -> None:
    """Raise an error if there is nothing to evaluate on."""
    if corpus.tokens == 0:
        raise LolsError("there are no words to evaluate on")
