"""What a tagger's model file is, as plain values, and which features speak for each label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.kernels.hashing import MASK, mix
from lols.tasks.inspect import Inspection, Sides, column_text, speaking_columns
from lols.tasks.tagging.clusters import CLUSTER
from lols.tasks.tagging.options import VERBS
from lols.tasks.tagging.outside import more_than_learned
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.attributes import Attribute, hash_text
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.feature_names import Chain, Names, Values, attribute_link, name_features
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.tokens.templates import Template, parse_templates

BEFORE, AFTER = "(start)", "(end)"  # what is beside the sentence


def inspect_tagger(tagger: Any, values: dict[str, Any], asked: LabelOptions) -> TaggerInspection:
    """What is in the file of a tagger."""
    values["vocabulary"] = len(tagger.vocabulary_)
    values["outside_cost"] = tagger.outside_cost_
    values["clusters"] = None if tagger.clusters is None else len(tagger.clusters)
    known = tagger.task_.inner_labels
    for label in asked.label or ():
        if label not in known:
            raise LolsError(f"there is no label '{label}' in this model: choose from {', '.join(known)}")
    if asked.top and not tagger.model_.policy.thresholds:
        found, unnamed = speaking_features(tagger, list(asked.label or known), asked.top, against=asked.against)
        values |= {"features_of": found, "unnamed_templates": unnamed}
    return TaggerInspection(values, VERBS, asked.top)


def speaking_features(
    tagger: Any, labels: Sequence[str], top: int, *, against: bool = False
) -> tuple[dict[str, Sides], list[str]]:
    """The strongest features of each label, and the templates whose features cannot be named."""
    columns = {label: tagger.task_.inner_labels.index(label) for label in labels}
    strings = known_strings(tagger)
    policy = tagger.model_.policy
    return speaking_columns(policy, columns, top, against, lambda wanted: find_names(tagger.task_, strings, wanted))


def known_strings(tagger: Any) -> dict[str, list[str]]:
    """The strings that a tagger's columns are known to hold; none for a column that had too many to be kept."""
    strings: dict[str, list[str]] = {name: [] for name in tagger.task_.columns}
    strings |= {name: list(values) for name, values in tagger.column_values_.items()}
    strings[WORD] = tagger.vocabulary_
    if tagger.clusters is not None:
        strings[CLUSTER] = list(dict.fromkeys([*tagger.clusters.values(), ""]))
    return strings


class TaggerInspection(Inspection):
    """What is in a tagger's file."""

    WHAT, SEVERAL = "label", "labels"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Labels, spans, templates and vocabulary."""
        found = self.values
        yield "labels", f"{len(found['labels'])}: {' '.join(found['labels'])}"
        scheme, inner = found["scheme"], found["inner_scheme"]
        inside = f", inside {inner}" if inner != scheme else ""
        yield "scheme", "none: plain tags" if scheme is None else f"{scheme}{inside}"
        if found["direction"] == "backward":
            yield "direction", "backward: the last word first, so [-1] is the place to the right of a word"
        yield "loss", found["loss"]
        if found["outside_cost"]:
            yield "cost of O", f"{more_than_learned(found['outside_cost'])}, fitted to dev data"
        yield "templates", ", ".join(found["templates"])
        labels = f"; labels in {found['files']['label']}" if found["files"] is not None else ""
        yield "columns", column_text(found) + labels
        yield "vocabulary", f"{found['vocabulary']:,} words"
        if found["clusters"] is not None:
            yield "clusters", f"of {found['clusters']:,} words"


# --- names ------------------------------------------------------------------------------------------------------------


def find_names(task: TaggingTask, strings: Mapping[str, Sequence[str]], wanted: np.ndarray) -> Names:
    """Name features of a tagging task, given the strings that each column is known to hold.

    >>> task = TaggingTask(["N", "V"], templates=["suffix3", "tag[-1] & lower[+1]", "length"])
    >>> suffix, length = parse_templates(["suffix3", "length"])
    >>> ids = [mix(key(suffix), hash_text("ing")), mix(key(length), hash_text("7"))]
    >>> find_names(task, {"word": ["Walking", "the"]}, np.array(ids)).by_id.values()
    dict_values(['suffix3 = ing', 'length = 7'])
    """
    before, after = (BEFORE, AFTER) if task.direction == "forward" else (AFTER, BEFORE)

    @cache
    def link(column: str, which: Attribute, side: int) -> Values:
        return attribute_link(strings[column], which, {-1: before, 0: None, 1: after}[side])

    chains = []
    for template in parse_templates(task.templates, task.columns):
        atoms = [(a.column, a.attribute, a.offset) for a in template.atoms if a.attribute is not None]
        links = None
        if all(column in strings for column, _, _ in atoms):
            links = [link(column, which, (offset > 0) - (offset < 0)) for column, which, offset in atoms]
            links += [_tags(task, before, len(template.tags))] if template.tags else []
        if atoms or template.tags:  # or else it is the bias
            chains.append(Chain(template.text, key(template), links, partial(_name, template)))
    return name_features(chains, wanted, {mix(hash_text("bias"), 0): "bias"} if task.layout.bias else {})


def _tags(task: TaggingTask, before: str, count: int) -> Values:
    """The tags before as one number, as `tags_before` makes it: the nearest tag counts most, and 0 is no tag."""
    names, radix = [before, *task.inner_labels], task.radix
    base = len(names)

    def tags(place: int) -> list[int]:
        return [place // base**k % base for k in range(count - 1, -1, -1)]

    codes = np.arange(base**count, dtype=np.uint64)
    if radix < base:  # labels that were added later
        for place in range(codes.size):
            code = 0
            for tag in tags(place):
                code = code * radix + tag if tag < radix else mix(code, tag)
            codes[place] = code & MASK
    return Values(codes, lambda place: "\t".join(names[tag] for tag in tags(place)))


def _name(template: Template, texts: Sequence[str]) -> str:
    """A template's text with the value of each part in place."""
    values = list(texts)
    tags = dict(zip(template.tags, values.pop().split("\t"), strict=True)) if template.tags else {}
    rest, parts = iter(values), []
    for part in template.text.split(" & "):
        if part == "bias":
            parts.append(part)
        elif part.startswith("tag["):
            parts.append(f"{part} = {tags[-int(part[4:-1])]}")
        else:
            parts.append(f"{part} = {next(rest)}")
    return " & ".join(parts)
