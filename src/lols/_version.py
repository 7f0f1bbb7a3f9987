"""The version: modules import it from here, because the package itself imports them."""

__version__ = "0.3.0"
