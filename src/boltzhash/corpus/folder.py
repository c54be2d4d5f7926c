"""Folders: of files of records, or of text files, each of which is a document."""

import logging
from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.formats import is_file_of_records
from boltzhash.corpus.lines import decoding_error
from boltzhash.corpus.records import CorpusError, Records, Unreadable, check_characters

_BINARY_PROBE_BYTES = 8192

logger = logging.getLogger("boltzhash")


def files_of_records(root: Path, encoding: str) -> list[Path] | None:
    """The files of records under a folder, in order; None if it is one of texts.

    If it has both, nobody can say which are meant: that is an error.
    """
    records, other = [], None
    for path in visible_files(root):
        if is_file_of_records(path):
            if not leads_nowhere(path):
                records.append(path)
        elif other is None and _has_text(path, encoding):
            other = path
    if records and other is not None:
        raise CorpusError(
            f"{root}: expected files of records or texts, got both: {len(records)} files of records, "
            f"such as {records[0].name!r}, and others, such as {other.name!r}. Name the files that are "
            f"meant, such as {str(root / ('*' + records[0].suffix))!r}, or make every file a document "
            "with format='files' (--format files on the command line)"
        )
    return records or None


def all_files(root: Path) -> list[Path]:
    """The files under a folder that are not hidden, in order, whatever they are."""
    return [path for path in visible_files(root) if not leads_nowhere(path)]


def read_folder(root: Path, encoding: str) -> Records:
    """The text files under ``root`` as records in the order of their ids: their relative paths.

    Subfolders and links are followed; hidden and binary files are left out.
    """
    is_empty = True
    for path in visible_files(root):
        name = path.relative_to(root).as_posix()
        for record, where in read_file(path, name, encoding):
            is_empty = False
            check_characters(name, f"{root}: file name {name!a}")
            yield record, where
    if is_empty:
        raise CorpusError(
            f"{root}: expected a folder with text files, got one without any "
            "(hidden and binary files do not count)"
        )


def read_file(path: Path, name: str, encoding: str) -> Records:
    """A text file as one record, whose id is ``name``; nothing if it is binary or no regular file."""
    try:
        text = _file_text(path, encoding)
    except UnicodeError as error:
        problem = str(decoding_error("", 0, encoding, error)).removeprefix(", ")
        where, _, problem = problem.partition(": ")
        yield Unreadable(problem, name), f"{path}, {where}"
        return
    if text is not None:
        yield {"id": name, "text": text}, str(path)


def visible_files(root: Path) -> Iterator[Path]:
    """The files under a folder that are not hidden, in the order of their relative paths."""
    outermost: frozenset[tuple[int, int]] = frozenset()
    pending = [(root, True, outermost)]
    while pending:
        path, is_folder, inside = pending.pop()
        if not is_folder:
            yield path
            continue
        status = path.stat()
        folder = (status.st_dev, status.st_ino)
        if folder in inside:  # a link back to a folder that contains it would go round forever
            continue
        children = [child for child in path.iterdir() if not child.name.startswith(".")]
        entries = [(child, child.is_dir(), inside | {folder}) for child in children]
        # The slash of the whole path takes part in the order: a-b, a.txt, a/b, ab.
        pending += sorted(entries, key=lambda entry: entry[0].name + "/" * entry[1], reverse=True)


def leads_nowhere(path: Path) -> bool:
    """Whether a path is a link to nothing, which is told."""
    if not path.is_symlink() or path.exists():
        return False
    logger.warning("%s is left out: a link that leads nowhere", path)
    return True


def _has_text(path: Path, encoding: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begins = file.read(_BINARY_PROBE_BYTES)
    return bool(begins) and not _is_binary(begins, encoding)


def _is_binary(begins: bytes, encoding: str) -> bool:
    has_nul_in_text = b"\0" in "\n".encode(encoding)  # utf-16 and utf-32
    return b"\0" in begins and not has_nul_in_text


def _file_text(path: Path, encoding: str) -> str | None:
    """The text of a file, or ``None`` if it is binary or not a regular file."""
    if not path.is_file():
        leads_nowhere(path)
        return None  # opening a named pipe would wait for a writer
    with path.open("rb") as file:
        content = file.read(_BINARY_PROBE_BYTES)
        if _is_binary(content, encoding):
            return None
        content += file.read()
    return content.decode(encoding)
