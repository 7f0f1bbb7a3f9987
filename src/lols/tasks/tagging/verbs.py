"""What a tagger does with files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.datasets.worlds import tagging_data
from lols.errors import LolsError, short
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.case import Case, case_of, pair_of
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import TaggedFile, read_like_training, tag_pieces
from lols.tasks.tagging.options import VERBS, FileColumns, UnseenOptions
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.estimator import TokenEstimator
from lols.tasks.tokens.input import check_lengths, checked_labels, numbered
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.tokens.verbs import SentenceVerbs
from lols.tasks.verbs import Evaluation, VerbReport
from lols.training.calibration import Judged

TWO_WORDS = b"1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t0\t_\t_\t_\n\n"


class TaggerVerbs(SentenceVerbs, TokenEstimator):
    """The verbs of `Tagger`."""

    clusters: Any
    judged_columns: Any
    VERBS = VERBS
    STORED = (
        *("labels", "scheme", "inner_scheme", "direction", "loss", "templates", "columns", "files", "fingerprint"),
        "temperature",
    )

    @property
    def file_columns(self) -> FileColumns:
        """Where things are in files like those of training."""
        return getattr(self, "columns_", FileColumns(label="upos", use={}))

    @on_snapshot
    def predict_pieces(
        self, path: Any, columns: FileColumns, *, threads: Threads = None, confidence: bool = False
    ) -> Iterator[tuple[bytes, int]]:
        """The file with its tags replaced by predictions, piece by piece, and how many tokens each piece has."""
        return tag_pieces(self, path, columns, threads=self.threads_for(threads), confidence=confidence)

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a labelled file.

        Parameters
        ----------
        path
            A labelled file.
        threads
            How many threads share the work; None for as many as help.
        **options
            Where things are in the file, and what `lols evaluate` takes besides.

        """
        columns, asked = self.asked("evaluate", options)
        data, seconds = self._labelled(path, columns, asked)
        self._fitted.threads = threads
        self.check_plot(asked.plot)
        scores = self.evaluate_columns(data.corpus, data.labels)
        return Evaluation(scores, data.corpus.tokens, seconds).drawn(asked.plot, scores.reliability)

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which tags of a labelled file are right."""
        columns, asked = self.asked("calibrate", options)
        data, _ = self._labelled(path, columns, asked)
        return {"tags": self.judged_columns(data.corpus, data.labels)}

    def _labelled(self, path: str, columns: FileColumns, asked: UnseenOptions) -> tuple[TaggedFile, float]:
        """A labelled file, and how many seconds reading it took; what becomes of labels not known is an option."""
        data, seconds = read_like_training(path, columns)
        if asked.unseen == "error":
            data.check_known(self.task_, "count such labels as wrong with --unseen wrong")
        return data, seconds

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
        from lols.tasks.tagging.explain import explain_sentence, read_sentence
        from lols.tasks.tagging.show import TaggerReport

        columns, asked = self.asked("explain", options)
        tagger = self.taught_by(asked.reference)
        corpus, labels, count = read_sentence(tagger, path, number, columns)
        explanation = explain_sentence(tagger, corpus, labels, roll_out=asked.roll_out, beta=asked.beta)
        return TaggerReport(self.named, path, VERBS.one, number, count, explanation, asked).written()

    def inspected(self, values: dict[str, Any], asked: LabelOptions) -> VerbReport:
        """A report on a model file, with the features that speak for each label."""
        if self.policy == "neural":
            return super().inspected(values, asked)
        from lols.tasks.tagging.inspect import inspect_tagger

        return inspect_tagger(self, values, asked)

    @on_snapshot
    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate from sentences and tags."""
        self._check_fitted()
        X, y = pair_of(data)[:2]
        corpus = self._corpus(X)
        check_lengths(corpus.offsets)
        numbers, names = numbered(checked_labels(X, y))
        unknown = [name for name in names if name not in set(self.task_.labels)]
        if unknown:
            raise LolsError(f"label '{short(unknown[0])}' was never seen in training: leave its sentences out")
        return self._case(corpus, self.task_.number(names)[numbers], reference, limit, seed)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled file."""
        columns, asked = self.asked("certify", options)
        data, _ = read_like_training(path, columns)
        data.check_known(self.task_, "leave such sentences out")
        corpus = with_clusters(data.corpus, self.clusters)
        return self._case(corpus, self.task_.number(data.names)[data.numbers], asked.reference, limit, seed)

    def _case(self, corpus: Corpus, gold: np.ndarray, reference: str | None, limit: int | None, seed: int) -> Case:
        """Decisions are named by labels, as the tagger itself writes them."""
        examples, name = self.task_.examples(corpus, gold), self.task_.inner_labels.__getitem__
        backward = self.task_.direction == "backward"
        notes = ["Steps are counted from the last word to the first, as the tagger goes."] if backward else []
        return case_of(self, examples, name, reference, limit, seed, notes)

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
        made: Any = self
        data = tagging_data(8)  # kernels are compiled for types, so a few sentences do
        words = [[f"w{n}" for n in sentence["words"]] for sentence in data]
        plain = [[f"T{n:02}" for n in sentence["tags"]] for sentence in data]
        begin = {"iob1": "I", "bilou": "U", "bioes": "S"}.get(made.scheme, "B")  # of a span of one word
        spans = [[f"{begin}-{n % 2}" for n in sentence["tags"]] for sentence in data]
        kinds = {None: (plain,), "auto": (plain, spans)}.get(made.scheme, (spans,))
        for tags in (spans,) if made.loss == "f1" else kinds:
            made.fit(words, tags, dev=(words, tags)).evaluate(words, tags)
            made.prepare()
