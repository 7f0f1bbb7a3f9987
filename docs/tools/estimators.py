"""A griffe extension: the documentation and the signature of estimators, as they are at run time.

The API pages are made from the source without importing it. But `lols.tasks.options.estimator` writes the Parameters
section of a class, and its constructor, when the class is defined. So these classes are imported. The rest is not:
mkdocstrings cannot inspect all of the package (`force_inspection`), because a `Task` computes attributes on demand.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import griffe

DECORATOR = "lols.tasks.options.estimator"


class Estimators(griffe.Extension):
    """Replaces docstring and constructor of the classes that are decorated with `estimator`."""

    def on_class(self, *, cls: griffe.Class, **_more: Any) -> None:
        """Called for each class of the package."""
        if cls.docstring is None or all(each.callable_path != DECORATOR for each in cls.decorators):
            return
        kind = getattr(importlib.import_module(cls.module.path), cls.name)
        cls.docstring.value = inspect.cleandoc(kind.__doc__)
        arguments = list(inspect.signature(kind.__init__).parameters.values())
        parameters = griffe.Parameters(*(parameter(each) for each in arguments))
        cls.set_member("__init__", griffe.Function("__init__", parameters=parameters, parent=cls))


def parameter(argument: inspect.Parameter) -> griffe.Parameter:
    """A parameter of a constructor in griffe's terms."""
    empty = inspect.Parameter.empty
    return griffe.Parameter(
        argument.name,
        annotation=None if argument.annotation is empty else str(argument.annotation),
        kind=griffe.ParameterKind(argument.kind.description),
        default=None if argument.default is empty else repr(argument.default),
    )
