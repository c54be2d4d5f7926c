"""The bits of a hit that agree with a query, and the words that bits stand for."""

from __future__ import annotations

import threading

import numpy as np

from boltzhash.codes import Bits, Codes, unpack
from boltzhash.collection import Snapshot
from boltzhash.corpus.documents import Id
from boltzhash.encoding.coding import code_of, coded_query
from boltzhash.server import answers
from boltzhash.server.distinctive import Occurrences, chosen_words, contrast
from boltzhash.server.hits import parse_code, stored_document, telling_words, title_of
from boltzhash.server.marks import Sought, words_in
from boltzhash.server.requests import CodeQuery, IdQuery, TextQuery
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.tokens import tokenize

_READ = 4_000  # documents, spread evenly over the collection
_WORDS = 12  # of a side of a bit
_SHARED = 20

Sides = tuple[list[list[str]], list[list[str]]]  # for each bit, its words if it is off and if on


class BitWords:
    """Keeps the words of a model's bits, which take a few thousand documents to find."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: str | None = None
        self._sides: Sides = [], []

    def of(self, snapshot: Snapshot) -> Sides:
        """The words of the model's bits, from the documents of the first request."""
        model = snapshot.state.model
        with self._lock:
            if self._model != model:
                rows = snapshot.rows()
                known = np.flatnonzero(rows.known)
                read = known[:: max(1, -(-len(known) // _READ))]
                texts = [d.text for d in snapshot.documents_at(rows.places[read])]
                occurrences = Occurrences.in_texts(snapshot.hasher, texts)
                self._sides = side_words(occurrences, unpack(rows.codes[read]), snapshot.words)
                self._model = model
            return self._sides


def side_words(occurrences: Occurrences, bits: Bits, cut: Analyzer) -> Sides:
    """Words that set the documents with a bit off apart from those with it on, and the reverse.

    A word counts the less the more other bits it tells apart as well: so it is distinctive of a bit.
    """
    n_on = bits.sum(axis=0)[:, None]
    with_on = np.asarray((occurrences.has.T @ bits.astype(np.float64)).T)
    counts = np.stack([np.asarray(occurrences.has.sum(axis=0)) - with_on, with_on])
    sizes = np.stack([len(bits) - n_on, n_on])
    scores = np.maximum(contrast(counts, sizes, counts[::-1], sizes[::-1]), 0)
    scores = np.square(scores) / np.maximum(np.linalg.norm(scores, axis=1, keepdims=True), 1e-12)
    columns, names = np.arange(counts.shape[2]), occurrences.names
    off, on = (
        [
            [names[i] for i in chosen_words(columns, *bit, names, _WORDS, cut)]
            for bit in zip(scores[side], counts[side], strict=True)
        ]
        for side in (0, 1)
    )
    return off, on


def explain_hit(
    snapshot: Snapshot,
    bit_words: BitWords,
    query: TextQuery | IdQuery | CodeQuery,
    id_: Id,
    found_by: str | None = None,
) -> answers.Explanation:
    """Compare the bits of a document with a query's, and name the words behind them.

    ``found_by`` is the code that it was found by, if that is not its own but a passage's.
    """
    now = snapshot.state
    sides = bit_words.of(snapshot)
    stored = stored_document(snapshot, id_)
    document, code = stored.document, np.frombuffer(stored.code, np.uint8)
    if found_by is not None:
        code = parse_code(found_by, now.n_bits)
    wanted, tokens, sought = _parsed(snapshot, query)
    theirs = set(tokenize(document.text))
    on, agree = unpack(code[None])[0], unpack((code ^ wanted)[None])[0] == 0
    bits: list[answers.BitAgreement] = []
    for bit in range(now.n_bits):
        words = sides[int(on[bit])][bit]
        bits.append(
            {
                "bit": bit,
                "agrees": bool(agree[bit]),
                "on": bool(on[bit]),
                "words": words,
                "in_query": [word for word in words if word in tokens],
                "in_document": [word for word in words if word in theirs],
            }
        )
    shared = words_in(f"{document.text}\n{title_of(document)}", sought)
    telling = telling_words(snapshot.hasher, document.text)
    rank = {word: i for i, word in enumerate(telling)}
    return {
        "generation": now.generation,
        "distance": int((~agree).sum()),
        "query_code": wanted.tobytes().hex(),
        "document_code": code.tobytes().hex(),
        "shared_words": sorted(shared, key=lambda word: rank.get(word, len(rank)))[:_SHARED],
        "bits": bits,
    }


def _parsed(
    snapshot: Snapshot, query: TextQuery | IdQuery | CodeQuery
) -> tuple[Codes, set[str], Sought]:
    """A query as a code, as words that models count, and as words that documents are found by."""
    cut = snapshot.words
    if isinstance(query, TextQuery):
        hasher = snapshot.hasher
        code = code_of(hasher, coded_query(hasher, query.text, query.features))
        return code, set(tokenize(query.text)), Sought.by_query(cut, query.text)
    if isinstance(query, IdQuery):
        stored = stored_document(snapshot, query.id)
        document, code = stored.document, np.frombuffer(stored.code, np.uint8)
        return code, set(tokenize(document.text)), Sought.by_document(cut, document)
    return parse_code(query.code, snapshot.hasher.n_bits), set(), Sought(frozenset(), cut)
