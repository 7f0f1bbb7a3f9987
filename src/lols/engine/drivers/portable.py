"""What makes a driver again on another machine: its class, its arguments, and a digest of its functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lols.errors import ConfigurationError, LolsError, lines_of
from lols.kernels.digest import digest_functions


class Portable(NamedTuple):
    """A driver to be made elsewhere, with the same data."""

    kind: type
    arguments: Mapping[str, Any]
    functions: Mapping[str, Any]  # by what they are called in messages
    digest: str = ""

    def signed(self) -> Portable:
        """With a digest of the functions; one that cannot be sent is an error that names it."""
        for name, function in self.functions.items():
            check_sendable(name, function)
        return self._replace(digest=digest_functions(self.functions))

    def make(self) -> Any:
        """The driver; functions that are different here are an error."""
        if digest_functions(self.functions) != self.digest:
            name = next(iter(self.functions), "the problem")
            raise LolsError(f"{name} is not the same on this worker: bring its module up to date there")
        return self.kind(**self.arguments)


def check_sendable(name: str, value: Any) -> None:
    """Raise an error if something cannot be sent to other processes.

    >>> import threading
    >>> check_sendable("`loss` of the space", lambda lock=threading.Lock(): lock)
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: `loss` of the space cannot be sent to workers (cannot pickle '_thread.lock' object):
    it must not hold open files, locks or connections
    """
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:
        why = lines_of(error)[0]
        raise ConfigurationError(
            f"{name} cannot be sent to workers ({why}): it must not hold open files, locks or connections"
        ) from None
