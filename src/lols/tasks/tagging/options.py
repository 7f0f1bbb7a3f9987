"""What a tagger's verbs take; nothing here takes time to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from lols.errors import LolsError
from lols.tasks.options import option
from lols.tasks.tokens.options import FILE, ExplainOptions, LabelOptions, PlotOptions, TokenColumns, use_of
from lols.tasks.verbs import TOKENS, CertifyOptions, PredictOptions, Verbs

if TYPE_CHECKING:
    from lols.io.conll import Sentences


@dataclass(frozen=True)
class FileColumns(TokenColumns):
    """Where things are in a file: columns as `lols.io.conll` names them.

    `label` is None for the default: `upos` in CoNLL-U and CoNLL-X, the last column elsewhere. `use` maps names for
    templates to further columns; None means all between word and label in plain columns, and none in other formats.
    """

    word: str = option(default="form", help="The column of the words.")
    label: str | None = option(
        default=None,
        help="The column of the labels: upos, xpos, feats:Case, misc:NER, a number from 1 on, or last. In training "
        "upos by default, and the last of plain columns; in prediction a number one beyond the last appends a column.",
        flag="--column",
        common=True,
    )
    use: Mapping[str, str] | None = option(
        default=None,
        help="A further column that templates can name, such as xpos or pos=2; may be repeated. In training on plain "
        "columns all before the labels are used by default; none for none.",
        kind=list[str] | None,
        parse=use_of,
    )
    trained: str | None = None  # the format of the training file
    width: int | None = None  # the number of its columns, unless the labels are in the last one

    def changed(self, **given: Any) -> Self:
        """The same columns in another file; columns that are named are those of no training."""
        trained = None if {"word", "label", "use"} & set(given) else self.trained
        return super().changed(**{"trained": trained} | given)

    def check(self, sentences: Sentences) -> None:
        """Columns by number mean nothing in another format than that of training."""
        named = ("conllu", "conllx")
        numbers = [c for c in (self.word, str(self.label), *(self.use or {}).values()) if c.isdigit()]
        if self.trained is not None and numbers and (self.trained in named) != (sentences.format in named):
            raise LolsError(
                f"{sentences.path}: read as {sentences.format}, but the tagger was trained on {self.trained} and knows "
                "its columns by number; name them with --word, --column and --use"
            )

    def check_words(self, sentences: Sentences) -> None:
        """A line of text is not a word with further columns, unless the user says that they are columns."""
        if sentences.format != "columns" or sentences.width == 1 or self.format is not None or not sentences.lines.size:
            return
        label = str(self.label)
        known = self.width or (int(label) if label.isdigit() else 0)
        if self.trained == "columns" and known:
            if sentences.width <= known:
                return
            why = f"{sentences.width} columns, but the tagger was trained on {known}"
        elif not label.isdigit() and not sentences.end[1].any():  # the labels are the second column that is read
            why = f"{sentences.width} columns, and none of them is {label!r}"
        else:
            return
        raise LolsError(
            f"{sentences.path}, line {sentences.lines[0]}: {why}; if this is text, write one word on each line "
            "(--format words), and if these are columns, the words first, say --format columns"
        )


@dataclass(frozen=True, kw_only=True)
class UnseenOptions:
    """What becomes of labels that the tagger does not know."""

    unseen: str = option(
        default="error", help="What a label that did not occur in training is: an error, or counted as wrong (wrong)."
    )

    def __post_init__(self) -> None:
        if self.unseen not in ("error", "wrong"):
            raise LolsError(f"--unseen is '{self.unseen}': choose error or wrong")


@dataclass(frozen=True, kw_only=True)
class TaggerEvaluateOptions(UnseenOptions, PlotOptions):
    """How a tagger is evaluated."""


@dataclass(frozen=True, kw_only=True)
class TaggerExplainOptions(ExplainOptions):
    """How the search of a tagger is shown."""

    top: int = option(default=5, help="How many labels to show, those of the least predicted cost and the true one.")


VERBS = Verbs(
    name="tagger",
    unit="sentences",
    input=FILE,
    files=FileColumns,
    options={
        "predict": PredictOptions,
        "evaluate": TaggerEvaluateOptions,
        "calibrate": UnseenOptions,
        "explain": TaggerExplainOptions,
        "inspect": LabelOptions,
        "certify": CertifyOptions,
    },
    counted=TOKENS,
)
