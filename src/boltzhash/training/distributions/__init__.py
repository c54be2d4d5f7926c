"""Distributions over binary codes, written with torch: what training samples from and evaluates.

Every distribution is batched over its leading dimensions and offers ``sample``, ``log_prob``,
``mean`` and ``enumerate_support``; small cases are checked by enumerating all codes. Codes s have shape
(..., n_bits), their log probabilities (...).
"""

from boltzhash.training.distributions.bernoulli import Bernoulli, FairBits, enumerate_codes
from boltzhash.training.distributions.boltzmann import (
    Boltzmann,
    CholeskyCovariance,
    Covariance,
    LowRankCovariance,
    cholesky_boltzmann,
    low_rank_boltzmann,
)
from boltzhash.training.distributions.gaussian import Gaussian
from boltzhash.training.distributions.mixture import BernoulliMixture
from boltzhash.training.distributions.pair import GaussianPair, edge_divergence
from boltzhash.training.distributions.priors import (
    BernoulliMixturePrior,
    GaussianMixturePrior,
    MixturePrior,
)

__all__ = [
    "Bernoulli",
    "BernoulliMixture",
    "BernoulliMixturePrior",
    "Boltzmann",
    "CholeskyCovariance",
    "Covariance",
    "FairBits",
    "Gaussian",
    "GaussianMixturePrior",
    "GaussianPair",
    "LowRankCovariance",
    "MixturePrior",
    "cholesky_boltzmann",
    "edge_divergence",
    "enumerate_codes",
    "low_rank_boltzmann",
]
