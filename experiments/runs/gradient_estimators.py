"""Bias and variance of the gradient estimators on a decoder like the one that is trained.

    python -m experiments.runs.gradient_estimators   # a minute on one core; make tables draws

f(s) = −log p(x | s) for a few documents: a linear decoder with random weights, eight bits, and words
drawn from it at a code of each document. The posterior has |logit| the same on all bits, from nearly
undecided to sure; one bit in four leans away from the code the words were drawn from. Its exact
gradient is known from all 256 codes. All documents together are one long gradient g:

- *bias*, the norm of the mean error over the norm of g. It is never 0 in a finite number of draws:
  ``noise`` is the value that an unbiased estimator would have.
- *variance* of one draw, summed over the entries, over the squared norm of g.

RELAX is trained on these documents before it is measured. REINFORCE is REBAR without its control
variate.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from boltzhash.training.distributions import Bernoulli, enumerate_codes
from boltzhash.training.gradients import REBAR, GradientEstimator, GumbelSoftmax, make_estimator
from experiments.results.files import rounded, write
from experiments.runs.runner import circumstances

Record = dict[str, Any]

N_BITS, N_WORDS, DOCUMENTS, LENGTH = 8, 50, 8, 40
BATCHES, DRAWS_PER_BATCH = 30, 1000
TRAINING_STEPS, TRAINING_DRAWS = 300, 32
CONFIDENCES = np.geomspace(0.1, 5, 7)
TEMPERATURE = 0.5  # of both Gumbel-softmaxes; REBAR and RELAX have it as their default


class Problem(NamedTuple):
    """Some documents, the decoder, and which way every bit leans."""

    weights: Tensor
    counts: Tensor  # (documents, words)
    leanings: Tensor  # (documents, bits), +1 or −1

    @classmethod
    def draw(cls, seed: int) -> Problem:
        generator = torch.Generator().manual_seed(seed)
        weights = torch.randn(N_BITS, N_WORDS, generator=generator, dtype=torch.float64)
        shape = (DOCUMENTS, N_BITS)
        codes = torch.randint(2, shape, generator=generator).double()
        words = torch.multinomial(
            (codes @ weights).softmax(-1), LENGTH, replacement=True, generator=generator
        )
        counts = nn.functional.one_hot(words, N_WORDS).sum(1).double()
        flipped = torch.rand(shape, generator=generator) < 0.25
        return cls(weights, counts, torch.where(flipped, 1 - 2 * codes, 2 * codes - 1))

    def loss(self, s: Tensor) -> Tensor:
        """−log p(x | s) for codes (draws, documents, bits)."""
        return -((s @ self.weights).log_softmax(-1) * self.counts).sum(-1)

    def exact_gradient(self, confidence: float) -> Tensor:
        logits = (confidence * self.leanings).requires_grad_()
        codes = enumerate_codes(N_BITS).double().unsqueeze(1)
        mean = (Bernoulli(logits).log_prob(codes).exp() * self.loss(codes)).sum()
        (gradient,) = torch.autograd.grad(mean, logits)
        return gradient


def estimators() -> dict[str, GradientEstimator]:
    generator = torch.Generator().manual_seed(1)
    fixed = (TEMPERATURE, TEMPERATURE)
    made: dict[str, GradientEstimator] = {
        "straight-through": make_estimator("straight-through", N_BITS, generator),
        "gumbel-softmax, hard": GumbelSoftmax(fixed),
        "gumbel-softmax, soft": GumbelSoftmax(fixed, hard=False),
        "reinforce": REBAR(eta=0.0),
    }
    for name in ("arm", "rebar", "relax"):
        made[name] = make_estimator(name, N_BITS, generator)
    return made


def train(estimator: nn.Module, problem: Problem, logits: Tensor) -> None:
    """Fit the control variate while nothing else moves."""
    generator = torch.Generator().manual_seed(2)
    optimiser = torch.optim.Adam(estimator.parameters(), lr=0.01)
    for _ in range(TRAINING_STEPS):
        rows = logits.expand(TRAINING_DRAWS, -1, -1)
        value, _ = estimator(rows, problem.loss, generator, torch.tensor(0.0))
        optimiser.zero_grad()
        value.mean().backward()
        optimiser.step()


def measure_one(name: str, estimator: GradientEstimator, problem: Problem, x: float) -> Record:
    logits = x * problem.leanings
    if isinstance(estimator, nn.Module):
        estimator.double()
        train(estimator, problem, logits)
    exact = problem.exact_gradient(x)
    generator = torch.Generator().manual_seed(3)
    errors, squares = [], []  # of each batch: the mean error, and its mean square
    for _ in range(BATCHES):
        rows = logits.repeat(DRAWS_PER_BATCH, 1, 1).requires_grad_()
        value, _ = estimator(rows, problem.loss, generator, torch.tensor(0.0))
        (gradients,) = torch.autograd.grad(value.sum(), rows)
        errors.append((gradients - exact).mean(0))
        squares.append((gradients - exact).square().mean(0))
    n = BATCHES * DRAWS_PER_BATCH
    batches = torch.stack(errors)
    mean = batches.mean(0)
    variance = float((torch.stack(squares).mean(0) - mean.square()).sum()) * n / (n - 1)
    norm = float(exact.norm())
    left_out = (BATCHES * mean - batches) / (BATCHES - 1)  # the jackknife
    norms = left_out.flatten(1).norm(dim=1)
    spread = float((norms - norms.mean()).square().sum()) * (BATCHES - 1) / BATCHES
    return {
        "estimator": name,
        "x": float(x),
        "exact_norm": norm,
        "bias": float(mean.norm()) / norm,
        "standard_error": math.sqrt(spread) / norm,
        "noise": math.sqrt(variance / n) / norm,
        "variance": variance / norm**2,
    }


def main() -> None:
    problem = Problem.draw(seed=0)
    points = [
        measure_one(name, estimator, problem, float(x))
        for x in CONFIDENCES
        for name, estimator in estimators().items()
    ]
    result = {
        "run": "bias-and-variance",
        "measure": "bias and variance relative to the exact gradient of E[-log p(x | s)]",
        "bits": N_BITS,
        "words": N_WORDS,
        "documents": DOCUMENTS,
        "words_per_document": LENGTH,
        "draws": BATCHES * DRAWS_PER_BATCH,
        "temperature": TEMPERATURE,
        "relax_training_steps": TRAINING_STEPS,
        "points": points,
        **circumstances("cpu"),
    }
    write("gradient-estimators", rounded(result))


if __name__ == "__main__":
    main()
