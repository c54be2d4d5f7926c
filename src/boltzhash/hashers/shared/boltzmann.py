"""The base of hashers with a Boltzmann-machine posterior: bits correlated given the document, eq. 24.

Zheng, Su, Shen and Chen, "Generative Semantic Hashing Enhanced via Boltzmann Machines", ACL 2020.
docs/models/corrsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse

from boltzhash.arguments import Constraints, Integer
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.hashers.shared.documents import DocumentRows
from boltzhash.hashers.shared.inference import Floats, Posterior, head, logistic_normal_mean
from boltzhash.hashers.shared.ranking import check_labeller, weak_triplets
from boltzhash.hashers.shared.settings import Bound, Recipe

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.distributions import Boltzmann
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Generator, Tensor

CONTRAST_TEMPERATURE = 0.2


class BoltzmannHasher(DeepHasher):
    """A variational autoencoder over words, whose posterior over codes is a Boltzmann machine.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    rank : int or "full", default=10
        Rank v of the couplings in Σ = D + UUᵀ. 0 makes the posterior factorise; "full" learns a whole
        Cholesky factor, m(m+1)/2 numbers per document.
    n_components : int, default=10
        k, the components of the mixture h_k: more make the bound tighter.
    **shared
        The arguments of :class:`DeepHasher`; ``objective`` is a :class:`Bound`.
    """

    RECIPE: ClassVar[Recipe] = {
        **DeepHasher.RECIPE,
        "objective": Bound(
            **vars(DeepHasher.RECIPE["objective"]),
            bound="rearranged",
            gradient="straight-through",
            prior_groups=0,
            ranking=0.0,
        ),
    }
    constraints: ClassVar[Constraints] = {
        "rank": [Integer(0), "full"],
        "n_components": [Integer(1)],
    }

    def __init__(
        self, n_bits: int = 64, *, rank: int | str = 10, n_components: int = 10, **shared: Any
    ) -> None:
        super().__init__(n_bits, **shared)
        self.rank = rank
        self.n_components = n_components

    @property
    def _objective(self) -> Bound:
        return self._group("objective")  # type: ignore[no-any-return]

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
        printed = self._objective.bound == "printed"

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
        ranking = self._objective.ranking
        if ranking:
            nearer, farther = (self._codes_of(model, rows, batch) for rows in batch.companions)
            codes = posterior.sample(batch.generator)
            loss = loss + ranking * objectives.ranking_hinge(codes, nearer, farther).mean()
        if beside is not None:
            loss = loss + self._contrast(posterior.location, beside)
        reconstruction = self._of_words(model, -first, s + noise, batch)
        kl = second.detach().mean()
        if printed:
            at_s = objectives.printed_at_s(posterior, prior, s).detach().mean()
            reconstruction, kl = reconstruction - beta * at_s, kl - at_s
        return Terms(loss, reconstruction, kl / self._n_networks(), posterior.location > 0)

    def _at_once(self, model: Autoencoder, batch: Batch) -> Terms | None:
        """The same compiled, on a CPU, if that is there for all of it."""
        from boltzhash.training import compiled_bound
        from boltzhash.training.distributions import FairBits
        from boltzhash.training.gradients import StraightThrough
        from boltzhash.training.tensors import linear_ramp

        estimate, prior = model.parts["gradient"], model.parts["prior"]
        is_usual = isinstance(estimate, StraightThrough) and isinstance(prior, FairBits)
        own = self._objective
        if self.rank == "full" or own.bound == "printed" or own.ranking or not is_usual:
            return None
        if not compiled_bound.takes(model, batch):
            return None
        n = self._n_networks()
        settings = compiled_bound.Settings(
            rank=int(self.rank),
            n_components=self.n_components,
            n_networks=n,
            straight_through=estimate.scale,
            contrast_weight=self._contrast_weight(),
            temperature=CONTRAST_TEMPERATURE,
            compares_bits=self._compares_bits(),
        )
        noise = float(linear_ramp(own.decoder_noise, batch.progress))
        return compiled_bound.bound_terms(model, batch, self._beta(batch) / n, noise, settings)

    def _parts(self, generator: Generator) -> dict[str, Any]:
        from boltzhash.training.distributions import BernoulliMixturePrior, FairBits
        from boltzhash.training.gradients import make_estimator

        own = self._objective
        prior = (
            BernoulliMixturePrior(own.prior_groups, self.n_bits, generator)
            if own.prior_groups
            else FairBits()
        )
        return {"prior": prior, "gradient": make_estimator(own.gradient, self.n_bits, generator)}

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        if self._objective.ranking:
            return documents._replace(companions=weak_triplets(matrix))
        return documents

    def _encoded(self, model: Autoencoder, batch: Batch) -> tuple[dict[str, Tensor], Tensor | None]:
        """The network's outputs, and the locations of codes to contrast with, if a method has them."""
        return model.encoder(batch.inputs, batch.generator), None

    def _contrast(self, location: Tensor, beside: Tensor) -> Tensor:
        """The weighted contrast with those codes."""
        raise NotImplementedError

    def _contrast_weight(self) -> float:
        return 0.0

    def _compares_bits(self) -> bool:
        """Whether the contrast is between codes, not between the means of their bits."""
        return True

    def _bytes_of_model(self) -> int:
        a_word = 8 * self._training.batch_size * self._n_networks()
        return super()._bytes_of_model() + a_word * self._text.max_words

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
        if self._objective.ranking:
            check_labeller()
