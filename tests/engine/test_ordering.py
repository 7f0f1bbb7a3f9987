"""Floating-point numbers read as integers of the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.engine.ordering import MOST_32, MOST_64, SIGN_32, SIGN_64, ordered
from lols.kernels.kernel import kernel

KINDS = [(np.float32, np.int32, SIGN_32, MOST_32), (np.float64, np.int64, SIGN_64, MOST_64)]


@kernel
def ordered_32(bits, out):
    for k in range(bits.size):
        out[k] = ordered(bits[k], SIGN_32, MOST_32)


@pytest.mark.parametrize(("real", "integer", "sign", "most"), KINDS, ids=["32 bits", "64 bits"])
@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=2))
def test_integers_compare_as_the_numbers_do_and_lead_back(numbers, real, integer, sign, most) -> None:
    bits = (np.array(numbers, real) + real(0.0)).view(integer)  # without -0.0
    integers = [ordered(b, sign, most) for b in bits]
    assert np.argsort(integers, kind="stable").tolist() == np.argsort(bits.view(real), kind="stable").tolist()
    assert [int(ordered(integer(i), sign, most)) for i in integers] == bits.tolist()


def test_compiled_code_gives_the_same() -> None:
    bits = np.array([-1.5, 0.0, 2.0, -np.inf, np.inf, 1e-40], np.float32).view(np.int32)
    out = np.zeros(bits.size, np.int32)
    ordered_32(bits, out)
    assert out.tolist() == [int(ordered(b, SIGN_32, MOST_32)) for b in bits]
