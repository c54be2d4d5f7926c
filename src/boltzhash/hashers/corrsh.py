"""CorrSH: generative semantic hashing with a correlated, Boltzmann-machine posterior.

Zheng, Su, Shen and Chen, "Generative Semantic Hashing Enhanced via Boltzmann Machines", ACL 2020.
docs/models/corrsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from boltzhash.codes import Bits
from boltzhash.errors import ModelError, TrainingError, needs_extra
from boltzhash.hashers.arguments import check_choice, check_integer, check_number
from boltzhash.hashers.base import Hasher
from boltzhash.inference import Floats, Posterior, head, hidden_layers, logistic_normal_mean
from boltzhash.persistence import Arrays
from boltzhash.text import unit_rows

if TYPE_CHECKING:
    import torch

    from boltzhash.distributions import Boltzmann
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


class CorrSH(Hasher):
    """Hash documents with a variational autoencoder whose bits are correlated.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    rank : int or "full", default=10
        Rank v of the couplings in Σ = D + UUᵀ. 0 makes the posterior factorise; "full" learns a whole
        Cholesky factor, m(m+1)/2 numbers a document.
    n_components : int, default=10
        k, the components of the mixture h_k: more make the bound tighter.
    bound : {"rearranged", "printed"}, default="rearranged"
        The lower bound without or with its two energy terms. Equal in expectation; the printed
        one has more variance.
    target : {"tfidf", "words"}, default="tfidf"
        What the decoder reconstructs: words weighted by their tf-idf (scaled to sum to the number of
        different words), or each different word once, as published.
    input_length : float or None, default=16
        Length to which every tf-idf row is scaled before the network; None leaves rows as they are.
    kl_weight : (float, float), default=(1.0, 0.1)
        First and last value of β, the weight of log h_k, log p(s) and both energies alike. Published
        codes start at 0 and rise; starting high keeps bits from saturating before they mean anything.
    kl_ramp : float, default=0.5
        Share of the epochs over which β goes linearly from its first to its last value.
    decoder_noise : (float, float), default=(0.5, 0.5)
        Standard deviation of the noise added to the code in front of the decoder, first and last epoch.
    hidden_units : int, default=500
    dropout : float, default=0.2
        Share of the hidden units left out at random while training.
    epochs : int or None, default=None
        None means 25, or more where the corpus is so small that these would not be 1,000 steps.
    batch_size : int, default=200
    learning_rate : float, default=5e-3
        Of Adam, at its highest.
    learning_rate_decay : {"cosine", "steps"}, default="cosine"
        Up over the first epoch and down to 0 along half a cosine, or × .96 every 10,000 steps as
        published.
    unigram_start : bool, default=True
        Start the decoder's bias at the logarithm of how often words occur, so that the first epochs
        are not spent on learning that; False starts it at random, as published.
    language, stop_words, token_pattern, max_words, max_df
        How texts become tf-idf, see :class:`boltzhash.text.TfIdf`. Not used when a matrix is given.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    device : str, default="auto"
        Where to train: "auto" is a GPU when there is one. Codes are always computed by NumPy.
    verbose : bool, default=False
        Show a progress bar while fitting, on a terminal.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        The inference network and the decoder.
    history_ : list of EpochRecord
        Reconstruction and KL in nats a document, distinct codes and bit balance, an epoch a record.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int

    References
    ----------
    Zheng, Su, Shen and Chen (2020). Generative Semantic Hashing Enhanced via Boltzmann Machines. ACL.

    Examples
    --------
    >>> from boltzhash import CorrSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = CorrSH(n_bits=16, epochs=5).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    weights_: Arrays
    history_: list[EpochRecord]

    def __init__(
        self,
        n_bits: int = 64,
        *,
        rank: int | str = 10,
        n_components: int = 10,
        bound: str = "rearranged",
        target: str = "tfidf",
        input_length: float | None = 16.0,
        kl_weight: tuple[float, float] = (1.0, 0.1),
        kl_ramp: float = 0.5,
        decoder_noise: tuple[float, float] = (0.5, 0.5),
        hidden_units: int = 500,
        dropout: float = 0.2,
        epochs: int | None = None,
        batch_size: int = 200,
        learning_rate: float = 5e-3,
        learning_rate_decay: str = "cosine",
        unigram_start: bool = True,
        language: str | None = "english",
        stop_words: Iterable[str] | None = None,
        token_pattern: str | None = None,
        max_words: int = 10_000,
        max_df: float = 0.5,
        random_state: Any = 0,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_bits = n_bits
        self.rank = rank
        self.n_components = n_components
        self.bound = bound
        self.target = target
        self.input_length = input_length
        self.kl_weight = kl_weight
        self.kl_ramp = kl_ramp
        self.decoder_noise = decoder_noise
        self.hidden_units = hidden_units
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.unigram_start = unigram_start
        self.language = language
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.max_words = max_words
        self.max_df = max_df
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @classmethod
    def as_published(
        cls, n_bits: int = 64, *, rank: int = 10, n_components: int = 10, **changes: Any
    ) -> Self:
        """The settings of the paper and, where it is silent, of its authors' code.

        Paper: Adam at 1e-3 decayed every 10,000 steps, v = k = 10. Authors' code: batch 100, 100
        epochs, dropout .2, the 0/1 word mask as target, tf-idf as it is, KL weight rising by
        1 / (50 (v + k)) an epoch, decoder noise from 1.0 to .9.
        """
        settings: dict[str, Any] = {
            "target": "words",
            "input_length": None,
            "kl_weight": (0.0, min(1.0, 100 / (50 * (rank + n_components)))),
            "kl_ramp": 1.0,
            "decoder_noise": (1.0, 0.9),
            "dropout": 0.2,
            "epochs": 100,
            "batch_size": 100,
            "learning_rate": 1e-3,
            "learning_rate_decay": "steps",
            "unigram_start": False,
        }
        return cls(n_bits, rank=rank, n_components=n_components, **{**settings, **changes})

    def posterior(self, X: Any) -> Posterior:
        """μ, D and U of each document: the Boltzmann posterior that the network infers."""
        blocks = [self._posterior(rows) for rows in self._blocks(X)]
        return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def bit_probabilities(self, X: Any) -> Floats:
        """P(bit on) of each document under what training samples: E σ(μ + √Σ_ii ε)."""
        blocks = [self._posterior(rows) for rows in self._blocks(X)]
        return np.concatenate([logistic_normal_mean(p.location, p.variances()) for p in blocks])

    def explain(self, n_words: int = 10) -> list[BitWords]:
        """The words that push each bit up and down, from the decoder.

        A weight is the change of a word's logit when the bit turns on, less its mean over all words
        (which the softmax does not see). Words of a matrix are called by their column.
        """
        self._check_fitted()
        embedding = self.weights_["decoder.weight"].astype(np.float64)
        embedding -= embedding.mean(axis=1, keepdims=True)
        words = (
            self.tfidf_.words_
            if self.tfidf_ is not None
            else [f"column {j}" for j in range(self.n_features_in_)]
        )

        def listed(weights: Floats, columns: Any) -> list[tuple[str, float]]:
            return [(words[j], float(weights[j])) for j in columns]

        explained = []
        for bit, weights in enumerate(embedding):
            order = np.argsort(weights, kind="stable")
            up, down = order[::-1][:n_words], order[:n_words]
            explained.append(BitWords(bit, listed(weights, up), listed(weights, down)))
        return explained

    def _step(self, encoder: InferenceNetwork, decoder: WordDecoder, batch: Batch) -> Terms:
        """One batch of the bound L̃_k, eq. 24, to be minimised with its sign turned."""
        import torch

        from boltzhash import objectives
        from boltzhash.distributions import Bernoulli
        from boltzhash.training import Terms

        posterior = self._boltzmann(encoder(batch.inputs, batch.generator))
        prior = Bernoulli(torch.zeros_like(posterior.location))
        s = posterior.sample(batch.generator)
        mixture = posterior.sample_mixture(self.n_components, batch.generator)
        s_tilde = mixture.sample(batch.generator)

        noise = torch.empty_like(s).normal_(generator=batch.generator)
        word_logits = decoder(s + ramp(self.decoder_noise, batch.progress) * noise)
        reconstruction = objectives.word_log_likelihood(word_logits, batch.targets)
        if self.bound == "printed":
            regulariser = objectives.regulariser_as_printed(posterior, mixture, prior, s, s_tilde)
        else:
            regulariser = objectives.regulariser_rearranged(mixture, prior, s_tilde)
        beta = ramp(self.kl_weight, batch.progress / self.kl_ramp)
        loss = -(reconstruction + beta * regulariser).mean()
        return Terms(loss, reconstruction.mean(), -regulariser.mean(), posterior.location > 0)

    def _boltzmann(self, outputs: dict[str, torch.Tensor]) -> Boltzmann:
        """Network outputs → posterior: std = softplus, U = tanh / v as in the authors' code."""
        import torch
        from torch.nn.functional import softplus

        from boltzhash.distributions import Boltzmann, CholeskyCovariance, LowRankCovariance

        location = outputs["location"]
        if self.rank == "full":
            rows, columns = np.tril_indices(self.n_bits, -1)
            cholesky = torch.diag_embed(softplus(outputs["deviation"]))
            cholesky[:, rows, columns] = outputs["couplings"].tanh() / self.n_bits
            return Boltzmann(location, CholeskyCovariance(cholesky))
        deviation = softplus(outputs["deviation"])
        if self.rank == 0:
            factor = location.new_zeros(*location.shape, 0)
        else:
            factor = outputs["couplings"].tanh().view(*location.shape, -1) / int(self.rank)
        return Boltzmann(location, LowRankCovariance(deviation, factor))

    def _posterior(self, matrix: sparse.csr_matrix) -> Posterior:
        """The twin of :meth:`_boltzmann` in NumPy."""
        hidden = hidden_layers(self._network_input(matrix), self._float64)
        location = head(hidden, self._float64, "location")
        deviation = np.logaddexp(head(hidden, self._float64, "deviation"), 0)
        n, m = location.shape
        if self.rank == "full":
            cholesky = np.zeros((n, m, m))
            rows, columns = np.tril_indices(m, -1)
            cholesky[:, rows, columns] = np.tanh(head(hidden, self._float64, "couplings")) / m
            cholesky[:, np.arange(m), np.arange(m)] = deviation
            return Posterior(location, np.zeros((n, m)), cholesky)
        if self.rank == 0:
            factor = np.zeros((n, m, 0))
        else:
            factor = np.tanh(head(hidden, self._float64, "couplings")).reshape(n, m, -1) / int(
                self.rank
            )
        return Posterior(location, np.square(deviation), factor)

    def _bits(self, matrix: sparse.csr_matrix) -> Bits:
        """μ > 0: where the probability of the bit under the shortcut is above one half."""
        hidden = hidden_layers(self._network_input(matrix), self._float64)
        return head(hidden, self._float64, "location") > 0

    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        try:
            import torch
        except ImportError:
            raise needs_extra("fit", "torch", "train") from None
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
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)

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

    def _heads(self) -> dict[str, int]:
        """Name and size of each output of the inference network."""
        m = self.n_bits
        couplings = m * (m - 1) // 2 if self.rank == "full" else m * int(self.rank)
        heads = {"location": m, "deviation": m, "couplings": couplings}
        return {name: size for name, size in heads.items() if size > 0}

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
            "hidden2.weight": (self.hidden_units, self.hidden_units),
            "decoder.weight": (self.n_bits, self.n_features_in_),
            "decoder.bias": (self.n_features_in_,),
            **{f"heads.{h}.weight": (self.hidden_units, size) for h, size in self._heads().items()},
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

    def _check_fitted(self) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)

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
        if self.rank != "full":
            check_integer("rank", self.rank, 0, 'an integer of 0 or more, or "full"')
        for name in ("n_components", "hidden_units", "batch_size"):
            check_integer(name, getattr(self, name), 1, "a positive integer")
        if self.epochs is not None:
            check_integer("epochs", self.epochs, 1, "a positive integer or None")
        check_choice("bound", self.bound, ("rearranged", "printed"))
        check_choice("target", self.target, ("tfidf", "words"))
        check_choice("learning_rate_decay", self.learning_rate_decay, ("cosine", "steps"))
        if self.input_length is not None:
            check_number("input_length", self.input_length, above=0)
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("kl_ramp", self.kl_ramp, above=0)
        check_number("dropout", self.dropout, at_least=0, below=1)
        for name in ("kl_weight", "decoder_noise"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"{name} must be two numbers, first and last, got {pair!r}")
            for value in pair:
                check_number(name, value, at_least=0)
