"""What all hashers share: documents in, packed codes out, saved and loaded as a folder."""

from __future__ import annotations

import inspect
import itertools
import logging
import math
import shutil
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import Constraints, check_all
from boltzhash.codes import Codes, bit_balance, check_n_bits, distinct, pack, unpack
from boltzhash.errors import TrainingError
from boltzhash.hashers.shared.documents import (
    DocumentRows,
    as_texts,
    check_enough_to_learn,
    check_not_negative,
    one_by_one,
    words_a_row,
)
from boltzhash.hashers.shared.estimator import (
    check_is_fitted,
    check_names_in,
    check_random_state,
    validate_data,
    validate_rows,
)
from boltzhash.hashers.shared.features import (
    Features,
    check_features,
    check_finite,
    check_rows,
    feature_blocks,
)
from boltzhash.hashers.shared.fitted_on import FittedOn
from boltzhash.hashers.shared.inference import Floats
from boltzhash.hashers.shared.labels import Labels, read_labels
from boltzhash.hashers.shared.poor_codes import complaints
from boltzhash.hashers.shared.saved import SavedModel
from boltzhash.hashers.shared.settings import Recipe, Text
from boltzhash.text.counting import check_texts
from boltzhash.text.sampling import ENDLESS, Room, make_room, parse_memory
from boltzhash.text.tfidf import TfIdf
from boltzhash.threads import in_threads

BLOCK = 1024
# Which hashers take features, for the message to those who give them to another. A test compares it
# with the table of hashers.
WITH_A_WORD_DECODER = (
    *("SemanticHasher", "CorrSH", "NASH", "BMSH", "VDSH", "GMSH", "Doc2hash", "RBSH"),
    *("PairRec", "SNUH", "WISH", "MISH"),
)


logger = logging.getLogger("boltzhash")


class Encoded(NamedTuple):
    """Packed codes, and how many different words of each document the model knows.

    ``codes`` are uint8 (n, n_bits / 8), ``known_words`` int64 (n,), or None if the codes come from
    features: they mean something even without a word.
    """

    codes: Codes
    known_words: NDArray[np.int64] | None


class Hasher(SavedModel):
    """Base of all hashers. A subclass learns in ``_fit_matrix`` and decides bits in ``_margins``.

    ``text`` matters when texts are given, not a matrix. ``output`` is what :meth:`transform` gives:
    packed ``"codes"``, or ``"bits"``, a column each, for estimators of scikit-learn that compare
    columns. A subclass names its own arguments and passes the rest on.
    """

    fit_needs: ClassVar[str | None] = None  # beside what is always there; never to hash
    takes_features: ClassVar[bool] = False
    takes_labels: ClassVar[bool] = False
    constraints: ClassVar[Constraints] = {
        "output": ["codes", "bits"]
    }  # of the class's own arguments
    RECIPE: ClassVar[Recipe] = {
        "text": Text(
            language="english",
            stem=False,
            stop_words=None,
            token_pattern=None,
            max_words=10_000,
            min_df=1,
            max_df=0.5,
        )
    }
    weight_beside_words: ClassVar[float] = (
        0.15  # of codes in the score of a search: docs/retrieval.md
    )

    distinct_codes_: int  # of the training documents
    bit_balance_: float

    def __init__(
        self,
        n_bits: int = 64,
        *,
        text: Text | None = None,
        output: str = "codes",
        random_state: Any = 0,
    ) -> None:
        self.n_bits = n_bits
        self.text = text
        self.output = output
        self.random_state = random_state

    @property
    def language(self) -> str | None:
        """The language of the texts, None for none."""
        return self._text.language

    @property
    def _text(self) -> Text:
        return self._group("text")  # type: ignore[no-any-return]

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Show the arguments that a subclass passes on as its own.

        scikit-learn, ``help`` and editors read the signature; so shared arguments are written only once.
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
        features: Any = None,
        max_memory: int | str | None = None,
        checkpoint: str | Path | None = None,
        on_epoch: Callable[[Self], object] | None = None,
    ) -> Self:
        """Learn to hash from documents, and from labels if there are some.

        Parameters
        ----------
        X : iterable of str, or matrix of shape (n_documents, n_words)
            Raw texts, or tf-idf (sparse or dense, not negative).
        y : sequence of labels or lists of labels, one entry per document, optional
            Labels are strings or numbers; None, NaN or an empty list says that nothing is known, also
            of most documents. Codes of one label become near. A matrix of bools has a column per label.
            For the methods with a word decoder; others ignore it, as scikit-learn's pipelines expect.
        features : float matrix of shape (n_documents, n_columns), optional
            Dense vectors of the documents, in their order, such as sentence embeddings. Codes are
            then made from these; the words are what codes should stand for. From then on the model
            needs features of everything it hashes. For the methods with a word decoder.
        max_memory : int or str, optional
            What the process may use, in bytes or as ``"4 GB"``, for texts that come from a generator
            and take more than that. Vocabulary and idf are learned from all of them; the rest from a
            uniform sample, as large as there is room for. Same seed and bound, same sample.
        checkpoint : path, optional
            A folder that keeps the state of a long fit. After an interruption, the same call resumes
            from there, to the same codes. It stays when the fit is done: remove it once the model
            is saved.
        on_epoch : callable, optional
            Called after every epoch with this hasher in its current state: it can hash, and its
            ``history_`` ends with that epoch.
        """
        check_n_bits(self.n_bits)
        self._check_params()
        if features is not None and max_memory is not None:
            raise ValueError(
                "max_memory takes a sample of the documents, but features have a row for every one: "
                "give one or the other"
            )
        if y is not None and self.takes_labels and max_memory is not None:
            raise ValueError(
                "max_memory takes a sample of the documents, but y has an entry for every one: "
                "give one or the other"
            )
        dense = None if features is None else self._features(features)
        if dense is not None:
            check_finite(dense)
        folder = Path(checkpoint) if checkpoint is not None else None
        before = dict(self.__dict__)
        try:
            has_labels = y is not None and self.takes_labels
            every_row = has_labels or dense is not None
            matrix = self._fit_documents(X, None if every_row else self._room(max_memory))
            check_enough_to_learn(matrix)
            if dense is not None:
                check_rows(len(dense), matrix.shape[0])
            self.feature_scaling_ = None
            taught = self._taught(matrix)
            inputs = dense if dense is None or taught.all() else dense[taught]
            labels = self._labels(y, taught)
            self._fit_matrix(matrix[taught], inputs, labels, folder, on_epoch)
            self._check_not_collapsed(matrix, dense)
        except BaseException as error:
            self.__dict__ = before  # a model fitted before is not lost, a failed one is not usable
            if isinstance(error, TrainingError) and folder is not None:
                shutil.rmtree(folder, ignore_errors=True)  # resuming from there would fail again
            raise
        return self

    def _taught(self, matrix: sparse.csr_matrix) -> NDArray[np.bool_]:
        """Which documents the model is taught: those with words, or a sample if these are too many."""
        taught = np.asarray(words_a_row(matrix) > 0)  # a document without words teaches nothing
        most = self._most_documents()
        if np.count_nonzero(taught) <= most:
            return taught
        random = np.random.default_rng([self._draw_seed(), 0])
        chosen = np.zeros_like(taught)
        chosen[random.choice(np.flatnonzero(taught), most, replace=False)] = True
        return chosen

    def _most_documents(self) -> int:
        """How many documents this fit learns from at most, drawn from those it is given."""
        return sys.maxsize

    def fit_transform(
        self, X: Any, y: object = None, *, features: Any = None, **fitting: Any
    ) -> Any:
        """:meth:`fit`, then :meth:`transform` of the same documents."""
        documents = list(X) if isinstance(X, Iterator) else X  # they are read twice
        fitted = self.fit(documents, y, features=features, **fitting)
        return fitted.transform(documents, features=features)

    def transform(self, X: Any = None, *, features: Any = None) -> Any:
        """What ``output`` asks for: packed codes as :meth:`encode` gives them, or bits, a column each.

        An array, or a data frame if :meth:`set_output` asks for one.

        ``X`` and ``features`` are those of :meth:`encode`. Bits are bool (n_documents, n_bits), for
        estimators that compare columns, such as ``KNeighborsClassifier(metric="hamming")``; with packed
        codes they would compare bytes, which means nothing.
        """
        codes = self.encode(X, features=features)
        return self._contained(unpack(codes) if self.output == "bits" else codes, X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The columns of :meth:`transform`: ``itq0``, ``itq1``, … for bits, ``itq_byte0``, … for codes.

        ``input_features`` changes nothing. If the model was fitted on a matrix, they must be the names
        of its columns; of texts there is only the name of their column.
        """
        check_is_fitted(self)
        if self.tfidf_ is None and input_features is not None:
            check_names_in(self, input_features)
        name, n = type(self).__name__.lower(), self.n_bits
        names = (
            [f"{name}{bit}" for bit in range(n)]
            if self.output == "bits"
            else [f"{name}_byte{byte}" for byte in range(n // 8)]
        )
        return np.array(names, dtype=object)

    def encode(self, X: Any = None, *, features: Any = None) -> Codes:
        """The packed code of each document: uint8, n_bits / 8 bytes, bit 0 the highest of the first.

        A document with no known word gets the code of the empty document; see
        :meth:`known_word_counts`.

        Parameters
        ----------
        X : iterable of str, or matrix of shape (n_documents, n_words)
            Texts, or tf-idf. May be left out if there are features.
        features : float matrix of shape (n_documents, n_columns), optional
            For a model that was fitted with features, which makes codes from these.

        Returns
        -------
        uint8 array (n_documents, n_bits / 8)
        """
        blocks = self.transform_blocks(X, features=features)
        return np.concatenate([encoded.codes for encoded in blocks])

    def transform_blocks(self, X: Any = None, *, features: Any = None) -> Iterator[Encoded]:
        """The codes, a block of documents at a time: for more than fits into memory.

        ``X`` and ``features`` are those of :meth:`encode`.
        Blocks are encoded by as many threads as there are CPUs. Each comes with the
        :meth:`known_word_counts` of its documents. There is at least one block.
        """
        return in_threads(self.encode_block, self._raw_blocks(X, features))

    def encode_block(self, block: list[str] | DocumentRows) -> Encoded:
        """The codes of one block of documents, and how many words are known: every code comes from here.

        Parameters
        ----------
        block : list of str, or rows of shape (n_documents, n_columns)
            Texts, or what the model reads instead: tf-idf, or features if it was fitted with them.
        """
        rows = self._as_rows(block)
        known_words = None if isinstance(rows, np.ndarray) else words_a_row(rows)
        return Encoded(pack(self.margins(rows) > 0), known_words)

    def margins(self, block: list[str] | DocumentRows) -> Floats:
        """How sure the model is of each bit, with its sign: float64 (n_documents, n_bits).

        A code has the bits whose margin is above 0. ``block`` is as in :meth:`encode_block`.
        """
        check_is_fitted(self)
        rows = self.tfidf(block) if isinstance(block, list) else block
        if self.feature_scaling_ is not None and not isinstance(rows, np.ndarray):
            raise self.needs_features()
        return self._margins(rows)

    def known_word_counts(self, X: Any) -> NDArray[np.int64]:
        """How many different words of each document the model knows: int64 (n_documents,).

        ``X`` is texts, or tf-idf (n_documents, n_words).
        0 flags a meaningless code, unless codes come from features.
        """
        check_is_fitted(self)
        return np.concatenate([words_a_row(self._as_rows(block)) for block in self._word_blocks(X)])

    def unknown_word_share(self, texts: Iterable[str]) -> float | None:
        """Which share of the words of some documents the model does not know.

        Each word of a document counts once; stop words, and unknown ones in more than ``max_df`` of
        these documents, do not. ``fitted_on_.unknown_words`` is what to expect of documents like those
        of the fit. None if no word is left.
        """
        check_is_fitted(self)
        known = self._words()
        if known is None:
            raise self._knows_no_words()
        return self._make_tfidf().unknown_share(texts, set(known))

    def tfidf(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """The model's tf-idf of texts, rows of length 1: what it reads, and what reranking compares.

        A float64 matrix (n_texts, n_words).
        """
        check_is_fitted(self)
        if self.tfidf_ is None:
            raise self._knows_no_words()
        return self.tfidf_.transform(texts)

    def _knows_no_words(self) -> ValueError:
        return ValueError(
            f"this {type(self).__name__} was fitted on a matrix and knows no words: pass tf-idf "
            f"rows with {self.n_features_in_} columns, or fit it on texts"
        )

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_params(self) -> None:
        """Raise if an argument is not what it should be."""
        for kind in type(self).__mro__:
            check_all(self.get_params(deep=False), vars(kind).get("constraints", {}))
        for group in self.recipe().values():
            check_all(vars(group), group.constraints)

    @abstractmethod
    def _fit_matrix(
        self,
        matrix: sparse.csr_matrix,
        features: Features | None,
        labels: Labels | None,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
    ) -> None:
        """Learn from tf-idf rows and, if the method takes them, features and labels of the documents.

        Each of them has at least one word.
        """

    @abstractmethod
    def _margins(self, rows: DocumentRows) -> Floats:
        """By how much each bit is on (above 0) or off: (n_rows, n_bits), from tf-idf or features."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tfidf_")

    def _room(self, max_memory: int | str | None) -> Room | None:
        """What a fit has for a sample of texts; None if it takes all of them."""
        most, room = self._most_documents(), ENDLESS
        if max_memory is not None:
            room = make_room(
                parse_memory(max_memory),
                self.n_bits,
                self._bytes_of_model(),
                self._more_bytes_a_document(),
            )
        room = room._replace(most_documents=most)
        return None if room == ENDLESS else room

    def _more_bytes_a_document(self) -> int:
        """The bytes that this method takes for each document beyond what others do."""
        return 0

    def _bytes_of_model(self) -> int:
        """The bytes that a fit uses for the model, however large the corpus."""
        return 32 * self._text.max_words * self.n_bits

    def _fit_documents(self, X: Any, room: Room | None) -> sparse.csr_matrix:
        texts = as_texts(X)
        if texts is None and room is not None and math.isfinite(room.n_bytes):
            raise ValueError("max_memory is for texts, got a matrix: it is already in memory")
        if texts is None:
            matrix = check_not_negative(validate_data(self, X, reset=True, at_least=2))
            self.tfidf_ = None
            return matrix
        tfidf = self._make_tfidf()
        if room is None:
            matrix = tfidf.fit_transform(texts)
        else:
            matrix = tfidf.fit_sample(texts, room, self._draw_seed())
        self.tfidf_ = tfidf
        self.n_features_in_ = len(tfidf.words_)
        return matrix

    def _make_tfidf(self) -> TfIdf:
        return TfIdf(**vars(self._text))

    def _blocks(self, X: Any, features: Any = None) -> Iterator[DocumentRows]:
        """Documents as rows, a block at a time, so that memory does not grow; at least one."""
        return map(self._as_rows, self._raw_blocks(X, features))

    def _as_rows(self, block: list[str] | DocumentRows) -> DocumentRows:
        return self.tfidf(block) if isinstance(block, list) else block

    def _raw_blocks(self, X: Any, features: Any) -> Iterator[list[str] | DocumentRows]:
        dense = self.checked_features(features)
        if dense is None:
            return self._word_blocks(X)
        return feature_blocks(dense, None if X is None else one_by_one(X))

    def checked_features(self, features: Any) -> Features | None:
        """The features that documents come with, as an array; None if the model reads words.

        They are refused if the model was fitted without, missed if it was fitted with them.
        """
        check_is_fitted(self)
        if features is None and self.n_feature_columns is None:
            return None
        if features is None:
            raise self.needs_features()
        if self.n_feature_columns is None:
            self._features(features)
            raise ValueError(
                f"this {type(self).__name__} was fitted without features and reads words: pass "
                "only documents, or fit it with features="
            )
        return check_features(features, self.n_feature_columns)

    @property
    def n_feature_columns(self) -> int | None:
        """How long the vectors are that codes are made from; None if they are made from words."""
        return None if self.feature_scaling_ is None else len(self.feature_scaling_.mean)

    def needs_features(self) -> ValueError:
        """The error for those who give texts alone to a model that was fitted with features."""
        return ValueError(
            f"this {type(self).__name__} was fitted with features and makes codes from those, not from "
            f"words: pass features= (--features on the command line), a matrix with "
            f"{self.n_feature_columns} columns"
        )

    def _features(self, features: Any) -> Features:
        """Features, if the method takes them; otherwise an error that names those that do."""
        if not self.takes_features:
            raise ValueError(
                f"{type(self).__name__} reads only words, got features; methods that take features are "
                f"{', '.join(WITH_A_WORD_DECODER)}"
            )
        return check_features(features)

    def _labels(self, y: Any, taught: NDArray[np.bool_]) -> Labels | None:
        """Labels of the documents that are taught, if the method takes them and there are any."""
        if y is None or not self.takes_labels:
            return None
        labels = read_labels(y, len(taught))
        if labels is None or taught.all():
            return labels
        return labels.of(taught)

    def _word_blocks(self, X: Any) -> Iterator[list[str] | sparse.csr_matrix]:
        if X is None:
            raise ValueError("X must be a list of texts or a matrix, got None")
        texts = as_texts(X)
        if texts is not None:
            remaining = iter(texts)
            for start in itertools.count(step=BLOCK):
                block = check_texts(list(itertools.islice(remaining, BLOCK)), start)
                if start and not block:
                    return
                yield block
        matrix = check_not_negative(validate_rows(self, X, self.n_features_in_))
        for start in range(0, matrix.shape[0], BLOCK):
            yield matrix[start : start + BLOCK]

    def _check_not_collapsed(self, matrix: sparse.csr_matrix, features: Features | None) -> None:
        """Raise if all training documents got the same code: that is a failed fit."""
        codes = self.encode(matrix, features=features)
        self.distinct_codes_ = distinct(codes)
        self.bit_balance_ = bit_balance(unpack(codes))
        if self.distinct_codes_ == 1:
            raise TrainingError(
                f"training collapsed: all {matrix.shape[0]} documents got the same code. "
                f"{self._collapse_advice()}"
            )
        unseen = self.tfidf_.unseen_ if self.tfidf_ is not None else None
        self.fitted_on_ = FittedOn.of(codes, unseen)
        coverage = self.tfidf_.coverage_ if self.tfidf_ is not None else None
        for complaint in complaints(codes, coverage):
            logger.warning(complaint)

    def _collapse_advice(self) -> str:
        return "The documents may be too alike or too few"


def _arguments_of(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())
