"""The machines against enumeration: every state of v and h of a tiny one, and its exact likelihood."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from scipy import sparse, stats
from torch import Tensor

from boltzhash.training.distributions.bernoulli import enumerate_codes
from boltzhash.training.rbm import (
    RBM,
    Unrolled,
    binary_log_likelihood,
    binary_mean,
    contrastive_divergence,
    free_energy,
    hidden_probabilities,
    sample_bits,
    start_rbm,
    statistics,
    visible_logits,
    word_mean,
)
from boltzhash.training.rows import SparseRows

N_VISIBLE, N_HIDDEN, N_WORDS = 4, 3, 3


def machine(seed: int = 0, n_visible: int = N_VISIBLE, n_hidden: int = N_HIDDEN) -> RBM:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n_visible, n_hidden), (n_visible,), (n_hidden,))
    return RBM(*(torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes))


def hidden_states(n_hidden: int = N_HIDDEN) -> Tensor:
    return enumerate_codes(n_hidden).double()


def visible_states(kind: str) -> Tensor:
    """Every v: all binary ones, or the counts of all sequences of N_WORDS words, repeats included."""
    if kind == "binary":
        return enumerate_codes(N_VISIBLE).double()
    sequences = itertools.product(range(N_VISIBLE), repeat=N_WORDS)
    eye = torch.eye(N_VISIBLE, dtype=torch.float64)
    return torch.stack([eye[list(sequence)].sum(0) for sequence in sequences])


def negative_energies(v: Tensor, rbm: RBM) -> Tensor:
    """−E(v, h) = vᵀW h + bᵀv + cᵀh of every v (rows) with every h (columns)."""
    h = hidden_states(len(rbm.hidden_bias))
    return v @ rbm.weight @ h.T + (v @ rbm.visible_bias)[:, None] + h @ rbm.hidden_bias


def log_likelihood(v: Tensor, rbm: RBM, kind: str) -> Tensor:
    """Mean log p(v), the normaliser by enumeration of v and h."""
    log_z = negative_energies(visible_states(kind), rbm).logsumexp((0, 1))
    return negative_energies(v, rbm).logsumexp(1).mean() - log_z


def sparse_rows(dense: Tensor) -> SparseRows:
    rows = sparse.csr_matrix(dense.numpy())
    return SparseRows(*(torch.from_numpy(part) for part in (rows.indices, rows.data, rows.indptr)))


kinds = pytest.mark.parametrize("kind", ["binary", "words"])


@kinds
def test_free_energy_sums_the_hidden_units_out(kind: str) -> None:
    v, rbm = visible_states(kind), machine()
    torch.testing.assert_close(-free_energy(v, rbm), negative_energies(v, rbm).logsumexp(1))


@kinds
def test_hidden_probabilities_are_those_of_the_joint(kind: str) -> None:
    v, rbm = visible_states(kind), machine()
    conditional = negative_energies(v, rbm).softmax(1)  # p(h | v) of every h
    torch.testing.assert_close(hidden_probabilities(v, rbm), conditional @ hidden_states())


def test_binary_visible_units_given_hidden_are_those_of_the_joint() -> None:
    v, rbm, h = visible_states("binary"), machine(), hidden_states()
    conditional = negative_energies(v, rbm).softmax(0)  # p(v | h) of every v
    logits = visible_logits(h, rbm)
    torch.testing.assert_close(binary_mean(logits), conditional.T @ v)
    each = torch.stack([binary_log_likelihood(logits, row.expand_as(logits)) for row in v])
    torch.testing.assert_close(each, conditional.log())


def test_words_given_hidden_are_multinomial() -> None:
    sequences, rbm, h = visible_states("words"), machine(), hidden_states()
    conditional = negative_energies(sequences, rbm).softmax(0)
    counts, which = sequences.unique(dim=0, return_inverse=True)
    grouped = torch.zeros(len(counts), len(h), dtype=torch.float64).index_add(0, which, conditional)
    logits = visible_logits(h, rbm)
    expected = [
        stats.multinomial(N_WORDS, p.numpy()).pmf(counts.numpy()) for p in logits.softmax(-1)
    ]
    np.testing.assert_allclose(grouped.T, expected, rtol=1e-12)
    totals = torch.full((len(h),), float(N_WORDS), dtype=torch.float64)
    torch.testing.assert_close(word_mean(logits, totals), conditional.T @ sequences)


def test_constrained_poisson_given_its_total_is_the_words_model() -> None:
    """Independent Poisson counts with rates N softmax, conditioned on their sum being N."""
    rbm, h = machine(), hidden_states()[5:6]
    totals = torch.full((1,), float(N_WORDS), dtype=torch.float64)
    rates = word_mean(visible_logits(h, rbm), totals)[0].numpy()
    counts = visible_states("words").unique(dim=0).numpy()
    weights = stats.poisson(rates).pmf(counts).prod(1)
    multinomial = stats.multinomial(N_WORDS, rates / N_WORDS).pmf(counts)
    np.testing.assert_allclose(weights / weights.sum(), multinomial, rtol=1e-12)


@kinds
def test_statistics_less_the_models_own_are_the_gradient_of_the_likelihood(kind: str) -> None:
    """⟨·⟩_data − ⟨·⟩_model against central differences of the enumerated log p(v)."""
    states, rbm, step = visible_states(kind), machine(), 1e-6
    data = states[[1, 6, 6, 11]]
    law = (-free_energy(states, rbm)).softmax(0)
    models = [statistics(v[None], rbm) for v in states]
    for number, positive in enumerate(statistics(data, rbm)):
        negative = sum(p * model[number] for p, model in zip(law, models, strict=True))
        exact = positive - negative
        for place in itertools.product(*map(range, positive.shape)):

            def moved(by: float, number: int = number, place: tuple[int, ...] = place) -> Tensor:
                parts = [part.clone() for part in rbm]
                parts[number][place] += by
                return log_likelihood(data, RBM(*parts), kind)

            difference = (moved(step) - moved(-step)) / (2 * step)
            assert exact[place].item() == pytest.approx(difference.item(), abs=1e-8)


def test_sparse_rows_and_dense_rows_agree() -> None:
    v, rbm = visible_states("words") * 0.7, machine()
    v[3] = 0  # a document with no word
    rows = sparse_rows(v)
    torch.testing.assert_close(free_energy(rows, rbm), free_energy(v, rbm))
    torch.testing.assert_close(hidden_probabilities(rows, rbm), hidden_probabilities(v, rbm))
    for from_sparse, from_dense in zip(statistics(rows, rbm), statistics(v, rbm), strict=True):
        torch.testing.assert_close(from_sparse, from_dense)


@pytest.mark.parametrize("steps", [1, 2, 3])
@kinds
def test_contrastive_divergence_where_nothing_is_left_to_chance(kind: str, steps: int) -> None:
    """Hidden logits so large that h is certain: the chain can be written out by hand."""
    rbm = machine()._replace(hidden_bias=torch.tensor([60.0, -60.0, 60.0], dtype=torch.float64))
    h = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
    data = visible_states(kind)[[1, 6]]
    logits = h @ rbm.weight.T + rbm.visible_bias
    last = logits.sigmoid() if kind == "binary" else N_WORDS * logits.softmax(-1)
    totals = torch.full((2,), float(N_WORDS), dtype=torch.float64)
    mean = binary_mean if kind == "binary" else partial(word_mean, totals=totals)
    contrast = contrastive_divergence(data, rbm, mean, torch.Generator(), steps)
    by_hand = RBM((data.mean(0) - last).T @ h, (data.mean(0) - last)[0], torch.zeros(3).double())
    for ours, expected in zip(contrast.gradient, by_hand, strict=True):
        torch.testing.assert_close(ours, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(contrast.visible_logits, logits.expand(2, -1))


def test_more_steps_are_longer_chains() -> None:
    """Each step starts at the last reconstruction: k steps are k single ones with the same draws."""
    rbm, data = machine(), visible_states("binary")[[1, 6, 11]]
    whole = contrastive_divergence(data, rbm, binary_mean, torch.Generator().manual_seed(1), 3)
    generator, v = torch.Generator().manual_seed(1), data
    for _ in range(3):
        single = contrastive_divergence(v, rbm, binary_mean, generator)
        v = single.visible_logits.sigmoid()
    assert torch.equal(whole.visible_logits, single.visible_logits)
    expected = statistics(data, rbm).weight - statistics(v, rbm).weight
    torch.testing.assert_close(whole.gradient.weight, expected)


@kinds
def test_contrastive_divergence_raises_the_exact_likelihood(kind: str) -> None:
    states = visible_states(kind)
    data = states[[0, 0, 0, 1, len(states) - 1, len(states) - 1]]
    totals = torch.full((len(data),), float(N_WORDS), dtype=torch.float64)
    mean = binary_mean if kind == "binary" else partial(word_mean, totals=totals)
    generator = torch.Generator().manual_seed(0)
    start = torch.zeros(N_VISIBLE, dtype=torch.float64)
    rbm = RBM(*(part.double() for part in start_rbm(start, N_HIDDEN, generator)))
    before = log_likelihood(data, rbm, kind)
    for _ in range(400):
        gradient = contrastive_divergence(data, rbm, mean, generator).gradient
        rbm = RBM(*(part + 0.1 * g for part, g in zip(rbm, gradient, strict=True)))
    entropy = torch.tensor([3 / 6, 1 / 6, 2 / 6]).log()[[0, 0, 0, 1, 2, 2]].mean()  # of the data
    after = log_likelihood(data, rbm, kind)
    assert after > before + 0.5 * (entropy - before)


def test_samples_have_their_probabilities_and_their_own_generator() -> None:
    p = torch.tensor([0.0, 0.2, 0.7, 1.0]).repeat(20_000, 1)
    drawn = sample_bits(p, torch.Generator().manual_seed(0))
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert drawn[:, 0].sum() == 0
    assert drawn[:, 3].sum() == len(p)
    np.testing.assert_allclose(drawn.mean(0), p[0], atol=5 * 0.5 / 20_000**0.5)
    assert torch.equal(drawn, sample_bits(p, torch.Generator().manual_seed(0)))
    assert not torch.equal(drawn, sample_bits(p, torch.Generator().manual_seed(1)))


def test_unrolled_network_starts_as_the_stack() -> None:
    """Upwards the hidden probabilities, downwards the visible means; then no weight is shared."""
    stack = [machine(0), machine(1, N_HIDDEN, 5), machine(2, 5, 2)]
    network, counts = Unrolled(stack), visible_states("words")
    v = counts
    for rbm in stack:
        v = hidden_probabilities(v, rbm)
    torch.testing.assert_close(network.code_logits(sparse_rows(counts)).sigmoid(), v)
    for rbm in reversed(stack[1:]):
        v = binary_mean(visible_logits(v, rbm))
    code = network.code_logits(sparse_rows(counts)).sigmoid()
    torch.testing.assert_close(network.word_logits(code), visible_logits(v, stack[0]))
    storages = {parameter.data_ptr() for parameter in network.parameters()}
    assert len(storages) == 12
    assert not storages & {part.data_ptr() for rbm in stack for part in rbm}
