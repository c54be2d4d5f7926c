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

from boltzhash.arguments import check_choice, check_integer, check_number
from boltzhash.errors import TrainingError
from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.estimator import check_is_fitted
from boltzhash.hashers.shared.explanation import BitWords, words_of_bits
from boltzhash.hashers.shared.features import Features, FeatureScaling, feature_blocks
from boltzhash.hashers.shared.inference import Floats, head, hidden_layers
from boltzhash.hashers.shared.labels import Labelling, Labels, guessed_shares, held_out_agreement
from boltzhash.hashers.shared.trained import TrainedHasher, enough_epochs
from boltzhash.hashers.shared.weights import Shapes
from boltzhash.text.tfidf import unit_rows

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.networks import Autoencoder, Linear, TopicDecoder, WordDecoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Generator, Tensor

# How long a fit is, if nobody says: so many epochs, within these bounds (docs/large_corpora.md).
DEFAULT_EPOCHS = 25
MINIMUM_STEPS = 1000
FEWEST_STEPS, DOCUMENTS_A_STEP = 250, 4  # of a corpus too small for so many
MOST_STEPS = 5000
MOST_DOCUMENTS = 100_000  # more teach nothing that a sample of so many does not
LABEL_WEIGHT = 10.0  # of labels that words tell without fail
DEFAULT_LEARNING_RATE = 5e-3

# What the published codes of variational hashers have in common: CorrSH.as_published, where it is not
# particular to CorrSH.
PUBLISHED_RECIPE: dict[str, Any] = {
    "target": "words",
    "input_length": None,
    "unigram_start": False,
    "epochs": 100,
    "batch_size": 100,
    "learning_rate": 1e-3,
    "learning_rate_decay": "steps",
    "dropout": 0.2,
    "kl_ramp": 1.0,
    "label_weight": 1.0,
    "label_guesses": False,
}

NOT_TOLD_BY_WORDS = (
    "labels are not used: words do not tell those that were held out better than chance would; "
    "label_weight=… teaches them all the same"
)

TARGET_POWERS = {"tfidf": 1.0, "root-tfidf": 0.5, "words": 0.0}  # of a word's tf-idf


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
    target : {"tfidf", "root-tfidf", "words"}, default="tfidf"
        What the decoder reconstructs: words weighted by their tf-idf or its square root (scaled to sum
        to the number of different words), or each different word once, as published.
    input_length : float or None, default=16
        Length to which every tf-idf row is scaled before the network. Features are centred, and scaled
        so that their mean square length is this. None leaves rows as they are.
    kl_weight : (float, float), default=(1.0, 0.1)
        First and last value of β, the weight of everything except reconstruction. Published codes start
        at 0 and rise; starting high keeps bits from saturating before they mean anything.
    kl_ramp : float, default=0.5
        Share of the epochs over which β goes linearly from its first to its last value.
    decoder_noise : (float, float), default=(0.5, 0.5)
        Standard deviation of the noise added to the code before the decoder, first and last epoch.
    hidden_units : int, default=500
        Of each of the two layers. 0 for no layers: the posterior is linear in the document, as in SNUH.
    dropout : float, default=0.2
        Share of the hidden units left out at random while training.
    epochs : int or None, default=None
        None means 25, within bounds: at least ``least_steps`` and at most 5,000 steps, with a sample of
        100,000 documents if there are more.
    least_steps : int or None, default=None
        How many steps small corpora get, unless ``epochs`` is given. None is a quarter of the
        documents, between 250 and 1,000.
    batch_size : int, default=200
    learning_rate : float, default=5e-3
        Of Adam, at its highest.
    learning_rate_decay : {"cosine", "steps"}, default="cosine"
        Up over the first epoch and down to 0 along half a cosine, or × .96 every 10,000 steps as
        published.
    unigram_start : bool, default=True
        Start the decoder's bias at the logarithm of how often words occur, so that the first epochs
        are not spent on learning that; False starts it at random, as published.
    label_weight : float or None, default=None
        α, the weight of log p(y | code), for fits with labels. None is 10 times how well words tell
        labels that were held out (Cohen's κ), so that labels which mean nothing change nothing. A number
        is taken as it is: 1 as published.
    label_likelihood : {"softmax", "sigmoid"}, default="softmax"
        What p(y | code) is about: a label drawn from those of the document, or which of all labels it
        has, as in VDSH-S.
    label_guesses : bool, default=True
        Whether documents without labels are asked for those that a linear classifier guesses, as far as
        it is sure. False leaves them without, as published.
    language, stem, stop_words, token_pattern, max_words, min_df, max_df
        How texts become tf-idf, see :class:`TfIdf`. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    device : str, default="auto"
        Where to train: "auto" is a GPU when there is one. Codes are always computed by NumPy.
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
    _alpha: float  # the weight of labels in this fit

    def __init__(
        self,
        n_bits: int = 64,
        *,
        target: str = "tfidf",
        input_length: float | None = 16.0,
        kl_weight: tuple[float, float] = (1.0, 0.1),
        kl_ramp: float = 0.5,
        decoder_noise: tuple[float, float] = (0.5, 0.5),
        hidden_units: int = 500,
        dropout: float = 0.2,
        least_steps: int | None = None,
        learning_rate: float = DEFAULT_LEARNING_RATE,
        learning_rate_decay: str = "cosine",
        unigram_start: bool = True,
        label_weight: float | None = None,
        label_likelihood: str = "softmax",
        label_guesses: bool = True,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, learning_rate=learning_rate, **shared)
        self.target = target
        self.input_length = input_length
        self.kl_weight = kl_weight
        self.kl_ramp = kl_ramp
        self.decoder_noise = decoder_noise
        self.hidden_units = hidden_units
        self.dropout = dropout
        self.least_steps = least_steps
        self.learning_rate_decay = learning_rate_decay
        self.unigram_start = unigram_start
        self.label_weight = label_weight
        self.label_likelihood = label_likelihood
        self.label_guesses = label_guesses

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
        return linear_ramp(self.decoder_noise, batch.progress) * noise

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
        if self.label_likelihood == "softmax":
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

        so_far = batch.progress if self.kl_ramp == 1 else batch.progress / self.kl_ramp
        return linear_ramp(self.kl_weight, so_far)

    def explain(self, n_words: int = 10) -> list[BitWords]:
        """The words that push each bit up and down, from the decoder.

        The strength of a word is ∂p(w | s) / ∂s_i at a code of halves over √p(w | s): how much the bit
        changes the word's frequency, in units of the noise of counting it. The bare weights would
        list the rarest words, which are the least certain. Words of a matrix are named by column.
        """
        check_is_fitted(self)
        check_integer("n_words", n_words, 1, "a positive integer")
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
        inputs = self._network_input(rows)
        return hidden_layers(inputs, self.weights_) if self.hidden_units else inputs

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
        if features is not None:
            rows = features
            self.feature_scaling_ = FeatureScaling.learn(rows, self.input_length)
        inputs = self._training_input(rows)
        targets = self._decoder_target(matrix).astype(np.float32)
        seed = self._draw_seed()
        usable = self._usable(labels, rows, seed)
        n_labels = 0 if usable is None else usable.shape[1]
        model = self._build(matrix.shape[1], generator_for(seed, 0), inputs.shape[1], n_labels)
        if self.unigram_start:
            model.decoder.start_at_frequencies(np.asarray(targets.sum(axis=0)).ravel())

        def take() -> None:
            self._take_weights(model)
            self._finish(rows)

        self._train(
            model,
            lambda batch: self._step(model, batch),
            self._documents(Documents(inputs, targets, labels=usable), matrix, seed),
            seed=seed,
            decay=self.learning_rate_decay,
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
            self.hidden_units,
            self._heads(),
            self.dropout,
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
        if self.label_weight is None and agreement == 0:
            logger.warning(NOT_TOLD_BY_WORDS)
        chosen = LABEL_WEIGHT * agreement
        self._alpha = chosen if self.label_weight is None else self.label_weight
        if self._alpha == 0:
            return None
        if not self.label_guesses:
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

    def _network_input(self, rows: DocumentRows) -> DocumentRows:
        if self.feature_scaling_ is not None:
            return self.feature_scaling_(rows)
        return rows if self.input_length is None else unit_rows(rows) * self.input_length

    def _training_input(self, rows: DocumentRows) -> DocumentRows:
        """The network's input in float32; of features, only a block at a time is widened."""
        if self.feature_scaling_ is None:
            return self._network_input(rows).astype(np.float32)
        blocks = feature_blocks(rows)
        return np.concatenate([self._network_input(block).astype(np.float32) for block in blocks])

    def _decoder_target(self, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        """How much each word counts; every kind of target sums to the number of different words."""
        target = matrix.copy()
        target.data = matrix.data ** TARGET_POWERS[self.target]
        lengths = np.diff(matrix.indptr)
        sums = np.asarray(target.sum(axis=1)).ravel()
        target.data *= np.repeat(lengths / sums, lengths)
        return target

    def _bytes_of_model(self) -> int:
        """Weights, gradient, Adam's two moments and copies; the logits of a batch."""
        n_read = self._n_networks() * self.hidden_units or sum(self._heads().values())
        a_word = 7 * (n_read + self.n_bits) + 4 * self.batch_size
        return 4 * self.max_words * a_word

    def _n_epochs(self, n_documents: int) -> int:
        if self.epochs is not None:
            return self.epochs
        least = self.least_steps
        if least is None:
            least = min(MINIMUM_STEPS, max(FEWEST_STEPS, n_documents // DOCUMENTS_A_STEP))
        return enough_epochs(n_documents, self.batch_size, DEFAULT_EPOCHS, least, MOST_STEPS)

    def _most_documents(self) -> int:
        return MOST_DOCUMENTS if self.epochs is None else super()._most_documents()

    def _shapes(self) -> Shapes:
        scaling = self.feature_scaling_
        n_inputs = self.n_features_in_ if scaling is None else len(scaling.mean)
        n_hidden = self._n_networks() * self.hidden_units
        layers = {
            "hidden1.weight": (n_inputs, n_hidden),
            "hidden1.bias": (n_hidden,),
            "hidden2.weight": (self.hidden_units, n_hidden),
            "hidden2.bias": (n_hidden,),
        }
        n_last, heads = self.hidden_units or n_inputs, self._heads()
        return {
            **(layers if self.hidden_units else {}),
            "decoder.weight": (self.n_bits, self.n_features_in_),
            "decoder.bias": (self.n_features_in_,),
            **{f"heads.{h}.weight": (n_last, size) for h, size in heads.items()},
            **{f"heads.{h}.bias": (size,) for h, size in heads.items()},
        }

    def _collapse_advice(self) -> str:
        return (
            f"Usually the learning rate is too high: try learning_rate={self._lower_rate():g} "
            f"(was {self.learning_rate:g}); or the fit is too short: it took "
            f"{self.history_[-1].epoch} epochs"
        )

    def _check_learned(self, targets: sparse.csr_matrix) -> None:
        """Raise if the fit is worse than calling all words equally likely, as training begins."""
        uniform = -targets.sum() / targets.shape[0] * math.log(targets.shape[1])
        reached = self.history_[-1].reconstruction
        if reached < 1.1 * uniform - 1:
            raise TrainingError(
                f"training diverged: log p(x | s) is {reached:.4g} nats per document, and {uniform:.4g} "
                f"when all words are equally likely; learning_rate={self.learning_rate:g} is too "
                f"high, try {self._lower_rate():g}"
            )

    def _lower_rate(self) -> float:
        return min(self.learning_rate / 10, DEFAULT_LEARNING_RATE)

    def _check_params(self) -> None:
        super()._check_params()
        check_integer("hidden_units", self.hidden_units, 0, "an integer of 0 or more")
        if self.least_steps is not None:
            check_integer("least_steps", self.least_steps, 1, "a positive integer or None")
        check_choice("target", self.target, tuple(TARGET_POWERS))
        check_choice("learning_rate_decay", self.learning_rate_decay, ("cosine", "steps"))
        if self.input_length is not None:
            check_number("input_length", self.input_length, above=0)
        check_number("dropout", self.dropout, at_least=0, below=1)
        check_number("kl_ramp", self.kl_ramp, above=0)
        if self.label_weight is not None:
            check_number("label_weight", self.label_weight, at_least=0)
        check_choice("label_likelihood", self.label_likelihood, ("softmax", "sigmoid"))
        for name in ("kl_weight", "decoder_noise"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"{name} must be two numbers, first and last, got {pair!r}")
            for value in pair:
                check_number(name, value, at_least=0)
