"""The map of a collection: one point per document, near those with similar codes.

``boltzhash map`` fits UMAP to the Hamming distances of at most 100,000 codes and keeps the points
with the collection: numbers.npy, codes.npy and points.npy, and the regions of the map with their names:
regions.npy and regions.json. Documents that are not among them, or whose code has changed since, are
placed among their nearest when the map is viewed.
"""

from __future__ import annotations

import io
import json
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.collection import Collection, Snapshot
from boltzhash.collection.store import Rows
from boltzhash.encoding.model_files import ModelFile
from boltzhash.errors import ModelError, needs_extra
from boltzhash.search import ExactIndex
from boltzhash.server.distinctive import Occurrences
from boltzhash.server.regions import Regions, find_regions
from boltzhash.storage.folders import CONFIG, check_config

MAP = "map"
FORMAT = "boltzhash map"
FORMAT_VERSION = 1
MAX_FITTED = 100_000
MIN_FITTED = 10
N_NEIGHBOURS = 25

_NEAREST = 5  # a document that came later is placed at their mean
_SPREAD = 0.004  # of the map's width, so that such documents do not lie on top of each other

_ARRAYS = ("numbers", "codes", "points")
_REGIONS = "regions"
_READ_AT_ONCE = 1024  # documents

Points = NDArray[np.float32]


class StoredMap(NamedTuple):
    """Doc numbers, in the order of insertion, codes, and points between 0 and 1."""

    model: str
    numbers: NDArray[np.int64]
    codes: Codes
    points: Points
    regions: Regions | None = None  # None until they are named


def fit_map(rows: Rows, model: str, *, seed: int = 0, verbose: bool = False) -> StoredMap:
    """Points for at most 100,000 of the documents whose words are known, chosen at random."""
    chosen = np.flatnonzero(rows.known)
    if len(chosen) < MIN_FITTED:
        raise ValueError(
            f"a map needs at least {MIN_FITTED} documents with words that the model knows, got "
            f"{len(chosen)}"
        )
    umap = _import_umap()
    if len(chosen) > MAX_FITTED:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(chosen, MAX_FITTED, replace=False))
    codes = np.ascontiguousarray(rows.codes[chosen])
    codes.flags.writeable = False
    neighbours, distances = _neighbours(codes, min(N_NEIGHBOURS, len(codes) - 1))
    model_of_points = umap.UMAP(
        n_neighbors=neighbours.shape[1],
        min_dist=0.7,  # documents with the same code lie beside, not on top of, each other
        spread=2.0,
        random_state=seed,
        n_jobs=1,  # random_state implies it anyway; without it, UMAP warns
        init="pca" if len(codes) > 2 * N_NEIGHBOURS else "random",
        precomputed_knn=(neighbours, distances.astype(np.float32)),
        verbose=verbose,
    )
    with warnings.catch_warnings():
        # With given neighbours UMAP cannot place new data: we have a way of our own.
        warnings.filterwarnings("ignore", message="precomputed_knn")
        fitted = model_of_points.fit_transform(np.unpackbits(codes, axis=1).astype(np.float32))
    return StoredMap(model, rows.places[chosen], codes, _scaled(fitted))


def _import_umap() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImportWarning)  # that Tensorflow is missing
        try:
            import umap
        except ImportError:
            raise needs_extra("map", "umap-learn", "map") from None
    return umap


def _neighbours(codes: Codes, k: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The exact k nearest of each code, itself first even if others are equal to it."""
    rows, distances = ExactIndex(codes).search_rows(codes, k + 1)
    own = np.arange(len(codes))[:, None]
    is_own = rows == own
    missed = ~is_own.any(axis=1)  # more than k others are equal and came before
    is_own[missed, -1] = True
    n = len(codes)
    others = rows[~is_own].reshape(n, k)
    away = distances[~is_own].reshape(n, k)
    zeros = np.zeros((n, 1), dtype=np.int32)
    return np.hstack([own, others[:, : k - 1]]), np.hstack([zeros, away[:, : k - 1]])


def _scaled(points: Any) -> Points:
    """Scale into the unit square; what lies far out is pulled in, so that the rest is not tiny."""
    near = points
    for strength in (1, 3):
        low, middle, high = np.percentile(near, [25, 50, 75], axis=0)
        near = np.arcsinh(strength * (near - middle) / np.maximum(high - low, 1e-9))
    lowest, highest = near.min(axis=0), near.max(axis=0)
    return np.asarray((near - lowest) / np.maximum(highest - lowest, 1e-9), dtype=np.float32)


def with_names(collection: Snapshot, stored: StoredMap) -> StoredMap:
    """The map with its regions, named by the words of the documents as they are now."""
    ids = collection.ids_at(stored.numbers)
    there = np.array([id_ is not None for id_ in ids], dtype=bool)
    texts = ["" for _ in ids]
    (still,) = np.nonzero(there)
    for start in range(0, len(still), _READ_AT_ONCE):
        rows = still[start : start + _READ_AT_ONCE]
        for row, document in zip(rows, collection.documents_at(stored.numbers[rows]), strict=True):
            texts[row] = document.text
    occurrences = Occurrences.in_texts(collection.hasher, texts)
    return stored._replace(regions=find_regions(stored.points, occurrences, collection.words))


def save_map(collection: Collection, stored: StoredMap) -> None:
    """Keep the map with the collection, whole or not at all."""
    arrays = {name: getattr(stored, name) for name in _ARRAYS}
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": stored.model,
        "n_documents": len(stored.numbers),
    }
    described = json.dumps(config, indent=2) + "\n"
    files = [ModelFile.of(f"{name}.npy", _npy(array)) for name, array in arrays.items()]
    if stored.regions is not None:
        files += _regions_files(stored.regions)
    collection.store.save_files(MAP, [ModelFile.of(CONFIG, described.encode()), *files])


def load_map(collection: Snapshot) -> StoredMap | None:
    """The map of a collection; None if none was made, an error if it is damaged."""
    contents = {file.name: file.contents for file in collection.store.load_files(MAP)}
    if not contents:
        return None
    shown = collection.location
    try:
        config = check_config(json.loads(contents[CONFIG]), FORMAT, FORMAT_VERSION, shown)
        numbers, codes, points = (
            np.load(io.BytesIO(contents[f"{name}.npy"]), allow_pickle=False) for name in _ARRAYS
        )
        n = int(config["n_documents"])
        model = str(config["model"])
        regions = _read_regions(contents, n)
    except (OSError, ValueError, EOFError, KeyError, TypeError) as error:
        raise ModelError(f"the map of {shown} is damaged: {error}") from error
    whole = (
        (numbers.dtype, numbers.shape) == (np.dtype(np.int64), (n,))
        and (points.dtype, points.shape) == (np.dtype(np.float32), (n, 2))
        and (codes.dtype, codes.ndim, len(codes)) == (np.dtype(np.uint8), 2, n)
    )
    if not whole:
        raise ModelError(
            f"the map of {shown} is damaged: its arrays are not those of {n} documents"
        )
    codes.flags.writeable = False
    return StoredMap(model, numbers, codes, points, regions)


def _regions_files(regions: Regions) -> list[ModelFile]:
    described = {
        "parents": regions.parents.tolist(),
        "anchors": regions.anchors.tolist(),
        "spreads": regions.spreads.tolist(),
        "words": regions.words,
    }
    return [
        ModelFile.of(f"{_REGIONS}.npy", _npy(regions.of_point)),
        ModelFile.of(f"{_REGIONS}.json", json.dumps(described, ensure_ascii=False).encode()),
    ]


def _read_regions(contents: dict[str, bytes], n: int) -> Regions:
    described = json.loads(contents[f"{_REGIONS}.json"])
    regions = Regions(
        np.load(io.BytesIO(contents[f"{_REGIONS}.npy"]), allow_pickle=False),
        np.array(described["parents"], dtype=np.int32),
        np.array(described["anchors"], dtype=np.float32).reshape(-1, 2),
        np.array(described["spreads"], dtype=np.float32),
        described["words"],
    )
    n_regions = len(regions.parents)
    if (
        (regions.of_point.dtype, regions.of_point.shape) != (np.dtype(np.int32), (n,))
        or {len(part) for part in regions[2:]} != {n_regions}
        or (regions.of_point >= n_regions).any()
        or (regions.parents >= np.arange(n_regions)).any()
    ):
        raise ValueError(f"its regions are not those of {n} documents")
    return regions


def _npy(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def point_near(stored: StoredMap, codes: Codes, numbers: NDArray[np.int64]) -> Points:
    """Points for documents that were not fitted: among their nearest, a little apart.

    >>> stored = StoredMap("", np.arange(2), np.array([[0], [255]], dtype=np.uint8),
    ...                    np.array([[0.25, 0.25], [0.75, 0.75]], dtype=np.float32))
    >>> near = point_near(stored, np.array([[1]], dtype=np.uint8), np.array([9]))
    >>> bool(np.abs(near - 0.25).max() < 0.05)
    True
    """
    if len(codes) == 0:
        return np.empty((0, 2), dtype=np.float32)
    rows, distances = ExactIndex(stored.codes).search_rows(
        np.ascontiguousarray(codes), min(_NEAREST, len(stored.codes))
    )
    weights = 4.0 ** -(distances - distances[:, :1]).astype(np.float64)
    weights /= weights.sum(axis=1, keepdims=True)
    points = (stored.points[rows] * weights[:, :, None]).sum(axis=1)
    # The golden angle, so that a document always gets the same point.
    angles = numbers * 2.399963
    apart = np.stack([np.cos(angles), np.sin(angles)], axis=1) * _SPREAD
    return np.asarray(np.clip(points + apart, 0, 1), dtype=np.float32)
