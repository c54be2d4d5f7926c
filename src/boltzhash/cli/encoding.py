"""``boltzhash encode``: its arguments, and what it does."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    add_corpus,
    add_features,
    add_json,
    add_model,
    count_documents,
    read_documents,
    read_vectors,
    with_progress,
)
from boltzhash.cli.reporting import NOTHING_KEPT, OK, interruption_says, say
from boltzhash.cli.skipping import skipped_records

if TYPE_CHECKING:
    from boltzhash.hashers import Hasher


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "encode",
        help="turn a corpus into codes",
        description="Write the packed code and the id of every document to a folder. The corpus is "
        "streamed: memory grows by 8 bytes a document.",
    )
    add_model(parser)
    add_corpus(parser)
    add_features(parser, "vectors of the documents, if the model was fitted with vectors")
    parser.add_argument("-o", "--output", required=True, metavar="CODES", help="folder to write")
    parser.add_argument(
        "--ray",
        action="store_true",
        help="encode on the Ray cluster at RAY_ADDRESS, or on all CPUs here",
    )
    add_json(parser)
    parser.set_defaults(run=encode)


def encode(options: argparse.Namespace) -> int:
    from boltzhash.hashers import load

    with interruption_says(lambda: _what_is_kept(options)):
        hasher = load(options.model)
        counts = _encode_on_ray(hasher, options) if options.ray else _encode_here(hasher, options)
    unknown = counts["no_known_word"]
    if unknown:
        say(
            f"{unknown} documents have no word that the model knows; they share the code of the "
            "empty document and are listed in no_known_word.npy"
        )
    if options.json:
        print(json.dumps({"codes": str(options.output), "bits": hasher.n_bits, **counts}))
    else:
        print(f"wrote {options.output}: {counts['documents']} codes of {hasher.n_bits} bits")
    return OK


def _what_is_kept(options: argparse.Namespace) -> str:
    shards = Path(f"{options.output}.shards")
    if not options.ray or not shards.exists():
        return NOTHING_KEPT
    return f"{shards} keeps what is done; the same command resumes from there"


def _encode_here(hasher: Hasher, options: argparse.Namespace) -> dict[str, Any]:
    from boltzhash.storage.codes import write_codes

    skipped = skipped_records(options, options.output)
    total = count_documents(options)
    ids: deque[str | int] = deque()  # of the documents that were read and have no code yet

    def texts() -> Iterator[str]:
        for document in with_progress(read_documents(options, skipped), "encoding", total):
            ids.append(document.id)
            yield document.text

    with write_codes(options.output, n_bits=hasher.n_bits, model=hasher.fingerprint()) as writer:
        for codes, known_words in hasher.transform_blocks(texts(), features=read_vectors(options)):
            writer.append(codes, [ids.popleft() for _ in codes], known_words)
        if writer.n_documents == 0:
            raise ValueError(f"{shlex.join(options.corpus)} is empty: there is nothing to encode")
    counts = {"documents": writer.n_documents, "no_known_word": len(writer.no_known_word)}
    return counts if skipped is None else {**counts, **skipped.report()}


def _encode_on_ray(hasher: Hasher, options: argparse.Namespace) -> dict[str, Any]:
    from boltzhash.corpus.records import Fields
    from boltzhash.encoding.ray import encode_on_ray
    from boltzhash.progress import progress

    if options.features is not None:
        raise ValueError("--ray hashes texts, and vectors do not travel: encode without --ray")
    if options.skip_bad or options.format is not None:
        raise ValueError(
            "--ray reads files as their names say and leaves nothing out: encode without --ray, or "
            "without --skip-bad, --format and --lines"
        )
    if options.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise ValueError(f"--ray reads utf-8 only, got --encoding {options.encoding}")
    with progress("encoding", "shards") as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        fields = Fields(options.text_field, options.id_field, False, options.id_as_string)
        return encode_on_ray(hasher, options.corpus, options.output, fields=fields, on_shard=show)
