"""Codes measured on texts of one's own: without labels, and by a field of metadata if there is one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import Integer, check
from boltzhash.codes import Codes, check_n_bits
from boltzhash.hashers import HASHERS, Hasher
from boltzhash.hashers.shared.halves import DOCUMENTS, agreement_of_halves, halves, n_nearest
from boltzhash.hashers.shared.neighbours import EXACT_UP_TO, SCALES, LatentSemantics
from boltzhash.metrics.agreement import agreement_of_codes, codes_of_halves
from boltzhash.metrics.by_field import Asked, given_labels
from boltzhash.metrics.codes_report import CodesReport, Halves, Labelled, Measured
from boltzhash.metrics.significance import Estimate, estimates

if TYPE_CHECKING:
    from boltzhash.collection import Collection, Snapshot

RowNumbers = NDArray[np.int64]

TOP = 100  # hits whose labels are looked at
FEWEST = 20  # documents
BATCH = 1000  # documents read at a time
LATENT_UP_TO = EXACT_UP_TO  # documents: latent semantics of more would take longer than all else
_NO_WORDS = (
    "no document has two words or more that the model knows: there is nothing to cut in halves"
)


def evaluate_codes(
    collection: Collection, labels: str | None = None, *, top: int = TOP
) -> CodesReport:
    """How good the codes of a collection are: the agreement of halves, and precision by a field.

    At most 1,000 documents of two words or more, the same in every call, are cut in halves; the codes of
    the halves are compared with all codes of the collection, the document's own left out. If the
    collection's model was fitted on these documents, that is in its favour.

    Parameters
    ----------
    collection
        Its codes must come from texts: vectors have no halves.
    labels
        The name of a metadata field with a label or a list of labels. Precision is then the share of the
        ``top`` nearest that have a label in common with a document; documents without labels are left
        out.
    top
        How many hits precision is measured on.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import Collection, LSH
    >>> texts = [f"{a} {b} tea" for a in ("red", "green", "black") for b in range(1000, 1010)]
    >>> with Collection.create(tempfile.mkdtemp() + "/c", LSH(64).fit(texts)) as collection:
    ...     n = collection.add({"id": i, "text": text} for i, text in enumerate(texts))
    ...     report = evaluate_codes(collection)
    >>> report.halves.documents, report.halves.nearest, report.models[0].bits
    (30, 1, 64)
    """
    check("top", top, Integer(1))
    check_has_halves(collection)
    hasher = collection.hasher
    with collection.snapshot() as now:
        read = _read(now, hasher, labels)
    own, k = read.cut, n_nearest(len(read.codes) - 1)
    halved = codes_of_halves(hasher, read.words)
    agreement = agreement_of_codes(*halved, codes=read.codes, k=k, own=own)
    latent = None if read.all_words is None else _latent(read.words, read.all_words, k, own)
    labelled, precision = None, None
    if labels is not None:
        given = given_labels(read.values, labels)
        at = _sampled(np.flatnonzero(given.known))
        asked = Asked(labels, given, at, np.arange(len(read.codes)), top, is_own=True)
        labelled, precision = asked.precision(read.codes[at], read.codes)
    model = Measured(
        type(hasher).__name__, hasher.n_bits, estimates(agreement[:, None])[0], precision
    )
    described = Halves(len(own), len(read.codes) - 1, k, _median_words(read.words), latent)
    return CodesReport([model], described, labelled)


def compare_hashers(
    hashers: Iterable[Hasher],
    texts: Sequence[str],
    *,
    labels: Sequence[Any] | None = None,
    field: str = "label",
    top: int = TOP,
) -> CodesReport:
    """Fit hashers, and say how good the codes are that they give to documents that were held out.

    A tenth of the documents, at most 1,000 and the same in every call, is held out. Each hasher is
    fitted on the rest, without labels; the halves of the documents that were held out are compared with
    the codes of the rest.

    Parameters
    ----------
    hashers
        With the same text arguments, so that they know the same words; :func:`variants` makes some.
    texts
        The documents.
    labels
        A label, a list of labels or None for each document. Precision is then the share of the ``top``
        nearest that have a label in common with a document that was held out.
    field
        What the labels are called in the report.
    top
        How many hits precision is measured on.

    Examples
    --------
    >>> from boltzhash import ITQ, LSH
    >>> texts = [f"{a} {b} tea" for a in ("red", "green", "black") for b in range(1000, 1020)]
    >>> report = compare_hashers([LSH(16), LSH(64)], texts)
    >>> [model.bits for model in report.models], report.halves.documents, report.halves.among
    ([16, 64], 6, 54)
    """
    check("top", top, Integer(1))
    _check_enough(len(texts))
    out = _sampled(np.arange(len(texts)), len(texts) // 10)
    rest = np.setdiff1d(np.arange(len(texts)), out)
    asked = None
    if labels is not None:
        asked = Asked(field, given_labels(labels, field), out, rest, top, is_own=False)
    held = _HeldOut([texts[row] for row in out], [texts[row] for row in rest], asked)
    models, hasher, labelled = [], None, None
    for hasher in hashers:
        model, labelled = held.measured(hasher)
        models.append(model)
    if hasher is None:
        raise ValueError("hashers must name at least one hasher, got none")
    return CodesReport(models, held.halves(hasher), labelled)


class _HeldOut(NamedTuple):
    """Documents that a fit does not see, those that it sees, and by which labels it is measured."""

    texts: list[str]
    others: list[str]
    asked: Asked | None

    def measured(self, hasher: Hasher) -> tuple[Measured, Labelled | None]:
        """Fit a hasher on the others, and measure it."""
        start = time.perf_counter()
        hasher.fit(self.others)
        seconds = time.perf_counter() - start
        codes = hasher.encode(self.others)
        halved = codes_of_halves(hasher, self._words(hasher))
        agreement = estimates(agreement_of_codes(*halved, codes=codes)[:, None])[0]
        labelled, precision = None, None
        if self.asked is not None:
            labelled, precision = self.asked.precision(hasher.encode(self.texts), codes)
        name = type(hasher).__name__
        return Measured(name, hasher.n_bits, agreement, precision, seconds), labelled

    def halves(self, hasher: Hasher) -> Halves:
        """What the agreement is measured with, by the words that a fitted hasher knows."""
        words, n = self._words(hasher), len(self.others)
        k = n_nearest(n)
        latent = _latent(words, hasher.tfidf(self.others), k) if n <= LATENT_UP_TO else None
        return Halves(words.shape[0], n, k, _median_words(words), latent)

    def _words(self, hasher: Hasher) -> sparse.csr_matrix:
        """tf-idf of those that can be cut in halves."""
        words = hasher.tfidf(self.texts)
        enough = np.flatnonzero(np.diff(words.indptr) >= 2)
        if not len(enough):
            raise ValueError(_NO_WORDS)
        return words[enough]


def variants(hasher: Hasher, lengths: Sequence[int], *, methods: Sequence[str]) -> list[Hasher]:
    """Hashers of these lengths and methods that are otherwise as a given one, not fitted.

    Without lengths, or without methods, its own. A hasher of another method takes over how texts are cut
    into words, the seed and the device.

    >>> from boltzhash import ITQ, Text
    >>> variants(ITQ(64, text=Text(max_words=500)), [16, 32], methods=["ITQ", "LSH"])[1:3]
    [ITQ(n_bits=32, text=Text(max_words=500)), LSH(n_bits=16, text=Text(max_words=500))]
    """
    own, found = type(hasher).__name__, []
    for method in methods or [own]:
        check("method", method, *HASHERS)
        kind = HASHERS[method]
        made = hasher if method == own else _otherwise_as(hasher, kind)
        for bits in lengths or [hasher.n_bits]:
            changes = {"n_bits": check_n_bits(bits), "output": "codes", "verbose": False}
            known = kind.defaults()
            params = {**made.get_params(deep=False), **changes}
            found.append(kind(**{name: value for name, value in params.items() if name in known}))
    return found


def _otherwise_as(hasher: Hasher, kind: type[Hasher]) -> Hasher:
    """A hasher of that kind, which cuts texts as this one, has its seed and trains where it does."""
    params, known = hasher.get_params(), kind.param_names()
    made = kind(random_state=hasher.random_state)
    as_before = [name for name in params if name.startswith("text__")] + ["training__device"]
    return made.set_params(
        **{name: params[name] for name in as_before if name in params and name in known}
    )


def documents_of(collection: Collection, field: str | None = None) -> tuple[list[str], list[Any]]:
    """All texts of a collection, and what a metadata field of each holds, as of one generation."""
    texts, values = [], []
    for document in collection:
        texts.append(document.text)
        values.append(_value(document.metadata, field))
    return texts, values


class _Read(NamedTuple):
    """What is read of a collection, all of one generation.

    ``cut`` are the rows of the documents that are cut in halves, ``words`` their tf-idf, ``values`` what
    the field of each document holds.
    """

    codes: Codes
    cut: RowNumbers
    words: sparse.csr_matrix
    all_words: sparse.csr_matrix | None
    values: list[Any]


def _read(snapshot: Snapshot, hasher: Hasher, field: str | None) -> _Read:
    rows = snapshot.rows()
    n = len(rows.codes)
    _check_enough(n)
    blocks, values = [], []
    is_cheap = n <= LATENT_UP_TO
    if is_cheap or field is not None:
        for start in range(0, n, BATCH):
            documents = snapshot.documents_at(rows.places[start : start + BATCH])
            values += [_value(document.metadata, field) for document in documents]
            if is_cheap:
                blocks.append(hasher.tfidf([document.text for document in documents]))
    all_words = sparse.vstack(blocks, format="csr") if is_cheap else None

    def words_at(some: RowNumbers) -> sparse.csr_matrix:
        if all_words is not None:
            return all_words[some]
        documents = snapshot.documents_at(rows.places[some])
        return hasher.tfidf([document.text for document in documents])

    return _Read(rows.codes, *_cut(n, words_at), all_words, values)


def _cut(
    n: int, words_at: Callable[[RowNumbers], sparse.csr_matrix]
) -> tuple[RowNumbers, sparse.csr_matrix]:
    """The rows of at most 1,000 documents of two words or more, and their tf-idf."""
    order = np.random.default_rng(0).permutation(n)
    chosen, words, missing = [], [], DOCUMENTS
    for start in range(0, n, BATCH):
        some = order[start : start + BATCH]
        found = words_at(some)
        enough = np.flatnonzero(np.diff(found.indptr) >= 2)[:missing]
        chosen.append(some[enough])
        words.append(found[enough])
        missing -= len(enough)
        if not missing:
            break
    if missing == DOCUMENTS:
        raise ValueError(_NO_WORDS)
    return np.concatenate(chosen), sparse.vstack(words, format="csr")


def _latent(
    words: sparse.csr_matrix,
    all_words: sparse.csr_matrix,
    k: int,
    own: RowNumbers | None = None,
) -> Estimate:
    """The agreement of the same halves by cosines of latent semantics."""
    vectors_of = LatentSemantics(all_words, SCALES, RandomState(0))
    one, other = (vectors_of(half) for half in halves(words, np.random.default_rng(0)))
    found = agreement_of_halves(one, other, vectors_of(all_words), k, own)
    return estimates(found[:, None])[0]


def _median_words(words: sparse.csr_matrix) -> float:
    return float(np.median(np.diff(words.indptr)))


def _sampled(rows: RowNumbers, n: int = DOCUMENTS) -> RowNumbers:
    """At most n of the rows, and at most 1,000, the same ones every time."""
    order = np.random.default_rng(1).permutation(rows)
    return np.sort(order[: min(n, DOCUMENTS)])


def _value(metadata: dict[str, Any] | None, field: str | None) -> Any:
    return None if field is None else (metadata or {}).get(field)


def _check_enough(n: int) -> None:
    if n < FEWEST:
        raise ValueError(
            f"codes are measured by what is near to them, for which {FEWEST} documents are needed: "
            f"there are {n}"
        )


def check_has_halves(collection: Collection) -> None:
    """Refuse a collection whose codes are not made from words."""
    if collection.hasher.n_feature_columns is not None:
        raise ValueError(
            f"{collection.location} makes codes from vectors, which have no halves as texts have: its "
            "answers can be measured with --queries and --qrels"
        )
