"""BMSH: NASH with a Bernoulli-mixture prior (Dong et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from boltzhash.arguments import Constraints, Integer
from boltzhash.hashers.nash import NASH

if TYPE_CHECKING:
    from boltzhash.training.distributions import Bernoulli
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Generator, Tensor


class BMSH(NASH):
    """Independent bits given the document, and a prior that knows groups of documents.

    p(c) = π_c and p(s | c) = Π Bernoulli(s_i; σ(γ_ci)), all learned; the posterior is q(s | x) q(c | x),
    with a head of its own for the groups, so the KL has a closed form.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    n_groups : int, default=20
        Components of the prior.
    **shared
        The arguments of :class:`NASH` and :class:`DeepHasher`.

    References
    ----------
    Dong, Su, Shen and Chen (2019). Document Hashing with Mixture-Prior Generative Models. EMNLP.

    Examples
    --------
    >>> from boltzhash import BMSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> BMSH(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    constraints: ClassVar[Constraints] = {"n_groups": [Integer(1)]}

    def __init__(self, n_bits: int = 64, *, n_groups: int = 20, **shared: Any) -> None:
        super().__init__(n_bits, **shared)
        self.n_groups = n_groups

    def _heads(self) -> dict[str, int]:
        return {**super()._heads(), "groups": self.n_groups}

    def _divergence(
        self, model: Autoencoder, posterior: Bernoulli, outputs: dict[str, Tensor]
    ) -> Tensor:
        """KL(q(s | x) q(c | x) ‖ p(s, c))."""
        prior = model.parts["prior"]
        kl: Tensor = prior.kl_divergence(prior.divergences(posterior), outputs["groups"])
        return kl

    def _parts(self, generator: Generator) -> dict[str, Any]:
        from boltzhash.training.distributions import BernoulliMixturePrior

        prior = BernoulliMixturePrior(self.n_groups, self.n_bits, generator)
        return {**super()._parts(generator), "prior": prior}
