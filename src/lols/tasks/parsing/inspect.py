"""What a parser's model file is, as plain values, and what its features speak for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np

from lols.errors import LolsError
from lols.kernels.hashing import mix
from lols.tasks.inspect import MOST_TEMPLATES, Inspection, column_text, speaking_columns
from lols.tasks.parsing import space as parsing
from lols.tasks.parsing.options import VERBS
from lols.tasks.parsing.task import NETWORK, ParsingTask, placeless
from lols.tasks.parsing.templates import ParsingTemplate, template_factor
from lols.tasks.parsing.treebank import ARROW
from lols.tasks.tokens.attributes import Attribute, hash_text
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.feature_names import Chain, Names, Values, attribute_link, name_features
from lols.tasks.tokens.options import LabelOptions
from lols.tasks.verbs import some_of

KINDS = {parsing.SHIFT: "Shift", parsing.RIGHT: "Right", parsing.LEFT: "Left", parsing.LABEL: "Label"}
SHOWN = 10  # actions besides Shift, where there are more
LARGEST_SET = 3  # relations of a set that is named
BITS = 31  # of a set
ROWS = 1 << 16


def inspect_parser(parser: Any, values: dict[str, Any], asked: LabelOptions) -> ParserInspection:
    """What is in the file of a parser; `asked.label` names actions, or relations for all actions that give them."""
    values |= {"relations": parser.relations_, "vocabulary": len(parser.vocabulary_), "unnamed_templates": []}
    names = values["action_names"] = [action_name(parser.task_, a) for a in range(len(parser.task_.actions))]
    chosen, policy = _chosen(names, asked.label), parser.model_.policy
    if asked.top and not policy.thresholds:
        columns = {names[action]: action for action in chosen or _weightiest(policy, names)}
        strings = dict(getattr(parser, "column_values_", {})) | {WORD: parser.vocabulary_}
        values["features_of"], values["unnamed_templates"] = speaking_columns(
            policy, columns, asked.top, asked.against, lambda ids: find_parser_names(parser.task_, strings, ids)
        )
    return ParserInspection(values, VERBS, asked.top)


class ParserInspection(Inspection):
    """What is in a parser's file."""

    def facts(self) -> Iterator[tuple[str, str]]:
        """Relations, actions, templates and the treebank."""
        found = self.values
        how = {"joint": "an arc and its relation at once", "second": "the relation after the arc", "none": "arcs only"}
        roots = f"{found['roots']} root{'s' if found['roots'] == 'many' else ''} of a sentence"
        yield "relations", f"{len(found['relations'])}: {' '.join(found['relations'])}"
        yield "actions", f"{found['actions']}: {how[found['labelling']]}; {roots}"
        yield "templates", f"{len(found['templates'])}: {some_of(found['templates'], MOST_TEMPLATES)}"
        files = found["files"]
        places = f"; heads in {files['head']}, relations in {files['relation']}" if files is not None else ""
        yield "columns", column_text(found) + places
        yield "vocabulary", f"{found['vocabulary']:,} words"
        facts = found["treebank"]
        lifted = f", {facts['lifted']:,} words lifted" if facts.get("lifted") else ""
        mended = f"; {facts['mended']:,} had several roots" if facts.get("mended") else ""
        yield "treebank", f"{facts.get('nonprojective', 0):,} sentences not projective{lifted}{mended}"


def action_name(task: ParsingTask, action: int) -> str:
    """An action as it is shown: its kind, and the relation that it gives.

    >>> [action_name(ParsingTask(["det", "root"], [0], [0], 1), k) for k in range(3)]
    ['Shift', 'Right det', 'Left det']
    """
    kind, relation, _ = task.actions[action]
    plain = (
        kind == parsing.SHIFT
        or task.labelling in ("none", NETWORK)
        or (task.labelling == "second" and kind != parsing.LABEL)
    )
    return KINDS[kind] if plain else f"{KINDS[kind]} {task.relations[relation]}"


def _chosen(names: Sequence[str], wanted: Sequence[str] | None) -> list[int]:
    made: list[int] = []
    for name in wanted or ():
        found = [k for k, action in enumerate(names) if name == action or name in action.split(" ")]
        if not found:
            raise LolsError(f"there is no action or relation '{name}' in this model: choose from {', '.join(names)}")
        made += [k for k in found if k not in made]
    return made


def _weightiest(policy: Any, names: Sequence[str]) -> list[int]:
    """The actions that most was learned of, those whose weights are largest in sum; Shift is always there."""
    if len(names) <= SHOWN + 1:
        return list(range(len(names)))
    sums = np.zeros(len(names))
    for component in policy.stack:
        for first in range(0, component.shape[0], ROWS):
            sums += np.abs(component[first : first + ROWS]).sum(axis=0)
    shift = names.index(KINDS[parsing.SHIFT])
    sums[shift] = np.inf
    return np.argsort(-sums, kind="stable")[: SHOWN + 1].tolist()


# --- names ------------------------------------------------------------------------------------------------------------


def find_parser_names(task: ParsingTask, strings: Mapping[str, Sequence[str]], wanted: np.ndarray) -> Names:
    """Name features of a parsing task, given the strings that each column is known to hold.

    >>> task = ParsingTask(["det", "root"], [0], [0], 1, templates=["S0.suffix3", "S0l.relation & distance(S0,N0)"])
    >>> ids = [mix(key(placeless(task.viewed[task.search[0].atoms[1].place][0])), hash_text("ing"))]
    >>> find_parser_names(task, {"word": ["Walking", "the"]}, np.array(ids)).by_id.values()
    dict_values(['S0.suffix3 = ing'])
    """

    @cache
    def link(column: str, which: Attribute | None, dynamic: int) -> Values:
        return attribute_link(strings[column], which) if which is not None else _dynamic(task, dynamic)

    def links_of(template: ParsingTemplate) -> list[Values] | None:
        if any(a.attribute is not None and not strings.get(a.column) for a in template.atoms):
            return None
        return [link(a.column, a.attribute, a.dynamic) for a in template.atoms]

    # A state may wait for the relation of an arc; roles of places, and features of the search, say so.
    waits = (0, parsing.RIGHT, parsing.LEFT) if task.labelling == "second" else (0,)
    nothing, empty, chains = mix(hash_text("nothing here"), 0), {}, []
    for template, waiting in product(task.search, waits):
        own = key(template)
        factors = [template_factor(own, position) for position in range(len(template.atoms))]
        name = partial(_name, template, waiting)
        chains.append(Chain(template.text, own, links_of(template), name, factors, waiting))
    for (k, group), waiting in product(enumerate(task.viewed.values()), waits):
        role = k + len(task.viewed) * waiting
        place = group[0].text.partition(".")[0]
        empty[mix(nothing, role) if role else nothing] = f"{place}: no word{_suffix(waiting)}"
        for template in group:
            name = partial(_name, template, waiting)
            chains.append(Chain(template.text, key(placeless(template)), links_of(template), name, last=role))
    return name_features(chains, wanted, empty)


def _suffix(waiting: int) -> str:
    return f" ({KINDS[waiting]} waits)" if waiting else ""


def _name(template: ParsingTemplate, waiting: int, texts: Sequence[str]) -> str:
    """A template's text with the value of each part in place."""
    parts = zip(template.text.split(" & "), texts, strict=True)
    return " & ".join(f"{part} = {text}" for part, text in parts) + _suffix(waiting)


def _dynamic(task: ParsingTask, source: int) -> Values:
    """What the search knows: small numbers, counted from 1."""
    if source in (parsing.LEFT_SET_OF, parsing.RIGHT_SET_OF):
        return _sets(task, task.left if source == parsing.LEFT_SET_OF else task.right)
    if source == parsing.RELATION_OF:
        names = task.relations
    else:
        most = parsing.FARTHEST if source == parsing.DISTANCE else parsing.MOST_CHILDREN
        names = [*map(str, range(most)), f"{most}+"]
    return Values(np.arange(1, len(names) + 1, dtype=np.uint64), lambda place: names[place])


def _sets(task: ParsingTask, relations: Sequence[int]) -> Values:
    """Sets of a few relations; those that share a bit cannot be told apart."""
    members: dict[int, list[str]] = {}
    for r in range(len(task.relations)) if task.labelling == "second" else relations:
        plain = task.relations[r].partition(ARROW)[0]
        if plain not in members.setdefault(r % BITS, []):
            members[r % BITS].append(plain)
    sets = [s for size in range(LARGEST_SET + 1) for s in combinations(sorted(members), size)]
    codes = np.array([1 + sum(1 << bit for bit in s) for s in sets], np.uint64)
    return Values(codes, lambda place: "{" + ", ".join("/".join(members[bit]) for bit in sets[place]) + "}")
