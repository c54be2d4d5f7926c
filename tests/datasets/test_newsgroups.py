"""20 Newsgroups: small archives in the real format, whole and damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets.newsgroups import N_GROUPS, post_text, read

POST = b"""\
From: mathew@mantis.co.uk
Subject: Re: Alt.Atheism FAQ
Organization: M\xfcller Ltd
Lines: 2

> quoted

The b\xf6dy of %d.
--
signature
"""


Archive = Callable[..., Path]


@pytest.fixture
def archive(write_tar: Callable[..., Path]) -> Archive:
    def write(n_groups: int = N_GROUPS, prefix: str = "") -> Path:
        return write_tar(_files(n_groups, prefix))

    return write


def _files(n_groups: int, prefix: str) -> dict[str, bytes]:
    return {
        f"{prefix}20news-bydate-{part}/group.g-{chr(97 + g)}/{number}": POST % number
        for part, numbers in (("test", range(100, 102)), ("train", range(10)))
        for g in range(n_groups)
        for number in numbers
    }


@pytest.mark.parametrize("prefix", ["", "./"])
def test_parts_groups_and_texts(archive: Archive, prefix: str) -> None:
    corpus = read(archive(prefix=prefix))
    assert corpus.label_names == tuple(f"group.g-{chr(97 + g)}" for g in range(20))
    assert (len(corpus.train), len(corpus.val), len(corpus.test)) == (180, 20, 40)
    assert corpus.test.ids[:3] == ["group.g-a/100", "group.g-a/101", "group.g-b/100"]
    assert corpus.test.texts[0] == (
        "Alt.Atheism FAQ\n\n> quoted\n\nThe bödy of 100.\n--\nsignature"
    )
    assert (corpus.test.labels.argmax(axis=1)[:4] == [0, 0, 1, 1]).all()
    assert (corpus.train.labels.sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("post", "text"),
    [
        ("Subject: A\n\nbody\n\nmore", "A\n\nbody\n\nmore"),
        ("From: x\nSUBJECT: RE: re:A b\nLines: 1\n\n", "A b"),
        ("From: Subject: x\n\nSubject: in the body", "Subject: in the body"),
        ("Subject: long\n  folded\n\tline\nFrom: x\n\nb", "long folded line\n\nb"),
        ("Subject: A\r\nFrom: x\r\n\r\nb\r\n", "A\n\nb"),
        ("Subject:\nFrom: x\n\nb", "b"),
        ("", ""),
    ],
)
def test_text(post: str, text: str) -> None:
    assert post_text(post) == text


def test_a_missing_group_is_named(archive: Archive) -> None:
    with pytest.raises(CorpusError, match="expected 20 newsgroups in 20news-bydate-train, got 19"):
        read(archive(n_groups=19))
