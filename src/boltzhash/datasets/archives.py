"""Reading archives and compressed files that came from elsewhere.

Nothing is unpacked to disk, so a name in an archive leads nowhere; sizes are limited, so that a small
file cannot fill the memory; a damaged file is an error that names it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from boltzhash.corpus import CorpusError

MAX_MEMBER = 2**26  # the largest file of the corpora has 1.5 MB
MAX_TOTAL = 2**31
MAX_LINE = 2**26

_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError)
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def read_tar(path: Path, wanted: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in the archive ``path`` whose whole name matches ``wanted``."""
    total = 0
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                total += member.size
                if total > MAX_TOTAL:
                    raise CorpusError(
                        f"{path}: expected at most {MAX_TOTAL} bytes in all, got more"
                    )
                if not wanted.fullmatch(member.name) or member.isdir():
                    continue
                yield member.name, _contents(archive, member, path)
    except _DAMAGE as error:
        raise CorpusError(f"{path}: expected an intact tar archive, got: {error}") from None


def _contents(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> bytes:
    file = archive.extractfile(member) if member.isreg() else None
    if file is None or ".." in member.name.split("/"):
        raise CorpusError(f"{path}: expected plain files, got a link or an odd name: {member.name}")
    if member.size > MAX_MEMBER:
        raise CorpusError(
            f"{path}: {member.name} has {member.size} bytes; expected at most {MAX_MEMBER}"
        )
    contents = file.read()
    if len(contents) != member.size:
        raise CorpusError(
            f"{path}: expected {member.size} bytes of {member.name}, got {len(contents)}"
        )
    return contents


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbers (from 1) and lines of ``path``, a UTF-8 file, plain or ``.gz``, ``.xz`` or ``.bz2``."""
    number = total = 0
    try:
        with _open(path) as stream:
            while line := stream.readline(MAX_LINE):
                number += 1
                total += len(line)
                if len(line) == MAX_LINE or total > MAX_TOTAL:
                    raise CorpusError(
                        f"{path}, line {number}: expected lines below {MAX_LINE} bytes and at most "
                        f"{MAX_TOTAL} in all, got more"
                    )
                yield number, line.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise CorpusError(
            f"{path}, line {number}: expected UTF-8 text, got byte 0x{byte:02x} ({error.reason})"
        ) from None
    except FileNotFoundError:
        raise
    except _DAMAGE as error:
        raise CorpusError(
            f"{path}, line {number + 1}: expected intact data, got: {error}"
        ) from None


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], _OPENERS.get(path.suffix, open)(path, "rb"))
