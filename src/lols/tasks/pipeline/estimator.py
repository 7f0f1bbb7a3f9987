"""Taggers and a parser in one: words in, tags and trees out.

The parser learns from tags like those it will see: every sentence of the treebank is tagged by taggers that were
trained on the others (jack-knifing).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.sharing import exclusive, on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.conll import Sentences
from lols.io.room import Room
from lols.io.strings import Column, texts_of
from lols.tasks.base import BaseEstimator, Variants, unfitted
from lols.tasks.best_pass import check_patience
from lols.tasks.inspect import Inspection
from lols.tasks.options import LEARNING, estimator, option, shared, values_of
from lols.tasks.parsing.data import Treebank
from lols.tasks.parsing.estimator import Parser, Sentence, Tree
from lols.tasks.parsing.files import (
    Changes,
    TreebankFile,
    TreebankFormat,
    changed_pieces,
    check_sample,
    cut_columns,
    read_treebanks,
    tree_changes,
)
from lols.tasks.parsing.input import checked_trees
from lols.tasks.parsing.options import ParserColumns, ParserSearchOptions
from lols.tasks.parsing.scores import TreeScores
from lols.tasks.parsing.treebank import Trees
from lols.tasks.pieces import PIECE, one_thread
from lols.tasks.pipeline.options import VERBS, PipelineExplainOptions, PipelineInspectOptions
from lols.tasks.pipeline.parsed import ParsedSentence, parsed, sentences_of
from lols.tasks.pipeline.training import PartTraining, PipelineProgress, check_filled, labels_of
from lols.tasks.tagging.estimator import Tagger
from lols.tasks.tokens.corpus import WORD, Corpus, corpus_of
from lols.tasks.tokens.estimator import check_use, check_words
from lols.tasks.tokens.input import check_lengths, checked_sentences
from lols.tasks.tokens.neural import NETWORK_OPTIONS
from lols.tasks.verbs import Say, VerbReport, silent
from lols.training.calibration import Judged, Reliability, check_enough
from lols.training.model import Model

COMMON = ("passes", "patience", "calibrate", "policy", *NETWORK_OPTIONS)  # options of taggers and parser alike
OWN = ("seed", "threads", "engine", "progress", "keep_state")  # those of the pipeline, for all parts
TAGS = ("upos", "xpos", "feats")
RELATION = ("deprel", "relation")  # the name in CoNLL-U, and an older one
TAKEN = {WORD, "parser", "head", *RELATION}  # what else a part or a key of `predict` is called
MOST_TAGS = 16  # columns
TAGGING = ("format", "header", "top", "reference", "roll_out", "beta", "html")  # what a tagger's explain takes


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
class Pipeline(BaseEstimator):
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
    VERBS = VERBS
    WITHOUT = ("use",)
    PARTS = (Parser,)
    AGAIN = Parser.AGAIN
    WARMUP: ClassVar[Variants] = {}  # its parts are there already

    taggers_: dict[str, Tagger] = field(init=False)  # by the columns that they tag
    parser_: Parser = field(init=False)
    columns_: ParserColumns = field(init=False)  # where things are in the files of training, if it was files

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

    # --- parts --------------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> dict[str, Any]:
        """The taggers by their columns, and the parser."""
        return {**self.taggers_, "parser": self.parser_}

    @property
    def model_(self) -> Model:
        """The model of the parser."""
        return self._fitted

    @property
    def _fitted(self) -> Model:
        return self.parser_._fitted

    def models(self) -> tuple[Any, ...]:
        """The models of all parts."""
        return tuple(part._fitted for part in self.parts.values())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parser_")

    def as_it_is(self) -> Self:
        """A copy that later changes of the pipeline and its parts leave as it is."""
        with self._lock.here():
            copied = super().as_it_is()
            if copied.__sklearn_is_fitted__():
                copied.taggers_ = {name: part.as_it_is() for name, part in copied.taggers_.items()}
                copied.parser_ = copied.parser_.as_it_is()
            return copied

    # --- training -----------------------------------------------------------------------------------------------------

    @exclusive
    def fit(
        self, X: Sequence[Sentence], y: Sequence[Tree], *, dev: tuple[Sequence[Sentence], Sequence[Tree]] | None = None
    ) -> Self:
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
        data = self._data(X, y)
        check_lengths(data.corpus.offsets)
        return self._fit(data, None if dev is None else self._data(*dev))

    @exclusive
    def fit_columns(
        self,
        corpus: Corpus,
        heads: np.ndarray,
        numbers: np.ndarray,
        names: Sequence[str],
        *,
        dev: tuple[Corpus, np.ndarray, np.ndarray, Sequence[str]] | None = None,
        **fitting: Any,
    ) -> Self:
        """Train on columns, as in `Parser.fit_columns`; `say` is called with what is being done."""
        held = None if dev is None else Treebank(*dev)
        return self._fit(Treebank(corpus, heads, numbers, names), held, **fitting)

    def fit_read(self, paths: list[str], dev: str | None, layout: ParserColumns, say: Say, **fitting: Any) -> Self:
        """Train on treebanks."""
        if self.tags is not None:
            layout = replace(layout, use={name: name for name in self.tags})
        data, held, reading = read_treebanks(paths, dev, layout)
        if not self._goes_on:
            self._check_parser()
        say(data.summary())
        self.columns_ = data.layout
        self._fit(data, held, say=say, **fitting)
        for line in self.parser_.treebank_notes(data.place):
            say(line)
        facts = {"folds": self.folds, "tags": list(self.taggers_), "seconds_reading": reading}
        self.training_facts_ = self.parser_.treebank_facts(data.corpus) | facts
        return self

    @staticmethod
    def _data(X: Sequence[Sentence], y: Sequence[Tree]) -> Treebank:
        """What users give, in columns."""
        return Treebank(corpus_of(checked_sentences(X)), *checked_trees(X, y))

    def _check_parser(self) -> None:
        """Train the parser on three words: mistakes in its options must show before the taggers are trained."""
        tiny = unfitted(self.parser or Parser()).set_params(
            passes=1, progress=False, templates=None, more_templates=None, patience=None, calibrate=False
        )
        tiny.fit([["a", "b", "c"]], [[(2, "x"), (0, "root"), (2, "y")]])

    def _fit(
        self,
        data: Treebank,
        dev: Treebank | None = None,
        *,
        say: Say = silent,
        checkpoint: Any = None,
        resume: bool = False,
    ) -> Self:
        """Train the taggers, and then the parser on their tags.

        It learns from tags of taggers that have not seen the sentence: by jack-knifing, or, where training goes on with
        other data, of the taggers as they were.
        """
        goes_on = self._goes_on
        if self.__sklearn_is_fitted__():
            self._speaker._goes_on()
        for part in (self.tagger, self.parser):
            if part is not None:
                check_patience(part.patience, dev is not None)
        if self.folds < 1 or self.folds > data.corpus.offsets.size - 1:
            raise ConfigurationError(f"folds is {self.folds}; it must be from 1 to the number of sentences")
        names = list(self.taggers_) if goes_on else self._names_of_tags(data.corpus)
        for given in (data, dev):
            if given is not None:
                check_columns(given.corpus, [WORD, *names])
        training = PartTraining(
            own={name: getattr(self, name) for name in OWN},
            before=self.parts if goes_on else {},
            folds=self.folds,
            keeps=self.keep_state or self.warm_start,
            progress=PipelineProgress(checkpoint, self._identity(data, dev), resume=resume),
            say=say,
        )
        words, held = words_of(data.corpus), None if dev is None else words_of(dev.corpus)
        seen = dict(self._tagged(words).columns) if goes_on else {}
        taggers: dict[str, Tagger] = {}
        for name in names:
            column, template = data.corpus.columns[name], self.tagger or Tagger()
            if not goes_on:
                seen[name] = training.jackknifed(name, template, words, column)
            tags = None if dev is None else (held, labels_of(dev.corpus.columns[name]))
            taggers[name] = training.tagger(name, template, words, column, tags)
        how = "tags that were predicted" if self.folds > 1 or goes_on else "the treebank's own tags"
        say(f"the parser, on {how}")
        parser: Parser = training.learner("parser", self.parser or Parser())
        trees = None if dev is None or held is None else (tagged_by(taggers, held)[0], *dev.trees)
        tagged = words._replace(columns=words.columns | seen)
        parser.fit_columns(tagged, *data.trees, dev=trees, **training.progress.fitting())
        self.taggers_, self.parser_, self.path_ = taggers, parser, None
        training.progress.end()
        return self

    def _names_of_tags(self, corpus: Corpus) -> list[str]:
        """The columns to tag: those that are named, or the usual ones that are filled in."""
        names = (
            [name for name in TAGS if name in corpus.columns and corpus.columns[name].texts.begin.size > 1]
            if self.tags is None
            else list(self.tags)
        )
        missing = [name for name in names if name not in corpus.columns]
        if missing or not names:
            raise LolsError(
                f"there is no column {missing[0] if missing else 'of tags'} to learn: name others with tags"
            )
        if len(names) > MOST_TAGS or len({*names}) < len(names):
            raise ConfigurationError(f"tags names a column twice, or more than {MOST_TAGS}: leave some out")
        if taken := TAKEN & {*names}:
            raise ConfigurationError(f"a column of tags cannot be called {min(taken)}: give it another name")
        return names

    def _identity(self, data: Treebank, dev: Treebank | None) -> dict[str, Any]:
        """What must be the same when training is resumed."""
        parts: list[Any] = [*self.parts.values()] if self._goes_on else [self.tagger, self.parser]
        before = [part.fingerprint_ for part in parts] if self._goes_on else []
        return {
            "data": data.corpus.fingerprint(data.heads, data.numbers),
            "dev": None if dev is None else dev.corpus.fingerprint(dev.heads, dev.numbers),
            "options": repr((self.folds, self.tags, self.seed, self.keep_state, parts, before)),
        }

    # --- going on -----------------------------------------------------------------------------------------------------

    @property
    def _goes_on(self) -> bool:
        """Whether training goes on with what was learned."""
        return self.warm_start and self.__sklearn_is_fitted__()

    @property
    def _speaker(self) -> Parser:
        """The parser under the pipeline's name: it says for all parts how learning goes on, or what is forgotten."""
        speaker = copy.copy(self.parser_)
        speaker.warm_start, speaker.path_ = self.warm_start, self.path_
        return speaker

    def starts_from_weights(self) -> str | None:
        """What is to be said where learning goes on without the learners' states; None if they are there."""
        return self._speaker.starts_from_weights()

    @exclusive
    def go_on_with(self, options: Mapping[str, Any]) -> None:
        """Let `fit` go on, with some other options: those of search and learning are the parser's."""
        own = {name: value for name, value in options.items() if name in self._defaults()}
        self.set_params(warm_start=True, **own)
        rest = {name: value for name, value in options.items() if name not in own}
        self.parser_.set_params(**rest)
        for part in self.taggers_.values():
            part.set_params(**{name: value for name, value in rest.items() if name in COMMON})

    @exclusive
    def partial_fit(self, X: Sequence[Sentence], y: Sequence[Tree]) -> Self:
        """Learn from further sentences, dictionaries with words and tags, and their trees, in the given order.

        Each sentence is tagged before its tags are learned from, and the parser learns from these tags.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        self._check_fitted()
        data = self._data(X, y)
        if not data.size:
            return self
        check_lengths(data.corpus.offsets)
        check_columns(data.corpus, [WORD, *self.taggers_])
        words = strings_by_sentence(data.corpus, WORD)
        seen = [
            [{name: word[name] for name in (WORD, *self.taggers_)} for word in each] for each in self.predict(words)
        ]
        for name, tagger in self.taggers_.items():
            tags = strings_by_sentence(data.corpus, name)
            tagger.partial_fit(words, tags, classes=sorted({tag for each in tags for tag in each}))
        self.parser_.partial_fit(seen, y)
        return self

    def learn_one(self, x: Sentence, y: Tree) -> Self:
        """Learn from one sentence and its tree.

        Parameters
        ----------
        x
            A sentence: a list of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        return self.partial_fit([x], [y])

    @exclusive
    def stop_learning(self) -> Self:
        """Free the memory that only further learning needs, in all parts."""
        self._check_fitted()
        for part in self.parts.values():
            part.stop_learning()
        return self

    # --- prediction ---------------------------------------------------------------------------------------------------

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
        words = [flat[a:b] for a, b in places]
        return (words, [{name: each[a:b] for name, each in sure.items()} for a, b in places]) if confidence else words

    @on_snapshot
    def predict_confident(self, corpus: Corpus) -> tuple[Corpus, Trees, dict[str, np.ndarray]]:
        """Words, tags and trees in columns, and how likely the tags of each column and the heads are to be right."""
        self._check_fitted()
        self.check_calibrated()
        tagged, sure = tagged_by(self.taggers_, words_of(corpus), confidence=True)
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
        return tagged_by(self.taggers_, words_of(corpus))[0]

    def __call__(self, given: Any, tokenizer: Any = None, *, confidence: bool = False) -> Any:
        """Tag and parse a text, the words of a sentence, or several sentences: see `lols.io.Sentence`.

        A text is cut into sentences and words by rules (`lols.io.split_text`), or by `tokenizer`, a function
        from a text to lists of words. Sentences that were read from a file keep their other columns and comments.
        With `confidence` a pair: the sentences, and how likely their tags and heads are to be right, as in `predict`.
        """
        sentences = sentences_of(given, tokenizer)
        predicted = self.predict([sentence.words for sentence in sentences], confidence=confidence)
        words, sure = predicted if confidence else (predicted, None)
        trees: list[ParsedSentence] = [parsed(*pair) for pair in zip(sentences, words, strict=True)]
        return (trees, sure) if confidence else trees

    # --- confidence ---------------------------------------------------------------------------------------------------

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
        self._recalibrate(self._judged(self._data(X, y)))
        return self

    def _judged(self, data: Treebank) -> dict[str, Judged]:
        return self.judged_columns(data.corpus, data.heads)

    @on_snapshot
    def judged_columns(self, corpus: Corpus, heads: np.ndarray) -> dict[str, Judged]:
        """Which tags and heads, predicted from words alone, are right."""
        check_enough(corpus.tokens)
        check_columns(corpus, list(self.taggers_))
        for name, tagger in self.taggers_.items():
            check_filled(corpus, name, tagger.task_.labels)
        words = words_of(corpus)
        tags = {n: each.judged_columns(words, labels_of(corpus.columns[n])) for n, each in self.taggers_.items()}
        return tags | {"head": self.parser_.judged_columns(self._tagged(corpus), heads)}

    # --- scores -------------------------------------------------------------------------------------------------------

    def score(self, X: Sequence[Sentence], y: Sequence[Tree]) -> float:
        """LAS on predicted tags; UAS where relations are not learned.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        trees = self.evaluate(X, y).trees
        return trees.uas if self.parser_.task_.labelling == "none" else trees.las

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
        data = self._data(X, y)
        return self.evaluate_columns(data.corpus, *data.trees, punctuation=punctuation)

    @on_snapshot
    def evaluate_columns(
        self, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, names: Sequence[str], *, punctuation: bool = True
    ) -> PipelineScores:
        """The same on columns."""
        self._check_fitted()
        check_words(corpus)
        check_columns(corpus, list(self.taggers_))
        calibrated = all(model.calibration is not None for model in self.models())
        tagged, sure = tagged_by(self.taggers_, words_of(corpus), confidence=calibrated)
        shares, reliability = {}, {}
        for name, tagger in self.taggers_.items():
            gold = corpus.columns[name]
            right = tagger.task_.number(gold.texts.strings())[gold.numbers] == tagged.columns[name].numbers
            shares[name] = float(right.mean())
            if sure:
                reliability[name] = Reliability.of(sure[name], right)
        trees = self.parser_.evaluate_columns(tagged, heads, numbers, names, punctuation=punctuation)
        return PipelineScores(shares, trees, reliability)

    # --- verbs on files -----------------------------------------------------------------------------------------------

    @property
    def file_columns(self) -> ParserColumns:
        """Where things are in files like those of training."""
        return getattr(self, "columns_", ParserColumns(use={name: name for name in self.taggers_}))

    def asked(self, verb: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Split the options of a verb; a column that is not tagged has no effect."""
        check_use(given, list(self.taggers_))
        return super().asked(verb, given)

    @on_snapshot
    def judged_file(self, path: str, **options: Any) -> Mapping[str, Judged]:
        """Which tags and heads of a treebank, predicted from words alone, are right."""
        check_sample(options)
        return super().judged_file(path, **options)

    def _read(self, path: str, layout: ParserColumns, asked: Any) -> TreebankFile:
        return TreebankFormat(layout).held([path])

    def _evaluated(self, data: Treebank, asked: Any) -> Any:
        from lols.tasks.parsing.scores import ParserScores

        scores = self.evaluate_columns(data.corpus, *data.trees, punctuation=asked.punctuation)
        labelled = self.parser_.task_.labelling != "none"
        return ParserScores(scores.trees, labelled, asked.punctuation, scores.tags, data.size, scores.reliability)

    def searching(self, options: ParserSearchOptions) -> Self:
        """The pipeline with a beam of another width."""
        other = copy.copy(self)
        other.parser_ = self.parser_.searching(options)
        return other

    @on_snapshot
    def predict_pieces(
        self, path: Any, layout: ParserColumns, asked: Any, *, threads: Threads = None, size: int = PIECE
    ) -> Iterator[tuple[bytes, int]]:
        """The file with tags and trees replaced by predictions, piece by piece, and how many tokens each piece has."""
        tags = {name: dict(layout.use or {}).get(name, name) for name in self.taggers_}

        def predict(piece: Sentences) -> tuple[Changes, dict[str, np.ndarray]]:
            corpus, sure = Corpus(cut_columns(piece, [WORD]), piece.offsets), dict[str, np.ndarray]()
            if asked.confidence:
                tagged, trees, sure = self.predict_confident(corpus)
            else:
                tagged, trees = self.predict_columns(corpus)
            changes = tree_changes(layout, trees, self.parser_.task_.plain)
            for name, column in tags.items():
                changes[column] = (self.taggers_[name].task_.labels, tagged.columns[name].numbers)
            return changes, sure

        at_once, others = min(part.threads_for(threads) for part in self.parts.values()), list(tags.values())
        with one_thread(*self.models()):
            yield from changed_pieces(path, layout, others, predict, needed=False, threads=at_once, size=size)

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
        for part in self.parts.values():
            part.prepare()

    def rehearse(self) -> None:
        """Have a tagger and a parser rehearse."""
        for part in (self.tagger or Tagger(), self.parser or Parser()):
            part.warm_up()

    # --- model files --------------------------------------------------------------------------------------------------

    @exclusive
    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of one model file that holds all parts."""
        self._check_fitted()
        contents = {name: part.contents() for name, part in self.parts.items()}
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
    ) -> Self:
        """The pipeline that a file's header and arrays describe."""
        loaded = cls(threads=threads)
        try:
            task, parts, about = header["task"], dict(header["parts"]), header["about"]
            if type(about["folds"]) is not int or type(about["seed"]) is not int or not isinstance(task["tags"], list):
                raise ValueError("its options are not of their types")
            loaded.set_params(folds=about["folds"], seed=about["seed"])
            tags = [str(name) for name in task["tags"]]
            loaded.columns_ = ParserColumns.from_description(task["files"])
            if sorted(parts) != sorted([*tags, "parser"]) or len(tags) > MOST_TAGS:
                raise ValueError("its parts are not those it names")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ModelFileError(f"{path}: the task in the header is damaged ({error})") from error
        contents, room = {name: part_of(name, header, tensors) for name in parts}, Room(tensors)
        loaded.taggers_ = {name: Tagger.from_file(path, *contents[name], threads=threads, room=room) for name in tags}
        loaded.parser_ = Parser.from_file(path, *contents["parser"], threads=threads, room=room)
        loaded.keep_state = loaded.parser_.keep_state
        return loaded


def tagged_by(
    taggers: Mapping[str, Tagger], words: Corpus, *, confidence: bool = False
) -> tuple[Corpus, dict[str, np.ndarray]]:
    """Words with the tags that taggers give them, and how likely these are to be right, if that is asked for."""
    columns = dict(words.columns)
    sure: dict[str, np.ndarray] = {}
    for name, tagger in taggers.items():
        if confidence:
            numbers, sure[name] = tagger.predict_confident(words)
        else:
            numbers = tagger.predict_columns(words)
        columns[name] = Column(numbers, texts_of(tagger.task_.labels))
    return words._replace(columns=columns), sure


def words_of(corpus: Corpus) -> Corpus:
    """The words alone."""
    if corpus.tokens:
        check_columns(corpus, [WORD])
    return Corpus({WORD: corpus.columns[WORD]}, corpus.offsets)


def strings_by_sentence(corpus: Corpus, name: str) -> list[list[str]]:
    """The strings of a column, sentence by sentence."""
    numbers, strings = labels_of(corpus.columns[name])
    return [[strings[k] for k in numbers[a:b].tolist()] for a, b in pairwise(corpus.offsets.tolist())]


def check_columns(corpus: Corpus, names: Sequence[str]) -> None:
    """Raise an error if a column is missing."""
    missing = [name for name in names if name not in corpus.columns]
    if missing:
        raise LolsError(f"there is no column {missing[0]}: give words as dictionaries with it")


def part_of(
    name: str, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of one part of a pipeline's file."""
    own = {k.partition("/")[2]: array for k, array in tensors.items() if k.startswith(f"{name}/")}
    return header["parts"][name], own
