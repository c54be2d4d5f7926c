"""Regions of a map: where points lie dense, at several scales, each named by its documents' words.

A region is a hill of density: the points from which one climbs to the same peak. Density is smoothed
less and less, from a sixteenth of the map's width down to what the number of documents allows, so
hills fall into smaller ones. The result is a tree. A name is made of the words that set a region's
documents apart from all others and from those of the region around it; what the name of that one says
already counts only for the latter. If few of its documents have any of them, as when a region holds
many things, it is left without a name: those in it have theirs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.server.distinctive import Occurrences, chosen_words, contrast
from boltzhash.text.analyzer import Analyzer

N_WORDS = 8
NONE = -1

_CELLS = 512  # of the grid, along each side
_COARSEST = 1 / 16  # of the map's width: how far density is smoothed
_FINEST = 1 / 256
_STEP = 1.6  # between two scales
_ON_A_HILL = 12  # documents that the smallest hills should have
_LEAST = 5  # documents of a region that is given a name
_NAMED_BY = 3  # words
_LEAST_COVERED = 0.3  # of a region's documents must have one of them
_MOST_OF_ITS_PARENT = 0.75  # a larger part is not a region of its own

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
Points = NDArray[np.float32]


class Regions(NamedTuple):
    """A tree: parents come before their children."""

    of_point: Numbers  # the smallest region of each point, -1 if it has none
    parents: Numbers  # -1 if there is none
    anchors: Points  # (n, 2): where each is densest
    spreads: NDArray[np.float32]  # how far from there its points lie
    words: list[list[str]]  # best first; none if no words say what is in a region

    def on_path(self) -> list[Numbers]:
        """For every point its region, then the one around it, and so on; -1 where there is none."""
        paths, now = [], self.of_point
        while len(self.parents) and (now >= 0).any():
            paths.append(now)
            now = np.where(now >= 0, self.parents[now], NONE).astype(np.int32)
        return paths

    def sizes(self) -> Ints:
        counted = np.zeros(len(self.parents), dtype=np.int64)
        for region in self.on_path():
            counted += np.bincount(region[region >= 0], minlength=len(counted))
        return counted

    def has(self, number: int) -> NDArray[np.bool_]:
        """A mask of the points in a region."""
        inside = np.zeros(len(self.of_point), dtype=bool)
        for region in self.on_path():
            inside |= region == number
        return inside


def find_regions(points: Points, occurrences: Occurrences, cut: Analyzer) -> Regions:
    """The regions of points (n, 2) between 0 and 1; ``occurrences`` are of the same documents."""
    hills = _hills(points)
    of_point, parents, peaks = _as_tree(hills)
    regions = Regions(
        of_point,
        parents,
        ((np.stack([peaks % _CELLS, peaks // _CELLS], axis=1) + 0.5) / _CELLS).astype(np.float32),
        np.zeros(len(parents), dtype=np.float32),
        [[] for _ in parents],
    )
    return regions._replace(
        spreads=_spreads(points, regions), words=_names(regions, occurrences, cut)
    )


def _scales(n: int) -> list[float]:
    """Widths over which density is smoothed, finest first.

    >>> [round(1 / scale) for scale in _scales(8763)]
    [81, 51, 32, 20]
    """
    finest = max(_FINEST, np.sqrt(_ON_A_HILL / max(n, 1)) / 3)
    n_scales = 1 + max(0, int(np.log(_COARSEST / finest) / np.log(_STEP)))
    return [float(finest * _STEP**i) for i in range(n_scales)]


def _hills(points: Points) -> list[Ints]:
    """For each scale, coarsest first, the peak above each point, as the number of a cell.

    From the peak of a small hill one climbs on to a larger hill's, so that hills lie in hills.
    """
    from scipy.ndimage import gaussian_filter

    cells = np.clip((points * _CELLS).astype(np.int64), 0, _CELLS - 1)
    at = cells[:, 1] * _CELLS + cells[:, 0]
    counts = np.bincount(at, minlength=_CELLS * _CELLS).reshape(_CELLS, _CELLS).astype(np.float64)
    hills: list[Ints] = []
    for scale in _scales(len(points)):
        at = _peaks(gaussian_filter(counts, scale * _CELLS, mode="constant"))[at]
        hills.insert(0, at)
    return hills


def _peaks(density: NDArray[np.float64]) -> Ints:
    """For each cell, by its number, the cell that one climbs to from it.

    >>> _peaks(np.array([[1.0, 2.0, 1.0, 0.5, 3.0]])).tolist()
    [1, 1, 1, 4, 4]
    """
    rows, columns = density.shape
    numbers = np.arange(rows * columns).reshape(rows, columns)
    # If cells are equally high, the later is higher: no plateau is climbed to from two sides.
    around = np.pad(density + numbers * (density.max() * 1e-14), 1, constant_values=-np.inf)
    number_of = np.pad(numbers, 1)
    highest, climbed = around[1:-1, 1:-1].copy(), numbers.copy()
    for down in range(3):
        for right in range(3):
            there = np.s_[down : down + rows, right : right + columns]
            higher = around[there] > highest
            highest = np.where(higher, around[there], highest)
            climbed = np.where(higher, number_of[there], climbed)
    to = climbed.ravel()
    while not np.array_equal(to, to[to]):
        to = to[to]
    return to


def _as_tree(hills: list[Ints]) -> tuple[Numbers, Numbers, Ints]:
    """Regions of points, parents and peaks, without hills that are too small or almost their parent."""
    of_point = np.full(len(hills[0]), NONE, dtype=np.int32)
    parents: list[int] = []
    peaks: list[int] = []
    sizes: list[int] = []
    for peak_of in hills:
        found, which, counts = np.unique(peak_of, return_inverse=True, return_counts=True)
        first = np.unique(which, return_index=True)[1]
        inside = of_point.copy()
        for hill in np.argsort(-counts, kind="stable").tolist():
            parent = int(inside[first[hill]])
            most = len(of_point) if parent == NONE else sizes[parent]
            if counts[hill] < _LEAST or counts[hill] > _MOST_OF_ITS_PARENT * most:
                continue
            of_point[which == hill] = len(parents)
            parents.append(parent)
            peaks.append(int(found[hill]))
            sizes.append(int(counts[hill]))
    return of_point, np.array(parents, dtype=np.int32), np.array(peaks, dtype=np.int64)


def _spreads(points: Points, regions: Regions) -> NDArray[np.float32]:
    """The root mean square distance of a region's points from its anchor."""
    n = len(regions.parents)
    squares, counts = np.zeros(n), np.zeros(n)
    for region in regions.on_path():
        inside = region >= 0
        number = region[inside]
        away = np.square(points[inside] - regions.anchors[number]).sum(axis=1)
        squares += np.bincount(number, weights=away, minlength=n)
        counts += np.bincount(number, minlength=n)
    return np.sqrt(squares / np.maximum(counts, 1)).astype(np.float32)


def _names(regions: Regions, occurrences: Occurrences, cut: Analyzer) -> list[list[str]]:
    from scipy import sparse

    n_regions, n = len(regions.parents), len(regions.of_point)
    sizes = regions.sizes()
    inside: Any = sparse.csr_matrix((n_regions, occurrences.has.shape[1]))
    for region in regions.on_path():
        (at,) = np.nonzero(region >= 0)
        members = sparse.csr_matrix((np.ones(len(at)), (region[at], at)), shape=(n_regions, n))
        inside = inside + members @ occurrences.has
    everywhere = np.asarray(occurrences.has.sum(axis=0)).ravel()
    columns_of: list[list[int]] = []
    for number, parent in enumerate(regions.parents.tolist()):
        row, size = inside[number], int(sizes[number])
        columns, counts = row.indices.astype(np.int64), row.data
        scores = contrast(counts, size, everywhere[columns] - counts, n - size)
        if parent != NONE:
            around = inside[parent].toarray().ravel()[columns]
            within = contrast(counts, size, around - counts, int(sizes[parent]) - size)
            said = np.isin(columns, columns_of[parent][:_NAMED_BY])
            scores = np.where(said, 0, scores) + within
        chosen = chosen_words(columns, scores, counts, occurrences.names, N_WORDS, cut)
        inside_it = occurrences.has[regions.has(number)]
        has_one = inside_it[:, chosen[:_NAMED_BY]].getnnz(axis=1) > 0
        columns_of.append(chosen if has_one.mean() >= _LEAST_COVERED else [])
    return [[occurrences.names[column] for column in chosen] for chosen in columns_of]
