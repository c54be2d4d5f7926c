"""AMMI: codes that tell much about documents, made so by an adversary (Stratos and Wiseman, 2020)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import expit

from boltzhash.arguments import Constraints, Integer, Number
from boltzhash.hashers.shared.features import Features
from boltzhash.hashers.shared.inference import Floats, linear
from boltzhash.hashers.shared.labels import Labels
from boltzhash.hashers.shared.settings import Recipe, with_changes
from boltzhash.hashers.shared.trained import TrainedHasher
from boltzhash.hashers.shared.weights import Shapes
from boltzhash.text.tfidf import unit_rows

if TYPE_CHECKING:
    from boltzhash.training.adversary import Contest
    from boltzhash.training.batches import Batch, Terms

HIGHEST_ORDER = 8  # its tables double with every order


class AMMI(TrainedHasher):
    """Hash documents so that the code shares much information with the document, without a decoder.

    Bits are independent given the document, p(z | x) = Π Bernoulli(z_i; σ(xᵀW + b)_i), and training
    minimises H(Z | X) − λ H(Z): a code should be certain of each document, and vary over documents. H(Z)
    would take a sum over all codes. Its place takes the cross entropy with q, an adversary who learns to
    predict a bit from those before it, and so makes bits expensive that repeat others.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    entropy_weight : float, default=2.0
        λ. At 1 the loss is minus the mutual information.
    order : int, default=3
        r, the number of bits before it that q predicts a bit from, at most 8.
    adversary_steps : int, default=4
        How often q is improved before each step of the network.
    adversary_rate : float, default=0.01
        Learning rate of Adam for q, which starts anew for each step of the network.
    initial_range : float, default=0.1
        W starts between minus this and this; b at 0.
    training : Training or None, default=None
        How long, how fast and where: 40 epochs, or more if that is fewer than 1,000 steps.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    verbose : bool, default=False
        Show how far a fit is: :mod:`boltzhash.progress`.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        W and b; the adversary is not kept.
    history_ : list of EpochRecord
        One for every epoch. ``reconstruction`` is the cross entropy less H(Z | X), what the adversary
        lets pass for mutual information; there is no KL, so that is 0.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Stratos and Wiseman (2020). Learning Discrete Structured Representations by Adversarially Maximizing
    Mutual Information. ICML.

    Examples
    --------
    >>> from boltzhash import AMMI
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> AMMI(n_bits=16).fit(texts).transform(["the moons of planets"]).shape
    (1, 2)
    """

    USUAL_EPOCHS: ClassVar[int] = 40
    RECIPE: ClassVar[Recipe] = with_changes(
        TrainedHasher.RECIPE,
        training__least_steps=1000,
        training__batch_size=64,
        training__learning_rate_decay="steps",
    )
    constraints: ClassVar[Constraints] = {
        "entropy_weight": [Number(at_least=0)],
        "order": [Integer(0, HIGHEST_ORDER)],
        "adversary_steps": [Integer(1)],
        "adversary_rate": [Number(above=0)],
        "initial_range": [Number(above=0)],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        entropy_weight: float = 2.0,
        order: int = 3,
        adversary_steps: int = 4,
        adversary_rate: float = 0.01,
        initial_range: float = 0.1,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.entropy_weight = entropy_weight
        self.order = order
        self.adversary_steps = adversary_steps
        self.adversary_rate = adversary_rate
        self.initial_range = initial_range

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """One setting out of those that the authors found for each corpus and length.

        λ = 2, r = 3, four steps of the adversary, W within ±.1, Adam at .01, 40 epochs of batches of 16:
        that of Reuters at 16 bits. What cannot be set this way is in docs/models/ammi.md.
        """
        published = {"training__batch_size": 16, "training__epochs": 40}
        return cls(n_bits).set_params(**{**published, **changes})

    def bit_probabilities(self, X: Any) -> Floats:
        """P(bit on) of each document: σ(xᵀW + b), float64 (n_documents, n_bits).

        ``X`` is that of :meth:`transform`.
        """
        return np.concatenate([expit(self._margins(rows)) for rows in self._blocks(X)])

    def _margins(self, matrix: sparse.csr_matrix) -> Floats:
        return linear(unit_rows(matrix), self.weights_["weight"], self.weights_["bias"])

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        features: Features | None,
        labels: Labels | None,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        from boltzhash.training.adversary import Contest
        from boltzhash.training.batches import Documents
        from boltzhash.training.loop import generator_for

        rows = unit_rows(matrix).astype(np.float32)
        seed = self._draw_seed()
        sizes = (rows.shape[1], self.n_bits, self.order)
        contest = Contest(*sizes, self.initial_range, generator_for(seed, 0))
        self._train(
            contest,
            partial(self._step, contest),
            Documents(rows, rows),
            seed=seed,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            take=partial(self._take_weights, contest),
        )

    def _step(self, contest: Contest, batch: Batch) -> Terms:
        """The adversary's steps, then H(Z | X) − λ H(p, q), with q as it is then."""
        from boltzhash.training.adversary import mean_window_probabilities
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Bernoulli

        posterior = Bernoulli(contest.encoder(batch.inputs))
        windows = mean_window_probabilities(posterior.mean, self.order)
        contest.adversary.follow(windows, self.adversary_rate, self.adversary_steps)
        conditional = posterior.entropy().mean()
        marginal = contest.adversary.cross_entropy(windows)
        loss = conditional - self.entropy_weight * marginal
        information = (marginal - conditional).detach()
        return Terms(loss, information, loss.new_zeros(()), posterior.logits > 0)

    def _take_weights(self, contest: Contest) -> None:
        learned = contest.encoder.state_dict()
        self._set_arrays({name: tensor.cpu().numpy() for name, tensor in learned.items()})

    def _shapes(self) -> Shapes:
        return {"weight": (self.n_features_in_, self.n_bits), "bias": (self.n_bits,)}

    def _collapse_advice(self) -> str:
        return (
            f"Try a higher entropy_weight (was {self.entropy_weight:g}), a lower learning_rate (was "
            f"{self._training.learning_rate:g}), or more epochs (it took {self.history_[-1].epoch})"
        )
