"""GMSH: VDSH with a Gaussian-mixture prior (Dong et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from boltzhash.arguments import Constraints, Integer
from boltzhash.hashers.vdsh import VDSH

if TYPE_CHECKING:
    from boltzhash.training.distributions import Gaussian
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Generator, Tensor


class GMSH(VDSH):
    """Gaussian latents, and a prior that knows groups of documents.

    p(c) = π_c and p(z | c) = N(z; m_c, diag(σ_c²)), all learned; the posterior is q(z | x) q(c | x).

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    n_groups : int, default=20
        Components of the prior.
    **shared
        The arguments of :class:`DeepHasher`.

    References
    ----------
    Dong, Su, Shen and Chen (2019). Document Hashing with Mixture-Prior Generative Models. EMNLP.

    Examples
    --------
    >>> from boltzhash import GMSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> GMSH(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    constraints: ClassVar[Constraints] = {"n_groups": [Integer(1)]}

    def __init__(self, n_bits: int = 64, *, n_groups: int = 20, **shared: Any) -> None:
        super().__init__(n_bits, **shared)
        self.n_groups = n_groups

    def _heads(self) -> dict[str, int]:
        return {**super()._heads(), "groups": self.n_groups}

    def _divergence(
        self, model: Autoencoder, posterior: Gaussian, outputs: dict[str, Tensor]
    ) -> Tensor:
        """KL(q(z | x) q(c | x) ‖ p(z, c))."""
        prior = model.parts["prior"]
        kl: Tensor = prior.kl_divergence(prior.divergences(posterior), outputs["groups"])
        return kl

    def _parts(self, generator: Generator) -> dict[str, Any]:
        from boltzhash.training.distributions import GaussianMixturePrior

        return {"prior": GaussianMixturePrior(self.n_groups, self.n_bits, generator)}
