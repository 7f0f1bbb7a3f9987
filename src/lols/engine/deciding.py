"""What searches that are not greedy ask of a model."""

from __future__ import annotations

from typing import Any, Protocol

from lols.contract.examples import Examples
from lols.contract.space import SearchSpace
from lols.contract.threads import Threads
from lols.engine.drivers.fused import FusedDriver
from lols.engine.structures import Plan


class Deciding(Protocol):
    """A search space and a policy for it, as `lols.Model` has them."""

    space: SearchSpace
    plan: Plan
    threads: Threads
    compiled: bool

    @property
    def policy(self) -> Any:
        """What drivers are asked with."""

    @property
    def decides(self) -> Any:
        """The `lols.policies.Policy`."""

    def driver(self, examples: Examples) -> FusedDriver:
        """What searches examples with the policy."""
