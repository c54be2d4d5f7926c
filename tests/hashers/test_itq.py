"""What ITQ alone does: a rotation that stays one and loses less each turn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import RandomState

from boltzhash import ITQ
from boltzhash.codes import unpack
from boltzhash.hashers.itq import quantise
from boltzhash.hashers.shared.linear import orthonormal_rows


@pytest.mark.parametrize("d", [3, 8])
def test_rotation_stays_orthogonal_and_the_loss_never_rises(d: int) -> None:
    """Also with fewer directions than bits, where the rows of R are orthonormal."""
    V = np.random.default_rng(0).normal(size=(200, d))
    R = orthonormal_rows(d, 8, RandomState(0))
    rotation, losses = quantise(V, R, 30)
    assert len(losses) == 31
    assert (np.diff(losses) <= 1e-12).all()
    assert losses[-1] < losses[0] - 0.01
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(d), atol=1e-12)
    signs = np.where(V @ rotation > 0, 1, -1)
    assert losses[-1] == pytest.approx(np.square(signs - V @ rotation).sum() / 200)


def test_a_rotated_cube_is_found_again() -> None:
    """Points on the corners of a rotated cube: the best rotation turns it back and loses nothing."""
    corners = np.array([[x, y] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
    c, s = np.cos(0.6), np.sin(0.6)
    turned = corners @ np.array([[c, s], [-s, c]])
    rotation, losses = quantise(turned, np.eye(2), 20)
    assert losses[0] > 0.1
    assert losses[-1] == pytest.approx(0)
    np.testing.assert_allclose(np.abs(turned @ rotation), 1, atol=1e-12)


@pytest.mark.parametrize("n_bits", [8, 32])  # fewer and more than the 12 words
def test_code_is_the_sign_of_rotated_centred_unit_rows(n_bits: int) -> None:
    """The folded inference path against the steps of the method, one by one."""
    rows = np.random.default_rng(0).uniform(size=(50, 12))
    hasher = ITQ(n_bits).fit(rows)
    directions = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True))[2][:n_bits]
    rotation = directions @ hasher.directions_
    latent = rows @ directions.T
    latent /= np.linalg.norm(latent, axis=1, keepdims=True)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(len(directions)), atol=1e-9)
    expected = (latent - latent.mean(axis=0)) @ rotation > 0
    assert (unpack(hasher.transform(rows)) == expected).all()


def test_iterations_lower_the_loss(texts: list[str]) -> None:
    assert len(ITQ(16, n_iterations=0).fit(texts).losses_) == 1
    losses = ITQ(16).fit(texts).losses_
    assert len(losses) == 51
    assert losses[-1] < losses[0]
