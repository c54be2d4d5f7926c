"""Approximate search: codes sorted into lists, of which a query looks only at the nearest.

The lists are faiss's ``IndexBinaryIVF``. How many of them must be looked at to reach which recall is
measured when the index is built and kept with it, so a search asks for a recall, not for a setting.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from boltzhash.arguments import Integer, Number, check
from boltzhash.codes import Codes, check_codes
from boltzhash.errors import ModelError
from boltzhash.search.exact import ExactIndex, check_queries, object_array, read_only
from boltzhash.search.hits import Distances, Hits, Rows
from boltzhash.search.lists import centres_of, fill_lists, import_faiss, n_lists_for
from boltzhash.storage.folders import CONFIG, atomic_folder, read_config, sha256

FORMAT = "boltzhash approximate index"
FORMAT_VERSION = 1
LISTS = "lists.faiss"
IDS = "ids.jsonl"
N_QUERIES = 1000  # to measure recall with
ENOUGH = 0.999  # no step beyond this is measured; the last looks at everything


class Step(NamedTuple):
    """How much was found, on average, when that many lists were looked at."""

    probes: int
    recall: float


class ApproximateIndex:
    """Search codes by Hamming distance, faster than exactly and with a recall that was measured.

    For collections too large to look at every code: millions of codes of 64 bits or more. What
    is found comes in the order (distance, insertion), its distances are exact, and fewer hits are the
    beginning of more; what is missed lies in lists that were not looked at. ``recall=1`` looks at all
    and finds the distances that :class:`ExactIndex` finds. If more codes tie at the distance of the
    last of the ``k`` hits the index was built for, any of them may be among the hits.

    Parameters
    ----------
    codes : uint8 array (n, n_bits / 8)
        Packed codes. The index keeps a copy of them, and 8 bytes more for each.
    ids : sequence of str or int, optional
        One per code; row numbers if not given.
    k : int
        The most hits a search may ask for; recall is measured for it and for 1, 10, 100 … below it.
    queries : uint8 array (n_queries, n_bits / 8), optional
        Codes like those that will be searched for. If not given, recall is measured with a sample of
        the codes that training does not see, none of which counts among its own hits; queries that
        resemble the documents less than the documents resemble each other may find less.
    random_state : int
        Seed of the sample and of the lists.

    Attributes
    ----------
    recalls : list of Step
        What was measured, from few lists to all. A step's recall is the lowest of those at 1, 10,
        100 … k: the share of the hits no farther than the true k-th, so it does not depend on
        which of the codes at one distance are counted.

    Examples
    --------
    >>> codes = np.random.default_rng(0).integers(0, 4, (5000, 8), dtype=np.uint8)
    >>> index = ApproximateIndex(codes, k=10)
    >>> index.recalls[-1].recall
    1.0
    >>> hits = index.search(codes[:1], k=5, recall=0.9)
    >>> int(hits.ids[0, 0]), int(hits.distances[0, 0])
    (0, 0)
    """

    def __init__(
        self,
        codes: Codes,
        ids: Sequence[str | int] | None = None,
        *,
        k: int = 100,
        queries: Codes | None = None,
        random_state: int = 0,
    ) -> None:
        check_codes(codes)
        check("k", k, Integer(1))
        check("random_state", random_state, Integer(0))
        if ids is not None and len(ids) != len(codes):
            raise ValueError(f"there are {len(codes)} codes and {len(ids)} ids")
        if queries is not None:
            check_queries(queries, 8 * codes.shape[1])
        self.n_bits = 8 * codes.shape[1]
        self.k = int(k)
        self._ids = object_array(ids) if ids is not None else None
        rng = np.random.default_rng(random_state)
        n_lists = n_lists_for(len(codes))
        held_out = rng.permutation(len(codes))[: min(N_QUERIES, len(codes) // 10)]
        centres = centres_of(codes, n_lists, np.sort(held_out), rng)
        self._lists = fill_lists(codes, centres)
        own = queries is None
        sample = codes[held_out] if queries is None else queries
        self.recalls = self._measure(read_only(codes), np.ascontiguousarray(sample), own)

    def __len__(self) -> int:
        return int(self._lists.ntotal)

    def search(self, queries: Codes, k: int = 10, *, recall: float = 0.95) -> Hits:
        """The k nearest codes of each query among as many lists as give this recall.

        Always min(k, n) hits per query: if the lists hold fewer, more lists are looked at.
        """
        rows, distances = self.search_rows(queries, k, recall=recall)
        return Hits(rows if self._ids is None else self._ids[rows], distances)

    def search_rows(
        self, queries: Codes, k: int, *, recall: float = 0.95
    ) -> tuple[Rows, Distances]:
        """:meth:`search` with row numbers for ids."""
        check_queries(queries, self.n_bits)
        check("k", k, Integer(1))
        if k > self.k:
            raise ValueError(
                f"recall was measured for up to {self.k} hits, got k={k}: build the index with k={k}, "
                "or search exactly"
            )
        probes = self.probes_for(recall)
        k = min(int(k), len(self))
        if k == 0 or len(queries) == 0:
            shape = (len(queries), k)
            return np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int32)
        at_most = min(self.k, len(self))
        rows, distances = self._nearest(np.ascontiguousarray(queries), at_most, probes)
        return rows[:, :k].copy(), distances[:, :k].copy()

    def probes_for(self, recall: float) -> int:
        """How many lists a search with this recall looks at."""
        check("recall", recall, Number(above=0, at_most=1))
        return next(step.probes for step in self.recalls if step.recall >= recall)

    def _nearest(self, queries: Codes, k: int, probes: int) -> tuple[Rows, Distances]:
        """The k nearest in the probed lists; k is always the index's own, so that ties at the cut are
        settled the same way however many hits a search asks for."""
        rows, distances = self._look(queries, k, probes)
        order = np.lexsort((rows, distances), axis=1)
        rows = np.take_along_axis(rows, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        few = rows[:, -1] < 0
        if few.any():
            rows[few], distances[few] = self._nearest(queries[few], k, 2 * probes)
        return rows, distances

    def _look(self, queries: Codes, k: int, probes: int) -> tuple[Rows, Distances]:
        """faiss's answer: row -1, infinitely far, if the lists hold fewer than k."""
        faiss = import_faiss()
        settings: Any = faiss.IVFSearchParameters()
        settings.nprobe = min(probes, self._lists.nlist)
        at, found = self._lists.search(queries, k, params=settings)
        at[found < 0] = np.iinfo(np.int32).max
        return found, at

    def _measure(self, codes: Codes, queries: Codes, own: bool) -> list[Step]:
        """Recall against exact search for more and more lists; ``own``: queries are among the codes."""
        everything = Step(int(self._lists.nlist), 1.0)
        k = min(self.k, len(codes) - own)
        if len(queries) == 0 or k < 1:
            return [everything]
        _, exact = ExactIndex(codes).search_rows(queries, k + own)
        steps = []
        for probes in _ladder(everything.probes):
            _, found = self._look(queries, k + own, probes)
            recall = _recall(exact[:, int(own) :], np.sort(found, axis=1)[:, int(own) :])
            steps.append(Step(probes, recall))
            if recall >= ENOUGH:
                break
        return [*steps, everything]

    def save(self, folder: str | Path) -> None:
        """Write the index as a folder; one already there is replaced whole or not at all."""
        faiss = import_faiss()
        with atomic_folder(Path(folder), FORMAT) as fresh:
            faiss.write_index_binary(self._lists, str(fresh / LISTS))
            ids = self._ids.tolist() if self._ids is not None else None
            (fresh / IDS).write_text(
                "".join(json.dumps(i, ensure_ascii=False) + "\n" for i in ids or ()),
                encoding="utf-8",
            )
            measured = {"k": self.k, "recalls": self.recalls, "has_ids": ids is not None}
            config = {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "n_bits": self.n_bits,
                "n_documents": len(self),
                **measured,
                "sha256": {
                    "measured": _digest(measured),
                    **{name: sha256(fresh / name) for name in (LISTS, IDS)},
                },
            }
            (fresh / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read an index that :meth:`save` wrote; refused if a file is not the one that was saved."""
        folder = Path(folder)
        config = read_config(folder, FORMAT, FORMAT_VERSION)
        try:
            measured = {name: config[name] for name in ("k", "recalls", "has_ids")}
            expected = config["sha256"]
            shape = (int(config["n_documents"]), int(config["n_bits"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{folder / CONFIG} is damaged: {error!r}") from error
        if _digest(measured) != expected.get("measured"):
            raise ModelError(f"{folder / CONFIG} is damaged: its recalls are not those saved")
        for name in (LISTS, IDS):
            if not (folder / name).is_file():
                raise ModelError(f"{folder} is not a complete index: {name} is missing")
            if sha256(folder / name) != expected.get(name):
                raise ModelError(
                    f"{folder / name} is damaged: its contents are not those saved with {CONFIG}"
                )
        return cls._from_files(folder, measured, shape)

    @classmethod
    def _from_files(cls, folder: Path, measured: dict[str, Any], shape: tuple[int, int]) -> Self:
        faiss = import_faiss()
        index = cls.__new__(cls)
        try:
            index._lists = faiss.read_index_binary(str(folder / LISTS))
            with (folder / IDS).open(encoding="utf-8") as lines:
                ids = [json.loads(line) for line in lines]
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{folder} cannot be read: {error}") from error
        has_ids = bool(measured["has_ids"])
        if (
            not isinstance(index._lists, faiss.IndexBinaryIVF)
            or (index._lists.ntotal, index._lists.d) != shape
            or (has_ids and len(ids) != shape[0])
        ):
            raise ModelError(f"{folder} is damaged: its files do not fit together")
        index.n_bits = shape[1]
        index.k = int(measured["k"])
        index.recalls = [Step(int(probes), float(recall)) for probes, recall in measured["recalls"]]
        index._ids = object_array(ids) if has_ids else None
        return index


def _ladder(most: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12, 16 … below ``most``."""
    probes = 1
    while probes < most:
        yield probes
        if probes & (probes - 1) == 0 and probes > 1 and probes + probes // 2 < most:
            yield probes + probes // 2
        probes *= 2


def _recall(exact: Distances, found: Distances) -> float:
    """The lowest, over 1, 10, 100 … k, of the share of hits no farther than the true k-th.

    >>> exact = np.array([[0, 1, 1, 2]], dtype=np.int32)
    >>> _recall(exact, np.array([[0, 1, 2, 9]], dtype=np.int32))
    0.75
    """
    k = exact.shape[1]
    cuts = [cut for cut in (1, 10, 100, 1000, 10_000) if cut < k]
    return min(float(np.mean(found[:, :cut] <= exact[:, cut - 1 : cut])) for cut in [*cuts, k])


def _digest(measured: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()
