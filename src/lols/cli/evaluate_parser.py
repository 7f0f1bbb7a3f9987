"""`lols evaluate` for parsers: attachment scores, and every relation."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from lols.cli.base import print_json
from lols.cli.console import say
from lols.training.clock import Clock

__all__ = ["evaluate_parser", "score_table"]


def evaluate_parser(
    parser: Any, model: str, file: str, columns: Any, punctuation: bool, clock: Clock, as_json: bool
) -> None:
    """Parse a treebank, with the tags that it has or with a pipeline's, and say how much of it came out right."""
    from lols.tasks.parsing.files import read_treebank, treebank
    from lols.tasks.pipeline.estimator import PipelineScores

    reader = Clock()
    sentences = read_treebank([file], columns)
    reading = reader.working()
    data = treebank(sentences, columns)
    scores = parser.evaluate_columns(data.corpus, *data.trees, punctuation=punctuation)
    spent = clock.facts(reading) | {"tokens_per_second": data.corpus.tokens / clock.working(reading)}
    result: dict[str, Any] = {"model": model, "file": file}
    if isinstance(scores, PipelineScores):
        result["tags"], scores, parser = scores.tags, scores.trees, parser.parser_
    result |= score_table(scores)
    result |= spent
    if as_json:
        print_json(result)
    else:
        _show(result, parser.task_.labelling != "none", punctuation)


def score_table(scores: Any) -> dict[str, Any]:
    """Scores as plain values."""
    plain = {name: getattr(scores, name) for name in ("uas", "las", "clas", "las_full", "exact_heads", "exact")}
    relations = {
        name: {
            "precision": row.precision,
            "recall": row.recall,
            "f1": row.f1,
            "attached": row.attached / row.gold if row.gold else 0.0,
            "count": row.gold,
        }
        for name, row in scores.by_relation.items()
    }
    return {"tokens": scores.words, "sentences": scores.sentences, **plain, "relations": relations}


def _show(result: dict[str, Any], labelled: bool, punctuation: bool) -> None:
    for name, share in result.get("tags", {}).items():
        say.print(f"{name} {100 * share:.2f}")
    without = "" if punctuation else ", punctuation not counted"
    say.print(f"UAS {100 * result['uas']:.2f} on {result['tokens']:,} tokens{without}")
    if labelled:
        say.print(f"LAS {100 * result['las']:.2f}, with subtypes {100 * result['las_full']:.2f}")
        say.print(f"CLAS {100 * result['clas']:.2f}")
    whole = f"sentences without a mistake: {100 * result['exact_heads']:.2f} % by heads"
    say.print(whole + (f", {100 * result['exact']:.2f} % with relations" if labelled else ""))
    if not labelled:
        return
    say.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("relation")
    for name in ("precision", "recall", "F1", "head right", "count"):
        table.add_column(name, justify="right")
    for name, row in sorted(result["relations"].items(), key=lambda item: -item[1]["count"]):
        shares = (f"{100 * row[k]:.2f}" for k in ("precision", "recall", "f1", "attached"))
        table.add_row(name, *shares, f"{row['count']:,}")
    say.print(table)
