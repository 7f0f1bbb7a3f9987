"""The rules of the generated treebank (`grammar`): how sentences are built, and where phrases attach."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lols.datasets.grammar_words import PREPOSITIONS, Noun, Verb, WeightedChoice, lexicon
from lols.kernels.hashing import mix


class MadeSentence(NamedTuple):
    """Words, their tags, the number of each word's head (from 1, and 0 for the root) and its relation to it."""

    forms: list[str]
    upos: list[str]
    heads: list[int]
    relations: list[str]


# --- trees ------------------------------------------------------------------------------------------------------------


class _Node:
    """A word and its dependents, from left to right."""

    __slots__ = ("form", "left", "meaning", "relation", "right", "upos")

    def __init__(self, form: str, upos: str, relation: str, meaning: int = -1):
        self.form, self.upos, self.relation, self.meaning = form, upos, relation, meaning
        self.left: list[_Node] = []
        self.right: list[_Node] = []

    def before(self, *nodes: _Node) -> _Node:
        """The same node, with dependents before it."""
        self.left += nodes
        return self

    def after(self, *nodes: _Node) -> _Node:
        """The same node, with dependents after it."""
        self.right += nodes
        return self


def _lay_out(root: _Node) -> MadeSentence:
    order: list[tuple[_Node, _Node | None]] = []

    def visit(node: _Node, head: _Node | None) -> None:
        for child in node.left:
            visit(child, node)
        order.append((node, head))
        for child in node.right:
            visit(child, node)

    visit(root, None)
    number = {id(node): k for k, (node, _) in enumerate(order, 1)}
    first = order[0][0]
    first.form = first.form[:1].upper() + first.form[1:]
    return MadeSentence(
        [node.form for node, _ in order],
        [node.upos for node, _ in order],
        [0 if head is None else number[id(head)] for _, head in order],
        [node.relation for node, _ in order],
    )


# --- the grammar ------------------------------------------------------------------------------------------------------

SINGULAR, PLURAL = 0, 1
SUBJECTS = WeightedChoice([("it", 0), ("he", 0), ("she", 0), ("that", 0), ("this", 0), ("they", 1), ("we", 1), ("I", 1),
                  ("you", 1), ("some", 1), ("all", 1)], [5, 5, 4, 2, 2, 5, 4, 5, 5, 1, 1])  # fmt: skip
OBJECTS = WeightedChoice(
    ["it", "him", "her", "them", "that", "this", "us", "me", "you", "all"], [5, 3, 3, 4, 2, 2, 2, 3, 3, 1]
)
DETERMINERS = (
    WeightedChoice(["the", "a", "this", "that", "every", "no", "some", "her"], [12, 8, 2, 2, 1, 1, 1, 2]),
    WeightedChoice(["the", "some", "these", "all", "no", "her"], [10, 3, 2, 2, 1, 2]),
)
COPULAS = {(0, True): "was", (1, True): "were", (0, False): "is", (1, False): "are"}
MODALS = WeightedChoice(["will", "can", "would", "should", "may"], [4, 4, 3, 2, 1])
ADVERBIALS = WeightedChoice(
    ["because", "if", "when", "as", "after", "before", "since", "so", "while"], [4, 4, 4, 2, 2, 2, 2, 2, 1]
)
CONJUNCTIONS = WeightedChoice(["and", "or", "but"], [8, 2, 1])
NUMBERS = WeightedChoice(["one", "two", "three", "ten", "20", "1995", "3.5", "100", "12"], [6, 5, 3, 2, 2, 2, 1, 2, 1])
PHRASE = WeightedChoice(PREPOSITIONS, PREPOSITIONS.values())
DEEPEST, LONGEST = 3, 60
OWN_TASTE = (0.2, 1.0, 4.0)  # factors for how often a word has a preposition, compared with its class


class SentenceWriter:
    """Draws sentences from one stream of random numbers."""

    def __init__(self, seed: int):
        self.words = lexicon()
        self._rng = np.random.default_rng(seed)
        self._draws: list[float] = []

    def u(self) -> float:
        """A number in [0, 1)."""
        if not self._draws:
            self._draws = self._rng.random(4096).tolist()
        return self._draws.pop()

    def chance(self, probability: float) -> bool:
        return self.u() < probability

    def sentence(self) -> MadeSentence:
        kind = self.u()
        if kind < 0.04:
            root = self.noun_phrase("root", 0, self.number())
        elif kind < 0.09:
            verb = self.words.verbs(self.u())
            root = self.complements(_Node(verb.base, "VERB", "root", verb.meaning), verb, 0)
        else:
            root = self.clause("root", 0)
            if kind > 0.9:
                root = self.joined(root, self.clause("conj", 1), comma=self.chance(0.4))
            elif kind > 0.86:  # dogs bark, she says
                root.after(_first(self.clause("parataxis", 1), _Node(",", "PUNCT", "punct")))
        root.after(_Node("." if self.chance(0.92) else "!", "PUNCT", "punct"))
        made = _lay_out(root)
        return made if len(made.forms) <= LONGEST else self.sentence()

    def number(self) -> int:
        return PLURAL if self.chance(0.35) else SINGULAR

    # --- clauses ---

    def clause(self, relation: str, depth: int) -> _Node:
        """A clause: its verb, or the adjective or noun after a copula, is the head."""
        number, before = self.number(), list[_Node]()
        if depth < DEEPEST and self.chance(0.04):
            before += [self.subordinate("advcl", depth + 1)]
            if self.chance(0.5):
                before[0].after(_Node(",", "PUNCT", "punct"))
        elif self.chance(0.06):
            before += [self.adverb()]
        elif self.chance(0.08):  # in the house, dogs sleep
            noun = self.noun_phrase("obl", depth + 1, self.number())
            before += [_first(noun, _Node(PHRASE(self.u()), "ADP", "case"))]
            if self.chance(0.6):
                before += [_Node(",", "PUNCT", "punct")]
        before += [self.subject(number, depth)]
        if self.chance(0.08):
            before += [self.adverb()]
        head = self.predicate(relation, number, depth)
        head.left = before + head.left
        if depth < DEEPEST and self.chance(0.12):
            self.open_verb(head).after(self.subordinate("advcl", depth + 1))
        return head

    def open_verb(self, head: _Node) -> _Node:
        """One of the verbs at the right edge of a tree, or the head itself: the next phrase may attach to any."""
        found = [head]
        while head.right:
            head = head.right[-1]
            if head.upos == "VERB":
                found.append(head)
        return found[int(self.u() * len(found))]

    def subject(self, number: int, depth: int) -> _Node:
        if self.chance(0.45):
            while True:
                form, its = SUBJECTS(self.u())
                if its == number:
                    return _Node(form, "PRON", "nsubj")
        return self.noun_phrase("nsubj", depth + 1, number)

    def subordinate(self, relation: str, depth: int) -> _Node:
        made = self.clause(relation, depth)
        return _first(made, _Node(ADVERBIALS(self.u()), "SCONJ", "mark"))

    def predicate(self, relation: str, number: int, depth: int) -> _Node:
        """A finite verb with its dependents."""
        kind, past = self.u(), self.chance(0.5)
        copula = COPULAS[number, past] if past or number or self.chance(0.7) else "'s"
        if kind < 0.16:
            return self.nominal(relation, copula, depth)
        verb = self.words.verbs(self.u())
        if kind < 0.24:  # it was broken: a state or an event
            state = self.chance(verb.state)
            made = _Node(verb.past, "ADJ" if state else "VERB", relation, verb.meaning)
            made.before(_Node(copula, "AUX", "cop" if state else "aux:pass"))
            return self.phrases(made, [made], self.how_many(0.85), depth)
        made = _Node(verb.base, "VERB", relation, verb.meaning)
        if kind < 0.32:
            made.form = verb.ing
            made.before(_Node(copula, "AUX", "aux"))
        elif kind < 0.42:
            made.before(_Node(MODALS(self.u()), "AUX", "aux"))
        elif kind < 0.5:
            made.form = verb.past
            made.before(_Node("had" if past else "have" if number else "has", "AUX", "aux"))
        elif kind < 0.55:
            made.form = "had" if past else "have" if number else "has"
            return self.complements(made, None, depth)
        elif past:
            made.form = verb.past
        elif number == SINGULAR:
            made.form = verb.third
        if made.left and self.chance(0.1):
            made.before(_Node("not", "PART", "advmod"))
        return self.complements(made, verb, depth)

    def nominal(self, relation: str, copula: str, depth: int) -> _Node:
        """It is good; it is a dog; there is a dog."""
        if self.chance(0.6):
            head = _Node(self.words.adjectives(self.u()), "ADJ", relation, 0)
            if self.chance(0.2):
                head.before(_Node("so" if self.chance(0.4) else self.words.adverbs(self.u()), "ADV", "advmod"))
            head = self.phrases(head, [head], self.how_many(0.3), depth)
        else:
            head = self.noun_phrase(relation, depth + 1, SINGULAR)
        return _first(head, _Node(copula, "AUX", "cop"))

    def complements(self, head: _Node, verb: Verb | None, depth: int) -> _Node:
        """Add the dependents after a verb: a particle, an object, a clause or an infinitive, phrases."""
        frontier = [head]
        kind = self.u()
        if verb is not None and verb.particle and self.chance(0.5):
            head.after(_Node(verb.particle, "ADP", "compound:prt"))
        if verb is not None and depth < DEEPEST and kind < verb.clause:
            clause = self.clause("ccomp", depth + 1)
            if self.chance(0.4):
                clause = _first(clause, _Node("that", "SCONJ", "mark"))
            return head.after(clause)
        if verb is not None and depth < DEEPEST and kind < verb.infinitive:
            return head.after(self.infinitive("xcomp", depth + 1))
        if verb is None or self.chance(verb.object):
            if self.chance(0.2):
                head.after(_Node(OBJECTS(self.u()), "PRON", "obj"))
            else:
                noun = self.noun_phrase("obj", depth + 1, self.number(), phrases=False)
                head.after(noun)
                frontier.append(noun)
        head = self.phrases(head, frontier, self.how_many(0.85), depth)
        if self.chance(0.2):
            self.open_verb(head).after(self.adverb())
        if depth < DEEPEST and self.chance(0.12):
            self.open_verb(head).after(self.infinitive("advcl", depth + 1))
        if depth < DEEPEST and head.upos == "VERB" and self.chance(0.13):
            self.joined(self.open_verb(head), self.predicate("conj", self.number(), depth + 1))
        return head

    def infinitive(self, relation: str, depth: int) -> _Node:
        verb = self.words.verbs(self.u())
        made = _Node(verb.base, "VERB", relation, verb.meaning).before(_Node("to", "PART", "mark"))
        return self.complements(made, verb, depth)

    # --- phrases ---

    def how_many(self, more: float) -> int:
        count = 0
        while count < 3 and self.chance(more if count == 0 else more / 2):
            count += 1
        return count

    def phrases(self, head: _Node, frontier: list[_Node], count: int, depth: int) -> _Node:
        """Add prepositional phrases, each attached to one of the words at the right edge of the tree."""
        for _ in range(count if depth < DEEPEST else 0):
            preposition = PHRASE(self.u())
            site = self.site(frontier, preposition)
            noun = self.noun_phrase(
                "nmod" if _is_noun(site) else "obl", DEEPEST if self.chance(0.75) else depth + 1, self.number(), False
            )
            site.after(_first(noun, _Node(preposition, "ADP", "case")))
            frontier = [*frontier[: frontier.index(site) + 1], noun]
            if self.chance(0.28):
                low = noun if self.chance(0.5) else frontier[-2] if _is_noun(frontier[-2]) else noun
                self.joined(low, self.like(low))
                frontier = frontier[: frontier.index(low) + 1]
        return head

    def site(self, frontier: list[_Node], preposition: str) -> _Node:
        likes = self.words.likes
        weights = [
            likes["noun" if _is_noun(node) else "verb"][preposition][max(node.meaning, 0)]
            * (0.1 if node.upos == "PROPN" else OWN_TASTE[mix(_number(preposition), _number(node.form)) % 3])
            for node in frontier
        ]
        return WeightedChoice(frontier, weights)(self.u())

    def like(self, node: _Node) -> _Node:
        """Another noun, usually of the same class."""
        alike = node.meaning >= 0 and self.chance(0.6)
        noun = (self.words.alike[node.meaning] if alike else self.words.nouns)(self.u())
        return self.noun(noun, "conj", self.number(), bare=self.chance(0.5))

    def joined(self, first: _Node, second: _Node, comma: bool = False) -> _Node:
        second = _first(second, _Node(CONJUNCTIONS(self.u()), "CCONJ", "cc"))
        if comma:
            second = _first(second, _Node(",", "PUNCT", "punct"))
        return first.after(second)

    def adverb(self) -> _Node:
        return _Node(self.words.adverbs(self.u()), "ADV", "advmod")

    # --- nouns ---

    def noun_phrase(self, relation: str, depth: int, number: int, phrases: bool = True) -> _Node:
        if number == SINGULAR and self.chance(0.2):
            return self.name(relation)
        made = self.noun(self.words.nouns(self.u()), relation, number)
        if phrases and depth < DEEPEST:
            made = self.phrases(made, [made], self.how_many(0.45), depth + 1)
        kind = self.u()
        if kind < 0.12 and depth < DEEPEST:
            noun = made
            if made.right and _is_noun(made.right[-1]) and self.chance(0.4):
                noun = made.right[-1]  # the roof of the house that leaks
            noun.after(self.relative(noun, number, depth + 1))
        elif kind < 0.2:
            if self.chance(0.3):  # dogs, cats and birds
                made.after(_first(self.like(made), _Node(",", "PUNCT", "punct")))
            self.joined(made, self.like(made))
        elif kind < 0.22:  # Rex, a dog,
            other = self.noun(self.words.nouns(self.u()), "appos", number)
            made.after(_first(other, _Node(",", "PUNCT", "punct")).after(_Node(",", "PUNCT", "punct")))
        return made

    def name(self, relation: str) -> _Node:
        made = _Node(self.words.names(self.u()), "PROPN", relation, 0)
        if self.chance(0.35):
            made.after(_Node(self.words.names(self.u()), "PROPN", "flat"))
        return made

    def noun(self, noun: Noun, relation: str, number: int, bare: bool = False) -> _Node:
        """A noun with the dependents before it."""
        made = _Node(noun.plural if number else noun.singular, "NOUN", relation, noun.meaning)
        if not bare and self.chance(0.06):
            made.before(self.name("nmod:poss").after(_Node("'s", "PART", "case")))
        elif not bare and self.chance(0.7 if number == SINGULAR else 0.3):
            form = DETERMINERS[number](self.u())
            made.before(_Node(form, *(("PRON", "nmod:poss") if form == "her" else ("DET", "det"))))
        if self.chance(0.15 if number else 0.02):
            made.before(_Node(NUMBERS(self.u()), "NUM", "nummod"))
        if self.chance(0.32):
            made.before(self.modifier())
        if self.chance(0.33):
            made.before(self.compound())
        return made

    def compound(self) -> _Node:
        """The first part of a compound, which may itself have parts or an adjective."""
        noun = self.words.nouns(self.u())
        made = _Node(noun.singular, "NOUN", "compound", noun.meaning)
        if self.chance(0.25):
            made.before(self.compound())
        elif self.chance(0.5):
            made.before(self.modifier())
        return made

    def modifier(self) -> _Node:
        kind = self.u()
        if kind < 0.14:
            verb = self.words.verbs(self.u())
            return _Node(verb.past, "ADJ" if self.chance(verb.state) else "VERB", "amod")
        if kind < 0.2:
            return _Node(self.words.verbs(self.u()).ing, "VERB", "amod")
        made = _Node(self.words.adjectives(self.u()), "ADJ", "amod")
        if self.chance(0.1):
            made.before(self.adverb())
        if self.chance(0.08):  # old and grey
            self.joined(made, _Node(self.words.adjectives(self.u()), "ADJ", "conj"))
        return made

    def relative(self, noun: _Node, number: int, depth: int) -> _Node:
        """A dog that barks; a dog that cats see; a dog seen by cats."""
        kind = self.u()
        if kind < 0.3:
            verb = self.words.verbs(self.u())
            made = _Node(verb.past, "VERB", "acl", verb.meaning)
            return self.phrases(made, [made], 1, depth)
        that = "that" if self.chance(0.6) else "who" if self.chance(0.5) else "which"
        if kind < 0.75:
            return _first(self.predicate("acl:relcl", number, depth), _Node(that, "PRON", "nsubj"))
        verb, plural = self.words.verbs(self.u()), self.number()
        made = _Node(verb.past if self.chance(0.5) else verb.base if plural else verb.third, "VERB", "acl:relcl")
        made.before(self.subject(plural, DEEPEST))
        return made if self.chance(0.5) else _first(made, _Node(that, "PRON", "obj"))


def _first(head: _Node, node: _Node) -> _Node:
    """Put a dependent before all others."""
    head.left.insert(0, node)
    return head


def _is_noun(node: _Node) -> bool:
    return node.upos in ("NOUN", "PROPN")


def _number(word: str) -> int:
    """A number that stands for a word."""
    return int.from_bytes(word.encode(), "big") % 1_000_003
