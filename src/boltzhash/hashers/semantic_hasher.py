"""SemanticHasher: what ``boltzhash index`` learns, a variational autoencoder taught by neighbours.

docs/models/semantic_hasher.md has the model and what each part of it adds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy import sparse

from boltzhash.arguments import Constraints, check
from boltzhash.hashers.shared import deep, neighbour_choice
from boltzhash.hashers.shared.boltzmann import CONTRAST_TEMPERATURE, BoltzmannHasher
from boltzhash.hashers.shared.labels import with_same_label
from boltzhash.hashers.shared.neighbour_choice import (
    FEWEST,
    MOST,
    Locations,
    NeighbourChoice,
    n_neighbours,
)
from boltzhash.hashers.shared.neighbours import SCALES, RowNumbers, Vectors, nearest_vectors
from boltzhash.hashers.shared.settings import Neighbours, Networks, Recipe, with_changes
from boltzhash.storage.folders import Arrays

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents
    from boltzhash.training.networks import Autoencoder, Linear, TopicDecoder
    from boltzhash.training.rows import Rows
    from boltzhash.training.tensors import Tensor

CONTRAST_BITS = 32  # the length of code at which ``contrast`` is the weight itself
ONE_NETWORK_BITS = 32  # longer codes are made by two networks
SHORT_BITS = 16  # up to here the contrast is on means, and neighbours are drawn evenly

# The first of two trainings, whose codes find neighbours for the second.
FIRST_BITS = 64
FIRST_SHARE = 0.8  # of the epochs of the second
BLOCK = 4096  # documents whose locations are computed at a time

# Codes whose neighbourhoods are topics.
TOPICS: Recipe = {
    **with_changes(
        BoltzmannHasher.RECIPE,
        objective__target="root-tfidf",
        objective__kl_weight=(0.3, 0.1),
        objective__kl_ramp=0.25,
        objective__decoder_noise=(0.2, 0.2),
    ),
    "network": Networks(**vars(BoltzmannHasher.RECIPE["network"]), networks=None),
    "neighbours": Neighbours(
        count=None,
        dimensions=SCALES,
        second_training=None,
        nearness=None,
        share=0.3,
        contrast=2.0,
        contrast_codes=None,
        with_label=0.5,
    ),
}
# Codes that tell more finely what a document is about, beside an index of its words; with fewer steps
# they find less (docs/retrieval.md).
QUESTIONS: Recipe = with_changes(
    TOPICS,
    text__stem=True,
    neighbours__count=20,
    neighbours__dimensions=(64,),
    neighbours__second_training=False,
    neighbours__nearness=1.0,
    neighbours__share=0.2,
    neighbours__contrast=1.0,
    neighbours__contrast_codes="means",
    training__least_steps=deep.MINIMUM_STEPS,
)
PURPOSES = {"topics": TOPICS, "questions": QUESTIONS}

logger = logging.getLogger("boltzhash")


class _NotWorthItError(Exception):
    """Ends a first training whose codes are worse than what there was without it."""


class SemanticHasher(BoltzmannHasher):
    """Hash documents so that codes stand for a document and for those near to it.

    A variational autoencoder over words, which also learns from near documents: in every epoch some of
    the words of one are asked for as well, and its code should be nearer than those of others. Near is
    what latent semantic analysis says, or the codes of a first training.

    ``SemanticHasher(64).fit(texts)`` is all that most users need. Common settings: ``n_bits``;
    ``purpose="questions"`` for documents that are searched; ``text=Text(language=…, stem=True)`` for
    texts that are not English; ``random_state``; ``verbose``. All else has defaults that were chosen on
    public corpora (docs/quality.md), and is there for research.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    purpose : {"topics", "questions"}, default="topics"
        The recipe that left-out settings follow (``PURPOSES``). "topics": near codes are of one topic.
        "questions": for documents that are asked questions, beside an index of their words, as
        ``boltzhash index`` learns: stems, few neighbours, one training.
    rank : int or "full", default=0
        Rank v of the couplings between bits, as in :class:`boltzhash.CorrSH`; 0 for independent bits.
    n_components : int, default=1
        k, the components of the mixture in the bound, as in :class:`boltzhash.CorrSH`; independent
        bits need one.
    neighbours : Neighbours or None, default=None
        How neighbours are found and what is learned from them.
    network : Networks or None, default=None
        The inference networks, and how they start.
    objective : Bound or None, default=None
        What is maximised beside the contrast with neighbours.
    training : Training or None, default=None
        How long, how fast and where.
    text : Text or None, default=None
        How texts become tf-idf. Not used when a matrix is given.
    output : {"codes", "bits"}, default="codes"
        What ``transform`` gives.
    random_state : int, RandomState or None, default=0
        Same seed, same machine, same codes. None draws a new seed.
    verbose : bool, default=False
        Show how far a fit is: :mod:`boltzhash.progress`.

    Attributes
    ----------
    weights_ : dict of float32 arrays
        The inference networks, the decoder and whatever else was learned.
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
        Number of words.
    neighbour_choice_ : NeighbourChoice or None
        Which neighbours were taken, and by what; None without any.

    References
    ----------
    This project's own method. Its bound: Zheng, Su, Shen and Chen (2020). Generative Semantic Hashing
    Enhanced via Boltzmann Machines. ACL.

    Examples
    --------
    >>> from boltzhash import SemanticHasher, Training
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> short = Training(epochs=5)
    >>> hasher = SemanticHasher(16, training=short).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)

    Codes from vectors that you already have, here two numbers per text:

    >>> vectors = np.array([[0.9, 0.1], [0.8, 0.3], [0.1, 0.8], [0.2, 0.9]])
    >>> hasher = SemanticHasher(16, training=short).fit(texts, features=vectors)
    >>> hasher.transform(features=[[0.7, 0.2]]).shape
    (1, 2)

    Labels where there are some, None elsewhere:

    >>> labels = (["sky", "sky", None, None] + ["food", "food", None, None]) * 5
    >>> documents = [texts[i // 2 % 4] for i in range(40)]
    >>> hasher = SemanticHasher(16, training=short).fit(documents, labels)
    >>> hasher.labelling_
    Labelling(documents=20, labels=2, agreement=1.0)
    """

    RECIPE: ClassVar[Recipe] = TOPICS
    constraints: ClassVar[Constraints] = {"purpose": [*PURPOSES]}

    neighbour_choice_: NeighbourChoice | None
    _given_neighbours: RowNumbers | None = None  # of a first training

    def __init__(
        self,
        n_bits: int = 64,
        *,
        purpose: str = "topics",
        rank: int | str = 0,
        n_components: int = 1,
        neighbours: Neighbours | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, rank=rank, n_components=n_components, **shared)
        self.purpose = purpose
        self.neighbours = neighbours

    def _own_recipe(self) -> Recipe:
        check("purpose", self.purpose, *PURPOSES)
        return PURPOSES[self.purpose]

    @property
    def _network(self) -> Networks:
        return self._group("network")  # type: ignore[no-any-return]

    @property
    def _neighbours(self) -> Neighbours:
        return self._group("neighbours")  # type: ignore[no-any-return]

    def _documents(self, documents: Documents, matrix: sparse.csr_matrix, seed: int) -> Documents:
        documents = super()._documents(documents, matrix, seed)
        self.neighbour_choice_ = None
        own, n = self._neighbours, matrix.shape[0]
        k = n_neighbours(n) if own.count is None else own.count
        if k:
            near, nearness = self._near(documents, matrix, k, seed), self._nearness()
            if documents.labels is not None:
                random = np.random.default_rng(seed)
                near = with_same_label(near, documents.labels, own.with_label, random)
                nearness = 1.0  # documents of the same label stand last, and are not far
            documents = documents._replace(
                neighbours=near, neighbour_share=own.share, nearness=nearness
            )
        return documents

    def _near(
        self, documents: Documents, matrix: sparse.csr_matrix, k: int, seed: int
    ) -> RowNumbers:
        """The neighbours of each document: (n, k)."""
        if self._given_neighbours is not None:
            return self._given_neighbours
        if isinstance(documents.inputs, np.ndarray):
            k = min(k, FEWEST) if self._neighbours.count is None else k
            self.neighbour_choice_ = NeighbourChoice(k)
            return nearest_vectors(documents.inputs, k)
        own = self._neighbours
        near, self.neighbour_choice_ = neighbour_choice.choose_neighbours(
            matrix,
            k,
            tuple(own.dimensions),
            own.second_training,
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
        first = type(self)(**self.get_params(deep=False)).set_params(
            n_bits=FIRST_BITS,
            network__networks=None,
            training__epochs=epochs,
            random_state=seed,
            neighbours__contrast_codes=self._compared_codes(),  # as in the second
            neighbours__nearness=self._nearness(),
        )
        first._given_neighbours = near
        first._progress_shown = "finding neighbours"
        first.tfidf_, first.feature_scaling_ = None, None
        first.n_features_in_ = matrix.shape[1]

        def ask(first: SemanticHasher) -> None:
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
        own = self._neighbours.contrast_codes
        return own if own is not None else "means" if self.n_bits <= SHORT_BITS else "bits"

    def _compares_bits(self) -> bool:
        return self._compared_codes() == "bits"

    def _nearness(self) -> float:
        own = self._neighbours.nearness
        return own if own is not None else 1.0 if self.n_bits <= SHORT_BITS else 2.0

    def _n_networks(self) -> int:
        own = self._network.networks
        if own is not None:
            return own
        return 2 if self.n_bits > ONE_NETWORK_BITS and self.rank != "full" else 1

    def _bytes_of_model(self) -> int:
        near = self._neighbours
        if near.count == 0 or near.second_training is False:
            return super()._bytes_of_model()
        first = type(self)(**self.get_params(deep=False)).set_params(
            n_bits=FIRST_BITS, network__networks=None, neighbours__second_training=False
        )
        units = self._n_networks() * self._network.hidden_units
        waiting = 4 * self._text.max_words * (units + self.n_bits)
        return max(super()._bytes_of_model(), first._bytes_of_model() + waiting)

    def _more_bytes_a_document(self) -> int:
        """Vectors of more than 64 latent dimensions, of which five copies live at once; neighbours."""
        near = self._neighbours
        if near.count == 0:
            return 0
        return 20 * max(0, max(near.dimensions) - 64) + 8 * (near.count or MOST)

    def _encoded(self, model: Autoencoder, batch: Batch) -> tuple[dict[str, Tensor], Tensor | None]:
        """The networks' outputs for the documents, and the locations of their neighbours' codes."""
        if not self._neighbours.contrast or batch.neighbour is None:
            return super()._encoded(model, batch)
        return model.encoder.with_neighbour(
            batch.inputs, batch.neighbour, "location", batch.generator
        )

    def _contrast(self, location: Tensor, beside: Tensor) -> Tensor:
        """The weighted contrast between the codes of the documents and of their neighbours."""
        from boltzhash.training.objectives import contrast_of_parts, mean_codes, sign_codes

        codes_of = sign_codes if self._compares_bits() else mean_codes
        n, one, other = self._n_networks(), codes_of(location), codes_of(beside)
        return self._contrast_weight() * contrast_of_parts(one, other, n, CONTRAST_TEMPERATURE)

    def _contrast_weight(self) -> float:
        return self._neighbours.contrast * CONTRAST_BITS / self.n_bits

    def _check_params(self) -> None:
        super()._check_params()
        networks = self._network.networks
        if networks is None:
            return
        if networks > 1 and self.rank == "full":
            raise ValueError(
                f'rank="full" couples the bits of one network, got networks={networks}'
            )
        if self.n_bits % networks:
            raise ValueError(
                f"n_bits={self.n_bits} cannot be divided among {networks} networks equally"
            )
