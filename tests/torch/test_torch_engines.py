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


def test_any_number_of_workers_gives_the_same_network() -> None:
    parts = weights(Parts())
    found = weights(Processes(workers=2))
    assert all(np.array_equal(parts[name], found[name]) for name in parts)
    alone = weights(None)
    assert all(np.allclose(parts[name], alone[name], atol=1e-4) for name in parts)


def test_workers_search_ahead_as_one_process_does() -> None:
    parts, alone, in_turn = weights(Parts(), ahead=True), weights(None, ahead=True), weights(Parts())
    assert any(name.startswith("before.") for name in parts) and parts.keys() == alone.keys()
    assert all(np.allclose(parts[name], alone[name], atol=1e-4) for name in parts)
    assert not all(np.array_equal(in_turn[name], parts[name]) for name in in_turn)


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
