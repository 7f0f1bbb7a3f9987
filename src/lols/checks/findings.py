"""What the checks found: one line each, one for each function and kind of mistake, and not too many."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding", "Findings"]

MOST_FINDINGS = 20


@dataclass(frozen=True)
class Finding:
    """One mistake: the function that makes it, where it was seen first, and what to do about it.

    >>> print(Finding("features", 3, 0, "emits 12 features, but Sizes.features is 10: raise it"))
    `features`, example 3, step 0: emits 12 features, but Sizes.features is 10: raise it
    """

    function: str
    example: int | None
    step: int | None
    message: str

    def __str__(self) -> str:
        place = [f"`{self.function}`"]
        place += [f"example {self.example}"] if self.example is not None else []
        place += [f"step {self.step}"] if self.step is not None else []
        return f"{', '.join(place)}: {self.message}"


class Findings:
    """Collects findings; the first of each function and kind is kept."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._kinds: set[tuple[str, str]] = set()

    @property
    def full(self) -> bool:
        """Whether there are enough: a reader fixes the first ones first."""
        return len(self.found) >= MOST_FINDINGS

    def has(self, function: str, kind: str) -> bool:
        """Whether a function was already found to make this kind of mistake."""
        return (function, kind) in self._kinds

    def add(self, function: str, kind: str, message: str, example: int | None = None, step: int | None = None) -> None:
        """Report a mistake, unless its like was reported."""
        if not self.full and not self.has(function, kind):
            self._kinds.add((function, kind))
            self.found.append(Finding(function, example, step, message))
