"""Neural policies: any PyTorch network as a policy, trained by learning to search.

This package is the only part of `lols` that imports PyTorch: `pip install lols[torch]`.
"""

from __future__ import annotations

from lols.errors import ConfigurationError

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ConfigurationError("neural policies need PyTorch: pip install 'lols[torch]'") from error

from lols.torch.batches import Bags, ExampleBatch, StateBatch, hashed_bags
from lols.torch.losses import LOSSES
from lols.torch.networks import FeatureNetwork, PointerNetwork
from lols.torch.policy import TorchPolicy
from lols.torch.schedules import warm_up_and_decay

__all__ = [
    "LOSSES",
    "Bags",
    "ExampleBatch",
    "FeatureNetwork",
    "PointerNetwork",
    "StateBatch",
    "TorchPolicy",
    "hashed_bags",
    "warm_up_and_decay",
]
