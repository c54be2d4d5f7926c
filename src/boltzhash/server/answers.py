"""From documents that were found to JSON: titles, snippets with marked words, codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection import Answer, Collection, Hit
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded
from boltzhash.hashers import Hasher
from boltzhash.search.snippet import best_line, without_title
from boltzhash.server.refusals import RefusedError
from boltzhash.text.tokens import tokenize

_TITLE_FIELDS = ("title", "name", "subject")
_TITLE_LENGTH = 120
_SNIPPET_LENGTH = 240
_SEARCHED = 8_000  # characters of a text in which a snippet is looked for
_TELLING_WORDS = 20

_WORDS = re.compile(r"\w+")


def search_text(
    collection: Collection,
    text: str,
    k: int,
    by: str | None,
    where: dict[str, Any] | None,
    order: str | None,
) -> dict[str, Any]:
    return _as_json(collection, collection.search(text, k, by=by, where=where, order=order), text)


def search_similar(
    collection: Collection, id_: Id, k: int, by: str | None, where: dict[str, Any] | None
) -> dict[str, Any]:
    """The documents most like a document, without itself."""
    text = stored_document(collection, id_).document.text
    words = " ".join(telling_words(collection.hasher, text))
    return _as_json(collection, collection.more_like(id_, k, by=by, where=where), words)


def search_code(
    collection: Collection, code: str, k: int, where: dict[str, Any] | None
) -> dict[str, Any]:
    query = parse_code(code, collection.standing().n_bits)
    return _as_json(collection, collection.search(query, k, where=where), "")


def stored_document(collection: Collection, id_: Id) -> Coded:
    found = collection.find([id_])
    if id_ not in found:
        raise RefusedError(404, f"there is no document with the id {id_!r}")
    return found[id_]


def stored_documents(collection: Collection, ids: Iterable[Id]) -> list[dict[str, Any]]:
    """Whole documents; ids that are not there are left out."""
    ids = list(ids)
    found = collection.find(ids)
    return [
        {
            "id": document.id,
            "title": title_of(document),
            "text": document.text,
            "metadata": document.metadata or {},
            "code": code.hex(),
        }
        for document, code, _ in (found[id_] for id_ in ids if id_ in found)
    ]


def parse_code(code: str, n_bits: int) -> Codes:
    """
    >>> parse_code("80ff", 16)
    array([128, 255], dtype=uint8)
    """
    if len(code) != n_bits // 4:
        raise RefusedError(
            422,
            f"code must have {n_bits // 4} hexadecimal digits, since the codes of this collection have "
            f"{n_bits} bits; got {len(code)}",
        )
    return np.frombuffer(bytes.fromhex(code), np.uint8)


def title_of(document: Document) -> str:
    """What its metadata calls it, else its name, else its first line.

    >>> title_of(Document(7, "One line.", {"title": " A  title "})), title_of(Document("a", ""))
    ('A title', 'a')
    >>> title_of(Document(7, "One line.\\nAnother."))
    'One line.'
    """
    candidates = [(document.metadata or {}).get(field) for field in _TITLE_FIELDS]
    if isinstance(document.id, str):
        candidates.append(document.id)
    candidates += [document.text.strip().partition("\n")[0], str(document.id)]
    for candidate in candidates:
        if isinstance(candidate, str) and (shown := " ".join(candidate[:1000].split())):
            return shown if len(shown) <= _TITLE_LENGTH else shown[: _TITLE_LENGTH - 1] + "…"
    return str(document.id)


def marked_snippet(text: str, sought: Set[str]) -> list[dict[str, Any]]:
    """A line of a text in pieces, with the words that are looked for marked.

    >>> marked_snippet("Open a zip archive.", {"zips", "zip"})
    [{'text': 'Open a '}, {'text': 'zip', 'marked': True}, {'text': ' archive.'}]
    """
    line = best_line(text[:_SEARCHED], sought, _SNIPPET_LENGTH)
    pieces: list[dict[str, Any]] = []
    end = 0
    for word in _WORDS.finditer(line):
        if not sought.isdisjoint(tokenize(word.group())):
            if word.start() > end:
                pieces.append({"text": line[end : word.start()]})
            pieces.append({"text": word.group(), "marked": True})
            end = word.end()
    if end < len(line):
        pieces.append({"text": line[end:]})
    return pieces


def telling_words(hasher: Hasher, text: str) -> list[str]:
    """The words of a text with the most weight, heaviest first."""
    assert hasher.tfidf_ is not None  # or it would not be in a collection
    row = hasher.tfidf([text])
    heaviest = np.argsort(-row.data, kind="stable")[:_TELLING_WORDS]
    return [hasher.tfidf_.words_[column] for column in row.indices[heaviest]]


def hits_as_json(
    collection: Collection, hits: Iterable[Hit], text: str = ""
) -> list[dict[str, Any]]:
    """Marks the words of the text that the model knows: the others did not matter."""
    sought = known_words(collection.hasher, text) or set(tokenize(text))
    return [_hit_as_json(hit, sought) for hit in hits]


def known_words(hasher: Hasher, text: str) -> set[str]:
    """The words of a text that the model knows."""
    assert hasher.tfidf_ is not None  # or it would not be in a collection
    return {hasher.tfidf_.words_[column] for column in hasher.tfidf([text]).indices}


def _hit_as_json(hit: Hit, sought: Set[str]) -> dict[str, Any]:
    assert hit.document is not None  # a collection has its documents
    title = title_of(hit.document)
    return {
        "id": hit.id,
        "distance": hit.distance,
        "score": None if hit.score is None else round(hit.score, 4),
        "words": None if hit.words is None else round(hit.words, 4),
        "title": title,
        "snippet": marked_snippet(without_title(hit.text, title), sought),
        "code": hit.code.hex(),
        "metadata": hit.document.metadata or {},
    }


def _as_json(collection: Collection, answer: Answer, text: str) -> dict[str, Any]:
    assert answer.code is not None  # collections say what they searched for
    query = {
        "code": answer.code.tobytes().hex(),
        "by": answer.by,
        "known_words": answer.known_words,
    }
    return {
        "generation": collection.standing().generation,
        "query": query,
        "hits": hits_as_json(collection, answer, text),
        **({} if answer.warning is None else {"warning": answer.warning}),
    }
