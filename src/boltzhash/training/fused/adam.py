"""Adam in one kernel over all weights.

PyTorch's own gives a block of a GPU 65,536 weights, so a model of a few million leaves half of a
large GPU idle. This one gives it a thousand, or eight words of a layer that reads words: the gradient of
those is made from the documents in which they occur. That of a bias is summed here, too.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from boltzhash.training.fused import THREADS, kernel, source_of
from boltzhash.training.words_gradient import BiasGradient, PatientAdam, WordsGradient

A_BLOCK = 4 * THREADS  # weights
WORDS_A_BLOCK = THREADS // 32
BIASES_A_BLOCK = 64
MOST_DOCUMENTS = 512  # whose words a block can list
FEWEST_WORDS = (
    4096  # fewer may be features, all of which every document has: a product is faster then
)


# The function of each kind of gradient in adam.cu, with letters for the pointers and sizes it is given.
_GIVEN = {"update": ("pgmv", "n"), "update_words": ("pxomv", "wud"), "update_sums": ("pomv", "ud")}


@cache
def _source(functions: tuple[str, ...]) -> str:
    """A kernel for that many tensors, each updated by its function: blocks of the first come first."""
    declared, calls = [], []
    for t, function in enumerate(functions):
        pointers, sizes = _GIVEN[function]
        declared += [f"float *{name}{t}" for name in f"{pointers}s"]
        declared += [f"int {name}{t}" for name in f"{sizes}b"]
        given = ", ".join(f"{name}{t}" for name in f"{pointers}{sizes}")
        calls.append(
            f"if (block < b{t}) return {function}({given}, block, *rate, *s{t}, *settings);"
            f" block -= b{t};"
        )
    body = "\n    ".join(calls)
    return f"""#define WORDS {WORDS_A_BLOCK}
#define DOCUMENTS {MOST_DOCUMENTS}
{source_of("adam.cu")}
extern "C" __global__ void adam(const float *rate, const Settings *settings, {", ".join(declared)})
{{
    int block = blockIdx.x;
    {body}
}}
"""


class OneKernelAdam(PatientAdam):
    """torch.optim.Adam with its defaults, for weights and a learning rate on a GPU."""

    @torch.no_grad()
    def step(self) -> None:
        (group,) = self.param_groups
        gradients = {p: g for p in group["params"] if (g := self.gradient_of(p)) is not None}
        torch._foreach_add_([self.moments_of(p)["step"] for p in gradients], 1)
        arguments: list[Tensor | int] = []
        functions: list[str] = []
        n_blocks = 0
        for p, gradient in gradients.items():
            function, parts, sizes, blocks = _parts(p, gradient)
            state = self.state[p]
            moments = (state["exp_avg"], state["exp_avg_sq"], state["step"])
            arguments += [p, *parts, *moments, *sizes, blocks]
            functions.append(function)
            n_blocks += blocks
        settings = _settings(*group["betas"], group["eps"], group["lr"].device)
        kernel("adam", _source(tuple(functions)))(
            grid=(n_blocks, 1, 1),
            block=(THREADS, 1, 1),
            args=[group["lr"], settings, *arguments],
        )


def _parts(
    weight: Tensor, gradient: Tensor | WordsGradient | BiasGradient
) -> tuple[str, tuple[Tensor, ...], tuple[int, ...], int]:
    """By which function, what the gradient is made of, its sizes, and the blocks that it takes."""
    if isinstance(gradient, BiasGradient):
        rows = gradient.by_output
        return "update_sums", (rows,), (len(weight), len(rows)), -(-len(weight) // BIASES_A_BLOCK)
    if isinstance(gradient, WordsGradient):
        x, by_output = gradient
        assert isinstance(x, Tensor)
        is_listed = len(weight) >= FEWEST_WORDS and len(x) <= MOST_DOCUMENTS
        if is_listed and weight.shape[1] % 4 == 0:
            blocks = -(-len(weight) // WORDS_A_BLOCK)
            return "update_words", (x.contiguous(), by_output), (*weight.shape, len(x)), blocks
        gradient = gradient.whole(len(weight))
    blocks = -(-weight.numel() // A_BLOCK)
    return "update", (gradient.contiguous(),), (weight.numel(),), blocks


@cache
def _settings(beta1: float, beta2: float, epsilon: float, device: torch.device) -> Tensor:
    values = (math.log(beta1), math.log(beta2), 1 - beta1, beta2, 1 - beta2, epsilon)
    return torch.tensor(values, device=device)
