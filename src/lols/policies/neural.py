"""A network as a policy: the one that taggers and parsers have ready, or one of the user's."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from lols.engine.drivers.adapted import Adapted, adapted
from lols.errors import ConfigurationError
from lols.policies.own import Own
from lols.policies.policy import Given


@dataclass(kw_only=True, eq=False, repr=False)
class Neural(Given, Own):
    """A neural policy: a network of PyTorch gives scores to actions, and the best legal one is taken.

    Parameters
    ----------
    network
        For `lols.train`, a module that a `lols.torch.TorchPolicy` can have. For `lols.Tagger` and `lols.Parser`, a
        class or a function that makes one: it is called with the keyword arguments of `lols.torch.sentences.TagNetwork`
        or `ArcNetwork`, which are the networks without it.
    width
        The width of the encoder of sentences, in each direction.
    layers
        Its layers.
    dropout
        The share of its units that are left out in learning.
    vectors
        A file of word vectors that the network of a tagger or a parser reads sentences with.
    encoder
        A folder with an encoder of Hugging Face, likewise.
    device
        Where it computes: `"cpu"`, `"cuda"`, or `"auto"` for a GPU if there is one.
    precision
        `"bfloat16"` computes in mixed precision.
    steps
        Steps of the optimiser for each batch of examples; by default as many as suit the data of a tagger or a parser,
        and one in `lols.train`.
    rate
        The rate of Adam; by default one that suits.

    Examples
    --------
    >>> from lols import Tagger
    >>> tagger = Tagger(policy=Neural(width=100))
    >>> tagger.set_params(policy__layers=2)
    Tagger(policy=Neural(width=100, layers=2))

    """

    KIND: ClassVar[str] = "neural"

    network: Any = None
    width: int = 400
    layers: int = 3
    dropout: float = 0.33
    vectors: str | None = None
    encoder: str | None = None
    device: str = "auto"
    precision: str = "float32"
    steps: int | None = None
    rate: float | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not the default."""
        values = self.get_params()
        return {each.name: values[each.name] for each in fields(self) if values[each.name] != each.default}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def own(self) -> Adapted:
        """The network as a policy of `lols.train`."""
        if self.network is None:
            raise ConfigurationError("Neural without a network is for taggers and parsers: give network=, a module")
        for name in ("width", "layers", "dropout", "vectors", "encoder"):
            if name in self.given:
                raise ConfigurationError(f"{name} has no effect: the network is given as it is; leave it out")
        from lols.torch.policy import TorchPolicy
        from lols.torch.schedules import adam

        steps, optimizer = 1 if self.steps is None else self.steps, None if self.rate is None else adam(self.rate)
        how: Any = {"device": self.device, "precision": self.precision, "steps": steps, "optimizer": optimizer}
        return adapted(TorchPolicy(self.network, **how))


Neural.SETTINGS = Neural.OPTIONS = tuple(each.name for each in fields(Neural) if each.name != "network")
