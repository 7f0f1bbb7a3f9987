"""Policies of any kind: the protocol, what they see, and the linear one as an example of it."""

from __future__ import annotations

from lols.engine.states import States
from lols.policies.linear import LinearPolicy
from lols.policies.protocol import Policy

__all__ = ["LinearPolicy", "Policy", "States"]
