"""Regions of the map: hills of density in hills, kept with the map and found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from boltzhash.collection import Collection
from boltzhash.errors import ModelError
from boltzhash.server.distinctive import Occurrences
from boltzhash.server.map_file import MAP, StoredMap, load_map, save_map, with_names
from boltzhash.server.map_view import MapView
from boltzhash.server.regions import find_regions
from boltzhash.text.analyzer import Analyzer
from snapshots import Newest


def clumps(middles: list[tuple[float, float]], n: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [np.array(middle) + rng.normal(0, spread, (n, 2)) for middle in middles]
    )
    return np.clip(points, 0, 1).astype(np.float32)


def test_clumps_are_regions_and_pairs_of_clumps_are_around_them() -> None:
    near = 0.035
    middles = [(0.2 - near, 0.5), (0.2 + near, 0.5), (0.8 - near, 0.5), (0.8 + near, 0.5)]
    points = clumps(middles, 1000, 0.012)
    of_clump = np.repeat(np.arange(4), 1000)
    own = of_clump[:, None] == np.arange(4)
    side = (of_clump // 2)[:, None] == np.arange(2)
    has = sparse.csr_matrix(np.hstack([own, side, np.ones((4000, 1), bool)]).astype(np.float64))
    names = ["one", "two", "three", "four", "left", "right", "everywhere"]
    regions = find_regions(points, Occurrences(has, names), Analyzer())
    tops = np.flatnonzero(regions.parents == -1)
    assert sorted(regions.words[top][0] for top in tops) == ["left", "right"]
    sizes = regions.sizes()
    for word, clump in zip(names[:4], range(4), strict=True):
        (region,) = [r for r in range(len(sizes)) if regions.words[r][:1] == [word]]
        assert sizes[region] == pytest.approx(1000, abs=20)
        assert np.hypot(*(regions.anchors[region] - middles[clump])) < 0.015
        away = points[regions.has(region)] - regions.anchors[region]
        assert regions.spreads[region] == pytest.approx(np.sqrt((away**2).sum(axis=1).mean()))
        assert regions.words[int(regions.parents[region])][0] == ("left", "right")[clump // 2]
        assert (of_clump[regions.has(region)] == clump).mean() > 0.98
    assert not any("everywhere" in words for words in regions.words)


def test_a_region_of_which_no_words_tell_has_no_name() -> None:
    rng = np.random.default_rng(0)
    points = clumps([(0.3, 0.5), (0.7, 0.5)], 300, 0.02)
    has = sparse.csr_matrix((rng.random((600, 50)) < 0.02).astype(np.float64))  # words at random
    names = [f"word{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(50)]
    regions = find_regions(points, Occurrences(has, names), Analyzer())
    assert len(regions.parents) >= 2
    assert all(words == [] for words in regions.words)


def test_points_in_one_place_are_no_trouble() -> None:
    points = np.full((20, 2), 0.5, dtype=np.float32)
    has = sparse.csr_matrix(np.ones((20, 1)))
    regions = find_regions(points, Occurrences(has, ["all"]), Analyzer())
    assert len(regions.parents) == 0  # the whole map is no region of it
    assert regions.of_point.tolist() == [-1] * 20
    assert regions.sizes().tolist() == []


def test_regions_are_kept_with_the_map_and_damage_is_named(folder: Path) -> None:
    with Collection.open(folder) as collection:
        rows, model = Newest(collection).rows(), Newest(collection).state.model
        points = clumps([(0.2, 0.2), (0.8, 0.2), (0.5, 0.8)], 30, 0.03)
        points = np.concatenate([points, points[:1]])
        named = with_names(Newest(collection), StoredMap(model, rows.places, rows.codes, points))
        save_map(collection, named)
        again = load_map(Newest(collection))
        assert again is not None
        assert again.regions is not None
        assert named.regions is not None
        for one, other in zip(again.regions, named.regions, strict=True):
            np.testing.assert_array_equal(
                np.asarray(one, dtype=object), np.asarray(other, dtype=object)
            )
        assert len(named.regions.parents) == 3
        told = MapView().view(Newest(collection), None)
        assert [region["words"] for region in told["regions"]] == named.regions.words
        collection.add(
            [{"id": "later", "text": Newest(collection).documents_at(rows.places[40:41])[0].text}]
        )
        later = MapView().view(Newest(collection), None)
        assert later["region_of"][-1] == told["region_of"][40]
        save_map(collection, named)
        np.save(folder / MAP / "regions.npy", named.regions.of_point[1:])
        with pytest.raises(ModelError, match="its regions are not those of 91 documents"):
            load_map(Newest(collection))
