"""CorrSH: generative semantic hashing with a correlated, Boltzmann-machine posterior.

Zheng, Su, Shen and Chen, "Generative Semantic Hashing Enhanced via Boltzmann Machines", ACL 2020.
docs/models/corrsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import check_choice, check_integer, check_number
from boltzhash.hashers.shared import deep, neighbour_choice
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.inference import Floats, Posterior, head, logistic_normal_mean
from boltzhash.hashers.shared.labels import with_same_label
from boltzhash.hashers.shared.neighbour_choice import (
    FEWEST,
    MOST,
    Locations,
    NeighbourChoice,
    n_neighbours,
)
from boltzhash.hashers.shared.neighbours import SCALES, RowNumbers, Vectors, nearest_vectors
from boltzhash.hashers.shared.ranking import check_labeller, weak_triplets
from boltzhash.storage.folders import Arrays

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.distributions import Boltzmann
    from boltzhash.training.networks import Autoencoder, Linear, TopicDecoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Generator, Tensor

CONTRAST_BITS = 32  # the length of code at which ``contrast`` is the weight itself
CONTRAST_TEMPERATURE = 0.2
ONE_NETWORK_BITS = 32  # longer codes are made by two networks
SHORT_BITS = 16  # up to here the contrast is on means, and neighbours are drawn evenly

# The first of two trainings, whose codes find neighbours for the second.
FIRST_BITS = 64
FIRST_SHARE = 0.8  # of the epochs of the second
BLOCK = 4096  # documents whose locations are computed at a time

logger = logging.getLogger("boltzhash")


class _NotWorthItError(Exception):
    """Ends a first training whose codes are worse than what there was without it."""


class CorrSH(DeepHasher):
    """Hash documents with a variational autoencoder whose bits are correlated.

    The defaults extend the paper's model: a document also learns from documents that are near to it, and
    target, input, noise, KL weight and optimiser are others. Their precision comes from these; with
    independent bits (``rank=0, n_components=1``) it is the same (docs/quality.md).
    ``CorrSH.as_published`` has none of them.

    ``CorrSH(64).fit(texts) is all that most users need. What they set: ``n_bits``; ``language`` and
    ``stem``, for texts that are not English or are asked questions; ``random_state``; ``device``, to
    train on a GPU or not; ``verbose``, to watch. All else has defaults that were chosen on public
    corpora (docs/quality.md), and is there for research.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    rank : int or "full", default=10
        Rank v of the couplings in Σ = D + UUᵀ. 0 makes the posterior factorise; "full" learns a whole
        Cholesky factor, m(m+1)/2 numbers per document.
    n_components : int, default=10
        k, the components of the mixture h_k: more make the bound tighter.
    bound : {"rearranged", "printed"}, default="rearranged"
        The lower bound without or with its two energy terms. Equal in expectation; the printed
        one has more variance.
    gradient : str, default="straight-through"
        How the gradient passes through a sampled bit: a name in ``gradients.ESTIMATORS``.
        "straight-through-half" has the factor ½ of the paper's eq. 19.
    prior_groups : int, default=0
        0 for fair bits; otherwise the number of components of a learned Bernoulli-mixture prior, as
        in :class:`BMSH`.
    ranking : float, default=0.0
        Weight of :class:`RBSH`'s ranking loss; 0 for none.
    neighbours : int or None, default=None
        How many of the nearest documents a document's code should also stand for. Every epoch one of
        them is drawn: some of its words are asked for as well, and its code should be nearer than
        those of other documents. None is one in 200 documents, at least 20 and at most 100 (with
        features 20), of few documents no more than a tenth. 0 for none, as published.
    latent_dimensions : tuple of int, default=(8, 16, 32, 64, 128, 256)
        Neighbours are near by latent semantic analysis with so many dimensions, all of these numbers
        at once. Not used with features, of which it is the cosine of centred rows.
    second_training : bool or None, default=None
        Whether a shorter training comes first, which learns codes of 64 bits by which, together with
        latent semantics, neighbours are looked for again. None lets the corpus choose: yes, if the
        codes agree better than latent semantics on what is near to the two halves of documents that
        were held out for this (``neighbour_choice_``). No for fewer than 2,000 documents, and with
        features.
    neighbour_nearness : float or None, default=None
        Which of its K neighbours a document draws: the ⌊K u^a⌋-th nearest, u uniform from 0 to 1. 1
        draws evenly, as fits with labels always do. None is 2, and 1 for codes of up to 16 bits.
    neighbour_share : float, default=0.3
        Which share of the words asked for is the neighbour's.
    contrast : float, default=2.0
        Weight, at 32 bits, of telling a document's neighbour from other documents by its code; at m
        bits it is 32 / m of that, since short codes gain more.
    contrast_codes : {"bits", "means"} or None, default=None
        What the contrast compares: the codes themselves, through whose thresholds the gradient passes
        as if they were not there, or the means of their bits, which may be far from both values. None
        is "bits", and "means" for codes of up to 16 bits, of which too few differ at all.
    networks : int or None, default=None
        How many networks, which start and drop out differently, each make an equal part of the code.
        Every part must describe the document by itself; their Hamming distances add up like votes.
        None is two for codes of more than 32 bits, one for others (as published) and for rank="full".
    label_neighbours : float, default=0.5
        In fits with labels, which portion of a document's neighbours is drawn from documents of the same
        label.
    **training
        The arguments of :class:`DeepHasher`: target, input_length, kl_weight, kl_ramp, decoder_noise,
        hidden_units, dropout, epochs, least_steps, batch_size, learning_rate, learning_rate_decay,
        unigram_start, label_weight, label_likelihood, label_guesses, language, stem, stop_words,
        token_pattern, max_words, min_df, max_df, random_state, device, verbose.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        The inference network, the decoder and whatever else was learned.
    history_ : list of EpochRecord
        Reconstruction and KL in nats per document, distinct codes and bit balance, one record per epoch.
        With several networks both are means over them, so reconstruction − β KL is what is maximised,
        apart from the contrast and the ranking loss.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    feature_scaling_ : FeatureScaling or None
        How features are centred and scaled, None when fitted without.
    fitted_on_ : FittedOn
        What drift is measured by: how many documents, how many unknown words to expect, the mean of each
        bit.
    labelling_ : Labelling or None
        How many documents had how many labels in the fit, and how well words tell them. Not saved.
    n_features_in_ : int
    neighbour_choice_ : NeighbourChoice or None
        Which neighbours were taken, and by what; None without any.

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

    Codes from vectors that you already have, here two numbers per text:

    >>> vectors = np.array([[0.9, 0.1], [0.8, 0.3], [0.1, 0.8], [0.2, 0.9]])
    >>> hasher = CorrSH(n_bits=16, epochs=5).fit(texts, features=vectors)
    >>> hasher.transform(features=[[0.7, 0.2]]).shape
    (1, 2)

    Labels where there are some, None elsewhere:

    >>> labels = (["sky", "sky", None, None] + ["food", "food", None, None]) * 5
    >>> hasher = CorrSH(n_bits=16, epochs=5).fit([texts[i // 2 % 4] for i in range(40)], labels)
    >>> hasher.labelling_
    Labelling(documents=20, labels=2, agreement=1.0)
    """

    neighbour_choice_: NeighbourChoice | None
    _given_neighbours: RowNumbers | None = None  # what a round is told

    def __init__(
        self,
        n_bits: int = 64,
        *,
        rank: int | str = 10,
        n_components: int = 10,
        bound: str = "rearranged",
        gradient: str = "straight-through",
        prior_groups: int = 0,
        ranking: float = 0.0,
        neighbours: int | None = None,
        latent_dimensions: tuple[int, ...] = SCALES,
        second_training: bool | None = None,
        neighbour_nearness: float | None = None,
        neighbour_share: float = 0.3,
        contrast: float = 2.0,
        contrast_codes: str | None = None,
        networks: int | None = None,
        label_neighbours: float = 0.5,
        target: str = "root-tfidf",
        kl_weight: tuple[float, float] = (0.3, 0.1),
        kl_ramp: float = 0.25,
        decoder_noise: tuple[float, float] = (0.2, 0.2),
        **training: Any,
    ) -> None:
        super().__init__(
            n_bits,
            target=target,
            kl_weight=kl_weight,
            kl_ramp=kl_ramp,
            decoder_noise=decoder_noise,
            **training,
        )
        self.rank = rank
        self.n_components = n_components
        self.bound = bound
        self.gradient = gradient
        self.prior_groups = prior_groups
        self.ranking = ranking
        self.neighbours = neighbours
        self.latent_dimensions = latent_dimensions
        self.second_training = second_training
        self.neighbour_nearness = neighbour_nearness
        self.neighbour_share = neighbour_share
        self.contrast = contrast
        self.contrast_codes = contrast_codes
        self.networks = networks
        self.label_neighbours = label_neighbours

    @classmethod
    def as_published(
        cls, n_bits: int = 64, *, rank: int | str = 10, n_components: int = 10, **changes: Any
    ) -> Self:
        """The settings of the authors' code, which is not quite what the paper prints.

        In both: Adam at 1e-3 decayed every 10,000 steps, v = k = 10. In the code alone: batch 100, 100
        epochs, dropout .2, the 0/1 word mask as target, tf-idf as it is. Where they differ this follows
        the code, and the changes in brackets make it the paper: the bound leaves out its two energies
        (``bound="printed"``), the KL weight rises by 1 / (50 (v + k)) per epoch
        (``kl_weight=(1, 1)``), noise from 1.0 to .9 is added before the decoder
        (``decoder_noise=(0, 0)``), and straight-through has the factor 1
        (``gradient="straight-through-half"``). docs/models/corrsh.md has what each of them does.
        """
        if rank != "full":
            check_integer("rank", rank, 0, 'an integer of 0 or more, or "full"')
        check_integer("n_components", n_components, 1, "a positive integer")
        v = n_bits if rank == "full" else int(rank)
        epochs = changes.get("epochs", 100)
        risen = epochs / (50 * (v + n_components))  # of the KL weight, if it were not capped at 1
        settings: dict[str, Any] = {
            "bound": "rearranged",
            "neighbours": 0,
            "contrast": 0.0,
            "networks": 1,
            "hidden_units": 500,
            "target": "words",
            "input_length": None,
            "kl_weight": (0.0, min(1.0, risen)),
            "kl_ramp": 1 / max(1.0, risen),
            "decoder_noise": (1.0, 0.9),
            "dropout": 0.2,
            "epochs": epochs,
            "batch_size": 100,
            "learning_rate": 1e-3,
            "learning_rate_decay": "steps",
            "unigram_start": False,
        }
        return cls(n_bits, rank=rank, n_components=n_components, **{**settings, **changes})

    @classmethod
    def for_questions(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings for documents that are asked questions, beside an index of their words.

        Codes that tell more finely what a document is about than those of the defaults, whose
        neighbourhoods are topics: stems, few neighbours by one scale of latent semantics, one training,
        and at least 1,000 steps: with fewer such codes find less. On questions with judged answers
        they find more by themselves than those of the defaults, and beside words as much, in half of
        the time (docs/retrieval.md). ``boltzhash index`` learns with these.
        """
        settings: dict[str, Any] = {
            "stem": True,
            "neighbours": 20,
            "latent_dimensions": (64,),
            "second_training": False,
            "neighbour_nearness": 1.0,
            "neighbour_share": 0.2,
            "contrast": 1.0,
            "contrast_codes": "means",
            "least_steps": deep.MINIMUM_STEPS,
        }
        return cls(n_bits, **{**settings, **changes})

    def posterior(self, X: Any = None, *, features: Any = None) -> Posterior:
        """μ, D and U of each document: the Boltzmann posterior that the network infers.

        ``X`` and ``features`` are those of :meth:`transform`; see :class:`Posterior` for shapes.
        """
        blocks = [self._posterior(rows) for rows in self._blocks(X, features)]
        return Posterior(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def bit_probabilities(self, X: Any = None, *, features: Any = None) -> Floats:
        """P(bit on) of each document under what training samples: E σ(μ + √Σ_ii ε).

        ``X`` and ``features`` are those of :meth:`transform`; float64 (n_documents, n_bits).
        """
        blocks = [self._posterior(rows) for rows in self._blocks(X, features)]
        return np.concatenate([logistic_normal_mean(p.location, p.variances()) for p in blocks])

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """One batch of the bound L̃_k, eq. 24, with its sign flipped: to be minimised."""
        from boltzhash.training import objectives
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import BernoulliMixture

        at_once = self._at_once(model, batch)
        if at_once is not None:
            return at_once
        outputs, beside = self._encoded(model, batch)
        posterior = self._boltzmann(outputs)
        estimate, prior = model.parts["gradient"], model.parts["prior"]
        logits = posterior.sample_logits(1 + self.n_components, batch.generator)
        for_s, for_mixture = logits.split_with_sizes([1, self.n_components])
        r, mixture = for_s.squeeze(0), BernoulliMixture(for_mixture)
        # The likelihood is a mean over the networks; the divergence sums over the bits of all.
        beta = self._beta(batch) / self._n_networks()
        noise = self._noise(r, batch)
        printed = self.bound == "printed"

        def cost(s: Tensor) -> Tensor:
            """−log p(x | s), and what the printed bound adds at s."""
            likelihood = self._log_likelihood(model, s + noise, batch)
            if printed:
                likelihood = likelihood + beta * objectives.printed_at_s(posterior, prior, s)
            return -likelihood

        def divergence(s_tilde: Tensor) -> Tensor:
            if printed:
                return -objectives.printed_at_s_tilde(posterior, mixture, s_tilde)
            return -objectives.regulariser_rearranged(mixture, prior, s_tilde)

        # Estimators get what is minimised, sign included: RELAX learns from it as well.
        where = (batch.generator, batch.progress)
        first, s = estimate(r, cost, *where)
        # s̃ comes from a component chosen at random (app. A.3). All are independent draws of one law and
        # the bound treats them alike, so the first is as good as any.
        second, _ = estimate(mixture.logits[0], divergence, *where)
        loss = (first + beta * second).mean()
        if self.ranking:
            nearer, farther = (self._codes_of(model, rows, batch) for rows in batch.companions)
            codes = posterior.sample(batch.generator)
            loss = loss + self.ranking * objectives.ranking_hinge(codes, nearer, farther).mean()
        if beside is not None:
            loss = loss + self._contrast(posterior.location, beside)
        reconstruction = self._of_words(model, -first, s + noise, batch)
        kl = second.detach().mean()
        if printed:
            at_s = objectives.printed_at_s(posterior, prior, s).detach().mean()
            reconstruction, kl = reconstruction - beta * at_s, kl - at_s
        return Terms(loss, reconstruction, kl / self._n_networks(), posterior.location > 0)

    def _at_once(self, model: Autoencoder, batch: Batch) -> Terms | None:
        """The same in few launches on a GPU, or compiled on a CPU, if that is there for all of it."""
        from boltzhash.training import compiled_bound, fused
        from boltzhash.training.distributions import FairBits
        from boltzhash.training.fused import bound
        from boltzhash.training.gradients import StraightThrough
        from boltzhash.training.tensors import linear_ramp

        estimate, prior = model.parts["gradient"], model.parts["prior"]
        is_usual = isinstance(estimate, StraightThrough) and isinstance(prior, FairBits)
        if self.rank == "full" or self.bound == "printed" or self.ranking or not is_usual:
            return None
        n = self._n_networks()
        settings = bound.Settings(
            rank=int(self.rank),
            n_components=self.n_components,
            n_networks=n,
            straight_through=estimate.scale,
            contrast_weight=self.contrast * CONTRAST_BITS / self.n_bits,
            temperature=CONTRAST_TEMPERATURE,
            compares_bits=self._compared_codes() == "bits",
        )
        if compiled_bound.takes(model, batch):
            noise = float(linear_ramp(self.decoder_noise, batch.progress))
            return compiled_bound.bound_terms(model, batch, self._beta(batch) / n, noise, settings)
        if not bound.takes(model, batch, self.n_bits, settings):
            return None
        device = batch.progress.device

        def on_device(value: Tensor | float) -> Tensor:
            return fused.constant(value, device) if isinstance(value, float | int) else value

        return bound.bound_terms(
            model,
            batch,
            batch.once("beta", lambda: on_device(self._beta(batch) / n)),
            batch.once("noise", lambda: on_device(linear_ramp(self.decoder_noise, batch.progress))),
            settings,
        )

    def _parts(self, generator: Generator) -> dict[str, Any]:
        from boltzhash.training.distributions import BernoulliMixturePrior, FairBits
        from boltzhash.training.gradients import make_estimator

        prior = (
            BernoulliMixturePrior(self.prior_groups, self.n_bits, generator)
            if self.prior_groups
            else FairBits()
        )
        return {"prior": prior, "gradient": make_estimator(self.gradient, self.n_bits, generator)}

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        if self.ranking:
            documents = documents._replace(companions=weak_triplets(matrix))
        self.neighbour_choice_ = None
        n = matrix.shape[0]
        k = n_neighbours(n) if self.neighbours is None else self.neighbours
        if k:
            near, nearness = self._near(documents, matrix, k, seed), self._nearness()
            if documents.labels is not None:
                random = np.random.default_rng(seed)
                near = with_same_label(near, documents.labels, self.label_neighbours, random)
                nearness = 1.0  # documents of the same label stand last, and are not far
            documents = documents._replace(
                neighbours=near, neighbour_share=self.neighbour_share, nearness=nearness
            )
        return documents

    def _near(
        self, documents: Documents, matrix: sparse.csr_matrix, k: int, seed: int
    ) -> RowNumbers:
        """The neighbours of each document: (n, k)."""
        if self._given_neighbours is not None:
            return self._given_neighbours
        if isinstance(documents.inputs, np.ndarray):
            k = min(k, FEWEST) if self.neighbours is None else k
            self.neighbour_choice_ = NeighbourChoice(k)
            return nearest_vectors(documents.inputs, k)
        near, self.neighbour_choice_ = neighbour_choice.choose_neighbours(
            matrix,
            k,
            tuple(self.latent_dimensions),
            self.second_training,
            partial(self._first_training, seed=seed + 1),
            seed,
        )
        if self.verbose and self.neighbour_choice_.agreement_by_words is not None:
            logger.info("%s", self.neighbour_choice_)
        return near

    def _first_training(
        self,
        matrix: sparse.csr_matrix,
        near: RowNumbers,
        is_worth_it: Callable[[Locations], bool],
        seed: int,
    ) -> Locations | None:
        """What a model of 64 bits says, after a shorter training with these neighbours.

        After a quarter of it ``is_worth_it`` is asked; None if it is not, which ends the training.
        """
        epochs = math.ceil(FIRST_SHARE * self._n_epochs(matrix.shape[0]))
        changes = {"n_bits": FIRST_BITS, "networks": None, "epochs": epochs, "random_state": seed}
        as_in_the_second = {
            "contrast_codes": self._compared_codes(),
            "neighbour_nearness": self._nearness(),
        }
        first = CorrSH(**{**self.get_params(), **changes, **as_in_the_second})
        first._given_neighbours = near
        first._progress_shown = "finding neighbours"
        first.tfidf_, first.feature_scaling_ = None, None
        first.n_features_in_ = matrix.shape[1]

        def ask(first: CorrSH) -> None:
            if first.history_[-1].epoch == math.ceil(epochs / 4) and not is_worth_it(
                first._locations
            ):
                raise _NotWorthItError

        try:
            first._fit_matrix(matrix, None, None, None, ask)
        except _NotWorthItError:
            return None
        return first._locations

    def _locations(self, matrix: sparse.csr_matrix) -> Vectors:
        """μ of many documents, (n, n_bits)."""
        blocks = (matrix[start : start + BLOCK] for start in range(0, matrix.shape[0], BLOCK))
        return np.concatenate([self._margins(block).astype(np.float32) for block in blocks])

    def _stored_arrays(self) -> Arrays:
        arrays = super()._stored_arrays()
        if self.neighbour_choice_ is not None:
            numbers = [np.nan if x is None else float(x) for x in self.neighbour_choice_]
            arrays["neighbour choice"] = np.array(numbers)
        return arrays

    @classmethod
    def _restore(cls, params: dict[str, Any], arrays: Arrays, words: list[str] | None) -> Self:
        hasher = super()._restore(params, arrays, words)
        hasher.neighbour_choice_ = None
        if "neighbour choice" in arrays:
            k, *agreements, second = arrays["neighbour choice"].tolist()
            of_words, of_codes = (None if np.isnan(x) else x for x in agreements)
            hasher.neighbour_choice_ = NeighbourChoice(int(k), of_words, of_codes, bool(second))
        return hasher

    def _decoded(self, decoder: Linear | TopicDecoder, noisy_code: Tensor, target: Rows) -> Tensor:
        """The mean over the networks, the bits of each decoded by themselves."""
        from boltzhash.training.objectives import decoded_log_likelihood

        return decoded_log_likelihood(
            noisy_code, decoder.weight, decoder.bias, target, self._n_networks()
        )

    def _compared_codes(self) -> str:
        if self.contrast_codes is not None:
            return self.contrast_codes
        return "means" if self.n_bits <= SHORT_BITS else "bits"

    def _nearness(self) -> float:
        if self.neighbour_nearness is not None:
            return self.neighbour_nearness
        return 1.0 if self.n_bits <= SHORT_BITS else 2.0

    def _n_networks(self) -> int:
        if self.networks is not None:
            return self.networks
        return 2 if self.n_bits > ONE_NETWORK_BITS and self.rank != "full" else 1

    def _bytes_of_model(self) -> int:
        own = super()._bytes_of_model() + 8 * self.max_words * self.batch_size * self._n_networks()
        if self.neighbours == 0 or self.second_training is False:
            return own
        changes = {"n_bits": FIRST_BITS, "networks": None, "second_training": False}
        first = CorrSH(**{**self.get_params(), **changes})
        waiting = 4 * self.max_words * (self._n_networks() * self.hidden_units + self.n_bits)
        return max(own, first._bytes_of_model() + waiting)

    def _more_bytes_a_document(self) -> int:
        """Vectors of more than 64 latent dimensions, of which five copies live at once; neighbours."""
        if self.neighbours == 0:
            return 0
        return 20 * max(0, max(self.latent_dimensions) - 64) + 8 * (self.neighbours or MOST)

    def _encoded(self, model: Autoencoder, batch: Batch) -> tuple[dict[str, Tensor], Tensor | None]:
        """What the network says about the documents, and the locations of their neighbours' codes."""
        if not self.contrast or batch.neighbour is None:
            return model.encoder(batch.inputs, batch.generator), None
        return model.encoder.with_neighbour(
            batch.inputs, batch.neighbour, "location", batch.generator
        )

    def _contrast(self, location: Tensor, beside: Tensor) -> Tensor:
        """The weighted contrast between the codes of the documents and of their neighbours."""
        from boltzhash.training.objectives import contrast_of_parts, mean_codes, sign_codes

        codes_of = sign_codes if self._compared_codes() == "bits" else mean_codes
        weight = self.contrast * CONTRAST_BITS / self.n_bits
        n = self._n_networks()
        one, other = codes_of(location), codes_of(beside)
        return weight * contrast_of_parts(one, other, n, CONTRAST_TEMPERATURE)

    def _codes_of(self, model: Autoencoder, rows: Rows, batch: Batch) -> Tensor:
        """Sampled codes of other documents, for the ranking loss."""
        posterior = self._boltzmann(model.encoder(rows, batch.generator))
        return posterior.sample(batch.generator)

    def _boltzmann(self, outputs: dict[str, Tensor]) -> Boltzmann:
        """Network outputs → posterior."""
        from boltzhash.training.distributions import cholesky_boltzmann, low_rank_boltzmann

        return (
            cholesky_boltzmann(**outputs) if self.rank == "full" else low_rank_boltzmann(**outputs)
        )

    def _posterior(self, rows: DocumentRows) -> Posterior:
        """The twin of :meth:`_boltzmann` in NumPy."""
        hidden = self._hidden(rows)
        location = head(hidden, self.weights_, "location")
        deviation = np.logaddexp(head(hidden, self.weights_, "deviation"), 0)
        n, m = location.shape
        if self.rank == "full":
            cholesky = np.zeros((n, m, m))
            below, columns = np.tril_indices(m, -1)
            cholesky[:, below, columns] = np.tanh(head(hidden, self.weights_, "couplings")) / m
            cholesky[:, np.arange(m), np.arange(m)] = deviation
            return Posterior(location, np.zeros((n, m)), cholesky)
        if self.rank == 0:
            factor = np.zeros((n, m, 0))
        else:
            factor = np.tanh(head(hidden, self.weights_, "couplings")).reshape(n, m, -1) / int(
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
        from boltzhash.training.gradients import ESTIMATORS

        if self.rank != "full":
            check_integer("rank", self.rank, 0, 'an integer of 0 or more, or "full"')
        check_integer("n_components", self.n_components, 1, "a positive integer")
        check_choice("bound", self.bound, ("rearranged", "printed"))
        check_choice("gradient", self.gradient, tuple(ESTIMATORS))
        check_integer("prior_groups", self.prior_groups, 0, "an integer of 0 or more")
        check_number("ranking", self.ranking, at_least=0)
        if self.ranking:
            check_labeller()
        if self.neighbours is not None:
            check_integer("neighbours", self.neighbours, 0, "an integer of 0 or more, or None")
        if self.second_training is not None and not isinstance(self.second_training, bool):
            raise ValueError(
                f"second_training must be True, False or None, got {self.second_training!r}"
            )
        if not isinstance(self.latent_dimensions, tuple | list) or not self.latent_dimensions:
            raise ValueError(
                f"latent_dimensions must be a tuple of integers, got {self.latent_dimensions!r}"
            )
        for scale in self.latent_dimensions:
            check_integer("latent_dimensions", scale, 1, "positive integers")
        if self.neighbour_nearness is not None:
            check_number("neighbour_nearness", self.neighbour_nearness, above=0)
        check_number("neighbour_share", self.neighbour_share, at_least=0, below=1)
        check_number("contrast", self.contrast, at_least=0)
        if self.contrast_codes is not None:
            check_choice("contrast_codes", self.contrast_codes, ("bits", "means"))
        check_number("label_neighbours", self.label_neighbours, at_least=0, at_most=1)
        if self.networks is not None:
            check_integer("networks", self.networks, 1, "a positive integer or None")
            if self.networks > 1 and self.rank == "full":
                raise ValueError(
                    f'rank="full" couples the bits of one network, got networks={self.networks}'
                )
            if self.n_bits % self.networks:
                raise ValueError(
                    f"n_bits={self.n_bits} cannot be divided among {self.networks} networks equally"
                )
