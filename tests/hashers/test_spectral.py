"""What spectral hashing alone does: eigenfunctions worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash import SpectralHashing
from boltzhash.codes import unpack
from boltzhash.hashers.spectral import slowest_modes


def on_an_arc(low: float, high: float, n: int = 401) -> np.ndarray:
    """Documents of two words whose first principal coordinate is uniform on [low, high]."""
    x = np.linspace(low, high, n)
    centre = np.array([1.0, 1.0]) / np.sqrt(2)
    along = np.array([1.0, -1.0]) / np.sqrt(2)
    return np.outer(x, along) + np.outer(np.sqrt(1 - x**2), centre)


def test_one_uniform_direction_by_hand() -> None:
    """Bit k is the sign of cos(k π (x − a) / (b − a)): the line is cut at odd multiples of 1/2k."""
    rows = on_an_arc(-0.5, 0.5)
    hasher = SpectralHashing(8, n_directions=1).fit(rows)
    assert hasher.modes_.k.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert hasher.modes_.direction.tolist() == [0] * 8
    bits = unpack(hasher.transform(rows))
    from_low = np.arange(401) / 400
    if hasher.directions_[0, 0] < 0:  # the direction may point the other way
        from_low = 1 - from_low
    for k in range(1, 9):
        half_waves = from_low * k + 0.5
        inside = np.abs(half_waves - np.round(half_waves)) > 1e-6  # not on a cut itself
        expected = np.floor(half_waves) % 2 == 0
        assert (bits[inside, k - 1] == expected[inside]).all()


def test_modes_of_a_rectangle_by_hand() -> None:
    """Sides 3 and 1: ω/π = 1/3, 2/3, 1 (k = 3 of the long, then k = 1 of the short), 4/3, 5/3, 2, 2."""
    modes = slowest_modes(np.array([3.0, 1.0]), 8)
    omegas = modes.k / np.array([3.0, 1.0])[modes.direction]
    np.testing.assert_allclose(omegas, [1 / 3, 2 / 3, 1, 1, 4 / 3, 5 / 3, 2, 2])
    assert modes.direction.tolist() == [0, 0, 0, 1, 0, 0, 0, 1]
    assert modes.k.tolist() == [1, 2, 3, 1, 4, 5, 6, 2]


def test_modes_are_the_smallest_eigenvalues_of_all() -> None:
    ranges = np.random.default_rng(0).uniform(0.1, 1, size=20)
    modes = slowest_modes(ranges, 64)
    every = np.sort((np.arange(1, 200) * np.pi / ranges[:, None]).ravel())[:64]
    np.testing.assert_allclose(modes.k * np.pi / ranges[modes.direction], every)
    assert len(set(zip(modes.direction.tolist(), modes.k.tolist(), strict=True))) == 64


def test_eigenfunctions_smooth_on_the_uniform_distribution() -> None:
    """On a fine uniform line they are the slowest eigenvectors of the neighbour Laplacian."""
    n = 200
    x = (np.arange(n) + 0.5) / n
    laplacian = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    laplacian[0, 0] = laplacian[-1, -1] = 1
    vectors = np.linalg.eigh(laplacian)[1]
    modes = slowest_modes(np.array([1.0]), 5)
    for bit, k in enumerate(modes.k):
        wave = np.cos(k * np.pi * x)
        assert abs(vectors[:, bit + 1] @ wave) / np.linalg.norm(wave) == pytest.approx(1)


def test_more_bits_than_directions() -> None:
    rows = np.random.default_rng(0).uniform(size=(60, 3))
    hasher = SpectralHashing(64).fit(rows)
    assert set(hasher.modes_.direction) == {0, 1, 2}
    assert len(np.unique(hasher.transform(rows), axis=0)) > 50


def test_documents_that_differ_in_length_alone_say_so() -> None:
    with pytest.raises(ValueError, match="differ only in length"):
        SpectralHashing().fit(np.array([[1.0, 1.0], [2.0, 2.0]]))
