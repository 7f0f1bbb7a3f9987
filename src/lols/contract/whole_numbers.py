"""Options that are numbers: checked before anything is counted or allocated by them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from lols.errors import ConfigurationError, shown

MOST = (1 << 31) - 1  # of most options: no array or loop needs more
MOST_THREADS = 1024
SEEDS = (-(1 << 63), (1 << 64) - 1)
DIGITS = 18  # fit into 64 bits


def check_whole(name: str, value: Any, least: int = 1, most: int = MOST, otherwise: str = "") -> None:
    """Raise an error if an option is not a whole number from `least` to `most`; `otherwise` says what else it may be.

    >>> check_whole("beam", 10**400)
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: beam is a number of about 400 digits; it must be at most 2,147,483,647
    """
    if not isinstance(value, Integral):
        raise ConfigurationError(f"{name} is {shown(value)}; it must be a whole number{otherwise}")
    number = int(value)
    if number < least:
        raise ConfigurationError(f"{name} is {_shown(number)}; it must be at least {least}{otherwise}")
    if number > most:
        raise ConfigurationError(f"{name} is {_shown(number)}; it must be at most {most:,}{otherwise}")


def check_number(name: str, value: Any) -> None:
    """Raise an error if an option is neither a number nor None."""
    if value is not None and not isinstance(value, Real):
        raise ConfigurationError(f"{name} is {shown(value)}; it must be a number")


def check_seed(value: Any) -> None:
    """Raise an error if a seed is not a whole number of 64 bits."""
    check_whole("seed", value, *SEEDS)


def number_in(text: str) -> int:
    """The whole number that a text of digits stands for, or one of the same sign that is too large for any use.

    >>> number_in("-12"), number_in("9" * 5000) > MOST
    (-12, True)
    """
    digits = text.lstrip("+-").lstrip("0")
    return int(text) if len(digits) <= DIGITS else -(10**DIGITS) if text.startswith("-") else 10**DIGITS


def _shown(value: int) -> str:
    """A number, unless it is so long that it fills the line."""
    if abs(value) < 10**DIGITS:
        return str(value)
    return f"a number of about {round(value.bit_length() * 0.30103)} digits"
