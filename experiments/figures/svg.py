"""Figures of the docs from result files, and nothing else: part of ``make tables``.

    python -m experiments.figures            # write docs/figures
    python -m experiments.figures --check    # say which figures are not what the results give

The same results give the same bytes: files are read in the order of their names, an SVG carries no
date and its identifiers come from a fixed salt. A figure whose results are not there yet is left out.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from experiments.figures import codes, lengths, models

FOLDER = Path(__file__).parents[2] / "docs" / "figures"

# None where there are no results to draw.
FIGURES: dict[str, Callable[[], Figure | None]] = {
    "smoke": partial(lengths.draw, "smoke"),
    "precision_by_length": partial(lengths.draw, "tables", "baselines", "quality"),
    "maps_of_codes": codes.draw_maps,
    "bit_correlations": codes.draw_correlations,
    "gradient_estimators": models.draw_gradient_estimators,
    "shortcut_distance": models.draw_shortcut_distance,
}

STYLE: Any = {  # matplotlib types its keys one by one, differently in every version
    "svg.hashsalt": "boltzhash",
    "svg.fonttype": "path",  # labels stay where they were put, whatever fonts a reader has
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same everywhere
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "lines.solid_capstyle": "round",
}
DPI = 150  # of what is dots inside the SVG


def drawn(name: str) -> bytes | None:
    """The file of a figure, None where there is nothing to draw."""
    with mpl.rc_context(STYLE):
        figure = FIGURES[name]()
        if figure is None:
            return None
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, dpi=DPI)
        plt.close(figure)
    return file.getvalue()


def stale(folder: Path) -> dict[str, bytes]:
    """The figures that are not in the folder as the results give them."""
    found = {}
    for name in FIGURES:
        path = folder / f"{name}.svg"
        fresh = drawn(name)
        if fresh is not None and (not path.exists() or path.read_bytes() != fresh):
            found[name] = fresh
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where they differ"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where they go")
    options = parser.parse_args()
    mpl.use("svg")
    changed = stale(options.folder)
    if options.check and changed:
        raise SystemExit(f"not what the results give, run `make tables`: {', '.join(changed)}")
    for name, contents in changed.items():
        options.folder.mkdir(parents=True, exist_ok=True)
        (options.folder / f"{name}.svg").write_bytes(contents)
    print(f"{len(changed) or 'no'} figures changed")
