"""Have compiled code ready before the work is timed: compiled now, or loaded from the cache."""

from __future__ import annotations

import contextlib
import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from lols.io.strings import Texts, intern
from lols.tasks.base import unfitted
from lols.tasks.tokens.corpus import WORD, Corpus

__all__ = [
    "prepare_classifier",
    "prepare_classifying",
    "prepare_parser",
    "prepare_parsing",
    "prepare_prediction",
    "settle",
]


def settle() -> None:
    """Leave what was imported out of the search for garbage: there is much of it, and all of it stays."""
    gc.collect()
    gc.freeze()


def prepare_prediction(estimator: Any) -> None:
    """Predict something for a few words, and write it; or for a row."""
    from lols.tasks.tagging.estimator import Tagger

    if estimator.READS == "tables":
        prepare_classifying(estimator)
        return
    parts = [*getattr(estimator, "taggers_", {}).values(), getattr(estimator, "parser_", estimator)]
    for part in parts:
        if isinstance(part, Tagger):
            prepare_tagging(part)
        else:
            prepare_parsing(part)


def prepare_tagging(tagger: Any) -> None:
    """Tag two words, and write them."""
    data = b"1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t0\t_\t_\t_\n\n"
    sentences = conll.parse(data, ["form", "upos"], format="conllu")
    words = intern(Texts(sentences.buffer, sentences.begin[0], sentences.end[0]))
    columns = {name: words for name in tagger.task_.layout.columns} | {WORD: words}
    numbers = tagger.predict_columns(Corpus(columns, sentences.offsets))
    conll.replace(sentences, "upos", tagger.task_.labels, numbers)


TREES = b"1\ta\t_\tX\t_\t_\t2\tx\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n3\tc\t_\tX\t_\t_\t2\ty\t_\t_\n\n"


def prepare_parser(parser: Any) -> None:
    """Train the same kind of parser on three words; whatever is wrong will show up again."""
    from lols.tasks.parsing.files import ParserColumns, treebank

    columns = ParserColumns(use={"upos": "upos"})
    data = treebank([conll.parse(TREES, ["form", "head", "deprel", "id", "upos"], format="conllu")], columns)
    try:
        tiny = unfitted(parser).set_params(passes=1, progress=False, templates=None)
        tiny.fit_columns(data.corpus, *data.trees)
        prepare_parsing(tiny)
        with tempfile.TemporaryDirectory() as folder:
            tiny.save(f"{folder}/tiny.lols")
    except ConfigurationError:  # an option: say it before the work
        raise
    except LolsError:
        pass


def prepare_parsing(parser: Any) -> None:
    """Parse three words, and write them."""
    from lols.tasks.parsing.files import ParserColumns, write_trees

    sentences = conll.parse(TREES, ["form", "head", "deprel"], format="conllu")
    words = intern(Texts(sentences.buffer, sentences.begin[0], sentences.end[0]))
    trees = parser.predict_columns(Corpus(dict.fromkeys(parser.task_.columns, words), sentences.offsets))
    write_trees(sentences, ParserColumns(), trees, parser.task_.plain)


TABLE = "a,b,c\n1,x,no\n2,y,yes\n3,x,yes\n"


def prepare_classifier(classifier: Any) -> None:
    """Train the same kind of classifier on three rows; whatever is wrong will show up again."""
    other = dict.fromkeys(("classes", "label_map", "categorical", "numerical", "ignore"))
    costs = None if classifier.cost_matrix is None else np.array([[0.0, 1.0], [2.0, 0.0]])
    tree = classifier.tree if classifier.tree is None or isinstance(classifier.tree, str) else "order"
    changes = other | {"cost_matrix": costs, "tree": tree, "interactions": (), "passes": 1, "progress": False}
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tiny.csv"
            path.write_text(TABLE)
            tiny = unfitted(classifier).set_params(**changes)
            tiny.fit_files(str(path))
            prepare_classifying(tiny)
            tiny.save(f"{folder}/tiny.lols")
    except ConfigurationError:  # an option: say it before the work
        raise
    except LolsError:
        pass


def prepare_classifying(classifier: Any) -> None:
    """Classify a row of a CSV file."""
    from lols.io.tables import open_table
    from lols.tasks.tables.encoding import TableEncoder
    from lols.tasks.tables.files import predict_batches

    encoder = classifier.task_.encoder
    if not isinstance(encoder, TableEncoder):
        return
    names = [column.name for column in encoder.columns]
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(LolsError):
        path = Path(folder) / "tiny.csv"
        path.write_text(",".join("0" for _ in names) + "\n")
        before = encoder.unknown.copy()
        list(predict_batches(classifier, open_table(str(path), header=False, names=names)))
        encoder.unknown[:] = before
