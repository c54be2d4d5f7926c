"""Getting a gradient through a binary sample.

s ~ Bernoulli(σ(r)) has no derivative, yet E f(s) depends on r. An estimator evaluates f at a
sampled code and returns that value with a gradient of its own making: ``value.mean().backward()``
gives an estimate of ∂ E f for whatever the logits r were computed from and for whatever is in f.
docs/models/gradients.md compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from boltzhash.arguments import Number, check
from boltzhash.training.draws import fill_uniform
from boltzhash.training.networks import Linear

Function = Callable[[Tensor], Tensor]
"""f: codes (..., m) → one value each (...). May use other parameters, and the logits as well."""


class GradientEstimator(Protocol):
    """One way to differentiate E f(s), s ~ Bernoulli(σ(logits))."""

    def __call__(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The value to minimise, of shape logits.shape[:-1], and the bits s it was sampled at.

        ``progress`` is the share of training that is over, for anything that follows a schedule. Some
        estimators call f more than once: noise that it needs is better drawn outside.
        """
        ...


def straight_through(probabilities: Tensor, u: Tensor, scale: float = 1.0) -> Tensor:
    """s = (sign(p − u) + 1) / 2, whose gradient is ``scale`` times that of p (eqs. 18, 19).

    The paper differentiates its sign form literally and gets the factor ½. The default is 1: E[s] = p
    has derivative 1, so with 1 the estimator is exact for whatever is linear in s, and with ½ it is
    half of that. The factor is not a mere rescaling of the step, since log h_k also depends on r
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
    bits: Tensor = _StraightThrough.apply(probabilities, u, scale)  # type: ignore[no-untyped-call]
    return bits


class _StraightThrough(torch.autograd.Function):
    """[p > u] forwards, the identity times a factor backwards."""

    @staticmethod
    def forward(ctx: Any, probabilities: Tensor, u: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return torch.gt(probabilities, u, out=torch.empty_like(probabilities))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return (gradient if ctx.scale == 1 else ctx.scale * gradient), None, None


@dataclass(frozen=True)
class StraightThrough:
    """∂s = ``scale`` · ∂σ(r): one evaluation; with a scale of 1 unbiased if f is linear in each bit.

    ``StraightThrough(0.5)``, "straight-through-half", is eq. 19 of CorrSH's paper to the letter.

    References
    ----------
    Bengio, Léonard and Courville (2013). Estimating or Propagating Gradients Through Stochastic
    Neurons for Conditional Computation.

    Examples
    --------
    >>> logits = torch.zeros(1, 2, requires_grad=True)
    >>> f = lambda s: s @ torch.tensor([4.0, -8.0])
    >>> value, s = StraightThrough()(logits, f, torch.Generator().manual_seed(0), torch.tensor(0.0))
    >>> value.mean().backward()
    >>> logits.grad.tolist()
    [[1.0, -2.0]]
    """

    scale: float = 1.0

    def __call__(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        s = straight_through(logits.sigmoid(), _uniform(logits, generator), self.scale)
        return _evaluate(f, s), s.detach()


@dataclass(frozen=True)
class GumbelSoftmax:
    """σ((r + logistic noise) / τ) in place of s: one evaluation, biased, less so as τ falls.

    For bits the Gumbel-softmax is the binary concrete distribution.

    Parameters
    ----------
    temperature : (float, float), default=(1.0, 0.5)
        τ at the beginning and the end of training, geometric in between.
    hard : bool, default=True
        Evaluate f at the bits, with the gradient of the relaxed ones; False evaluates f at the
        relaxed ones, which is then what is optimised.

    References
    ----------
    Jang, Gu and Poole (2017). Categorical Reparameterization with Gumbel-Softmax. ICLR.
    Maddison, Mnih and Teh (2017). The Concrete Distribution. ICLR.

    Examples
    --------
    >>> estimator = GumbelSoftmax(temperature=(1.0, 0.25))
    >>> estimator.temperature_at(torch.tensor([0.0, 0.5, 1.0]))
    tensor([1.0000, 0.5000, 0.2500])
    """

    temperature: tuple[float, float] = (1.0, 0.5)
    hard: bool = True

    def __post_init__(self) -> None:
        for value in self.temperature:
            check("temperature", value, Number(above=0))

    def temperature_at(self, progress: Tensor) -> Tensor:
        start, end = self.temperature
        return start * (end / start) ** progress.clamp(0, 1)

    def __call__(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        z = logits + _logistic(logits, generator)
        relaxed = (z / self.temperature_at(progress)).sigmoid()
        s = (z.detach() > 0).to(z)
        code = s + (relaxed - relaxed.detach()) if self.hard else relaxed
        return _evaluate(f, code), s


@dataclass(frozen=True)
class ARM:
    """(f(s') − f(s)) (u − ½) with s = [u < σ(r)] and s' = [u > σ(−r)]: unbiased, two evaluations.

    References
    ----------
    Yin and Zhou (2019). ARM: Augment-REINFORCE-Merge Gradient for Stochastic Binary Networks. ICLR.

    Examples
    --------
    >>> logits = torch.zeros(100_000, 2, requires_grad=True)
    >>> f = lambda s: s @ torch.tensor([4.0, -8.0])
    >>> value, s = ARM()(logits, f, torch.Generator().manual_seed(0), torch.tensor(0.0))
    >>> value.sum().backward()
    >>> [round(x, 1) for x in logits.grad.mean(0).tolist()]
    [1.0, -2.0]
    """

    def __call__(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        r = logits.detach()
        u = _uniform(r, generator)
        s = (u < r.sigmoid()).to(r)
        value = _evaluate(f, s)
        with torch.no_grad():
            antithetic = _evaluate(f, (u >= (-r).sigmoid()).to(r))  # u may be 0
        gradient = (antithetic - value.detach()).unsqueeze(-1) * (u - 0.5)
        return value + _with_gradient(logits, gradient), s


@dataclass(frozen=True)
class REBAR:
    """REINFORCE less η times itself on the relaxed code, whose gradient is added back: unbiased.

    Two evaluations. The relaxed code given s uses the noise that gave s (the tied u and v of the
    paper), so it is the relaxed code itself and f is evaluated there once.

    Parameters
    ----------
    temperature : float, default=0.5
    eta : float, default=1.0
        Weight of the control variate; 0 leaves REINFORCE.

    References
    ----------
    Tucker, Mnih, Maddison, Lawson and Sohl-Dickstein (2017). REBAR: Low-variance, unbiased gradient
    estimates for discrete latent variable models. NeurIPS.
    """

    temperature: float = 0.5
    eta: float = 1.0

    def __post_init__(self) -> None:
        check("temperature", self.temperature, Number(above=0))

    def __call__(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        draw = _Relaxation.draw(logits, self.temperature, generator)
        value = _evaluate(f, draw.s)
        relaxed, slope = _value_and_slope(f, draw.relaxed)
        gradient = draw.gradient(value.detach(), self.eta * relaxed, self.eta * slope)
        return value + _with_gradient(logits, gradient), draw.s


class RELAX(nn.Module):
    """REBAR whose control variate is learned: η f(x) + c(x), c a small network on the relaxed code x.

    η and c are this module's parameters. The value carries a term that is always 0 and whose gradient
    for them, and for nothing else, is that of g², where g is the gradient for the logits: since g is
    unbiased whatever they are, a smaller g² is a smaller variance. So give them to the optimiser that
    *minimises* the value, with its sign as it is. Starts as REBAR.

    Parameters
    ----------
    n_bits : int
    hidden : int
        Units of the network's one tanh layer.
    generator : torch.Generator
        Draws the first weights.
    temperature : float, default=0.5

    References
    ----------
    Grathwohl, Choi, Wu, Roeder and Duvenaud (2018). Backpropagation through the Void: Optimizing
    control variates for black-box gradient estimation. ICLR.
    """

    def __init__(
        self, n_bits: int, hidden: int, generator: torch.Generator, temperature: float = 0.5
    ) -> None:
        super().__init__()
        check("temperature", temperature, Number(above=0))
        self.temperature = temperature
        self.eta = nn.Parameter(torch.ones(()))
        self.hidden = Linear(n_bits, hidden, generator)
        self.output = Linear(hidden, 1, generator)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def control(self, codes: Tensor) -> Tensor:
        """c(x), one value per code."""
        flat = codes.reshape(-1, codes.shape[-1])
        values: Tensor = self.output(self.hidden(flat).tanh())
        return values.reshape(codes.shape[:-1])

    def forward(
        self, logits: Tensor, f: Function, generator: torch.Generator, progress: Tensor
    ) -> tuple[Tensor, Tensor]:
        draw = _Relaxation.draw(logits, self.temperature, generator)
        value = _evaluate(f, draw.s)
        relaxed, slope = _value_and_slope(f, draw.relaxed)
        learned, learned_slope = _value_and_slope(self.control, draw.relaxed, keep_graph=True)
        gradient = draw.gradient(
            value.detach(), self.eta * relaxed + learned, self.eta * slope + learned_slope
        )
        square = gradient.square().sum(-1)
        value = value + _with_gradient(logits, gradient.detach()) + (square - square.detach())
        return value, draw.s


class _Relaxation(NamedTuple):
    """z = r + logistic noise, s = [z > 0], x = σ(z / τ), and what x does when r changes.

    x moves with r in two ways: with the noise u held fixed, ∂z/∂r = 1; with s and the noise v left in z
    given s held fixed, z = ±softplus(logit v + softplus(±r)) with the sign of s, so
    ∂z/∂r = (1 − e^−|z|) σ(±r). ``slope`` is ∂x/∂r in the first way less that in the second.
    """

    s: Tensor
    relaxed: Tensor
    score: Tensor  # ∂ log p(s) / ∂r
    slope: Tensor

    @classmethod
    def draw(cls, logits: Tensor, temperature: float, generator: torch.Generator) -> _Relaxation:
        r = logits.detach()
        z = r + _logistic(r, generator)
        s = (z > 0).to(r)
        relaxed = (z / temperature).sigmoid()
        given_s = -torch.expm1(-z.abs()) * ((2 * s - 1) * r).sigmoid()
        slope = relaxed * (1 - relaxed) / temperature * (1 - given_s)
        return cls(s, relaxed, s - r.sigmoid(), slope)

    def gradient(self, value: Tensor, control: Tensor, control_slope: Tensor) -> Tensor:
        """(f(s) − c(x)) ∂ log p(s) + ∂c(x) with u held − ∂c(x) with s and v held."""
        return (value - control).unsqueeze(-1) * self.score + control_slope * self.slope


def _value_and_slope(f: Function, codes: Tensor, keep_graph: bool = False) -> tuple[Tensor, Tensor]:
    """f(x) and ∂f/∂x, the partial derivative; constants to autograd unless the graph is kept."""
    with torch.enable_grad():
        x = codes.detach().requires_grad_()
        values = _evaluate(f, x)
        total = values.sum() + 0 * x.sum()  # f may ignore the code
        (slope,) = torch.autograd.grad(total, x, create_graph=keep_graph)
    return (values, slope) if keep_graph else (values.detach(), slope)


def _evaluate(f: Function, codes: Tensor) -> Tensor:
    """f(codes), one value each: any other shape would broadcast and mix documents."""
    values = f(codes)
    if values.shape != codes.shape[:-1]:
        raise ValueError(
            f"f must give one value per code, shape {tuple(codes.shape[:-1])}, "
            f"got {tuple(values.shape)}"
        )
    return values


def _with_gradient(logits: Tensor, gradient: Tensor) -> Tensor:
    """Zeros, one per code, whose gradient for the logits is the given one."""
    return ((logits - logits.detach()) * gradient).sum(-1)


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    return fill_uniform(torch.empty_like(like, requires_grad=False), generator)


def _logistic(like: Tensor, generator: torch.Generator) -> Tensor:
    """log u − log(1 − u), so that [r + noise > 0] is on with probability σ(r)."""
    u = _uniform(like, generator).clamp_min(torch.finfo(like.dtype).tiny)  # u = 0 happens
    return u.log() - torch.log1p(-u)


ESTIMATORS: dict[str, Callable[[int, torch.Generator], GradientEstimator]] = {
    "straight-through": lambda n_bits, generator: StraightThrough(),
    "straight-through-half": lambda n_bits, generator: StraightThrough(0.5),
    "gumbel-softmax": lambda n_bits, generator: GumbelSoftmax(),
    "arm": lambda n_bits, generator: ARM(),
    "rebar": lambda n_bits, generator: REBAR(),
    "relax": lambda n_bits, generator: RELAX(n_bits, 64, generator),
}


def make_estimator(name: str, n_bits: int, generator: torch.Generator) -> GradientEstimator:
    """The estimator with that name and default settings; the generator draws RELAX's first weights.

    >>> make_estimator("rebar", 8, torch.Generator())
    REBAR(temperature=0.5, eta=1.0)
    """
    check("estimator", name, *ESTIMATORS)
    return ESTIMATORS[name](n_bits, generator)
