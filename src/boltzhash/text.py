"""Documents → sparse tf-idf: tokens, vocabulary, weighting, unseen words."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import check_integer, check_number

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han. Their runs become
# overlapping pairs of characters, the usual stand-in for words where no dictionary is at hand.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
)
# Marks that belong to the word they stand in but that Python's \w leaves out: combining accents, Hebrew
# and Arabic points, the vowel signs of the Indic scripts (their danda, a full stop, is not one).
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u09d7"
    "\u0a01-\u0a03\u0a3c-\u0a4d\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57"
    "\u0b82\u0bbe-\u0bcd\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6"
    "\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d81-\u0d83\u0dca-\u0ddf"
)
_TOKENS = re.compile(f"([{_UNSPACED}]+)|((?:(?![{_UNSPACED}])[^\\W_]|[{_MARKS}]){{2,}})")


def tokenize(text: str, pattern: re.Pattern[str] | None = None) -> list[str]:
    """Lower-case words of two or more letters or digits; pairs of characters where no spaces are.

    Underscores separate, so ``read_csv`` is found by "read". With ``pattern`` its matches (or
    those of its one group) are the tokens.

    >>> tokenize("The ZipFile's read_csv, Straße!")
    ['the', 'zipfile', 'read', 'csv', 'strasse']
    >>> tokenize("机器学习 naïve हिन्दी")
    ['机器', '器学', '学习', 'naïve', 'हिन्दी']
    """
    text = unicodedata.normalize("NFKC", text).casefold()
    if pattern is not None:
        return pattern.findall(text)
    tokens: list[str] = []
    for run, word in _TOKENS.findall(text):
        if word:
            tokens.append(word)
        elif len(run) == 1:
            tokens.append(run)
        else:
            tokens.extend(run[i : i + 2] for i in range(len(run) - 1))
    return tokens


class TfIdf:
    """Texts → rows of tf · idf, each of length 1 (0 where no word is known).

    idf(w) = ln((1 + n) / (1 + df(w))) + 1. The vocabulary is the ``max_words`` words that
    occur in most documents, ties in alphabetical order, after stop words and the words in more than
    ``max_df`` of the documents are out.

    Parameters
    ----------
    language : str or None, default="english"
        Whose stop words to leave out; None for none (``max_df`` then does that work).
    stop_words : iterable of str or None, default=None
        A list of one's own, instead of the language's.
    token_pattern : str or None, default=None
        A regular expression whose matches in the lower-cased text are the tokens; None for
        :func:`tokenize`'s rule.
    max_words : int, default=10_000
    max_df : float, default=0.5
        Share of the documents above which a word tells nothing.

    Attributes
    ----------
    words_ : list of str
        Column → word.
    idf_ : float64 array

    Examples
    --------
    >>> tfidf = TfIdf()
    >>> tfidf.fit_transform(["a red apple", "a green apple", "a train", "the bus"]).shape
    (4, 5)
    >>> tfidf.words_
    ['apple', 'bus', 'green', 'red', 'train']
    """

    words_: list[str]
    idf_: NDArray[np.float64]

    def __init__(
        self,
        *,
        language: str | None = "english",
        stop_words: Iterable[str] | None = None,
        token_pattern: str | None = None,
        max_words: int = 10_000,
        max_df: float = 0.5,
    ) -> None:
        check_integer("max_words", max_words, 1, "a positive integer")
        check_number("max_df", max_df, above=0, at_most=1)
        if isinstance(stop_words, str):
            raise ValueError(
                f"stop_words must be a list of words or None, got the string {stop_words!r}; "
                "language= chooses a ready list"
            )
        self.max_words = max_words
        self.max_df = max_df
        self._stop_words = _stop_words(language, stop_words)
        self._pattern = compile_pattern(token_pattern)

    @classmethod
    def from_vocabulary(
        cls, words: list[str], idf: NDArray[np.float64], token_pattern: str | None
    ) -> TfIdf:
        """A fitted one, from what a model stores."""
        tfidf = cls(language=None, token_pattern=token_pattern)
        tfidf._set_vocabulary(words, idf)
        return tfidf

    def fit_transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Learn the vocabulary and weigh the documents, in one pass: texts may be a generator."""
        numbers: dict[str, int] = {}
        counts = _count(self._tokens_of(texts), numbers, grow=True)
        if counts.shape[0] == 0:
            raise ValueError("the corpus is empty: at least 2 documents are needed")
        frequency = np.bincount(counts.indices, minlength=len(numbers))
        words = np.array(list(numbers), dtype=object)
        usable = np.array(
            [
                df <= max(self.max_df * counts.shape[0], 1) and word not in self._stop_words
                for word, df in zip(words, frequency, strict=True)
            ],
            dtype=bool,
        )
        everywhere = frequency == counts.shape[0]
        if not usable.any() and everywhere.any() and everywhere.all() and counts.shape[0] > 1:
            raise ValueError(
                f"all {counts.shape[0]} documents are the same, or have the same words: "
                "at least 2 different ones are needed to fit"
            )
        if not usable.any():
            raise ValueError(
                f"no word is left for the vocabulary: of {len(words)} different words in "
                f"{counts.shape[0]} documents, all are stop words or stand in more than max_df="
                f"{self.max_df} of them"
            )
        ranked = sorted(np.flatnonzero(usable), key=lambda j: (-frequency[j], words[j]))
        columns = np.array(sorted(ranked[: self.max_words], key=lambda j: words[j]))
        idf = np.log((1 + counts.shape[0]) / (1 + frequency[columns])) + 1
        self._set_vocabulary([str(w) for w in words[columns]], idf)
        return self._weigh(counts[:, columns])

    def transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Weigh documents; words not in the vocabulary do not count."""
        return self._weigh(_count(self._tokens_of(texts), self._columns, grow=False))

    def _tokens_of(self, texts: Iterable[str]) -> Iterator[list[str]]:
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"document {number} must be a string, got {type(text).__name__}")
            yield tokenize(text, self._pattern)

    def _set_vocabulary(self, words: list[str], idf: NDArray[np.float64]) -> None:
        self.words_ = words
        self.idf_ = np.asarray(idf, dtype=np.float64)
        self._columns = {word: column for column, word in enumerate(words)}

    def _weigh(self, counts: sparse.csr_matrix) -> sparse.csr_matrix:
        weighted = counts.astype(np.float64)
        weighted.sort_indices()
        weighted.data *= self.idf_[weighted.indices]
        return unit_rows(weighted)


def _stop_words(language: str | None, stop_words: Iterable[str] | None) -> frozenset[str]:
    from boltzhash.stopwords import stop_words_of  # it cuts its lists with this module's tokenize

    if stop_words is not None:
        stop_words = list(stop_words)
        if not all(isinstance(word, str) for word in stop_words):
            raise ValueError(f"stop_words must be a list of words or None, got {stop_words!r}")
        return frozenset(token for word in stop_words for token in tokenize(word))
    return stop_words_of(language) if language is not None else frozenset()


def compile_pattern(token_pattern: str | None) -> re.Pattern[str] | None:
    """Compile a user's regular expression, with at most one group."""
    if token_pattern is None:
        return None
    try:
        pattern = re.compile(token_pattern)
    except re.error as error:
        raise ValueError(
            f"token_pattern must be a regular expression, got {token_pattern!r}: {error}"
        ) from None
    if pattern.groups > 1:
        raise ValueError(f"token_pattern may have at most one group, got {token_pattern!r}")
    return pattern


def unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Scale every row to length 1; rows of zeros stay.

    >>> unit_rows(sparse.csr_matrix([[3.0, 4.0], [0.0, 0.0]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    lengths[lengths == 0] = 1
    scaled = matrix.copy()
    scaled.data /= np.repeat(lengths, np.diff(matrix.indptr))
    return scaled


def _count(
    documents: Iterable[list[str]], columns: dict[str, int], *, grow: bool
) -> sparse.csr_matrix:
    """Token counts, a row a document; with ``grow`` new words get the next column."""
    indices, values, indptr = array("i"), array("i"), array("q", [0])
    for tokens in documents:
        counts: dict[int, int] = {}
        for token in tokens:
            column = columns.setdefault(token, len(columns)) if grow else columns.get(token)
            if column is not None:
                counts[column] = counts.get(column, 0) + 1
        indices.extend(counts.keys())
        values.extend(counts.values())
        indptr.append(len(indices))
    shape = (len(indptr) - 1, len(columns))
    parts = (np.array(values), np.array(indices), np.array(indptr))
    return sparse.csr_matrix(parts, shape=shape)
