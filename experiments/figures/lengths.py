"""Figure 1: precision against the length of the code, every method on every corpus."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from experiments import paper
from experiments.results.files import read_all
from experiments.runs.sweeps import LENGTHS, MAIN
from experiments.tables.cells import Cells, by_length, cells
from experiments.tables.paper_tables import WITHOUT_EPOCHS

CORPORA = {"ng20": "20 Newsgroups", "reuters": "Reuters-21578", "tmc": "TMC"}
WIDTH, HEIGHT = 11.0, 8.4  # inches
LABEL_GAP = 8.2  # points between the baselines of two labels


class Line(NamedTuple):
    """How a method is shown."""

    method: str
    label: str
    colour: str
    marker: str


# Okabe and Ito's palette, which the colour-blind can tell apart, for what is learned by a network; greys
# for the rest. Every line has its name at its end.
LINES = [
    Line("LSH", "LSH", "#8c8c8c", "x"),
    Line("SpectralHashing", "SpH", "#8c8c8c", "^"),
    Line("SelfTaughtHashing", "STH", "#5c5c5c", "s"),
    Line("ITQ", "ITQ", "#5c5c5c", "D"),
    Line("StackedRBM", "S-RBM", "#8c8c8c", "v"),
    Line("VDSH", "VDSH", "#e69f00", "v"),
    Line("GMSH", "GMSH", "#b79f00", "^"),
    Line("NASH", "NASH", "#0072b2", "s"),
    Line("BMSH", "BMSH", "#009e73", "D"),
    Line("Doc2hash", "Doc2hash", "#56b4e9", "<"),
    Line("RBSH", "RBSH", "#cc79a7", ">"),
]
OURS = Line("SemanticHasher", "SemanticHasher", "#d55e00", "o")
CORRSH = Line("CorrSH", "CorrSH", "#d55e00", "o")
AS_PUBLISHED = Line("CorrSH-published", "CorrSH, published", "#d55e00", "o")


def draw(*experiments: str) -> Figure | None:
    """Above: defaults, last epoch. Below: as published, best epoch on test, beside the paper's."""
    results = read_all(*experiments)
    ours, published = cells(results), cells(results, "published")
    if not ours:
        return None
    figure, axes = plt.subplots(2, len(MAIN), figsize=(WIDTH, HEIGHT), sharex=True)
    figure.subplots_adjust(
        left=0.06, right=0.905, top=0.925, bottom=0.055, wspace=0.56, hspace=0.27
    )
    for column, corpus in enumerate(MAIN):
        _defaults(axes[0, column], corpus, ours)
        _published(axes[1, column], corpus, published)
    for row, title in enumerate(
        (
            "Defaults of this library. Protocol label-free: last epoch, no labels",
            "As published (solid) and the paper's own figures (dashed, other splits). "
            "Protocol published: best epoch on test",
        )
    ):
        top = axes[row, 0].get_position().y1
        figure.text(0.06, top + 0.032, title, weight="bold", size=9.5)
    return figure


def _defaults(axes: Axes, corpus: str, found: Cells) -> None:
    labels = []
    for line in (*LINES, OURS, AS_PUBLISHED):
        means = _means(found, line.method, corpus)
        ours = line is OURS
        style: dict[str, Any] = {"color": line.colour, "marker": line.marker, "zorder": 2}
        if ours:
            style |= {"linewidth": 2.6, "markersize": 5, "zorder": 4}
        if line is AS_PUBLISHED:
            style |= {"linewidth": 1.6, "markerfacecolor": "white", "zorder": 3}
        labels += _plot(axes, means, line.label, style, bold=ours)
    _finish(axes, corpus, labels)


def _published(axes: Axes, corpus: str, found: Cells) -> None:
    labels = []
    for line in (*LINES, CORRSH):
        printed = paper.TABLES[corpus].get(line.method)
        if printed is None:
            continue
        name = line.method if line.method in WITHOUT_EPOCHS else f"{line.method}-published"
        style: dict[str, Any] = {"color": line.colour, "marker": line.marker}
        if line is CORRSH:
            style |= {"linewidth": 2.6, "markersize": 5, "zorder": 4}
        drawn = _plot(axes, _means(found, name, corpus), line.label, style, bold=line is CORRSH)
        light = {"color": line.colour, "linestyle": (0, (3, 2)), "linewidth": 1.0, "alpha": 0.6}
        theirs = _plot(axes, printed, f"{line.label}, paper", light)
        labels += drawn + theirs
    _finish(axes, corpus, labels)


class Label(NamedTuple):
    """What is written at the end of a line, and how high the line ends."""

    text: str
    y: float
    colour: str
    bold: bool
    light: bool


def _plot(
    axes: Axes,
    means: tuple[float | None, ...],
    text: str,
    style: dict[str, Any],
    bold: bool = False,
) -> list[Label]:
    points = [(x, y) for x, y in enumerate(means) if y is not None]
    if not points:
        return []
    axes.plot(*zip(*points, strict=True), **style)
    return [Label(text, points[-1][1], style["color"], bold, "alpha" in style)]


def _means(found: Cells, settings: str, corpus: str) -> tuple[float | None, ...]:
    return tuple(statistics.fmean(v) if v else None for v in by_length(found, settings, corpus))


def _finish(axes: Axes, corpus: str, labels: list[Label]) -> None:
    axes.set_title(CORPORA[corpus], loc="left", color="#444444")
    axes.set_xticks(range(len(LENGTHS)), [str(bits) for bits in LENGTHS])
    axes.tick_params(labelbottom=True)
    axes.set_xlabel("bits", labelpad=1)
    axes.set_xlim(-0.15, len(LENGTHS) - 0.9)
    axes.set_ylabel("precision of the top 100" if corpus == MAIN[0] else "")
    axes.grid(axis="y")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.1f}".removeprefix("0"))
    axes.yaxis.set_major_locator(MultipleLocator(0.1))
    _label(axes, sorted(labels, key=lambda label: label.y))


def _label(axes: Axes, labels: list[Label]) -> None:
    """Names at the ends of the lines, moved apart where they would overlap, with thin leaders."""
    low, high = axes.get_ylim()
    height = axes.get_position().height * HEIGHT * 72  # points
    scale = (high - low) / height
    places = apart([label.y / scale for label in labels], LABEL_GAP)
    for label, place in zip(labels, places, strict=True):
        axes.annotate(
            label.text,
            xy=(len(LENGTHS) - 1, label.y),
            xytext=(len(LENGTHS) - 1 + 0.32, place * scale),
            color=label.colour,
            alpha=0.75 if label.light else 1,
            size=7,
            style="italic" if label.light else "normal",
            weight="bold" if label.bold else "normal",
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.5,
                "color": label.colour,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
        )


def apart(wanted: list[float], gap: float) -> list[float]:
    """Ascending places as near as can be to those wanted, no two nearer to each other than the gap.

    Neighbours that would overlap become a block, evenly spaced about the mean of what they want.

    >>> apart([0.0, 5.0, 5.5, 20.0], 2.0)
    [0.0, 4.25, 6.25, 20.0]
    """
    blocks: list[tuple[float, int]] = []  # centre, how many

    def ends(block: tuple[float, int]) -> tuple[float, float]:
        half = (block[1] - 1) * gap / 2
        return block[0] - half, block[0] + half

    for value in wanted:
        block = (value, 1)
        while blocks and ends(block)[0] - ends(blocks[-1])[1] < gap:
            centre, count = blocks.pop()
            total = count + block[1]
            block = ((centre * count + block[0] * block[1]) / total, total)
        blocks.append(block)
    return [ends(block)[0] + step * gap for block in blocks for step in range(block[1])]
