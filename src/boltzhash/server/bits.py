"""What the bits of a collection's codes stand for, how often they are on, how they go together."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boltzhash.codes import Bits, unpack
from boltzhash.collection import Matches
from boltzhash.collection.documents import Id
from boltzhash.hashers import Hasher
from boltzhash.server.answers import document_and_code, hits_of, parse_code, telling_words
from boltzhash.server.messages import CodeQuery, IdQuery, TextQuery
from boltzhash.server.reader import Reader
from boltzhash.server.refusals import RefusedError
from boltzhash.server.settings import MAX_MATRIX_BITS
from boltzhash.text.tokens import tokenize

Matrix = NDArray[np.float64]

N_WORDS = 12
_COUNTED = 20_000  # documents for shares and correlations
_READ = 1_000  # documents whose texts are read, for couplings and words
_SHOWN = 20
_CORRELATED = 8


class Words(NamedTuple):
    """For each bit the words of its two sides, and where they come from."""

    on: list[list[str]]
    off: list[list[str]]
    source: str


class BitsView(NamedTuple):
    """Everything about the bits of one generation."""

    generation: int
    model: str
    n_bits: int
    sampled: int
    words: Words
    shares: NDArray[np.float64]
    correlations: Matrix
    couplings: Matrix | None

    def bit(self, number: int) -> dict[str, Any]:
        return {
            "bit": number,
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
            "words_from": self.words.source,
            "bits": [self.bit(number) for number in range(self.n_bits)],
            "correlations": shown(self.correlations),
            "couplings": shown(self.couplings),
        }


class KnownBits:
    """Keeps what costs time: the words of a model's bits, and the last view of all bits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: tuple[str, Words] | None = None
        self._view: BitsView | None = None

    def words(self, reader: Reader) -> Words:
        """Of the model that the collection has; from its documents when they were first asked for."""
        with reader.one_generation() as state, self._lock:
            if self._words is None or self._words[0] != state.model:
                texts, bits = _sample(reader)
                self._words = state.model, bit_words(reader.hasher, texts, bits)
            return self._words[1]

    def view(self, reader: Reader) -> BitsView:
        """Counted over documents spread evenly over the collection."""
        with reader.one_generation() as state:
            kept = self._view
            if kept is not None and (kept.generation, kept.model) == (
                state.generation,
                state.model,
            ):
                return kept
            rows = reader.rows()
            counted = unpack(rows.codes[_spread(np.flatnonzero(rows.known), _COUNTED)])
            self._view = BitsView(
                state.generation,
                state.model,
                state.n_bits,
                len(counted),
                self.words(reader),
                counted.mean(axis=0) if len(counted) else np.zeros(state.n_bits),
                correlations(counted),
                couplings(reader.hasher, _sample(reader)[0]),
            )
            return self._view


def _sample(reader: Reader) -> tuple[list[str], Bits]:
    """Texts and bits of some documents."""
    rows = reader.rows()
    read = _spread(np.flatnonzero(rows.known), _READ)
    documents = reader.documents_at(rows.places[read])
    return [document.text for document in documents], unpack(rows.codes[read])


def correlations(bits: Bits) -> Matrix:
    """Pearson's correlation of each pair of bits; 0 where one of them never changes.

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

    Σ couples the bits of the Boltzmann posterior: two with a positive entry rather come on together.
    """
    posterior_of = getattr(hasher, "posterior", None)
    if posterior_of is None or not texts:
        return None
    factor = posterior_of(texts).factor
    if factor.shape[2] == 0:
        return None  # a posterior that factorises
    across = factor.transpose(1, 0, 2).reshape(factor.shape[1], -1)
    mean = across @ across.T / len(texts)
    np.fill_diagonal(mean, 0)
    return np.asarray(mean)


def bit_words(hasher: Hasher, texts: list[str], bits: Bits) -> Words:
    """From the decoder where there is one; else the words that tell the two sides apart."""
    explain = getattr(hasher, "explain", None)
    if explain is not None:
        explained = explain(N_WORDS)
        up = [[word for word, strength in bit.up if strength > 0] for bit in explained]
        down = [[word for word, strength in bit.down if strength < 0] for bit in explained]
        return Words(up, down, "decoder")
    if not texts:
        nothing: list[list[str]] = [[] for _ in range(hasher.n_bits)]
        return Words(nothing, nothing, "documents")
    assert hasher.tfidf_ is not None
    tfidf, vocabulary = hasher.tfidf(texts), hasher.tfidf_.words_
    signs = np.where(bits, 1.0, -1.0)
    counts = np.stack([np.maximum((signs > 0).sum(0), 1), np.maximum((signs < 0).sum(0), 1)])
    weights = np.where(signs > 0, 1 / counts[0], -1 / counts[1])
    strengths = np.asarray((tfidf.T @ weights).T)  # mean tf-idf where it is on, minus where off
    order = np.argsort(-strengths, axis=1, kind="stable")

    def listed(columns: NDArray[np.int64], strength: NDArray[np.float64]) -> list[str]:
        return [vocabulary[column] for column in columns if strength[column] > 0]

    on = [listed(o[:N_WORDS], s) for o, s in zip(order, strengths, strict=True)]
    off = [listed(o[::-1][:N_WORDS], -s) for o, s in zip(order, strengths, strict=True)]
    return Words(on, off, "documents")


def explain_hit(
    reader: Reader, known_bits: KnownBits, query: TextQuery | IdQuery | CodeQuery, id_: Id
) -> dict[str, Any]:
    """Which bits of a document agree with a query's, and the words behind them."""
    with reader.one_generation() as state:
        bit_words = known_bits.words(reader)
        document, code = document_and_code(reader, id_)
        asked, words = _asked(reader, query)
        theirs = set(tokenize(document.text))
        on, agree = unpack(code[None])[0], unpack((code ^ asked)[None])[0] == 0
        bits = []
        for number in range(state.n_bits):
            side = bit_words.on if on[number] else bit_words.off
            bits.append(
                {
                    "bit": number,
                    "agrees": bool(agree[number]),
                    "on": bool(on[number]),
                    "words": side[number],
                    "in_query": [word for word in side[number] if word in words],
                    "in_document": [word for word in side[number] if word in theirs],
                }
            )
        known = telling_words(reader.hasher, document.text)
        return {
            "generation": state.generation,
            "distance": int((~agree).sum()),
            "query_code": asked.tobytes().hex(),
            "document_code": code.tobytes().hex(),
            "shared_words": [word for word in known if word in words],
            "bits": bits,
        }


def _asked(reader: Reader, query: TextQuery | IdQuery | CodeQuery) -> tuple[Any, set[str]]:
    if isinstance(query, TextQuery):
        return reader.hasher.transform([query.text])[0], set(tokenize(query.text))
    if isinstance(query, IdQuery):
        document, code = document_and_code(reader, query.id)
        return code, set(tokenize(document.text))
    return parse_code(query.code, reader.hasher.n_bits), set()


def documents_with_bit(reader: Reader, known_bits: KnownBits, number: int) -> dict[str, Any]:
    """Of the sampled documents with the bit on those of which it is surest, else the first."""
    with reader.one_generation() as state:
        if number >= state.n_bits:
            raise RefusedError(404, f"bits are numbered from 0 to {state.n_bits - 1}, got {number}")
        view = known_bits.view(reader)
        rows = reader.rows()
        mask = 0x80 >> (number % 8)
        having = np.flatnonzero(rows.known & ((rows.codes[:, number // 8] & mask) != 0))
        documents = reader.documents_at(rows.places[_spread(having, _READ)])
        surest = range(min(_SHOWN, len(documents)))
        probabilities = getattr(reader.hasher, "bit_probabilities", None)
        if probabilities is not None and documents:
            sure = probabilities([document.text for document in documents])[:, number]
            surest = np.argsort(-sure, kind="stable")[:_SHOWN].tolist()
        chosen = [documents[row] for row in surest]
        found = Matches(
            [document.id for document in chosen], np.zeros(len(chosen), dtype=np.int32), chosen
        )
        related = np.abs(view.correlations[number])
        related[number] = 0
        nearest = np.argsort(-related, kind="stable")[:_CORRELATED].tolist()
        return {
            "generation": state.generation,
            "bit": view.bit(number),
            "correlated": [
                (other, round(float(view.correlations[number, other]), 4))
                for other in nearest
                if related[other] > 0
            ],
            "documents": hits_of(reader, found),
        }


def _spread(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of the rows, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
