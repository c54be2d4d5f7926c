"""Semantic hashing with a stack of restricted Boltzmann machines, unrolled and fine-tuned.

Salakhutdinov and Hinton, "Semantic Hashing", SIGIR workshop 2007 and International Journal of
Approximate Reasoning 2009. docs/models/stacked_rbm.md maps its symbols to the names used here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from boltzhash.arguments import Constraints, Each, Integer, Number
from boltzhash.hashers.shared.features import Features
from boltzhash.hashers.shared.inference import Floats, linear
from boltzhash.hashers.shared.labels import Labels
from boltzhash.hashers.shared.settings import Recipe, with_changes
from boltzhash.hashers.shared.trained import TrainedHasher, enough_epochs
from boltzhash.hashers.shared.weights import Shapes

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Terms
    from boltzhash.training.pretraining import PretrainingRecord
    from boltzhash.training.rbm import RBM, Unrolled

PRETRAINING_EPOCHS, PRETRAINING_STEPS = 5, 200


def word_counts(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """A stand-in for counts: tf-idf, each row scaled to sum to its number of different words.

    Both have shape (n_documents, n_words).

    >>> word_counts(sparse.csr_matrix([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0]])).toarray()
    array([[1.5, 0. , 0.5],
           [0. , 0. , 0. ]])
    """
    counts = matrix.copy()
    lengths = np.diff(matrix.indptr)
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    sums[lengths == 0] = 1
    counts.data = matrix.data * np.repeat(lengths / sums, lengths)
    return counts


class StackedRBM(TrainedHasher):
    """Hash documents with a deep autoencoder that was pretrained as a stack of RBMs.

    The first machine models word counts, the others the hidden units below them. Each is trained with
    one step of contrastive divergence; then the stack is unrolled into an autoencoder and fine-tuned
    by back-propagation, with noise at the code units that makes them binary.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    hidden_units : sequence of int, default=(500, 500)
        Sizes of the layers between words and code.
    code_noise : float, default=4.0
        Standard deviation of the Gaussian noise added to the input of the code units while
        fine-tuning, drawn anew for every document and step.
    threshold : float, default=0.1
        A bit is on if the activity of its code unit, between 0 and 1, is above this.
    pretraining_epochs : int or None, default=None
        Epochs of each machine. None means 5, or more if that is fewer than 200 steps.
    pretraining_rate : float, default=0.01
        Learning rate of Adam in contrastive divergence.
    training : Training or None, default=None
        How long and how fast fine-tuning is, and where both are: 8 epochs, or more if that is fewer than
        300 steps.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    verbose : bool, default=False
        Show how far fine-tuning is: :mod:`boltzhash.progress`.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        The encoder; the decoder is not kept.
    pretraining_history_ : list of PretrainingRecord
        One for every epoch of every machine.
    history_ : list of EpochRecord
        One for every epoch of fine-tuning; there is no KL, so that is 0.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Salakhutdinov and Hinton (2009). Semantic Hashing. International Journal of Approximate Reasoning.

    Examples
    --------
    >>> from boltzhash import StackedRBM
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = StackedRBM(n_bits=16, hidden_units=(20, 20)).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    pretraining_history_: list[PretrainingRecord]

    USUAL_EPOCHS: ClassVar[int] = 8  # with twice as many both benchmark corpora were overfitted
    RECIPE: ClassVar[Recipe] = with_changes(TrainedHasher.RECIPE, training__least_steps=300)
    constraints: ClassVar[Constraints] = {
        "hidden_units": [Each(Integer(1))],
        "code_noise": [Number(at_least=0)],
        "threshold": [Number(above=0, below=1)],
        "pretraining_epochs": [Integer(1), None],
        "pretraining_rate": [Number(above=0)],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        hidden_units: tuple[int, ...] = (500, 500),
        code_noise: float = 4.0,
        threshold: float = 0.1,
        pretraining_epochs: int | None = None,
        pretraining_rate: float = 0.01,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.hidden_units = hidden_units
        self.code_noise = code_noise
        self.threshold = threshold
        self.pretraining_epochs = pretraining_epochs
        self.pretraining_rate = pretraining_rate

    def code_activities(self, X: Any) -> Floats:
        """The activity of each code unit of each document, between 0 and 1, without noise.

        ``X`` is that of :meth:`transform`; float64 (n_documents, n_bits).
        """
        return np.concatenate([expit(self._code_logits(rows)) for rows in self._blocks(X)])

    def _margins(self, matrix: sparse.csr_matrix) -> Floats:
        return self._code_logits(matrix) - float(logit(self.threshold))

    def _code_logits(self, matrix: sparse.csr_matrix) -> Floats:
        """The twin of ``Unrolled.code_logits`` in NumPy."""
        activities: Any = word_counts(matrix)
        for number in range(len(self.hidden_units) + 1):
            weight, bias = (self.weights_[f"{number}.{name}"] for name in ("weight", "bias"))
            logits = linear(activities, weight, bias)
            activities = expit(logits)
        return logits

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        features: Features | None,
        labels: Labels | None,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        """Pretrain, then fine-tune. A checkpoint keeps the latter; pretraining is repeated."""
        from boltzhash.training.batches import Documents
        from boltzhash.training.rbm import Unrolled

        counts = word_counts(matrix).astype(np.float32)
        seed = self._draw_seed()
        network = Unrolled(self._pretrained(counts, seed))
        self._train(
            network,
            partial(self._step, network),
            Documents(counts, counts),
            seed=seed,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            take=partial(self._take_weights, network),
        )

    def _pretrained(self, counts: sparse.csr_matrix, seed: int) -> list[RBM]:
        from boltzhash.training.loop import choose_device
        from boltzhash.training.pretraining import Pretraining, centre_code, pretrain_stack

        batch_size, device = self._training.batch_size, choose_device(self._training.device)
        epochs = self.pretraining_epochs or enough_epochs(
            counts.shape[0], batch_size, PRETRAINING_EPOCHS, PRETRAINING_STEPS
        )
        self.pretraining_history_ = []
        stack = pretrain_stack(
            counts,
            (*self.hidden_units, self.n_bits),
            Pretraining(epochs, batch_size, self.pretraining_rate, seed),
            device,
            self.pretraining_history_.append,
        )
        centre_code(stack, counts, batch_size, float(logit(self.threshold)))
        return stack

    def _step(self, network: Unrolled, batch: Batch) -> Terms:
        """Cross entropy of the words' shares in a document and their prediction from a noisy code."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.objectives import word_log_likelihood
        from boltzhash.training.rows import row_sums
        from boltzhash.training.tensors import standard_normal

        logits = network.code_logits(batch.inputs)
        noise = standard_normal(logits, batch.generator)
        code = (logits + self.code_noise * noise).sigmoid()
        reconstruction = word_log_likelihood(network.word_logits(code), batch.targets)
        n_words = row_sums(batch.targets)
        loss = -(reconstruction / n_words).mean()
        bits = logits > float(logit(self.threshold))
        return Terms(loss, reconstruction.mean(), loss.new_zeros(()), bits)

    def _take_weights(self, network: Unrolled) -> None:
        learned = network.encoder.state_dict()
        self._set_arrays({name: tensor.cpu().numpy() for name, tensor in learned.items()})

    def _shapes(self) -> Shapes:
        sizes = [self.n_features_in_, *self.hidden_units, self.n_bits]
        weights = {f"{layer}.weight": shape for layer, shape in enumerate(pairwise(sizes))}
        return {**weights, **{f"{layer}.bias": (n,) for layer, n in enumerate(sizes[1:])}}

    def _collapse_advice(self) -> str:
        return (
            f"Try a lower learning_rate (was {self._training.learning_rate:g}), less code_noise (was "
            f"{self.code_noise:g}), or more epochs (it took {self.history_[-1].epoch})"
        )
