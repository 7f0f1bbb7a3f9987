"""Without PyTorch there is nothing to test here; with it, one thread does, since networks are small."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]

if find_spec("torch"):
    import torch

    torch.set_num_threads(1)
