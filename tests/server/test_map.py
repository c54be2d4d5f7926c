"""The map: fitted by UMAP, kept whole, and shown with documents that came later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import Hasher
from boltzhash.cli.parser import main
from boltzhash.codes import hamming
from boltzhash.collection import Collection
from boltzhash.errors import ModelError
from boltzhash.server import map_file
from boltzhash.server.map_file import (
    MAP,
    StoredMap,
    fit_map,
    load_map,
    point_near,
    save_map,
    with_names,
)
from boltzhash.server.map_view import MapView
from snapshots import Newest


def put_on_a_grid(folder: Path) -> StoredMap:
    """A map that is easy to reason about, with a point for each document that is there now."""
    with Collection.open(folder) as collection:
        rows, model = Newest(collection).rows(), Newest(collection).state.model
    numbers = np.arange(len(rows.places))
    points = np.stack([numbers % 10, numbers // 10], axis=1).astype(np.float32) / 10
    stored = StoredMap(model, rows.places, rows.codes, points)
    with Collection.open(folder) as collection:
        save_map(collection, with_names(Newest(collection), stored))
    return stored


def stored_map(folder: Path) -> StoredMap | None:
    with Collection.open(folder) as collection:
        return load_map(Newest(collection))


def view(folder: Path, field: str | None = None) -> dict[str, Any]:
    with Collection.open(folder) as collection:
        return MapView().view(Newest(collection), field)


@pytest.mark.browser  # UMAP compiles itself for half a minute: with the other tests of the page
def test_topics_lie_apart_on_a_fitted_map(folder: Path, documents: Any) -> None:
    pytest.importorskip("umap")
    assert main(["map", str(folder)]) == 0
    stored = stored_map(folder)
    assert stored is not None
    assert len(stored.numbers) == len(documents)
    assert stored.points.min() >= 0
    assert stored.points.max() <= 1
    neighbours = np.argsort(
        np.square(stored.points[:, None] - stored.points[None]).sum(axis=2), axis=1
    )[:, 1:6]
    away = hamming(stored.codes, stored.codes)
    near = np.take_along_axis(away, neighbours, axis=1).mean()
    assert near < 0.6 * away.mean()  # beside one another lie those with near codes
    with Collection.open(folder) as collection:
        again = fit_map(Newest(collection).rows(), Newest(collection).state.model)
    np.testing.assert_array_equal(again.points, stored.points)  # same seed, same map


def test_the_neighbours_are_exact_and_begin_with_the_document_itself() -> None:
    codes = np.random.default_rng(0).integers(0, 4, (60, 1), dtype=np.uint8)  # many are equal
    codes.flags.writeable = False
    rows, distances = map_file._neighbours(codes, 8)
    away = hamming(codes, codes)
    assert rows[:, 0].tolist() == list(range(60))
    for i in range(60):
        assert len(set(rows[i])) == 8
        assert distances[i].tolist() == away[i, rows[i]].tolist()
        others = np.sort(np.delete(away[i], i))[:7]
        assert sorted(distances[i, 1:].tolist()) == others.tolist()


def test_a_map_comes_back_as_it_was_and_damage_is_named(folder: Path) -> None:
    stored = put_on_a_grid(folder)
    again = stored_map(folder)
    assert again is not None
    for one, other in zip(again[:4], stored[:4], strict=True):
        np.testing.assert_array_equal(one, other)
    (folder / MAP / "points.npy").write_bytes(b"none")
    with pytest.raises(ModelError, match=r"the map of .* is damaged"):
        stored_map(folder)
    np.save(folder / MAP / "points.npy", stored.points[1:])
    with pytest.raises(ModelError, match="not those of 91 documents"):
        stored_map(folder)


def test_documents_keep_their_points_and_deleted_ones_go(folder: Path) -> None:
    stored = put_on_a_grid(folder)
    with Collection.open(folder) as collection:
        collection.delete(["sky-0", "sea-80"])
    told = view(folder)
    assert told["made"]
    kept = [i for i in range(91) if i not in (0, 80)]
    assert told["numbers"] == stored.numbers[kept].tolist()
    assert told["x"] == np.round(stored.points[kept, 0] * 65535).astype(int).tolist()
    assert told["y"] == np.round(stored.points[kept, 1] * 65535).astype(int).tolist()
    assert told["left_out"] == 0


def test_later_documents_are_put_near_their_nearest(
    folder: Path, lsh: Hasher, documents: Any
) -> None:
    stored = put_on_a_grid(folder)
    with Collection.open(folder) as collection:
        collection.add([{"id": "later", "text": documents[42]["text"]}])
        collection.upsert([{"id": "sky-5", "text": documents[77]["text"]}])
    told = view(folder)
    assert len(told["numbers"]) == 92
    points = dict(zip(told["numbers"], zip(told["x"], told["y"], strict=True), strict=True))
    for place, text in ((92, documents[42]["text"]), (6, documents[77]["text"])):
        code = lsh.transform([text])
        expected = point_near(stored, code, np.array([place]))[0]
        same = hamming(code, stored.codes)[0] == 0
        nearest = stored.points[same]
        assert nearest.min() - 0.2 <= expected.min() <= expected.max() <= nearest.max() + 0.2
        assert points[place] == tuple(np.round(expected * 65535).astype(int).tolist())


def test_colours_are_the_commonest_values_or_ranges(folder: Path) -> None:
    put_on_a_grid(folder)
    told = view(folder, "topic")
    assert told["values"] == ["sky", "kitchen", "sea", "other", "none"]
    assert told["colours"] == [0] * 30 + [1] * 30 + [2] * 30 + [4]
    assert told["ordered"] is False
    told = view(folder, "number")
    assert told["ordered"] is True
    assert len(told["values"]) == 8 + 2
    assert told["colours"][:90] == sorted(told["colours"][:90])
    assert np.bincount(told["colours"][:90]).min() >= 11


def test_a_map_of_another_model_is_not_shown(
    folder: Path, corrsh: Hasher, serve: Callable[..., Any]
) -> None:
    put_on_a_grid(folder)
    with serve(folder) as service:
        assert service.client.get("/v1/map").json()["made"] is True
        first = service.client.get("/v1/map/1").json()["documents"][0]
        assert first["id"] == "sky-0"
        assert service.client.get("/v1/map/92").status_code == 404
        assert service.client.get("/v1/map", params={"field": "nothing"}).status_code == 404
        with Collection.open(folder) as collection:
            collection.rehash(corrsh)
        told = service.client.get("/v1/map").json()
        assert told["made"] is False
        assert "rehashed" in told["message"]


def test_a_hit_on_the_map_may_have_an_id_that_javascript_rounds(
    folder: Path, serve: Callable[..., Any]
) -> None:
    large = 2**53 + 1
    with Collection.open(folder) as collection:
        collection.add([{"id": large, "text": "a large comet"}])
    stored = put_on_a_grid(folder)
    with serve(folder) as service:
        found = service.post("/v1/map/search", text="large", by="words").json()["hits"]
    assert [(hit["id"], hit["number"]) for hit in found] == [
        ({"int64": str(large)}, stored.numbers[-1])
    ]


def test_too_few_documents_make_no_map(tmp_path: Path, lsh: Hasher) -> None:
    with Collection.create(tmp_path / "few", lsh) as collection:
        collection.add([{"id": 1, "text": "moon"}])
    assert main(["map", str(tmp_path / "few")]) == 2
    assert not (tmp_path / "few" / MAP).exists()
