"""Bits, bytes and distances, against NumPy's own and hand-worked cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from boltzhash.codes import bit_balance, check_codes, distinct, hamming, pack, unpack

widths = st.integers(1, 40).map(lambda n: 8 * n)


@given(widths.flatmap(lambda w: hnp.arrays(np.bool_, st.tuples(st.integers(0, 5), st.just(w)))))
def test_pack_and_unpack_round_trip_at_any_width(bits: np.ndarray) -> None:
    packed = pack(bits)
    assert packed.shape == (len(bits), bits.shape[1] // 8)
    assert (unpack(packed) == bits).all()


def test_bit_zero_is_the_highest_of_byte_zero() -> None:
    bits = np.zeros((1, 16), dtype=bool)
    bits[0, [0, 15]] = True
    assert pack(bits).tolist() == [[0b10000000, 0b00000001]]


@given(st.data(), widths)
def test_hamming_counts_differing_bits(data: Any, width: int) -> None:
    one, other = (data.draw(hnp.arrays(np.bool_, (3, width))) for _ in range(2))
    expected = (one[:, None] != other[None]).sum(axis=2)
    assert (hamming(pack(one), pack(other)) == expected).all()


def test_hamming_of_nothing() -> None:
    codes = np.zeros((3, 1), dtype=np.uint8)
    assert hamming(codes[:0], codes).shape == (0, 3)
    assert hamming(codes, codes[:0]).shape == (3, 0)


@pytest.mark.parametrize(
    "bits", [np.zeros((2, 8), dtype=np.uint8), np.zeros(8, dtype=bool), np.zeros((2, 8))]
)
def test_pack_takes_bits_only(bits: Any) -> None:
    with pytest.raises(TypeError, match="bits must be a bool array"):
        pack(bits)


def test_pack_takes_whole_bytes_only() -> None:
    with pytest.raises(ValueError, match="multiple of 8 between 8 and 4096, got 12"):
        pack(np.zeros((1, 12), dtype=bool))


@pytest.mark.parametrize(
    "codes", [np.zeros((2, 8), dtype=bool), np.zeros((2, 8)), np.zeros(8, dtype=np.uint8), [[1]]]
)
def test_bits_are_never_mistaken_for_codes(codes: Any) -> None:
    with pytest.raises(TypeError, match="codes must be packed"):
        check_codes(codes)


def test_hamming_refuses_codes_of_two_models() -> None:
    with pytest.raises(ValueError, match="queries have 8 bits and codes 16"):
        hamming(np.zeros((1, 1), dtype=np.uint8), np.zeros((1, 2), dtype=np.uint8))


def test_distinct_and_balance_by_hand() -> None:
    bits = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=bool)
    padded = np.hstack([bits, np.zeros((4, 5), dtype=bool)])
    assert distinct(pack(padded)) == 3
    assert bit_balance(bits) == pytest.approx((0 + 1 + 0.5) / 3)
