"""Lines of text files, plain or compressed, and of standard input."""

import codecs
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from boltzhash.corpus.records import CorpusError


def text_encoding(encoding: str) -> str:
    """The codec that reads an encoding; that of UTF-8 skips a byte order mark.

    >>> text_encoding("utf8"), text_encoding("latin-1")
    ('utf-8-sig', 'latin-1')
    """
    try:
        "\n".encode(encoding)  # also refuses codecs that are not for text, such as base64
    except LookupError:
        raise CorpusError(f"encoding: expected one that Python knows, got {encoding!r}") from None
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def text_lines(path: Path | None, encoding: str) -> Iterator[str]:
    """The lines of a text file, or of standard input if ``path`` is None, with their line ends."""
    count, name = 0, str(path or "standard input")
    try:
        with _open_text(path, encoding) as stream:
            for line in stream:
                count += 1
                yield line
    except UnicodeError as error:
        raise decoding_error(name, count, encoding, error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        where = f"{name}, line {count + 1}"
        raise CorpusError(f"{where}: expected intact gzip data, got: {error}") from None


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


@contextmanager
def _open_text(path: Path | None, encoding: str) -> Iterator[TextIO]:
    """Open for reading with line ends as they are, which is what the csv module wants."""
    if path is None:
        stream = io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")
        try:
            yield stream
        finally:
            stream.detach()  # or standard input would be closed with the wrapper
    elif is_gzip(path):
        with gzip.open(path, "rt", encoding=encoding, newline="") as stream:
            yield stream
    else:
        with path.open(encoding=encoding, newline="") as stream:
            yield stream


def decoding_error(name: str, lines: int, encoding: str, error: UnicodeError) -> CorpusError:
    """Say which line and byte cannot be decoded; ``lines`` came before what failed."""
    line, problem = lines + 1, str(error)
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start].decode(error.encoding, "replace")
        line += len(re.findall(r"\r\n|\r|\n", before))
        problem = f"byte 0x{error.object[error.start]:02x} ({error.reason})"
    return CorpusError(
        f"{name}, line {line}: expected {encoding.removesuffix('-sig')} text, got {problem}; "
        "if it has another encoding, name it with encoding= (--encoding on the command line)"
    )
