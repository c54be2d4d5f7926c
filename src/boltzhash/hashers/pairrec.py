"""PairRec: a document is also reconstructed from the code of a neighbour (Hansen et al., 2020)."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import Constraints, Integer, Number
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared import ranking

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, RowNumbers, Terms
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Generator, Tensor


class PairRec(NASH):
    """Independent bits, and documents that can also be read off the codes of their neighbours.

    Every epoch a document is paired with one of its neighbours, which a weak labeller finds:
    self-taught hashing. One decoder reconstructs the document from its own code and from that of the
    other, so near documents get codes that say the same.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    neighbours : int, default=25
        How many of the nearest documents by the labeller's codes a document may be paired with: at most
        100, of few documents no more than a tenth; 0 for no pairs.
    pair_weight : float, default=1.0
        Weight of the reconstruction from the neighbour's code.
    word_importance : bool, default=False
        Whether a number is learned for each word by which its tf-idf and its column of the decoder are
        multiplied, as published.
    **shared
        The arguments of :class:`NASH` and :class:`DeepHasher`. All codes get the same
        ``objective.decoder_noise``.

    References
    ----------
    Hansen, Hansen, Simonsen, Alstrup and Lioma (2020). Unsupervised Semantic Hashing with Pairwise
    Reconstruction. SIGIR.

    Examples
    --------
    >>> from boltzhash import PairRec
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> PairRec(n_bits=16).fit(texts * 5).transform(["the moons of planets"]).shape
    (1, 2)
    """

    constraints: ClassVar[Constraints] = {
        "neighbours": [Integer(0, ranking.CANDIDATES)],
        "pair_weight": [Number(at_least=0)],
        "word_importance": [bool],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        neighbours: int = 25,
        pair_weight: float = 1.0,
        word_importance: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.neighbours = neighbours
        self.pair_weight = pair_weight
        self.word_importance = word_importance

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings with which the authors' code starts if it is told nothing else.

        25 neighbours, a learned importance of words, two layers of 1,000 units, each word once as the
        target, tf-idf as it is, no KL, dropout .2, batches of 40, Adam at 1e-3. The authors train for up
        to 700,000 steps, in which the decoder's noise falls from 1 to .3; here it takes the same course
        over 100 epochs, and the decoder starts at the frequencies of words: from 0 it uses the bits to
        learn these, and all documents get the same. What cannot be set this way is in
        docs/models/pairrec.md.
        """
        settings: dict[str, Any] = {
            "word_importance": True,
            "network__hidden_units": 1000,
            "network__input_length": None,
            "network__dropout": 0.2,
            "objective__target": "words",
            "objective__kl_weight": (0.0, 0.0),
            "objective__decoder_noise": (1.0, 0.3),
            "training__epochs": 100,
            "training__batch_size": 40,
            "training__learning_rate": 1e-3,
            "training__learning_rate_decay": "steps",
        }
        return cls(n_bits).set_params(**{**settings, **changes})

    def _heads(self) -> dict[str, int]:
        return {"location": self.n_bits}

    def _build(
        self, n_words: int, generator: Generator, n_inputs: int | None = None, n_labels: int = 0
    ) -> Autoencoder:
        from boltzhash.training.networks import WordImportance

        model = super()._build(n_words, generator, n_inputs, n_labels)
        if self.word_importance:
            WordImportance.in_model(model, generator, reads_words=self.feature_scaling_ is None)
        return model

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        from boltzhash.training.networks import WordImportance

        with WordImportance.scaled_once():  # both codes are decoded by the same weights
            return self._both(model, batch)

    def _both(self, model: Autoencoder, batch: Batch) -> Terms:
        """The bounds on log p(x) by the document's own code and by its neighbour's, one sample each."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Bernoulli, FairBits
        from boltzhash.training.rows import stacked

        rows = reduce(stacked, batch.companions, batch.inputs)
        logits = model.encoder(rows, batch.generator)["location"]
        own, *beside = logits.chunk(1 + len(batch.companions))
        kl = Bernoulli(own).kl_divergence(FairBits())
        cost, noisy_code = self._cost(model, own, batch)
        loss = (cost + self._beta(batch) * kl).mean()
        for location in beside:
            of_pair, _ = self._cost(model, location, batch)
            divergence = Bernoulli(location).kl_divergence(FairBits())
            loss = loss + self.pair_weight * (of_pair + self._beta(batch) * divergence).mean()
        reconstruction = self._of_words(model, -cost, noisy_code, batch)
        return Terms(loss, reconstruction, kl.mean(), own > 0)

    def _cost(self, model: Autoencoder, location: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """−log p(x | s) of the batch's documents from codes with these logits, and the noisy codes."""
        noise = self._noise(location, batch)
        cost, s = model.parts["gradient"](
            location,
            lambda s: -self._log_likelihood(model, s + noise, batch),
            batch.generator,
            batch.progress,
        )
        return cost, s + noise

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        """Every epoch one neighbour of each document."""
        n = matrix.shape[0]
        k = min(self.neighbours, n // 10)
        if k == 0:
            return documents
        found, _ = ranking.weak_neighbours(matrix)
        near = found[:, :k]

        def draw(rng: np.random.Generator) -> list[RowNumbers]:
            return [near[np.arange(n), rng.integers(near.shape[1], size=n)]]

        return documents._replace(companions=draw)

    def _check_params(self) -> None:
        super()._check_params()
        ranking.check_labeller()
