"""What a parser's model file is, as plain values, and what its features speak for.

A feature of one place is a chain of `mix` like those of taggers, with its place mixed in as a role. All others are sums
of a key and of products, one for each atom, so that parts of them can be subtracted: they too are found from both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from lols.contract.hashing import MASK, mix
from lols.engine.table import fill, growing_table
from lols.errors import LolsError
from lols.io.strings import texts_of
from lols.tasks.inspect import MOST_TEMPLATES, Inspection, column_text, speaking_columns
from lols.tasks.parsing import space as parsing
from lols.tasks.parsing.options import VERBS, ParserInspectOptions
from lols.tasks.parsing.task import NETWORK, ParsingTask, placeless
from lols.tasks.parsing.templates import ParsingTemplate, SearchAtom
from lols.tasks.parsing.treebank import ARROW
from lols.tasks.tokens import feature_names
from lols.tasks.tokens.attributes import NOTHING, Attribute, attribute_text, attribute_values, hash_text
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.feature_names import Names, Values, meet, search_names, shown_value, split_chain, undone
from lols.tasks.verbs import some_of

KINDS = {parsing.SHIFT: "Shift", parsing.RIGHT: "Right", parsing.LEFT: "Left", parsing.LABEL: "Label"}
SHOWN = 10  # actions besides Shift, where there are more
LARGEST_SET = 3  # relations of a set that is named
BITS = 31  # of a set
ROWS = 1 << 16


def inspect_parser(parser: Any, values: dict[str, Any], asked: ParserInspectOptions) -> ParserInspection:
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


class _Chain(NamedTuple):
    """One way to make features: the values that follow a template's key, and what follows the name."""

    template: ParsingTemplate
    links: list[Values]
    work: int
    waiting: int = 0  # the kind of arc that waits for its relation
    roles: tuple[int, ...] = ()  # of a feature of one place; others have none


def find_parser_names(task: ParsingTask, strings: Mapping[str, Sequence[str]], wanted: np.ndarray) -> Names:
    """Name features of a parsing task, given the strings that each column is known to hold.

    >>> task = ParsingTask(["det", "root"], [0], [0], 1, templates=["S0.suffix3", "S0l.relation & distance(S0,N0)"])
    >>> ids = [mix(key(placeless(task.viewed[task.search[0].atoms[1].place][0])), hash_text("ing"))]
    >>> find_parser_names(task, {"word": ["Walking", "the"]}, np.array(ids)).by_id.values()
    dict_values(['S0.suffix3 = ing'])
    """
    left = np.unique(np.asarray(wanted, np.int64)).view(np.uint64)
    found = _empty_places(task, left)
    values, unnamed, able = _Makers(task, strings), [], []
    for template in [*task.search, *(t for group in task.viewed.values() for t in group)]:
        links = values.links(template)
        if links is None:
            unnamed.append(template.text)
        else:
            able += list(_chains(task, template, links, left.size))
    for chain in sorted(able, key=lambda c: c.work):
        left = left[~np.isin(left, np.array(list(found), np.int64).view(np.uint64))]
        links = [*chain.links, _roles(chain.roles)] if chain.roles else chain.links
        at, work = split_chain(links, left.size)
        if at < 0 or work > feature_names.MOST_STEPS:
            if chain.template.text not in unnamed:
                unnamed.append(chain.template.text)
            continue
        if chain.template.place is not None:
            places = search_names(placeless(chain.template), links, at, left)  # type: ignore[arg-type]
        else:
            places = _search_sums(chain, at, left)
        for identity, chosen in places.items():
            found[identity] = _name(chain, [v.text(p) for v, p in zip(chain.links, chosen, strict=False)])
    return Names(found, unnamed)


def _chains(task: ParsingTask, template: ParsingTemplate, links: list[Values], wanted: int) -> Iterator[_Chain]:
    """A chain for each kind of arc that may wait for its relation."""
    count, place = len(task.viewed), template.place
    for waiting in (0, parsing.RIGHT, parsing.LEFT) if task.labelling == "second" else (0,):
        role = list(task.viewed).index(place) + count * waiting if place is not None else 0
        yield _Chain(template, links, split_chain(links, wanted)[1], waiting, (role,) if role else ())


def _roles(numbers: Sequence[int]) -> Values:
    return Values(np.array(numbers, np.uint64), str)


def _empty_places(task: ParsingTask, wanted: np.ndarray) -> dict[int, str]:
    """The features of places where there is no word."""
    nothing, found, count = mix(hash_text("nothing here"), 0), {}, len(task.viewed)
    for k, group in enumerate(task.viewed.values()):
        for waiting in (0, parsing.RIGHT, parsing.LEFT):
            role = k + count * waiting
            identity = mix(nothing, role) if role else nothing
            if (np.uint64(identity & MASK) == wanted).any():
                found[identity] = f"{group[0].text.partition('.')[0]}: no word" + _suffix(waiting)
    return found


def _suffix(waiting: int) -> str:
    return f" ({KINDS[waiting]} waits)" if waiting else ""


def _name(chain: _Chain, texts: Sequence[str]) -> str:
    """A template's text with the value of each part in place."""
    parts = chain.template.text.split(" & ")
    return " & ".join(f"{p} = {t}" for p, t in zip(parts, texts, strict=True)) + _suffix(chain.waiting)


def _search_sums(chain: _Chain, at: int, wanted: np.ndarray) -> dict[int, list[int]]:
    """The places, one per link, of the wanted ids that are sums of this template."""
    own = key(chain.template)
    parts = [
        v.hashes * np.uint64((mix(own, position + 1) | 1) & MASK) for position, v in enumerate(chain.links)
    ]  # as `arrays` of `lols.tasks.parsing.templates` makes the factors
    whole = undone(wanted, np.array([chain.waiting], np.uint64)) if chain.waiting else wanted
    targets = whole - np.uint64(own & MASK)
    sums = np.zeros(1, np.uint64)
    for part in parts[:at]:
        sums = (sums[:, np.newaxis] + part).reshape(-1)
    table = growing_table(1 << max(int(2 * sums.size).bit_length(), 4))
    fill(table, sums.view(np.int64))
    sizes = [part.size for part in parts]
    middle = parts[at] if at < len(parts) else np.zeros(1, np.uint64)
    made = {}
    for k, target in enumerate(targets):
        ends = np.array([target], np.uint64)
        for part in parts[at + 1 :]:
            ends = (ends[:, np.newaxis] - part).reshape(-1)
        for end, link, row in meet(table, ends.view(np.int64), middle.view(np.int64)).tolist():
            forward = list(np.unravel_index(row, sizes[:at])) if at else []
            later = list(np.unravel_index(end, sizes[at + 1 :])) if at + 1 < len(sizes) else []
            places = [*forward, *([link] if at < len(sizes) else []), *later]
            made[int(wanted[k].view(np.int64))] = [int(p) for p in places]
    return made


class _Makers:
    """Makes the links of chains; those that several templates share are made once."""

    def __init__(self, task: ParsingTask, strings: Mapping[str, Sequence[str]]):
        self.task, self.strings = task, strings
        self.known: dict[Any, Values] = {}

    def links(self, template: ParsingTemplate) -> list[Values] | None:
        """What each atom can be; None if a column's strings are not known."""
        if any(a.attribute is not None and not self.strings.get(a.column) for a in template.atoms):
            return None
        return [self.values(a) for a in template.atoms]

    def values(self, atom: SearchAtom) -> Values:
        what = atom.dynamic or (atom.column, atom.attribute)
        if what not in self.known:
            made = self._attribute(atom.column, atom.attribute) if atom.attribute else self._dynamic(atom.dynamic)
            self.known[what] = made
        return self.known[what]

    def _attribute(self, column: str, which: Attribute) -> Values:
        strings = self.strings[column]
        hashes, first = np.unique(attribute_values(texts_of(strings), [which])[0, :-1], return_index=True)
        hashes, first = hashes[hashes != NOTHING], first[hashes != NOTHING]
        return Values(
            hashes.view(np.uint64), lambda place: shown_value(attribute_text(which, strings[first[place]]) or "")
        )

    def _dynamic(self, source: int) -> Values:
        """What the search knows: small numbers, counted from 1."""
        if source in (parsing.LEFT_SET_OF, parsing.RIGHT_SET_OF):
            return self._sets(self.task.left if source == parsing.LEFT_SET_OF else self.task.right)
        if source == parsing.RELATION_OF:
            names = self.task.relations
        else:
            most = parsing.FARTHEST if source == parsing.DISTANCE else parsing.MOST_CHILDREN
            names = [*map(str, range(most)), f"{most}+"]
        return Values(np.arange(1, len(names) + 1, dtype=np.uint64), lambda place: names[place])

    def _sets(self, relations: Sequence[int]) -> Values:
        """Sets of a few relations; those that share a bit cannot be told apart."""
        members: dict[int, list[str]] = {}
        for r in range(len(self.task.relations)) if self.task.labelling == "second" else relations:
            plain = self.task.relations[r].partition(ARROW)[0]
            if plain not in members.setdefault(r % BITS, []):
                members[r % BITS].append(plain)
        bits = sorted(members)
        sets = [s for size in range(LARGEST_SET + 1) for s in combinations(bits, size)]
        codes = np.array([1 + sum(1 << bit for bit in s) for s in sets], np.uint64)
        return Values(codes, lambda place: "{" + ", ".join("/".join(members[bit]) for bit in sets[place]) + "}")
