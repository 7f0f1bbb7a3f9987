"""The tagger: sentences in, tags out, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.datasets.worlds import tagging_data
from lols.engine.drivers.predictions import Predictions
from lols.errors import ConfigurationError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.base import Variants
from lols.tasks.case import Case
from lols.tasks.options import INPUT, LEARNING, SEARCH, estimator, option
from lols.tasks.tagging.clusters import read_clusters, with_clusters
from lols.tasks.tagging.data import Tagged, TagScan
from lols.tasks.tagging.files import TaggedFile, TaggedFormat
from lols.tasks.tagging.options import VERBS, FileColumns, UnseenOptions
from lols.tasks.tagging.outside import fit_outside, raised
from lols.tasks.tagging.scores import TagScores, score_tags
from lols.tasks.tagging.session import Session
from lols.tasks.tagging.spans import detect_scheme
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.estimator import TokenOptions, check_words
from lols.tasks.tokens.input import checked_labels, cut, numbered, string_tensors, strings_of
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.verbs import VerbReport
from lols.training.calibration import Calibration, Judged
from lols.training.model import Model

Sentence = Sequence[str] | Sequence[Mapping[str, Any]]
TEMPERATURE = 0.5  # of shares that no held-out data have calibrated
TWO_WORDS = b"1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t0\t_\t_\t_\n\n"


@estimator
class Tagger(TokenOptions):
    """A greedy tagger, trained by learning to search.

    A sentence is a list of strings, or of dictionaries: their strings are columns that templates can name (`word` has
    all the attributes), their numbers and bools are features as they stand. Tags are strings.

    Examples
    --------
    >>> from lols import Tagger
    >>> sentences = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]] * 3
    >>> tags = [["DET", "NOUN", "VERB"]] * 9
    >>> tagger = Tagger(passes=3).fit(sentences, tags)
    >>> tagger.predict([["a", "dog", "sleeps"]])
    [['DET', 'NOUN', 'VERB']]
    >>> tagger.score(sentences, tags)
    1.0

    """

    HELP = """Train a tagger, and write a model file.

    `lols train tagger en-train.conllu --dev en-dev.conllu --column xpos -o pos.lols`
    """
    VERBS = VERBS
    PROBLEM = TaggingTask
    STORED = (
        *("labels", "scheme", "inner_scheme", "direction", "loss", "templates", "columns", "files", "fingerprint"),
        "temperature",
    )
    OF_DATA = ("templates", "more_templates", "clusters")
    WARMUP: ClassVar[Variants] = {"training and prediction": {}, "the paper's learner (csoaa)": {"learner": "csoaa"}}
    WARMUP_ALL: ClassVar[Variants] = {"spans with loss hamming": {"loss": "hamming", "scheme": "bio"}}

    clusters: Mapping[str, str] | None = option(
        default=None,
        help="Clusters of words: a mapping from words to strings such as the bit paths of Brown clusters, which "
        "templates see as the column `cluster`. The model file keeps them.",
        panel=INPUT,
        typed="A file of word clusters: 'word TAB cluster' or Brown's 'path TAB word TAB count' in each line.",
        kind=str | None,
        parse=read_clusters,
    )
    scheme: str | None = option(
        default="auto",
        help="How spans are written in the tags: bio, iob1, bilou, bioes, None for plain tags, or auto. Only legal "
        "sequences are predicted.",
        panel=INPUT,
        typed="How spans are written in the tags: auto, bio, iob1, bilou, bioes, or none for plain tags.",
        kind=str,
        parse=lambda name: None if name == "none" else name,
    )
    inner_scheme: str | None = option(
        default="auto",
        help="How the tagger itself writes spans; predictions are in `scheme`. auto is what measured best.",
        panel=LEARNING,
        kind=str,
    )
    direction: str = option(
        default="auto",
        help="forward; backward, from the last word to the first, where places in templates count along; or auto: "
        "backward for spans, where it measured better, else forward.",
        panel=SEARCH,
    )
    loss: str = option(
        default="auto",
        help="What is minimised: hamming (wrong tags); for spans also f1 (false positives, and false negatives at "
        "three times the cost, which finds more of rare spans); or auto: f1 where most words are in no span, with the "
        "linear policy and the hinge; else hamming, also for streams, whose spans may be rare or not.",
        panel=LEARNING,
    )

    task_: TaggingTask = field(init=False)
    outside_cost_ = 0.0  # how much more O costs than was learned
    _tokens = 0  # that were learned from
    _stored_temperature = TEMPERATURE  # of files without a calibration

    # --- data ---

    def _corpus(self, X: Sequence[Sentence]) -> Corpus:
        return with_clusters(super()._corpus(X), self.clusters)

    def _data(self, X: Sequence[Sentence], y: Sequence[Sequence[str]] | None = None) -> Tagged:
        corpus = self._corpus(X)
        return Tagged(corpus) if y is None else Tagged(corpus, *numbered(checked_labels(X, y)))

    def _columns(self, corpus: Corpus, labels: Any = None) -> Tagged:
        """Columns as data: `labels` are strings, or numbers and the strings that they number."""
        corpus = with_clusters(corpus, self.clusters)
        return Tagged(corpus) if labels is None else Tagged(corpus, *numbered(labels))

    def _format(self, layout: FileColumns, **training: Any) -> TaggedFormat:
        return TaggedFormat(layout, self.clusters)

    @property
    def file_columns(self) -> FileColumns:
        """Where things are in files like those of training."""
        found: FileColumns = vars(self).get("columns_") or FileColumns(label="upos", use={})
        return found

    def _read(self, path: str, layout: FileColumns, asked: Any) -> TaggedFile:
        data = super()._read(path, layout, asked)
        data.layout.check(data.files[0])
        if isinstance(asked, UnseenOptions) and asked.unseen == "error":
            data.check_known(self.task_, "count such labels as wrong with --unseen wrong")
        return data

    # --- training ---

    @exclusive
    def fit_columns(self, corpus: Corpus, labels: Any, *, dev: Any = None, **fitting: Any) -> Self:
        """Train on columns: `labels` are strings, or numbers and the strings that they number; `dev` likewise."""
        held = None if dev is None else self._columns(*dev)
        return self._fit(self._columns(corpus, labels), held, **fitting)

    def _proposed_for(self, data: Tagged, classes: Sequence[str] | None) -> TaggingTask:
        if classes is None:
            raise ConfigurationError("the first call of partial_fit needs classes: all tags that there can be")
        self.outside_cost_ = 0.0
        scan = replace(data.scan(stream=True), names=list(classes), scheme=detect_scheme(classes))
        return TaggingTask.propose(scan, self)

    def _note(self, scan: TagScan, *, anew: bool, stream: bool = False) -> None:
        self.note_values(scan.strings, anew=anew)
        self.fingerprint_ = scan.fingerprint
        self._tokens = scan.tokens + (self._tokens if stream else 0)
        if not stream:
            self.model_.about["tokens"] = scan.tokens

    def _about_data(self) -> dict[str, Any]:
        return {"tokens": self._tokens}

    def _facts(self) -> dict[str, Any]:
        return {"labels": len(self.task_.labels), "scheme": self.task_.scheme}

    def _margin(self, problem: Any) -> str:
        """With a unit margin, only the order of costs matters, and both losses want the same label first."""
        return "weighted" if problem.loss == "f1" else "unit"

    # --- what O costs ---

    def _tune(self, held: Any, goes_on: bool) -> None:
        """Let O cost what serves the F1 of the dev data; without any, what it cost before if learning went on."""
        if held is None:
            self.outside_cost_ = self.outside_cost_ if goes_on else 0.0
        else:
            found = fit_outside(self.model_, held)
            self.outside_cost_ = 0.0 if found is None else found.cost
            if found is not None:
                self.model_.report["outside"] = found._asdict()
        self.model_ = self._tuned(self.model_)

    def _tuned(self, model: Model) -> Model:
        return raised(model, self.task_, self.outside_cost_)

    def _as_learned(self) -> Model:
        return raised(self._fitted, self.task_, -self.outside_cost_)

    # --- prediction ---

    @on_snapshot
    def predict_columns(self, corpus: Corpus) -> np.ndarray:
        """The numbers of the labels of all words (into `classes_`)."""
        numbers: np.ndarray = self._predicted(self._columns(corpus))[0]
        return numbers

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the labels of all words, and how likely each is to be right."""
        return self._predicted(self._columns(corpus), confidence=True)

    @on_snapshot
    def session(self) -> Session:
        """Tag a data set piece by piece, in columns, without doing again what was done for the pieces before."""
        self._check_fitted()
        return Session(self.task_, self._fitted, self.clusters)

    def _session(self) -> Callable[[Any, bool], tuple[Any, Any]]:
        return self.session().predicted

    @on_snapshot
    def predict_costs(self, X: Sequence[Sentence]) -> list[np.ndarray]:
        """Predicted costs `[word, label]` of each sentence, infinite for illegal ones; the least was taken.

        Columns are `classes_`. For spans a cost is that of the cheapest decision with which the word would have this
        label, if all other decisions stayed as they are.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.

        """
        corpus = self._corpus(X)
        if corpus.tokens == 0:
            return [np.zeros((0, len(self.task_.labels)), np.float32) for _ in X]
        run = self._scored(corpus)
        return cut(self.task_.label_costs(run.all_costs(), run.all_actions(), corpus.offsets), corpus.offsets)

    @on_snapshot
    def predict_confidence(self, X: Sequence[Sentence]) -> list[np.ndarray]:
        """How sure the tagger is of each tag, between 0 and 1.

        If the tagger is calibrated, this is the probability that the tag is right. Otherwise it is the tag's share in a
        softmax of the costs with a temperature of 0.5, which only says of which of two tags the tagger is surer.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.

        """
        self._check_fitted()
        if self._fitted.calibration is not None:
            return list(self.predict(X, confidence=True)[1])
        corpus = self._corpus(X)
        if corpus.tokens == 0:
            return [np.zeros(0) for _ in X]
        shares = Calibration(self.temperature_).shares(self._scored(corpus).all_costs())
        return cut(self.task_.in_order(shares.max(axis=1), corpus.offsets), corpus.offsets)

    def _scored(self, corpus: Corpus) -> Predictions:
        """Predictions with all costs."""
        self._check_fitted()
        return self._fitted.run(self.task_.examples(corpus), scores=True)

    @on_snapshot
    def predict_kbest(
        self, X: Sequence[Sentence], k: int = 5, width: int | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """The `k` best taggings of each sentence with their scores, best first, by a beam search.

        A score is how much the tags together seem to cost more than the cheapest choices on their way: 0 is the best.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        k
            How many taggings of each sentence.
        width
            How many paths the beam follows; None for a width that follows from `k`.

        """
        from lols.engine.beam import beam_search

        if k < 1:
            raise ConfigurationError(f"k is {k}; it must be at least 1")
        corpus = self._corpus(X)
        self._check_fitted()
        if corpus.tokens == 0:
            return [[([], 0.0)] for _ in X]
        beams = beam_search(self._fitted, self.task_.examples(corpus), width=width or k, best=k)

        def tags(actions: np.ndarray) -> list[str]:
            whole = np.array([0, actions.size], np.int64)
            return self.task_.named(self.task_.labels_of(actions.astype(np.int64), whole))

        return [
            [(tags(a), score) for a, score in zip(beams.actions(i), beams.scores(i).tolist(), strict=True)]
            for i in range(len(X))
        ]

    @property
    def classes_(self) -> np.ndarray:
        """The tags, in the order of their numbers."""
        self._check_fitted()
        return np.array(self.task_.labels, dtype=object)

    @property
    def temperature_(self) -> float:
        """What costs are divided by before a softmax turns them into shares: fitted if the tagger is calibrated."""
        calibration = self._fitted.calibration
        return float(self._stored_temperature) if calibration is None else calibration.temperature

    @property
    def action_labels_(self) -> list[str]:
        """What the tagger decides between, and the columns of `scores`: the tags, or for spans the tagger's own labels.

        Those are of the inner scheme, in the direction of tagging: from the end, a span "begins" with its last word.
        """
        self._check_fitted()
        return list(self.task_.inner_labels)

    # --- scores ---

    def score(self, X: Sequence[Sentence], y: Sequence[Sequence[str]]) -> float:
        """The share of right tags.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        y
            The tags of each sentence.

        """
        return self.evaluate(X, y).accuracy

    @on_snapshot
    def evaluate_columns(self, corpus: Corpus, labels: Any) -> TagScores:
        """The scores on columns; labels that training never saw count as wrong."""
        self._check_fitted()
        return self._evaluated(self._columns(corpus, labels), None)

    def _evaluated(self, data: Tagged, asked: Any) -> TagScores:
        """Accuracy, also of words not seen in training, and for spans precision, recall and F1 as conlleval counts."""
        check_words(data.corpus)
        predicted, sure = self._predicted(data, self._knows_confidence())
        return score_tags(self.task_, data.corpus, *data.labels, predicted, self.vocabulary_, sure)

    @on_snapshot
    def judged_columns(self, corpus: Corpus, labels: Any) -> Judged:
        """Which tags of labelled columns are right; labels that training never saw are not."""
        return self._judged(self._columns(corpus, labels))["tags"]

    # --- reports ---

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how a sentence is tagged: the labels, the one-step deviations, and what each would have cost.

        Parameters
        ----------
        path
            A labelled file.
        number
            Which example of the file, counted from 1.
        **options
            Where things are in the file, and what `lols explain` takes besides.

        """
        from lols.tasks.explain import ExampleReport
        from lols.tasks.tagging.explain import explain_sentence, read_sentence

        columns, asked = self.asked("explain", options)
        tagger = self.taught_by(asked.reference)
        corpus, labels, count = read_sentence(tagger, path, number, columns)
        explanation = explain_sentence(tagger, corpus, labels, roll_out=asked.roll_out, beta=asked.beta)
        return ExampleReport(self.named, path, VERBS.one, number, count, explanation, asked.top, asked.html).written()

    def inspected(self, values: dict[str, Any], asked: LabelOptions) -> VerbReport:
        """A report on a model file, with the features that speak for each label."""
        if not self.is_linear:
            return super().inspected(values, asked)
        from lols.tasks.tagging.inspect import inspect_tagger

        return inspect_tagger(self, values, asked)

    def _case(self, data: Tagged, reference: str | None, limit: int | None, seed: int) -> Case:
        data.check_known(self.task_)
        return super()._case(data, reference, limit, seed)

    # --- compilation ---

    def prepare(self) -> None:
        """Tag two words, and write them."""
        super().prepare()
        sentences = conll.parse(TWO_WORDS, ["form", "upos"], format="conllu")
        words = intern(Texts(sentences.buffer, sentences.begin[0], sentences.end[0]))
        columns = {name: words for name in self.task_.layout.columns} | {WORD: words}
        numbers = self.predict_columns(Corpus(columns, sentences.offsets))
        conll.replace(sentences, "upos", self.task_.labels, numbers)

    def rehearse(self) -> None:
        """Train on a few sentences, with plain tags or with spans as the options say, and predict."""
        data = tagging_data(8)  # kernels are compiled for types, so a few sentences do
        words = [[f"w{n}" for n in sentence["words"]] for sentence in data]
        plain = [[f"T{n:02}" for n in sentence["tags"]] for sentence in data]
        begin = {"iob1": "I", "bilou": "U", "bioes": "S"}.get(str(self.scheme), "B")  # of a span of one word
        spans = [[f"{begin}-{n % 2}" for n in sentence["tags"]] for sentence in data]
        kinds = {None: (plain,), "auto": (plain, spans)}.get(self.scheme, (spans,))
        for tags in (spans,) if self.loss == "f1" else kinds:
            self.fit(words, tags, dev=(words, tags)).evaluate(words, tags)
            self.prepare()

    # --- model files ---

    def _more_contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The temperature of confidences, what O costs, and the clusters."""
        facts, tensors = super()._more_contents()
        facts |= {"temperature": self.temperature_} | (
            {"outside_cost": self.outside_cost_} if self.outside_cost_ else {}
        )
        if self.clusters is not None:
            tensors |= string_tensors("clustered", list(self.clusters))
            tensors |= string_tensors("clusters", list(self.clusters.values()))
        return facts, tensors

    def _restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        super()._restore(task, tensors)
        if not 0.0 < float(task["temperature"]) < float("inf"):
            raise ValueError("the temperature is not positive")
        self._stored_temperature = float(task["temperature"])
        self.outside_cost_ = float(task.get("outside_cost", 0.0))
        if not np.isfinite(self.outside_cost_):
            raise ValueError("what O costs is not a number")
        if "clusters" in tensors:
            words, clusters = strings_of("clustered", tensors), strings_of("clusters", tensors)
            self.clusters = dict(zip(words, clusters, strict=True))
