"""CorrSH: generative semantic hashing with a correlated, Boltzmann-machine posterior.

Zheng, Su, Shen and Chen, "Generative Semantic Hashing Enhanced via Boltzmann Machines", ACL 2020.
docs/models/corrsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from boltzhash.hashers.arguments import check_choice, check_integer, check_number
from boltzhash.hashers.deep import DeepHasher, ramp
from boltzhash.inference import Floats, Posterior, head, logistic_normal_mean

if TYPE_CHECKING:
    import torch

    from boltzhash.distributions import Boltzmann
    from boltzhash.networks import InferenceNetwork, WordDecoder
    from boltzhash.training import Batch, Terms


class CorrSH(DeepHasher):
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
        cls, n_bits: int = 64, *, rank: int | str = 10, n_components: int = 10, **changes: Any
    ) -> Self:
        """The settings of the paper and, where it is silent, of its authors' code.

        Paper: Adam at 1e-3 decayed every 10,000 steps, v = k = 10. Authors' code: batch 100, 100
        epochs, dropout .2, the 0/1 word mask as target, tf-idf as it is, KL weight rising by
        1 / (50 (v + k)) an epoch, decoder noise from 1.0 to .9.
        """
        if rank != "full":
            check_integer("rank", rank, 0, 'an integer of 0 or more, or "full"')
        check_integer("n_components", n_components, 1, "a positive integer")
        v = n_bits if rank == "full" else int(rank)
        settings: dict[str, Any] = {
            "target": "words",
            "input_length": None,
            "kl_weight": (0.0, min(1.0, 100 / (50 * (v + n_components)))),
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
        hidden = self._hidden(matrix)
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

    def _heads(self) -> dict[str, int]:
        """Name and size of each output of the inference network."""
        m = self.n_bits
        couplings = m * (m - 1) // 2 if self.rank == "full" else m * int(self.rank)
        heads = {"location": m, "deviation": m, "couplings": couplings}
        return {name: size for name, size in heads.items() if size > 0}

    def _check_params(self) -> None:
        super()._check_params()
        if self.rank != "full":
            check_integer("rank", self.rank, 0, 'an integer of 0 or more, or "full"')
        check_integer("n_components", self.n_components, 1, "a positive integer")
        check_choice("bound", self.bound, ("rearranged", "printed"))
        check_number("kl_ramp", self.kl_ramp, above=0)
        for name in ("kl_weight", "decoder_noise"):
            pair = getattr(self, name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"{name} must be two numbers, first and last, got {pair!r}")
            for value in pair:
                check_number(name, value, at_least=0)
