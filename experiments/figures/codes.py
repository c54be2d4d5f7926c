"""Figure 2, maps of 128-bit codes, and the correlations of their bits: what ``runs/codes.py`` left."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from experiments.results.files import Result, read_all
from experiments.tables.cells import short

Matrix = NDArray[np.float64]

METHODS = ("VDSH", "NASH", "CorrSH", "SemanticHasher")
RECIPES = {"-published": "as published", "": "defaults"}

# Families of newsgroups share a hue of Okabe and Ito's palette, groups of one go from light to dark. The
# numbers are the columns of the labels: the groups in alphabetical order.
FAMILIES: list[tuple[str, str, dict[int, str]]] = [
    (
        "comp",
        "#0072b2",
        {1: "graphics", 2: "ms-windows", 3: "ibm.pc", 4: "mac", 5: "windows.x"},
    ),
    ("rec", "#e69f00", {7: "autos", 8: "motorcycles", 9: "baseball", 10: "hockey"}),
    ("sci", "#009e73", {11: "crypt", 12: "electronics", 13: "med", 14: "space"}),
    ("politics", "#cc79a7", {16: "guns", 17: "mideast", 18: "politics.misc"}),
    ("religion", "#d55e00", {0: "atheism", 15: "christian", 19: "religion.misc"}),
    ("misc", "#777777", {6: "forsale"}),
]


def colours() -> dict[int, str]:
    """Column of a newsgroup → colour."""
    found = {}
    for _, hue, groups in FAMILIES:
        # From half way to white to half way to black.
        shades = np.linspace(0.45, -0.5, len(groups)) if len(groups) > 1 else [0.0]
        for column, shade in zip(groups, shades, strict=True):
            target, amount = (1.0, shade) if shade > 0 else (0.0, -shade)
            red, green, blue = (c + (target - c) * amount for c in to_rgb(hue))
            found[column] = to_hex((red, green, blue))
    return found


def draw_maps() -> Figure | None:
    """UMAP of the codes of the test documents, a panel a method and recipe."""
    results = {result["settings"]: result for result in read_all("codes")}
    panels = [
        (f"{method}, {recipe}", results[method + suffix])
        for suffix, recipe in RECIPES.items()
        for method in METHODS
        if method + suffix in results
    ]
    if not panels:
        return None
    columns = 2 if len(panels) <= 4 else 3
    rows = -(-len(panels) // columns)
    size, legend = 10.0 / columns, 1.05  # inches
    height = legend + (size + 0.25) * rows
    figure, axes = plt.subplots(rows, columns, figsize=(10.2, height), squeeze=False)
    figure.subplots_adjust(
        left=0.01,
        right=0.99,
        top=1 - 0.25 / height,
        bottom=legend / height,
        wspace=0.03,
        hspace=0.25 / size,
    )
    for panel in axes.flat[len(panels) :]:
        panel.set_axis_off()
    for panel, (title, result) in zip(axes.flat, panels, strict=False):
        _map(panel, result, title)
    _legend(figure, legend / height)
    return figure


def _map(axes: Axes, result: Result, title: str) -> None:
    x, y = np.array(result["points"]).T / 1000
    groups = np.array(result["groups"])
    shades = colours()
    axes.scatter(x, y, c=[shades[g] for g in groups], s=2.2, linewidths=0, rasterized=True)
    axes.set_title(f"{title}: {short(result['precision']['label-free'])}", loc="left")
    axes.set(xticks=[], yticks=[], xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    present = sorted(set(groups.tolist()))
    _names(axes, {g: (np.median(x[groups == g]), np.median(y[groups == g])) for g in present})
    for side in axes.spines.values():
        side.set(visible=True, color="#cccccc", linewidth=0.6)


# Of a letter of a group's name, as a share of the panel: its width and the distance of two lines.
LETTER, LINE = 0.0145, 0.029


def _names(axes: Axes, centres: dict[int, tuple[Any, Any]]) -> None:
    """Groups' names amid their points: colours alone do not tell twenty groups apart."""
    names = {group: name for _, _, groups in FAMILIES for group, name in groups.items()}
    paper = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 0.2}
    boxes = [(float(x), float(y), LETTER * len(names[g])) for g, (x, y) in centres.items()]
    for group, (x, _, width), y in zip(centres, boxes, lines_apart(boxes, LINE), strict=True):
        x = min(max(x, width / 2), 1 - width / 2)
        dark = tuple(0.55 * c for c in to_rgb(colours()[group]))
        style: dict[str, Any] = {"size": 5.5, "color": dark, "ha": "center", "va": "center"}
        axes.text(x, y, names[group], bbox=paper, zorder=3, **style)


def lines_apart(boxes: list[tuple[float, float, float]], gap: float) -> list[float]:
    """Heights of names (x, y, width) so moved that none lies on another.

    >>> lines_apart([(0.5, 0.5, 0.2), (0.6, 0.51, 0.2), (0.9, 0.5, 0.2)], 0.04)
    [0.4846, 0.5254, 0.5]
    """
    heights = [y for _, y, _ in boxes]
    pairs = [
        (i, j)
        for (i, one), (j, other) in itertools.combinations(enumerate(boxes), 2)
        if abs(one[0] - other[0]) < (one[2] + other[2]) / 2
    ]
    for _ in range(1000):  # pushing one pair apart may push it onto a third
        near = [(i, j) for i, j in pairs if abs(heights[i] - heights[j]) < gap]
        if not near:
            break
        for i, j in near:
            low, high = (i, j) if heights[i] <= heights[j] else (j, i)
            push = (
                max(0.0, 1.02 * gap - (heights[high] - heights[low])) / 2
            )  # a little more, to end
            heights[low], heights[high] = heights[low] - push, heights[high] + push
    return [round(height, 6) for height in heights]


def _legend(figure: Figure, top: float) -> None:
    """A column a family, its groups below its name."""
    shades = colours()
    for number, (family, _, groups) in enumerate(FAMILIES):
        handles = [
            Line2D([], [], color=shades[column], marker="o", markersize=5, linestyle="", label=name)
            for column, name in groups.items()
        ]
        figure.legend(
            handles=handles,
            title=family,
            loc="upper left",
            bbox_to_anchor=(0.03 + number * 0.163, top - 0.01),
            frameon=False,
            fontsize=7.5,
            handletextpad=0.2,
            labelspacing=0.25,
            borderpad=0,
            alignment="left",
            title_fontproperties={"weight": "bold", "size": 8},
        )


def draw_correlations() -> Figure | None:
    """Beside each other: the mean of Σ(x) as correlation, the codes' own, and one against the other."""
    results = {r["settings"]: r for r in read_all("codes") if "learned_correlation" in r}
    titles = {"CorrSH-published": "CorrSH, as published", "SemanticHasher": "SemanticHasher"}
    rows = [(title, name) for name, title in titles.items() if name in results]
    if not rows:
        return None
    figure, axes = plt.subplots(
        len(rows), 3, figsize=(10.2, 3.6 * len(rows)), layout="constrained", squeeze=False
    )
    for (title, name), panels in zip(rows, axes, strict=True):
        _correlations(figure, panels, title, results[name])
    return figure


def _correlations(figure: Figure, panels: Any, title: str, result: Result) -> None:
    bits = result["bits"]
    learned = square(result["learned_correlation"], bits)
    codes = square(result["code_correlation"], bits)
    order = leaves_list(linkage(squareform(1 - np.abs(codes), checks=False), "average"))
    for axes, matrix, what in (
        (panels[0], learned, "learned: mean of Σ(x) as correlation"),
        (panels[1], codes, "codes of test documents"),
    ):
        pairs = np.abs(matrix[np.triu_indices(bits, 1)])
        limit = float(np.quantile(pairs, 0.995))
        shown = matrix[np.ix_(order, order)].copy()
        np.fill_diagonal(shown, np.nan)
        image = axes.imshow(shown, cmap="PuOr_r", vmin=-limit, vmax=limit, interpolation="nearest")
        bar = figure.colorbar(image, ax=axes, shrink=0.8, extend="both")
        bar.outline.set_visible(False)
        axes.set_title(f"{title}\n{what}", loc="left")
        axes.set(xticks=[], yticks=[], xlabel="bits, those that go together side by side")
        axes.set_facecolor("#dddddd")
    _against(panels[2], learned, codes)


def _against(axes: Axes, learned: Matrix, codes: Matrix) -> None:
    above = np.triu_indices(len(learned), 1)
    x, y = codes[above], learned[above]
    axes.scatter(x, y, s=2, color="#0072b2", alpha=0.35, linewidths=0, rasterized=True)
    axes.axhline(0, color="#999999", linewidth=0.6, zorder=0)
    axes.axvline(0, color="#999999", linewidth=0.6, zorder=0)
    r = float(np.corrcoef(x, y)[0, 1])
    axes.set_title(f"\nevery pair of bits, r = {r:.2f}".replace("-", "−"), loc="left")
    axes.set(xlabel="correlation in the codes", ylabel="learned correlation")


def square(above_diagonal: list[int], bits: int) -> Matrix:
    """The symmetric matrix whose entries above the diagonal are these, in thousandths.

    >>> square([250, -500, 0], 3)
    array([[ 1.  ,  0.25, -0.5 ],
           [ 0.25,  1.  ,  0.  ],
           [-0.5 ,  0.  ,  1.  ]])
    """
    matrix = np.eye(bits)
    rows, columns = np.triu_indices(bits, 1)
    matrix[rows, columns] = matrix[columns, rows] = np.array(above_diagonal) / 1000
    return matrix
