"""What the deep hashers share: network, decoder, training, explanations, weights on disk."""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import Integer, check
from boltzhash.errors import TrainingError
from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.estimator import check_is_fitted
from boltzhash.hashers.shared.explanation import BitWords, words_of_bits
from boltzhash.hashers.shared.features import Features, FeatureScaling, feature_blocks
from boltzhash.hashers.shared.inference import Floats, head, linear
from boltzhash.hashers.shared.labels import Labelling, Labels, guessed_shares, held_out_agreement
from boltzhash.hashers.shared.settings import (
    TARGET_POWERS,
    Network,
    Objective,
    Recipe,
    with_changes,
)
from boltzhash.hashers.shared.trained import TrainedHasher, enough_epochs
from boltzhash.hashers.shared.weights import Shapes
from boltzhash.storage.folders import Arrays
from boltzhash.text.tfidf import unit_rows

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.networks import Autoencoder, Linear, TopicDecoder, WordDecoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Generator, Tensor

# How long a fit is, if nobody says: so many epochs, within these bounds (docs/large_corpora.md).
MINIMUM_STEPS = 1000
FEWEST_STEPS, DOCUMENTS_A_STEP = 250, 4  # of a corpus too small for so many
MOST_STEPS = 5000
MOST_DOCUMENTS = 100_000  # more teach nothing that a sample of so many does not
LABEL_WEIGHT = 10.0  # of labels that words tell without fail
DEFAULT_LEARNING_RATE = 5e-3

# What the published codes of variational hashers have in common.
PUBLISHED_RECIPE: dict[str, Any] = {
    "objective__target": "words",
    "objective__kl_ramp": 1.0,
    "objective__label_weight": 1.0,
    "objective__label_guesses": False,
    "network__input_length": None,
    "network__unigram_start": False,
    "network__dropout": 0.2,
    "training__epochs": 100,
    "training__batch_size": 100,
    "training__learning_rate": 1e-3,
    "training__learning_rate_decay": "steps",
}

NOT_TOLD_BY_WORDS = (
    "labels are not used: words do not tell those that were held out better than chance would; "
    "objective__label_weight=… teaches them all the same"
)


logger = logging.getLogger("boltzhash")


class DeepHasher(TrainedHasher):
    """A variational autoencoder over words: tf-idf or features → posterior over codes → words.

    A subclass says which parameters its posterior has (``_heads``), and what one step of training
    minimises (``_step``), composed from the parts in ``distributions``, ``gradients`` and
    ``objectives``. The head "location" decides the bits.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    network : Network or None, default=None
        The inference network, and how it starts.
    objective : Objective or None, default=None
        What is maximised.
    training : Training or None, default=None
        How long, how fast and where.
    output : {"codes", "bits"}, default="codes"
        What ``transform`` gives.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    verbose : bool, default=False
        Show how far a fit is: :mod:`boltzhash.progress`.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        The inference network, the decoder and whatever else was learned.
    history_ : list of EpochRecord
        Reconstruction and KL in nats per document, distinct codes and bit balance, one record per epoch.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    feature_scaling_ : FeatureScaling or None
        How features are centred and scaled, None when fitted without.
    fitted_on_ : FittedOn
        What drift is measured by: how many documents, how many unknown words to expect, the mean of each
        bit.
    labelling_ : Labelling or None
        How many documents had how many labels in the fit, and how well words tell them: 0 if they were
        not used. None when fitted without. Not saved.
    n_features_in_ : int
        Number of words.
    """

    takes_features: ClassVar[bool] = True
    takes_labels: ClassVar[bool] = True
    weight_beside_words: ClassVar[float] = 0.3

    labelling_: Labelling | None  # None without labels
    _input_length: float | None  # of this fit
    _alpha: float  # the weight of labels in this fit

    USUAL_EPOCHS: ClassVar[int] = 25
    RECIPE: ClassVar[Recipe] = {
        **with_changes(TrainedHasher.RECIPE, training__learning_rate=DEFAULT_LEARNING_RATE),
        "network": Network(hidden_units=500, dropout=0.2, input_length=16.0, unigram_start=True),
        "objective": Objective(
            target="tfidf",
            kl_weight=(1.0, 0.1),
            kl_ramp=0.5,
            decoder_noise=(0.5, 0.5),
            label_weight=None,
            label_likelihood="softmax",
            label_guesses=True,
        ),
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        network: Network | None = None,
        objective: Objective | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.network = network
        self.objective = objective

    @property
    def _network(self) -> Network:
        return self._group("network")  # type: ignore[no-any-return]

    @property
    def _objective(self) -> Objective:
        return self._group("objective")  # type: ignore[no-any-return]

    @abstractmethod
    def _heads(self) -> dict[str, int]:
        """Name and size of each output of the inference network."""

    @abstractmethod
    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """The terms of one batch; ``loss`` is minimised."""

    def _n_networks(self) -> int:
        """How many inference networks there are; each makes an equal part of the code."""
        return 1

    def _parts(self, generator: Generator) -> dict[str, Any]:
        """What the step uses besides network and decoder: a prior, an estimator. Modules are trained."""
        return {}

    def _finish(self, rows: DocumentRows) -> None:
        """What remains to be learned from the training documents once the weights are there."""
        return

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        """The documents, and others that go with each, if a method compares them."""
        return documents

    def _noise(self, like: Tensor, batch: Batch) -> Tensor:
        """The noise added to a code before the decoder: drawn once, however often f is evaluated."""
        from boltzhash.training.tensors import linear_ramp, standard_normal

        noise = standard_normal(like, batch.generator)
        return linear_ramp(self._objective.decoder_noise, batch.progress) * noise

    def _log_likelihood(self, model: Autoencoder, noisy_code: Tensor, batch: Batch) -> Tensor:
        """log p(x | code), the reconstruction, plus α log p(y | code) of documents with labels."""
        words = self._decoded(model.decoder, noisy_code, batch.targets)
        return words + self._label_log_likelihood(model, noisy_code, batch)

    def _label_log_likelihood(
        self, model: Autoencoder, noisy_code: Tensor, batch: Batch
    ) -> Tensor | float:
        """α log p(y | code), 0 of documents without labels.

        y is a label drawn from the document's ("softmax"), or which labels it has ("sigmoid").
        """
        from boltzhash.training.objectives import bernoulli_label_log_likelihood

        if batch.labels is None:
            return 0.0
        decoder = model.parts["labels"]
        if self._objective.label_likelihood == "softmax":
            return self._alpha * self._decoded(decoder, noisy_code, batch.labels)
        return self._alpha * bernoulli_label_log_likelihood(decoder(noisy_code), batch.labels)

    def _of_words(
        self, model: Autoencoder, likelihood: Tensor, noisy_code: Tensor, batch: Batch
    ) -> Tensor:
        """The mean of log p(x | code) alone, which is what records show, from that with labels.

        Gumbel-softmax has the likelihood of a relaxed code: there it is only near.
        """
        of_labels = self._label_log_likelihood(model, noisy_code.detach(), batch)
        return (likelihood.detach() - of_labels).detach().mean()

    def _decoded(self, decoder: Linear | TopicDecoder, noisy_code: Tensor, target: Rows) -> Tensor:
        """The log likelihood of words, or of labels, under a decoder."""
        from boltzhash.training.objectives import decoded_log_likelihood

        return decoded_log_likelihood(noisy_code, decoder.weight, decoder.bias, target)

    def _beta(self, batch: Batch) -> Tensor | float:
        from boltzhash.training.tensors import linear_ramp

        own = self._objective
        so_far = batch.progress if own.kl_ramp == 1 else batch.progress / own.kl_ramp
        return linear_ramp(own.kl_weight, so_far)

    def explain(self, n_words: int = 10) -> list[BitWords]:
        """The words that push each bit up and down, from the decoder.

        The strength of a word is ∂p(w | s) / ∂s_i at a code of halves over √p(w | s): how much the bit
        changes the word's frequency, in units of the noise of counting it. The bare weights would
        list the rarest words, which are the least certain. Words of a matrix are named by column.
        """
        check_is_fitted(self)
        check("n_words", n_words, Integer(1))
        words = (
            self.tfidf_.words_
            if self.tfidf_ is not None
            else [f"column {j}" for j in range(self.n_features_in_)]
        )
        decoder = (self.weights_["decoder.weight"], self.weights_["decoder.bias"])
        return words_of_bits(*decoder, words, n_words)

    def _margins(self, rows: DocumentRows) -> Floats:
        """The location μ: above 0 the probability of the bit is above one half."""
        return head(self._hidden(rows), self.weights_, "location")

    def _hidden(self, rows: DocumentRows) -> DocumentRows:
        """What the heads read: the last layer, or the document itself if there are none."""
        hidden, weights = self._network_input(rows), self.weights_
        for layer in ("hidden1", "hidden2") if "hidden1.weight" in weights else ():
            hidden = linear(
                hidden, weights[f"{layer}.weight"], weights[f"{layer}.bias"], rectified=True
            )
        return hidden

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        features: Features | None,
        labels: Labels | None,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        from boltzhash.training.batches import Documents
        from boltzhash.training.loop import generator_for

        rows: DocumentRows = matrix
        self._input_length = self._network.input_length
        if features is not None:
            rows = features
            self.feature_scaling_ = FeatureScaling.learn(rows, self._network.input_length)
        inputs = self._training_input(rows)
        targets = self._decoder_target(matrix).astype(np.float32)
        seed = self._draw_seed()
        usable = self._usable(labels, rows, seed)
        n_labels = 0 if usable is None else usable.shape[1]
        model = self._build(matrix.shape[1], generator_for(seed, 0), inputs.shape[1], n_labels)
        if self._network.unigram_start:
            model.decoder.start_at_frequencies(np.asarray(targets.sum(axis=0)).ravel())

        def take() -> None:
            self._take_weights(model)
            self._finish(rows)

        self._train(
            model,
            lambda batch: self._step(model, batch),
            self._documents(Documents(inputs, targets, labels=usable), matrix, seed),
            seed=seed,
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            take=take,
        )
        self._check_learned(targets)

    def _build(
        self,
        n_words: int,
        generator: Generator,
        n_inputs: int | None = None,
        n_labels: int = 0,
    ) -> Autoencoder:
        """Network and decoders; the network reads words unless ``n_inputs`` says otherwise."""
        from boltzhash.training.networks import Autoencoder, InferenceNetwork, Linear

        encoder = InferenceNetwork(
            n_inputs or n_words,
            self._network.hidden_units,
            self._heads(),
            self._network.dropout,
            generator,
            self._n_networks(),
        )
        decoder = self._word_decoder(n_words, generator)
        parts = self._parts(generator)
        if n_labels:
            parts["labels"] = Linear(self.n_bits, n_labels, generator)
        return Autoencoder(encoder, decoder, parts)

    def _word_decoder(self, n_words: int, generator: Generator) -> WordDecoder | TopicDecoder:
        """What reads words from a code."""
        from boltzhash.training.networks import WordDecoder

        return WordDecoder(self.n_bits, n_words, generator)

    def _usable(
        self, labels: Labels | None, rows: DocumentRows, seed: int
    ) -> sparse.csr_matrix | None:
        """What is taught of labels; None if nothing is."""
        self.labelling_, self._alpha = None, 0.0
        if labels is None:
            return None
        random = np.random.RandomState(seed)
        agreement = held_out_agreement(rows, labels.shares, random)
        self.labelling_ = Labelling(int(labels.known.sum()), len(labels.names), agreement)
        own = self._objective
        if own.label_weight is None and agreement == 0:
            logger.warning(NOT_TOLD_BY_WORDS)
        self._alpha = LABEL_WEIGHT * agreement if own.label_weight is None else own.label_weight
        if self._alpha == 0:
            return None
        if not own.label_guesses:
            return labels.shares
        return sparse.csr_matrix(labels.shares + guessed_shares(rows, labels.shares, random))

    def _take_weights(self, model: Autoencoder) -> None:
        learned = {
            **model.encoder.arrays(),
            "decoder.weight": model.decoder.weight,
            "decoder.bias": model.decoder.bias,
            **model.learned.state_dict(prefix="parts."),
        }
        self._set_arrays(
            {name: np.ascontiguousarray(part.detach().cpu()) for name, part in learned.items()}
        )

    def _keep_arrays(self, arrays: Arrays) -> None:
        super()._keep_arrays(arrays)
        self._input_length = self._network.input_length

    def _network_input(self, rows: DocumentRows) -> DocumentRows:
        if self.feature_scaling_ is not None:
            return self.feature_scaling_(rows)
        length = self._input_length
        return rows if length is None else unit_rows(rows) * length

    def _training_input(self, rows: DocumentRows) -> DocumentRows:
        """The network's input in float32; of features, only a block at a time is widened."""
        if self.feature_scaling_ is None:
            return self._network_input(rows).astype(np.float32)
        blocks = feature_blocks(rows)
        return np.concatenate([self._network_input(block).astype(np.float32) for block in blocks])

    def _decoder_target(self, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        """How much each word counts; every kind of target sums to the number of different words."""
        target = matrix.copy()
        target.data = matrix.data ** TARGET_POWERS[self._objective.target]
        lengths = np.diff(matrix.indptr)
        sums = np.asarray(target.sum(axis=1)).ravel()
        target.data *= np.repeat(lengths / sums, lengths)
        return target

    def _bytes_of_model(self) -> int:
        """Weights, gradient, Adam's two moments and copies; the logits of a batch."""
        n_read = self._n_networks() * self._network.hidden_units or sum(self._heads().values())
        a_word = 7 * (n_read + self.n_bits) + 4 * self._training.batch_size
        return 4 * self._text.max_words * a_word

    def _n_epochs(self, n_documents: int) -> int:
        own = self._training
        if own.epochs is not None:
            return own.epochs
        least = own.least_steps
        if least is None:
            least = min(MINIMUM_STEPS, max(FEWEST_STEPS, n_documents // DOCUMENTS_A_STEP))
        return enough_epochs(n_documents, own.batch_size, self.USUAL_EPOCHS, least, MOST_STEPS)

    def _most_documents(self) -> int:
        return MOST_DOCUMENTS if self._training.epochs is None else super()._most_documents()

    def _shapes(self) -> Shapes:
        scaling = self.feature_scaling_
        n_inputs = self.n_features_in_ if scaling is None else len(scaling.mean)
        units = self._network.hidden_units
        n_hidden = self._n_networks() * units
        layers = {
            "hidden1.weight": (n_inputs, n_hidden),
            "hidden1.bias": (n_hidden,),
            "hidden2.weight": (units, n_hidden),
            "hidden2.bias": (n_hidden,),
        }
        n_last, heads = units or n_inputs, self._heads()
        return {
            **(layers if units else {}),
            "decoder.weight": (self.n_bits, self.n_features_in_),
            "decoder.bias": (self.n_features_in_,),
            **{f"heads.{h}.weight": (n_last, size) for h, size in heads.items()},
            **{f"heads.{h}.bias": (size,) for h, size in heads.items()},
        }

    def _collapse_advice(self) -> str:
        return (
            f"Usually the learning rate is too high: try learning_rate={self._lower_rate():g} "
            f"(was {self._training.learning_rate:g}); or the fit is too short: it took "
            f"{self.history_[-1].epoch} epochs"
        )

    def _check_learned(self, targets: sparse.csr_matrix) -> None:
        """Raise if the fit is worse than calling all words equally likely, as training begins."""
        uniform = -targets.sum() / targets.shape[0] * math.log(targets.shape[1])
        reached = self.history_[-1].reconstruction
        if reached < 1.1 * uniform - 1:
            raise TrainingError(
                f"training diverged: log p(x | s) is {reached:.4g} nats per document, and {uniform:.4g} "
                f"when all words are equally likely; learning_rate={self._training.learning_rate:g} is "
                f"too high, try {self._lower_rate():g}"
            )

    def _lower_rate(self) -> float:
        return min(self._training.learning_rate / 10, DEFAULT_LEARNING_RATE)
