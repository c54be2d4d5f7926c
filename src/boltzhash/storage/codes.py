"""Codes on disk: a folder with config.json, codes.npy, ids.jsonl and no_known_word.npy.

codes.npy is the plain packed array (``np.load(..., mmap_mode="r")`` reads it), ids.jsonl has one id per
line, no_known_word.npy lists the rows whose code means nothing because the model knew no word of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from boltzhash.codes import Codes, check_codes
from boltzhash.errors import DuplicateIdError, ModelError
from boltzhash.storage.folders import CONFIG, atomic_folder, read_config

FORMAT = "boltzhash codes"
FORMAT_VERSION = 1

_as_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make one for every id


class StoredCodes(NamedTuple):
    """What a codes folder holds; ``codes`` (n, n_bits / 8) is mapped into memory, not read.

    ``no_known_word`` are the row numbers of documents of which the model knew no word.
    """

    codes: Codes
    ids: list[str | int]
    no_known_word: NDArray[np.int64]


class CodesWriter:
    """Appends codes to a folder under construction; memory keeps 8 bytes of each document.

    They are a digest of its id: one that comes twice is a :class:`boltzhash.errors.DuplicateIdError`.
    """

    def __init__(self, codes_file: BinaryIO, ids_file: TextIO, n_bits: int) -> None:
        self._codes_file = codes_file
        self._ids_file = ids_file
        self._seen = SeenDigests()
        self._n_bytes = n_bits // 8
        self.n_documents = 0
        self.no_known_word: list[int] = []
        self.write_header()

    def append(
        self, codes: Codes, ids: Sequence[str | int], known_words: NDArray[np.int64] | None
    ) -> None:
        """Append a block of documents.

        Parameters
        ----------
        codes : uint8 array (n, n_bits / 8)
        ids : sequence of n str or int
        known_words : int64 array (n,) or None
            How many words of each the model knows; None if codes are not made from words.
        """
        check_codes(codes)
        if known_words is None:
            known_words = np.ones(len(codes), dtype=np.int64)  # no code is without meaning
        if codes.shape[1] != self._n_bytes or not len(codes) == len(ids) == len(known_words):
            raise ValueError(
                f"expected codes of {self._n_bytes} bytes, each with an id and a count, got "
                f"{codes.shape} codes, {len(ids)} ids and {len(known_words)} counts"
            )
        lines = [_as_json(i) + "\n" for i in ids]
        again = self._seen.add(lines)
        self._codes_file.write(codes.tobytes())
        self._ids_file.writelines(lines)
        if len(again):
            self._refuse_twice({lines[number] for number in again})
        self.no_known_word += [self.n_documents + int(r) for r in np.flatnonzero(known_words == 0)]
        self.n_documents += len(codes)

    def _refuse_twice(self, suspects: set[str]) -> None:
        """Raise if one of these ids really is in the file twice: two ids may share a digest."""
        self._ids_file.flush()
        first: dict[str, int] = {}
        with open(self._ids_file.name, encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if line in suspects and first.setdefault(line, number) != number:
                    raise DuplicateIdError(
                        f"the id {json.loads(line)!r} is there twice: documents {first[line]} and "
                        f"{number} have it (counted from 0). Each document needs its own"
                    )

    def write_header(self) -> None:
        """The .npy header with the number of rows so far; its size does not depend on that."""
        self._codes_file.seek(0)
        description = {
            "descr": npy.dtype_to_descr(np.dtype(np.uint8)),
            "fortran_order": False,
            "shape": (self.n_documents, self._n_bytes),
        }
        npy.write_array_header_1_0(self._codes_file, description)


class SeenDigests:
    """Which texts came before: 8 bytes of each are kept, in sorted runs whose sizes keep doubling.

    >>> seen = SeenDigests()
    >>> seen.add(["a", "b", "c"]).tolist(), seen.add(["d", "b"]).tolist(), seen.add(["e", "e"]).tolist()
    ([], [1], [1])
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def add(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Take in texts; returns the numbers of those that may have come before."""
        digests = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
        new = np.frombuffer(digests, dtype=np.uint64)
        came = np.ones(len(new), dtype=np.bool_)
        came[np.unique(new, return_index=True)[1]] = False  # again among themselves
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, new), len(run) - 1)
            came |= run[places] == new
        run = np.sort(new)
        while self._runs and len(self._runs[-1]) <= len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs += [run] if len(run) else []
        return np.flatnonzero(came)


@contextmanager
def write_codes(folder: str | Path, *, n_bits: int, model: str) -> Iterator[CodesWriter]:
    """Write a codes folder block by block; it appears whole at the end, or not at all.

    ``model`` is the fingerprint of the hasher that makes the codes.
    """
    with atomic_folder(Path(folder), FORMAT) as fresh:
        with (
            (fresh / "codes.npy").open("wb") as codes_file,
            (fresh / "ids.jsonl").open("w", encoding="utf-8") as ids_file,
        ):
            writer = CodesWriter(codes_file, ids_file, n_bits)
            yield writer
            writer.write_header()
        np.save(fresh / "no_known_word.npy", np.array(writer.no_known_word, dtype=np.int64))
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "n_bits": n_bits,
            "n_documents": writer.n_documents,
            "model": model,
        }
        (fresh / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_codes(folder: str | Path, *, model: str) -> StoredCodes:
    """Open a codes folder; refused if it is damaged or another model made it."""
    folder = Path(folder)
    config = read_config(folder, FORMAT, FORMAT_VERSION)
    if config.get("model") != model:
        raise ModelError(
            f"{folder} was encoded by another model: encode the corpus again with this one"
        )
    try:
        codes = np.load(folder / "codes.npy", mmap_mode="r", allow_pickle=False)
        no_known_word = np.load(folder / "no_known_word.npy", allow_pickle=False)
        with (folder / "ids.jsonl").open(encoding="utf-8") as lines:
            ids = [json.loads(line) for line in lines]
    except (OSError, ValueError, EOFError) as error:
        raise ModelError(f"{folder} is damaged: {error}") from error
    _check_whole(folder, config, codes, ids)
    return StoredCodes(codes, ids, no_known_word)


def _check_whole(folder: Path, config: dict[str, Any], codes: Any, ids: list[Any]) -> None:
    try:
        expected = (int(config["n_documents"]), config["n_bits"] // 8)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} is damaged: {error!r}") from error
    if codes.dtype != np.uint8 or codes.shape != expected or len(ids) != expected[0]:
        raise ModelError(
            f"{folder} is damaged: expected {expected[0]} codes of {expected[1]} bytes, got "
            f"{codes.shape} {codes.dtype} and {len(ids)} ids"
        )
