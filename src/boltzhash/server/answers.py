"""From documents that were found to JSON: titles, snippets with marked words, codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from typing import Any

import numpy as np

from boltzhash.codes import Codes
from boltzhash.collection import Match, Matches
from boltzhash.collection.documents import Id
from boltzhash.corpus import Document
from boltzhash.hashers import Hasher
from boltzhash.search.snippet import best_line
from boltzhash.server.reader import Reader
from boltzhash.server.refusals import RefusedError
from boltzhash.text.tokens import tokenize

_TITLE_FIELDS = ("title", "name", "subject")
_TITLE_LENGTH = 120
_SNIPPET_LENGTH = 240
_SEARCHED = 8_000  # characters of a text in which a snippet is looked for
_TELLING_WORDS = 20

_WORDS = re.compile(r"\w+")


def search_text(
    reader: Reader, text: str, k: int, where: dict[str, Any] | None, rerank: bool
) -> dict[str, Any]:
    with reader.one_generation() as state:
        encoded = next(reader.hasher.transform_blocks([text]))
        assert encoded.known_words is not None  # a collection has no model of features
        code, known_words = encoded.codes[0], int(encoded.known_words[0])
        matches = reader.search(text if rerank else code, k, where=where, rerank=rerank)
        return _answer(state.generation, code, known_words, _hits(reader, matches, text))


def search_similar(
    reader: Reader, id_: Id, k: int, where: dict[str, Any] | None, rerank: bool
) -> dict[str, Any]:
    """The nearest of a document, without itself."""
    with reader.one_generation() as state:
        document, code = document_and_code(reader, id_)
        query = document.text if rerank else code
        matches = reader.search(query, k + 1, where=where, rerank=rerank)
        others = [row for row, found in enumerate(matches.ids) if found != id_][:k]
        kept = Matches(
            [matches.ids[row] for row in others],
            matches.distances[others],
            [matches.documents[row] for row in others],
            matches.known_words,
        )
        known = int(reader.hasher.known_word_counts([document.text])[0])
        hits = _hits(reader, kept, " ".join(telling_words(reader.hasher, document.text)))
        return _answer(state.generation, code, known, hits)


def search_code(reader: Reader, code: str, k: int, where: dict[str, Any] | None) -> dict[str, Any]:
    with reader.one_generation() as state:
        query = parse_code(code, state.n_bits)
        matches = reader.search(query, k, where=where)
        return _answer(state.generation, query, None, _hits(reader, matches, ""))


def document_and_code(reader: Reader, id_: Id) -> tuple[Document, Codes]:
    document = reader.get(id_)
    if document is None:
        raise RefusedError(404, f"there is no document with the id {id_!r}")
    return document, reader.codes_of([id_])[id_]


def stored_documents(reader: Reader, ids: Iterable[Id]) -> list[dict[str, Any]]:
    """Whole documents; ids that are not there are left out."""
    ids = list(ids)
    codes = reader.codes_of(ids)
    documents = (reader.get(id_) for id_ in ids)
    return [
        {
            "id": document.id,
            "title": title_of(document),
            "text": document.text,
            "metadata": document.metadata or {},
            "code": codes[document.id].tobytes().hex(),
        }
        for document in documents
        if document is not None
    ]


def parse_code(code: str, n_bits: int) -> Codes:
    """
    >>> parse_code("80ff", 16)
    array([128, 255], dtype=uint8)
    """
    if len(code) != n_bits // 4:
        raise RefusedError(
            422,
            f"code must have {n_bits // 4} hexadecimal digits, as the codes of this collection have "
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
    """A line of a text in pieces, those with a word that is sought marked.

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


def without_title(text: str, title: str) -> str:
    """A text without a first paragraph that only says the title again.

    >>> without_title("str title\\n\\nReturn a version.", "str.title")
    'Return a version.'
    """
    first, _, rest = text.partition("\n\n")
    is_title = len(first) <= 2 * len(title) and set(tokenize(first)) <= set(tokenize(title))
    return rest if is_title and rest.strip() else text


def telling_words(hasher: Hasher, text: str) -> list[str]:
    """The words of a text with most weight, heaviest first."""
    assert hasher.tfidf_ is not None  # or it would not be in a collection
    row = hasher.tfidf([text])
    heaviest = np.argsort(-row.data, kind="stable")[:_TELLING_WORDS]
    return [hasher.tfidf_.words_[column] for column in row.indices[heaviest]]


def _hits(reader: Reader, matches: Matches, text: str) -> list[dict[str, Any]]:
    """With the words of the text marked that the model knows: the others did not matter."""
    codes = reader.codes_of(matches.ids)
    words = tokenize(text)
    sought = reader.vocabulary().intersection(words) or set(words)
    return [_hit(match, codes[match.id], sought) for match in matches]


def _hit(match: Match, code: Codes, sought: Set[str]) -> dict[str, Any]:
    title = title_of(match.document)
    return {
        "id": match.id,
        "distance": match.distance,
        "title": title,
        "snippet": marked_snippet(without_title(match.document.text, title), sought),
        "code": code.tobytes().hex(),
        "metadata": match.document.metadata or {},
    }


def hits_of(reader: Reader, matches: Matches) -> list[dict[str, Any]]:
    return _hits(reader, matches, "")


def _answer(
    generation: int, code: Codes, known_words: int | None, hits: list[dict[str, Any]]
) -> dict[str, Any]:
    query = {"code": code.tobytes().hex(), "known_words": known_words}
    return {"generation": generation, "query": query, "hits": hits}
