"""Every CUDA kernel against its twin in plain PyTorch, value and gradient. Needs a GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from boltzhash import SemanticHasher
from boltzhash.training import fused, replay
from boltzhash.training.distributions import (
    BernoulliMixture,
    LowRankCovariance,
)
from boltzhash.training.fused.bound import (
    Contrasts,
    DecodedWords,
    MeanTerms,
    SampledCodes,
    Sizes,
)
from boltzhash.training.fused.chance import CountedChance
from boltzhash.training.fused.layers import DroppedLayer, SplitProduct, by_bias
from boltzhash.training.networks import SparseLinear, linear
from boltzhash.training.objectives import (
    decoded_log_likelihood,
    mean_codes,
    neighbour_contrast,
    sign_codes,
    word_log_likelihood,
)
from composed_steps import NOISE, check_steps_at_once_learn_alike, composed_codes, settings
from oracles import numbers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

Formula = Callable[..., Tensor]


def agree(fast: Formula, slow: Formula, *arguments: Tensor, tolerance: float = 2e-5) -> None:
    """Values and gradients of both, the slow one in double precision on the CPU."""
    on_gpu = [a.cuda().requires_grad_() for a in arguments]
    on_cpu = [a.double().requires_grad_() for a in arguments]
    assert fused.fits(*on_gpu)
    values = fast(*on_gpu), slow(*on_cpu)
    torch.testing.assert_close(values[0].cpu().double(), values[1], rtol=tolerance, atol=tolerance)
    weights = numbers(99, *values[1].shape)
    fast_by = torch.autograd.grad((values[0] * weights.cuda()).sum(), on_gpu)
    slow_by = torch.autograd.grad((values[1] * weights.double()).sum(), on_cpu)
    for one, other in zip(fast_by, slow_by, strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("bits", "components"), [(8, 1), (64, 10), (128, 40)])
def test_mixture_log_prob(bits: int, components: int) -> None:
    logits, s = 3 * numbers(0, components, 7, bits), (numbers(1, 7, bits) > 0).float()
    agree(
        lambda r, s: BernoulliMixture(r).log_prob(s),
        lambda r, s: BernoulliMixture(r).log_prob(s),
        logits,
        s,
    )


@pytest.mark.parametrize("n_words", [5, 1024, 10_001])
def test_word_log_likelihood(n_words: int) -> None:
    logits = 5 * numbers(0, 9, n_words)
    targets = numbers(1, 9, n_words).relu()
    agree(
        lambda x: word_log_likelihood(x, targets.cuda()),
        lambda x: word_log_likelihood(x, targets.double()),
        logits,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("rank", [0, 1, 10])
def test_low_rank_draws(rank: int) -> None:
    """By the same ε: the kernel's are taken from a generator at the same state."""
    documents, bits, n = 5, 24, 11
    location, deviation = numbers(0, documents, bits), numbers(1, documents, bits).exp()
    factor = numbers(2, documents, bits, rank)
    epsilon = torch.empty(documents, n, bits + rank, device="cuda")
    epsilon.normal_(generator=torch.Generator("cuda").manual_seed(3))

    def fast(location: Tensor, deviation: Tensor, factor: Tensor) -> Tensor:
        generator = torch.Generator("cuda").manual_seed(3)
        return LowRankCovariance(deviation, factor).draws(location, n, generator)

    def slow(location: Tensor, deviation: Tensor, factor: Tensor) -> Tensor:
        e = epsilon.cpu().double()
        around = deviation.unsqueeze(1) * e[..., :bits] + e[..., bits:] @ factor.mT
        return location + around.movedim(1, 0)

    agree(fast, slow, location, deviation, factor)


def counted(seed: int, draw: int, n: int) -> NDArray[np.uint32]:
    """What ``chance`` gives for places 0..n-1, (n, 4): Philox 4x32-10."""
    low, words = np.uint64(0xFFFFFFFF), np.zeros((4, n), dtype=np.uint64)
    words[0], words[1] = np.arange(n), draw
    keys = [np.uint64(seed % 2**32), np.uint64(seed >> 32)]
    for _ in range(10):
        one, other = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = np.stack(
            [
                (other >> np.uint64(32)) ^ words[1] ^ keys[0],
                other & low,
                (one >> np.uint64(32)) ^ words[3] ^ keys[1],
                one & low,
            ]
        )
        keys = [
            (keys[0] + np.uint64(0x9E3779B9)) & low,
            (keys[1] + np.uint64(0xBB67AE85)) & low,
        ]
    return words.T.astype(np.uint32)


def uniforms(bits: NDArray[np.uint32]) -> NDArray[np.float64]:
    return (bits >> 8) / 2.0**24


def normals(fours: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Box and Muller, two at a time."""
    one, other = fours.reshape(-1, 2, 2)[..., 0], fours.reshape(-1, 2, 2)[..., 1]
    radius, angle = np.sqrt(-2 * np.log(((one >> 8) + 1) / 2.0**24)), 2 * np.pi * uniforms(other)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).reshape(len(fours), 4)


def started(seed: int) -> CountedChance:
    chance = CountedChance("cuda")
    chance.begin_step(torch.tensor(seed, device="cuda"))
    return chance


def test_counting_is_philox() -> None:
    """The test vector of its authors, and moments of what is drawn by it."""
    assert [f"{word:08x}" for word in counted(0, 0, 1)[0]] == [
        *("6627e8d5", "e169c58d"),
        *("bc57ac4c", "9b00dbd8"),
    ]
    drawn = normals(counted(2**40 + 3, 5, 50_000))
    assert abs(drawn.mean()) < 0.01
    assert abs(drawn.std() - 1) < 0.01


@pytest.mark.parametrize(("networks", "rate"), [(1, 0.2), (2, 0.3), (2, 0.0)])
def test_dropped_layer(networks: int, rate: float) -> None:
    seed, width = 2**50 + 17, 12 * networks
    u = uniforms(counted(seed, 1, 50 * width // 4)).reshape(50, width)
    kept = torch.from_numpy((u >= rate) / (1 - rate))
    x, weight, bias = numbers(0, 50, 7 * networks), numbers(1, 7, width), numbers(2, width)

    def fast(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        value: Tensor = DroppedLayer.apply(x, weight, bias, rate, started(seed))  # type: ignore[no-untyped-call]
        return value

    agree(
        fast,
        lambda x, weight, bias: linear(x, weight, bias).relu() * kept,
        x,
        weight,
        bias,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("n_words", [50, 960, 1003])
def test_dropped_layer_of_documents(n_words: int) -> None:
    """Other draws of a step drop others; documents get no gradient."""
    x, weight, bias = numbers(0, 30, n_words), numbers(1, n_words, 8), numbers(2, 8)
    chance, both = started(5), []
    for draw in (1, 2):
        u = uniforms(counted(5, draw, 60)).reshape(30, 8)
        kept = torch.from_numpy((u >= 0.5) * 2.0)

        def fast(weight: Tensor, bias: Tensor) -> Tensor:
            value: Tensor = DroppedLayer.apply(x.cuda(), weight, bias, 0.5, chance)  # type: ignore[no-untyped-call]
            return value

        agree(
            fast,
            lambda weight, bias, kept=kept: (x.double() @ weight + bias).relu() * kept,
            weight,
            bias,
            tolerance=2e-4,
        )
        both.append(kept)
    assert not torch.equal(*both)


def test_a_layer_passes_on_what_is_not_a_number() -> None:
    x = torch.full((2, 4), torch.nan, device="cuda")
    out = DroppedLayer.apply(x, torch.ones(4, 4).cuda(), torch.zeros(4).cuda(), 0.0, started(1))  # type: ignore[no-untyped-call]
    assert out.isnan().all()


@pytest.mark.parametrize(
    ("changes", "bits", "neighbours"),
    [
        ({}, 24, 0),
        ({"rank": 0, "n_components": 1}, 16, 0),
        ({"n_networks": 2, "rank": 10, "n_components": 10}, 64, 7),
        ({"n_networks": 2, "straight_through": 0.5}, 48, 7),
    ],
)
def test_sampled_codes(changes: dict[str, Any], bits: int, neighbours: int) -> None:
    """Beside the distributions, with the numbers that are drawn by counting."""
    n, seed, given = 7, 2**61 + 9, settings(**changes)
    networks, rank, k = given.n_networks, given.rank, given.n_components
    sizes = Sizes(n, 1 + k, bits, rank, networks)
    fours = counted(seed, 1, n * sizes.drawn_numbers() // 4).reshape(n, -1, 4)
    n_normals = (1 + k) * (bits + rank) + bits
    drawn = torch.from_numpy(
        normals(fours[:, : -(-n_normals // 4)].reshape(-1, 4)).reshape(n, -1)[:, :n_normals]
    )
    u = torch.from_numpy(
        uniforms(fours[:, -(-n_normals // 4) :]).reshape(n, -1)[:, : 2 * bits].copy()
    )
    noise = torch.tensor(NOISE)

    def together(noisy: Tensor, divergence: Tensor, locations: Tensor) -> Tensor:
        return torch.cat([noisy.flatten(), divergence, locations.flatten()])

    def fast(outputs: Tensor, bias: Tensor) -> Tensor:
        *results, is_on = SampledCodes.apply(outputs, bias, noise.cuda(), n, given, started(seed))  # type: ignore[no-untyped-call]
        assert torch.equal(is_on, results[2][:n] > 0)
        return together(*results)

    def slow(outputs: Tensor, bias: Tensor) -> Tensor:
        return together(*composed_codes(outputs + bias, given, drawn, u))

    width = bits * (2 + rank)
    agree(fast, slow, numbers(0, n + neighbours, width), numbers(1, width), tolerance=1e-4)


@pytest.mark.parametrize(("n_words", "n_groups"), [(5, 1), (1024, 2), (10_001, 2)])
def test_decoded_words(n_words: int, n_groups: int) -> None:
    codes, weight, bias = numbers(0, 9, 16), numbers(1, 16, n_words), numbers(2, n_words)
    targets = numbers(3, 9, n_words).relu()

    def fast(codes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        values: Tensor = DecodedWords.apply(codes, weight, bias, targets.cuda(), n_groups)  # type: ignore[no-untyped-call]
        return values.view(n_groups, -1).mean(0)

    def slow(codes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return decoded_log_likelihood(codes, weight, bias, targets.double(), n_groups)

    agree(fast, slow, codes, weight, bias, tolerance=2e-3)


@pytest.mark.parametrize("compares_bits", [True, False])
@pytest.mark.parametrize(("networks", "n"), [(1, 5), (2, 33), (2, 200)])
def test_contrasts(networks: int, n: int, compares_bits: bool) -> None:
    given = settings(n_networks=networks, compares_bits=compares_bits)
    codes_of = sign_codes if compares_bits else mean_codes

    def slow(locations: Tensor) -> Tensor:
        one, other = (codes_of(half).chunk(networks, -1) for half in locations.chunk(2))
        parts = zip(one, other, strict=True)
        return torch.cat([neighbour_contrast(*part, 0.2) for part in parts])

    agree(
        lambda locations: Contrasts.apply(locations, given),  # type: ignore[no-untyped-call]
        slow,
        numbers(0, 2 * n, 64),
        tolerance=1e-4,
    )


@pytest.mark.parametrize("has_contrasts", [True, False])
def test_mean_terms(has_contrasts: bool) -> None:
    n, given = 300, settings(n_networks=2)
    values, divergence, contrasts = numbers(0, 2 * n), numbers(1, n), numbers(2, 2 * n)

    def fast(values: Tensor, divergence: Tensor, contrasts: Tensor) -> Tensor:
        beta = torch.tensor(0.4, device="cuda")
        compared = contrasts if has_contrasts else None
        loss, likelihood, kl = MeanTerms.apply(values, divergence, compared, beta, given)  # type: ignore[no-untyped-call]
        torch.testing.assert_close(likelihood, values.mean())
        torch.testing.assert_close(kl, divergence.mean() / 2)
        return (loss + 0 * contrasts.sum()).unsqueeze(0)

    def slow(values: Tensor, divergence: Tensor, contrasts: Tensor) -> Tensor:
        loss = -values.mean() + 0.4 * divergence.mean()
        return (loss + has_contrasts * 1.5 * contrasts.sum() / n).unsqueeze(0)

    agree(fast, slow, values, divergence, contrasts)


@pytest.mark.parametrize("n_words", [50, 960, 1003])
def test_first_layer(n_words: int) -> None:
    layer = SparseLinear(n_words, 40, torch.Generator().manual_seed(0)).cuda()
    x = numbers(1, 30, n_words)
    bias = layer.bias.detach().cpu().double()

    def fast(weight: Tensor) -> Tensor:
        product: Tensor = SplitProduct.apply(x.cuda(), weight)  # type: ignore[no-untyped-call]
        return product + layer.bias.detach()

    agree(
        fast, lambda weight: x.double() @ weight + bias, layer.weight.detach().cpu(), tolerance=1e-4
    )
    torch.testing.assert_close(layer(x.cuda()), fast(layer.weight), rtol=0, atol=0)


def test_adam() -> None:
    """Twenty steps beside torch's own."""
    from boltzhash.training.fused.adam import OneKernelAdam

    shapes = [(300, 70), (5,), (1025,)]
    ours, theirs = (
        [numbers(i, *s).cuda().requires_grad_() for i, s in enumerate(shapes)] for _ in "12"
    )
    rate = torch.tensor(1e-2, device="cuda")
    optimizers = OneKernelAdam(ours, rate), torch.optim.Adam(theirs, lr=1e-2)
    for step in range(20):
        for weights, optimizer in zip((ours, theirs), optimizers, strict=True):
            for number, w in enumerate(weights):
                w.grad = numbers(100 * step + number, *w.shape).cuda()
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n_documents", "n_outputs"), [(3, 4), (130, 500), (600, 8), (20, 7)])
def test_adam_and_the_gradient_of_words(
    n_documents: int, n_outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside torch's own with the gradient multiplied out; more documents than a block can list, too."""
    from boltzhash.training.fused import adam
    from boltzhash.training.fused.adam import OneKernelAdam

    monkeypatch.setattr(adam, "FEWEST_WORDS", 1)

    n_words, rate = 203, torch.tensor(1e-2, device="cuda")
    ours, theirs = (numbers(0, n_words, n_outputs).cuda().requires_grad_() for _ in "12")
    optimizers = (
        OneKernelAdam([ours], rate),
        torch.optim.Adam([theirs], lr=1e-2),
    )
    for step in range(20):
        x = numbers(3 * step, n_documents, n_words)
        x = torch.where(x > 1.5, x, 0.0).cuda()
        by_output = numbers(3 * step + 1, n_documents, n_outputs).cuda()
        for optimizer in optimizers:
            optimizer.zero_grad()
        (SplitProduct.apply(x, ours) * by_output).sum().backward()
        theirs.grad = (x.T.double() @ by_output.double()).float()
        assert ours.grad is None
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_adam_sums_the_gradient_of_a_bias() -> None:
    from boltzhash.training.fused.adam import OneKernelAdam

    rate = torch.tensor(1e-2, device="cuda")
    ours, theirs = (
        [numbers(i, n).cuda().requires_grad_() for i, n in enumerate((70, 5))] for _ in "12"
    )
    optimizers = OneKernelAdam(ours, rate), torch.optim.Adam(theirs, lr=1e-2)
    for step in range(20):
        for optimizer in optimizers:
            optimizer.zero_grad()
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            rows = numbers(10 * step + number, 33, len(one)).cuda()
            assert by_bias(one, rows) is None
            other.grad = by_bias(other, rows)
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"network__networks": 2},
        {"neighbours__count": 0, "neighbours__contrast": 0.0},
        {"objective__gradient": "gumbel-softmax"},
    ],
)
def test_replayed_steps_are_the_steps(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded or not, the same bytes; and again the same."""
    tfidf = sparse.random(1055, 400, 0.05, format="csr", random_state=0, dtype=np.float64)
    hasher = SemanticHasher(16).set_params(
        training__epochs=3, training__batch_size=20, training__device="cuda", **changes
    )
    prints = [hasher.fit(tfidf).fingerprint() for _ in range(2)]
    monkeypatch.setattr(replay, "WARM_UP", 10**9)
    assert {*prints, hasher.fit(tfidf).fingerprint()} == {prints[0]}


def test_the_first_fit_of_a_process_is_on_a_gpu() -> None:
    """What goes backwards is a thread of its own, which nothing has used before."""
    program = """
from scipy import sparse
from boltzhash import SemanticHasher
tfidf = sparse.random(300, 100, 0.1, format="csr", random_state=0)
SemanticHasher(16).set_params(
    training__epochs=1, training__device="cuda", neighbours__count=0, neighbours__contrast=0.0
).fit(tfidf)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "changes", [{}, {"neighbours__count": 0, "neighbours__contrast": 0.0, "network__networks": 2}]
)
def test_steps_at_once_learn_what_composed_ones_do(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_steps_at_once_learn_alike(monkeypatch, training__device="cuda", **changes)
