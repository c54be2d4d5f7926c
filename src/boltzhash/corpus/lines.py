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
from typing import Any, TextIO

from boltzhash.corpus.records import CorpusError, Fields, Records, Unreadable

_GZIP_MAGIC = b"\x1f\x8b"
_ESCAPED = "surrogateescape"  # bytes that are no text come through, and are found line by line


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


def read_lines(path: Path | None, fields: Fields, encoding: str) -> Records:
    """A file of text as records: a document a line, blank lines left out."""
    for number, line in enumerate(lines_as_they_are(path, encoding), start=1):
        if line.strip():
            problem = undecodable(line, encoding)
            text = line.rstrip("\r\n")
            record = {fields.text: text} if problem is None else Unreadable(problem, visible(text))
            yield record, f"{name_of(path)}, line {number}"


def text_lines(path: Path | None, encoding: str) -> Iterator[str]:
    """The lines of a text file, or of standard input if ``path`` is None, with their line ends."""
    for number, line in enumerate(lines_as_they_are(path, encoding), start=1):
        problem = undecodable(line, encoding)
        if problem is not None:
            raise CorpusError(f"{name_of(path)}, line {number}: {problem}")
        yield line


def lines_as_they_are(path: Path | None, encoding: str) -> Iterator[str]:
    """The same; :func:`undecodable` tells of a line whether all of its bytes were text."""
    count, name = 0, name_of(path)
    try:
        with _open_text(path, encoding) as stream:
            for line in stream:
                count += 1
                yield line
    except UnicodeError as error:  # an encoding whose bytes cannot be escaped, such as UTF-16
        raise decoding_error(name, count, encoding, error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise broken_gzip(f"{name}, line {count + 1}", error) from None
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, name) from None


def undecodable(line: str, encoding: str) -> str | None:
    """What is wrong with a line that is not text in the encoding; None if nothing is."""
    if line.isascii():
        return None
    try:
        line.encode()
        return None
    except UnicodeEncodeError:
        pass
    try:
        line.encode(encoding.removesuffix("-sig"), _ESCAPED).decode(encoding.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        return _not_text(encoding, _named_byte(error))
    except UnicodeError as error:
        return _not_text(encoding, str(error))
    return _not_text(encoding, "half a surrogate pair")


def visible(text: str) -> str:
    """Text in which bytes that could not be decoded are spelled out.

    >>> visible("caf\\udce9")
    'caf\\\\xe9'
    """
    return text.encode("utf-8", _ESCAPED).decode("utf-8", "backslashreplace")


def name_of(path: Path | None) -> str:
    """A file in a message."""
    return "standard input" if path is None else str(path)


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed, by its name."""
    return path.name.lower().endswith(".gz")


def broken_gzip(where: str, error: Exception) -> CorpusError:
    return CorpusError(f"{where}: expected intact gzip data, got: {error}")


@contextmanager
def _open_text(path: Path | None, encoding: str) -> Iterator[TextIO]:
    """Open for reading with line ends as they are, which is what the csv module wants."""
    if path is None:
        with _standard_input() as given:
            wrapper = io.TextIOWrapper(given, encoding=encoding, errors=_ESCAPED, newline="")
            try:
                yield wrapper
            finally:
                wrapper.detach()  # or standard input would be closed with the wrapper
    elif is_gzip(path):
        with gzip.open(path, "rt", encoding=encoding, errors=_ESCAPED, newline="") as stream:
            yield stream
    else:
        with path.open(encoding=encoding, errors=_ESCAPED, newline="") as stream:
            yield stream


@contextmanager
def _standard_input() -> Iterator[Any]:
    """Standard input, decompressed if it begins like gzip."""
    given: Any = sys.stdin.buffer
    peekable = given if hasattr(given, "peek") else io.BufferedReader(given)
    begins = peekable.peek(len(_GZIP_MAGIC))[: len(_GZIP_MAGIC)]
    try:
        yield gzip.GzipFile(fileobj=peekable) if begins == _GZIP_MAGIC else peekable
    finally:
        if peekable is not given:
            peekable.detach()


def decoding_error(name: str, lines: int, encoding: str, error: UnicodeError) -> CorpusError:
    """Say which line and byte cannot be decoded; ``lines`` came before what failed."""
    line, problem = lines + 1, str(error)
    if isinstance(error, UnicodeDecodeError):
        before = error.object[: error.start].decode(error.encoding, "replace")
        line += len(re.findall(r"\r\n|\r|\n", before))
        problem = _named_byte(error)
    return CorpusError(f"{name}, line {line}: {_not_text(encoding, problem)}")


def _named_byte(error: UnicodeDecodeError) -> str:
    return f"byte 0x{error.object[error.start]:02x} ({error.reason})"


def _not_text(encoding: str, problem: str) -> str:
    return (
        f"expected {encoding.removesuffix('-sig')} text, got {problem}; "
        "if it has another encoding, name it with encoding= (--encoding on the command line)"
    )
