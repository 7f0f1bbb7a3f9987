"""Policies of any kind: the protocol, the states that they receive, and the linear policy as an example."""

from __future__ import annotations

from lols.engine.states import States
from lols.policies.in_lock_step import LinearPolicy
from lols.policies.linear import Linear
from lols.policies.own import OwnPolicy
from lols.policies.policy import Policy

__all__ = ["Linear", "LinearPolicy", "OwnPolicy", "Policy", "States"]
