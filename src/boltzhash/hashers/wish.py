"""WISH: bits that stand for topic vectors (Ye et al., 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from boltzhash.arguments import Constraints, Integer, Number
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE
from boltzhash.hashers.shared.settings import Recipe, with_changes

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch
    from boltzhash.training.distributions import Bernoulli
    from boltzhash.training.networks import Autoencoder, TopicDecoder
    from boltzhash.training.tensors import Generator, Tensor


class WISH(NASH):
    """Independent bits, each with a topic vector; words are read from the sum of those that are on.

    p(w | s) = softmax((sᵀT) W + b)_w, T one vector per bit, and ‖TTᵀ − I‖² is added to the loss, so
    that each bit stands for a topic of its own. Made for codes of few bits.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    topic_dimensions : int, default=100
        Length of a topic vector.
    topic_weight : float, default=1.0
        Weight of ‖TTᵀ − I‖².
    **shared
        The arguments of :class:`NASH` and :class:`DeepHasher`; the decoder reads the code without
        noise unless ``objective.decoder_noise`` says otherwise.

    References
    ----------
    Ye, Manotumruksa and Yilmaz (2020). Unsupervised Few-Bits Semantic Hashing with Implicit Topics
    Modeling. Findings of EMNLP.

    Examples
    --------
    >>> from boltzhash import WISH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> WISH(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    RECIPE: ClassVar[Recipe] = with_changes(NASH.RECIPE, objective__decoder_noise=(0.0, 0.0))
    constraints: ClassVar[Constraints] = {
        "topic_dimensions": [Integer(1)],
        "topic_weight": [Number(at_least=0)],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        topic_dimensions: int = 100,
        topic_weight: float = 1.0,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.topic_dimensions = topic_dimensions
        self.topic_weight = topic_weight

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings of the authors' code.

        tf-idf of length 1 as input and, in proportion, as target, two layers of 1,000 units, dropout
        .2, KL weight rising from 0, Adam at 1e-3, batches of 100. What cannot be set this way is in
        docs/models/wish.md.
        """
        published = {
            "objective__target": "tfidf",
            "objective__kl_weight": (0.0, 0.5),
            "network__input_length": 1.0,
            "network__hidden_units": 1000,
            "topic_weight": 10.0,
        }
        return cls(n_bits).set_params(**{**PUBLISHED_RECIPE, **published, **changes})

    def _word_decoder(self, n_words: int, generator: Generator) -> TopicDecoder:
        from boltzhash.training.networks import TopicDecoder

        return TopicDecoder(self.n_bits, self.topic_dimensions, n_words, generator)

    def _further(self, model: Autoencoder, posterior: Bernoulli, batch: Batch) -> Tensor | float:
        """What keeps topic vectors apart."""
        from boltzhash.training.networks import TopicDecoder
        from boltzhash.training.objectives import topic_overlap

        assert isinstance(model.decoder, TopicDecoder)
        return self.topic_weight * topic_overlap(model.decoder.topics)
