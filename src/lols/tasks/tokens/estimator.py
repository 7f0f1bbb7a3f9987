"""What taggers and parsers share: their options, networks, and what a model file keeps of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, ClassVar

import numpy as np

from lols.contract.threads import Threads, chosen_threads
from lols.errors import ConfigurationError, LolsError, shown
from lols.io.opening import read_text
from lols.io.strings import Interner
from lols.learners.settings import LearnerSettings
from lols.policies.linear import Linear
from lols.policies.neural import Neural
from lols.tasks.estimator import Estimator
from lols.tasks.options import INPUT, NETWORK, SEARCH, estimator, is_plain, option
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import check_options, checked_sentences, string_tensors, strings_of
from lols.tasks.tokens.neural import (
    check_file,
    check_going_on,
    empty_policy,
    learn_on,
    neural_of,
    neural_trainer,
    place_of,
)
from lols.tasks.tokens.options import TokenTraining
from lols.tasks.tokens.vocabulary import NetworkVocabulary
from lols.training.algorithms import Algorithm, algorithm
from lols.training.trainer import Trainer

PRUNE = 2
MOST_VALUES = 1 << 12  # of a further column that are kept in the model file, for `lols inspect`
UNNOTED = ("cluster",)  # columns whose values the model file has elsewhere
POLICIES: dict[str, type[Linear | Neural]] = {kind.KIND: kind for kind in (Linear, Neural)}
NEVER_GOES_ON = ("vectors", "encoder", "width", "layers")  # settings of a network that further learning cannot change


def read_templates(path: str) -> list[str]:
    """The lines of a file of templates."""
    return read_text(path).splitlines()


@estimator
class TokenOptions(Estimator):
    """An estimator on sentences, whose features are written as templates, or whose policy is a network."""

    # A model file does not have where a network computes, nor templates, which the problem describes.
    NOT_KEPT: ClassVar[tuple[str, ...]] = (*Estimator.NOT_KEPT, "device", "templates", "more_templates")

    TRAINING = TokenTraining

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
    learned_with_: dict[str, Any] = field(init=False)  # what further learning cannot change of the policy

    policy: str | Linear | Neural = option(
        default=Linear.KIND,
        help="linear, on templates; or neural, on words, characters and given tags, which needs PyTorch: "
        "pip install lols[torch]. Or `lols.policies.Linear(...)` or `Neural(...)`, with options of the policy in place "
        "of those here, and `Neural(network=...)` for a network of your own.",
        panel=NETWORK,
        typed="linear, on templates; or neural, on words, characters and given tags, which needs PyTorch: "
        "pip install lols[torch].",
        kind=str,
        common=True,
    )
    device: str = option(
        default=Neural.device,
        help="Where a neural policy computes: cpu, cuda, or auto for a GPU if there is one.",
        panel=NETWORK,
    )
    precision: str = option(
        default=Neural.precision,
        help="bfloat16 lets a neural policy compute in mixed precision, which is faster on a GPU.",
        panel=NETWORK,
    )
    width: int = option(
        default=Neural.width, help="The width of a neural policy's BiLSTM, in each direction.", panel=NETWORK
    )
    layers: int = option(default=Neural.layers, help="The layers of a neural policy's BiLSTM.", panel=NETWORK)
    vectors: str | None = option(
        default=Neural.vectors,
        help="A file of word vectors for a neural policy: text with a word and its numbers on each line, or NAME.npy "
        "with the words in NAME.txt. The model file keeps what it needs of them.",
        panel=NETWORK,
    )
    encoder: str | None = option(
        default=Neural.encoder,
        help="A folder with an encoder of Hugging Face that a neural policy reads sentences with and tunes; needs "
        "pip install lols[transformers]. The model file has its weights.",
        panel=NETWORK,
    )
    dropout: float = option(
        default=Neural.dropout,
        help="The share of a neural policy's units that are left out in learning.",
        panel=NETWORK,
    )
    steps: int | None = option(
        default=Neural.steps,
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
    def _kind(self) -> type[Linear | Neural]:
        """What is trained."""
        for name, kind in POLICIES.items():
            if isinstance(self.policy, kind) or (isinstance(self.policy, str) and self.policy == name):
                return kind
        raise ConfigurationError(
            f"unknown policy {shown(self.policy)}: choose {' or '.join(POLICIES)}, or give an object of "
            "lols.policies.Linear or Neural"
        )

    def _settings(self) -> dict[str, Any]:
        """The settings of the policy that is trained, given in the policy or else as options."""
        flat = {name: getattr(self, name) for name in self._kind.SETTINGS if name in self._defaults()}
        if isinstance(self.policy, str):
            return flat
        given = dict(self.policy.given)
        whole = given.get("learner")
        if isinstance(whole, LearnerSettings):  # which leave nothing open
            given = asdict(whole) | {"rate": None if whole.update == "perceptron" else whole.step}
            given["learner"] = given.pop("reduction")
        return {name: self._defaults()[name] for name in flat} | given

    @property
    def is_linear(self) -> bool:
        """Whether the policy is linear."""
        return self._kind is Linear

    @property
    def by_hinge(self) -> bool:
        """Whether the policy is linear and learns by the hinge."""
        return self.is_linear and self._settings()["learner"] == "hinge"

    def _linear(self) -> dict[str, Any]:
        return self._settings()

    def _said(self, name: str) -> bool:
        return super()._said(name) or (not isinstance(self.policy, str) and name in self.policy.given)

    def _check_policy(self) -> None:
        """Raise an error if options have no effect with the policy, or are given twice."""
        kind = self._kind
        for name in [name for name in self._defaults() if self._changed(name)]:
            if not isinstance(self.policy, str) and name in kind.SETTINGS:
                made = kind.__name__
                raise ConfigurationError(
                    f"{name} is given beside policy={made}(...): say it in one place, {made}({name}=...)"
                )
            others = [other.KIND for other in POLICIES.values() if name in other.OPTIONS]
            if others and kind.KIND not in others:
                raise ConfigurationError(f"{name} has no effect: it is for policy='{others[0]}'; leave it out")

    def _pruned(self, chosen: Algorithm) -> Algorithm:
        # Under another teacher the best action may be neither the teacher's nor one that the learner likes yet, and a
        # learner that starts anew likes nothing yet.
        fits = self.by_hinge and self.reference == "optimal" and not chosen.restart
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
        self._check_policy()
        if self.is_linear:
            return super()._trainer(problem)
        return neural_trainer(self, problem, int(examples or 0))

    def network_vocabulary(self, corpus: Corpus) -> NetworkVocabulary:
        """What a network knows of the strings of a corpus, and what was learned elsewhere."""
        columns = [name for name in corpus.columns if name != WORD]
        neural = neural_of(self)
        return NetworkVocabulary.of(corpus, columns, vectors=neural.vectors, encoder=neural.encoder)

    def threads_for(self, threads: Threads) -> int:
        """How many threads may share the policy: a network is used by one, and has its own threads."""
        return chosen_threads(threads) if self.is_linear else 1

    def _check_going_on(self) -> None:
        check_going_on(self)

    def _stream_for(self, problem: Any, places: np.ndarray | None) -> Any:
        if self.__sklearn_is_fitted__():
            check_going_on(self)
        if self.is_linear:
            return super()._stream_for(problem, places)
        self._check_policy()
        if self.__sklearn_is_fitted__() and self._stream is None:
            self._say_from_weights()
        return learn_on(self, problem)

    def _empty_policy(self, problem: Any) -> Any:
        return None if self.is_linear else empty_policy(self, problem)

    # --- sentences ---

    def _corpus(self, X: Sequence[Any]) -> Corpus:
        return corpus_of(checked_sentences(X))

    def note_values(self, columns: Mapping[str, list[str]], *, anew: bool) -> None:
        """Note the words and the values of further columns; what is known already takes no time."""
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
        self.learned_with_ = self._policy_notes()

    def _policy_notes(self) -> dict[str, Any]:
        """What further learning cannot change of the policy that the options ask for."""
        made: dict[str, Any] = {"policy": self._kind.KIND}
        if self.is_linear:
            return made
        neural = neural_of(self)
        own = None if neural.network is None else place_of(neural.network)
        return made | {"network": own} | {name: getattr(neural, name) for name in NEVER_GOES_ON}

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
        """A fingerprint of the data, the words, the values of further columns, and what no option says of the policy.

        That is where a network of the user's own is defined, and settings of the linear learner.
        """
        tensors = string_tensors("vocabulary", self.vocabulary_)
        for name, values in self.column_values_.items():
            tensors |= string_tensors(f"column.{name}", values)
        facts: dict[str, Any] = {"fingerprint": self.fingerprint_}
        if self.learned_with_.get("network") is not None:
            facts["network"] = self.learned_with_["network"]
        further = {name: value for name, value in self._settings().items() if name not in self._defaults()}
        return facts | ({"learner": further} if self.is_linear and further else {}), tensors

    def _options(self) -> dict[str, Any]:
        """The options, with those that are in the policy."""
        kept = {k: v for k, v in self._settings().items() if k in self._defaults() and k not in self.NOT_KEPT}
        return super()._options() | {"policy": self._kind.KIND} | {k: v for k, v in kept.items() if is_plain(v)}

    @classmethod
    def _stored_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        check_options(options)
        if options.get("policy", Linear.KIND) not in POLICIES:
            raise ValueError(f"the policy is {shown(options['policy'])}")
        return dict(options)

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        self.learned_with_ = self._policy_notes()
        if self.is_linear:
            self.templates = self.task_.templates
            self._put_into(Linear, dict(task.get("learner", {})))
        else:
            self.learned_with_["network"] = task.get("network")
        self.device = Neural.device
        self.fingerprint_ = str(task["fingerprint"])
        self.vocabulary_ = strings_of("vocabulary", tensors)
        names = [name for name in self.task_.columns if f"column.{name}" in tensors]
        self.column_values_ = {name: strings_of(f"column.{name}", tensors) for name in names}

    def _put_into(self, kind: type[Linear | Neural], further: Mapping[str, Any]) -> None:
        """Have the settings in a policy, with further ones that are no options, if there are any."""
        if further:
            flat = {name: getattr(self, name) for name in kind.SETTINGS if name in self._defaults()}
            self.policy = kind(**{name: value for name, value in flat.items() if self._changed(name)} | dict(further))
            vars(self).update({name: self._defaults()[name] for name in flat})

    def _stored_policy(self, tensors: Mapping[str, np.ndarray], given: Any = None) -> Any:
        if self.is_linear:
            return super()._stored_policy(tensors, given)
        stored = self.learned_with_["network"]
        if given is not None:
            if not isinstance(given, Neural):
                raise ConfigurationError(f"the file has a network: policy is {type(given).__name__}, give Neural(...)")
            self._put_into(Neural, given.given)
        self.learned_with_ = self._policy_notes()
        own = self.learned_with_["network"]
        if stored is not None and own is None:
            name = str(stored).rpartition(":")[2]
            raise ConfigurationError(
                f"its network is of a class of your own, {shown(stored)}: give it, "
                f"lols.load(path, policy=lols.policies.Neural(network={name}))"
            )
        if stored is None and own is not None:
            raise ConfigurationError("its network is not of a class of your own: leave network out")
        check_file(self, self.task_, tensors)
        return self._empty_policy(self.task_)

    @staticmethod
    def _loading(params: Mapping[str, Any]) -> dict[str, Any]:
        policy = params["policy"]
        own = {"policy": policy} if isinstance(policy, Neural) and policy.network is not None else {}
        return {"threads": params["threads"]} | own


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
