"""What the bits of a collection's codes stand for, how often they are on, which go together."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Bits, Codes, unpack
from boltzhash.collection import Collection, Hit
from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import code_of, coded_query
from boltzhash.hashers import Hasher
from boltzhash.server.answers import (
    hits_as_json,
    parse_code,
    stored_document,
    telling_words,
    title_of,
)
from boltzhash.server.distinctive import Occurrences
from boltzhash.server.marks import Sought, words_in
from boltzhash.server.messages import CodeQuery, IdQuery, TextQuery
from boltzhash.server.refusals import RefusedError
from boltzhash.server.settings import MAX_MATRIX_BITS
from boltzhash.server.topics import Group, Matrix, SideWords, grouped, side_words
from boltzhash.text.tokens import tokenize

_COUNTED = 20_000  # documents for shares and correlations
_READ = 4_000  # documents whose texts are read, for words, couplings and how sure bits are
_COUPLED = 1_000  # of them for couplings
_SHOWN = 20
_CORRELATED = 8
_SHARED = 20


class Sample(NamedTuple):
    """Some documents, spread evenly over a collection, with what decides their bits."""

    places: NDArray[np.int64]
    codes: Codes
    texts: list[str]


class Surest(NamedTuple):
    """Documents of which a bit is surest, surest first, by their places."""

    places: NDArray[np.int64]
    codes: Codes


class BitsView(NamedTuple):
    """Everything about the bits of one generation."""

    generation: int
    model: str
    n_bits: int
    sampled: int
    words: SideWords
    shares: NDArray[np.float64]
    correlations: Matrix
    couplings: Matrix | None
    groups: list[Group]
    surest: list[tuple[Surest, Surest]]  # for each bit of those with it on and with it off

    def bit(self, number: int) -> dict[str, Any]:
        return {
            "bit": number,
            "reversed": any(number in group.reversed for group in self.groups),
            "share_on": round(float(self.shares[number]), 4),
            "on": self.words.on[number],
            "off": self.words.off[number],
        }

    def as_json(self) -> dict[str, Any]:
        def shown(matrix: Matrix | None) -> list[list[float]] | None:
            if matrix is None or self.n_bits > MAX_MATRIX_BITS:
                return None
            rows: list[list[float]] = np.round(matrix, 4).tolist()
            return rows

        return {
            "generation": self.generation,
            "n_bits": self.n_bits,
            "sampled": self.sampled,
            "bits": [self.bit(number) for number in range(self.n_bits)],
            "groups": [
                {"bits": group.bits, "words": group.words, "against": group.against}
                for group in self.groups
            ],
            "correlations": shown(self.correlations),
            "couplings": shown(self.couplings),
        }


class KnownBits:
    """Keeps what takes time to compute: the words of a model's bits, and the last view of all bits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: tuple[str, SideWords] | None = None
        self._view: BitsView | None = None

    def words(self, collection: Collection, sample: Sample | None = None) -> SideWords:
        """The words of the model's bits, from the documents of the first request."""
        now = collection.standing()
        with self._lock:
            if self._words is None or self._words[0] != now.model:
                texts = sample or _sample(collection)
                occurrences = Occurrences.in_texts(collection.hasher, texts.texts)
                self._words = (
                    now.model,
                    side_words(occurrences, unpack(texts.codes), collection.words),
                )
            return self._words[1]

    def view(self, collection: Collection) -> BitsView:
        """Counted on documents spread evenly over the collection."""
        now = collection.standing()
        kept = self._view
        if kept is not None and (kept.generation, kept.model) == (now.generation, now.model):
            return kept
        rows, sample = collection.rows(), _sample(collection)
        counted = unpack(rows.codes[_spread(np.flatnonzero(rows.known), _COUNTED)])
        correlated = correlations(counted)
        words = self.words(collection, sample)
        self._view = BitsView(
            now.generation,
            now.model,
            now.n_bits,
            len(counted),
            words,
            counted.mean(axis=0) if len(counted) else np.zeros(now.n_bits),
            correlated,
            couplings(collection.hasher, sample.texts[:: max(1, len(sample.texts) // _COUPLED)]),
            grouped(correlated, words),
            surest_documents(collection.hasher, sample, correlated),
        )
        return self._view


def _sample(collection: Collection) -> Sample:
    rows = collection.rows()
    read = _spread(np.flatnonzero(rows.known), _READ)
    documents = collection.documents_at(rows.places[read])
    return Sample(rows.places[read], rows.codes[read], [document.text for document in documents])


def surest_documents(
    hasher: Hasher, sample: Sample, correlated: Matrix
) -> list[tuple[Surest, Surest]]:
    """For each bit the documents with the largest margins above and below 0.

    Margins, not probabilities: those round to 1 for most documents, and then say nothing. If codes come
    from features, which are not kept, a bit is the surer the better the others agree with it.
    """
    bits = unpack(sample.codes)
    if hasher.n_feature_columns is not None:
        margins = (bits * 2.0 - 1) @ correlated
    else:
        margins = hasher.margins(sample.texts) if sample.texts else np.zeros(bits.shape)

    def of(number: int, *, on: bool) -> Surest:
        (rows,) = np.nonzero(bits[:, number] == on)
        sure = margins[rows, number] * (1 if on else -1)
        best = rows[np.argsort(-sure, kind="stable")[:_SHOWN]]
        return Surest(sample.places[best], sample.codes[best])

    return [(of(number, on=True), of(number, on=False)) for number in range(hasher.n_bits)]


def correlations(bits: Bits) -> Matrix:
    """Pearson's correlation of each pair of bits; 0 if one of them never changes.

    >>> correlations(np.array([[1, 0, 1], [0, 1, 1]], dtype=bool)).tolist()
    [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    n_bits = bits.shape[1]
    if len(bits) < 2:
        return np.zeros((n_bits, n_bits))
    centred = bits - bits.mean(axis=0)
    deviations = np.sqrt(np.square(centred).mean(axis=0))
    scale = np.divide(1, deviations, out=np.zeros(n_bits), where=deviations > 0)
    return np.asarray(np.clip(centred.T @ centred / len(bits) * np.outer(scale, scale), -1, 1))


def couplings(hasher: Hasher, texts: list[str]) -> Matrix | None:
    """The mean of Σ = D + UUᵀ over documents, its diagonal 0; None without such a posterior.

    None as well if it comes from features, which are not kept.

    Σ couples the bits of the Boltzmann posterior: two with a positive entry tend to be on together.
    """
    posterior_of = getattr(hasher, "posterior", None)
    if posterior_of is None or not texts or hasher.n_feature_columns is not None:
        return None
    factor = posterior_of(texts).factor
    if factor.shape[2] == 0:
        return None  # a posterior that factorises
    across = factor.transpose(1, 0, 2).reshape(factor.shape[1], -1)
    mean = across @ across.T / len(texts)
    np.fill_diagonal(mean, 0)
    return np.asarray(mean)


def explain_hit(
    collection: Collection,
    known_bits: KnownBits,
    query: TextQuery | IdQuery | CodeQuery,
    id_: Id,
    found_by: str | None = None,
) -> dict[str, Any]:
    """Which bits of a document agree with a query's, and the words behind them.

    ``found_by`` is the code that it was found by, if that is not its own but a passage's.
    """
    now = collection.standing()
    bit_words = known_bits.words(collection)
    stored = stored_document(collection, id_)
    document, code = stored.document, np.frombuffer(stored.code, np.uint8)
    if found_by is not None:
        code = parse_code(found_by, now.n_bits)
    asked = _asked(collection, query)
    theirs = set(tokenize(document.text))
    on, agree = unpack(code[None])[0], unpack((code ^ asked.code)[None])[0] == 0
    bits = []
    for number in range(now.n_bits):
        side = bit_words.on if on[number] else bit_words.off
        bits.append(
            {
                "bit": number,
                "agrees": bool(agree[number]),
                "on": bool(on[number]),
                "words": side[number],
                "in_query": [word for word in side[number] if word in asked.tokens],
                "in_document": [word for word in side[number] if word in theirs],
            }
        )
    return {
        "generation": now.generation,
        "distance": int((~agree).sum()),
        "query_code": asked.code.tobytes().hex(),
        "document_code": code.tobytes().hex(),
        "shared_words": _shared_words(collection, document, asked.sought),
        "bits": bits,
    }


class _Asked(NamedTuple):
    """A query as a code, as words that models count, and as words that documents are found by."""

    code: Codes
    tokens: set[str]
    sought: Sought


def _asked(collection: Collection, query: TextQuery | IdQuery | CodeQuery) -> _Asked:
    cut = collection.words
    if isinstance(query, TextQuery):
        hasher = collection.hasher
        code = code_of(hasher, coded_query(hasher, query.text, query.features))
        return _Asked(code, set(tokenize(query.text)), Sought.by_query(cut, query.text))
    if isinstance(query, IdQuery):
        stored = stored_document(collection, query.id)
        document, code = stored.document, np.frombuffer(stored.code, np.uint8)
        return _Asked(code, set(tokenize(document.text)), Sought.by_document(cut, document))
    return _Asked(parse_code(query.code, collection.hasher.n_bits), set(), Sought(frozenset(), cut))


def _shared_words(collection: Collection, document: Document, sought: Sought) -> list[str]:
    """Words of a document that were asked for, the most telling first."""
    shared = words_in(f"{document.text}\n{title_of(document)}", sought)
    telling = telling_words(collection.hasher, document.text)
    rank = {word: place for place, word in enumerate(telling)}
    return sorted(shared, key=lambda word: rank.get(word, len(rank)))[:_SHARED]


def documents_with_bit(
    collection: Collection, known_bits: KnownBits, number: int
) -> dict[str, Any]:
    """Of the sampled documents those with the bit on, and off, for which it is surest."""
    now = collection.standing()
    if number >= now.n_bits:
        raise RefusedError(404, f"bits are numbered from 0 to {now.n_bits - 1}, got {number}")
    view = known_bits.view(collection)
    related = np.abs(view.correlations[number])
    related[number] = 0
    nearest = np.argsort(-related, kind="stable")[:_CORRELATED].tolist()
    on, off = (_as_hits(collection, surest) for surest in view.surest[number])
    return {
        "generation": now.generation,
        "bit": view.bit(number),
        "correlated": [
            (other, round(float(view.correlations[number, other]), 4))
            for other in nearest
            if related[other] > 0
        ],
        "documents": hits_as_json(collection, on),
        "against": hits_as_json(collection, off),
    }


def _as_hits(collection: Collection, surest: Surest) -> list[Hit]:
    return [
        Hit(document.id, 0, document, code=code.tobytes())
        for document, code in zip(collection.documents_at(surest.places), surest.codes, strict=True)
    ]


def _spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` of the rows, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
