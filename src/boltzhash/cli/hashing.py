"""What each command of the command line does, from parsed options to printed results."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boltzhash.hashers import Hasher

OK = 0


def fit(options: argparse.Namespace) -> int:
    from boltzhash.storage.folders import check_output

    hasher = _chosen_hasher(options)
    output = Path(options.output)
    checkpoint = output.with_name(output.name + ".checkpoint")
    check_output(output.resolve(), "boltzhash model")
    start = time.monotonic()
    try:
        hasher.fit(
            (document.text for document in _read(options, "reading")),
            features=_features(options),
            max_memory=options.max_memory,
            checkpoint=checkpoint,
        )
    except KeyboardInterrupt:
        if checkpoint.exists():
            say(f"{checkpoint} keeps what is done; the same command goes on from there")
        raise
    hasher.save(output)
    shutil.rmtree(checkpoint, ignore_errors=True)
    report = {
        "model": str(output),
        "method": type(hasher).__name__,
        "bits": hasher.n_bits,
        "words": hasher.n_features_in_,
        "distinct_codes": hasher.distinct_codes_,
        "bit_balance": hasher.bit_balance_,
        "seconds": round(time.monotonic() - start, 1),
    }
    if hasher.feature_scaling_ is not None:
        report["features"] = len(hasher.feature_scaling_.mean)
    history = getattr(hasher, "history_", None)
    if history:
        last = history[-1]
        terms = {"epochs": last.epoch, "reconstruction": last.reconstruction, "kl": last.kl}
        report.update(terms)
    if options.json:
        print(json.dumps(report))
        return OK
    read = f"{report['features']} features, " if "features" in report else ""
    print(
        f"wrote {output}: {report['method']}, {report['bits']} bits, {read}{report['words']} words, "
        f"{report['seconds']} s\n"
        f"{report['distinct_codes']} distinct codes, bit balance {report['bit_balance']:.2f}"
    )
    if history:
        print(
            f"{report['epochs']} epochs: reconstruction {report['reconstruction']:.1f} and KL "
            f"{report['kl']:.1f} nats a document"
        )
    return OK


def _chosen_hasher(options: argparse.Namespace) -> Hasher:
    """The hasher that the command line asks for; an option it does not have is named."""
    from boltzhash.hashers import HASHERS, CorrSH

    if options.method not in HASHERS:
        raise ValueError(f"--method must be one of {', '.join(HASHERS)}, got {options.method!r}")
    kind = HASHERS[options.method]
    if options.published and kind is not CorrSH:
        raise ValueError(f"--published is for CorrSH, got --method {options.method}")
    chosen = {
        "epochs": options.epochs,
        "rank": _rank(options.rank),
        "learning_rate": options.learning_rate,
        "max_words": options.max_words,
    }
    settings = {name: value for name, value in chosen.items() if value is not None}
    for name in settings:
        if name not in kind.defaults():
            raise ValueError(f"--{name.replace('_', '-')} is no argument of {options.method}")
    if options.language is not None:
        settings["language"] = None if options.language == "none" else options.language
    for name, value in {"device": options.device, "verbose": True}.items():
        if name in kind.defaults():
            settings[name] = value
    make = CorrSH.as_published if options.published else kind
    return make(options.bits, random_state=options.seed, **settings)


def methods(options: argparse.Namespace) -> int:
    from boltzhash.hashers import HASHERS

    for name, kind in HASHERS.items():
        needs = "torch" if kind.needs_torch else None
        if options.json:
            row = {
                "method": name,
                "summary": kind.summary(),
                "reference": kind.reference(),
                "fit_needs": needs,
            }
            print(json.dumps(row, ensure_ascii=False))
        else:
            print(f"{name:<18} {kind.summary()}")
            print(f"{'':<18} {kind.reference()}")
            print(f"{'':<18} fit needs {needs or 'nothing more'}")
    return OK


def _rank(text: str | None) -> int | str | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return text  # "full", or something that the model's own check names


def encode(options: argparse.Namespace) -> int:
    from boltzhash.hashers import load

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


def _encode_here(hasher: Hasher, options: argparse.Namespace) -> dict[str, int]:
    from boltzhash.storage.codes import write_codes

    ids: deque[str | int] = deque()  # of the documents that were read and have no code yet

    def texts() -> Iterator[str]:
        for document in _read(options, "encoding"):
            ids.append(document.id)
            yield document.text

    with write_codes(options.output, n_bits=hasher.n_bits, model=hasher.fingerprint()) as writer:
        for codes, known_words in hasher.transform_blocks(texts(), features=_features(options)):
            writer.append(codes, [ids.popleft() for _ in codes], known_words)
        if writer.n_documents == 0:
            raise ValueError(f"{options.corpus} is empty: there is nothing to encode")
    return {"documents": writer.n_documents, "no_known_word": len(writer.no_known_word)}


def _encode_on_ray(hasher: Hasher, options: argparse.Namespace) -> dict[str, int]:
    from tqdm import tqdm

    from boltzhash.encoding.ray import Fields, encode_on_ray

    if options.encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
        raise ValueError(f"--ray reads utf-8 only, got --encoding {options.encoding}")
    with tqdm(desc="encoding", unit=" shards", disable=None) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        fields = Fields(options.text_field, options.id_field)
        return encode_on_ray(hasher, [options.corpus], options.output, fields=fields, on_shard=show)


def search(options: argparse.Namespace) -> int:
    from boltzhash.cli import collections as collection_commands
    from boltzhash.hashers import load
    from boltzhash.search.finder import Finder
    from boltzhash.storage.codes import read_codes

    if collection_commands.names_collection(options):
        return collection_commands.search(options)
    if options.codes is None:
        options.usage_error(f"{options.model} is no collection: give a model and a folder of codes")
    if options.where is not None:
        raise ValueError("--where is for a collection: a folder of codes has no metadata")
    if options.rerank and options.corpus is None:
        raise ValueError("--rerank compares texts: give the encoded corpus with --corpus")
    if options.rerank and options.candidates < 1:
        raise ValueError(f"--candidates must be at least 1, got {options.candidates}")
    if options.corpus == "-" and not options.queries:
        raise ValueError("--corpus - and the queries cannot both come from standard input")
    hasher = load(options.model)
    stored = read_codes(options.codes, model=hasher.fingerprint())
    finder = Finder(hasher, stored.codes, stored.ids, no_known_word=stored.no_known_word)
    queries = options.queries or [line.strip() for line in sys.stdin or () if line.strip()]
    if not queries:
        say("no query came on standard input")
    answers = finder.find(
        queries,
        options.k,
        features=_features(options),
        rerank_from=options.candidates if options.rerank else None,
        corpus=None if options.corpus is None else lambda: _read(options, "reading"),
    )
    for number, answer in enumerate(answers):
        if options.json:
            print(json.dumps(answer.as_json(), ensure_ascii=False))
        else:
            print(("\n" if number else "") + str(answer))
    return OK


def explain(options: argparse.Namespace) -> int:
    from boltzhash.hashers import load

    hasher = load(options.model)
    if not hasattr(hasher, "explain"):
        raise ValueError(f"a {type(hasher).__name__} has no decoder to explain its bits with")
    if options.words < 1:
        raise ValueError(f"--words must be at least 1, got {options.words}")
    for bit in hasher.explain(options.words):
        if options.json:
            print(json.dumps(bit._asdict(), ensure_ascii=False))
        else:
            print(f"bit {bit.bit:<4} on:  {' '.join(word for word, _ in bit.up)}")
            print(f"         off: {' '.join(word for word, _ in bit.down)}")
    return OK


def demo(options: argparse.Namespace) -> int:
    from boltzhash.cli.demo import run_demo

    run_demo(options.queries, Path(options.output))
    return OK


def _features(options: argparse.Namespace) -> Any:
    from boltzhash.hashers.shared.features import read_features

    return None if options.features is None else read_features(options.features)


def _read(options: argparse.Namespace, doing: str) -> Iterator[Any]:
    """The documents of the corpus, counted on a terminal."""
    from tqdm import tqdm

    from boltzhash.corpus import read_corpus

    documents: Iterable[Any] = read_corpus(
        options.corpus,
        text_field=options.text_field,
        id_field=options.id_field,
        encoding=options.encoding,
    )
    return iter(tqdm(documents, desc=doing, unit=" documents", disable=None))


def say(message: str) -> None:
    print(f"boltzhash: {message}", file=sys.stderr)
