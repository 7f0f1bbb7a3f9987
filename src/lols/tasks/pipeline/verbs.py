"""What a pipeline does with files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.errors import LolsError
from lols.io.conll import Sentences
from lols.tasks.inspect import Inspection
from lols.tasks.parsing.estimator import Parser
from lols.tasks.parsing.files import Changes, changed_pieces, cut_columns, read_treebanks, tree_changes
from lols.tasks.parsing.options import ParserColumns, ParserSearchOptions
from lols.tasks.parsing.verbs import sample_of
from lols.tasks.pieces import PIECE
from lols.tasks.pipeline.options import VERBS, PipelineExplainOptions, PipelineInspectOptions
from lols.tasks.pipeline.parsed import ParsedSentence, parsed, sentences_of
from lols.tasks.tagging.estimator import Tagger
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.verbs import SentenceVerbs
from lols.tasks.verbs import Evaluation, VerbReport
from lols.training.calibration import Judged, not_calibrated
from lols.training.model import Model

TAGGING = ("format", "header", "top", "reference", "roll_out", "beta", "html")  # what a tagger's explain takes


class PipelineVerbs(SentenceVerbs):
    """The verbs of `Pipeline`."""

    VERBS = VERBS
    taggers_: dict[str, Tagger]
    parser_: Parser
    predict: Any
    predict_columns: Any
    evaluate_columns: Any
    judged_columns: Any
    _tagged: Any
    predict_confident: Any

    @property
    def file_columns(self) -> ParserColumns:
        """Where things are in files like those of training."""
        return getattr(self, "columns_", ParserColumns(use={name: name for name in self.taggers_}))

    @property
    def used_columns(self) -> list[str]:
        """The columns that are tagged."""
        return list(self.taggers_)

    @property
    def _fitted(self) -> Model:
        """The model of the parser."""
        return self.parser_._fitted

    def models(self) -> tuple[Any, ...]:
        """The models of all parts."""
        return tuple(part._fitted for part in (*self.taggers_.values(), self.parser_))

    def check_calibrated(self) -> None:
        """Raise an error that says what to do if the confidence of a part is unknown."""
        if not self._is_calibrated():
            raise not_calibrated(self.named)

    def _is_calibrated(self) -> bool:
        """Whether all parts are."""
        return all(model.calibration is not None for model in self.models())

    def searching(self, options: ParserSearchOptions) -> Self:
        """The pipeline with a beam of another width."""
        other = copy.copy(self)
        other.parser_ = self.parser_.searching(options)
        return other

    @on_snapshot
    def predict_pieces(
        self, path: Any, columns: ParserColumns, *, threads: Threads = None, confidence: bool = False, size: int = PIECE
    ) -> Iterator[tuple[bytes, int]]:
        """The file with tags and trees replaced by predictions, piece by piece, and how many tokens each piece has."""
        tags = {name: dict(columns.use or {}).get(name, name) for name in self.taggers_}

        def predict(piece: Sentences) -> tuple[Changes, dict[str, np.ndarray]]:
            corpus, sure = Corpus(cut_columns(piece, [WORD]), piece.offsets), {}
            if confidence:
                tagged, trees, sure = self.predict_confident(corpus)
            else:
                tagged, trees = self.predict_columns(corpus)
            changes = tree_changes(columns, trees, self.parser_.task_.plain)
            for name, column in tags.items():
                changes[column] = (self.taggers_[name].task_.labels, tagged.columns[name].numbers)
            return changes, sure

        at_once = min(part.threads_for(threads) for part in (*self.taggers_.values(), self.parser_))
        others = list(tags.values())
        return changed_pieces(path, columns, others, predict, needed=False, threads=at_once, size=size)

    @on_snapshot
    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare tags and trees, predicted from words alone, with a treebank.

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
        for model in self.models():
            model.threads = threads
        self.check_plot(asked.plot)
        scores = self.searching(asked).evaluate_columns(data.corpus, *data.trees, punctuation=asked.punctuation)
        labelled = self.parser_.task_.labelling != "none"
        counted = asked.punctuation, scores.tags, data.corpus.tokens, scores.reliability
        report = ParserScores(scores.trees, labelled, *counted)
        return Evaluation(report, data.corpus.tokens, seconds).drawn(asked.plot, report.confidence)

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> dict[str, Judged]:
        """Which tags and heads of a treebank, predicted from words alone, are right."""
        data = sample_of(self, path, options)
        found: dict[str, Judged] = self.judged_columns(data.corpus, data.heads)
        return found

    def __call__(self, given: Any, tokenizer: Any = None, *, confidence: bool = False) -> Any:
        """Tag and parse a text, the words of a sentence, or several sentences: see `lols.io.Sentence`.

        A text is cut into sentences and words by rules (`lols.io.split_text`), or by `tokenizer`, a function
        from a text to lists of words. Sentences that were read from a file keep their other columns and comments.
        With `confidence` a pair: the sentences, and how likely their tags and heads are to be right, as in `predict`.
        """
        sentences = sentences_of(given, tokenizer)
        found = self.predict([sentence.words for sentence in sentences], confidence=confidence)
        words, sure = found if confidence else (found, None)
        made: list[ParsedSentence] = [parsed(*pair) for pair in zip(sentences, words, strict=True)]
        return (made, sure) if confidence else made

    @on_snapshot
    def explain(self, sentence: Any, tree: Any = None, *, top: int = 3) -> VerbReport:
        """How one sentence is parsed, step by step, with the tags that the taggers give it.

        With the true `tree`, what each deviation would cost is shown, too. The report prints with `show(console)`, and
        draws in notebooks.

        Parameters
        ----------
        sentence
            A text of one sentence, its words, or a `lols.io.Sentence`.
        tree
            The true tree, if it is known.
        top
            How many actions of each step are shown.

        """
        from lols.tasks.explain import ExampleReport
        from lols.tasks.parsing.explain import explain_parse

        given = sentences_of(sentence, None)
        if len(given) != 1:
            raise LolsError(f"explain shows one sentence; there are {len(given)} here: give one of them")
        (one,) = given
        corpus = self._tagged(corpus_of([one.words]))
        parse = explain_parse(self.parser_, corpus, tree)
        return ExampleReport(self.named, "Python", VERBS.one, 1, None, parse, PipelineExplainOptions(top=top).top)

    @on_snapshot
    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how a sentence is parsed, with the tags that the taggers give it; or how one column of it is tagged.

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
        if asked.part != "parser":
            if asked.part not in self.taggers_:
                raise LolsError(f"there is no part '{asked.part}'; choose from {', '.join(self.taggers_)} and parser")
            own = {name: value for name, value in options.items() if name in TAGGING}
            label = dict(columns.use or {}).get(asked.part, asked.part)
            return self.taggers_[asked.part].explain_file(path, number, label=label, word=columns.word, **own)
        parser = self.parser_.taught_by(asked.reference)
        corpus, tree, count = read_tree(parser, path, number, replace(columns, use={}))
        parse = explain_parse(parser, self._tagged(corpus), tree, roll_out=asked.roll_out, beta=asked.beta)
        return ExampleReport(self.named, path, VERBS.one, number, count, parse, asked.top, asked.html).written()

    @classmethod
    def inspect_file(
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], **options: Any
    ) -> VerbReport:
        """Say what is in one part of a pipeline."""
        asked = PipelineInspectOptions(**options)
        parts = dict(header.get("parts") or {})
        if asked.part not in parts:
            raise LolsError(f"{path}: there is no part '{asked.part}' in it; choose from {', '.join(parts)}")
        kind: Any = Parser if asked.part == "parser" else Tagger
        own = {name: value for name, value in options.items() if name != "part"}
        report: Inspection = kind.inspect_file(path, *part_of(asked.part, header, tensors), **own)
        report.values.update(parts=list(parts), part=asked.part)
        return report

    def prepare(self) -> None:
        """Tag and parse a few words."""
        for part in (*self.taggers_.values(), self.parser_):
            part.prepare()

    def rehearse(self) -> None:
        """Have a tagger and a parser rehearse."""
        made: Any = self
        for part in (made.tagger or Tagger(), made.parser or Parser()):
            part.warm_up()


def part_of(
    name: str, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of one part of a pipeline's file."""
    own = {k.partition("/")[2]: array for k, array in tensors.items() if k.startswith(f"{name}/")}
    return header["parts"][name], own
