"""From documents that were found to JSON: titles, snippets, codes, and what scores are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Codes
from boltzhash.collection import Answer, Collection, Facet, Hit
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded
from boltzhash.hashers import Hasher
from boltzhash.search.ranking import sureness
from boltzhash.search.relevance import agreement
from boltzhash.search.snippet import without_title
from boltzhash.server.marks import Sought, marked_snippet
from boltzhash.server.messages import SearchRequest
from boltzhash.server.reasons import reasons
from boltzhash.server.refusals import RefusedError

Floats = NDArray[np.float64]

_SAFE = 2**53 - 1  # the largest integer that JavaScript tells from the next

_TITLE_FIELDS = ("title", "name", "subject")
_TITLE_LENGTH = 120
_TELLING_WORDS = 20


def search_text(collection: Collection, asked: SearchRequest) -> dict[str, Any]:
    answer = collection.search(
        asked.text,
        asked.offset + asked.k,
        features=asked.features,
        by=asked.by,
        where=asked.where,
        order=asked.order,
        facets=asked.facets,
    )
    sought = None if asked.text is None else Sought.by_query(collection.words, asked.text)
    return answer_as_json(collection, answer, sought, asked.offset, with_reasons=asked.reasons)


def search_similar(
    collection: Collection,
    id_: Id,
    k: int,
    by: str | None,
    where: dict[str, Any] | None,
    offset: int = 0,
    *,
    with_reasons: bool = False,
) -> dict[str, Any]:
    """The documents most like a document, without itself."""
    document = stored_document(collection, id_).document
    answer = collection.more_like(id_, offset + k, by=by, where=where)
    sought = sought_like(collection, document)
    return answer_as_json(collection, answer, sought, offset, with_reasons=with_reasons)


def search_code(
    collection: Collection,
    code: str,
    k: int,
    where: dict[str, Any] | None,
    offset: int = 0,
    facets: Sequence[str] = (),
) -> dict[str, Any]:
    query = parse_code(code, collection.standing().n_bits)
    answer = collection.search(query, offset + k, where=where, facets=facets)
    return answer_as_json(collection, answer, offset=offset)


def stored_document(collection: Collection, id_: Id) -> Coded:
    found = collection.find([id_])
    if id_ not in found:
        raise RefusedError(
            404, f"there is no document with the id {id_!r}", code="no_such_document"
        )
    return found[id_]


def stored_documents(collection: Collection, ids: Iterable[Id]) -> list[dict[str, Any]]:
    """Whole documents; ids that are not there are left out."""
    ids = list(ids)
    found = collection.find(ids)
    return [whole_document(found[id_]) for id_ in ids if id_ in found]


def whole_document(coded: Coded) -> dict[str, Any]:
    document = coded.document
    return {
        "id": shown_id(document.id),
        "title": title_of(document),
        "text": document.text,
        "metadata": document.metadata or {},
        "code": coded.code.hex(),
    }


def shown_id(id_: Id) -> Any:
    """An id that survives JavaScript, which reads numbers as doubles.

    >>> shown_id(7), shown_id("7"), shown_id(2**53 + 1)
    (7, '7', {'int64': '9007199254740993'})
    """
    if isinstance(id_, int) and abs(id_) > _SAFE:
        return {"int64": str(id_)}
    return id_


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


def telling_words(hasher: Hasher, text: str) -> list[str]:
    """The words of a text with the most weight, heaviest first."""
    assert hasher.tfidf_ is not None  # or it would not be in a collection
    row = hasher.tfidf([text])
    heaviest = np.argsort(-row.data, kind="stable")[:_TELLING_WORDS]
    return [hasher.tfidf_.words_[column] for column in row.indices[heaviest]]


def hits_as_json(
    collection: Collection,
    hits: Sequence[Hit],
    sought: Sought | None = None,
    margins: Floats | None = None,
) -> list[dict[str, Any]]:
    """With the words that were sought marked, and with the parts of their scores."""
    marks = sought or Sought(frozenset(), collection.words)
    parts = _parts(hits, margins, collection.hasher.weight_beside_words)
    return [_hit_as_json(hit, marks, own) for hit, own in zip(hits, parts, strict=True)]


def sought_like(collection: Collection, document: Document) -> Sought:
    """The words of a document to mark in others: all would be too many, if the model knows some."""
    telling = telling_words(collection.hasher, document.text)
    if not telling:
        return Sought.by_document(collection.words, document)
    return Sought(frozenset(collection.words.of(" ".join(telling))), collection.words)


def _hit_as_json(hit: Hit, sought: Sought, parts: dict[str, float] | None) -> dict[str, Any]:
    assert hit.document is not None  # a collection has its documents
    title = title_of(hit.document)
    return {
        "id": shown_id(hit.id),
        "score": _rounded(hit.score),
        "parts": parts,
        "words": _rounded(hit.words),
        "distance": hit.distance,
        "title": title,
        "snippet": marked_snippet(without_title(hit.passage_text, title), sought),
        **({} if hit.passage is None else {"passage": hit.passage._asdict()}),
        "code": hit.code.hex(),
        "metadata": hit.document.metadata or {},
    }


def _parts(
    hits: Sequence[Hit], margins: Floats | None, weight: float
) -> list[dict[str, float] | None]:
    """What words and code gave to each score; see :mod:`boltzhash.search.relevance`."""
    by_code = np.zeros(len(hits))
    if margins is not None and hits:
        codes = np.frombuffer(b"".join(hit.code for hit in hits), np.uint8)
        by_code = weight * agreement(margins, codes.reshape(len(hits), -1))
    return [
        None
        if hit.score is None
        # "or": never a negative zero
        else {"words": round(hit.score - own, 4) or 0.0, "code": round(own, 4)}
        for hit, own in zip(hits, by_code.tolist(), strict=True)
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _add_reasons(
    collection: Collection,
    answer: Answer,
    sought: Sought | None,
    offset: int,
    hits: list[dict[str, Any]],
) -> None:
    """Why each is a hit. Nothing is near in topic to words that the model does not know, and by words
    alone being near would not be why.
    """
    documents = [
        hit.document._replace(text=hit.passage_text)
        for hit in answer.hits[offset:]
        if hit.document is not None
    ]
    margins = None
    if answer.by != "words" and answer.known_words != 0 and answer.code is not None:
        margins = sureness(answer.code, answer.margins)
    asked_for = sought or Sought(frozenset(), collection.words)
    found = reasons(collection.hasher, documents, asked_for, margins)
    for hit, reason in zip(hits, found, strict=True):
        hit["reasons"] = reason


def answer_as_json(
    collection: Collection,
    answer: Answer,
    sought: Sought | None = None,
    offset: int = 0,
    *,
    with_reasons: bool = False,
) -> dict[str, Any]:
    query = {
        "code": None if answer.code is None else answer.code.tobytes().hex(),
        "by": answer.by,
        "known_words": answer.known_words,
    }
    margins = None
    if answer.by == "both" and answer.known_words != 0 and answer.code is not None:
        margins = sureness(answer.code, answer.margins)
    hits = hits_as_json(collection, answer.hits[offset:], sought, margins)
    if with_reasons:
        _add_reasons(collection, answer, sought, offset, hits)
    return {
        "generation": collection.standing().generation,
        "query": query,
        **({} if answer.total is None else {"total": answer.total}),
        "hits": hits,
        **({} if not answer.facets else {"facets": _facets_as_json(answer.facets)}),
        **({} if answer.warning is None else {"warning": answer.warning}),
    }


def _facets_as_json(facets: Mapping[str, Facet]) -> dict[str, Any]:
    return {
        field: {
            "values": [{"value": value, "count": n} for value, n in facet.values],
            "least": facet.least,
            "most": facet.most,
        }
        for field, facet in facets.items()
    }
