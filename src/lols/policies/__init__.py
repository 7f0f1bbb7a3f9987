"""Policies of any kind: the protocol, the states that they receive, and the linear policy as an example."""

from __future__ import annotations

from lols.engine.states import States
from lols.policies.linear import LinearPolicy
from lols.policies.protocol import Policy

__all__ = ["LinearPolicy", "Policy", "States"]
