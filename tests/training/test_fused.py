"""Every CUDA kernel against its twin in plain PyTorch, value and gradient. Needs a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from boltzhash import CorrSH
from boltzhash.training import fused, replay
from boltzhash.training.distributions import BernoulliMixture, LowRankCovariance
from boltzhash.training.networks import SparseLinear, dropped_relu
from boltzhash.training.objectives import word_log_likelihood

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

Formula = Callable[..., Tensor]


def numbers(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


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


def test_dropped_relu() -> None:
    x = numbers(0, 50, 70)
    u = torch.empty(50, 70, device="cuda").uniform_(
        generator=torch.Generator("cuda").manual_seed(1)
    )
    agree(
        lambda x: dropped_relu(x, 0.2, torch.Generator("cuda").manual_seed(1)),
        lambda x: x.relu() * (u.cpu() >= 0.2) / 0.8,
        x,
    )


@pytest.mark.parametrize("n_words", [50, 960, 1003])
def test_first_layer(n_words: int) -> None:
    layer = SparseLinear(n_words, 40, torch.Generator().manual_seed(0)).cuda()
    x = numbers(1, 30, n_words)
    bias = layer.bias.detach().cpu().double()

    def fast(weight: Tensor) -> Tensor:
        from boltzhash.training.fused.functions import SplitProduct

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
    from boltzhash.training.fused.functions import SplitProduct

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


@pytest.mark.parametrize(
    "settings", [{}, {"neighbours": 0, "contrast": 0.0}, {"gradient": "gumbel-softmax"}]
)
def test_replayed_steps_are_the_steps(
    settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded or not, the same bytes; and again the same."""
    tfidf = sparse.random(1055, 400, 0.05, format="csr", random_state=0, dtype=np.float64)
    hasher = CorrSH(16, epochs=3, batch_size=20, device="cuda", **settings)
    prints = [hasher.fit(tfidf).fingerprint() for _ in range(2)]
    monkeypatch.setattr(replay, "WARM_UP", 10**9)
    assert {*prints, hasher.fit(tfidf).fingerprint()} == {prints[0]}
