"""MISH: codes that a multi-index search finds quickly (Hansen et al., 2021)."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import Constraints, Number
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared import ranking
from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from boltzhash.training.batches import Batch, Documents, RowNumbers, Terms
    from boltzhash.training.multi_index import Pairs
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Module, Tensor

NEIGHBOURS = 9  # of which one is drawn in each epoch
NEAREST = 100  # that a search is for; of few documents, no more than a tenth
SUBSTRING_BITS = 16  # but at least two substrings


class MISH(NASH):
    """Independent bits, and few codes that a multi-index search looks at in vain.

    The words of a document are read from its own code and from that of a near one. Two losses, on pairs
    of documents that each epoch picks by its codes, make a search in tables of substrings quick: codes
    that agree in a substring though they are far apart are driven apart there as well, and near ones
    that are many bits away are drawn closer.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8. Tables are for substrings of about 16 bits, at least two.
    pair_weight : float, default=1.0
        Weight of reading a document's words from its neighbour's code.
    false_positives : float, default=1.0
        Weight, α₁, of the similarity of substrings by which a search finds what is not near.
    far_neighbours : float, default=1.0
        Weight, α₂, of the distance of near documents that only a wide search finds.
    **shared
        The arguments of :class:`NASH` and :class:`DeepHasher`. ``objective.decoder_noise`` is the same
        for all documents.

    References
    ----------
    Hansen, Hansen, Simonsen, Alstrup and Lioma (2021). Unsupervised Multi-Index Semantic Hashing. WWW.

    Examples
    --------
    >>> from boltzhash import MISH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> MISH(n_bits=16).fit(texts * 5).transform(["the moons of planets"]).shape
    (1, 2)
    """

    constraints: ClassVar[Constraints] = {
        "pair_weight": [Number(at_least=0)],
        "false_positives": [Number(at_least=0)],
        "far_neighbours": [Number(at_least=0)],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        pair_weight: float = 1.0,
        false_positives: float = 1.0,
        far_neighbours: float = 1.0,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.pair_weight = pair_weight
        self.false_positives = false_positives
        self.far_neighbours = far_neighbours

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings of the authors' code, with both losses on.

        tf-idf as it is, each word once as the target, two layers of 1,000 units, dropout .2, no KL,
        noise before the decoder, Adam at 1e-3, 100 epochs of batches of 40. What cannot be set this way
        is in docs/models/mish.md.
        """
        published = {
            "network__hidden_units": 1000,
            "objective__kl_weight": (0.0, 0.0),
            "objective__decoder_noise": (0.5, 0.5),
            "training__batch_size": 40,
        }
        return cls(n_bits).set_params(**{**PUBLISHED_RECIPE, **published, **changes})

    def _heads(self) -> dict[str, int]:
        return {"location": self.n_bits}

    def _n_substrings(self) -> int:
        return max(2, self.n_bits // SUBSTRING_BITS)

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """The bounds of a document read from its own and its neighbour's code, and the two losses."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Bernoulli, FairBits
        from boltzhash.training.rows import stacked

        everyone = reduce(stacked, batch.companions, batch.inputs)
        logits = model.encoder(everyone, batch.generator)["location"]
        own, near, false, far = logits.chunk(4)
        noise, noise_near = self._noise(own, batch), self._noise(near, batch)
        estimate = partial(
            model.parts["gradient"], generator=batch.generator, progress=batch.progress
        )
        cost, s = estimate(own, lambda s: -self._log_likelihood(model, s + noise, batch))
        from_near, _ = estimate(
            near, lambda s: -self._decoded(model.decoder, s + noise_near, batch.targets)
        )
        kl, kl_near = (Bernoulli(each).kl_divergence(FairBits()) for each in (own, near))
        bounds = cost + self.pair_weight * from_near + self._beta(batch) * (kl + kl_near)
        loss = (bounds + self._search_cost(model, own, false, far, batch)).mean()
        reconstruction = self._of_words(model, -cost, s + noise, batch)
        return Terms(loss, reconstruction, kl.mean(), own > 0)

    def _search_cost(
        self, model: Autoencoder, own: Tensor, false: Tensor, far: Tensor, batch: Batch
    ) -> Tensor:
        """α₁ times what false positives, and α₂ times what far neighbours cost a search, per document.

        The code of the document itself stays where it is; the others' move.
        """
        from boltzhash.training.gradients import straight_through
        from boltzhash.training.multi_index import false_positive_similarity, far_dissimilarity

        assert batch.rows is not None
        half = own.new_full((), 0.5)
        anchor = (own > 0).to(own)
        pairs = model.parts["pairs"]
        substring, within = pairs.substring[batch.rows], pairs.within[batch.rows]
        n = self._n_substrings()
        other = straight_through(false.sigmoid(), half)
        in_vain = false_positive_similarity(anchor, other, substring, within, n)
        widening = far_dissimilarity(anchor, straight_through(far.sigmoid(), half), n)
        return self.false_positives * in_vain + self.far_neighbours * widening

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        """With one near document of each, by the weak labeller, drawn anew for every epoch."""
        nearest = ranking.weak_neighbours(matrix)[0][:, :NEIGHBOURS]
        itself = np.arange(len(nearest))

        def neighbour(rng: np.random.Generator) -> list[RowNumbers]:
            return [nearest[itself, rng.integers(nearest.shape[1], size=len(nearest))]]

        return documents._replace(companions=neighbour)

    def _train(
        self,
        network: Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        **rest: Any,
    ) -> None:
        """With two further companions, which every epoch picks by the codes it begins with."""
        from boltzhash.training.networks import Autoencoder

        assert isinstance(network, Autoencoder)
        neighbour = documents.companions
        assert neighbour is not None

        def companions(rng: np.random.Generator) -> list[RowNumbers]:
            near = neighbour(rng)
            pairs = self._pairs(network, documents, int(rng.integers(2**32)))
            kept = network.parts.setdefault("pairs", pairs)
            kept.substring.copy_(pairs.substring)  # recorded steps look for them where they were
            kept.within.copy_(pairs.within)
            return [*near, *(rows.cpu().numpy() for rows in (pairs.false_positive, pairs.far))]

        super()._train(network, step, documents._replace(companions=companions), **rest)

    def _pairs(self, model: Autoencoder, documents: Documents, seed: int) -> Pairs:
        """Who disturbs whose search, by the codes of the network as it is."""
        from boltzhash.training.loop import generator_for
        from boltzhash.training.multi_index import current_codes, troublesome_pairs

        codes = current_codes(model.encoder, documents.inputs)
        k = min(NEAREST, max(1, len(codes) // 10))
        generator = generator_for(seed, 0, codes.device)
        return troublesome_pairs(codes, self._n_substrings(), k, generator)

    def _check_params(self) -> None:
        super()._check_params()
        ranking.check_labeller()
