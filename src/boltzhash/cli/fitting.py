"""``boltzhash fit``, ``explain`` and ``methods``: their arguments, and what they do."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    add_corpus,
    add_features,
    add_json,
    add_words,
    given_words,
    read_documents,
    read_vectors,
    with_progress,
)
from boltzhash.cli.opening import is_collection, opened
from boltzhash.cli.reporting import NOTHING_KEPT, OK, interruption_says
from boltzhash.cli.skipping import skipped_records
from boltzhash.text.stopwords import LANGUAGES

if TYPE_CHECKING:
    from boltzhash.corpus import Document
    from boltzhash.hashers import Hasher


def add_parsers(subparsers: Any) -> None:
    """Hook the commands into the command line."""
    parser = subparsers.add_parser(
        "fit",
        help="learn a model from a corpus",
        description="Learn from a corpus how to turn documents into codes. Needs no labels, but learns "
        "from those there are. An "
        "interrupted fit keeps its state in MODEL.checkpoint; the same command resumes from there.",
    )
    add_corpus(parser)
    add_features(parser, "vectors to make the codes from, one per document; words explain the bits")
    parser.add_argument(
        "--labels",
        metavar="FIELD",
        help="field that holds a document's label or a list of labels, null or missing where there is "
        "none: codes of one label become near",
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="folder to write")
    parser.add_argument("--method", metavar="NAME", help="see `boltzhash methods` (SemanticHasher)")
    parser.add_argument("--bits", type=int, help="length of a code, a multiple of 8 (64)")
    parser.add_argument(
        "--published",
        action="store_true",
        help="train the method as its authors' code does, instead of with our defaults",
    )
    parser.add_argument(
        "--epochs", type=int, help="passes over the corpus (25, more if it is small)"
    )
    parser.add_argument("--rank", help='rank of the couplings between bits, or "full" (10)')
    parser.add_argument("--learning-rate", type=float, help="of Adam, at its highest (0.005)")
    parser.add_argument("--max-words", type=int, help="size of the vocabulary (10000)")
    add_words(parser)
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="such as 4GB: learn words from the whole corpus and the rest from as many of its "
        "documents as fit",
    )
    parser.add_argument(
        "--language",
        help=f"of the texts: {', '.join(LANGUAGES)}, or none (english)",
    )
    parser.add_argument(
        "--stem",
        action="store_true",
        help="count the spellings of a word as one (sort, sorts, sorting), as index does",
    )
    parser.add_argument("--seed", type=int, help="same seed, same codes (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (auto)")
    parser.add_argument(
        "--force", action="store_true", help="replace a finished model that is already at MODEL"
    )
    add_json(parser)
    parser.set_defaults(run=fit)

    parser = subparsers.add_parser(
        "explain",
        help="show what each bit stands for",
        description="For each bit, the words it makes likelier when it is on and when it is off.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder written by fit, or a collection")
    parser.add_argument("--words", type=int, default=8, help="words per side (8)")
    add_json(parser)
    parser.set_defaults(run=explain)

    parser = subparsers.add_parser(
        "methods",
        help="list the hashing methods",
        description="For each method of fit --method: what it does, its paper, what fitting needs.",
    )
    add_json(parser)
    parser.set_defaults(run=methods)


def fit(options: argparse.Namespace) -> int:
    from boltzhash.progress import heartbeat

    output = Path(options.output)
    checkpoint = output.with_name(output.name + ".checkpoint")
    began = time.monotonic()
    with interruption_says(lambda: _what_is_kept(checkpoint)), heartbeat("fitting"):
        hasher = _chosen_hasher(options)
        _check_new(output, options.force)
        skipped = skipped_records(options, options.output)
        documents = read_documents(options, skipped, field=options.labels)
        labels = None if options.labels is None else _FieldValues(options.labels)
        hasher.fit(
            _texts(with_progress(documents, "reading"), labels),
            labels,
            features=read_vectors(options),
            max_memory=options.max_memory,
            checkpoint=checkpoint,
        )
        hasher.save(output)
    shutil.rmtree(checkpoint, ignore_errors=True)
    report = _report(hasher, output, time.monotonic() - began)
    if skipped is not None:
        report.update(skipped.report())
    if options.json:
        print(json.dumps(report))
    else:
        _print_for_people(report)
    return OK


class _FieldValues:
    """What a field of the documents holds, noted as texts are read: a fit asks for it afterwards."""

    def __init__(self, field: str) -> None:
        self.field = field
        self._values: list[object] = []
        self._is_known = False

    def note(self, document: Document) -> None:
        metadata = document.metadata or {}
        self._is_known = self._is_known or self.field in metadata
        self._values.append(metadata.get(self.field))

    def __iter__(self) -> Iterator[object]:
        if not self._is_known:
            raise ValueError(f"--labels: no record has a field {self.field!r}")
        return iter(self._values)


def _texts(documents: Iterable[Document], labels: _FieldValues | None) -> Iterator[str]:
    for document in documents:
        if labels is not None:
            labels.note(document)
        yield document.text


def _check_new(output: Path, force: bool) -> None:
    """Refuse a place where a model cannot be written, or where there is one."""
    from boltzhash.storage.folders import is_model, try_output

    if is_model(output) and not force:
        raise FileExistsError(
            f"{output} is a finished model: name another folder, or replace it with --force"
        )
    try_output(output.resolve(), "boltzhash model")


def _what_is_kept(checkpoint: Path) -> str:
    if not checkpoint.exists():
        return NOTHING_KEPT
    return f"{checkpoint} keeps what is done; the same command resumes from there"


def _report(hasher: Hasher, output: Path, seconds: float) -> dict[str, Any]:
    report = {
        "model": str(output),
        "method": type(hasher).__name__,
        "bits": hasher.n_bits,
        "words": hasher.n_features_in_,
        "distinct_codes": hasher.distinct_codes_,
        "bit_balance": hasher.bit_balance_,
        "seconds": round(seconds, 1),
    }
    if hasher.n_feature_columns is not None:
        report["features"] = hasher.n_feature_columns
    labelling = getattr(hasher, "labelling_", None)
    if labelling is not None:
        report["labels"] = labelling._asdict()
    history = getattr(hasher, "history_", None)
    if history:
        last = history[-1]
        terms = {"epochs": last.epoch, "reconstruction": last.reconstruction, "kl": last.kl}
        report.update(terms)
    return report


def _print_for_people(report: dict[str, Any]) -> None:
    read = f"{report['features']} features, " if "features" in report else ""
    print(
        f"wrote {report['model']}: {report['method']}, {report['bits']} bits, {read}{report['words']} "
        f"words, {report['seconds']} s\n"
        f"{report['distinct_codes']} distinct codes, bit balance {report['bit_balance']:.2f}"
    )
    if "labels" in report:
        labels = report["labels"]
        print(
            f"{labels['labels']} labels of {labels['documents']} documents; words tell those that are "
            f"held out with a kappa of {labels['agreement']:.2f}"
        )
    if "epochs" in report:
        print(
            f"{report['epochs']} epochs: reconstruction {report['reconstruction']:.1f} and KL "
            f"{report['kl']:.1f} nats per document"
        )


def _chosen_hasher(options: argparse.Namespace) -> Hasher:
    """The hasher that the command line asks for; raises if it does not have an option that was given."""
    from boltzhash.hashers import HASHERS

    method = "SemanticHasher" if options.method is None else options.method
    if method not in HASHERS:
        raise ValueError(f"--method must be one of {', '.join(HASHERS)}, got {method!r}")
    kind = HASHERS[method]
    if options.published and not hasattr(kind, "as_published"):
        published = ", ".join(
            name for name, kind in HASHERS.items() if hasattr(kind, "as_published")
        )
        raise ValueError(f"--published is for {published}, got --method {method}")
    if options.labels is not None and not kind.takes_labels:
        takers = ", ".join(name for name, other in HASHERS.items() if other.takes_labels)
        raise ValueError(f"--labels is for {takers}, got --method {method}")
    chosen = {
        "training__epochs": options.epochs,
        "rank": _rank(options.rank),
        "training__learning_rate": options.learning_rate,
        "text__max_words": options.max_words,
        "text__stem": True if options.stem else None,
    }
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    for name in settings:
        if name not in kind.param_names():
            option = name.rpartition("__")[2].replace("_", "-")
            raise ValueError(f"--{option} is not an argument of {method}")
    settings |= given_words(options)
    if options.language is not None:
        settings["text__language"] = None if options.language == "none" else options.language
    for name, value in {"training__device": options.device, "verbose": True}.items():
        if name in kind.param_names():
            settings[name] = value
    bits = 64 if options.bits is None else options.bits
    settings["random_state"] = options.seed or 0
    if options.published:
        as_published: Callable[..., Hasher] = getattr(kind, "as_published")  # noqa: B009
        return as_published(bits, **settings)
    return kind(bits).set_params(**settings)


def methods(options: argparse.Namespace) -> int:
    from boltzhash.hashers import HASHERS

    for name, kind in HASHERS.items():
        if options.json:
            row = {
                "method": name,
                "summary": kind.summary(),
                "reference": kind.reference(),
                "fit_needs": kind.fit_needs,
            }
            print(json.dumps(row, ensure_ascii=False))
        else:
            print(f"{name:<18} {kind.summary()}")
            print(f"{'':<18} {kind.reference()}")
            print(f"{'':<18} fit needs {kind.fit_needs or 'nothing more'}")
    return OK


def _rank(text: str | None) -> int | str | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return text  # "full", or something that the model's own check names


def _model_at(place: str) -> Hasher:
    """The model that was saved there, or that the collection there has."""
    from boltzhash.hashers import load

    if not is_collection(place):
        return load(place)
    with opened(place) as collection:
        return collection.hasher


def explain(options: argparse.Namespace) -> int:
    hasher = _model_at(options.model)
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
