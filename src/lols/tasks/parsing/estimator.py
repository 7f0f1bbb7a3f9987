"""The parser: sentences in, dependency trees out, with scikit-learn's habits."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.base import Variants, unfitted
from lols.tasks.case import Case
from lols.tasks.format import InParts
from lols.tasks.options import LEARNING, SEARCH, estimator, option, shared
from lols.tasks.parsing.data import NONE, Treebank, TreebankScan
from lols.tasks.parsing.files import TreebankFile, TreebankFormat, check_sample, tree_changes
from lols.tasks.parsing.input import checked_trees
from lols.tasks.parsing.neural import NeuralParsingTask
from lols.tasks.parsing.options import MOST_BEAM, VERBS, ParserColumns
from lols.tasks.parsing.scores import ParserScores, TreeScores
from lols.tasks.parsing.task import ROOTS, ParsingTask
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.corpus import WORD, Corpus, sentence_counts
from lols.tasks.tokens.estimator import TokenOptions, check_words
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.tokens.task import is_neural
from lols.tasks.verbs import Scores, VerbReport
from lols.training.algorithms import Algorithm
from lols.training.calibration import Judged, Reliability

Sentence = Sequence[str] | Sequence[Mapping[str, Any]]
Tree = Sequence[tuple[int, str]] | Sequence[int]
THREE_WORDS = b"1\ta\t_\tX\t_\t_\t2\tx\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n3\tc\t_\tX\t_\t_\t2\ty\t_\t_\n\n"


@estimator
class Parser(TokenOptions):
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
    VERBS = VERBS
    PROBLEM = ParsingTask
    STORED = ("labelling", "roots", "templates", "columns", "files", "fingerprint", "treebank")
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

    task_: ParsingTask = field(init=False)
    prepared_: dict[str, int] = field(init=False)  # what had to be changed in the treebank
    mended_: np.ndarray = field(init=False)  # sentences that had several roots

    # --- data ---

    def _data(self, X: Sequence[Sentence], y: Sequence[Tree] | None = None) -> Treebank:
        corpus = self._corpus(X)
        return Treebank(corpus) if y is None else self._columns(corpus, *checked_trees(X, y))

    def _columns(self, corpus: Corpus, heads: np.ndarray, numbers: Any = NONE, names: Sequence[str] = ()) -> Treebank:
        """Sentences and trees in columns as data."""
        return Treebank(corpus, heads, numbers, names, self._roots(), self.punctuation)

    def _roots(self) -> str:
        """How many roots sentences of training may have."""
        if self.warm_start and self.__sklearn_is_fitted__():
            return self.task_.roots
        if self.roots not in ("auto", *ROOTS):
            raise ConfigurationError(f"unknown roots '{self.roots}': choose auto, {' or '.join(ROOTS)}")
        return self.roots

    def _format(self, layout: ParserColumns, **training: Any) -> TreebankFormat:
        return TreebankFormat(layout, self._roots(), self.punctuation, **training)

    @property
    def file_columns(self) -> ParserColumns:
        """Where things are in files like those of training."""
        use = {name: name for name in self.task_.columns if name != WORD}
        found: ParserColumns = vars(self).get("columns_") or ParserColumns(use=use)
        return found

    # --- training ---

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
    ) -> Self:
        """Train on columns: heads counted from 0 within a sentence, -1 for the root; relations as numbers and names.

        `dev` is a corpus, heads, numbers and names likewise.
        """
        held = None if dev is None else self._columns(*dev)
        return self._fit(self._columns(corpus, heads, numbers, names), held, **fitting)

    @exclusive
    def partial_fit(
        self, X: Sequence[Sentence], y: Sequence[Tree] | None = None, classes: Sequence[str] | None = None
    ) -> Self:
        """Learn from the next sentences of a stream, in the given order.

        The first call settles columns and templates. Relations that are new are learned from then on, so that `classes`
        need not be named. A loaded parser goes on from the learner's state if its file has it, else from the weights. A
        network learns from each call at once, so that its weights depend on how the data is cut.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.
        classes
            Relations that there can be, which need not be named.

        """
        if self.__sklearn_is_fitted__():
            return super().partial_fit(X, y, classes) if len(X) else self
        first = unfitted(self).set_params(passes=1, shuffle=False, keep_state=self.is_linear).fit(X, y)
        found = {name: value for name, value in vars(first).items() if name not in self._defaults()}
        vars(self).update(found)
        return self

    def _proposed(self, scan: TreebankScan, **fitting: Any) -> ParsingTask:
        kind = ParsingTask if self.is_linear else NeuralParsingTask
        return kind.propose(scan, self)

    def _note(self, scan: TreebankScan, *, anew: bool, stream: bool = False) -> None:
        self.note_values(scan.strings, anew=anew)
        self.fingerprint_ = scan.fingerprint
        if not stream:
            self.prepared_, self.mended_ = scan.prepared.facts(), scan.prepared.mended
            self.model_.about |= {"tokens": scan.tokens, "treebank": self.prepared_}

    def _about_data(self) -> dict[str, Any]:
        return {name: value for name, value in self.model_.about.items() if name in ("tokens", "treebank")}

    def _choices(self) -> tuple[Any, ...]:
        return *super()._choices(), None if self.prune == "auto" else self.prune or 0

    def _facts(self) -> dict[str, Any]:
        return {"relations": len(self.task_.plain), "actions": len(self.task_.actions)} | self.prepared_

    def _remarks(self, data: TreebankFile | InParts) -> list[str]:
        return self.treebank_notes(data.place)

    def treebank_facts(self, corpus: Corpus) -> dict[str, Any]:
        """The size of the treebank and of the task, and what had to be changed."""
        return sentence_counts(corpus) | self._facts()

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

    # --- prediction ---

    def _predicted(self, data: Any, confidence: bool = False) -> tuple[Any, Any]:
        self._check_fitted()
        self._check_beam()
        if confidence:
            self.calibrated()
        if confidence and self.beam > 1:
            raise ConfigurationError("confidence is that of greedy parsing: leave out the beam")
        return self.task_.predicted(self._fitted, data, confidence=confidence, beam=self.beam)

    @on_snapshot
    def predict_columns(self, corpus: Corpus) -> Trees:
        """Heads of all words, counted from 0, -1 for the root, and the numbers of their relations (`relations_`)."""
        trees: Trees = self._predicted(Treebank(corpus))[0]
        return trees

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[Trees, np.ndarray]:
        """Trees in columns, and how likely each head is to be right."""
        return self._predicted(Treebank(corpus), confidence=True)

    def _knows_confidence(self) -> bool:
        return super()._knows_confidence() and self.beam == 1

    @property
    def relations_(self) -> list[str]:
        """The names of the relations."""
        self._check_fitted()
        return list(self.task_.plain)

    def searching(self, asked: Any) -> Self:
        """The parser with a beam of another width, if one is asked for."""
        if asked.beam is None:
            return self
        other = copy.copy(self)
        other.beam = asked.beam
        return other

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
    def evaluate(
        self, X: Sequence[Sentence], y: Sequence[Tree] | None = None, *, punctuation: bool = True
    ) -> TreeScores:
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
        return self._scored(self._data(X, y), punctuation)

    @on_snapshot
    def evaluate_columns(
        self, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], *, punctuation: bool = True
    ) -> TreeScores:
        """The same on columns; without `punctuation`, words that are all punctuation do not count."""
        return self._scored(self._columns(corpus, heads, numbers, names), punctuation)

    def _scored(self, data: Treebank, punctuation: bool) -> TreeScores:
        self._check_fitted()
        check_words(data.corpus)
        data.check_trees()
        trees, sure = self._predicted(data, self._knows_confidence())
        found = self.task_.tree_scores(trees, data, count_punctuation=punctuation)
        return found if sure is None else found._replace(reliability=Reliability.of(sure, trees.heads == data.heads))

    def _evaluated(self, data: Treebank, asked: Any) -> Scores:
        labelled = self.task_.labelling != "none"
        return ParserScores(self._scored(data, asked.punctuation), labelled, asked.punctuation)

    @on_snapshot
    def judged_columns(self, corpus: Corpus, heads: np.ndarray) -> Judged:
        """Which heads of labelled columns are right."""
        return self._judged(self._columns(corpus, heads))["heads"]

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> Mapping[str, Judged]:
        """Which heads of a treebank are right."""
        check_sample(options)
        return super().judged_file(path, **options)

    # --- reports ---

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how a sentence is parsed: the tree, and every action with its stack, its buffer and its deviations.

        Parameters
        ----------
        path
            A treebank.
        number
            Which example of the file, counted from 1.
        **options
            Where things are in the file, and what `lols explain` takes besides.

        """
        from lols.tasks.explain import ExampleReport
        from lols.tasks.parsing.explain import explain_parse, read_tree

        columns, asked = self.asked("explain", options)
        parser = self.taught_by(asked.reference)
        corpus, tree, count = read_tree(parser, path, number, columns)
        parse = explain_parse(parser, corpus, tree, roll_out=asked.roll_out, beta=asked.beta)
        return ExampleReport(self.named, path, VERBS.one, number, count, parse, asked.top, asked.html).written()

    def inspected(self, values: dict[str, Any], asked: LabelOptions) -> VerbReport:
        """A report on a model file, with the features that speak for each action."""
        if not self.is_linear:
            return super().inspected(values, asked)
        from lols.tasks.parsing.inspect import inspect_parser

        return inspect_parser(self, values, asked)

    def _case(self, data: Treebank, reference: str | None, limit: int | None, seed: int) -> Case:
        missing = [name for name in self.task_.columns if name not in data.corpus.columns]
        if missing:
            raise LolsError(f"the parser looks at the column '{missing[0]}', which is not there")
        case = super()._case(data, reference, limit, seed)
        if self.beam == 1:
            return case
        return replace(case, notes=(*case.notes, f"The greedy search is judged, not the beam of {self.beam}."))

    # --- compilation ---

    def prepare(self) -> None:
        """Parse three words, and write them."""
        super().prepare()
        sentences = conll.parse(THREE_WORDS, ["form", "head", "deprel"], format="conllu")
        words = intern(Texts(sentences.buffer, sentences.begin[0], sentences.end[0]))
        trees = self.predict_columns(Corpus(dict.fromkeys(self.task_.columns, words), sentences.offsets))
        conll.replace_columns(sentences, tree_changes(ParserColumns(), trees, self.task_.plain))

    def rehearse(self) -> None:
        """Train on a few sentences, and predict."""
        words = [[f"w{k * n % 5}" for k in range(2 + n)] for n in range(8)]
        trees = [[(n, "next" if n else "root") for n in range(len(sentence))] for sentence in words]
        self.fit(words, trees, dev=(words, trees)).evaluate(words, trees)
        self.prepare()

    # --- model files ---

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What had to be changed in the treebank."""
        facts, tensors = super()._more_contents()
        return facts | {"treebank": self.prepared_}, tensors

    @classmethod
    def _described(cls, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> ParsingTask:
        kind = NeuralParsingTask if is_neural(task) else ParsingTask
        return kind.from_description(task, tensors)

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        super()._restore(task, tensors)
        self._check_beam()
        self.prepared_ = {str(name): int(count) for name, count in dict(task["treebank"]).items()}

    def _check_beam(self) -> None:
        check_whole("beam", self.beam, most=MOST_BEAM)
