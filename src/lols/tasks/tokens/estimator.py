"""What taggers and parsers share: templates, roll-outs of a few actions only, and what a model file keeps of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads, chosen_threads
from lols.contract.user_frames import warn
from lols.errors import LolsError, ModelFileError, shown
from lols.io.opening import read_text
from lols.io.room import Room
from lols.tasks.options import INPUT, NETWORK, SEARCH, estimator, option
from lols.tasks.search import SearchEstimator
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import check_options, checked_sentences, string_tensors, strings_of
from lols.tasks.tokens.neural import check_file, check_going_on, check_policy, empty_policy, learn_on, neural_trainer
from lols.tasks.tokens.vocabulary import NetworkVocabulary
from lols.training.algorithms import Algorithm
from lols.training.calibration import Judged
from lols.training.confidence import StepScores
from lols.training.model import Model, make_model
from lols.training.trainer import Trainer

MOST_VALUES = 1 << 12  # of a further column that are kept in the model file, for `lols inspect`
UNNOTED = ("cluster",)  # columns whose values the model file has elsewhere


def read_templates(path: str) -> list[str]:
    """The lines of a file of templates."""
    return read_text(path).splitlines()


@estimator
class TokenEstimator(SearchEstimator):
    """An estimator on sentences, whose features are written as templates."""

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
        """The templates as a task takes them: lines or None for the default ones, and further lines."""
        lines = self.templates.splitlines() if isinstance(self.templates, str) else self.templates
        return {"templates": lines, "more_templates": self.more_templates or ()}

    # --- neural policies ---

    def _trainer(self, task: Any, examples: int | None = None) -> Trainer:
        check_policy(self)
        if self.policy == "linear":
            return super()._trainer(task)
        return neural_trainer(self, task, int(examples or 0))

    def _algorithm(self) -> str | Algorithm:
        """The algorithm that is meant; under a poor teacher, a network learns from a fixed mixture.

        With `beta="auto"`, a network that has imitated the teacher at first looks no better than it, and stays so.
        """
        chosen = super()._algorithm()
        adapted = self.algorithm == "auto" and isinstance(chosen, Algorithm)
        return "lols" if adapted and self.policy == "neural" else chosen

    def network_vocabulary(self, corpus: Corpus) -> NetworkVocabulary:
        """What a network knows of the strings of a corpus, and what was learned elsewhere."""
        columns = [name for name in corpus.columns if name != WORD]
        return NetworkVocabulary.of(corpus, columns, vectors=self.vectors, encoder=self.encoder)

    def threads_for(self, threads: Threads) -> int:
        """How many threads may share the policy: a network is used by one, and has its own threads."""
        return chosen_threads(threads) if self.policy == "linear" else 1

    def _same_labels(self, task: Any) -> bool:
        same: bool = task.describe() == self.task_.describe()  # a network's task grows with every new word
        return same

    def _check_going_on(self) -> None:
        check_going_on(self)

    def _train(self, *given: Any, **fitting: Any) -> Trainer:
        trainer = super()._train(*given, **fitting)
        self._note_files()
        return trainer

    def _note_files(self) -> None:
        """Note the files of what was learned elsewhere: they cannot be exchanged later on."""
        self.learned_elsewhere_ = {"vectors": self.vectors, "encoder": self.encoder}

    def _learned_on(self, task: Any, corpus: Corpus) -> tuple[Any, Any]:
        """The task that a network needs for further sentences of a stream, and the stream."""
        check_policy(self)
        if self.__sklearn_is_fitted__() and self._stream is None:
            check_going_on(self)
            note = self.starts_from_weights()
            if note is not None:
                warn(note)
        grown = task.grown_by(corpus)
        if grown.vocabulary != task.vocabulary:
            task = grown
        stream = learn_on(self, task)
        self._note_files()
        return task, stream

    def _empty_policy(self, task: Any) -> Any:
        return None if self.policy == "linear" else empty_policy(self, task)

    # --- what is the same for tags and trees ---

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn from one sentence of a stream; the first call of `partial_fit` must have settled what there can be.

        Parameters
        ----------
        x
            A sentence.
        y
            Its tags or its tree.

        """
        self.partial_fit([x], [y])
        return self

    @exclusive
    def calibrate_with(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Fit confidences to labelled sentences that training did not see; returns the estimator itself.

        Parameters
        ----------
        X
            The sentences.
        y
            Their tags or trees.

        """
        self._check_fitted()
        self._recalibrate(self._judged_on(X, y))
        return self

    def _judged_on(self, X: Sequence[Any], y: Sequence[Any]) -> Mapping[str, Judged]:
        """Which decisions on labelled sentences are right."""
        raise NotImplementedError

    @on_snapshot
    def scores(self, X: Sequence[Any]) -> list[StepScores]:
        """All actions of all steps of each sentence: costs, and probabilities if the model is calibrated.

        A tagger decides word by word in its direction; its columns are `action_labels_`.

        Parameters
        ----------
        X
            The sentences.

        """
        corpus = self._corpus(X)
        self._check_fitted()
        return self._fitted.scores(self.task_.examples(corpus)) if len(X) else []

    def _predicted(self, corpus: Corpus) -> tuple[Any, np.ndarray | None]:
        """Predictions to be evaluated, and how likely they are to be right if that is known."""
        self._check_fitted()
        if corpus.tokens == 0:
            raise LolsError("there are no words to evaluate on")
        return self.predict_confident(corpus) if self._knows_confidence() else (self.predict_columns(corpus), None)

    def _knows_confidence(self) -> bool:
        return self._fitted.calibration is not None

    @property
    def _fitted(self) -> Model:
        """The model; what a stream has learned since becomes one when it is asked for."""
        with self._lock.here():
            if self._stream is not None and self._model is None:
                about = self._about_data()
                self._model = self.model_ = self._tuned(self._stream.model())
                self.model_.learning = self._stream.state()
                self.model_.about |= about
            model: Model = self.model_
            return model

    def _tuned(self, model: Model) -> Model:
        """What a stream has learned, with what dev data have said before."""
        return model

    def _corpus(self, X: Sequence[Any]) -> Corpus:
        return corpus_of(checked_sentences(X))

    # --- files ---

    Task: ClassVar[Any]  # the class of the task, which a model file describes

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

    def stored_strings(self) -> dict[str, np.ndarray]:
        """The vocabulary and the values of further columns, as arrays of a model file."""
        tensors = string_tensors("vocabulary", self.vocabulary_)
        for name, values in self.column_values_.items():
            tensors |= string_tensors(f"column.{name}", values)
        return tensors | (self.task_.vocabulary.tensors() if self.policy == "neural" else {})

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file."""
        self._check_fitted()
        columns = getattr(self, "columns_", None)
        task = self.task_.describe() | {
            "name": self.VERBS.name,
            "fingerprint": self.fingerprint_,
            "options": self._options(),
            "files": None if columns is None else columns.describe(),
            **self.more_facts(),
        }
        return self._fitted.contents(task, self.stored_strings(), keep_state=self.keep_state)

    def more_facts(self) -> dict[str, Any]:
        """What else a model file says, as plain values."""
        return {}

    @classmethod
    def from_file(
        cls,
        path: Any,
        header: Mapping[str, Any],
        tensors: Mapping[str, np.ndarray],
        *,
        threads: Threads = None,
        room: Room | None = None,
    ) -> Self:
        """The estimator that the header and the arrays of a model file describe, or one part of such a file."""
        try:
            task = header["task"]
            known = cls().get_params()
            options = {name: value for name, value in dict(task["options"]).items() if name in known}
            check_options(options)
            loaded = cls(**options | {"threads": threads})
            if loaded.policy not in ("linear", "neural"):
                raise ValueError(f"the policy is {shown(loaded.policy)}")
            if loaded.policy == "neural":
                further = [name for name in task["columns"] if name != WORD]
                vocabulary = NetworkVocabulary.from_tensors(tensors, further)
                loaded.task_ = cls.neural_class().from_description(task, vocabulary=vocabulary)
                loaded.device = "auto"
            else:
                loaded.task_ = cls.Task.from_description(task)
                loaded.templates = loaded.task_.templates
            loaded.fingerprint_ = str(task["fingerprint"])
            loaded.vocabulary_ = strings_of("vocabulary", tensors)
            names = [name for name in loaded.task_.columns if f"task.column.{name}" in tensors]
            loaded.column_values_ = {name: strings_of(f"column.{name}", tensors) for name in names}
            if task["files"] is not None:
                columns: Any = cls.VERBS.files
                loaded.columns_ = columns.from_description(task["files"])
            loaded.restore(task, tensors)
            loaded._note_files()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, LolsError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        try:
            if loaded.policy == "neural":
                check_file(loaded, loaded.task_, tensors)
            policy = loaded._empty_policy(loaded.task_)
        except LolsError as error:
            raise ModelFileError(f"{path}: {error}") from error
        loaded.model_ = make_model(path, header, tensors, loaded.task_.space, policy=policy, threads=threads, room=room)
        return loaded

    @classmethod
    def neural_class(cls) -> Any:
        """The class of the task of a neural policy."""
        raise NotImplementedError

    def restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        """Take over what else a model file has; damage is a `ValueError`."""
