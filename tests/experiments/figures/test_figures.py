"""Figures: the same bytes from the same results, lines where the numbers are, no label on another."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from experiments.figures import codes as code_figures
from experiments.figures import lengths, svg
from experiments.results import files

from ..conftest import Record, made_up


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    before = mpl.get_backend()
    mpl.use("svg")
    yield
    plt.close("all")
    mpl.use(before)


@pytest.fixture
def _some_results(results_folder: Path) -> None:
    """Every method at every length, a curve that rises with the length, two seeds."""
    settings = [
        line.method + suffix
        for line in (*lengths.LINES, lengths.CORRSH)
        for suffix in ("", "-published")
    ]
    settings.append(lengths.OURS.method)
    results = []
    for name, corpus, (place, bits), seed in itertools.product(
        settings, ("ng20", "reuters", "tmc"), enumerate((8, 16, 32, 64, 128)), (0, 1)
    ):
        found = 0.5 + place / 100 + seed / 50
        more = {"published": found + 0.1, "label_free": found}
        results.append(made_up(name, corpus, bits, seed=seed, **more))
    files.write("tables", *results)


def some_codes(record: Record, settings: str) -> None:
    rng = np.random.default_rng(0)
    record(
        "codes",
        settings,
        "ng20",
        8,
        label_free=0.5,
        points=rng.integers(0, 1000, (40, 2)).tolist(),
        groups=(np.arange(40) % 20).tolist(),
        code_correlation=rng.integers(-900, 900, 28).tolist(),
        learned_correlation=rng.integers(-200, 200, 28).tolist(),
    )


@pytest.mark.usefixtures("_some_results")
def test_the_same_results_give_the_same_bytes_and_others_do_not(
    record: Record, tmp_path: Path
) -> None:
    for name in ("VDSH", "SemanticHasher", "CorrSH-published"):
        some_codes(record, name)
    names = {"precision_by_length", "maps_of_codes", "bit_correlations"}
    first = svg.stale(tmp_path)
    assert first.keys() == names
    for name, contents in first.items():
        (tmp_path / f"{name}.svg").write_bytes(contents)
    assert svg.stale(tmp_path) == {}
    record("tables", "NASH", "tmc", 8, seed=0, published=0.1, label_free=0.1)
    assert svg.stale(tmp_path).keys() == {"precision_by_length"}


def test_check_writes_nothing_and_names_what_is_stale(
    record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_codes(record, "SemanticHasher")
    folder = tmp_path / "figures"
    command = ["figures", "--folder", str(folder)]
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    with pytest.raises(SystemExit, match="run `make tables`: maps_of_codes, bit_correlations"):
        svg.main()
    assert not folder.exists()
    monkeypatch.setattr(sys, "argv", command)
    svg.main()
    monkeypatch.setattr(sys, "argv", [*command, "--check"])
    svg.main()


@pytest.mark.usefixtures("_some_results")
def test_lines_are_the_means_over_seeds() -> None:
    figure = lengths.draw("tables")
    above, below = figure.axes[0], figure.axes[3]
    assert len(above.lines) == 13  # twelve methods, and CorrSH as published
    for line in above.lines:
        assert line.get_ydata() == pytest.approx([0.51, 0.52, 0.53, 0.54, 0.55])
    drawn = {tuple(np.round(line.get_ydata(), 4)) for line in below.lines}
    assert (0.61, 0.62, 0.63, 0.64, 0.65) in drawn
    assert (0.4389, 0.5839, 0.6183, 0.6279, 0.6359) in drawn  # the paper's CorrSH on ng20


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_moved_as_little_as_can_be(seed: int) -> None:
    """Least squares under the gaps is isotonic regression of what is left of the gaps."""
    rng = np.random.default_rng(seed)
    wanted = np.sort(rng.uniform(0, 60, 12))
    steps = 5.0 * np.arange(12)
    found = lengths.apart(wanted.tolist(), 5.0)
    expected = IsotonicRegression().fit_transform(np.arange(12), wanted - steps) + steps
    assert found == pytest.approx(expected.tolist())


@pytest.mark.parametrize("seed", range(5))
def test_names_on_a_map_do_not_lie_on_each_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = [(*place, 0.2) for place in rng.uniform(0.2, 0.8, (20, 2)).tolist()]
    heights = code_figures.lines_apart(boxes, 0.03)
    for (x, _, _), y in zip(boxes, heights, strict=True):
        beside = [h for (a, _, _), h in zip(boxes, heights, strict=True) if abs(a - x) < 0.2]
        assert sum(abs(h - y) < 0.03 - 1e-5 for h in beside) == 1  # itself
