"""20 Newsgroups from the by-date archive.

The text is the subject (without "Re:") and the body. Other header lines are dropped: they name servers
and senders, which give a newsgroup away without saying what a post is about; quotations and
signatures stay. Test is the official (later) part; a tenth of the official training posts, chosen by
:func:`~boltzhash.datasets.labelled.split_by_hash`, is val.
"""

from __future__ import annotations

import re
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
    file="20news-bydate.tar.gz",
    addresses=(
        "https://ndownloader.figshare.com/files/5975967",
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
    ),
    sha256="8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
)

N_GROUPS = 20

_POST = re.compile(r"(?:\./)?20news-bydate-(train|test)/([a-z.-]+)/(\d+)")


def read(path: Path) -> Corpus:
    """Read the archive ``20news-bydate.tar.gz`` at ``path``."""
    official: dict[str, list[LabelledDocument]] = {"train": [], "test": []}
    for name, contents in read_tar(path, _POST):
        match = _POST.fullmatch(name)
        assert match
        # Posts of 1993 have no declared encoding; Latin-1 has a character for every byte.
        text = post_text(contents.decode("latin-1"))
        official[match[1]].append(LabelledDocument(f"{match[2]}/{match[3]}", text, (match[2],)))
    for part, documents in official.items():
        groups = {document.labels for document in documents}
        if len(groups) != N_GROUPS:
            raise CorpusError(
                f"{path}: expected {N_GROUPS} newsgroups in 20news-bydate-{part}, got {len(groups)}"
            )
        documents.sort(key=lambda document: document.id)
    train, val = split_by_hash(official["train"], (1 - VAL_SHARE, VAL_SHARE))
    return make_corpus("newsgroups", {"train": train, "val": val, "test": official["test"]}, [path])


def post_text(post: str) -> str:
    r"""Subject and body of ``post``, which comes with its header lines.

    >>> post_text("From: someone@some.where\nSubject: Re: Re: Saturn's\n moons\nLines: 1\n\nTitan.\n")
    "Saturn's moons\n\nTitan."
    """
    header, _, body = post.replace("\r\n", "\n").partition("\n\n")
    unfolded = re.sub(r"\n[ \t]+", " ", header)
    subject = re.search(
        r"^subject:[ \t]*(?:re:[ \t]*)*(.*)$", unfolded, re.IGNORECASE | re.MULTILINE
    )
    return "\n\n".join(filter(None, [subject[1].strip() if subject else "", body.strip()]))
