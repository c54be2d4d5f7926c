"""The compiled parts of a step on a CPU against PyTorch's own and against float64."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy import sparse, stats
from torch import Tensor

from boltzhash.training import adam, derivatives
from boltzhash.training.adam import CompiledAdam, adam_of
from boltzhash.training.derivatives import (
    DecodedInBlocks,
    DecodedLogLikelihood,
    DroppedWords,
    SparseProduct,
)
from boltzhash.training.draws import fill_normal, fill_uniform
from boltzhash.training.networks import Linear, dropped_relu
from boltzhash.training.objectives import decoded_log_likelihood, word_log_likelihood
from boltzhash.training.rows import SparseRows
from oracles import numbers
from torch_threads import threads

pytestmark = pytest.mark.skipif(
    derivatives._steps is None, reason="boltzhash was installed without a compiler"
)
N_WORDS, N_OUTPUTS = 301, 37
KINDS = (torch.float32, torch.float64)
Loss = Callable[[Tensor, int], Tensor]


def rows(seed: int, n: int = 20, density: float = 0.05, n_words: int = N_WORDS) -> SparseRows:
    found = sparse.random(n, n_words, density, "csr", np.float32, np.random.default_rng(seed))
    parts = (found.indices.astype(np.int32), found.data, found.indptr.astype(np.int32))
    return SparseRows(*map(torch.from_numpy, parts))


def read_once(weight: Tensor, step: int) -> Tensor:
    return (SparseProduct.apply(weight, *rows(step)) * numbers(step, 20, N_OUTPUTS)).sum()


def read_twice(weight: Tensor, step: int) -> Tensor:
    return read_once(weight, step) + read_once(weight, step + 1000)


def also_read_otherwise(weight: Tensor, step: int) -> Tensor:
    return read_once(weight, step) + (weight * numbers(step, N_WORDS, N_OUTPUTS)).sum()


def not_always_read(weight: Tensor, step: int) -> Tensor:
    return read_once(weight, step) if step % 3 else torch.zeros((), requires_grad=True)


def without_words(weight: Tensor, step: int) -> Tensor:
    return SparseProduct.apply(weight, *rows(step, density=0.0)).sum()


@pytest.mark.parametrize(
    "loss", [read_once, read_twice, also_read_otherwise, not_always_read, without_words]
)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_adam_and_the_gradient_of_words(loss: Loss, n_threads: int) -> None:
    """Thirty steps beside torch's own."""
    ours, theirs = (numbers(0, N_WORDS, N_OUTPUTS).requires_grad_() for _ in range(2))
    optimizers = CompiledAdam([ours]), torch.optim.Adam([theirs])
    with threads(n_threads):
        for step in range(30):
            for weight, optimizer in zip((ours, theirs), optimizers, strict=True):
                optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
                optimizer.zero_grad()
                loss(weight, step).backward()
                optimizer.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for key in ("step", "exp_avg", "exp_avg_sq"):
        one, other = (o.state[w].get(key) for o, w in zip(optimizers, (ours, theirs), strict=True))
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_adam_goes_on_from_what_pytorchs_remembers() -> None:
    weights = [numbers(0, 50, 3).requires_grad_() for _ in range(2)]
    theirs, ours = torch.optim.Adam([weights[0]], lr=0.1), CompiledAdam([weights[1]])
    for step in range(3):
        weights[0].grad = numbers(step, 50, 3)
        theirs.step()
    with torch.no_grad():
        weights[1].copy_(weights[0])
    ours.state[weights[1]] = deepcopy(theirs.state[weights[0]])
    ours.param_groups[0]["lr"] = 0.1
    for weight, optimizer in zip(weights, (theirs, ours), strict=True):
        weight.grad = numbers(9, 50, 3)
        optimizer.step()
    torch.testing.assert_close(*weights)


def test_a_gradient_that_was_dropped_is_not_used() -> None:
    weight = numbers(0, N_WORDS, N_OUTPUTS).requires_grad_()
    optimizer = CompiledAdam([weight])
    read_once(weight, 0).backward()
    optimizer.zero_grad()
    optimizer.step()
    torch.testing.assert_close(weight, numbers(0, N_WORDS, N_OUTPUTS), rtol=0, atol=0)


def test_weights_that_are_not_in_an_optimiser_have_their_gradient() -> None:
    weight = numbers(0, N_WORDS, N_OUTPUTS).requires_grad_()
    read_once(weight, 0).backward()
    assert weight.grad is not None
    expected = rows(0).dense(N_WORDS).T @ numbers(0, 20, N_OUTPUTS)
    torch.testing.assert_close(weight.grad, expected, rtol=1e-5, atol=1e-6)


def test_without_a_compiler_it_is_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, cpu = Linear(3, 2, torch.Generator()), torch.device("cpu")
    assert type(adam_of(layer, cpu)) is CompiledAdam
    assert type(adam_of(layer.double(), cpu)) is torch.optim.Adam
    monkeypatch.setattr(adam, "_steps", None)
    assert type(adam_of(Linear(3, 2, torch.Generator()), cpu)) is torch.optim.Adam


@pytest.mark.parametrize("n_words", [1, 16, 317])
@pytest.mark.parametrize("size", [1.0, 40.0, 3000.0])  # of logits: far beyond what e^x can hold
@pytest.mark.parametrize("n_threads", [1, 2])
def test_decoding(n_words: int, size: float, n_threads: int) -> None:
    """Value and all derivatives against float64."""
    target = rows(0, 9, 0.1, n_words)
    shapes = ((9, 8), (8, n_words), (n_words,))
    given = [size**0.5 * numbers(i, *shape) / 3 for i, shape in enumerate(shapes)]
    ours, exact = ([t.to(kind).detach().requires_grad_() for t in given] for kind in KINDS)
    with threads(n_threads):
        value = decoded_log_likelihood(*ours, target, n_groups=2)
    dense = target.dense(n_words).double()
    codes, weight, bias = exact
    groups = zip(codes.tensor_split(2, -1), weight.tensor_split(2), strict=True)
    expected = sum(word_log_likelihood(s @ E + bias, dense) for s, E in groups) / 2
    value.sum().backward()
    expected.sum().backward()
    scale = size * 1e-6
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=10 * scale)
    for one, other in zip(ours, exact, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-3, atol=20 * scale)


def test_decoding_is_the_same_by_one_thread_and_by_two() -> None:
    target, logits, bias = rows(0, 9), numbers(0, 9, N_WORDS), numbers(1, N_WORDS)
    found = []
    for n in (1, 2):
        with threads(n):
            found.append(derivatives._derive_compiled(logits.clone(), bias, target))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    for one, other in zip(found[0], derivatives._derive(logits, bias, target), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


in_blocks = pytest.mark.skipif(
    derivatives._steps is None or not derivatives._steps.decodes(),
    reason="this CPU has not the instructions that it takes",
)


def decoded(
    function: type[torch.autograd.Function],
    inputs: list[Tensor],
    target: SparseRows,
    n_threads: int,
) -> list[Tensor]:
    """The value, and the derivatives if documents count differently."""
    own = [t.clone().requires_grad_() for t in inputs]
    with threads(n_threads):
        value = function.apply(*own, target, 3)
        return [value, *torch.autograd.grad(value @ numbers(9, len(value)), own)]


@in_blocks
@pytest.mark.parametrize("n_bits", [3, 24, 49, 130])
@pytest.mark.parametrize(("n", "n_words"), [(1, 1), (12, 32), (13, 511), (40, 1100)])
def test_decoding_in_blocks_is_its_twin(n: int, n_words: int, n_bits: int) -> None:
    """Bits, words and documents that fill vectors, blocks and groups of rows, and that do not."""
    target = rows(0, n, 0.1, n_words)
    shapes = ((n, n_bits), (n_bits, n_words), (n_words,))
    inputs = [numbers(i, *shape) for i, shape in enumerate(shapes)]
    ours = decoded(DecodedInBlocks, inputs, target, 1)
    for one, other in zip(ours, decoded(DecodedInBlocks, inputs, target, 2), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(ours, decoded(DecodedLogLikelihood, inputs, target, 1), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


@in_blocks
def test_decoding_in_blocks_when_the_last_words_are_the_likeliest() -> None:
    """The highest logit rises from block to block, to where the first exponentials are nothing."""
    n_words = 2000
    bias = torch.linspace(0, 400, n_words)
    inputs = [numbers(0, 5, 6), numbers(1, 6, n_words), bias]
    ours = decoded(DecodedInBlocks, inputs, target := rows(0, 5, 0.1, n_words), 1)
    for one, other in zip(ours, decoded(DecodedLogLikelihood, inputs, target, 1), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)


@in_blocks
def test_decoding_in_blocks_passes_what_is_not_a_number() -> None:
    inputs = [numbers(0, 5, 6), numbers(1, 6, 1000), numbers(2, 1000)]
    for spoilt in range(3):
        given = [t.clone() for t in inputs]
        given[spoilt].view(-1)[-1] = torch.nan
        value, *_ = decoded(DecodedInBlocks, given, rows(0, 5, 0.1, 1000), 1)
        assert value[-1].isnan()


@in_blocks
def test_what_does_not_fit_the_decoder_is_refused() -> None:
    target, codes = rows(0, 5, 0.1, 40).by_word(40), np.ones((5, 8), np.float32)
    kept = np.empty(derivatives._steps.kept_of_decoding(5, 40), np.float32)
    weight, bias, values = (np.ones(shape, np.float32) for shape in ((8, 40), 40, 5))
    arrays = (codes, kept, weight, bias, values, codes.copy())
    derivatives._steps.decode_bits(*target, *arrays, 0, 8, True, 1)
    for i, first, n_bits in ((0, 0, 8), (1, 0, 8), (2, 0, 8), (3, 0, 8), (4, 0, 8), (5, 4, 5)):
        given = [a[:-1].copy() if j == i else a for j, a in enumerate(arrays)]
        with pytest.raises(ValueError, match="do not fit together"):
            derivatives._steps.decode_bits(*target, *given, first, n_bits, True, 1)


@pytest.mark.parametrize("density", [0.0, 0.2])
def test_rows_by_word(density: float) -> None:
    given = rows(0, 9, density)
    expected = sparse.csr_matrix(given.dense(N_WORDS).numpy()).tocsc()
    found = given.by_word(N_WORDS)
    for one, other in zip(found, (expected.indices, expected.data, expected.indptr), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [np.float32, np.float64])  # the latter is taken by scipy
@pytest.mark.parametrize("wanted", [[], [3], [8, 0, 3, 3, 8]])
def test_rows_are_taken(kind: type, wanted: list[int]) -> None:
    matrix = sparse.random(9, 20, 0.3, "csr", kind, np.random.default_rng(0))
    given = np.array(wanted, np.int64)
    found, expected = SparseRows.taken(matrix, given), matrix[given]
    parts = (expected.indices, expected.data, expected.indptr)
    for one, other in zip(found, parts, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)
    assert found.indices.dtype == found.offsets.dtype == torch.int32


@pytest.mark.parametrize("wanted", [[9], [-1], [0, 1 << 40]])
def test_rows_that_are_not_there_are_refused(wanted: list[int]) -> None:
    matrix = sparse.random(9, 20, 0.3, "csr", np.float32, np.random.default_rng(0))
    arrays = (matrix.indices, matrix.data, matrix.indptr, np.array(wanted, np.int64))
    room = (np.empty(0, np.int32), np.empty(0, np.float32), np.empty(len(wanted) + 1, np.int32))
    with pytest.raises(ValueError, match="do not fit together"):
        derivatives._steps.take_rows(*arrays, *room)


def matrix_of(kind: str) -> sparse.csr_matrix:
    """Nine rows of words, of which the seventh has none."""
    dtype = np.float64 if kind == "float64" else np.float32  # the former is mixed by scipy
    dense = sparse.random(9, 20, 0.3, "csr", dtype, np.random.default_rng(0)).toarray()
    dense[6] = 0
    matrix = sparse.csr_matrix(dense)
    if kind == "zeros":
        matrix.data[::3] = 0
    if kind == "unsorted":
        for first, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
            matrix.indices[first:end] = matrix.indices[first:end][::-1].copy()
        matrix.has_canonical_format = matrix.has_sorted_indices = False
    return matrix


@pytest.mark.parametrize("kind", ["float32", "float64", "zeros", "unsorted"])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("wanted", [[], [3], [8, 0, 3, 3, 6]])
def test_rows_are_mixed(kind: str, share: float, wanted: list[int]) -> None:
    matrix = matrix_of(kind)
    of, others = np.array(wanted, np.int64), np.array([6, 2, 3, 8, 0][: len(wanted)], np.int64)
    found = SparseRows.mixed(matrix, of, others, share)
    expected = (1 - share) * matrix.toarray()[of] + share * matrix.toarray()[others]
    np.testing.assert_allclose(found.dense(20), expected, rtol=1e-6)
    assert (found.values != 0).all()
    assert found.indices.dtype == found.offsets.dtype == torch.int32


@pytest.mark.parametrize("wrong", [[9], [-1], [1 << 62], [0, 1]])
@pytest.mark.parametrize("part", [0, 1])
def test_rows_that_are_not_there_are_not_mixed(wrong: list[int], part: int) -> None:
    matrix = matrix_of("float32")
    pair = [np.array([0]), np.array([0])]
    pair[part] = np.array(wrong)
    room = (np.empty(40, np.int32), np.empty(40, np.float32), np.empty(len(pair[0]) + 1, np.int32))
    with pytest.raises(ValueError, match="do not fit together"):
        derivatives._steps.mix_rows(matrix.indices, matrix.data, matrix.indptr, *pair, 0.5, *room)


@pytest.mark.parametrize("short", [0, 1, 2])
def test_rows_are_not_mixed_into_too_little_room(short: int) -> None:
    matrix, pair = matrix_of("float32"), (np.array([0, 1]), np.array([2, 3]))
    most = int(np.diff(matrix.indptr)[:4].sum())
    sizes = [most, most, 3]
    sizes[short] -= 1
    room = [np.empty(n, t) for n, t in zip(sizes, (np.int32, np.float32, np.int32), strict=True)]
    with pytest.raises(ValueError, match="do not fit together"):
        derivatives._steps.mix_rows(matrix.indices, matrix.data, matrix.indptr, *pair, 0.5, *room)


@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (400, 500)])
def test_dropping(shape: tuple[int, int]) -> None:
    x = numbers(0, *shape).requires_grad_()
    out = dropped_relu(x, 0.2, torch.Generator().manual_seed(1))
    again = dropped_relu(x, 0.2, torch.Generator().manual_seed(1))
    torch.testing.assert_close(out, again, rtol=0, atol=0)
    kept = out > 0
    assert not (kept & (x <= 0)).any()
    torch.testing.assert_close(out[kept], x[kept] / 0.8, rtol=1e-4, atol=0)
    out.backward(gradient := numbers(2, *shape))
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(kept, gradient / 0.8, 0.0), rtol=1e-4, atol=0)


def read(
    weight: Tensor, bias: Tensor, documents: SparseRows, rate: float, n_threads: int = 1
) -> Tensor:
    """What the first layer makes of documents."""
    with threads(n_threads):
        generator = torch.Generator().manual_seed(1)
        out: Tensor = DroppedWords.apply(weight, bias, documents, rate, generator)  # type: ignore[no-untyped-call]
    return out


@pytest.mark.parametrize("density", [0.0, 0.01, 0.2])
@pytest.mark.parametrize("n_outputs", [1, 37, 700])
def test_the_first_layer(density: float, n_outputs: int) -> None:
    """What is kept, and the derivatives by weight and bias, against float64."""
    documents = rows(0, 30, density)
    ours = [numbers(1, N_WORDS, n_outputs).requires_grad_(), numbers(2, n_outputs).requires_grad_()]
    exact = [t.detach().double().requires_grad_() for t in ours]
    out = read(ours[0], ours[1], documents, 0.2)
    assert torch.equal(out, read(ours[0], ours[1], documents, 0.2, n_threads=2))
    kept = (out > 0).detach()
    expected = documents.dense(N_WORDS).double() @ exact[0] + exact[1]
    assert not (kept & (expected < -1e-5)).any()
    expected = torch.where(kept, expected / 0.8, 0.0)
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-5)
    gradient = numbers(3, *out.shape)
    for one, other in zip(
        torch.autograd.grad(out, ours, gradient),
        torch.autograd.grad(expected, exact, gradient.double()),
        strict=True,
    ):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_how_much_of_the_first_layer_is_dropped() -> None:
    """In each half of the documents, and independently of the document before."""
    weight, bias = torch.zeros(N_WORDS, 1000), torch.ones(1000)
    kept = (read(weight, bias, rows(0, 400), 0.3) > 0).double()
    for part in kept.chunk(2):
        assert abs(part.mean() - 0.7) < 5 * (0.21 / part.numel()) ** 0.5
    pair = torch.stack([kept[:-1].flatten(), kept[1:].flatten()])
    assert abs(torch.corrcoef(pair)[0, 1]) < 5 / pair.shape[1] ** 0.5


@pytest.mark.parametrize("spoilt", range(6))
def test_what_does_not_fit_the_first_layer_is_refused(spoilt: int) -> None:
    documents = [part.numpy() for part in rows(0, 4)]
    arrays = [np.ones((N_WORDS, 3), np.float32), np.ones(3, np.float32), *documents]
    arrays.append(np.empty((4, 3), np.float32))
    derivatives._steps.dropped_words(*arrays, 0, 0, 1.0, 1)
    arrays[spoilt] = arrays[spoilt].reshape(-1)[:-1].copy()
    with pytest.raises(ValueError, match="do not fit together"):
        derivatives._steps.dropped_words(*arrays, 0, 0, 1.0, 1)


def test_what_is_not_a_number_is_not_hidden() -> None:
    """Or a fit that diverges would go on as if nothing had happened."""
    x = torch.full((20, 100), torch.nan)
    kept = dropped_relu(x, 0.2, torch.Generator().manual_seed(0)).isnan()
    assert 0.7 < kept.double().mean() < 0.9


def test_nearly_everything_can_be_dropped() -> None:
    out = dropped_relu(torch.ones(400, 1000), 1 - 1e-9, torch.Generator().manual_seed(0))
    assert (out > 0).sum() < 40
    assert out.isfinite().all()


def test_how_much_is_dropped_and_that_neighbours_are_independent() -> None:
    """Of 400,000 numbers, their first and their second half, and those that come from one draw."""
    x = torch.ones(400, 1000)
    kept = (dropped_relu(x, 0.3, torch.Generator().manual_seed(0)) > 0).double().flatten()
    halves = kept.view(2, -1)
    for part in (kept, *halves):
        assert abs(part.mean() - 0.7) < 5 * (0.21 / len(part)) ** 0.5
    from_one_draw = torch.cat([halves, halves.roll(1, dims=1)])
    correlations = torch.corrcoef(from_one_draw) - torch.eye(4)
    assert correlations.abs().max() < 5 / halves.shape[1] ** 0.5


@pytest.mark.parametrize("spoilt", ["indices", "offsets", "values", "weight"])
def test_what_does_not_fit_together_is_refused(spoilt: str) -> None:
    documents, amounts, ends = np.array([0, 1]), np.ones(2), np.array([0, 1, 2])
    weight = np.ones((2, 3), np.float32)
    if spoilt == "indices":
        documents[1] = 2
    elif spoilt == "offsets":
        ends[1] = 3
    elif spoilt == "values":
        amounts = np.ones(3)
    else:
        weight = np.ones(5, np.float32)
    arrays = (weight, weight.copy(), weight.copy(), np.ones((2, 3), np.float32))
    sparse_parts = (documents.astype(np.int32), amounts.astype(np.float32), ends.astype(np.int32))
    with pytest.raises(ValueError, match="do not fit together"):
        derivatives._steps.adam_of_words(
            *arrays, *sparse_parts, (1e-3, 1.0, 0.1, 0.999, 0.001, 1e-8), 1
        )


def test_a_fit_does_not_import_torchs_compiler() -> None:
    """It would take a second, a tenth of a small fit."""
    script = (
        "import sys; from boltzhash import SemanticHasher; "
        "short = SemanticHasher(8).set_params(training__epochs=1, training__device='cpu'); "
        "short.fit(['stars and planets', 'bread and butter'] * 9); "
        "assert 'torch.nn' in sys.modules; assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


@pytest.mark.parametrize("n", [1, 31, 32, 100_003])
@pytest.mark.parametrize("fill", [fill_normal, fill_uniform])
def test_draws_are_the_same_by_one_thread_and_by_two(
    fill: Callable[[Tensor, torch.Generator], Tensor], n: int
) -> None:
    found = []
    for n_threads in (1, 2):
        with threads(n_threads):
            found.append(fill(torch.full((n,), torch.nan), torch.Generator().manual_seed(3)))
    assert torch.equal(*found)
    assert found[0].isfinite().all()


def test_draws_have_their_law_and_are_independent() -> None:
    """By Kolmogorov and Smirnov's test, and by correlations of what stands near each other."""
    generator = torch.Generator().manual_seed(0)
    normal = fill_normal(torch.empty(400_000), generator)
    uniform = fill_uniform(torch.empty(400_000), generator)
    assert stats.kstest(normal.numpy(), "norm").pvalue > 0.01
    assert stats.kstest(uniform.numpy(), "uniform").pvalue > 0.01
    assert uniform.min() >= 0
    assert uniform.max() < 1
    for drawn in (normal, normal.square(), uniform):
        for apart in (1, 2, 16, 32, 64, 200_000):
            pair = torch.stack([drawn[:-apart], drawn[apart:]]).double()
            assert abs(torch.corrcoef(pair)[0, 1]) < 4.5 / pair.shape[1] ** 0.5


def test_what_is_drawn_next_is_something_else() -> None:
    generator = torch.Generator().manual_seed(0)
    one, other = (fill_normal(torch.empty(1000), generator) for _ in range(2))
    assert abs(torch.corrcoef(torch.stack([one, other]))[0, 1]) < 0.15
