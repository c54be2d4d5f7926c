"""What the deep hashers share: network, decoder, training, explanations, weights on disk."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from boltzhash.codes import Bits
from boltzhash.errors import ModelError, TrainingError, needs_extra
from boltzhash.hashers.arguments import check_choice, check_integer, check_number
from boltzhash.hashers.base import Hasher
from boltzhash.inference import Floats, head, hidden_layers
from boltzhash.persistence import Arrays
from boltzhash.text import unit_rows

if TYPE_CHECKING:
    from boltzhash.networks import InferenceNetwork, WordDecoder
    from boltzhash.training import Batch, EpochRecord, Terms

DEFAULT_EPOCHS = 25
MINIMUM_STEPS = 1000


def ramp(ends: tuple[float, float], progress: float) -> float:
    """From the first value to the last as progress goes from 0 to 1, and no further.

    >>> ramp((0.0, 0.1), 0.5), ramp((0.0, 0.1), 2.0)
    (0.05, 0.1)
    """
    first, last = ends
    return first + (last - first) * min(1.0, progress)


class BitWords(NamedTuple):
    """The words that one bit makes likelier when it is on (``up``) and when it is off (``down``)."""

    bit: int
    up: list[tuple[str, float]]
    down: list[tuple[str, float]]


def _bit_strengths(embedding: NDArray[np.floating], bias: NDArray[np.floating]) -> Floats:
    """√p_w (E_iw − Σ_v p_v E_iv) for every bit and word, p the words of a code of halves."""
    E = embedding.astype(np.float64)
    p = softmax(E.sum(axis=0) / 2 + bias)
    return np.asarray(np.sqrt(p) * (E - (E @ p)[:, None]))


class DeepHasher(Hasher):
    """A variational autoencoder over words: tf-idf → posterior over codes → words.

    A subclass says which parameters its posterior has (``_heads``), and what one step of training
    minimises (``_step``), composed from the parts in ``distributions`` and ``objectives``.
    The head "location" decides the bits.
    """

    target: str
    input_length: float | None
    hidden_units: int
    dropout: float
    epochs: int | None
    batch_size: int
    learning_rate: float
    learning_rate_decay: str
    unigram_start: bool
    random_state: Any
    device: str
    verbose: bool
    weights_: Arrays
    history_: list[EpochRecord]

    @abstractmethod
    def _heads(self) -> dict[str, int]:
        """Name and size of each output of the inference network."""

    @abstractmethod
    def _step(self, encoder: InferenceNetwork, decoder: WordDecoder, batch: Batch) -> Terms:
        """The terms of one batch; ``loss`` is minimised."""

    def explain(self, n_words: int = 10) -> list[BitWords]:
        """The words that push each bit up and down, from the decoder.

        The strength of a word is ∂p(w | s) / ∂s_i at a code of halves over √p(w | s): how much the bit
        changes the word's frequency, in units of the noise of counting it. The bare weights would
        list the rarest words, which are the least certain. Words of a matrix are called by column.
        """
        check_is_fitted(self)
        strengths = _bit_strengths(self.weights_["decoder.weight"], self.weights_["decoder.bias"])
        words = (
            self.tfidf_.words_
            if self.tfidf_ is not None
            else [f"column {j}" for j in range(self.n_features_in_)]
        )

        def listed(strength: Floats, columns: Any) -> list[tuple[str, float]]:
            return [(words[j], float(strength[j])) for j in columns]

        explained = []
        for bit, strength in enumerate(strengths):
            order = np.argsort(strength, kind="stable")
            up, down = order[::-1][:n_words], order[:n_words]
            explained.append(BitWords(bit, listed(strength, up), listed(strength, down)))
        return explained

    def _bits(self, matrix: sparse.csr_matrix) -> Bits:
        """Location > 0: where the probability of the bit is above one half."""
        return head(self._hidden(matrix), self._float64, "location") > 0

    def _hidden(self, matrix: sparse.csr_matrix) -> Floats:
        return hidden_layers(self._network_input(matrix), self._float64)

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        import torch

        from boltzhash.networks import InferenceNetwork, WordDecoder
        from boltzhash.training import Schedule, choose_device, generator_for, train

        matrix = matrix[np.diff(matrix.indptr) > 0]  # a document with no word teaches nothing
        inputs = self._network_input(matrix).astype(np.float32)
        targets = self._decoder_target(matrix).astype(np.float32)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weights_generator = generator_for(seed, 0)
        encoder = InferenceNetwork(
            matrix.shape[1], self.hidden_units, self._heads(), self.dropout, weights_generator
        )
        decoder = WordDecoder(self.n_bits, matrix.shape[1], weights_generator)
        if self.unigram_start:
            decoder.start_at_frequencies(np.asarray(targets.sum(axis=0)).ravel())
        self.history_ = []

        def after_epoch(record: EpochRecord) -> None:
            self.history_.append(record)
            if on_epoch is not None:
                self._take_weights(encoder, decoder)
                on_epoch(self)

        try:
            train(
                torch.nn.ModuleDict({"encoder": encoder, "decoder": decoder}),
                lambda batch: self._step(encoder, decoder, batch),
                inputs,
                targets,
                Schedule(
                    self._n_epochs(matrix.shape[0]),
                    self.batch_size,
                    self.learning_rate,
                    self.learning_rate_decay,
                ),
                seed=seed,
                device=choose_device(self.device),
                verbose=self.verbose,
                checkpoint=checkpoint,
                fingerprint=self._fingerprint(matrix, seed),
                on_epoch=after_epoch,
            )
            self._take_weights(encoder, decoder)
            self._check_learned(targets)
        except TrainingError:
            if checkpoint is not None:  # going on from there would fail again
                shutil.rmtree(checkpoint, ignore_errors=True)
            raise

    def _take_weights(self, encoder: InferenceNetwork, decoder: WordDecoder) -> None:
        learned = {**encoder.state_dict(), **decoder.state_dict(prefix="decoder.")}
        self._set_arrays({name: tensor.cpu().numpy() for name, tensor in learned.items()})

    def _network_input(self, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        return matrix if self.input_length is None else unit_rows(matrix) * self.input_length

    def _decoder_target(self, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        """How much each word counts; both kinds sum to the number of different words."""
        target = matrix.copy()
        lengths = np.diff(matrix.indptr)
        if self.target == "words":
            target.data = np.ones_like(matrix.data)
        else:
            sums = np.asarray(matrix.sum(axis=1)).ravel()
            target.data = matrix.data * np.repeat(lengths / sums, lengths)
        return target

    def _n_epochs(self, n_documents: int) -> int:
        if self.epochs is not None:
            return self.epochs
        steps_per_epoch = math.ceil(n_documents / self.batch_size)
        return max(DEFAULT_EPOCHS, math.ceil(MINIMUM_STEPS / steps_per_epoch))

    def _fingerprint(self, matrix: sparse.csr_matrix, seed: int) -> str:
        """Names this fit: a checkpoint of another one must not be taken up."""
        params = self.get_params(deep=False)
        for name in ("verbose", "random_state", "stop_words"):
            del params[name]
        digest = hashlib.sha256(json.dumps([params, seed, matrix.shape], default=str).encode())
        for part in (matrix.data, matrix.indices, matrix.indptr):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> Arrays:
        return self.weights_

    def _set_arrays(self, arrays: Arrays) -> None:
        shapes = {
            "hidden1.weight": (self.n_features_in_, self.hidden_units),
            "hidden1.bias": (self.hidden_units,),
            "hidden2.weight": (self.hidden_units, self.hidden_units),
            "hidden2.bias": (self.hidden_units,),
            "decoder.weight": (self.n_bits, self.n_features_in_),
            "decoder.bias": (self.n_features_in_,),
            **{f"heads.{h}.weight": (self.hidden_units, size) for h, size in self._heads().items()},
            **{f"heads.{h}.bias": (size,) for h, size in self._heads().items()},
        }
        for name, shape in shapes.items():
            if name not in arrays or arrays[name].shape != shape:
                came = arrays[name].shape if name in arrays else "nothing"
                raise ModelError(f"weights {name!r} should have shape {shape}, got {came}")
        self.weights_ = arrays
        self._float64 = {
            name: array.astype(np.float64)
            for name, array in arrays.items()
            if not name.startswith("decoder.")
        }

    def _collapse_advice(self) -> str:
        return (
            f"Usually the learning rate is too high: try learning_rate={self.learning_rate / 10:g} "
            f"(was {self.learning_rate:g}); or the fit is too short: it took "
            f"{self.history_[-1].epoch} epochs"
        )

    def _check_learned(self, targets: sparse.csr_matrix) -> None:
        """Worse than calling all words equally likely, where training starts, is a failed fit."""
        uniform = -targets.sum() / targets.shape[0] * math.log(targets.shape[1])
        reached = self.history_[-1].reconstruction
        if reached < 1.1 * uniform - 1:
            raise TrainingError(
                f"training diverged: log p(x | s) is {reached:.4g} nats a document, and {uniform:.4g} "
                f"when all words are equally likely; learning_rate={self.learning_rate:g} is too "
                f"high, try {self.learning_rate / 10:g}"
            )

    def _check_params(self) -> None:
        try:
            import torch  # noqa: F401  # only to say that it is missing before the corpus is read
        except ImportError:
            raise needs_extra("fit", "torch", "train") from None
        for name in ("hidden_units", "batch_size"):
            check_integer(name, getattr(self, name), 1, "a positive integer")
        if self.epochs is not None:
            check_integer("epochs", self.epochs, 1, "a positive integer or None")
        check_choice("target", self.target, ("tfidf", "words"))
        check_choice("learning_rate_decay", self.learning_rate_decay, ("cosine", "steps"))
        if self.input_length is not None:
            check_number("input_length", self.input_length, above=0)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("dropout", self.dropout, at_least=0, below=1)
