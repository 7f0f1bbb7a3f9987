"""The name under which 0.2 pickled models that go on learning, which is what every model does now."""

from lols.training.model import Model as OnlineModel

__all__ = ["OnlineModel"]
