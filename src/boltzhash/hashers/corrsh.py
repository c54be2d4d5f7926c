"""CorrSH: generative semantic hashing with a correlated, Boltzmann-machine posterior.

Zheng, Su, Shen and Chen, "Generative Semantic Hashing Enhanced via Boltzmann Machines", ACL 2020.
docs/models/corrsh.md maps its symbols to the names used here.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from boltzhash.arguments import check
from boltzhash.hashers.shared.boltzmann import BoltzmannHasher
from boltzhash.hashers.shared.settings import Recipe, with_changes


class CorrSH(BoltzmannHasher):
    """Hash documents with a variational autoencoder whose bits are correlated.

    The defaults are the paper's: the bound of eq. 24 with its energies (β = 1), the straight-through
    factor ½ of eq. 19, no noise before the decoder, two layers of 500 units, Adam at 1e-3 that decays
    every 10,000 steps, v = k = 10. Where the paper is silent they are the authors' code: batches of 100,
    100 epochs, the 0/1 word mask as target, a decoder that starts at random, a decay of .96. The paper
    chooses dropout from .1 and .2 on validation labels; the code has .2.
    :meth:`as_published` is the authors' code. :class:`boltzhash.SemanticHasher` is what
    ``boltzhash index`` learns.

    Parameters
    ----------
    n_bits : int, default=64
        Length m of the code, a multiple of 8.
    rank : int or "full", default=10
        Rank v of the couplings in Σ = D + UUᵀ. 0 makes the posterior factorise; "full" learns a whole
        Cholesky factor, m(m+1)/2 numbers per document.
    n_components : int, default=10
        k, the components of the mixture h_k: more make the bound tighter.
    objective : Bound or None, default=None
        The bound, the gradient, β (``kl_weight``), and the parts of other methods that the paper says
        its posterior goes with: a mixture prior (``prior_groups``) and a ranking loss (``ranking``).
    network : Network or None, default=None
        The inference network, and how it starts.
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
        The inference network, the decoder and whatever else was learned.
    history_ : list of EpochRecord
        Reconstruction and KL in nats per document, distinct codes and bit balance, one record per epoch.
    tfidf_ : TfIdf or None
        Vocabulary and weights, None when fitted on a matrix.
    n_features_in_ : int
        Number of words.

    References
    ----------
    Zheng, Su, Shen and Chen (2020). Generative Semantic Hashing Enhanced via Boltzmann Machines. ACL.

    Examples
    --------
    >>> from boltzhash import CorrSH
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> hasher = CorrSH(n_bits=16, rank=2).fit(texts)
    >>> hasher.transform(["the moons of planets"]).shape
    (1, 2)
    """

    RECIPE: ClassVar[Recipe] = with_changes(
        BoltzmannHasher.RECIPE,
        objective__bound="printed",
        objective__gradient="straight-through-half",
        objective__target="words",
        objective__kl_weight=(1.0, 1.0),
        objective__kl_ramp=1.0,
        objective__decoder_noise=(0.0, 0.0),
        network__input_length=None,
        network__unigram_start=False,
        training__epochs=100,
        training__batch_size=100,
        training__learning_rate=1e-3,
        training__learning_rate_decay="steps",
    )

    @classmethod
    def as_published(
        cls, n_bits: int = 64, *, rank: int | str = 10, n_components: int = 10, **changes: Any
    ) -> Self:
        """The authors' code, which is not quite what the paper prints.

        The bound leaves out its two energies, the straight-through factor is 1, the KL weight rises by
        1 / (50 (v + k)) per epoch, and noise from 1.0 to .9 is added before the decoder.
        docs/models/corrsh.md has what each of them does. ``changes`` are names of ``set_params``.
        """
        for name, value in (("rank", rank), ("n_components", n_components)):
            check(name, value, *cls.constraints[name])
        v = n_bits if rank == "full" else int(rank)
        epochs = changes.get("training__epochs", 100)
        risen = epochs / (50 * (v + n_components))  # of the KL weight, if it were not capped at 1
        settings = {
            "objective__bound": "rearranged",
            "objective__gradient": "straight-through",
            "objective__kl_weight": (0.0, min(1.0, risen)),
            "objective__kl_ramp": 1 / max(1.0, risen),
            "objective__decoder_noise": (1.0, 0.9),
        }
        hasher = cls(n_bits, rank=rank, n_components=n_components)
        return hasher.set_params(**{**settings, **changes})
