"""A folder of text files, each of which is a document."""

from collections.abc import Iterator
from pathlib import Path

from boltzhash.corpus.lines import decoding_error
from boltzhash.corpus.records import CorpusError, Document, check_characters

_BINARY_PROBE_BYTES = 8192


def read_folder(root: Path, encoding: str) -> Iterator[Document]:
    """The text files under ``root`` as documents, in the order of their ids: their relative paths.

    Subfolders and links are followed; hidden and binary files are left out.
    """
    is_empty = True
    for path in visible_files(root):
        text = _file_text(path, encoding)
        if text is not None:
            is_empty = False
            name = path.relative_to(root).as_posix()
            check_characters(name, f"{root}: file name {name!a}")
            yield Document(name, text)
    if is_empty:
        raise CorpusError(
            f"{root}: expected a folder with text files, got one without any "
            "(hidden and binary files do not count)"
        )


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


def _file_text(path: Path, encoding: str) -> str | None:
    """The text of a file, or ``None`` if it is binary or not a regular file."""
    if not path.is_file():
        if path.is_symlink() and not path.exists():
            raise CorpusError(f"{path}: expected a file, got a link that leads nowhere")
        return None  # opening a named pipe would wait for a writer
    with path.open("rb") as file:
        content = file.read(_BINARY_PROBE_BYTES)
        has_nul_in_text = b"\0" in "\n".encode(encoding)  # utf-16 and utf-32
        if b"\0" in content and not has_nul_in_text:
            return None
        content += file.read()
    try:
        return content.decode(encoding)
    except UnicodeError as error:
        raise decoding_error(str(path), 0, encoding, error) from None
