"""The documents of a collection as a file of JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus import Document


def write_jsonl(documents: Iterator[Document], target: Path) -> int:
    """Write JSONL, the whole file or nothing; returns how many documents."""
    if target.is_dir():
        raise IsADirectoryError(f"expected a JSONL file to write, got {target}, which is a folder")
    target.absolute().parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        n = 0
        with unfinished.open("w", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps(document._asdict(), ensure_ascii=False) + "\n")
                n += 1
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        if error.errno is None or error.filename not in (None, str(unfinished)):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return n
