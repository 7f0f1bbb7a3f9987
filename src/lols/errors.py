"""The errors a user meets: each is one line that names the place and the fix."""

from __future__ import annotations

__all__ = ["ConfigurationError", "LolsError", "ModelFileError", "SpaceError"]


class LolsError(ValueError):
    """Base of all errors that are the input's fault rather than the library's."""


class SpaceError(LolsError):
    """A search space or a reference broke the contract: says which function, which example, which step."""


class ConfigurationError(LolsError):
    """Options that contradict each other, or that a space cannot honour."""


class ModelFileError(LolsError):
    """A model or checkpoint file that cannot be read: truncated, edited, or of another kind."""
