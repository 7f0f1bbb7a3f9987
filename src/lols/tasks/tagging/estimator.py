"""The tagger: sentences in, tags out, with scikit-learn's habits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.choosing import runs
from lols.contract.examples import Examples
from lols.contract.sharing import exclusive, on_snapshot
from lols.errors import ConfigurationError, LolsError
from lols.tasks.base import Variants
from lols.tasks.options import INPUT, LEARNING, SEARCH, estimator, option
from lols.tasks.search import Judges
from lols.tasks.tagging.clusters import read_clusters, with_clusters
from lols.tasks.tagging.files import read_files, tagged
from lols.tasks.tagging.held_out import HeldOut, judged_tags
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tagging.outside import fit_outside, outside_words, raised
from lols.tasks.tagging.own_files import fit_own_files
from lols.tasks.tagging.prediction import Sentence, TaggerPrediction
from lols.tasks.tagging.scores import TagScores, score_tags
from lols.tasks.tagging.spans import detect_scheme, detect_scheme_columns
from lols.tasks.tagging.task import SCHEMES, TaggingTask
from lols.tasks.tokens.corpus import Corpus, sentence_counts
from lols.tasks.tokens.input import check_lengths, checked_labels, known_numbers, numbered, string_tensors, strings_of
from lols.tasks.tokens.own_files import by_workers
from lols.tasks.verbs import Say
from lols.training.calibration import Judged, check_enough
from lols.training.clock import Clock
from lols.training.model import Model

RARE = 0.5  # of the words are in no span: from there on spans are rare


@estimator
class Tagger(TaggerPrediction):
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
    Task = TaggingTask
    OF_DATA = ("templates", "more_templates", "clusters")
    WARMUP: ClassVar[Variants] = {"training and prediction": {}, "the paper's learner (csoaa)": {"learner": "csoaa"}}
    WARMUP_ALL: ClassVar[Variants] = {"spans with loss hamming": {"loss": "hamming", "scheme": "bio"}}
    UNIT = "tokens"
    RATE = 0.06  # chosen on the last tenth of the WSJ sample and on EWT's dev part

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

    # --- training ---

    @exclusive
    def fit(
        self,
        X: Sequence[Sentence],
        y: Sequence[Sequence[str]],
        *,
        dev: tuple[Sequence[Sentence], Sequence[Sequence[str]]] | None = None,
    ) -> Tagger:
        """Train from scratch. With `dev` sentences and tags, the pass that tags them best is kept.

        For spans, `outside_cost_` is then how much more O costs than was learned, for the best F1 of these sentences.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        y
            The tags of each sentence.
        dev
            Sentences and tags that are not learned from, to keep the best pass and to calibrate with.

        """
        corpus, strings = self._corpus(X), checked_labels(X, y)
        check_lengths(corpus.offsets)
        held = None if dev is None else (self._corpus(dev[0]), checked_labels(*dev))
        return self.fit_columns(corpus, strings, dev=held)

    @exclusive
    def fit_columns(
        self,
        corpus: Corpus,
        labels: Sequence[str] | tuple[np.ndarray, Sequence[str]],
        *,
        dev: Any = None,
        **fitting: Any,
    ) -> Tagger:
        """Train on columns: `labels` are strings, or numbers and the strings that they number."""
        corpus = with_clusters(corpus, self.clusters)
        numbers, names = numbered(labels)
        goes_on = self._goes_on()
        task = self.task_.with_labels(names).grown_by(corpus) if goes_on else self._task(corpus, numbers, names)
        if goes_on:
            fitting |= {"goes_on": True, "places": np.arange(len(self.task_.inner_labels))}
        held = None if dev is None else HeldOut(task, *self._held_corpus(task, *dev))
        gold = task.number(names)[numbers]

        def judge(model: Model, part: Examples, chosen: np.ndarray) -> Judged:
            at, offsets = runs(corpus.offsets, chosen)
            return judged_tags(task, model, part, offsets, gold[at])

        judges = Judges(judge, None if held is None else held.judged)
        self._train(task, lambda: task.examples(corpus, gold), held, judges, **fitting)
        self._stream = self._model = None
        self._finish(corpus, numbers, anew=not goes_on)
        return self

    def fit_read(self, paths: list[str], dev: str | None, layout: FileColumns, say: Say, **fitting: Any) -> Self:
        """Train on labelled files."""
        clock = Clock()
        if by_workers(self, paths, dev):
            return fit_own_files(self, paths, layout, dev, say, **fitting)
        files, places = read_files(paths, layout)
        dev_files = read_files([dev], places)[0] if dev else None
        reading = clock.working()
        data = tagged(files, places)
        data.check_labels()
        data.check_text()
        held = tagged(dev_files, places) if dev_files else None
        say(data.summary())
        if held is not None:
            held.check_labels()
            unseen = sorted(set(held.names) - set(data.names))
            if unseen:
                say(f"labels of the dev file that training never sees, counted as wrong: {', '.join(unseen)}")
        self.columns_ = places
        dev_data = None if held is None else (held.corpus, held.labels)
        self.fit_columns(data.corpus, data.labels, dev=dev_data, **fitting)
        facts = {"labels": len(self.task_.labels), "scheme": self.task_.scheme}
        self.training_facts_ = sentence_counts(data.corpus) | facts | {"seconds_reading": reading}
        return self

    @exclusive
    def partial_fit(
        self, X: Sequence[Sentence], y: Sequence[Sequence[str]], classes: Sequence[str] | None = None
    ) -> Tagger:
        """Learn from the next sentences of a stream, in the given order.

        The first call needs `classes`, all tags that there can be; those that a later call adds are learned from then
        on. Over the whole data, this is `fit` with one pass and `shuffle=False`, bit for bit, however the data is cut.
        A loaded tagger goes on from the learner's state if its file has it, else from the weights. A network learns
        from each call at once, so that its weights depend on how the data is cut. The default loss of a stream is
        hamming, that of `fit` depends on how rare spans are: name one where the two are to agree.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        y
            The tags of each sentence.
        classes
            All tags that may come, in the first call; later only new ones.

        """
        corpus, strings = self._corpus(X), checked_labels(X, y)
        if len(X):
            check_lengths(corpus.offsets)
        task: Any = getattr(self, "task_", None)
        stream: Any = self._stream
        if task is None:
            if classes is None:
                raise ConfigurationError("the first call of partial_fit needs classes: all tags that there can be")
            scheme = detect_scheme(classes) if self.scheme == "auto" else self.scheme
            task = self._new_task(corpus, classes, scheme)
            stream = self._trainer(task).stream() if self.policy == "linear" else None
            self.outside_cost_ = 0.0
        elif self.policy == "neural":
            task = task.with_labels([] if classes is None else list(classes))
        elif stream is None or classes is not None:
            wider = task.with_labels([] if classes is None else list(classes))
            if stream is None or wider is not task:
                stream = self._opened(wider, np.arange(len(task.inner_labels)))
            task = wider
        if self.policy == "neural":
            task, stream = self._learned_on(task, corpus)
        if corpus.tokens:
            numbers, names = numbered(strings)
            stream.learn(task.examples(corpus, known_numbers(task, names)[numbers]))
        self.task_, self._stream, self._model = task, stream, None
        self._finish(corpus, None)
        return self

    @exclusive
    def stop_learning(self) -> Tagger:
        """Let go of what only further learning needs: with many tags, that is most of the memory."""
        self._check_fitted()
        self.model_ = self._fitted
        self._stream = self.model_.learning = None
        return self

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
    def evaluate(self, X: Sequence[Sentence], y: Sequence[Sequence[str]]) -> TagScores:
        """Accuracy, also of words not seen in training, and for spans precision, recall and F1 as conlleval counts.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and further columns.
        y
            The tags of each sentence.

        """
        return self.evaluate_columns(self._corpus(X), checked_labels(X, y))

    @on_snapshot
    def evaluate_columns(self, corpus: Corpus, labels: Any) -> TagScores:
        """The same on columns; labels that training never saw count as wrong."""
        predicted, sure = self._predicted(corpus)
        return score_tags(self.task_, corpus, *numbered(labels), predicted, self.vocabulary_, sure)

    def _judged_on(self, X: Sequence[Sentence], y: Sequence[Sequence[str]]) -> dict[str, Judged]:
        return {"tags": self.judged_columns(self._corpus(X), checked_labels(X, y))}

    @on_snapshot
    def judged_columns(self, corpus: Corpus, labels: Any) -> Judged:
        """Which tags of labelled columns are right; labels that training never saw are not."""
        check_enough(corpus.tokens)
        return HeldOut(self.task_, *self._held_corpus(self.task_, corpus, labels)).judged(self._fitted)

    def _about_data(self) -> dict[str, Any]:
        return {"tokens": self._tokens}

    def more_facts(self) -> dict[str, Any]:
        """The temperature of confidences, and what O costs."""
        return {"temperature": self.temperature_} | ({"outside_cost": self.outside_cost_} if self.outside_cost_ else {})

    def stored_strings(self) -> dict[str, np.ndarray]:
        """The strings of all columns, and the clusters."""
        tensors = super().stored_strings()
        if self.clusters is not None:
            tensors |= string_tensors("clustered", list(self.clusters))
            tensors |= string_tensors("clusters", list(self.clusters.values()))
        return tensors

    def restore(self, task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
        """Take over what else a model file has."""
        if not 0.0 < float(task["temperature"]) < float("inf"):
            raise ValueError("the temperature is not positive")
        self._stored_temperature = float(task["temperature"])  # of files without a calibration
        self.outside_cost_ = float(task.get("outside_cost", 0.0))
        if not np.isfinite(self.outside_cost_):
            raise ValueError("what O costs is not a number")
        if "task.clusters" in tensors:
            words, clusters = strings_of("clustered", tensors), strings_of("clusters", tensors)
            self.clusters = dict(zip(words, clusters, strict=True))
        self._stream = self._model = None

    # --- what O costs ---

    def _tune(self, held: HeldOut | None, goes_on: bool) -> None:
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
        return raised(model, self.task_, getattr(self, "outside_cost_", 0.0))

    def _as_learned(self) -> Model:
        return raised(self._fitted, self.task_, -self.outside_cost_)

    # --- helpers ---

    def _margin(self, task: TaggingTask) -> str:
        """With a unit margin, only the order of costs matters, and both losses want the same label first."""
        return "weighted" if task.loss == "f1" else "unit"

    def _corpus(self, X: Sequence[Sentence]) -> Corpus:
        return with_clusters(super()._corpus(X), self.clusters)

    def _task(self, corpus: Corpus, numbers: np.ndarray, names: Sequence[str]) -> TaggingTask:
        scheme = self.scheme
        if scheme == "auto":
            scheme = detect_scheme_columns(numbers, corpus.offsets, names)
        return self._new_task(corpus, names, scheme, outside_words(numbers, names) / max(numbers.size, 1))

    def _new_task(self, corpus: Corpus, names: Sequence[str], scheme: str | None, outside: float = 0.0) -> TaggingTask:
        options = self._task_options(tuple(corpus.columns), scheme, outside)
        if self.policy == "neural":
            neural: TaggingTask = self.neural_class()(
                sorted(set(names)), **options, vocabulary=self.network_vocabulary(corpus)
            )
            return neural
        return TaggingTask(sorted(set(names)), **options)

    @classmethod
    def neural_class(cls) -> Any:
        """The class of the task of a neural policy."""
        from lols.tasks.tagging.neural import NeuralTaggingTask

        return NeuralTaggingTask

    def _task_options(self, columns: tuple[str, ...], scheme: str | None, outside: float) -> dict[str, Any]:
        """How the task is made; `outside` is the share of the words that are in no span."""
        if scheme is not None and scheme not in SCHEMES:
            raise ConfigurationError(f"unknown scheme '{scheme}': choose auto, {', '.join(SCHEMES)}, or None")
        inner = self.inner_scheme
        if inner == "auto":
            inner = None
        direction = self.direction
        if direction == "auto":
            direction = "forward" if scheme is None else "backward"
        loss = self.loss
        if loss == "auto":
            learns = (self.policy, self.learner) == ("linear", "hinge")
            loss = "f1" if scheme is not None and learns and outside > RARE else "hamming"
        named = {"scheme": scheme, "inner_scheme": inner, "direction": direction, "loss": loss}
        return {"columns": columns, **self.template_lines(), **named}

    def _held_corpus(self, task: TaggingTask, corpus: Corpus, labels: Any) -> tuple[Corpus, np.ndarray]:
        if corpus.tokens == 0:
            raise LolsError("there are no dev sentences to choose on: give some, or no dev data")
        numbers, names = numbered(labels)
        return with_clusters(corpus, self.clusters), task.number(names)[numbers]

    def _finish(self, corpus: Corpus, numbers: np.ndarray | None, *, anew: bool = False) -> None:
        """Note what else the model file holds."""
        self.note_strings(corpus, anew=anew)
        if numbers is None:
            self._tokens = getattr(self, "_tokens", 0) + corpus.tokens
            self.fingerprint_ = ""
        else:
            self._tokens = corpus.tokens
            self.fingerprint_ = corpus.fingerprint(numbers)
            self.model_.about["tokens"] = corpus.tokens
