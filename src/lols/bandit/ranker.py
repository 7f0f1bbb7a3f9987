"""Rank candidates in slots, and learn from what becomes of them: any dictionaries as context and candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lols.bandit.bandit import Answer, StructuredBandit
from lols.bandit.decider import Shown
from lols.bandit.policy import BanditPolicy
from lols.bandit.ranking import ID, RULES, names_of, ranking_space
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, LolsError


class Ranker:
    """Chooses from candidates what to show in each slot, and learns from clicks or other losses.

    The rules, which it starts from, show the candidates in the order in which they are given: give them in the order
    of your present system.

    Parameters
    ----------
    slots
        The number of candidates to show, fewer if there are not as many.
    most_features
        The most features that a candidate may have, with its crosses: each of its features alone, with the slot, and
        with each feature of the context.
    options
        Options of `StructuredBandit`, such as `log="shown.log"`, `guard=True` and `seed`.

    Examples
    --------
    >>> from lols.bandit import Ranker
    >>> ranker = Ranker(slots=2, seed=1, compiled=False)
    >>> reader = {"segment": "young", "device": "phone"}
    >>> articles = [
    ...     {"id": "a7", "topic": "music", "hours": 2.5},
    ...     {"id": "b3", "topic": "politics", "hours": 0.5},
    ...     {"id": "c1", "topic": "sport", "hours": 1.0},
    ... ]
    >>> shown = ranker.rank(reader, articles, id="visit-1", excluded=["b3"])
    >>> sorted(shown.output), len(shown.chances)
    (['a7', 'c1'], 2)
    >>> ranker.learn("visit-1", losses=[1.0, 0.0])  # a click on the second slot
    'accepted'

    """

    def __init__(self, slots: int = 1, *, most_features: int = 512, **options: Any):
        for name, value in (("slots", slots), ("most_features", most_features)):
            check_whole(name, value, 1)
        for name in ("space", "reference"):
            if name in options:
                raise ConfigurationError(f"{name} is no option of a Ranker: use StructuredBandit for one of your own")
        space = ranking_space(slots, most_features)
        self.bandit = StructuredBandit(space, RULES, **options)

    def rank(
        self,
        context: Mapping[str, Any],
        candidates: Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]],
        id: str | int | None = None,
        *,
        excluded: Sequence[Any] = (),
        activate: bool = True,
    ) -> Shown:
        """Choose what to show. The output has the ids of candidates, or their numbers if they have none.

        Parameters
        ----------
        context
            What is known of the visit: names, and texts, numbers, truth values, lists of texts or dictionaries.
        candidates
            Dictionaries of features, likewise, with an `"id"`; or such by their id.
        id
            The id of the event; the same id gives the same answer again.
        excluded
            The ids of candidates that must not be shown.
        activate
            Whether it is shown at once: see `StructuredBandit.decide`.

        """
        if isinstance(candidates, Mapping):
            candidates = [{ID: name, **_features(name, told)} for name, told in candidates.items()]
        request = {"context": context, "candidates": list(candidates)}
        shown = self.bandit.decide(request | ({"excluded": list(excluded)} if excluded else {}), id, activate=activate)
        names = names_of(candidates)
        return shown._replace(output=[names[place] for place in shown.output])

    def learn(
        self,
        id: str | int,
        loss: float | None = None,
        losses: Sequence[float | None] | Mapping[int, float] | None = None,
    ) -> Answer:
        """Report the loss of what was shown, of the whole or of each slot: see `StructuredBandit.learn`."""
        return self.bandit.learn(id, loss, losses)

    def activate(self, id: str | int) -> Answer:
        """Say that it is shown now: see `StructuredBandit.activate`."""
        return self.bandit.activate(id)

    def report(self) -> dict[str, Any]:
        """Counts of decisions and losses: see `StructuredBandit.report`."""
        return self.bandit.report()

    def policy(self) -> BanditPolicy:
        """What it decides by, to save it or to decide elsewhere."""
        return self.bandit.policy()

    def close(self) -> None:
        """Close the log."""
        self.bandit.close()

    def __enter__(self) -> Ranker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _features(name: Any, told: Any) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise LolsError(f"candidate {name!r} is not a dictionary of features")
    return dict(told)
