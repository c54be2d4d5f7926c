"""RBSH: NASH with a ranking loss on weakly labelled triplets (Hansen et al., 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from scipy import sparse

from boltzhash.arguments import Constraints, Number
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared.ranking import check_labeller, weak_triplets
from boltzhash.hashers.shared.settings import Recipe, with_changes

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.distributions import Bernoulli
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Generator, Tensor


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
    word_importance : bool, default=False
        Whether a number is learned for each word by which its tf-idf and its column of the decoder are
        multiplied, as published.
    chosen_noise : bool, default=True
        Whether a document chooses how much of ``objective.decoder_noise`` its code gets, as in NASH.
        False gives all of it to every code, as published.
    **shared
        The arguments of :class:`NASH` and :class:`DeepHasher`.

    References
    ----------
    Hansen, Hansen, Simonsen, Alstrup and Lioma (2019). Unsupervised Neural Generative Semantic Hashing.
    SIGIR.

    Examples
    --------
    >>> from boltzhash import RBSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> RBSH(n_bits=16).fit(texts * 5).transform(["the moons of planets"]).shape
    (1, 2)
    """

    RECIPE: ClassVar[Recipe] = with_changes(NASH.RECIPE, objective__decoder_noise=(1.0, 0.0))
    constraints: ClassVar[Constraints] = {
        "ranking": [Number(at_least=0)],
        "word_importance": [bool],
        "chosen_noise": [bool],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        ranking: float = 1.0,
        word_importance: bool = False,
        chosen_noise: bool = True,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.ranking = ranking
        self.word_importance = word_importance
        self.chosen_noise = chosen_noise

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings of the authors' code and, for texts, its preprocessing.

        Preprocessing: words of two or more letters or digits that occur in at least 3 documents and in
        at most 90 % of them, however many there are; no stop words. Training: a learned importance of
        words, two layers of 1,000 units, each word once as the target, tf-idf as it is, dropout .1,
        batches of 40, Adam at 5e-4, a ranking weight of 1. The authors train for 350,000 steps, in which
        the KL weight is at .04 after 6,000 and the decoder's noise falls from 1 to .65; here both follow
        the same course over 100 epochs. What cannot be set this way is in docs/models/rbsh.md.
        """
        settings: dict[str, Any] = {
            "text__language": None,
            "text__token_pattern": r"\b\w\w+\b",
            "text__max_words": 1_000_000,
            "text__min_df": 3,
            "text__max_df": 0.9,
            "word_importance": True,
            "chosen_noise": False,
            "network__hidden_units": 1000,
            "network__input_length": None,
            "network__dropout": 0.1,
            "network__unigram_start": False,
            "objective__target": "words",
            "objective__kl_weight": (0.0, 0.04),
            "objective__kl_ramp": 0.02,
            "objective__decoder_noise": (1.0, 0.65),
            "training__epochs": 100,
            "training__batch_size": 40,
            "training__learning_rate": 5e-4,
            "training__learning_rate_decay": "steps",
        }
        return cls(n_bits).set_params(**{**settings, **changes})

    def _heads(self) -> dict[str, int]:
        heads = super()._heads()
        return heads if self.chosen_noise else {"location": heads["location"]}

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

        with WordImportance.scaled_once():  # three documents go through the same weights
            return super()._step(model, batch)

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
