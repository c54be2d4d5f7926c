"""Products of a step on a CPU: against float64, for one thread and for two."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from boltzhash.training import products
from boltzhash.training.networks import Linear, ParallelLinear, linear
from boltzhash.training.products import (
    SideBySide,
    SteadyProduct,
    multiplies_compiled,
    steady_product,
)
from oracles import numbers
from torch_threads import threads

compiled = pytest.mark.skipif(
    products._steps is None or not products._steps.multiplies(),
    reason="products are not compiled here",
)
# Layers, rows, inputs and outputs of a layer: fewer than a vector, as many, a row or a column more than
# one; more rows and terms than a block; the sizes of a step
SIZES = [
    (1, 1, 1, 1),
    (1, 12, 13, 32),
    (1, 13, 2, 33),
    (3, 5, 9, 40),
    (2, 25, 40, 64),
    (1, 241, 513, 31),
    (2, 300, 1100, 70),
    (1, 100, 500, 768),
    (2, 100, 500, 384),
]


def with_derivatives(given: list[Tensor], n_threads: int = 1) -> list[Tensor]:
    """What :func:`linear` makes of x, weight and bias, and its derivatives by them."""
    inputs = [t.clone().requires_grad_() for t in given]
    with threads(n_threads):
        value = linear(*inputs)
        weights = numbers(9, *value.shape).to(value.dtype)
        return [value, *torch.autograd.grad((value * weights).sum(), inputs)]


@compiled
@pytest.mark.parametrize(("layers", "rows", "inputs", "outputs"), SIZES)
def test_layers_and_their_derivatives(layers: int, rows: int, inputs: int, outputs: int) -> None:
    shapes = ((rows, layers * inputs), (inputs, layers * outputs), (layers * outputs,))
    given = [numbers(i, *shape) for i, shape in enumerate(shapes)]
    assert multiplies_compiled(*given)
    one, two = (with_derivatives(given, n) for n in (1, 2))
    expected = with_derivatives([t.double() for t in given])
    for ours, with_two, exact in zip(one, two, expected, strict=True):
        assert torch.equal(ours, with_two)
        scale = 1 + exact.abs().max()
        assert (ours.double() - exact).abs().max() < 3e-6 * scale


@compiled
def test_derivatives_can_be_derived() -> None:
    """By a second derivative in float64, which PyTorch's own products make."""
    given = [numbers(i, *shape) for i, shape in enumerate([(4, 6), (3, 8), (8,)])]
    second = []
    for kind in (torch.float32, torch.float64):
        inputs = [t.to(kind).requires_grad_() for t in given]
        first = torch.autograd.grad(linear(*inputs).pow(2).sum(), inputs, create_graph=True)
        second.append(torch.autograd.grad(sum(d.pow(3).sum() for d in first), inputs))
    for ours, exact in zip(*second, strict=True):
        assert (ours.double() - exact).abs().max() < 3e-6 * exact.abs().max()


def test_derivatives_of_long_sums_can_be_derived() -> None:
    """RELAX does, where nothing is compiled."""
    x, weight = numbers(0, 800, 3).double(), numbers(1, 3, 2).double()
    second = []
    for product in (steady_product, torch.matmul):
        inputs = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
        value = product(*inputs).tanh().sum()
        slopes = torch.autograd.grad(value, inputs, create_graph=True)
        square = sum(slope.square().sum() for slope in slopes)
        second.append(torch.autograd.grad(square, inputs))
    torch.testing.assert_close(second[0], second[1])


@compiled
@pytest.mark.parametrize("spoilt", range(3))
def test_what_is_not_a_number_comes_through(spoilt: int) -> None:
    given = [numbers(0, 15, 6), numbers(1, 6, 40), numbers(2, 40)]
    given[spoilt].view(-1)[-1] = torch.nan
    value, *_ = with_derivatives(given)
    assert value[-1, -1].isnan()
    assert not value[0, 0].isnan() or spoilt == 1


@compiled
def test_only_what_is_asked_for_is_derived() -> None:
    x, weight, bias = numbers(0, 3, 4), numbers(1, 4, 5).requires_grad_(), numbers(2, 5)
    linear(x, weight, bias).sum().backward()
    assert x.grad is None
    assert bias.grad is None
    torch.testing.assert_close(weight.grad, x.sum(0)[:, None].expand(4, 5))


@compiled
def test_inputs_with_gaps() -> None:
    x, weight, bias = numbers(0, 8, 30)[:, 3:7], numbers(1, 5, 4).mT, numbers(2, 10)[::2]
    expected = x.double() @ weight.double() + bias
    torch.testing.assert_close(linear(x, weight, bias).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(0, 4, 5), (3, 4, 0), (3, 0, 5)])
def test_what_is_empty_is_left_to_torch(rows: int, inputs: int, outputs: int) -> None:
    x, weight, bias = torch.ones(rows, inputs), torch.ones(inputs, outputs), torch.ones(outputs)
    assert not multiplies_compiled(x, weight, bias)


def test_layers_side_by_side_are_layers() -> None:
    """Each with its own part of the inputs and of the columns, compiled or not."""
    generator = torch.Generator().manual_seed(0)
    both = ParallelLinear(6, 4, 2, generator)
    x = numbers(0, 7, 12)
    for kind in (torch.float32, torch.float64):
        found = linear(x.to(kind), both.weight.to(kind), both.bias.to(kind))
        for i in range(2):
            layer = Linear(6, 4, generator).to(kind)
            columns = slice(4 * i, 4 * i + 4)
            layer.weight.data = both.weight.detach()[:, columns].to(kind)
            layer.bias.data = both.bias.detach()[columns].to(kind)
            own = layer(x[:, 6 * i : 6 * i + 6].to(kind))
            torch.testing.assert_close(found[:, columns], own, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"), [(900, 50, 8), (30, 20, 3_000), (900, 30, 900), (30, 20, 10)]
)
@pytest.mark.parametrize("product", [SteadyProduct, SideBySide])
def test_products_do_not_depend_on_threads(
    product: type[torch.autograd.Function], rows: int, inputs: int, outputs: int
) -> None:
    """Many rows or many outputs, of whose sums MKL gives each thread a half on some CPUs."""
    given = (numbers(0, rows, inputs), numbers(1, inputs, outputs))
    if product is SideBySide and not multiplies_compiled(*given):
        pytest.skip("products are not compiled here")
    more = (None,) if product is SideBySide else ()
    weights = numbers(2, rows, outputs)
    results = []
    for n in (1, 2):
        with threads(n):
            x, weight = (tensor.clone().requires_grad_() for tensor in given)
            value = product.apply(x, weight, *more)
            results.append([value, *torch.autograd.grad((value * weights).sum(), [x, weight])])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    x, weight = (tensor.double().requires_grad_() for tensor in given)
    value = x @ weight
    expected = [value, *torch.autograd.grad((value * weights).sum(), [x, weight])]
    for one, other in zip(results[0], expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-3)


@compiled
@pytest.mark.parametrize("spoilt", ["a", "b", "start", "out", "sizes"])
def test_matrices_that_do_not_fit_are_refused(spoilt: str) -> None:
    sizes, strides = (1, 3, 2, 2), ((6, 2, 1), (4, 2, 1), (6, 2))  # 3 x 2 times 2 x 2
    lengths = {"a": 6, "b": 4, "start": 2, "out": 6}
    arrays = {name: np.ones(length, np.float32) for name, length in lengths.items()}
    multiply = products._steps.multiply
    multiply(*arrays.values(), sizes, *strides, 1)
    assert arrays["out"].tolist() == [3] * 6
    if spoilt == "sizes":
        sizes = (1, 0, 2, 2)
    else:
        arrays[spoilt] = arrays[spoilt][:-1].copy()
    with pytest.raises(ValueError, match="do not fit together"):
        multiply(*arrays.values(), sizes, *strides, 1)
