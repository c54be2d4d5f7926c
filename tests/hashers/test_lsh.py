"""What LSH alone does: bits that differ as often as the angle says."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash import LSH
from boltzhash.codes import unpack
from boltzhash.errors import ModelError, TrainingError


@pytest.mark.parametrize("angle", [np.pi / 12, np.pi / 4, np.pi / 3, np.pi / 2])
def test_a_bit_differs_with_probability_angle_over_pi(angle: float) -> None:
    """4,096 independent bits: the share lies within four standard deviations of angle / π."""
    rows = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    bits = unpack(LSH(n_bits=4096).fit(rows).transform(rows))
    p = angle / np.pi
    assert abs((bits[0] != bits[1]).mean() - p) < 4 * np.sqrt(p * (1 - p) / 4096)


def test_the_length_of_a_document_does_not_count() -> None:
    rows = np.random.default_rng(0).uniform(size=(20, 5))
    hasher = LSH(n_bits=64).fit(rows)
    assert (hasher.transform(rows) == hasher.transform(rows * 7.3)).all()


def test_bits_are_the_sides_of_the_planes() -> None:
    rows = np.random.default_rng(0).uniform(size=(20, 5))
    hasher = LSH(n_bits=64).fit(rows)
    assert (unpack(hasher.transform(rows)) == (rows @ hasher.directions_ > 0)).all()


def test_one_word_has_no_angles() -> None:
    with pytest.raises(ValueError, match=r"at least 2 different words are needed.*n_features=1"):
        LSH().fit(np.array([[1.0], [2.0]]))


def test_documents_that_differ_in_length_alone_say_so() -> None:
    with pytest.raises(TrainingError, match="Their angles are too small"):
        LSH().fit(np.array([[1.0, 1.0], [2.0, 2.0]]))


@pytest.mark.parametrize("name", ["directions", "offsets"])
def test_damaged_weights_are_named(texts: list[str], name: str) -> None:
    hasher = LSH(n_bits=16).fit(texts)
    arrays = hasher._arrays()
    with pytest.raises(ModelError, match=f"weights '{name}' should have shape"):
        hasher._set_arrays({**arrays, name: arrays[name][:-1]})
    del arrays[name]
    with pytest.raises(ModelError, match=f"weights '{name}' should have shape .* got nothing"):
        hasher._set_arrays(arrays)
