"""What a parser does with files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Self

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.base import BaseEstimator
from lols.tasks.case import Case, pair_of
from lols.tasks.parsing.files import Treebank, parse_pieces, read_treebanks, tree_changes
from lols.tasks.parsing.input import checked_trees
from lols.tasks.parsing.options import VERBS, ParserColumns, ParserSearchOptions
from lols.tasks.pieces import one_thread
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.estimator import TokenOptions
from lols.tasks.tokens.input import check_lengths
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.verbs import Evaluation, VerbReport
from lols.training.calibration import Judged

THREE_WORDS = b"1\ta\t_\tX\t_\t_\t2\tx\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n3\tc\t_\tX\t_\t_\t2\ty\t_\t_\n\n"


class ParserVerbs(TokenOptions):
    """The verbs of `Parser`."""

    VERBS = VERBS
    STORED = ("labelling", "roots", "templates", "columns", "files", "fingerprint", "treebank")
    beam: int
    judged_columns: Any
    evaluate_columns: Any
    predict_columns: Any

    @property
    def file_columns(self) -> ParserColumns:
        """Where things are in files like those of training."""
        use = {name: name for name in self.task_.columns if name != "word"}
        return getattr(self, "columns_", ParserColumns(use=use))

    def searching(self, options: ParserSearchOptions) -> Self:
        """The parser with a beam of another width."""
        if options.beam is None:
            return self
        other = copy.copy(self)
        other.beam = options.beam
        return other

    @on_snapshot
    def predict_pieces(
        self, path: Any, layout: ParserColumns, asked: Any, *, threads: Threads = None
    ) -> Iterator[tuple[bytes, int]]:
        """The file with its trees replaced by predictions, piece by piece, and how many tokens each piece has."""
        with one_thread(self._fitted):
            yield from parse_pieces(self, path, layout, threads=self.threads_for(threads), confidence=asked.confidence)

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a treebank.

        Parameters
        ----------
        path
            A treebank.
        threads
            How many threads share the work; None for as many as help.
        **options
            Where things are in the file, and what `lols evaluate` takes besides.

        """
        from lols.tasks.parsing.scores import ParserScores

        columns, asked = self.asked("evaluate", options)
        data, _, seconds = read_treebanks([path], None, columns)
        self.model_.threads = threads
        self.check_plot(asked.plot)
        scores = self.searching(asked).evaluate_columns(data.corpus, *data.trees, punctuation=asked.punctuation)
        report = ParserScores(scores, self.task_.labelling != "none", asked.punctuation)
        return Evaluation(report, data.corpus.tokens, seconds).drawn(asked.plot, report.confidence)

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which heads of a treebank are right."""
        data = sample_of(self, path, options)
        return {"heads": self.judged_columns(data.corpus, data.heads)}

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
        if self.policy == "neural":
            return super().inspected(values, asked)
        from lols.tasks.parsing.inspect import inspect_parser

        return inspect_parser(self, values, asked)

    @on_snapshot
    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate from sentences and trees."""
        from lols.tasks.parsing.case import treebank_case

        self._check_fitted()
        X, y = pair_of(data)[:2]
        corpus = self._corpus(X)
        check_lengths(corpus.offsets)
        return treebank_case(self, corpus, checked_trees(X, y), reference, limit, seed)

    @on_snapshot
    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a treebank."""
        from lols.tasks.parsing.case import treebank_case

        columns, asked = self.asked("certify", options)
        data, _, _ = read_treebanks([path], None, columns)
        return treebank_case(self, data.corpus, data.trees, asked.reference, limit, seed)

    def prepare(self) -> None:
        """Parse three words, and write them."""
        super().prepare()
        sentences = conll.parse(THREE_WORDS, ["form", "head", "deprel"], format="conllu")
        words = intern(Texts(sentences.buffer, sentences.begin[0], sentences.end[0]))
        trees = self.predict_columns(Corpus(dict.fromkeys(self.task_.columns, words), sentences.offsets))
        conll.replace_columns(sentences, tree_changes(ParserColumns(), trees, self.task_.plain))

    def rehearse(self) -> None:
        """Train on a few sentences, and predict."""
        made: Any = self
        words = [[f"w{k * n % 5}" for k in range(2 + n)] for n in range(8)]
        trees = [[(n, "next" if n else "root") for n in range(len(sentence))] for sentence in words]
        made.fit(words, trees, dev=(words, trees)).evaluate(words, trees)
        made.prepare()


def sample_of(parsing: BaseEstimator, path: str, options: Mapping[str, Any]) -> Treebank:
    """The treebank to calibrate a parser or a pipeline with."""
    if "relation" in options:
        raise ConfigurationError("--relation has no effect: confidence is in heads, not in relations; leave it out")
    data, _, _ = read_treebanks([path], None, parsing.asked("calibrate", options)[0])
    return data
