"""SNUH: Gaussian latents that are correlated along a graph of neighbours (Ou et al., 2021)."""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import Constraints, Number
from boltzhash.hashers.shared.deep import PUBLISHED_RECIPE, DeepHasher
from boltzhash.hashers.shared.inference import Floats, head, logistic_normal_mean
from boltzhash.hashers.shared.neighbours import (
    SCALES,
    LatentSemantics,
    RowNumbers,
    nearest_by_cosine,
    nearest_by_words,
    nearest_vectors,
)
from boltzhash.hashers.shared.settings import Graph, Recipe, with_changes
from boltzhash.hashers.shared.trees import spanning_trees, star_forests

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.distributions import Gaussian
    from boltzhash.training.networks import Autoencoder
    from boltzhash.training.tensors import Generator, Tensor


class SNUH(DeepHasher):
    """Hash documents with Gaussian latents whose prior is correlated among neighbours.

    The latents of all documents are one Gaussian, in which those of a document and of its neighbour have
    correlation λ; it is handled as a mixture of random spanning trees, whose bound is a sum over
    documents and edges. Posterior: N(σ(a(x) / T), diag(σ(x)²)), and along an edge a correlation that is
    inferred from both documents. A bit says whether the mean of its latent is above ½.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    graph : Graph or None, default=None
        The graph of near documents, and its trees.
    temperature : float, default=1.0
        T: a lower one makes the means go to 0 or 1.
    initial_range : float or None, default=None
        All weights of network and decoder start uniform within ± this, as published; None is one over
        the root of the number of inputs, as elsewhere here.
    **shared
        The arguments of :class:`DeepHasher`. ``network.hidden_units`` is 0, which makes mean, deviation
        and correlation linear in the document, as published. β is .2 throughout: means are above 0 and
        the prior's are not, so that in trainings too short to learn words first, it pulls all bits to 0
        if it does not begin lower. ``objective.decoder_noise`` is not used, since the latents are noisy
        themselves.

    References
    ----------
    Ou, Su, Yu, Liu, Wang, Zhao, Chen and Zheng (2021). Integrating Semantics and Neighborhood
    Information with Graph-Driven Generative Models for Document Retrieval. ACL.

    Examples
    --------
    >>> from boltzhash import SNUH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> SNUH(n_bits=16).fit(texts * 5).transform(["the moons of planets"]).shape
    (1, 2)
    """

    _edges_per_document: float  # of a tree, in this fit

    RECIPE: ClassVar[Recipe] = {
        **with_changes(DeepHasher.RECIPE, objective__kl_weight=(0.2, 0.2), network__hidden_units=0),
        "graph": Graph(
            neighbours=20,
            trees=10,
            tree="spanning",
            similarity="latent",
            correlation=0.99,
            edge_weight=1.0,
        ),
    }
    constraints: ClassVar[Constraints] = {
        "temperature": [Number(above=0)],
        "initial_range": [Number(above=0), None],
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        graph: Graph | None = None,
        temperature: float = 1.0,
        initial_range: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.graph = graph
        self.temperature = temperature
        self.initial_range = initial_range

    @property
    def _graph(self) -> Graph:
        return self._group("graph")  # type: ignore[no-any-return]

    @classmethod
    def as_published(cls, n_bits: int = 64, **changes: Any) -> Self:
        """The settings with which the authors' code starts if it is told nothing else.

        10 neighbours by the cosine of tf-idf, 10 forests of stars, λ = .99, T = .1, weights that
        start within ±.05, each word once as the target, tf-idf as it is, β = .05, Adam at 1e-3, 100
        epochs of batches of 128. The code counts the divergence of a document twice and that of an
        edge once: hence a KL weight of .1 and a ``graph.edge_weight`` of ½. The paper's figures are
        from settings that were searched for each corpus and length (docs/models/snuh.md).
        """
        published = {
            "graph__neighbours": 10,
            "graph__similarity": "tfidf",
            "graph__tree": "stars",
            "graph__edge_weight": 0.5,
            "initial_range": 0.05,
            "temperature": 0.1,
            "objective__kl_weight": (0.1, 0.1),
            "training__batch_size": 128,
            "network__dropout": 0.0,
        }
        return cls(n_bits).set_params(**{**PUBLISHED_RECIPE, **published, **changes})

    def bit_probabilities(self, X: Any = None, *, features: Any = None) -> Floats:
        """The mean of each latent, σ(a(x) / T): float64 (n_documents, n_bits).

        ``X`` and ``features`` are those of :meth:`transform`.
        """
        blocks = self._blocks(X, features)
        logits = [head(self._hidden(rows), self.weights_, "location") for rows in blocks]
        scaled = [part / self.temperature for part in logits]
        return np.concatenate([logistic_normal_mean(part, np.zeros_like(part)) for part in scaled])

    def _heads(self) -> dict[str, int]:
        return dict.fromkeys(("location", "deviation", "correlation"), self.n_bits)

    def _build(
        self, n_words: int, generator: Generator, n_inputs: int | None = None, n_labels: int = 0
    ) -> Autoencoder:
        from boltzhash.training.networks import start_within

        model = super()._build(n_words, generator, n_inputs, n_labels)
        if self.initial_range is not None:
            start_within(model, self.initial_range, generator)
        return model

    def _step(self, model: Autoencoder, batch: Batch) -> Terms:
        """The bound on a mixture of trees, from the documents of a batch and as many edges."""
        from boltzhash.training.batches import Terms
        from boltzhash.training.distributions import Gaussian

        outputs, *ends = self._encoded(model, batch)
        posterior = self._posterior(outputs)
        z = posterior.sample(batch.generator)
        likelihood = self._log_likelihood(model, z, batch)
        zeros = posterior.location.new_zeros(self.n_bits)
        kl = posterior.kl_divergence(Gaussian(zeros, zeros + 1))
        if ends:
            kl = kl + self._graph.edge_weight * self._edges_per_document * self._of_edges(*ends)
        loss = -(likelihood - self._beta(batch) * kl).mean()
        reconstruction = self._of_words(model, likelihood, z, batch)
        return Terms(loss, reconstruction, kl.mean(), outputs["location"] > 0)

    def _encoded(self, model: Autoencoder, batch: Batch) -> list[dict[str, Tensor]]:
        """What the network says about documents and about both ends of edges, seen at once."""
        from boltzhash.training.rows import stacked

        rows = reduce(stacked, batch.companions, batch.inputs)
        n_parts = 1 + len(batch.companions)
        heads = model.encoder(rows, batch.generator)
        split = {name: values.chunk(n_parts) for name, values in heads.items()}
        return [{name: parts[i] for name, parts in split.items()} for i in range(n_parts)]

    def _posterior(self, outputs: dict[str, Tensor]) -> Gaussian:
        """q(z | x) = N(σ(a / T), diag(softplus(d)²))."""
        from boltzhash.training.distributions import Gaussian

        mean = (outputs["location"] / self.temperature).sigmoid()
        return Gaussian.from_outputs(mean, outputs["deviation"])

    def _of_edges(self, one: dict[str, Tensor], other: dict[str, Tensor]) -> Tensor:
        """What each edge adds to the divergence: γ = tanh(½ (c(x_i) + c(x_j)) + artanh λ).

        Training begins near γ = λ. From γ = 0, edges would at first outweigh the words of short texts.
        """
        from boltzhash.training.distributions import GaussianPair, edge_divergence

        inferred = (one["correlation"] + other["correlation"]) / 2
        prior = self._graph.correlation
        fisher = inferred + math.atanh(prior)
        pair = GaussianPair(self._posterior(one), self._posterior(other), fisher)
        return edge_divergence(pair, prior)

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        """Every epoch as many edges as documents, drawn from all trees: on average their mean."""
        self._edges_per_document = 0.0
        own, n = self._graph, matrix.shape[0]
        k = min(own.neighbours, n // 10)
        if k == 0:
            return documents
        near = self._nearest(documents, matrix, k, seed)
        drawn = star_forests if own.tree == "stars" else spanning_trees
        edges = drawn(near, own.trees, np.random.default_rng(seed))
        if len(edges) == 0:
            return documents
        self._edges_per_document = len(edges) / own.trees / n

        def draw(rng: np.random.Generator) -> list[RowNumbers]:
            return list(edges[rng.integers(len(edges), size=n)].T)

        return documents._replace(companions=draw)

    def _nearest(
        self, documents: Documents, matrix: sparse.csr_matrix, k: int, seed: int
    ) -> RowNumbers:
        """Row numbers (n, k) of the nearest others of each document."""
        if isinstance(documents.inputs, np.ndarray):
            return nearest_vectors(documents.inputs, k)
        if self._graph.similarity == "tfidf":
            return nearest_by_words(matrix, k)
        semantics = LatentSemantics(matrix, SCALES, np.random.RandomState(seed))
        return nearest_by_cosine(semantics(matrix), k)
