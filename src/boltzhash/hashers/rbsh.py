"""RBSH: NASH with a ranking loss on weakly labelled triplets (Hansen et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from scipy import sparse

from boltzhash.arguments import check_number
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared.ranking import check_labeller, weak_triplets

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents
    from boltzhash.training.distributions import Bernoulli
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Tensor


class RBSH(NASH):
    """Independent bits, and codes that rank documents as a weak labeller does.

    A hinge is added to NASH's bound: of two documents, the one that self-taught hashing calls nearer
    should also be nearer in Hamming distance, by a margin of 1. The decoder's noise falls to 0.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    ranking : float, default=1.0
        Weight of the ranking loss.
    **training
        The arguments of :class:`NASH` and :class:`DeepHasher`.

    References
    ----------
    Hansen, Hansen, Simonsen, Alstrup and Lioma (2019). Unsupervised Neural Generative Semantic Hashing.
    SIGIR.

    Examples
    --------
    >>> from boltzhash import RBSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> RBSH(n_bits=16, epochs=5).fit(texts * 5).transform(["the moons of planets"]).shape
    (1, 2)
    """

    def __init__(
        self,
        n_bits: int = 64,
        *,
        ranking: float = 1.0,
        decoder_noise: tuple[float, float] = (1.0, 0.0),
        **training: Any,
    ) -> None:
        super().__init__(n_bits, decoder_noise=decoder_noise, **training)
        self.ranking = ranking

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings of the authors' code and, for texts, its preprocessing.

        Preprocessing: words of two or more letters or digits that occur in at least 3 documents and in
        at most 90 % of them, however many there are; no stop words. Training: two layers
        of 1,000 units, each word once as the target, tf-idf as it is, KL weight rising to .04,
        decoder noise falling from 1, dropout .1, batches of 40, Adam at 5e-4. What cannot be set this
        way is in docs/models/rbsh.md.
        """
        settings: dict[str, Any] = {
            "language": None,
            "token_pattern": r"\b\w\w+\b",
            "max_words": 1_000_000,
            "min_df": 3,
            "max_df": 0.9,
            "hidden_units": 1000,
            "target": "words",
            "input_length": None,
            "kl_weight": (0.0, 0.04),
            "kl_ramp": 1.0,
            "dropout": 0.1,
            "batch_size": 40,
            "learning_rate": 5e-4,
            "learning_rate_decay": "steps",
            "unigram_start": False,
        }
        return cls(n_bits, **{**settings, **changes})

    def _further(self, model: Autoencoder, posterior: Bernoulli, batch: Batch) -> Tensor | float:
        """The ranking loss of this batch."""
        from boltzhash.training.objectives import ranking_hinge

        nearer, farther = (self._codes_of(model, rows, batch) for rows in batch.companions)
        codes = posterior.sample(batch.generator)
        return self.ranking * ranking_hinge(codes, nearer, farther).mean()

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        return documents._replace(companions=weak_triplets(matrix))

    def _check_params(self) -> None:
        super()._check_params()
        check_labeller()
        check_number("ranking", self.ranking, at_least=0)
