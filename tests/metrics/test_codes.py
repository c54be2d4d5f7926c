"""Statistics of codes against hand-worked cases and NumPy's own correlation."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.codes import pack
from boltzhash.metrics import bit_correlations, code_statistics


def test_by_hand() -> None:
    """Bit 0 on in half, bit 1 in a quarter, the rest never: codes 00, 00, 10, 11."""
    bits = np.zeros((4, 8), dtype=bool)
    bits[2:, 0] = True
    bits[3, 1] = True
    found = code_statistics(pack(bits))
    assert found.balance == pytest.approx((1 + 0.5) / 8)
    assert found.distinct == 3
    assert found.entropy == pytest.approx(0.5 * 1 + 2 * 0.25 * 2)
    quarter = -(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75))
    assert found.bit_entropy == pytest.approx(1 + quarter)
    assert found.correlation == pytest.approx((0.25 - 0.5 * 0.25) / np.sqrt(0.25 * 0.1875))


def test_all_different_codes_have_the_entropy_of_their_number() -> None:
    found = code_statistics(np.arange(256, dtype=np.uint8)[:, None])
    assert (found.distinct, found.entropy, found.bit_entropy) == (256, 8.0, 8.0)
    assert (found.balance, found.correlation) == (1.0, pytest.approx(0, abs=1e-12))


def test_one_code_only() -> None:
    assert code_statistics(np.full((5, 2), 7, dtype=np.uint8)) == (0.0, 0.0, 1, 0.0, 0.0)


def test_correlations_are_numpys() -> None:
    bits = np.random.default_rng(0).random((200, 24)) < 0.3
    assert bit_correlations(bits) == pytest.approx(np.corrcoef(bits.T.astype(float)))


def test_a_bit_that_rounds_is_still_constant() -> None:
    """The mean of three ones may not be 1 in floats of other sizes; NaN says it never changes."""
    bits = np.ones((49, 8), dtype=bool)
    bits[0, 0] = False
    correlations = bit_correlations(bits)
    assert np.isnan(correlations[1:]).all()
    assert correlations[0, 0] == pytest.approx(1)


def test_no_codes() -> None:
    with pytest.raises(ValueError, match="codes must be those of at least one document, got none"):
        code_statistics(np.empty((0, 1), dtype=np.uint8))
