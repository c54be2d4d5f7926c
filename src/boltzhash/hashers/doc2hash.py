"""Doc2hash: independent bits through the Gumbel-softmax relaxation (Zhang and Zhu, 2019)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared.settings import Recipe, with_changes


class Doc2hash(NASH):
    """NASH's model with another gradient: discrete bits relaxed by Gumbel-softmax.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    gradient : str, default="gumbel-softmax"
        How the gradient passes through a sampled bit: a name in ``gradients.ESTIMATORS``.
    **shared
        The arguments of :class:`DeepHasher`; the decoder reads the code without noise unless
        ``objective.decoder_noise`` says otherwise.

    References
    ----------
    Zhang and Zhu (2019). Doc2hash: Learning Discrete Latent Variables for Documents Retrieval. NAACL.

    Examples
    --------
    >>> from boltzhash import Doc2hash
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> Doc2hash(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    RECIPE: ClassVar[Recipe] = with_changes(NASH.RECIPE, objective__decoder_noise=(0.0, 0.0))

    def __init__(
        self, n_bits: int = 64, *, gradient: str = "gumbel-softmax", **shared: Any
    ) -> None:
        super().__init__(n_bits, gradient=gradient, **shared)

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """NASH's recipe without noise before the decoder."""
        return super().as_published(n_bits, **{"objective__decoder_noise": (0.0, 0.0), **changes})
