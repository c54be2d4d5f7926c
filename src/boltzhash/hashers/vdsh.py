"""VDSH: Gaussian latents, cut at their medians (Chaidaroon and Fang, 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE, DeepHasher
from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.inference import Floats, head
from boltzhash.hashers.shared.settings import Recipe, with_changes
from boltzhash.hashers.shared.weights import check_shapes
from boltzhash.storage.folders import Arrays

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Terms
    from boltzhash.training.distributions import Gaussian
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Tensor


class VDSH(DeepHasher):
    """Hash documents with a variational autoencoder of continuous latents, one per bit.

    Posterior: N(μ(x), diag(σ(x)²)). Prior: N(0, I). A bit says whether the mean of its latent is above
    the median of the training documents, so every bit is on for half of them.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    **shared
        The arguments of :class:`DeepHasher`. The KL weight stays 1 (lower ones gave worse codes);
        ``objective.decoder_noise`` is not used, since the latents are noisy themselves.

    References
    ----------
    Chaidaroon and Fang (2017). Variational Deep Semantic Hashing for Text Documents. SIGIR.

    Examples
    --------
    >>> from boltzhash import VDSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> VDSH(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    RECIPE: ClassVar[Recipe] = with_changes(DeepHasher.RECIPE, objective__kl_weight=(1.0, 1.0))

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The recipe that published codes share; with labels, VDSH-S.

        Each word once as the target, tf-idf as it is, KL weight rising to 1, Adam at 1e-3, 100 epochs of
        batches of 100. VDSH-S adds log p(y | z) = Σ_l log Bernoulli(y_l; σ(zᵀG + a)_l), of weight 1 and
        linear as in the authors' code. What cannot be set this way is in docs/models/vdsh.md.
        """
        published = {
            "objective__kl_weight": (0.0, 1.0),
            "objective__label_likelihood": "sigmoid",
        }
        return cls(n_bits).set_params(**{**PUBLISHED_RECIPE, **published, **changes})

    def _heads(self) -> dict[str, int]:
        return {"location": self.n_bits, "deviation": self.n_bits}

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """ELBO with one sample of z and the KL in closed form."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Gaussian

        outputs = model.encoder(batch.inputs, batch.generator)
        posterior = Gaussian.from_outputs(outputs["location"], outputs["deviation"])
        z = posterior.sample(batch.generator)
        likelihood = self._log_likelihood(model, z, batch)
        kl = self._divergence(model, posterior, outputs)
        loss = -(likelihood - self._beta(batch) * kl).mean()
        reconstruction = self._of_words(model, likelihood, z, batch)
        above = posterior.location > posterior.location.median(dim=0).values
        return Terms(loss, reconstruction, kl.mean(), above)

    def _divergence(
        self, model: Autoencoder, posterior: Gaussian, outputs: dict[str, Tensor]
    ) -> Tensor:
        """KL(q(z | x) ‖ N(0, I))."""
        from boltzhash.training.distributions import Gaussian

        zeros = posterior.location.new_zeros(self.n_bits)
        return posterior.kl_divergence(Gaussian(zeros, zeros + 1))

    def _margins(self, rows: DocumentRows) -> Floats:
        """μ minus its training median."""
        means = head(self._hidden(rows), self.weights_, "location")
        return np.asarray(means - self.weights_["medians"])

    def _finish(self, rows: DocumentRows) -> None:
        """The medians of the training means."""
        blocks = [rows[i : i + 1024] for i in range(0, rows.shape[0], 1024)]
        means = [head(self._hidden(block), self.weights_, "location") for block in blocks]
        self.weights_["medians"] = np.median(np.concatenate(means), axis=0)

    def _set_arrays(self, arrays: Arrays) -> None:
        super()._set_arrays(arrays)
        if "medians" in arrays:  # not yet while it trains
            check_shapes(arrays, {"medians": (self.n_bits,)})
