"""Documents that were found, as answers show them: titles, snippets, codes and the parts of scores."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection import Answer, Hit, Snapshot
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import Coded
from boltzhash.hashers import Hasher
from boltzhash.search.ranking import sureness
from boltzhash.search.relevance import agreement
from boltzhash.search.snippet import without_title
from boltzhash.server import answers
from boltzhash.server.marks import Sought, marked_snippet
from boltzhash.server.reasons import reasons
from boltzhash.server.refusals import RefusedError
from boltzhash.server.requests import NearestRequest, SearchRequest, SimilarRequest

_SAFE = 2**53 - 1  # the largest integer that JavaScript tells from the next

_TITLE_FIELDS = ("title", "name", "subject")
_TITLE_LENGTH = 120
_TELLING_WORDS = 20


def search_text(snapshot: Snapshot, request: SearchRequest) -> answers.FoundIn:
    answer = snapshot.search(
        request.text,
        request.offset + request.k,
        features=request.features,
        by=request.by,
        where=request.where,
        order=request.order,
        facets=request.facets,
    )
    sought = None if request.text is None else Sought.by_query(snapshot.words, request.text)
    return found(snapshot, answer, sought, request.offset, with_reasons=request.reasons)


def search_similar(snapshot: Snapshot, request: SimilarRequest) -> answers.FoundIn:
    """The documents most like a document, without itself."""
    document = stored_document(snapshot, request.id).document
    answer = snapshot.more_like(
        request.id, request.offset + request.k, by=request.by, where=request.where
    )
    sought = sought_like(snapshot, document)
    return found(snapshot, answer, sought, request.offset, with_reasons=request.reasons)


def search_code(snapshot: Snapshot, request: NearestRequest) -> answers.FoundIn:
    code = parse_code(request.code, snapshot.state.n_bits)
    k = request.offset + request.k
    answer = snapshot.search(code, k, where=request.where, facets=request.facets)
    return found(snapshot, answer, offset=request.offset)


def found(
    snapshot: Snapshot,
    answer: Answer,
    sought: Sought | None = None,
    offset: int = 0,
    *,
    with_reasons: bool = False,
) -> answers.FoundIn:
    """The hits from ``offset`` on, with the words that were sought marked."""
    hits, hasher = answer.hits[offset:], snapshot.hasher
    sought = sought or Sought(frozenset(), snapshot.words)
    margins = None
    if answer.by != "words" and answer.known_words != 0 and answer.code is not None:
        margins = sureness(answer.code, answer.margins)
    by_code = np.zeros(len(hits))
    if answer.by == "both" and margins is not None and hits:
        codes = np.frombuffer(b"".join(hit.code for hit in hits), np.uint8)
        by_code = hasher.weight_beside_words * agreement(margins, codes.reshape(len(hits), -1))
    shown = [_hit(hit, sought, part) for hit, part in zip(hits, by_code.tolist(), strict=True)]
    if with_reasons:
        documents = [
            hit.document._replace(text=hit.passage_text) for hit in hits if hit.document is not None
        ]
        for one, reason in zip(shown, reasons(hasher, documents, sought, margins), strict=True):
            one["reasons"] = reason
    result: answers.FoundIn = {
        "generation": snapshot.state.generation,
        "query": {
            "code": None if answer.code is None else answer.code.tobytes().hex(),
            "by": answer.by,
            "known_words": answer.known_words,
        },
        "hits": shown,
    }
    if answer.total is not None:
        result["total"] = answer.total
    if answer.facets:
        result["facets"] = {
            field: {
                "values": [{"value": value, "count": n} for value, n in facet.values],
                "least": facet.least,
                "most": facet.most,
            }
            for field, facet in answer.facets.items()
        }
    if answer.warning is not None:
        result["warning"] = answer.warning
    return result


def _hit(hit: Hit, sought: Sought, by_code: float) -> answers.Hit:
    """A hit; its code gave ``by_code`` to its score, its words the rest (search/relevance.py)."""
    assert hit.document is not None  # a collection has its documents
    title = title_of(hit.document)
    shown: answers.Hit = {
        "id": shown_id(hit.id),
        "score": None,
        "parts": None,
        "words": None if hit.words is None else round(hit.words, 4),
        "distance": hit.distance,
        "title": title,
        "snippet": marked_snippet(without_title(hit.passage_text, title), sought),
        "code": hit.code.hex(),
        "metadata": hit.document.metadata or {},
    }
    if hit.score is not None:
        shown["score"] = round(hit.score, 4)
        by_words = round(hit.score - by_code, 4) or 0.0  # never a negative zero
        shown["parts"] = {"words": by_words, "code": round(by_code, 4)}
    if hit.passage is not None:
        shown["passage"] = {"start": hit.passage.start, "end": hit.passage.end}
    return shown


def stored_document(snapshot: Snapshot, id_: Id) -> Coded:
    stored = snapshot.find([id_])
    if id_ not in stored:
        raise RefusedError(
            404, f"there is no document with the id {id_!r}", code="no_such_document"
        )
    return stored[id_]


def stored_documents(snapshot: Snapshot, ids: Iterable[Id]) -> list[answers.StoredDocument]:
    """Whole documents; ids that do not exist are left out."""
    ids = list(ids)
    stored = snapshot.find(ids)
    return [whole_document(stored[id_]) for id_ in ids if id_ in stored]


def whole_document(coded: Coded) -> answers.StoredDocument:
    document = coded.document
    return {
        "id": shown_id(document.id),
        "title": title_of(document),
        "text": document.text,
        "metadata": document.metadata or {},
        "code": coded.code.hex(),
    }


def shown_id(id_: Id) -> answers.Id:
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
    """The title in the metadata, else the id if it is a name, else the first line.

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


def sought_like(snapshot: Snapshot, document: Document) -> Sought:
    """The words of a document to mark in others: all would be too many, if the model knows some."""
    telling = telling_words(snapshot.hasher, document.text)
    if not telling:
        return Sought.by_document(snapshot.words, document)
    return Sought(frozenset(snapshot.words.terms(" ".join(telling))), snapshot.words)
