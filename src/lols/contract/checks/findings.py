"""The results of a check: findings, one for each function and kind of mistake, and how much was examined."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from lols.contract.checks.guards import SpentError

MOST_FINDINGS = 20


@dataclass(frozen=True)
class Finding:
    """One mistake: the function that makes it, where it was first seen, and how to fix it.

    Parameters
    ----------
    function
        The function that makes the mistake.
    example
        The number of the example.
    step
        The step in it.
    message
        What is wrong, and how to fix it.
    kind
        What kind of mistake it is, if a function can make several.

    Examples
    --------
    >>> print(Finding("features", 3, 0, "emits 12 features, but Sizes.features is 10: raise it"))
    `features`, example 3, step 0: emits 12 features, but Sizes.features is 10: raise it

    """

    function: str
    example: int | None
    step: int | None
    message: str
    kind: str = ""

    def __str__(self) -> str:
        place = [f"`{self.function}`"]
        place += [f"example {self.example}"] if self.example is not None else []
        place += [f"step {self.step}"] if self.step is not None else []
        return f"{', '.join(place)}: {self.message}"


class Findings:
    """Collects findings: the first of each function and kind; with `kinds`, only these. Those of `ends` end a check."""

    def __init__(self, kinds: Container[str] | None = None, *, ends: Container[str] = ()) -> None:
        self.found: list[Finding] = []
        self._wanted, self._ends = kinds, ends
        self._kinds: set[tuple[str, str]] = set()

    @property
    def full(self) -> bool:
        """Whether there are enough findings for one report."""
        return len(self.found) >= MOST_FINDINGS

    def has(self, function: str, kind: str) -> bool:
        """Whether this kind of mistake was already reported for a function."""
        return (function, kind) in self._kinds

    def add(self, function: str, kind: str, message: str, example: int | None = None, step: int | None = None) -> None:
        """Report a mistake, unless the same kind was reported for the function."""
        if kind in self._ends:
            raise SpentError
        wanted = self._wanted is None or kind.partition(":")[0] in self._wanted
        if wanted and not self.full and not self.has(function, kind):
            self._kinds.add((function, kind))
            self.found.append(Finding(function, example, step, message, kind))


@dataclass
class Coverage:
    """How much was examined, and how much there was.

    Attributes
    ----------
    examples
        Examples that were walked through.
    examples_given
        Examples that were given and encoded.
    walks
        Walks through the examples.
    walks_asked
        Walks that were asked for: `rollouts` through each of the examples, of which at most 25 are used.
    states
        States that were examined.
    states_met
        States that were met; one that is met twice counts twice.
    not_encoded
        Whether there were more objects than could be encoded in time.
    complete
        Whether nothing was left out for lack of time.

    """

    examples: int = 0
    examples_given: int = 0
    walks: int = 0
    walks_asked: int = 0
    states: int = 0
    states_met: int = 0
    not_encoded: bool = False
    complete: bool = True

    def __str__(self) -> str:
        """One line with all numbers.

        >>> print(Coverage(3, 3, 60, 60, 840, 840))
        looked at 3 of 3 examples, on 60 of 60 walks, at 840 of 840 states
        """
        line = f"looked at {self.examples} of {self.examples_given} examples, "
        line += f"on {self.walks} of {self.walks_asked} walks, at {self.states} of {self.states_met} states"
        if self.not_encoded:
            line += f"; objects after the first {self.examples_given} were not encoded"
        return line if self.complete else f"{line}; for more, give more seconds, or thorough=True"


class Report(list[Finding]):
    """A list of findings with a record of what was examined: `summary` in words, `coverage` in numbers.

    Parameters
    ----------
    findings
        What was found.
    coverage
        What was examined.

    Examples
    --------
    >>> report = Report([], Coverage(8, 8, 160, 160, 2400, 2400))
    >>> report == [], report.summary
    (True, 'looked at 8 of 8 examples, on 160 of 160 walks, at 2400 of 2400 states')

    """

    def __init__(self, findings: Iterable[Finding], coverage: Coverage):
        super().__init__(findings)
        self.coverage = coverage

    @property
    def summary(self) -> str:
        """What was examined, in one line."""
        return str(self.coverage)
