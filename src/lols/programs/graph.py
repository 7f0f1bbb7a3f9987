"""Merged roll-outs of programs whose decisions have keys: a graph of decisions, explored as far as needed.

A node is a decision, identified by its key; an edge is an action with its cost. The values of actions are read off the
graph. Where an edge is missing, the program is run to find it. A run that has returned to the roll-in continues to the
next missing edge there, instead of starting again.
"""

from __future__ import annotations

from typing import Any

from lols.engine.structures import TEACHER_POLICY
from lols.errors import SpaceError
from lols.programs.choices import Legal, Teacher
from lols.programs.rolling import ProgramTrail
from lols.programs.search import NEEDED, ProgramSearch, Stop, ask_teacher


class Node:
    """One decision: its legal actions, the actions of teacher and learner, and the edges found so far."""

    __slots__ = ("action", "answer", "base", "edges", "features", "key", "legal", "parent", "preferred", "values")

    def __init__(self, key: Any, legal: Legal, answer: Teacher | None, features: Any, parent: Any, action: int):
        self.key, self.legal, self.answer, self.features = key, legal, answer, features
        self.parent, self.action = parent, action
        self.base = -1  # its step in the roll-in; -1 if it is not part of it
        self.preferred = -1
        self.edges: dict[int, tuple[float, Node]] = {}  # by action: its cost, and the next node
        self.values: list[float | None] = [None, None]  # the cost of the rest, completed by teacher and by learner


END: Any = Node(None, None, None, None, None, -1)  # type: ignore[arg-type]
END.values = [0.0, 0.0]


class Graph(ProgramSearch):
    """The graph of one example, and the way of running a program that extends it."""

    chain = True

    def start(self, x: Any, number: int, trail: ProgramTrail, learner_needed: bool) -> None:
        """Begin with the nodes of a roll-in."""
        self._x, self._number, self._trail, self._learner_needed = x, number, trail, learner_needed
        self._nodes: dict[Any, Node] = {}
        self._created: list[Node] = []
        self._base: list[Node] = []
        self._pending: list[list[tuple[int, int]]] = []
        self._last = -1
        before = None
        for t, key in enumerate(trail.keys):
            try:
                node = self._nodes.get(key) if key is not None else None
            except TypeError:
                raise SpaceError(f"example {number}, step {t}: the key is not hashable: give a tuple") from None
            if node is None:
                node = Node(key, trail.legal[t], trail.teachers[t], None, before, trail.actions[t - 1] if t else -1)
                self._created.append(node)
                if key is not None:
                    self._nodes[key] = node
            elif node.legal is not trail.legal[t]:
                raise SpaceError(f"example {number}, steps {node.base} and {t}: {DIFFERENT}")
            node.base, node.preferred, node.features = t, trail.preferred[t], trail.seen[t]
            self._base.append(node)
            if before is not None:
                self._join(before, t - 1, node)
            before = node
        if before is not None:
            self._join(before, len(trail.actions) - 1, END)

    def _join(self, node: Node, t: int, after: Node) -> None:
        action, edge = self._trail.actions[t], (self._trail.costs[t], after)
        if node.edges.setdefault(action, edge) != edge:
            raise SpaceError(
                f"example {self._number}, step {t}: the key {node.key!r} is that of an earlier decision, but the same "
                "action costs or leads to something else: put what makes them differ into the key"
            )

    def forget(self) -> None:
        """Break the reference cycles between the nodes, which otherwise wait for the garbage collector."""
        for node in self._created:
            node.edges.clear()
            node.parent = None
        self._nodes, self._created, self._base = {}, [], []

    # --- the values of actions ---

    def want(self, wanted: list[list[tuple[int, int]]]) -> None:
        """Find the edges that are needed to evaluate, for each step of the roll-in, actions and who completes them."""
        if not self.chain:
            return
        self._pending = [
            [(a, who) for a, who in reversed(some) if a not in node.edges]
            for node, some in zip(self._base, wanted, strict=True)
        ]
        self._last = len(wanted) - 1
        for t, some in enumerate(self._pending):
            while some:
                a, who = some.pop()
                if a not in self._base[t].edges:
                    self._reveal(self._base[t], a, who)
        self._pending = []

    def value(self, t: int, a: int, who: int) -> float:
        """The loss after step `t` if action `a` is taken there and `who` completes; summed from the end backwards."""
        line = _line(who)
        node = self._base[t]
        if a not in node.edges:
            self._reveal(node, a, who)
        first, node = node.edges[a]
        path: list[tuple[Node, float]] = []
        while node.values[line] is None:
            if line == 0 and node.answer is None:
                raise SpaceError(f"{self._what(t, a)}, at a later step: {NEEDED}")
            move = self._move(node, who)
            if move not in node.edges:
                self._reveal(node, move, who)
            cost, after = node.edges[move]
            path.append((node, cost))
            node = after
            if len(path) > self._most:
                raise SpaceError(f"{self._what(t, a)}: decisions with equal keys follow each other: count in the key")
        return first + _fill(path, node.values[line] or 0.0, line)

    def _move(self, node: Node, who: int) -> int:
        if who == TEACHER_POLICY:
            if node.answer is None:
                raise SpaceError(NEEDED)
            return node.answer.first
        if node.preferred < 0:
            seen = node.features if node.base >= 0 else self._scorer.encode(node.features)
            node.preferred = self._scorer.choose(seen, node.legal)
        return node.preferred

    def _what(self, t: int, a: int) -> str:
        return f"example {self._number}, roll-out of action {self._names[a]!r} at step {t}"

    # --- running the program ---

    def _reveal(self, node: Node, action: int, who: int) -> None:
        """Run the program to a node, take an action there, and go on as long as missing edges are found."""
        way: list[int] = []
        at = node
        while at.base < 0:
            way.append(at.action)
            at = at.parent
        script = self._trail.names[: at.base] + [self._names[a] for a in reversed(way)]
        self._begin(script)
        self._leaving, self._action, self._who, self._arriving, self._done = node, action, who, False, False
        what = self._what(len(script), action)
        self._run(self._x, what)
        if not self._arriving and not self._done:
            raise SpaceError(f"{what}: the program ended at step {self._at}, unlike before: is it random?")
        if not self._done:
            self._leaving.edges[self._action] = (self._final, END)

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        if self._done:
            raise Stop
        choices = self._choices
        allowed = choices.all if legal is None else choices.legal(legal)
        if not self._arriving:
            node = self._leaving
            if allowed is not node.legal or key != node.key:
                raise SpaceError("other actions are legal, or the key is another, than before: is the program random?")
            return self._leave(node, self._action)
        self._check_steps(at)
        came, action, cost = self._leaving, self._action, self._spent()
        arrived = self._nodes.get(key) if key is not None else None
        if arrived is None:
            answer = None
            if reference is not None or costs is not None:
                answer = ask_teacher(choices, allowed, reference, costs, 0)
            if self._learner_needed:
                if callable(features):
                    features = features()
                features = self._scorer.kept(features)
            arrived = Node(key, allowed, answer, features, came, action)
            self._created.append(arrived)
            if key is not None:
                self._nodes[key] = arrived
        elif arrived.legal is not allowed:
            raise SpaceError(DIFFERENT)
        came.edges[action] = (cost, arrived)
        return self._next(arrived)

    def _leave(self, node: Node, action: int) -> Any:
        """Take the action whose edge is missing; the loss from here on is its cost."""
        self._leaving, self._action, self._arriving, self._loss = node, action, True, 0.0
        name = self._names[action]
        self._script.append(name)
        self._known = self._at
        return name

    def _next(self, node: Node) -> Any:
        """Go on from a node to the next missing edge, by a script; or stop the run."""
        pending, who = self._pending, self._who
        line = _line(who)
        way: list[Any] = []
        path: list[tuple[Node, float]] = []
        at = node
        while len(way) < self._most:
            action = -1
            if at.base >= 0 and pending:
                path = []
                some = pending[at.base]
                while some and action < 0:
                    wanted, finisher = some.pop()
                    if wanted not in at.edges:
                        action, who = wanted, finisher
                if action < 0:
                    if not self._waiting(at.base):
                        raise self._stop()
                    at, name = self._base[at.base + 1], self._trail.names[at.base]
                    way.append(name)
                    continue
            else:
                if at.values[line] is not None:
                    break
                action = self._move(at, who)
            edge = at.edges.get(action)
            if edge is None:
                self._who = who
                return self._go(way, at, action)
            path.append((at, edge[0]))
            at = edge[1]
            if at is END:
                break
            way.append(self._names[action])
        value = at.values[line]
        if value is not None:
            _fill(path, value, line)
        raise self._stop()

    def _go(self, way: list[Any], node: Node, action: int) -> Any:
        """Go to a node by known actions, and take an action there."""
        if not way:
            return self._leave(node, action)
        self._script += way
        self._known = len(self._script)
        self._leaving, self._action, self._arriving = node, action, False
        return way[0]

    def _stop(self) -> Stop:
        """End a run whose remaining edges are all present."""
        self._done = True
        return Stop()

    def _waiting(self, t: int) -> bool:
        """Whether edges are missing at later steps of the roll-in."""
        while self._last >= 0 and not self._pending[self._last]:
            self._last -= 1
        return self._last > t


def _line(who: int) -> int:
    """The index of a completing policy in `Node.values`: 0 for the teacher, 1 for the learner."""
    return 0 if who == TEACHER_POLICY else 1


def _fill(path: list[tuple[Node, float]], value: float, line: int) -> float:
    """Set the values of the nodes of a path, from its end backwards; the value of the first."""
    for node, cost in reversed(path):
        value = cost + value
        node.values[line] = value
    return value


DIFFERENT = "two decisions have the same key and different legal actions: put what makes them differ into the key"
