"""Reuters-21578 from its SGML archive, in the ModApte selection.

Documents with ``TOPICS="YES"`` and ``LEWISSPLIT`` TRAIN or TEST; the labels are the topics that have
at least one document in each (90 of them); documents left without a topic are dropped. The text is the
title and the body. Test is the official test; a tenth of the official training documents,
chosen by :func:`~boltzhash.datasets.labelled.split_by_hash`, is val.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from boltzhash.corpus import CorpusError
from boltzhash.datasets.archives import read_tar
from boltzhash.datasets.download import Source
from boltzhash.datasets.labelled import (
    VAL_SHARE,
    Corpus,
    LabelledDocument,
    make_corpus,
    split_by_hash,
)

SOURCE = Source(
    file="reuters21578.tar.gz",
    addresses=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/"
        "reuters21578.tar.gz",
        "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
    ),
)

N_FILES = 22  # reut2-000.sgm to reut2-021.sgm

_SGML_FILE = re.compile(r"(?:.*/)?reut2-(\d{3})\.sgm")
_DOCUMENT = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)


def read(path: Path) -> Corpus:
    """Read the archive ``reuters21578.tar.gz`` at ``path``."""
    files = dict(read_tar(path, _SGML_FILE))
    if len(files) != N_FILES:
        raise CorpusError(f"{path}: expected {N_FILES} files reut2-*.sgm, got {len(files)}")
    official: dict[str, list[LabelledDocument]] = {"TRAIN": [], "TEST": []}
    for name in sorted(files):
        # One byte of the collection is above 127; Latin-1 is what it was written in.
        for split, document in parse(files[name].decode("latin-1"), f"{path}, {name}"):
            official[split].append(document)
    train, test = mod_apte(official["TRAIN"], official["TEST"])
    train, val = split_by_hash(train, (1 - VAL_SHARE, VAL_SHARE))
    return make_corpus("reuters", {"train": train, "val": val, "test": test}, [path])


def parse(sgml: str, where: str) -> Iterator[tuple[str, LabelledDocument]]:
    """LEWISSPLIT (TRAIN or TEST) and document for each in ``sgml`` that the ModApte split considers.

    ``where`` says where the text is from, for error messages.
    """
    found = list(_DOCUMENT.finditer(sgml))
    opened = len(re.findall(r"<REUTERS\b", sgml))
    if opened != len(found) or not found:
        raise CorpusError(
            f"{where}: expected complete <REUTERS> documents, got {opened} beginnings, "
            f"{len(found)} of them complete"
        )
    for match in found:
        attributes = dict(_ATTRIBUTE.findall(match[1]))
        missing = {"TOPICS", "LEWISSPLIT", "NEWID"} - attributes.keys()
        if missing:
            raise CorpusError(
                f"{where}: expected a document with {' and '.join(sorted(missing))}, got "
                f"<REUTERS{match[1]}>"
            )
        if attributes["TOPICS"] == "YES" and attributes["LEWISSPLIT"] in ("TRAIN", "TEST"):
            topics = tuple(_TOPIC.findall(_element(match[2], "TOPICS")))
            document = LabelledDocument(f"reuters-{attributes['NEWID']}", _text(match[2]), topics)
            yield attributes["LEWISSPLIT"], document


def mod_apte(
    train: Sequence[LabelledDocument], test: Sequence[LabelledDocument]
) -> tuple[list[LabelledDocument], list[LabelledDocument]]:
    """Keep the topics that both ``train`` and ``test`` have, and the documents that have one of them.

    >>> a, b = LabelledDocument("1", "", ("oil", "tin")), LabelledDocument("2", "", ("oil",))
    >>> mod_apte([a], [b, LabelledDocument("3", "", ())])[0][0].labels
    ('oil',)
    """

    def topics(documents: Sequence[LabelledDocument]) -> set[str]:
        return {topic for document in documents for topic in document.labels}

    both = topics(train) & topics(test)

    def kept(documents: Sequence[LabelledDocument]) -> list[LabelledDocument]:
        narrowed = [d._replace(labels=tuple(t for t in d.labels if t in both)) for d in documents]
        return [document for document in narrowed if document.labels]

    return kept(train), kept(test)


def _text(sgml: str) -> str:
    """Title and body; all of TEXT if there is neither (``TYPE="UNPROC"``)."""
    inner = _element(sgml, "TEXT")
    parts = [_plain(_element(inner, "TITLE")), _plain(_element(inner, "BODY"))]
    return "\n".join(filter(None, parts)) or _plain(re.sub(r"</?[A-Z]+>", "", inner))


def _element(sgml: str, name: str) -> str:
    """The contents of an element, "" if there is none."""
    found = re.search(f"<{name}\\b[^>]*>(.*?)</{name}>", sgml, re.DOTALL)
    return found[1] if found else ""


def _plain(sgml: str) -> str:
    r"""Entities as characters; control characters are dropped, an unknown entity stays as it is.

    >>> _plain("&#2;\nU.S. &lt;AT&amp;T> &nosuch; up\n Reuter\n&#3;")
    'U.S. <AT&T> &nosuch; up\n Reuter'
    """
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", html.unescape(sgml)).strip()
