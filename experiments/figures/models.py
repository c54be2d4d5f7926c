"""Figures of the model's pages: how good gradients are, how far the shortcut is from the machine."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.results.files import read_all
from experiments.tables import gradients

Record = dict[str, Any]

# Okabe and Ito's palette, which the colour-blind can tell apart; one hue from light to dark where
# the lines have an order.
BLUES = ["#8cc3e0", "#45a1d6", "#0072b2", "#08306b"]
ORANGE, GREEN, PURPLE, GREY, YELLOW = "#d55e00", "#009e73", "#aa4499", "#666666", "#e69f00"

ESTIMATORS = {
    "reinforce": {"color": GREY, "marker": "x"},
    "arm": {"color": BLUES[2], "marker": "s"},
    "rebar": {"color": BLUES[1], "marker": "D"},
    "relax": {"color": GREEN, "marker": "o"},
    "gumbel-softmax, hard": {"color": PURPLE, "marker": "^"},
    "gumbel-softmax, soft": {"color": YELLOW, "marker": "v"},
    "straight-through": {"color": ORANGE, "marker": "P"},
}


def draw_gradient_estimators() -> Figure | None:
    """Bias and variance of the estimators against the confidence of the posterior."""
    results = read_all("gradient-estimators")
    if not results:
        return None
    (result,) = results
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.2, 4.4), layout="constrained")
    for name, style in ESTIMATORS.items():
        points = [p for p in result["points"] if p["estimator"] == name]
        x = [p["x"] for p in points]
        unbiased = {"linestyle": ":", "linewidth": 1.0} if name in gradients.UNBIASED else {}
        left.errorbar(
            x,
            [p["bias"] for p in points],
            [p["standard_error"] for p in points],
            elinewidth=1.0,
            **style,
            **unbiased,
        )
        right.plot(x, [p["variance"] for p in points], label=gradients.NAMES[name], **style)
    left.set(title="Bias (dotted: unbiased, what is seen is noise)", ylabel="‖mean error‖ / ‖g‖")
    right.set(title="Variance of one draw", ylabel="variance / ‖g‖²")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="|logit| of every bit")
        ticks = [0.1, 0.2, 0.5, 1, 2, 5]
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.minorticks_off()
        axes.grid()
    left.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    right.set_yticks([0.1, 1, 10, 100, 1000, 10_000], ["0.1", "1", "10", "100", "1,000", "10,000"])
    left.set_ylim(top=1.1)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def line(axes: Axes, points: list[Record], series: str, label: str, **style: Any) -> None:
    """One series, with the middle half of the repeats behind it."""
    chosen = [p for p in points if p["series"] == series]
    x = [p["x"] for p in chosen]
    axes.plot(x, [p["tv"] for p in chosen], label=label, **style)
    if any(p["repeats"] > 1 for p in chosen):
        low, high = zip(*(p["quartiles"] for p in chosen), strict=True)
        axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)


def draw_shortcut_distance() -> Figure | None:
    """Total variation between the shortcut and the Boltzmann machine: by variance, couplings, bits."""
    results = read_all("shortcut-distance")
    if not results:
        return None
    (result,) = results
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(10.2, 4.0), sharey=True, layout="constrained"
    )
    _by_variance(left, result["variance"])
    _by_coupling(middle, result["coupling"])
    _by_bits(right, result["bits"])
    for axes in (left, middle, right):
        axes.set_ylim(0, 1.02)
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.17),
            ncols=2,
            frameon=False,
            handlelength=1.8,
            columnspacing=1.0,
        )
        axes.minorticks_off()
        axes.grid()
    return figure


def _by_variance(axes: Axes, points: list[Record]) -> None:
    for m, colour in zip((128, 32, 8, 2), reversed(BLUES), strict=True):
        line(axes, points, f"m = {m}", f"{m} bits", color=colour)
    axes.set(
        title="Variance alone (no couplings)",
        xlabel="variance of every bit, D",
        ylabel="total variation distance",
    )
    _variances(axes)


def _by_coupling(axes: Axes, points: list[Record]) -> None:
    for rank, colour in ((1, ORANGE), (2, GREEN), (3, PURPLE)):
        line(axes, points, f"rank {rank}", f"rank {rank}", color=colour)
    line(axes, points, "no coupling", "uncoupled, same variance", color=GREY, linestyle="--")
    axes.set(title="Couplings (8 bits, D = 0.01)", xlabel="variance of every bit through UUᵀ")
    _variances(axes)


def _variances(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set(xticks=[0.01, 0.1, 1, 10], xticklabels=["0.01", "0.1", "1", "10"])


def _by_bits(axes: Axes, points: list[Record]) -> None:
    line(axes, points, "v = 1, random U", "v = 1, random U", color=ORANGE, marker="o")
    line(axes, points, "v = 10, all U = 1/v", "v = 10, all U = 1/v", color=PURPLE, marker="s")
    line(axes, points, "v = 10, random U", "v = 10, random U", color=GREEN, marker="D")
    line(axes, points, "v = 0", "no couplings", color=GREY, linestyle="--")
    axes.set_xscale("log", base=2)
    bits = [2, 4, 8, 16, 32, 64, 128]
    axes.set(
        title="Published scale (√D = 0.69, |U| ≤ 1/v)",
        xlabel="bits",
        xticks=bits,
        xticklabels=list(map(str, bits)),
    )
