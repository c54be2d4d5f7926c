"""Reuters-21578: small archives in the real format, whole and damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets.reuters import N_FILES, parse, read

DOCUMENT = """\
<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="5" NEWID="{id}">
<DATE>26-FEB-1987 15:01:01.79</DATE>
<TOPICS>{topics}</TOPICS>
<PLACES><D>el-salvador</D><D>usa</D></PLACES>
<PEOPLE></PEOPLE>
<ORGS></ORGS>
<EXCHANGES></EXCHANGES>
<COMPANIES></COMPANIES>
<UNKNOWN>
&#5;&#5;&#5;C T
&#22;&#22;&#1;f0704&#31;reute
u f BC-BAHIA-COCOA-REVIEW   02-26 0105</UNKNOWN>
{text}
</REUTERS>
"""
TEXT = """\
<TEXT>&#2;
<TITLE>{title}</TITLE>
<DATELINE>    SALVADOR, Feb 26 - </DATELINE><BODY>{body}
 Reuter
&#3;</BODY></TEXT>"""


def document(
    id: int, split: str, *topics: str, attribute: str = "YES", text: str | None = None
) -> str:
    return DOCUMENT.format(
        id=id,
        split=split,
        has_topics=attribute,
        topics="".join(f"<D>{topic}</D>" for topic in topics),
        text=text or TEXT.format(title=f"TITLE {id}", body=f"Body {id}."),
    )


Archive = Callable[..., Path]


@pytest.fixture
def archive(write_tar: Callable[..., Path]) -> Archive:
    """Writes documents, spread over the collection's 22 files; each has one that is not used too."""

    def write(documents: list[str], n_files: int = N_FILES) -> Path:
        return write_tar(_files(documents, n_files))

    return write


def _files(documents: list[str], n_files: int) -> dict[str, bytes]:
    filler = document(99999, "NOT-USED", "cocoa")
    files = {
        f"reut2-{number:03}.sgm": (
            '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(documents[number::n_files]) + filler
        ).encode("latin-1")
        for number in range(n_files)
    }
    return {"README.txt": b"about", **files, "lewis.dtd": b"<!ELEMENT"}


def test_mod_apte(archive: Archive) -> None:
    train = [document(i, "TRAIN", "cocoa") for i in range(1, 21)]
    documents = [
        *train,
        document(30, "TRAIN", "grain", "cocoa", "rare-in-train"),
        document(31, "TRAIN", "rare-in-train"),
        document(32, "TRAIN"),
        document(33, "TRAIN", "cocoa", attribute="NO"),
        document(34, "NOT-USED", "cocoa"),
        document(35, "TRAIN", "cocoa", attribute="BYPASS"),
        document(40, "TEST", "grain", "rare-in-test"),
        document(41, "TEST", "cocoa"),
        document(42, "TEST", "rare-in-test"),
    ]
    corpus = read(archive(documents))
    assert corpus.label_names == ("cocoa", "grain")
    assert sorted(corpus.test.ids) == ["reuters-40", "reuters-41"]
    kept = sorted(int(id.split("-")[1]) for id in corpus.train.ids + corpus.val.ids)
    assert kept == [*range(1, 21), 30]
    assert (len(corpus.train), len(corpus.val)) == (19, 2)
    both = {*zip(corpus.train.ids, map(tuple, corpus.train.labels.tolist()), strict=True)}
    both |= {*zip(corpus.val.ids, map(tuple, corpus.val.labels.tolist()), strict=True)}
    assert ("reuters-30", (True, True)) in both
    assert ("reuters-1", (True, False)) in both


def only_text(text: str) -> str:
    (found,) = parse(document(1, "TRAIN", "acq", text=text), "here")
    return found[1].text


def test_text_is_title_and_body() -> None:
    text = TEXT.format(title="SMITH &lt;SMI> UP", body="Showers\n  at R&amp;D, &lt;b>5&lt;/b>.")
    assert only_text(text) == "SMITH <SMI> UP\nShowers\n  at R&D, <b>5</b>.\n Reuter"


def test_text_without_body_or_tags() -> None:
    brief = '<TEXT TYPE="BRIEF">&#2;\n******<TITLE>DELTA UP</TITLE>\n&#3;</TEXT>'
    assert only_text(brief) == "DELTA UP"
    raw = '<TEXT TYPE="UNPROC">&#2;\nMONEY MARKET\n  5 pct &lt;up>\n&#3;</TEXT>'
    assert only_text(raw) == "MONEY MARKET\n  5 pct <up>"


def test_bad_entities_stay_as_they_are() -> None:
    text = TEXT.format(title="A", body="&nosuch; &#xZZ; &#99999999999; & AT&T &#0;\x07.")
    assert only_text(text) == "A\n&nosuch; &#xZZ; \ufffd & AT&T \ufffd.\n Reuter"


def test_bytes_above_127(archive: Archive) -> None:
    odd = document(1, "TRAIN", "acq", text=TEXT.format(title="A", body="growth.\xfcside"))
    documents = [
        odd,
        document(2, "TEST", "acq"),
        *(document(i, "TRAIN", "acq") for i in range(3, 20)),
    ]
    corpus = read(archive(documents))
    texts = corpus.train.texts + corpus.val.texts
    assert sum("growth.üside" in text for text in texts) == 1


def test_a_missing_file_is_named(archive: Archive) -> None:
    path = archive([document(1, "TRAIN", "acq")], n_files=21)
    with pytest.raises(CorpusError, match=r"x\.tar\.gz: expected 22 files reut2-\*\.sgm, got 21"):
        read(path)


def test_a_cut_file_in_the_archive_is_named() -> None:
    whole = document(1, "TRAIN", "acq") + document(2, "TRAIN", "acq")
    with pytest.raises(
        CorpusError, match=r"here: expected .* got 2 beginnings, 1 of them complete"
    ):
        list(parse(whole[:-30], "here"))
    with pytest.raises(CorpusError, match="got 0 beginnings, 0 of them complete"):
        list(parse("", "here"))


def test_a_lost_attribute_is_named() -> None:
    lost = document(1, "TRAIN", "acq").replace('LEWISSPLIT="TRAIN" ', "")
    with pytest.raises(
        CorpusError, match="expected a document with LEWISSPLIT, got <REUTERS TOPICS="
    ):
        list(parse(lost, "here"))
