"""Getting a gradient through a binary sample."""

from __future__ import annotations

from torch import Tensor


def straight_through(probabilities: Tensor, u: Tensor, scale: float = 1.0) -> Tensor:
    """s = (sign(p − u) + 1) / 2, whose gradient is ``scale`` times that of p (eqs. 18, 19).

    The paper differentiates its sign form literally and gets the factor ½. We train with 1: E[s] = p
    has derivative 1, so with 1 the estimator is exact for whatever is linear in s, and with ½ it is
    half of that. The factor is no mere rescaling of the step, since log h_k also depends on r
    without passing through s, and keeps its own weight.

    >>> import torch
    >>> p = torch.tensor([0.3, 0.8], requires_grad=True)
    >>> s = straight_through(p, torch.tensor([0.5, 0.5]))
    >>> s.tolist()
    [0.0, 1.0]
    >>> s.sum().backward()
    >>> p.grad.tolist()
    [1.0, 1.0]
    """
    bits = (probabilities > u).to(probabilities.dtype)
    return bits.detach() + scale * (probabilities - probabilities.detach())
