"""A labelled corpus in three parts: what every loader makes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.corpus import CorpusError

# For all splits made here; the year and month of the paper's conference are as good as any number.
SEED = 20201115

# What is taken from the official training documents if a corpus has no validation part.
VAL_SHARE = 0.1

PARTS = ("train", "val", "test")


class LabelledDocument(NamedTuple):
    """A document with the names of its labels."""

    id: str
    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """Documents of one part.

    ``labels`` is a bool array (n_documents, n_labels); its row i belongs to ``ids[i]`` and ``texts[i]``.
    """

    ids: list[str]
    texts: list[str]
    labels: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Corpus:
    """Texts, labels and splits of a benchmark corpus.

    ``labels`` of a part is a bool array (n_documents, n_labels), the form that
    :mod:`boltzhash.metrics` takes; ``label_names`` names its columns, in alphabetical order and the
    same for all parts. ``files`` is what the corpus was read from.
    """

    name: str
    label_names: tuple[str, ...]
    train: Part
    val: Part
    test: Part
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        sizes = " / ".join(str(len(part)) for part in (self.train, self.val, self.test))
        return f"<Corpus {self.name}: {sizes} documents, {len(self.label_names)} labels>"


def make_corpus(
    name: str,
    parts: Mapping[str, Sequence[LabelledDocument]],
    files: Sequence[Path],
) -> Corpus:
    """Documents in parts → a corpus, its ids checked and its labels as columns.

    Parameters
    ----------
    name
        What the corpus is called.
    parts
        The documents of ``train``, ``val`` and ``test``, at least one of each.
    files
        What they were read from.

    >>> documents = {part: [LabelledDocument(part, "text", (part[0],))] for part in PARTS}
    >>> corpus = make_corpus("small", documents, [])
    >>> corpus, corpus.label_names, corpus.test.labels
    (<Corpus small: 1 / 1 / 1 documents, 2 labels>, ('t', 'v'), array([[ True, False]]))
    """
    source = ", ".join(map(str, files)) or name
    seen: set[str] = set()
    for part in PARTS:
        if not parts.get(part):
            raise CorpusError(f"{source}: expected documents in the part {part!r}, got none")
        for document in parts[part]:
            if document.id in seen:
                raise CorpusError(f"{source}: expected distinct ids, got {document.id!r} twice")
            seen.add(document.id)
    names = sorted({label for part in PARTS for d in parts[part] for label in d.labels})
    train, val, test = (_part(parts[part], names) for part in PARTS)
    return Corpus(name, tuple(names), train, val, test, tuple(files))


def _part(documents: Sequence[LabelledDocument], names: Sequence[str]) -> Part:
    columns = {name: column for column, name in enumerate(names)}
    labels = np.zeros((len(documents), len(names)), dtype=np.bool_)
    for row, document in enumerate(documents):
        labels[row, [columns[label] for label in document.labels]] = True
    return Part([d.id for d in documents], [d.text for d in documents], labels)


def split_by_hash(
    documents: Sequence[LabelledDocument], shares: Sequence[float], seed: int = SEED
) -> list[list[LabelledDocument]]:
    """Divide documents at random into parts, each in the order they came in.

    Parameters
    ----------
    documents
        What to divide.
    shares
        The share of each part; they add up to 1.
    seed
        Chance is the SHA-256 of seed and id: the same documents are divided the same way whatever
        their order, on every machine and with every version of every library.

    >>> documents = [LabelledDocument(str(number), "", ()) for number in range(10)]
    >>> [len(part) for part in split_by_hash(documents, (0.8, 0.1, 0.1))]
    [8, 1, 1]
    """
    by_chance = sorted(
        range(len(documents)),
        key=lambda row: hashlib.sha256(f"{seed} {documents[row].id}".encode()).digest(),
    )
    ends = [round(end * len(documents)) for end in np.cumsum(shares)]
    rows = [sorted(by_chance[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return [[documents[row] for row in part] for part in rows]
