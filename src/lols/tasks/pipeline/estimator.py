"""Taggers and a parser in one: words in, tags and trees out.

The parser learns from tags like those it will see: every sentence of the treebank is tagged by taggers that were
trained on the others (jack-knifing).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.room import Room
from lols.io.strings import Column, texts_of
from lols.tasks.base import Variants, not_fitted, unfitted
from lols.tasks.choice import check_patience
from lols.tasks.options import LEARNING, estimator, option, shared, values_of
from lols.tasks.parsing.estimator import Parser, Sentence, Tree
from lols.tasks.parsing.files import read_treebanks
from lols.tasks.parsing.input import checked_trees
from lols.tasks.parsing.options import ParserColumns
from lols.tasks.parsing.scores import TreeScores
from lols.tasks.parsing.treebank import Trees
from lols.tasks.pipeline.learning import COMMON, PipelineLearning, check_filled, labels_of
from lols.tasks.pipeline.progress import PipelineProgress
from lols.tasks.pipeline.verbs import part_of
from lols.tasks.tagging.estimator import Tagger
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.input import check_lengths, checked_sentences
from lols.tasks.verbs import Say, silent
from lols.training.calibration import Judged, Reliability, check_enough
from lols.training.model import Model

TAGS = ("upos", "xpos", "feats")
RELATION = ("deprel", "relation")  # the name in CoNLL-U, and an older one
TAKEN = {WORD, "parser", "head", *RELATION}  # what else a part or a key of `predict` is called
MOST_TAGS = 16  # columns


class PipelineScores(NamedTuple):
    """The share of right tags in every column, the scores of the trees, and how reliable the confidence in tags is."""

    tags: dict[str, float]
    trees: TreeScores
    reliability: dict[str, Reliability]  # empty if confidence is unknown


def tags_of(text: str) -> list[str]:
    """The columns to tag, as they are typed."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if any(":" in name for name in names):
        raise ConfigurationError(f"--tags is '{text}': name whole columns, such as upos,feats")
    return names


@estimator
class Pipeline(PipelineLearning):
    """A parser with the taggers that it needs.

    Examples
    --------
    >>> from lols import Pipeline
    >>> the, dog, barks = ({"word": w, "upos": t} for w, t in (("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")))
    >>> pipeline = Pipeline(folds=2).fit([[the, dog, barks]] * 8, [[(2, "det"), (3, "nsubj"), (0, "root")]] * 8)
    >>> pipeline.predict([["the", "dog", "barks"]])[0][1]
    {'word': 'dog', 'upos': 'NOUN', 'head': 3, 'deprel': 'nsubj', 'relation': 'nsubj'}

    """

    HELP = """Train taggers and a dependency parser that works on their tags, and write one model file.

    Options of search and learning are the parser's; passes, patience and those of networks are for all parts.

    `lols train pipeline en-train.conllu --dev en-dev.conllu -o en.lols`
    """
    WITHOUT = ("use",)
    PARTS = (Parser,)
    AGAIN = Parser.AGAIN
    WARMUP: ClassVar[Variants] = {}  # its parts are there already

    tags: Sequence[str] | None = option(
        default=None,
        help="The columns to tag, such as upos,xpos; by default those of upos, xpos and feats that are filled in.",
        kind=str | None,
        parse=tags_of,
        common=True,
    )
    folds: int = option(
        default=5,
        help="Into how many parts the treebank is cut so that each is tagged by taggers trained on the others, for "
        "the parser to learn from; 1 trains the parser on the treebank's own tags.",
        panel=LEARNING,
    )
    tagger: Tagger | None = option(
        default=None, help="How to train the taggers: a `lols.Tagger`, which is copied.", cli=False
    )
    parser: Parser | None = option(
        default=None, help="How to train the parser: a `lols.Parser`, which is copied.", cli=False
    )
    seed: int = shared(Parser, "seed", default=0)
    threads: int | str | None = shared(Parser, "threads", default=None)
    engine: Any = shared(Parser, "engine", default=None)
    progress: bool | None = shared(Parser, "progress", default=None)
    warm_start: bool = shared(Parser, "warm_start", default=False)
    keep_state: bool = shared(Parser, "keep_state", default=False)

    @classmethod
    def from_typed(cls, typed: Mapping[str, Any]) -> Pipeline:
        """The pipeline with the options that were typed: taggers take passes, patience and those of networks."""
        values = values_of(Parser, typed)
        tagger = Tagger(**{name: values[name] for name in COMMON if name in values})
        own = values_of(cls, typed)
        return cls(**own, tagger=tagger, parser=Parser(**{k: v for k, v in values.items() if k not in own}))

    @property
    def model_(self) -> Model:
        """The model of the parser."""
        return self.parser_._fitted

    # --- training ---

    def fit_read(self, paths: list[str], dev: str | None, layout: ParserColumns, say: Say, **fitting: Any) -> Self:
        """Train on treebanks."""
        if self.tags is not None:
            layout = replace(layout, use={name: name for name in self.tags})
        data, held, reading = read_treebanks(paths, dev, layout)
        if not self.goes_on:
            self._check_parser()
        say(data.summary())
        self.columns_ = data.columns
        dev_data = None if held is None else (held.corpus, *held.trees)
        self.fit_columns(data.corpus, *data.trees, dev=dev_data, say=say, **fitting)
        for line in self.parser_.treebank_notes(data.place):
            say(line)
        facts = {"folds": self.folds, "tags": list(self.taggers_), "seconds_reading": reading}
        self.training_facts_ = self.parser_.treebank_facts(data.corpus) | facts
        return self

    @exclusive
    def fit(
        self, X: Sequence[Sentence], y: Sequence[Tree], *, dev: tuple[Sequence[Sentence], Sequence[Tree]] | None = None
    ) -> Pipeline:
        """Train on sentences, lists of dictionaries with words and tags, and their trees.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.
        dev
            Sentences and trees that are not learned from, to keep the best passes and to calibrate with.

        """
        corpus = corpus_of(checked_sentences(X))
        trees = checked_trees(X, y)
        check_lengths(corpus.offsets)
        held = None if dev is None else (corpus_of(checked_sentences(dev[0])), *checked_trees(*dev))
        return self.fit_columns(corpus, *trees, dev=held)

    def _check_parser(self) -> None:
        """Train the parser on three words: mistakes in its options must show before the taggers are trained."""
        tiny = unfitted(self.parser or Parser()).set_params(
            passes=1, progress=False, templates=None, more_templates=None, patience=None, calibrate=False
        )
        tiny.fit([["a", "b", "c"]], [[(2, "x"), (0, "root"), (2, "y")]])

    @exclusive
    def fit_columns(
        self,
        corpus: Corpus,
        heads: np.ndarray,
        numbers: np.ndarray,
        names: Sequence[str],
        *,
        dev: Any = None,
        say: Say = silent,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> Pipeline:
        """Train on columns, as in `Parser.fit_columns`; `say` is called with what is being done.

        The parser learns from tags of taggers that have not seen the sentence: by jack-knifing, or, where training goes
        on with other data, of the taggers as they were.
        """
        self.check_going_on()
        for part in (self.tagger, self.parser):
            if part is not None:
                check_patience(part.patience, dev is not None)
        if self.folds < 1 or self.folds > corpus.offsets.size - 1:
            raise ConfigurationError(f"folds is {self.folds}; it must be from 1 to the number of sentences")
        wanted = (
            [name for name in TAGS if name in corpus.columns and corpus.columns[name].texts.begin.size > 1]
            if self.tags is None
            else list(self.tags)
        )
        wanted = list(self.taggers_) if self.goes_on else wanted
        missing = [name for name in wanted if name not in corpus.columns]
        if missing or not wanted:
            raise LolsError(
                f"there is no column {missing[0] if missing else 'of tags'} to learn: name others with tags"
            )
        if len(wanted) > MOST_TAGS or len({*wanted}) < len(wanted):
            raise ConfigurationError(f"tags names a column twice, or more than {MOST_TAGS}: leave some out")
        if taken := TAKEN & {*wanted}:
            raise ConfigurationError(f"a column of tags cannot be called {min(taken)}: give it another name")
        _check_columns(corpus, [WORD, *wanted])
        if dev is not None:
            _check_columns(dev[0], [WORD, *wanted])
        words = Corpus({WORD: corpus.columns[WORD]}, corpus.offsets)
        held = None if dev is None else Corpus({WORD: dev[0].columns[WORD]}, dev[0].offsets)
        progress = PipelineProgress(checkpoint, self.identity(corpus, heads, numbers, dev), resume=resume)
        goes_on = self.goes_on
        seen = dict(self._tagged(words).columns) if goes_on else {}
        taggers: dict[str, Tagger] = {}
        for name in wanted:
            column = corpus.columns[name]
            if not goes_on:
                seen[name] = self.jackknifed(name, words, column, progress, say) if self.folds > 1 else column
            gold = None if held is None else (held, labels_of(dev[0].columns[name]))
            taggers[name] = self.trained_tagger(name, words, column, gold, progress, say)
        how = "tags that were predicted" if self.folds > 1 or goes_on else "the treebank's own tags"
        say(f"the parser, on {how}")
        parser = self.old_part(self.parser_) if goes_on else self.new_part(self.parser or Parser())
        self.taggers_ = taggers
        if dev is not None:
            dev = (self._tagged(dev[0]), *dev[1:])
        tagged = words._replace(columns=words.columns | seen)
        parser.fit_columns(tagged, heads, numbers, names, dev=dev, **progress.fitting())
        self.parser_, self.path_ = parser, None
        progress.end()
        return self

    def as_it_is(self) -> Self:
        """A copy that later changes of the pipeline and its parts leave as it is."""
        with self._lock.here():
            made = super().as_it_is()
            if made.__sklearn_is_fitted__():
                made.taggers_ = {name: part.as_it_is() for name, part in made.taggers_.items()}
                made.parser_ = made.parser_.as_it_is()
            return made

    # --- prediction ---

    @on_snapshot
    def predict(self, X: Sequence[Sentence], *, confidence: bool = False) -> Any:
        """A dictionary for every word: its tags, its `head`, counted from 1, and its relation, `deprel`.

        The names are those of CoNLL-U, as in the sentences that a call of the pipeline gives. The relation is there as
        `relation`, too, as it was called before.

        With `confidence` a pair: these, and for each sentence a dictionary of arrays that say how likely each tag and
        each head is to be right, by the name of the column or as `head`. All parts must be calibrated.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        confidence
            Whether a pair is returned: the predictions, and the probability that each is right.

        """
        corpus = corpus_of(checked_sentences(X))
        sure: dict[str, np.ndarray] = {}
        if confidence:
            whole, trees, sure = self.predict_confident(corpus)
        else:
            whole, trees = self.predict_columns(corpus)
        columns = {name: (c.numbers.tolist(), c.texts.strings()) for name, c in whole.columns.items()}
        names = self.parser_.task_.plain
        flat = [
            {name: strings[numbers[t]] for name, (numbers, strings) in columns.items()}
            | {"head": int(trees.heads[t]) + 1}
            | dict.fromkeys(RELATION, names[trees.relations[t]])
            for t in range(corpus.tokens)
        ]
        places = list(pairwise(corpus.offsets.tolist()))
        made = [flat[a:b] for a, b in places]
        return (made, [{name: each[a:b] for name, each in sure.items()} for a, b in places]) if confidence else made

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[Corpus, Trees, dict[str, np.ndarray]]:
        """Words, tags and trees in columns, and how likely the tags of each column and the heads are to be right."""
        self._check_fitted()
        self.check_calibrated()
        tagged, sure = self._tagged_surely(corpus)
        trees, sure["head"] = self.parser_.predict_confident(tagged)
        return tagged, trees, sure

    @on_snapshot
    def predict_columns(self, corpus: Corpus) -> tuple[Corpus, Trees]:
        """Words and their tags in columns, and trees."""
        self._check_fitted()
        tagged = self._tagged(corpus)
        return tagged, self.parser_.predict_columns(tagged)

    def _tagged(self, corpus: Corpus) -> Corpus:
        """The words with tags."""
        words = self._words(corpus)
        return self._with_tags(words, {name: part.predict_columns(words) for name, part in self.taggers_.items()})

    def _tagged_surely(self, corpus: Corpus) -> tuple[Corpus, dict[str, np.ndarray]]:
        """The same, and how likely the tags of each column are to be right."""
        words = self._words(corpus)
        found = {name: part.predict_confident(words) for name, part in self.taggers_.items()}
        tagged = self._with_tags(words, {name: numbers for name, (numbers, _) in found.items()})
        return tagged, {name: sure for name, (_, sure) in found.items()}

    def _with_tags(self, words: Corpus, numbers: Mapping[str, np.ndarray]) -> Corpus:
        columns = {name: Column(own, texts_of(self.taggers_[name].task_.labels)) for name, own in numbers.items()}
        return words._replace(columns=words.columns | columns)

    @staticmethod
    def _words(corpus: Corpus) -> Corpus:
        """The words alone."""
        if corpus.tokens:
            _check_columns(corpus, [WORD])
        return Corpus({WORD: corpus.columns[WORD]}, corpus.offsets)

    @exclusive
    def calibrate_with(self, X: Sequence[Sentence], y: Sequence[Tree]) -> Self:
        """Fit confidence to labelled sentences that training did not see; returns the pipeline itself.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        self._check_fitted()
        self._recalibrate(self.judged_columns(corpus_of(checked_sentences(X)), checked_trees(X, y)[0]))
        return self

    @on_snapshot
    def judged_columns(self, corpus: Corpus, heads: np.ndarray) -> dict[str, Judged]:
        """Which tags and heads, predicted from words alone, are right."""
        check_enough(corpus.tokens)
        _check_columns(corpus, list(self.taggers_))
        for name, tagger in self.taggers_.items():
            check_filled(corpus, name, tagger.task_.labels)
        words = self._words(corpus)
        tags = {n: each.judged_columns(words, labels_of(corpus.columns[n])) for n, each in self.taggers_.items()}
        return tags | {"head": self.parser_.judged_columns(self._tagged(corpus), heads)}

    # --- scores ---

    def score(self, X: Sequence[Sentence], y: Sequence[Tree]) -> float:
        """LAS on predicted tags; UAS where relations are not learned.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        found = self.evaluate(X, y).trees
        return found.uas if self.parser_.task_.labelling == "none" else found.las

    @on_snapshot
    def evaluate(self, X: Sequence[Sentence], y: Sequence[Tree], *, punctuation: bool = True) -> PipelineScores:
        """Right tags and trees, from words alone; the tags in `X` are those that would be right.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.
        punctuation
            Whether words that are all punctuation count.

        """
        return self.evaluate_columns(corpus_of(checked_sentences(X)), *checked_trees(X, y), punctuation=punctuation)

    @on_snapshot
    def evaluate_columns(
        self, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], *, punctuation: bool = True
    ) -> PipelineScores:
        """The same on columns."""
        self._check_fitted()
        if corpus.tokens == 0:
            raise LolsError("there are no words to evaluate on")
        _check_columns(corpus, list(self.taggers_))
        tagged, sure = self._tagged_surely(corpus) if self._is_calibrated() else (self._tagged(corpus), {})
        shares, reliability = {}, {}
        for name, tagger in self.taggers_.items():
            gold = corpus.columns[name]
            right = tagger.task_.number(gold.texts.strings())[gold.numbers] == tagged.columns[name].numbers
            shares[name] = float(right.mean())
            if sure:
                reliability[name] = Reliability.of(sure[name], right)
        trees = self.parser_.evaluate_columns(tagged, heads, numbers, names, punctuation=punctuation)
        return PipelineScores(shares, trees, reliability)

    # --- files ---

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of one model file that holds all parts."""
        self._check_fitted()
        parts: dict[str, Any] = {**self.taggers_, "parser": self.parser_}
        contents = {name: part.contents() for name, part in parts.items()}
        header = {
            "task": {"name": "pipeline", "tags": list(self.taggers_), "files": self.file_columns.describe()},
            "about": self.parser_.model_.about | {"folds": self.folds, "seed": self.seed},
            "parts": {name: header for name, (header, _) in contents.items()},
        }
        tensors = {f"{name}/{key}": array for name, (_, arrays) in contents.items() for key, array in arrays.items()}
        return header, tensors

    @classmethod
    def from_file(
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], *, threads: Threads = None
    ) -> Pipeline:
        """The pipeline that a file's header and arrays describe."""
        made = cls(threads=threads)
        try:
            task, parts, about = header["task"], dict(header["parts"]), header["about"]
            if type(about["folds"]) is not int or type(about["seed"]) is not int or not isinstance(task["tags"], list):
                raise ValueError("its options are not of their types")
            made.set_params(folds=about["folds"], seed=about["seed"])
            tags = [str(name) for name in task["tags"]]
            made.columns_ = ParserColumns.from_description(task["files"])
            if sorted(parts) != sorted([*tags, "parser"]) or len(tags) > MOST_TAGS:
                raise ValueError("its parts are not those it names")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        contents, room = {name: part_of(name, header, tensors) for name in parts}, Room(tensors)
        made.taggers_ = {name: Tagger.from_file(path, *contents[name], threads=threads, room=room) for name in tags}
        made.parser_ = Parser.from_file(path, *contents["parser"], threads=threads, room=room)
        made.keep_state = made.parser_.keep_state
        return made

    def _check_fitted(self) -> None:
        if not hasattr(self, "parser_"):
            raise not_fitted("Pipeline")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parser_")


def _check_columns(corpus: Corpus, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in corpus.columns]
    if missing:
        raise LolsError(f"there is no column {missing[0]}: give words as dictionaries with it")
