"""What a parser's verbs take; nothing here takes time to import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lols.contract.whole_numbers import check_whole
from lols.tasks.options import option
from lols.tasks.tokens.options import FILE, ExplainOptions, LabelOptions, PlotOptions, TokenColumns, use_of
from lols.tasks.verbs import TOKENS, CertifyOptions, PredictOptions, Verbs

MOST_BEAM = 1 << 12  # the widest beam


@dataclass(frozen=True)
class ParserColumns(TokenColumns):
    """Where things are in a file: columns as `lols.io.conll` names them.

    `use` maps names for templates to columns; None means those of upos, xpos and feats that are filled in.
    """

    word: str = option(default="form", help="The column of the words.")
    head: str = option(default="head", help="The column of the heads.")
    relation: str = option(default="deprel", help="The column of the relations.")
    use: Mapping[str, str] | None = option(
        default=None,
        help="A column that templates can name, such as xpos or pos=2; may be repeated. In training by default upos, "
        "xpos and feats, if they are filled in; none for none.",
        kind=list[str] | None,
        parse=use_of,
    )


@dataclass(frozen=True, kw_only=True)
class ParserSearchOptions:
    """How a parser searches."""

    beam: int | None = option(
        default=None, help="The width of a beam search; 1 is greedy. As in training unless given."
    )

    def __post_init__(self) -> None:
        if self.beam is not None:
            check_whole("--beam", self.beam, most=MOST_BEAM)


@dataclass(frozen=True, kw_only=True)
class ParserPredictOptions(PredictOptions, ParserSearchOptions):
    """How a parser searches, and what it writes."""


@dataclass(frozen=True, kw_only=True)
class ParserEvaluateOptions(PlotOptions, ParserSearchOptions):
    """How a parser is evaluated."""

    punctuation: bool = option(
        default=True, help="Whether words that are all punctuation count.", flag="--punctuation/--no-punctuation"
    )


@dataclass(frozen=True, kw_only=True)
class ParserExplainOptions(ExplainOptions):
    """How the search of a parser is shown."""

    top: int = option(default=3, help="How many actions to show, those of the least predicted cost and the teacher's.")


VERBS = Verbs(
    name="parser",
    unit="sentences",
    input=FILE,
    files=ParserColumns,
    options={
        "predict": ParserPredictOptions,
        "evaluate": ParserEvaluateOptions,
        "explain": ParserExplainOptions,
        "inspect": LabelOptions,
        "certify": CertifyOptions,
    },
    counted=TOKENS,
)
