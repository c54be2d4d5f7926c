"""The ``boltzhash`` command: its arguments and exit codes; ``commands`` does the work.

Results go to standard output, everything else (progress, notes, errors) to standard error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any

from boltzhash.cli import collections as collection_commands
from boltzhash.cli import hashing as commands
from boltzhash.cli.serving import add_server_parsers
from boltzhash.errors import MissingExtraError, TrainingError
from boltzhash.search.finder import CANDIDATES
from boltzhash.text.stopwords import LANGUAGES
from boltzhash.version import __version__

OK, BAD_INPUT, MISSING_EXTRA, TRAINING_FAILED, FILE_ERROR, INTERRUPTED = 0, 2, 3, 4, 5, 130

EXIT_CODES = """\
exit codes:
  0  done
  2  wrong arguments or bad input (the message names the file, line or argument)
  3  an optional dependency is missing (the message says what to install)
  4  training failed: it diverged, or all documents got the same code
  5  a file could not be read or written; what was there before is untouched
  130  interrupted; the same fit, index, add or rehash command goes on where it stopped
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
        commands.say("interrupted")
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
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_fit(subparsers)
    _add_encode(subparsers)
    _add_search(subparsers)
    _add_explain(subparsers)
    _add_methods(subparsers)
    _add_demo(subparsers)
    collection_commands.add_collection_parsers(subparsers, _add_corpus_arguments, _add_json)
    add_server_parsers(subparsers)
    return parser


def _add_fit(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "fit",
        help="learn a model from a corpus",
        description="Learn from a corpus how to turn documents into codes. Needs no labels. An "
        "interrupted fit keeps its state in MODEL.checkpoint; the same command goes on from there.",
    )
    _add_corpus_arguments(parser)
    _add_features(parser, "make codes from these vectors, one a document, and speak of its words")
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="folder to write")
    parser.add_argument(
        "--method", default="CorrSH", metavar="NAME", help="see `boltzhash methods` (CorrSH)"
    )
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
        "--max-memory",
        metavar="SIZE",
        help="such as 4GB: learn words from the whole corpus and the rest from as many of its "
        "documents as fit",
    )
    parser.add_argument(
        "--language",
        help=f"whose function words to leave out: {', '.join(LANGUAGES)}, or none (english)",
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same codes (0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (auto)")
    _add_json(parser)
    parser.set_defaults(run=commands.fit)


def _add_encode(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "encode",
        help="turn a corpus into codes",
        description="Write the packed code and the id of every document to a folder. The corpus is "
        "streamed: memory does not grow with it.",
    )
    _add_model(parser)
    _add_corpus_arguments(parser)
    _add_features(parser, "vectors of the documents, where the model was fitted with some")
    parser.add_argument("-o", "--output", required=True, metavar="CODES", help="folder to write")
    parser.add_argument(
        "--ray",
        action="store_true",
        help="encode on the Ray cluster of RAY_ADDRESS, or on all CPUs here; CORPUS may then also be a "
        "folder of JSONL, CSV or Parquet files",
    )
    _add_json(parser)
    parser.set_defaults(run=commands.encode)


def _add_search(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "search",
        help="find the documents most like a query",
        usage="%(prog)s [options] (MODEL CODES | COLLECTION) [QUERY ...]",
        description="Find the documents whose codes are nearest to the query's, in a folder of codes "
        "or in a collection. Prints rank, Hamming distance and id; of a collection, or with --corpus, "
        "a line of the text as well.",
    )
    parser.add_argument("model", metavar="MODEL", help="folder written by fit, or COLLECTION")
    parser.add_argument("codes", metavar="CODES", nargs="?", help="folder written by encode")
    parser.add_argument(
        "queries", metavar="QUERY", nargs="*", help="text to look for; none: one a line from stdin"
    )
    _add_features(parser, "vectors of the queries, where the model was fitted with some")
    parser.add_argument("-k", type=int, default=10, help="hits a query (10)")
    parser.add_argument(
        "--corpus", metavar="CORPUS", help="the corpus that was encoded, to show and rerank texts"
    )
    parser.add_argument(
        "--rerank",
        action="store_true",
        help="reorder the nearest documents by tf-idf cosine; codes need --corpus for it",
    )
    parser.add_argument(
        "--candidates",
        type=int,
        default=CANDIDATES,
        metavar="N",
        help=f"how many documents to rerank ({CANDIDATES})",
    )
    collection_commands.add_where(parser)
    _add_fields(parser)
    _add_json(parser)
    parser.set_defaults(run=commands.search, usage_error=parser.error)


def _add_explain(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="show what each bit stands for",
        description="For each bit, the words it makes likelier when it is on and when it is off.",
    )
    _add_model(parser)
    parser.add_argument("--words", type=int, default=8, help="words a side (8)")
    _add_json(parser)
    parser.set_defaults(run=commands.explain)


def _add_methods(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "methods",
        help="list the hashing methods",
        description="For each method of fit --method: what it does, its paper, what fitting needs.",
    )
    _add_json(parser)
    parser.set_defaults(run=commands.methods)


def _add_demo(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="learn from Python's own docstrings and answer questions",
        description="Fit 64-bit codes to the docstrings of this Python (standard library, numpy, "
        "scipy, scikit-learn), then answer five questions and yours. About a minute. What was learned "
        "is kept as a collection, for `boltzhash serve` and the next demo.",
    )
    parser.add_argument(
        "-o",
        "--output",
        default="boltzhash-demo",
        metavar="COLLECTION",
        help="folder to keep (boltzhash-demo)",
    )
    parser.add_argument("queries", metavar="QUERY", nargs="*", help="a question of your own")
    parser.set_defaults(run=commands.demo)


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


def _add_features(parser: argparse.ArgumentParser, meaning: str) -> None:
    parser.add_argument("--features", metavar="FILE.npy", help=f"{meaning}; rows in their order")


def _add_fields(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--text-field", default="text", help="field that holds the text (text)")
    parser.add_argument("--id-field", help="field that holds the id (id, else the row number)")
    parser.add_argument("--encoding", default="utf-8", help="of text files (utf-8)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


class _Notes(logging.Handler):
    """Shows what the library logs as our own messages, on the standard error of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        commands.say(record.getMessage())


def _show_notes() -> None:
    logger = logging.getLogger("boltzhash")
    logger.setLevel(logging.INFO)
    logger.handlers = [_Notes()]


def _fail(error: Exception, code: int) -> int:
    commands.say(f"error: {error}")
    return code


if __name__ == "__main__":
    sys.exit(main())
