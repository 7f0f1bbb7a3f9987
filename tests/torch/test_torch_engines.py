"""Neural policies in exact mode: workers on CPUs roll in and out with copies of the network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.engines import InProcess, Processes, Ray
from tests.engines.small_problems import Parts
from tests.torch.small_networks import make_policy, train


def weights(engine: Any, **options: Any) -> dict[str, np.ndarray]:
    """The weights after training."""
    policy = make_policy(**options)
    train(policy, engine=engine, passes=1)
    found: dict[str, np.ndarray] = policy.state()
    return found


@pytest.mark.parametrize("ahead", [False, True])
def test_any_number_of_workers_gives_the_same_network(ahead: bool) -> None:
    parts = weights(Parts(), ahead=ahead)
    found = weights(Processes(workers=2), ahead=ahead)
    assert all(np.array_equal(parts[name], found[name]) for name in parts)
    alone = weights(None, ahead=ahead)
    assert all(np.allclose(parts[name], alone[name], atol=1e-4) for name in parts)


@pytest.mark.ray
@pytest.mark.skipif(not find_spec("ray"), reason="needs Ray")
def test_workers_on_ray() -> None:
    parts, found = weights(Parts()), weights(Ray(workers=2))
    assert all(np.array_equal(parts[name], found[name]) for name in parts)


@pytest.mark.parametrize("kind", [lols.Tagger, lols.Parser])
def test_networks_are_not_averaged_even_if_workers_could_read_their_own_files(kind: Any, tmp_path: Path) -> None:
    files = [str(tmp_path / f"{k}.conllu") for k in range(2)]
    for path in files:
        Path(path).write_text("1\tgo\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\tup\t_\tADV\t_\t_\t1\tadvmod\t_\t_\n\n" * 9)
    with pytest.raises(lols.LolsError, match="sync='pass' averages weights of the linear learner: use sync='exact'"):
        kind(policy="neural", width=4, layers=1, engine=InProcess(sync="pass", shards=2)).fit_files(files)
