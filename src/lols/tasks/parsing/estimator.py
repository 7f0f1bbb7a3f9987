"""The parser: sentences in, dependency trees out, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.choosing import runs
from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError
from lols.tasks.base import Variants, unfitted
from lols.tasks.estimator import Judges
from lols.tasks.format import by_workers
from lols.tasks.options import LEARNING, SEARCH, estimator, option, shared
from lols.tasks.parsing.confidence import judged_heads, parse_confidently
from lols.tasks.parsing.files import read_treebanks
from lols.tasks.parsing.growing import places_of, taught_on, with_treebank
from lols.tasks.parsing.input import checked_trees, punctuation
from lols.tasks.parsing.options import MOST_BEAM, ParserColumns
from lols.tasks.parsing.own_files import fit_own_files
from lols.tasks.parsing.scores import TreeScores, tree_scores
from lols.tasks.parsing.task import LABELLINGS, NETWORK, ROOTS, ParsingTask
from lols.tasks.parsing.treebank import ARROW, UNLABELLED, Prepared, Trees, prepare
from lols.tasks.parsing.verbs import ParserVerbs
from lols.tasks.tokens.corpus import Corpus, sentence_counts
from lols.tasks.tokens.estimator import TokenOptions, check_words
from lols.tasks.tokens.input import check_lengths, cut
from lols.tasks.verbs import Say
from lols.training.algorithms import Algorithm
from lols.training.calibration import Judged, Reliability, check_enough
from lols.training.confidence import StepScores
from lols.training.model import Model

Sentence = Sequence[str] | Sequence[Mapping[str, Any]]
Tree = Sequence[tuple[int, str]] | Sequence[int]


@estimator
class Parser(ParserVerbs):
    """A greedy dependency parser (arc-hybrid), trained by learning to search.

    A sentence is a list of strings, or of dictionaries of strings: `word`, and columns that templates can name, such as
    `upos`. A tree is a list of pairs, a head and a relation for each word, or of heads only. Heads are counted from 1;
    0 is the root.

    Examples
    --------
    >>> from lols import Parser
    >>> sentences = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 3
    >>> trees = [[(2, "det"), (3, "nsubj"), (0, "root")]] * 9
    >>> parser = Parser(passes=3).fit(sentences, trees)
    >>> parser.predict([["a", "dog", "sleeps"]])
    [[(2, 'det'), (3, 'nsubj'), (0, 'root')]]
    >>> parser.score(sentences, trees)
    1.0

    """

    HELP = """Train a dependency parser, and write a model file.

    `lols train parser en-train.conllu --dev en-dev.conllu -o parser.lols`
    """
    PROBLEM = ParsingTask
    OF_DATA = ("templates", "more_templates")
    WARMUP_ALL: ClassVar[Variants] = {"beam search": {"beam": 2}}

    algorithm: str | Algorithm = shared(TokenOptions, "algorithm", default="auto")
    labelling: str = option(
        default="auto",
        help="joint: one decision for an arc and its relation; second: the relation is decided after the arc; "
        "none: arcs only; auto: joint where there are relations to tell apart.",
        panel=SEARCH,
    )
    roots: str = option(
        default="auto",
        help="Whether sentences have one root or many; auto: as in the treebank. A second root in a treebank of "
        "one is attached to the first.",
        panel=SEARCH,
    )
    punctuation: bool = option(
        default=True, help="Whether the heads of words that are all punctuation count in the loss.", panel=LEARNING
    )
    beam: int = option(default=1, help="The width of the beam search that predicts; 1 is greedy.", cli=False)

    # --- training ---

    @exclusive
    def fit(  # type: ignore[override]
        self, X: Sequence[Sentence], y: Sequence[Tree], *, dev: tuple[Sequence[Sentence], Sequence[Tree]] | None = None
    ) -> Parser:
        """Train from scratch. With `dev` sentences and trees, the pass that parses them best is kept.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.
        dev
            Sentences and trees that are not learned from, to keep the best pass and to calibrate with.

        """
        corpus, trees = self._corpus(X), checked_trees(X, y)
        check_lengths(corpus.offsets)
        held = None if dev is None else (self._corpus(dev[0]), *checked_trees(*dev))
        return self.fit_columns(corpus, *trees, dev=held)

    def fit_read(self, paths: list[str], dev: str | None, layout: ParserColumns, say: Say, **fitting: Any) -> Self:
        """Train on treebanks."""
        if by_workers(self, paths, dev):
            return fit_own_files(self, paths, layout, dev, say, **fitting)
        data, held, reading = read_treebanks(paths, dev, layout)
        say(data.summary())
        self.columns_ = data.columns
        dev_data = None if held is None else (held.corpus, *held.trees)
        self.fit_columns(data.corpus, *data.trees, dev=dev_data, **fitting)
        for line in self.treebank_notes(data.place):
            say(line)
        self.training_facts_ = self.treebank_facts(data.corpus) | {"seconds_reading": reading}
        return self

    def treebank_facts(self, corpus: Corpus) -> dict[str, Any]:
        """The size of the treebank and of the task, and what had to be changed."""
        sizes = {"relations": len(self.task_.plain), "actions": len(self.task_.actions)}
        return sentence_counts(corpus) | sizes | self.prepared_

    def treebank_notes(self, place: Callable[[int], str]) -> list[str]:
        """What in the treebank the parser cannot build, and what was done about it."""
        facts, notes = self.prepared_, []
        if facts["nonprojective"]:
            restored = "without relations they cannot be restored: use --labelling joint"
            if self.task_.labelling != "none":
                rare = f", but for {facts['rare']:,} that are too rare to be learned" if facts["rare"] else ""
                restored = f"their relations say so, and parsing restores them{rare}"
            share = 100 * facts["nonprojective"] / int(self.model_.about["examples"])
            notes.append(
                f"{facts['nonprojective']:,} sentences ({share:.1f} %) are not projective: {facts['lifted']:,} words "
                f"were lifted; {restored}"
            )
        if self.task_.roots == "many":
            notes.append("many sentences have several roots, so the parser may predict several; --roots one for one")
        if facts["mended"]:
            first = "; ".join(place(k) for k in self.mended_[:3].tolist())
            more = " ..." if facts["mended"] > 3 else ""
            notes.append(
                f"{facts['mended']:,} sentences had several roots; all but the first were attached to it: {first}{more}"
            )
        return notes

    @exclusive
    def fit_columns(
        self,
        corpus: Corpus,
        heads: np.ndarray,
        numbers: np.ndarray,
        names: Sequence[str],
        *,
        dev: Any = None,
        **fitting: Any,
    ) -> Parser:
        """Train on columns: heads counted from 0 within a sentence, -1 for the root; relations as numbers and names.

        `dev` is a corpus, heads, numbers and names likewise.
        """
        if self.roots not in ("auto", *ROOTS):
            raise ConfigurationError(f"unknown roots '{self.roots}': choose auto, {' or '.join(ROOTS)}")
        goes_on = self._goes_on()
        roots = self.task_.roots if goes_on else self.roots
        prepared = prepare(heads, numbers, names, corpus.offsets, roots)
        if goes_on:
            task, trees = with_treebank(self.task_, prepared, corpus.offsets)
            task = task.grown_by(corpus)
            fitting |= {"goes_on": True, "places": places_of(self.task_, task)}
        else:
            task = self._task(corpus, prepared)
            trees = prepared.trees if task.labelling != "none" else self._bare(prepared)
        weights = None if self.punctuation else (~punctuation(corpus)).astype(np.float64)
        score = None
        if dev is not None:
            if dev[0].tokens == 0:
                raise LolsError("there are no dev sentences to choose on: give some, or no dev data")
            score = self.scorer(task, dev)

        def judge(model: Model, part: Examples, chosen: np.ndarray) -> Judged:
            at, offsets = runs(corpus.offsets, chosen)
            return judged_heads(task, model, part, offsets, heads[at])

        judges = Judges(judge, None if dev is None else partial(self.judged_by, task, dev))
        self._train(task, lambda: task.examples(corpus, trees, weights), score, judges, **fitting)
        self.prepared_ = {name: int(getattr(prepared, name)) for name in ("nonprojective", "lifted", "rare")}
        self.prepared_ |= {"mended": int(prepared.mended.size)}
        self.mended_ = prepared.mended
        self._stream = self._model = None
        self.note_strings(corpus, anew=not goes_on)
        self.fingerprint_ = corpus.fingerprint(heads, numbers)
        self.model_.about |= {"tokens": corpus.tokens, "treebank": self.prepared_}
        return self

    def scorer(self, task: ParsingTask, dev: Any) -> Callable[[Model], dict[str, float]]:
        """The scores of models on dev data, which are a corpus, heads, numbers and names."""
        parsed = task.parsing(dev[0])

        def score(model: Model) -> dict[str, float]:
            found = self._scores(task, parsed(model), *dev)
            return {"uas": found.uas} | ({"las": found.las} if task.labelling != "none" else {})

        return score

    @exclusive
    def partial_fit(self, X: Sequence[Sentence], y: Sequence[Tree]) -> Parser:  # type: ignore[override]
        """Learn from the next sentences of a stream, in the given order.

        The first call settles columns and templates. Relations that are new are learned from then on. A loaded parser
        goes on from the learner's state if its file has it, else from the weights. A network learns from each call at
        once, so that its weights depend on how the data is cut.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        if not self.__sklearn_is_fitted__():
            first = unfitted(self).set_params(passes=1, shuffle=False, keep_state=self.policy == "linear").fit(X, y)
            found = {name: value for name, value in vars(first).items() if name not in self._defaults()}
            vars(self).update(found)
            return self
        corpus, trees = self._corpus(X), checked_trees(X, y)
        if corpus.tokens == 0:
            return self
        check_lengths(corpus.offsets)
        task, made = taught_on(self.task_, *trees, corpus.offsets)
        task = task.grown_by(corpus)
        self._stream = self._stream_for(task, places_of(self.task_, task))
        weights = None if self.punctuation else (~punctuation(corpus)).astype(np.float64)
        self._stream.learn(task.examples(corpus, made, weights))
        self.task_, self._model, self.fingerprint_ = task, None, ""
        self.note_strings(corpus, anew=False)
        return self

    def _about_data(self) -> dict[str, Any]:
        return {name: value for name, value in self.model_.about.items() if name in ("tokens", "treebank")}

    def _choices(self) -> tuple[Any, ...]:
        return *super()._choices(), None if self.prune == "auto" else self.prune or 0

    def _task(self, corpus: Corpus, prepared: Prepared) -> ParsingTask:
        labelling = self.labelling
        if labelling not in ("auto", *LABELLINGS):
            raise ConfigurationError(f"unknown labelling '{labelling}': choose auto, {', '.join(LABELLINGS)}")
        if labelling == "auto":
            labelling = "joint" if len({*prepared.right, *prepared.left}) > 1 else "none"
        names, sides = prepared.names, (prepared.right, prepared.left, prepared.root)
        options: Any = {"columns": tuple(corpus.columns), "roots": prepared.roots}
        if self.policy == "neural":  # a network gives relations to arcs by itself
            if self.labelling not in ("auto", "none"):
                raise ConfigurationError(
                    f"labelling='{self.labelling}' has no effect: a neural policy labels arcs after the search; choose "
                    "auto or none"
                )
            options |= {"vocabulary": self.network_vocabulary(corpus)}
            labelling = labelling if labelling == "none" else NETWORK
            neural: ParsingTask = self.neural_class()(names, *sides, labelling=labelling, **options)
            return neural
        options |= self.template_lines()
        if labelling != "none":
            return ParsingTask(names, *sides, labelling=labelling, **options)
        arcs = {names[k].partition(ARROW)[0] for k in (*prepared.right, *prepared.left) if k != prepared.root}
        arc = arcs.pop() if len(arcs) == 1 else UNLABELLED
        return ParsingTask([arc, names[prepared.root]], [0], [0], 1, labelling=labelling, **options)

    @classmethod
    def neural_class(cls) -> Any:
        """The class of the task of a neural policy."""
        from lols.tasks.parsing.neural import NeuralParsingTask

        return NeuralParsingTask

    @staticmethod
    def _bare(prepared: Prepared) -> Trees:
        return Trees(prepared.trees.heads, (prepared.trees.heads < 0).astype(np.int64))

    # --- prediction ---

    @on_snapshot
    def predict(self, X: Sequence[Sentence], *, confidence: bool = False) -> Any:
        """The tree of each sentence: a head, counted from 1, and a relation for each word.

        With `confidence` a pair: the trees, and for each an array that says how likely each head is to be right. The
        parser must be calibrated.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        confidence
            Whether a pair is returned: the predictions, and the probability that each is right.

        """
        corpus = self._corpus(X)
        trees, sure = self.predict_confident(corpus) if confidence else (self.predict_columns(corpus), None)
        names = self.task_.plain
        flat = [(h + 1, names[r]) for h, r in zip(trees.heads.tolist(), trees.relations.tolist(), strict=True)]
        made = cut(flat, corpus.offsets)
        return made if sure is None else (made, cut(sure, corpus.offsets))

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[Trees, np.ndarray]:
        """Trees in columns, and how likely each head is to be right."""
        self._check_fitted()
        self.calibrated()
        if self.beam > 1:
            raise ConfigurationError("confidence is that of greedy parsing: leave out the beam")
        if corpus.tokens == 0:
            return self.predict_columns(corpus), np.zeros(0)
        return parse_confidently(self.task_, corpus, self.model_)

    @exclusive
    def calibrate_with(self, X: Sequence[Sentence], y: Sequence[Tree]) -> Self:  # type: ignore[override]
        """Fit confidences to labelled sentences that training did not see; returns the parser itself.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        self._check_fitted()
        self._recalibrate({"heads": self.judged_columns(self._corpus(X), checked_trees(X, y)[0])})
        return self

    @on_snapshot
    def scores(self, X: Sequence[Sentence]) -> list[StepScores]:
        """All actions of all steps of each sentence: costs, and probabilities if the model is calibrated.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.

        """
        corpus = self._corpus(X)
        self._check_fitted()
        return self._fitted.scores(self.task_.examples(corpus)) if len(X) else []

    @on_snapshot
    def judged_columns(self, corpus: Corpus, heads: np.ndarray) -> Judged:
        """Which heads of labelled columns are right."""
        check_enough(corpus.tokens)
        return self.judged_by(self.task_, (corpus, heads), self._fitted)

    def _knows_confidence(self) -> bool:
        return super()._knows_confidence() and self.beam == 1

    @staticmethod
    def judged_by(task: ParsingTask, data: Any, model: Model) -> Judged:
        """Which heads of labelled sentences a model finds."""
        return judged_heads(task, model, task.examples(data[0]), data[0].offsets, data[1])

    def predict_one(self, x: Sentence) -> list[tuple[int, str]]:
        """The tree of one sentence.

        Parameters
        ----------
        x
            A sentence: a list of words, or of dictionaries with the words and their tags.

        """
        return self.predict([x])[0]

    @on_snapshot
    def predict_columns(self, corpus: Corpus) -> Trees:
        """Heads of all words, counted from 0, -1 for the root, and the numbers of their relations (`relations_`)."""
        self._check_fitted()
        self._check_beam()
        if corpus.tokens == 0:
            return Trees(np.zeros(0, np.int64), np.zeros(0, np.int64))
        trees: Trees = self.task_.parsing(corpus, self.beam)(self._fitted)
        return trees

    @property
    def relations_(self) -> list[str]:
        """The names of the relations."""
        self._check_fitted()
        return list(self.task_.plain)

    # --- scores ---

    def score(self, X: Sequence[Sentence], y: Sequence[Tree]) -> float:
        """LAS: the share of words with the right head and relation; UAS where relations are not learned.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        found = self.evaluate(X, y)
        return found.uas if self.task_.labelling == "none" else found.las

    @on_snapshot
    def evaluate(self, X: Sequence[Sentence], y: Sequence[Tree], *, punctuation: bool = True) -> TreeScores:  # type: ignore[override]
        """UAS, LAS, CLAS, whole sentences and single relations, as the CoNLL 2018 scorer counts.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.
        punctuation
            Whether words that are all punctuation count.

        """
        return self.evaluate_columns(self._corpus(X), *checked_trees(X, y), punctuation=punctuation)

    @on_snapshot
    def evaluate_columns(
        self, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], *, punctuation: bool = True
    ) -> TreeScores:
        """The same on columns; without `punctuation`, words that are all punctuation do not count."""
        self._check_fitted()
        check_words(corpus)
        knows = self._knows_confidence()
        trees, sure = self.predict_confident(corpus) if knows else (self.predict_columns(corpus), None)
        found = self._scores(self.task_, trees, corpus, heads, numbers, names, count_punctuation=punctuation)
        return found if sure is None else found._replace(reliability=Reliability.of(sure, trees.heads == heads))

    @staticmethod
    def _scores(
        task: ParsingTask,
        trees: Trees,
        corpus: Corpus,
        heads: np.ndarray,
        numbers: np.ndarray,
        names: Sequence[str],
        count_punctuation: bool = True,
    ) -> TreeScores:
        """Relations of the file and of the parser in one list of names."""
        both = list(dict.fromkeys([*task.plain, *names]))
        gold = np.array([both.index(name) for name in names], np.int64)[numbers]
        counted = None if count_punctuation else ~punctuation(corpus)
        return tree_scores(heads, gold, trees.heads, trees.relations, both, corpus.offsets, counted=counted)

    # --- files ---

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What had to be changed in the treebank."""
        facts, tensors = super()._more_contents()
        return facts | {"treebank": self.prepared_}, tensors

    @classmethod
    def _described(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> ParsingTask:
        kind: Any = cls.neural_class() if task["options"].get("policy") == "neural" else ParsingTask
        made: ParsingTask = kind.from_description(task, tensors)
        return made

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        super()._restore(task, tensors)
        self._check_beam()
        self.prepared_ = {str(name): int(count) for name, count in dict(task["treebank"]).items()}

    # --- helpers ---

    def _check_beam(self) -> None:
        check_whole("beam", self.beam, most=MOST_BEAM)
