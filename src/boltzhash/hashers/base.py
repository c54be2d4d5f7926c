"""What all hashers share: texts or tf-idf in, packed codes out, saved and loaded as a folder."""

from __future__ import annotations

import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from boltzhash.codes import Bits, Codes, bit_balance, check_n_bits, distinct, pack, unpack
from boltzhash.counting import check_texts
from boltzhash.errors import ModelError, TrainingError
from boltzhash.persistence import Arrays, fingerprint, write_model
from boltzhash.sampling import Room, make_room, parse_memory
from boltzhash.text import TfIdf
from boltzhash.threads import in_threads

BLOCK = 1024


class Encoded(NamedTuple):
    """Packed codes, and how many different words of each document the model knows."""

    codes: Codes
    known_words: NDArray[np.int64]


class Hasher(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]  # sklearn is untyped
    """Base of all hashers. A subclass learns in ``_fit_matrix`` and decides bits in ``_bits``.

    The text arguments ``language``, ``stop_words``, ``token_pattern``, ``max_words`` and ``max_df`` are
    those of :class:`boltzhash.text.TfIdf`; they count when texts are given and not a matrix. A
    subclass names its own arguments and passes the rest on.
    """

    needs_torch: ClassVar[bool] = False  # to be fitted; never to hash

    tfidf_: TfIdf | None
    n_features_in_: int
    distinct_codes_: int  # of the training documents
    bit_balance_: float

    def __init__(
        self,
        n_bits: int = 64,
        *,
        language: str | None = "english",
        stop_words: Iterable[str] | None = None,
        token_pattern: str | None = None,
        max_words: int = 10_000,
        max_df: float = 0.5,
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.language = language
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.max_words = max_words
        self.max_df = max_df
        self.random_state = random_state

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the arguments that a subclass passes on as its own.

        scikit-learn, ``help`` and editors read the signature; so shared arguments are written once.
        """
        super().__init_subclass__(**keywords)
        own = cls.__dict__.get("__init__")
        if own is None:
            return
        named = [p for p in _arguments_of(own) if p.kind is not p.VAR_KEYWORD]
        known = {p.name for p in named}
        passed_on = _arguments_of(getattr(cls.__mro__[1], "__init__"))  # noqa: B009  # for mypy
        own.__signature__ = inspect.Signature(
            [*named, *(p for p in passed_on if p.name not in known)]
        )

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        max_memory: int | str | None = None,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Self], object] | None = None,
    ) -> Self:
        """Learn to hash from documents. No labels are used.

        Parameters
        ----------
        X : iterable of str, or matrix of shape (n_documents, n_words)
            Raw texts, or tf-idf (sparse or dense, not negative).
        y : ignored
        max_memory : int or str, optional
            What the process may take, in bytes or like ``"4 GB"``, for texts that come from a generator
            and are more than that. Vocabulary and idf are learned from all of them; the rest from a
            uniform sample, as large as there is room for. Same seed and bound, same sample.
        checkpoint : path, optional
            A folder that keeps the state of a long fit. After an interruption, the same call goes on
            from there, to the same codes. It stays when the fit is done: remove it once the model
            is saved.
        on_epoch : callable, optional
            Called after every epoch with this hasher as it is then: it can hash, and its ``history_``
            ends with that epoch.
        """
        check_n_bits(self.n_bits)
        self._check_params()
        before = dict(self.__dict__)
        try:
            matrix = self._fit_documents(X, self._room(max_memory))
            _check_enough_to_learn(matrix)
            self._fit_matrix(matrix, Path(checkpoint) if checkpoint is not None else None, on_epoch)
            self._check_not_collapsed(matrix)
        except BaseException:
            self.__dict__ = before  # a model fitted before is not lost, a failed one not usable
            raise
        return self

    def transform(self, X: Any) -> Codes:
        """The packed code of each document: uint8, n_bits / 8 bytes, bit 0 the first byte's highest.

        A document with no known word gets the code of the empty document; see
        :meth:`known_word_counts`.
        """
        return np.concatenate([encoded.codes for encoded in self.transform_blocks(X)])

    def transform_blocks(self, X: Any) -> Iterator[Encoded]:
        """The codes a block of documents at a time: for more than fit into memory.

        Blocks are encoded by as many threads as there are CPUs. Each comes with the
        :meth:`known_word_counts` of its documents. There is at least one block.
        """
        return in_threads(self._encode, self._raw_blocks(X))

    def _encode(self, block: list[str] | sparse.csr_matrix) -> Encoded:
        rows = self.tfidf(block) if isinstance(block, list) else block
        return Encoded(pack(self._bits(rows)), np.diff(rows.indptr).astype(np.int64))

    def known_word_counts(self, X: Any) -> NDArray[np.int64]:
        """How many different words of each document the model knows; 0 flags a meaningless code."""
        blocks = [np.diff(rows.indptr).astype(np.int64) for rows in self._blocks(X)]
        return np.concatenate(blocks)

    def tfidf(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """The model's tf-idf of texts, rows of length 1: what it reads, and what reranking compares."""
        check_is_fitted(self)
        if self.tfidf_ is None:
            raise ValueError(
                f"this {type(self).__name__} was fitted on a matrix and knows no words: pass tf-idf "
                f"rows with {self.n_features_in_} columns, or fit it on texts"
            )
        return self.tfidf_.transform(texts)

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder; one already there is replaced whole or not at all."""
        check_is_fitted(self)
        write_model(
            Path(folder),
            kind=type(self).__name__,
            params=self._plain_params(),
            arrays=self._stored_arrays(),
            words=self._words(),
        )

    def fingerprint(self) -> str:
        """Names the fitted model: codes belong to the model whose fingerprint they carry."""
        check_is_fitted(self)
        settings = {"class": type(self).__name__, **self._plain_params()}
        return fingerprint(settings, self._stored_arrays(), self._words())

    def _plain_params(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        return {name: _plain(name, value) for name, value in params.items()}

    def _words(self) -> list[str] | None:
        return self.tfidf_.words_ if self.tfidf_ is not None else None

    def _stored_arrays(self) -> Arrays:
        arrays = {f"learned.{name}": array for name, array in self._arrays().items()}
        if self.tfidf_ is not None:
            arrays["tfidf.idf"] = self.tfidf_.idf_
        arrays["n_features"] = np.array([self.n_features_in_], dtype=np.int64)
        return arrays

    @classmethod
    def summary(cls) -> str:
        """What the method does, in a line: the first of its docstring."""
        return (inspect.getdoc(cls) or "").splitlines()[0]

    @classmethod
    def reference(cls) -> str:
        """The paper it comes from, as its docstring cites it."""
        _, _, cited = (inspect.getdoc(cls) or "").partition("References\n----------\n")
        return " ".join(cited.partition("\n\n")[0].split())

    @classmethod
    def _restore(cls, params: dict[str, Any], arrays: Arrays, words: list[str] | None) -> Self:
        hasher = cls(**params)
        hasher.n_features_in_ = int(arrays["n_features"][0])
        hasher.tfidf_ = None
        if words is not None:
            idf = arrays["tfidf.idf"]
            if len(words) != hasher.n_features_in_ or len(idf) != len(words):
                raise ModelError(
                    f"the vocabulary has {len(words)} words and {len(idf)} weights; "
                    f"the model has {hasher.n_features_in_}"
                )
            hasher.tfidf_ = TfIdf.from_vocabulary(words, idf, hasher.token_pattern)
        prefix = "learned."
        hasher._set_arrays(
            {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        )
        return hasher

    @abstractmethod
    def _check_params(self) -> None:
        """Raise where an argument is not what it should be."""

    @abstractmethod
    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        """Learn from tf-idf rows."""

    @abstractmethod
    def _bits(self, matrix: sparse.csr_matrix) -> Bits:
        """The code of each row of a block."""

    @abstractmethod
    def _arrays(self) -> Arrays:
        """What was learned."""

    @abstractmethod
    def _set_arrays(self, arrays: Arrays) -> None:
        """Take back what :meth:`_arrays` gave."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tfidf_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _room(self, max_memory: int | str | None) -> Room | None:
        if max_memory is None:
            return None
        return make_room(parse_memory(max_memory), self.n_bits, self._bytes_of_model())

    def _bytes_of_model(self) -> int:
        """What a fit takes for the model, however large the corpus."""
        return 32 * self.max_words * self.n_bits

    def _fit_documents(self, X: Any, room: Room | None) -> sparse.csr_matrix:
        texts = _as_texts(X)
        if texts is None and room is not None:
            raise ValueError("max_memory is for texts, got a matrix: it is in memory already")
        if texts is None:
            matrix = _check_not_negative(
                validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
            )
            self.tfidf_ = None
            return matrix
        tfidf = TfIdf(
            language=self.language,
            stop_words=self.stop_words,
            token_pattern=self.token_pattern,
            max_words=self.max_words,
            max_df=self.max_df,
        )
        if room is None:
            matrix = tfidf.fit_transform(texts)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            matrix = tfidf.fit_sample(texts, room, seed)
        self.tfidf_ = tfidf
        self.n_features_in_ = len(tfidf.words_)
        return matrix

    def _blocks(self, X: Any) -> Iterator[sparse.csr_matrix]:
        """Documents as tf-idf, a block at a time, so that memory does not grow; at least one."""
        for block in self._raw_blocks(X):
            yield self.tfidf(block) if isinstance(block, list) else block

    def _raw_blocks(self, X: Any) -> Iterator[list[str] | sparse.csr_matrix]:
        check_is_fitted(self)
        texts = _as_texts(X)
        if texts is not None:
            remaining = iter(texts)
            for start in itertools.count(step=BLOCK):
                block = check_texts(list(itertools.islice(remaining, BLOCK)), start)
                if start and not block:
                    return
                yield block
        matrix = _check_not_negative(
            validate_data(
                self, X, accept_sparse="csr", dtype=np.float64, reset=False, ensure_min_samples=1
            )
        )
        for start in range(0, matrix.shape[0], BLOCK):
            yield matrix[start : start + BLOCK]

    def _check_not_collapsed(self, matrix: sparse.csr_matrix) -> None:
        """All training documents on one code is a failed fit, and says so."""
        codes = self.transform(matrix)
        self.distinct_codes_ = distinct(codes)
        self.bit_balance_ = bit_balance(unpack(codes))
        if self.distinct_codes_ == 1:
            raise TrainingError(
                f"training collapsed: all {matrix.shape[0]} documents got the same code. "
                f"{self._collapse_advice()}"
            )

    def _collapse_advice(self) -> str:
        return "The documents may be too alike or too few"


def _arguments_of(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _plain(name: str, value: Any) -> Any:
    """A constructor argument as JSON can hold it."""
    if isinstance(value, np.random.RandomState):
        return None  # its state at the time of the fit is gone
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_plain(name, part) for part in value]
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"{name} cannot be saved: a {type(value).__name__} is no plain data")
    return value


def _as_texts(X: Any) -> Iterable[str] | None:
    """X as texts, or None where it is a matrix. What is neither is texts, whose check names it."""
    if isinstance(X, str | bytes):
        raise ValueError(
            f"X must be a list of texts or a matrix, got a single {type(X).__name__}: "
            "put it into a list"
        )
    if sparse.issparse(X) or not isinstance(X, Iterable):
        return None
    n_dimensions = getattr(X, "ndim", None)
    if n_dimensions is not None:
        kind = getattr(getattr(X, "dtype", None), "kind", "O")
        return list(X) if n_dimensions == 1 and kind in "OUT" else None
    remaining = iter(X)
    first = list(itertools.islice(remaining, 1))
    if first and _is_row_of_numbers(first[0]) and remaining is not X:
        return None
    return itertools.chain(first, remaining)


def _is_row_of_numbers(item: Any) -> bool:
    """Whether the first item of a list makes the list a matrix."""
    if isinstance(item, str | bytes | dict) or not hasattr(item, "__len__"):
        return False
    return not any(isinstance(part, str) for part in item)


def _check_not_negative(matrix: Any) -> sparse.csr_matrix:
    rows = sparse.csr_matrix(matrix)
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # what follows works in place, and the matrix may be the user's
        rows.sum_duplicates()
        rows.eliminate_zeros()
    if rows.nnz and rows.data.min() < 0:
        row = int(np.searchsorted(rows.indptr, int(rows.data.argmin()), side="right")) - 1
        raise ValueError(
            f"Negative values in data: tf-idf must be 0 or more, got {rows.data.min()} in row {row}"
        )
    return rows


def _check_enough_to_learn(matrix: sparse.csr_matrix) -> None:
    n = matrix.shape[0]
    if n < 2:
        raise ValueError(f"at least 2 documents are needed to fit, got {n}")
    if matrix.nnz == 0:
        raise ValueError(f"none of the {n} documents has a word: there is nothing to learn")
    if _all_rows_equal(matrix):
        raise ValueError(
            f"all {n} documents are the same: at least 2 different ones are needed to fit"
        )


def _all_rows_equal(matrix: sparse.csr_matrix) -> bool:
    lengths = np.diff(matrix.indptr)
    if (lengths != lengths[0]).any():
        return False
    columns = matrix.indices.reshape(len(lengths), lengths[0])
    values = matrix.data.reshape(len(lengths), lengths[0])
    return bool((columns == columns[0]).all() and np.allclose(values, values[0]))
