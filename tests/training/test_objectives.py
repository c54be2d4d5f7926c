"""The terms of the objective against formulas written by hand, and β on the whole regulariser."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from boltzhash.hashers import NASH, VDSH, SemanticHasher
from boltzhash.training import objectives
from boltzhash.training.batches import Batch, Terms
from boltzhash.training.distributions import (
    Bernoulli,
    BernoulliMixture,
    Boltzmann,
    LowRankCovariance,
)
from boltzhash.training.loop import generator_for
from boltzhash.training.networks import SparseLinear, dropped_relu
from oracles import normal, regulariser_as_printed, rows_of

N_WORDS = 7


MATRICES: dict[str, list[list[float]]] = {
    "one row": [[0, 2.5, 0, 0, 0, 1, 0]],
    "one row, no word": [[0.0] * N_WORDS],
    "empty rows first, between and last": [
        [0.0] * N_WORDS,
        [1, 0, 0, 0, 0, 0, 3],
        [0.0] * N_WORDS,
        [0.0] * N_WORDS,
        [0, 0.5, 0.5, 0.5, 0, 0, 0],
        [0.0] * N_WORDS,
    ],
    "equal rows and equal values": [[2, 2, 2, 0, 0, 0, 2], [2, 2, 2, 0, 0, 0, 2]],
    "every word": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [7, 6, 5, 4, 3, 2, 1]],
}
every_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())


@every_matrix
def test_sparse_rows_are_the_matrix(matrix: list[list[float]]) -> None:
    rows = rows_of(matrix)
    expected_rows = [i for i, row in enumerate(matrix) for x in row if x != 0]
    assert rows.n_rows == len(matrix)
    assert rows.row_numbers().tolist() == expected_rows
    assert rows.dense(N_WORDS).tolist() == np.asarray(matrix).tolist()
    assert rows.dense(N_WORDS + 2)[:, N_WORDS:].eq(0).all()


def likelihood_by_hand(logits: list[float], target: list[float]) -> float:
    """Σ_w t_w log softmax_w, word by word as eq. 2 reads."""
    total = sum(math.exp(x) for x in logits)
    return sum(t * math.log(math.exp(x) / total) for x, t in zip(logits, target, strict=True))


@every_matrix
def test_word_log_likelihood_by_hand(matrix: list[list[float]]) -> None:
    """Both branches, the gathered and the dense one."""
    logits = 2 * normal(1, len(matrix), N_WORDS)
    expected = [
        likelihood_by_hand(row, target) for row, target in zip(logits.tolist(), matrix, strict=True)
    ]
    gathered = objectives.word_log_likelihood(logits, rows_of(matrix))
    dense = objectives.word_log_likelihood(logits, rows_of(matrix).dense(N_WORDS))
    assert gathered.tolist() == pytest.approx(expected, rel=1e-12, abs=0)
    assert dense.tolist() == pytest.approx(expected, rel=1e-12, abs=0)


@every_matrix
def test_word_log_likelihood_gradient(matrix: list[list[float]]) -> None:
    """By finite differences, and t − (Σt) softmax in closed form, equal in both branches."""
    target = rows_of(matrix)
    logits = normal(2, len(matrix), N_WORDS).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: objectives.word_log_likelihood(x, target), (logits,))
    dense = torch.tensor(matrix, dtype=torch.float64)
    closed_form = dense - dense.sum(-1, keepdim=True) * logits.softmax(-1)
    for rows in (target, dense):
        value = objectives.word_log_likelihood(logits, rows).sum()
        (gradient,) = torch.autograd.grad(value, logits)
        torch.testing.assert_close(gradient, closed_form.detach(), rtol=1e-12, atol=1e-14)


def test_word_log_likelihood_of_large_logits() -> None:
    """Logits at which exp overflows even in float64."""
    logits = torch.tensor([[1000.0, 0.0, -1000.0]], dtype=torch.float64)
    value = objectives.word_log_likelihood(logits, rows_of([[1.0, 0.0, 2.0]]))
    assert value.item() == -4000


@every_matrix
@pytest.mark.parametrize("branch", ["gathered", "dense"])
def test_sparse_linear_is_a_matrix_product(matrix: list[list[float]], branch: str) -> None:
    """Forward, and backward to weight and bias, with a different weight on every output."""
    layer = SparseLinear(N_WORDS, 4, torch.Generator().manual_seed(0)).double()
    x = torch.tensor(matrix, dtype=torch.float64)
    output = layer(x if branch == "dense" else rows_of(matrix))
    expected = x @ layer.weight + layer.bias
    torch.testing.assert_close(output, expected, rtol=1e-13, atol=1e-14)
    weights = normal(3, *expected.shape)
    parameters = [layer.weight, layer.bias]
    gradients = torch.autograd.grad((weights * output).sum(), parameters)
    by_hand = [x.T @ weights, weights.sum(0)]
    for gradient, hand in zip(gradients, by_hand, strict=True):
        torch.testing.assert_close(gradient.as_subclass(Tensor), hand, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_expectation(rate: float) -> None:
    """Each entry is 0 or x / (1 − rate); the mean is x within 5 measured standard errors."""
    x = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    n = 20_000
    dropped = dropped_relu(x.expand(n, -1), rate, torch.Generator().manual_seed(0))
    assert all(
        column.unique().tolist() == pytest.approx(sorted([0.0, (value / (1 - rate)).item()]))
        for column, value in zip(dropped.T, x, strict=True)
    )
    error = dropped.std(0) / math.sqrt(n)
    assert ((dropped.mean(0) - x).abs() <= 5 * error).all()
    kept = (dropped != 0).double()
    both = kept[:, 0] * kept[:, 1]  # entries are dropped independently
    assert (both.mean() - (1 - rate) ** 2).abs() <= 5 * both.std() / math.sqrt(n)


def test_no_dropout_is_the_relu_and_draws_nothing() -> None:
    x = normal(4, 3, 5)
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    assert torch.equal(dropped_relu(x, 0.0, generator), x.clamp(min=0))
    assert torch.equal(generator.get_state(), before)


def test_regularisers_by_hand() -> None:
    """Both forms term by term in plain Python, two documents that must not be mixed (eq. 24)."""
    n, m, k, v = 2, 3, 2, 1
    location, deviation, factor = normal(1, n, m), normal(2, n, m).abs(), normal(3, n, m, v)
    r, prior_logits = normal(4, k, n, m), normal(5, n, m)
    s = torch.tensor([[1, 0, 1], [0, 1, 1]], dtype=torch.float64)
    s_tilde = torch.tensor([[0, 0, 1], [1, 1, 0]], dtype=torch.float64)
    printed = regulariser_as_printed(
        Boltzmann(location, LowRankCovariance(deviation, factor)),
        BernoulliMixture(r),
        Bernoulli(prior_logits),
        s,
        s_tilde,
    )
    rearranged = objectives.regulariser_rearranged(
        BernoulliMixture(r), Bernoulli(prior_logits), s_tilde
    )

    def probability(logits: list[float], code: list[float]) -> float:
        p = [1 / (1 + math.exp(-x)) for x in logits]
        return math.prod(q if bit else 1 - q for q, bit in zip(p, code, strict=True))

    def energy(i: int, code: list[float]) -> float:
        value = 0.0
        for a in range(m):
            value -= location[i, a].item() * code[a]
            for b in range(m):
                sigma = (factor[i, a] @ factor[i, b]).item()
                sigma += deviation[i, a].item() ** 2 if a == b else 0
                value -= 0.5 * code[a] * sigma * code[b]
        return value

    for i in range(n):
        code, tilde = s[i].tolist(), s_tilde[i].tolist()
        prior = prior_logits[i].tolist()
        h = sum(probability(r[j, i].tolist(), tilde) for j in range(k)) / k
        expected = math.log(probability(prior, code)) + energy(i, code)
        expected -= math.log(h) + energy(i, tilde)
        assert printed[i].item() == pytest.approx(expected, rel=1e-12)
        expected = math.log(probability(prior, tilde)) - math.log(h)
        assert rearranged[i].item() == pytest.approx(expected, rel=1e-12)


# --- β --------------------------------------------------------------------------------------------


class Step:
    """One step of SemanticHasher on a fixed batch, weights and seed; only β differs between calls."""

    def __init__(self, bound: str) -> None:
        self.bound = bound
        hasher = self._hasher((1.0, 1.0), 1.0)
        self.model = hasher._build(N_WORDS, torch.Generator().manual_seed(0)).double()

    def _hasher(self, kl_weight: tuple[float, float], kl_ramp: float) -> SemanticHasher:
        settings: dict[str, Any] = {"rank": 2, "n_components": 3, "network__hidden_units": 5}
        return SemanticHasher(8).set_params(
            objective__bound=self.bound,
            objective__kl_weight=kl_weight,
            objective__kl_ramp=kl_ramp,
            **settings,
        )

    def __call__(
        self, kl_weight: tuple[float, float], kl_ramp: float = 1.0, progress: float = 0.0
    ) -> Terms:
        rows = rows_of(MATRICES["every word"] + MATRICES["one row"])
        so_far = torch.tensor(progress, dtype=torch.float64)
        batch = Batch(rows, rows, so_far, torch.Generator().manual_seed(1))
        return self._hasher(kl_weight, kl_ramp)._step(self.model, batch)

    def gradient(self, value: Tensor) -> Tensor:
        parameters = list(self.model.parameters())
        parts = torch.autograd.grad(value, parameters, retain_graph=True, materialize_grads=True)
        return torch.cat([part.flatten() for part in parts])


@pytest.fixture(params=["printed", "rearranged"])
def step(request: pytest.FixtureRequest) -> Step:
    return Step(request.param)


def test_beta_multiplies_the_whole_regulariser(step: Step) -> None:
    """loss(β) = −reconstruction + β · KL, every term of it, in value and in gradient.

    A β on some terms only would leave energies without their counterpart in the printed form, and
    log Z would no longer cancel.
    """
    without, whole = step((0.0, 0.0)), step((1.0, 1.0))
    torch.testing.assert_close(without.loss, -without.reconstruction)
    assert whole.kl.abs() > 1e-3  # far above the tolerance below: β is seen
    start = step.gradient(without.loss)
    slope = step.gradient(whole.loss) - start
    assert slope.abs().max() > 1e-3
    for beta in (0.1, 0.5, 1.0, 3.0):
        terms = step((beta, beta))
        torch.testing.assert_close(terms.reconstruction, without.reconstruction, rtol=1e-12, atol=0)
        torch.testing.assert_close(terms.kl, whole.kl, rtol=1e-12, atol=0)
        torch.testing.assert_close(
            terms.loss, without.loss + beta * whole.kl, rtol=1e-12, atol=1e-13
        )
        torch.testing.assert_close(
            step.gradient(terms.loss), start + beta * slope, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize(
    ("progress", "beta"), [(0.0, 0.2), (0.25, 0.5), (0.5, 0.8), (0.75, 0.8), (1.0, 0.8)]
)
def test_beta_ramps_over_its_share_of_the_epochs(step: Step, progress: float, beta: float) -> None:
    terms = step((0.2, 0.8), kl_ramp=0.5, progress=progress)
    measured = (terms.loss + terms.reconstruction) / terms.kl
    assert measured.item() == pytest.approx(beta, rel=1e-12)


def test_the_gradient_passes_through_the_threshold_of_a_code() -> None:
    location = torch.randn(5, 8, generator=generator_for(0, 0)).requires_grad_()
    weights = torch.randn(5, 8, generator=generator_for(0, 1))
    signs, means = objectives.sign_codes(location), objectives.mean_codes(location)
    assert torch.equal(signs, torch.where(location > 0, 1.0, -1.0))
    of_signs, of_means = (
        torch.autograd.grad((weights * codes).sum(), location)[0] for codes in (signs, means)
    )
    torch.testing.assert_close(of_signs, of_means)


def test_neighbour_contrast_by_hand() -> None:
    """Both directions, document by document in plain Python, and its gradient."""
    one, other = normal(7, 4, 3), normal(8, 4, 3)
    value = objectives.neighbour_contrast(one, other, 0.2)

    def cosine(a: list[float], b: list[float]) -> float:
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))

    c = [[cosine(a, b) / 0.2 for b in other.tolist()] for a in one.tolist()]
    for i in range(4):
        row = math.log(sum(math.exp(c[i][j]) for j in range(4))) - c[i][i]
        column = math.log(sum(math.exp(c[j][i]) for j in range(4))) - c[i][i]
        assert value[i].item() == pytest.approx((row + column) / 2, rel=1e-12)
    leaves = (one.requires_grad_(), other.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: objectives.neighbour_contrast(a, b, 0.2), leaves)


LABELS = [[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("kind", ["gathered", "dense"])
def test_bernoulli_label_log_likelihood_by_enumeration(kind: str) -> None:
    """Over all 2³ sets of labels the probabilities sum to 1; a document without labels has none."""
    logits = 2 * normal(9, 3, 3)
    given = torch.tensor(LABELS, dtype=torch.float64)
    labels = rows_of(LABELS) if kind == "gathered" else given
    value = objectives.bernoulli_label_log_likelihood(logits, labels)
    for row in range(2):
        p = [1 / (1 + math.exp(-x)) for x in logits[row].tolist()]
        has = [share > 0 for share in LABELS[row]]
        by_hand = math.prod(q if y else 1 - q for q, y in zip(p, has, strict=True))
        assert value[row].item() == pytest.approx(math.log(by_hand), rel=1e-12)
    assert value[2].item() == 0
    sets = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * 3)
    each = objectives.bernoulli_label_log_likelihood(logits[:1].expand(8, 3), sets)[1:]
    empty = torch.nn.functional.logsigmoid(-logits[0]).sum().exp()
    assert (each.exp().sum() + empty).item() == pytest.approx(1, rel=1e-12)
    leaf = logits.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: objectives.bernoulli_label_log_likelihood(x, labels), (leaf,)
    )


@pytest.mark.parametrize("likelihood", ["softmax", "sigmoid"])
def test_labels_add_their_weighted_likelihood_and_leave_the_record_alone(likelihood: str) -> None:
    """loss(α) = loss(0) − α mean log p(y | s), in every step, and the reconstruction is of words."""
    rows = rows_of(MATRICES["every word"] + MATRICES["one row"], torch.float32)
    labels = rows_of([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]], torch.float32)
    for kind in (SemanticHasher, NASH, VDSH):
        losses = {}
        for alpha in (0.0, 1.0, 3.0):
            hasher = kind(8).set_params(
                network__hidden_units=5,
                network__dropout=0.0,
                objective__label_likelihood=likelihood,
            )
            hasher._alpha = alpha
            model = hasher._build(N_WORDS, torch.Generator().manual_seed(0), n_labels=2)
            where = (torch.tensor(0.0), torch.Generator().manual_seed(1))
            terms = hasher._step(model, Batch(rows, rows, *where, labels=labels))
            losses[alpha] = terms.loss.item()
            if alpha == 0:
                words = terms.reconstruction.item()
            assert terms.reconstruction.item() == pytest.approx(words, rel=1e-5)
        slope = losses[1.0] - losses[0.0]
        assert slope > 0.1
        assert losses[3.0] - losses[0.0] == pytest.approx(3 * slope, rel=1e-3)
