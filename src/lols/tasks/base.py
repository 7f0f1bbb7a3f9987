"""What all estimators are: parameters with scikit-learn's habits, model files and pickles, and verbs on files.

scikit-learn itself is not needed: importing it would take longer than tagging a file. What it asks an estimator for
(`clone`, `check_is_fitted`, searches over parameters) works as usual. Nothing here takes time to import.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, NoReturn, Self

from lols.contract.sharing import OwnLock, exclusive, snapshot, without_lock
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError
from lols.tasks.options import values_of
from lols.tasks.verbs import Evaluation, Recalibration, Say, VerbReport, Verbs, silent

if TYPE_CHECKING:
    import numpy as np

    from lols.tasks.case import Case
    from lols.training.calibration import Judged
    from lols.training.model import Model

Variants = Mapping[str, Mapping[str, Any]]  # parameters by the name of what they are for

NOTES = ("path_", "training_facts_", "table_", "mended_")  # attributes that no model file keeps


class BaseEstimator:
    """Parameters are the arguments of the constructor, which does nothing but keep them.

    Threads may share an estimator: see `lols.contract.sharing`.

    >>> class Guess(BaseEstimator):
    ...     def __init__(self, *, value=0, other=None):
    ...         self.value, self.other = value, other
    >>> Guess(other=Guess(value=1)).set_params(value=2, other__value=3)
    Guess(other=Guess(value=3), value=2)
    """

    VERBS: ClassVar[Verbs]
    HELP: ClassVar[str]  # of `lols train NAME`
    DEV: ClassVar[str] = "A labelled file on which the best pass is chosen."
    WITHOUT: ClassVar[tuple[str, ...]] = ()  # options that `lols train NAME` does not have after all
    PARTS: ClassVar[tuple[type, ...]] = ()  # further dataclasses whose options it has: see `from_typed`
    TRAINING: ClassVar[type | None] = None  # a dataclass of further options of `fit_files`
    STORED: ClassVar[tuple[str, ...]] = ()  # what `lols inspect` gives of the task in a model file as it is
    AGAIN: ClassVar[tuple[str, ...]] = ()  # options that may change when training goes on
    OF_DATA: ClassVar[tuple[str, ...]] = ()  # parameters about data, on which no kernel depends
    WARMUP: ClassVar[Variants] = {"training and prediction": {}}  # the steps of `lols warmup`
    WARMUP_ALL: ClassVar[Variants] = {}  # its further steps with --all

    path_: Any = None  # the model file that it was read from
    training_facts_: dict[str, Any]  # what was in the files of training, and how long reading them took
    _lock = OwnLock()

    # --- parameters ---

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """The names of the parameters, sorted, and their default values."""
        parameters = inspect.signature(cls.__init__).parameters
        return {name: parameters[name].default for name in sorted(parameters) if name != "self"}

    @classmethod
    def from_typed(cls, typed: Mapping[str, Any]) -> Self:
        """The estimator with the options that were typed on a command line; other values are ignored."""
        return cls(**values_of(cls, typed))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; where one has parameters itself, these too, as `name__parameter`, unless `deep` is False.

        Parameters
        ----------
        deep
            Whether parameters of parameters are given, too.

        """
        made: dict[str, Any] = {}
        for name in self._defaults():
            value = made[name] = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                made |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return made

    @exclusive
    def set_params(self, **params: Any) -> Self:
        """Change parameters, those of a parameter as `name__parameter`.

        Parameters
        ----------
        **params
            The parameters to change, by name.

        """
        names = list(self._defaults())
        nested: dict[str, dict[str, Any]] = {}
        for given, value in params.items():
            name, _, inner = given.partition("__")
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {names!r}.")
            if inner:
                nested.setdefault(name, {})[inner] = value
            else:
                setattr(self, name, value)
        for name, inside in nested.items():
            getattr(self, name).set_params(**inside)
        return self

    def _changed(self, name: str) -> bool:
        """Whether an option has another value than its default."""
        return repr(getattr(self, name)) != repr(self._defaults()[name])

    def __repr__(self) -> str:
        changed = {name: getattr(self, name) for name in self._defaults() if self._changed(name)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's diagram, where it is installed."""
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            return {"text/plain": repr(self)}
        return {"text/plain": repr(self), "text/html": estimator_html_repr(self)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "task_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator as Theirs

        return Theirs.__sklearn_tags__(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(type(self).__name__)

    # --- what was learned ---

    @property
    def _fitted(self) -> Model:
        """The trained model."""
        raise NotImplementedError

    def models(self) -> tuple[Model, ...]:
        """The models that predict."""
        return (self._fitted,)

    def _settle(self) -> None:
        """Make a model of what was learned since."""
        if self.__sklearn_is_fitted__():
            _ = self._fitted

    def as_it_is(self) -> Self:
        """A shallow copy that later changes leave as it is."""
        return snapshot(self)

    def check_calibrated(self) -> None:
        """Raise an error that says what to do if confidence is unknown."""
        for model in self.models():
            if model.calibration is None:
                from lols.training.calibration import not_calibrated

                raise not_calibrated(self.named)

    def _recalibrate(self, judged: Mapping[str, Judged]) -> Recalibration:
        """Fit the confidence of all models anew, or of none."""
        from lols.training.calibration import refitted

        models = self.models()
        fits = {
            name: refitted(each, model.calibration) for (name, each), model in zip(judged.items(), models, strict=True)
        }
        for model, fit in zip(models, fits.values(), strict=True):
            model.calibration = fit.calibration
        return Recalibration(fits)

    # --- model files and copies ---

    def contents(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of the model file."""
        raise NotImplementedError

    @classmethod
    def from_file(
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], *, threads: Threads = None
    ) -> Self:
        """The estimator that a file's header and arrays describe."""
        raise NotImplementedError

    @exclusive
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file: weights, settings and what the task needs; nothing in it is ever executed.

        Parameters
        ----------
        path
            Where to write; the file is whole or not there.

        """
        from lols.io.model_file import write_tensors

        write_tensors(path, "model", *self.contents())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: Threads = None) -> Self:
        """Read a model file.

        Parameters
        ----------
        path
            A model file.
        threads
            How many threads predictions use; None for as many as help.

        """
        from lols.io.model_file import read_task

        loaded = cls.from_file(path, *read_task(path, cls.VERBS.name), threads=threads)
        loaded.path_ = os.fspath(path)
        return loaded

    @exclusive
    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the parameters, and what was learned as the content of a model file, which is data only."""
        if not self.__sklearn_is_fitted__():
            return without_lock(self)
        from lols.io.model_file import to_bytes

        state: dict[str, Any] = {name: vars(self)[name] for name in (*self._defaults(), *NOTES) if name in vars(self)}
        return state | {"file": to_bytes("model", *self.contents()), "report": self._fitted.report}

    def __setstate__(self, state: dict[str, Any]) -> None:
        content, report = state.pop("file", None), state.pop("report", None)
        if content is not None:
            from lols.io.model_file import PICKLED, from_bytes

            loaded = self.from_file(PICKLED, *from_bytes(content, "model"), threads=state["threads"])
            loaded._fitted.report = report
            vars(self).update(vars(loaded))
        vars(self).update(state)

    @exclusive
    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy with everything, so that it can go on learning where this one can."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        vars(made).update(copy.deepcopy(without_lock(self), memo))
        return made

    @classmethod
    def inspect_file(
        cls, path: Any, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], **options: Any
    ) -> VerbReport:
        """Say what is in a model file, given its header and arrays."""
        from lols.tasks.inspect import describe_file

        values = describe_file(path, header, tensors, cls.STORED)
        asked = cls.VERBS.options_of("inspect")(**options)
        return cls.from_file(path, header, tensors).inspected(values, asked)

    def inspected(self, values: dict[str, Any], asked: Any) -> VerbReport:
        """A report on the values that are in the model file."""
        from lols.tasks.inspect import Inspection

        return Inspection(values, self.VERBS)

    # --- verbs on files ---

    @property
    def named(self) -> str:
        """What reports call the model: its file, if it was read from one."""
        return str(self.path_ or f"this {self.VERBS.name}")

    @property
    def file_columns(self) -> Any:
        """Where things are in files like those of training."""
        raise NotImplementedError

    def asked(self, verb: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Split the options of a verb: where things are in the file, as in training unless given, and the others."""
        names = {each.name for each in dataclasses.fields(self.VERBS.files)}
        files = {name: value for name, value in given.items() if name in names}
        rest = {name: value for name, value in given.items() if name not in names}
        return self.file_columns.changed(**files), self.VERBS.options_of(verb)(**rest)

    def check_plot(self, plot: str | None) -> None:
        """Raise an error, before the work, if a picture is wanted that cannot be drawn."""
        if plot is not None:
            from lols.plots import check_plot

            check_plot(plot)
            self.check_calibrated()

    @exclusive
    def fit_files(
        self,
        paths: Sequence[str] | str,
        *,
        dev: str | None = None,
        checkpoint: Any = None,
        resume: bool = False,
        say: Say = silent,
        **layout: Any,
    ) -> Self:
        """Train on labelled files; `layout` says where things are in them, as the options of the command do.

        Further options are those of the dataclass `TRAINING`, if there is one.

        Parameters
        ----------
        paths
            One file or several.
        dev
            A labelled file that is not learned from, to keep the best pass and to calibrate with.
        checkpoint
            A file to which the training is saved as it goes.
        resume
            Whether to continue from the checkpoint, if there is one.
        say
            Called with a line for each thing that is being done.
        **layout
            Where things are in the files, as the options of `lols train` say it.

        """
        further = [] if self.TRAINING is None else [each.name for each in dataclasses.fields(self.TRAINING)]
        how = {"checkpoint": checkpoint, "resume": resume} | {n: layout.pop(n) for n in further if n in layout}
        return self.fit_read(as_paths(paths), dev, self.VERBS.files(**layout), say, **how)

    def fit_read(self, paths: list[str], dev: str | None, layout: Any, say: Say, **fitting: Any) -> Self:
        """Read files, train on them, and note what was in them."""
        raise NotImplementedError

    def go_on_with(self, options: Mapping[str, Any]) -> None:
        """Let `fit` go on with what was learned, with some other options."""
        self.set_params(warm_start=True, **options)

    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a file with predictions to `out`, and return facts about it.

        `output` is what `out` is called, and `say` is given remarks for the user.
        """
        raise NotImplementedError

    def evaluate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Evaluation:
        """Compare predictions with a labelled file."""
        raise NotImplementedError

    @exclusive
    def calibrate_file(self, path: str, *, threads: Threads = None, **options: Any) -> Recalibration:
        """Fit confidence to a labelled file that training did not see: a sample of the data that are to come.

        Predictions stay as they are.

        Parameters
        ----------
        path
            A labelled file.
        threads
            How many threads share the work; None for as many as help.
        **options
            Where things are in the file, as the options of the command say it.

        """
        from lols.training.calibration import UnfitSample

        for model in self.models():
            model.threads = threads
        try:
            return self._recalibrate(self.judged_file(path, **options))
        except UnfitSample as error:
            raise UnfitSample(f"{path}: {error}") from None

    def judged_file(self, path: str, **options: Any) -> Mapping[str, Judged]:
        """Which decisions on a labelled file are right: for each of `models`, by what it decides on."""
        raise NotImplementedError

    def explain_file(self, path: str, number: int = 1, **options: Any) -> VerbReport:
        """Show how one example of a file, counted from 1, is decided."""
        self.refuse("there is no single search to explain")

    def case(self, data: Any, reference: str | None = None, *, limit: int | None = None, seed: int = 0) -> Case:
        """A case for a certificate: inputs and truths, as for `fit`, of which at most `limit` are drawn."""
        self.refuse("certify one policy at a time, such as a tagger's or a parser's")

    def case_of_file(self, path: str, *, limit: int | None = None, seed: int = 0, **options: Any) -> Case:
        """A case for a certificate from a labelled file."""
        self.refuse("certify one policy at a time, such as a tagger's or a parser's")

    def refuse(self, why: str) -> NoReturn:
        """Say that this estimator cannot do something."""
        what = type(self).__name__ if self.path_ is None else f"{self.path_} is {self.VERBS.described}"
        raise ConfigurationError(f"{what}: {why}")

    # --- compilation ---

    def warm_up(self) -> Self:
        """Compile ahead, or load from the cache, what the first call would wait for; returns the estimator itself.

        Before training this is what `fit` and `predict` need with these parameters, and after it what `predict` needs.
        Nothing is learned or forgotten.
        """
        if self.__sklearn_is_fitted__():
            self.prepare()
            return self
        twin, known = unfitted(self), self._defaults()
        twin.set_params(**{name: known[name] for name in self.OF_DATA})
        twin.set_params(**{name: value for name, value in (("passes", 1), ("progress", False)) if name in known})
        twin.rehearse()
        return self

    @classmethod
    def warmup_steps(cls, everything: bool) -> Iterator[str]:
        """The steps of `lols warmup`: gives the name of each, then does it."""
        for name, options in {**cls.WARMUP, **(cls.WARMUP_ALL if everything else {})}.items():
            yield f"{cls.VERBS.name}, {name}"
            cls(**options).warm_up()

    def prepare(self) -> None:
        """Compile what prediction needs, or load it from the cache, by predicting something tiny."""

    def rehearse(self) -> None:
        """Compile what training and prediction with these options need, by doing both with something tiny."""


def as_paths(paths: Sequence[str] | str) -> list[str]:
    """One path or several, as a list."""
    if isinstance(paths, str | os.PathLike):
        paths = [os.fspath(paths)]
    return [path if isinstance(path, str) else str(path) for path in paths]  # a path may be of a class of its own


def unfitted(estimator: Any) -> Any:
    """A copy with the same parameters that has learned nothing, like scikit-learn's `clone`."""
    params = estimator.get_params(deep=False)
    return type(estimator)(
        **{
            name: unfitted(value)
            if hasattr(value, "get_params") and not isinstance(value, type)
            else copy.deepcopy(value)
            for name, value in params.items()
        }
    )


def not_fitted(what: str) -> Exception:
    """The error that scikit-learn knows for estimators that are not trained yet; without it, one like it."""
    message = f"this {what} is not trained yet: call fit first"
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotFitted(message)
    made: Exception = NotFittedError(message)
    return made


class NotFitted(LolsError, AttributeError):
    """What `not_fitted` raises without scikit-learn."""
