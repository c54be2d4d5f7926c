"""What is named as a corpus: files, folders, patterns of them, standard input."""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from boltzhash.corpus.folder import leads_nowhere
from boltzhash.corpus.records import CorpusError

STANDARD_INPUT = "-"


def places_of(source: object) -> Iterator[str | Path]:
    """The files and folders that are meant; patterns are filled in."""
    places = [source] if isinstance(source, str | Path) else source
    if isinstance(places, bytes) or not isinstance(places, Iterable):
        raise TypeError(
            f"source must be a path, a list of paths or a data frame, got a {type(source).__name__}; "
            "documents that are already in memory need no reading: pass their texts to fit, or dicts "
            "with 'id' and 'text' to Collection.add"
        )
    seen_standard_input = False
    for place in places:
        if str(place) == STANDARD_INPUT and seen_standard_input:
            raise CorpusError("standard input: expected - once, got it twice")
        seen_standard_input |= str(place) == STANDARD_INPUT
        yield from _filled_in(place)


def _filled_in(place: str | Path) -> list[str | Path]:
    if str(place) == STANDARD_INPUT or (place != "" and Path(place).exists()):
        return [place]
    if place == "":  # Path("") would be the current folder
        raise CorpusError("'': expected a file or a folder, got no such path")
    if glob.has_magic(str(place)):
        found = sorted(glob.glob(str(place), recursive=True))
        if found:
            return [name for name in found if not leads_nowhere(Path(name))]
        raise CorpusError(f"{place}: expected a pattern of files, got one that matches none")
    raise CorpusError(f"{place}: expected a file or a folder, got no such path")
