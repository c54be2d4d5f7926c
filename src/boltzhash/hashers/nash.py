"""NASH: independent bits trained end to end (Shen et al., 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from boltzhash.arguments import Constraints
from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE, DeepHasher
from boltzhash.hashers.shared.inference import Floats, head, logistic_normal_mean
from boltzhash.hashers.shared.settings import ESTIMATORS

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Terms
    from boltzhash.training.distributions import Bernoulli
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Generator, Tensor


class NASH(DeepHasher):
    """Hash documents with a variational autoencoder whose bits are independent.

    Posterior: Bernoulli(σ(g(x))). Prior: fair bits, so the KL has a closed form. The decoder reads
    the code with Gaussian noise whose size depends on the document.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    gradient : str, default="straight-through"
        How the gradient passes through a sampled bit: a name in ``gradients.ESTIMATORS``.
    **shared
        The arguments of :class:`DeepHasher`. ``objective.decoder_noise`` is the largest deviation that a
        document can choose.

    References
    ----------
    Shen, Su, Chapfuwa, Wang, Wang, Carin and Henao (2018). NASH: Toward End-to-End Neural Architecture
    for Generative Semantic Hashing. ACL.

    Examples
    --------
    >>> from boltzhash import NASH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> NASH(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    constraints: ClassVar[Constraints] = {"gradient": ESTIMATORS}

    def __init__(
        self, n_bits: int = 64, *, gradient: str = "straight-through", **shared: Any
    ) -> None:
        super().__init__(n_bits, **shared)
        self.gradient = gradient

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The recipe that published codes share; with labels, NASH-S.

        Each word once as the target, tf-idf as it is, KL weight rising to .1, noise of at most 1 before
        the decoder, Adam at 1e-3, 100 epochs of batches of 100. NASH-S adds the cross-entropy of labels
        that are read from the code. What cannot be set this way is in docs/models/nash.md.
        """
        published = {"objective__kl_weight": (0.0, 0.1), "objective__decoder_noise": (1.0, 1.0)}
        return cls(n_bits).set_params(**{**PUBLISHED_RECIPE, **published, **changes})

    def bit_probabilities(self, X: Any = None, *, features: Any = None) -> Floats:
        """P(bit on) of each document: σ(g(x)), float64 (n_documents, n_bits).

        ``X`` and ``features`` are those of :meth:`transform`.
        """
        blocks = self._blocks(X, features)
        logits = [head(self._hidden(rows), self.weights_, "location") for rows in blocks]
        return np.concatenate([logistic_normal_mean(part, np.zeros_like(part)) for part in logits])

    def _heads(self) -> dict[str, int]:
        return {"location": self.n_bits, "noise": self.n_bits}

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """ELBO with one sample of s and the KL in closed form."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Bernoulli

        outputs = model.encoder(batch.inputs, batch.generator)
        posterior = Bernoulli(outputs["location"])
        noise = self._noise(posterior.logits, batch)
        if "noise" in outputs:
            noise = outputs["noise"].sigmoid() * noise
        # Estimators get what is minimised, sign included: RELAX learns from it as well.
        cost, s = model.parts["gradient"](
            posterior.logits,
            lambda s: -self._log_likelihood(model, s + noise, batch),
            batch.generator,
            batch.progress,
        )
        kl = self._divergence(model, posterior, outputs)
        loss = (cost + self._beta(batch) * kl).mean() + self._further(model, posterior, batch)
        reconstruction = self._of_words(model, -cost, s + noise, batch)
        return Terms(loss, reconstruction, kl.mean(), posterior.logits > 0)

    def _divergence(
        self, model: Autoencoder, posterior: Bernoulli, outputs: dict[str, Tensor]
    ) -> Tensor:
        """KL(q(s | x) ‖ p(s)), p fair bits."""
        from boltzhash.training.distributions import FairBits

        return posterior.kl_divergence(FairBits())

    def _further(self, model: Autoencoder, posterior: Bernoulli, batch: Batch) -> Tensor | float:
        """What a variant adds to the loss."""
        return 0.0

    def _codes_of(self, model: Autoencoder, rows: Rows, batch: Batch) -> Tensor:
        """Sampled codes of other documents."""
        from boltzhash.training.distributions import Bernoulli

        return Bernoulli(model.encoder(rows, batch.generator)["location"]).sample(batch.generator)

    def _parts(self, generator: Generator) -> dict[str, Any]:
        from boltzhash.training.gradients import make_estimator

        return {"gradient": make_estimator(self.gradient, self.n_bits, generator)}
