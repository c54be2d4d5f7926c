"""The ``boltzhash`` command: fit, encode, search, explain, demo.

Results go to standard output, everything else (progress, notes, errors) to standard error.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.errors import MissingExtraError, TrainingError
from boltzhash.version import __version__

if TYPE_CHECKING:
    from boltzhash.hashers import Hasher

OK, BAD_INPUT, MISSING_EXTRA, TRAINING_FAILED, FILE_ERROR, INTERRUPTED = 0, 2, 3, 4, 5, 130
ENCODE_BLOCK = 1024
CANDIDATES = 500

EXIT_CODES = """\
exit codes:
  0  done
  2  wrong arguments or bad input (the message names the file, line or argument)
  3  an optional dependency is missing (the message says what to install)
  4  training failed: it diverged, or all documents got the same code
  5  a file could not be read or written; what was there before is untouched
  130  interrupted; the same fit command goes on where it stopped
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        if not hasattr(options, "queries") or any(r.startswith("-") for r in rest):
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        options.queries = [*options.queries, *rest]
    _show_notes()
    try:
        code: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()  # a closed pipe shows here, not when Python exits
        return code
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except MissingExtraError as error:
        return _fail(error, MISSING_EXTRA)
    except TrainingError as error:
        return _fail(error, TRAINING_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK  # whoever read our output has seen enough
    except OSError as error:
        return _fail(error, FILE_ERROR)
    except (ValueError, TypeError) as error:
        return _fail(error, BAD_INPUT)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boltzhash",
        description="Turn documents into short binary codes and find similar ones.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"boltzhash {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fit(commands)
    _add_encode(commands)
    _add_search(commands)
    _add_explain(commands)
    _add_methods(commands)
    _add_demo(commands)
    return parser


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="learn a model from a corpus",
        description="Learn from a corpus how to turn documents into codes. Needs no labels. An "
        "interrupted fit keeps its state in MODEL.checkpoint; the same command goes on from there.",
    )
    _add_corpus_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="folder to write")
    parser.add_argument(
        "--bits", type=int, default=64, help="length of a code, a multiple of 8 (64)"
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="train CorrSH as its paper did (100 epochs) instead of with our defaults",
    )
    parser.add_argument(
        "--epochs", type=int, help="passes over the corpus (25, more if it is small)"
    )
    parser.add_argument("--rank", help='rank of the couplings between bits, or "full" (10)')
    parser.add_argument("--learning-rate", type=float, help="of Adam, at its highest (0.005)")
    parser.add_argument("--max-words", type=int, help="size of the vocabulary (10000)")
    parser.add_argument(
        "--language", help="whose function words to leave out; none for a list-free fit (english)"
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same codes (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (auto)")
    _add_json(parser)
    parser.set_defaults(run=_fit)


def _add_encode(commands: Any) -> None:
    parser = commands.add_parser(
        "encode",
        help="turn a corpus into codes",
        description="Write the packed code and the id of every document to a folder. The corpus is "
        "streamed: memory does not grow with it.",
    )
    _add_model(parser)
    _add_corpus_arguments(parser)
    parser.add_argument("-o", "--output", required=True, metavar="CODES", help="folder to write")
    _add_json(parser)
    parser.set_defaults(run=_encode)


def _add_search(commands: Any) -> None:
    parser = commands.add_parser(
        "search",
        help="find the documents most like a query",
        description="Find the documents whose codes are nearest to the query's. Prints rank, Hamming "
        "distance and id; with --corpus a line of the text as well.",
    )
    _add_model(parser)
    parser.add_argument("codes", metavar="CODES", help="folder written by encode")
    parser.add_argument(
        "queries", metavar="QUERY", nargs="*", help="text to look for; none: one a line from stdin"
    )
    parser.add_argument("-k", type=int, default=10, help="hits a query (10)")
    parser.add_argument(
        "--corpus", metavar="CORPUS", help="the corpus that was encoded, to show and rerank texts"
    )
    parser.add_argument(
        "--rerank",
        action="store_true",
        help="reorder the nearest documents by tf-idf cosine; needs --corpus",
    )
    parser.add_argument(
        "--candidates",
        type=int,
        default=CANDIDATES,
        metavar="N",
        help=f"how many documents to rerank ({CANDIDATES})",
    )
    _add_fields(parser)
    _add_json(parser)
    parser.set_defaults(run=_search)


def _add_explain(commands: Any) -> None:
    parser = commands.add_parser(
        "explain",
        help="show what each bit stands for",
        description="For each bit, the words it makes likelier when it is on and when it is off.",
    )
    _add_model(parser)
    parser.add_argument("--words", type=int, default=8, help="words a side (8)")
    _add_json(parser)
    parser.set_defaults(run=_explain)


def _add_methods(commands: Any) -> None:
    parser = commands.add_parser(
        "methods",
        help="list the hashing methods",
        description="For each method of fit --method: what it does, its paper, what fitting needs.",
    )
    _add_json(parser)
    parser.set_defaults(run=_methods)


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="learn from Python's own docstrings and answer questions",
        description="Fit 64-bit codes to the docstrings of this Python (standard library, numpy, "
        "scipy, scikit-learn), then answer five questions and yours. About a minute.",
    )
    parser.add_argument("queries", metavar="QUERY", nargs="*", help="a question of your own")
    parser.set_defaults(run=_demo)


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="folder written by fit")


def _add_corpus_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "corpus",
        metavar="CORPUS",
        help="JSONL, CSV or TSV (each also .gz), Parquet, a folder of text files, or - for JSONL "
        "on standard input",
    )
    _add_fields(parser)


def _add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", default="text", help="field that holds the text (text)")
    parser.add_argument("--id-field", help="field that holds the id (id, else the row number)")
    parser.add_argument("--encoding", default="utf-8", help="of text files (utf-8)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def _fit(options: argparse.Namespace) -> int:
    from boltzhash.persistence import check_output

    hasher = _chosen_hasher(options)
    output = Path(options.output)
    checkpoint = output.with_name(output.name + ".checkpoint")
    check_output(output.resolve(), "boltzhash model")
    start = time.monotonic()
    try:
        hasher.fit((document.text for document in _read(options, "reading")), checkpoint=checkpoint)
    except KeyboardInterrupt:
        if checkpoint.exists():
            _say(f"{checkpoint} keeps what is done; the same command goes on from there")
        raise
    hasher.save(output)
    shutil.rmtree(checkpoint, ignore_errors=True)
    report = {
        "model": str(output),
        "method": type(hasher).__name__,
        "bits": hasher.n_bits,
        "words": hasher.n_features_in_,
        "seconds": round(time.monotonic() - start, 1),
    }
    history = getattr(hasher, "history_", None)
    if history:
        last = {**vars(history[-1])}
        report |= {"epochs": last.pop("epoch"), **last}
    if options.json:
        print(json.dumps(report))
        return OK
    print(
        f"wrote {output}: {report['method']}, {report['bits']} bits, {report['words']} words, "
        f"{report['seconds']} s"
    )
    if history:
        print(
            f"{report['epochs']} epochs: reconstruction {report['reconstruction']:.1f} and KL "
            f"{report['kl']:.1f} nats a document, {report['distinct_codes']} distinct codes, "
            f"bit balance {report['bit_balance']:.2f}"
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
        if name not in kind._get_param_names():
            raise ValueError(f"--{name.replace('_', '-')} is no argument of {options.method}")
    if options.language is not None:
        settings["language"] = None if options.language == "none" else options.language
    for name, value in {"device": options.device, "verbose": True}.items():
        if name in kind._get_param_names():
            settings[name] = value
    make = CorrSH.as_published if options.published else kind
    return make(options.bits, random_state=options.seed, **settings)


def _methods(options: argparse.Namespace) -> int:
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


def _encode(options: argparse.Namespace) -> int:
    from boltzhash import load
    from boltzhash.stored_codes import write_codes

    hasher = load(options.model)
    documents = _read(options, "encoding")
    with write_codes(options.output, n_bits=hasher.n_bits, model=hasher.fingerprint()) as writer:
        while block := list(itertools.islice(documents, ENCODE_BLOCK)):
            tfidf = hasher.tfidf(document.text for document in block)
            writer.append(
                hasher.transform(tfidf),
                [document.id for document in block],
                hasher.known_word_counts(tfidf),
            )
        if writer.n_documents == 0:
            raise ValueError(f"{options.corpus} is empty: there is nothing to encode")
    unknown = len(writer.no_known_word)
    if unknown:
        _say(
            f"{unknown} documents have no word that the model knows; they share the code of the "
            "empty document and are listed in no_known_word.npy"
        )
    if options.json:
        report = {
            "codes": str(options.output),
            "documents": writer.n_documents,
            "bits": hasher.n_bits,
            "no_known_word": unknown,
        }
        print(json.dumps(report))
    else:
        print(f"wrote {options.output}: {writer.n_documents} codes of {hasher.n_bits} bits")
    return OK


def _search(options: argparse.Namespace) -> int:
    from boltzhash import load
    from boltzhash.finder import Finder
    from boltzhash.stored_codes import read_codes

    if options.rerank and options.corpus is None:
        raise ValueError("--rerank compares texts: give the encoded corpus with --corpus")
    if options.corpus == "-" and not options.queries:
        raise ValueError("--corpus - and the queries cannot both come from standard input")
    hasher = load(options.model)
    stored = read_codes(options.codes, model=hasher.fingerprint())
    finder = Finder(hasher, stored.codes, stored.ids)
    queries = options.queries or [line.strip() for line in sys.stdin or () if line.strip()]
    answers = finder.find(
        queries,
        options.k,
        rerank_from=options.candidates if options.rerank else None,
        corpus=None if options.corpus is None else lambda: _read(options, "reading"),
    )
    for number, answer in enumerate(answers):
        if options.json:
            print(json.dumps(answer.as_json(), ensure_ascii=False))
        else:
            print(("\n" if number else "") + str(answer))
    return OK


def _explain(options: argparse.Namespace) -> int:
    from boltzhash import load

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


def _demo(options: argparse.Namespace) -> int:
    from boltzhash.demo import run_demo

    run_demo(options.queries)
    return OK


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


class _Notes(logging.Handler):
    """Shows what the library logs as our own messages, on the standard error of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


def _show_notes() -> None:
    logger = logging.getLogger("boltzhash")
    logger.setLevel(logging.INFO)
    logger.handlers = [_Notes()]


def _say(message: str) -> None:
    print(f"boltzhash: {message}", file=sys.stderr)


def _fail(error: Exception, code: int) -> int:
    _say(f"error: {error}")
    return code


if __name__ == "__main__":
    sys.exit(main())
