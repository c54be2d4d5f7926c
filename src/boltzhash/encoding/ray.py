"""Encoding a corpus on a Ray cluster: shards in, codes out, each document exactly once.

A shard becomes one file, named by its number and by what it was made from, written beside its place and
moved there. So it does not matter how often a shard is encoded: when a worker is lost, Ray has another
repeat its shard; when everything is lost, the same call resumes with the shards that are missing.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.corpus import CorpusError
from boltzhash.corpus.documents import checked_documents
from boltzhash.corpus.records import USUAL_FIELDS, Fields
from boltzhash.corpus.shards import SHARD_BYTES, RowNumber, Shard, plan_shards, read_shard
from boltzhash.encoding.coding import Coded
from boltzhash.encoding.model_files import ModelFile, model_from_files, model_to_files
from boltzhash.errors import needs_extra
from boltzhash.hashers import Hasher
from boltzhash.storage.codes import write_codes
from boltzhash.threads import in_batches

_BATCH = 2048  # documents written at a time
_RETRIES = 5  # of a shard whose worker was lost


class EncodedShard(NamedTuple):
    """A shard with its codes; ids that are row numbers count from the first row of the corpus."""

    shard: Shard
    first: int
    codes: Codes
    ids: list[str | int]
    known_words: NDArray[np.int64]


OnShard = Callable[[int, int], object]


def encode_on_ray(
    hasher: Hasher,
    sources: Iterable[str | Path],
    output: str | Path,
    *,
    fields: Fields = USUAL_FIELDS,
    shard_bytes: int = SHARD_BYTES,
    on_shard: OnShard | None = None,
) -> dict[str, int]:
    """Write the codes folder of a corpus of JSONL, CSV or Parquet files; the folder appears whole.

    Every machine of the cluster must see ``sources`` and the folder of ``output`` under the same paths.
    Until it is finished, the shards wait in ``output``.shards; the same call resumes with them. Returns
    how many documents there are, and how many of them have no word that the model knows.
    """
    output = Path(output)
    folder = output.with_name(output.name + ".shards")
    encoded = encoded_shards(hasher, sources, folder, fields, shard_bytes, on_shard)
    with write_codes(output, n_bits=hasher.n_bits, model=hasher.fingerprint()) as writer:
        for part in encoded:
            writer.append(part.codes, part.ids, part.known_words)
        if writer.n_documents == 0:
            raise CorpusError("the corpus is empty: there is nothing to encode")
    shutil.rmtree(folder)
    return {"documents": writer.n_documents, "no_known_word": len(writer.no_known_word)}


def encoded_shards(
    hasher: Hasher,
    sources: Iterable[str | Path],
    folder: Path,
    fields: Fields,
    shard_bytes: int,
    on_shard: OnShard | None,
) -> Iterator[EncodedShard]:
    """All shards, in order, after each is encoded in ``folder``."""
    # A worker may have another working folder than this process, even on the same machine.
    planned = plan_shards(sources, shard_bytes)
    shards = [shard._replace(path=os.path.abspath(shard.path)) for shard in planned]
    folder = folder.absolute()
    model = hasher.fingerprint()
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{s.name(i, model, fields)}.npz" for i, s in enumerate(shards)]
    missing = [pair for pair in zip(shards, targets, strict=True) if not pair[1].exists()]
    if missing:
        _encode_missing(hasher, missing, fields, len(shards), on_shard)
    first = 0
    for shard, target in zip(shards, targets, strict=True):
        part = _read_encoded(shard, target, first)
        first += len(part.ids)
        yield part


def _encode_missing(
    hasher: Hasher,
    missing: Sequence[tuple[Shard, Path]],
    fields: Fields,
    n_shards: int,
    on_shard: OnShard | None,
) -> None:
    with _cluster() as ray:
        task = ray.remote(max_retries=_RETRIES)(encode_shard)
        model, files = hasher.fingerprint(), ray.put(model_to_files(hasher))
        waiting = [
            task.remote(files, model, shard, str(target), fields) for shard, target in missing
        ]
        try:
            while waiting:
                (done,), waiting = ray.wait(waiting)
                ray.get(done)
                if on_shard is not None:
                    on_shard(n_shards - len(waiting), n_shards)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None  # what the shard itself said
        finally:
            for unfinished in waiting:
                ray.cancel(unfinished)


@contextlib.contextmanager
def _cluster() -> Iterator[Any]:
    """Ray: what the process is connected to, else the cluster at RAY_ADDRESS, else this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError:
        raise needs_extra("encoding on a cluster", "ray", "ray") from None
    if ray.is_initialized():
        yield ray
        return
    ray.init(logging_level="warning", include_dashboard=False)
    try:
        yield ray
    finally:
        ray.shutdown()


_hashers: dict[str, Hasher] = {}  # of this worker, so that a model is loaded once


def encode_shard(
    files: list[ModelFile], model: str, shard: Shard, target: str, fields: Fields
) -> None:
    """Write the codes of a shard to ``target``, whole or not at all; this is what a worker does."""
    if model not in _hashers:
        _hashers.clear()
        _hashers[model] = model_from_files(files, model, "the cluster")
    unfinished = Path(f"{target}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, **_encoded_arrays(_hashers[model], shard, fields))
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _encoded_arrays(hasher: Hasher, shard: Shard, fields: Fields) -> dict[str, Any]:
    ids: list[str] = []

    def texts() -> Iterator[str]:
        for document in read_shard(shard, fields):
            ids.append(json.dumps([document.id, isinstance(document.id, RowNumber)]))
            yield document.text

    blocks = list(hasher.transform_blocks(texts()))
    return {
        "codes": np.concatenate([block.codes for block in blocks]),
        "known_words": np.concatenate([block.known_words for block in blocks]),
        "ids": np.frombuffer("\n".join(ids).encode(), dtype=np.uint8),
    }


def _read_encoded(shard: Shard, path: Path, first: int) -> EncodedShard:
    with np.load(path, allow_pickle=False) as arrays:
        lines = arrays["ids"].tobytes().decode()
        pairs = json.loads(f"[{lines.replace(chr(10), ',')}]")  # faster than one by one
        ids = [first + id_ if is_number else id_ for id_, is_number in pairs]
        return EncodedShard(shard, first, arrays["codes"], ids, arrays["known_words"])


@contextlib.contextmanager
def documents_encoded_on_ray(
    hasher: Hasher,
    sources: Iterable[str | Path],
    *,
    fields: Fields,
    shards: str | Path | None,
) -> Iterator[Iterator[list[Coded]]]:
    """Encode files on the cluster; gives their documents with their codes, a batch at a time.

    ``shards`` is a folder that every machine of the cluster sees. It keeps the codes until the block
    ends, and after an error, so that the same call can resume; without it they are in a temporary one.
    """
    folder = Path(shards) if shards is not None else Path(tempfile.mkdtemp(prefix="boltzhash-"))
    try:
        documents = _coded_documents(hasher, sources, folder, fields)
        yield in_batches(documents, _BATCH)
    except BaseException:
        if shards is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _coded_documents(
    hasher: Hasher, sources: Iterable[str | Path], folder: Path, fields: Fields
) -> Iterator[Coded]:
    coded = fields._replace(metadata=False)  # codes are the same whatever metadata is kept
    for part in encoded_shards(hasher, sources, folder, coded, SHARD_BYTES, None):
        read = read_shard(part.shard, fields)
        given = (document._replace(id=id_) for document, id_ in zip(read, part.ids, strict=True))
        rows = zip(checked_documents(given), part.codes, part.known_words, strict=True)
        for document, code, known_words in rows:
            yield Coded(document, code.tobytes(), bool(known_words > 0))
