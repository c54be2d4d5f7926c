"""Adam in one kernel over all weights.

PyTorch's own gives a block of a GPU 65,536 weights, so a model of a few million leaves half of a
large GPU idle. This one gives it a thousand.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from boltzhash.training.fused import THREADS, kernel

A_BLOCK = 4 * THREADS  # weights
BODY = """
struct Settings { float log_beta1, log_beta2, rest1, beta2, rest2, epsilon; };

__device__ void update_one(float &weight, float gradient, float &mean, float &square,
                           float rate, float root, const Settings &s)
{
    mean += s.rest1 * (gradient - mean);
    square = s.beta2 * square + s.rest2 * gradient * gradient;
    weight -= rate * mean / (sqrtf(square) / root + s.epsilon);
}

__device__ void update(float *weights, const float *gradients, float *means, float *squares,
                       int n, int block, float rate, float step, const Settings &s)
{
    rate /= -expm1f(step * s.log_beta1);  // averages that started at 0 are too small by this
    float root = sqrtf(-expm1f(step * s.log_beta2));
    int i = 4 * (block * blockDim.x + threadIdx.x);
    size_t together = (size_t)weights | (size_t)gradients | (size_t)means | (size_t)squares;
    if (n % 4 == 0 && together % 16 == 0 && i < n) {
        float4 w = *(float4 *)(weights + i), g = *(const float4 *)(gradients + i);
        float4 m = *(float4 *)(means + i), v = *(float4 *)(squares + i);
        update_one(w.x, g.x, m.x, v.x, rate, root, s);
        update_one(w.y, g.y, m.y, v.y, rate, root, s);
        update_one(w.z, g.z, m.z, v.z, rate, root, s);
        update_one(w.w, g.w, m.w, v.w, rate, root, s);
        *(float4 *)(weights + i) = w;
        *(float4 *)(means + i) = m;
        *(float4 *)(squares + i) = v;
    } else
        for (int j = i; j < i + 4 && j < n; j++)
            update_one(weights[j], gradients[j], means[j], squares[j], rate, root, s);
}
"""


@cache
def _source(n_tensors: int) -> str:
    """A kernel for that many tensors: blocks of the first come first."""
    names = [f"{kind}{t}" for t in range(n_tensors) for kind in "pgmvsnb"]
    declared = [f"{'int' if n[0] in 'nb' else 'float *'} {n}" for n in names]
    calls = "\n    ".join(
        f"if (block < b{t}) return update(p{t}, g{t}, m{t}, v{t}, n{t}, block, *rate, *s{t}, *settings);"
        f" block -= b{t};"
        for t in range(n_tensors)
    )
    return f"""{BODY}
extern "C" __global__ void adam(const float *rate, const Settings *settings, {", ".join(declared)})
{{
    int block = blockIdx.x;
    {calls}
}}
"""


class OneKernelAdam(torch.optim.Adam):
    """torch.optim.Adam with its defaults, for weights and a learning rate on a GPU."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # no closure is taken
        (group,) = self.param_groups
        weights = [p for p in group["params"] if p.grad is not None]
        for p in weights:
            if not self.state[p]:
                self.state[p]["step"] = torch.zeros((), device=p.device)
                self.state[p]["exp_avg"] = torch.zeros_like(p)
                self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
        states = [self.state[p] for p in weights]
        torch._foreach_add_([state["step"] for state in states], 1)
        arguments: list[Tensor | int] = []
        n_blocks = 0
        for p, state in zip(weights, states, strict=True):
            blocks = -(-p.numel() // A_BLOCK)
            assert p.grad is not None
            gradient = p.grad.contiguous()
            moments = (state["exp_avg"], state["exp_avg_sq"], state["step"])
            arguments += [p, gradient, *moments, p.numel(), blocks]
            n_blocks += blocks
        settings = _settings(*group["betas"], group["eps"], weights[0].device)
        kernel("adam", _source(len(weights)))(
            grid=(n_blocks, 1, 1),
            block=(THREADS, 1, 1),
            args=[group["lr"], settings, *arguments],
        )


@cache
def _settings(beta1: float, beta2: float, epsilon: float, device: torch.device) -> Tensor:
    values = (math.log(beta1), math.log(beta2), 1 - beta1, beta2, 1 - beta2, epsilon)
    return torch.tensor(values, device=device)
