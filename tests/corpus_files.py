"""Files for the tests of reading corpora, and what is said of those that cannot be read."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from boltzhash.corpus import CorpusError, read_corpus

ENCODING_HINT = (
    "; if it has another encoding, name it with encoding= (--encoding on the command line)"
)

NO_TEXT = "; name another with text_field= (--text-field on the command line)"
NO_ID = "; name another with id_field= (--id-field on the command line)"
AS_STRING = "id_as_string=True (--id-as-string on the command line)"


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def feed(monkeypatch: pytest.MonkeyPatch, content: bytes) -> io.TextIOWrapper:
    """Put the content in the place of standard input."""
    stdin = io.TextIOWrapper(io.BytesIO(content), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    return stdin


def refusal(source: Path, **options: Any) -> str:
    """The error of reading a whole corpus."""
    with pytest.raises(CorpusError) as raised:
        list(read_corpus(source, **options))
    return str(raised.value)


def message(path: Path, **options: Any) -> str:
    """The same without the folder that the corpus is in."""
    return refusal(path, **options).replace(f"{path.parent}{os.sep}", "")
