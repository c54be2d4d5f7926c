"""Documents → sparse tf-idf: tokens, vocabulary, weighting, unseen words."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Set

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import Integer, Number, check
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.counting import Counter, Counts, count_words, make_counter
from boltzhash.text.sampling import Room, Sample, take_sample
from boltzhash.text.stemming import (
    StemmedCounter,
    numbered_stems,
    shortest_spellings,
    spellings_of,
    stemmed,
)

logger = logging.getLogger("boltzhash")


class TfIdf:
    """Texts → rows of tf · idf, each of length 1 (0 if no word is known).

    idf(w) = ln((1 + n) / (1 + df(w))) + 1. The vocabulary is the ``max_words`` words that
    occur in most documents, ties in alphabetical order, after dropping stop words and the words in
    more than ``max_df`` of the documents.

    Parameters
    ----------
    language : str or None, default="english"
        The language whose stop words are left out, where they are known, and whose stems count; None for
        none (``max_df`` then does the job of stop words).
    stem : bool, default=False
        Whether the spellings of a word ("sort", "sorts", "sorting") are one word, by the language's
        Snowball stemmer. A spelling that no document had is not known.
    stop_words : iterable of str or None, default=None
        Your own list, instead of the language's.
    token_pattern : str or None, default=None
        A regular expression whose matches in the lower-cased text are the tokens; None for
        :func:`tokenize`'s rule.
    max_words : int, default=10_000
    min_df : int, default=1
        Number of documents in which a word must occur.
    max_df : float, default=0.5
        Share of the documents above which a word says nothing.

    Attributes
    ----------
    words_ : list of str
        Column → word; of a stem the shortest spelling.
    spellings_ : list of str
        All words that are known.
    columns_ : int32 array or None
        Spelling → column, if there are stems; else spellings are words.
    idf_ : float64 array
    coverage_ : float or None
        The share of the documents' words that are in the vocabulary, stop words and those above
        ``max_df`` not counted; None if it was not learned here.
    unseen_ : float or None
        The share of words, counted likewise, that would be unknown in a further document like these:
        those that are not in the vocabulary, or are only there for the one document that has them.

    Examples
    --------
    >>> tfidf = TfIdf()
    >>> tfidf.fit_transform(["a red apple", "a green apple", "a train", "the bus"]).shape
    (4, 5)
    >>> tfidf.words_
    ['apple', 'bus', 'green', 'red', 'train']
    """

    words_: list[str]
    spellings_: list[str]
    columns_: NDArray[np.int32] | None
    idf_: NDArray[np.float64]
    coverage_: float | None = None
    unseen_: float | None = None

    def __init__(
        self,
        *,
        language: str | None = "english",
        stem: bool = False,
        stop_words: Iterable[str] | None = None,
        token_pattern: str | None = None,
        max_words: int = 10_000,
        min_df: int = 1,
        max_df: float = 0.5,
    ) -> None:
        check("max_words", max_words, Integer(1))
        check("min_df", min_df, Integer(1))
        check("max_df", max_df, Number(above=0, at_most=1))
        self.max_words = max_words
        self.min_df = min_df
        self.max_df = max_df
        self._analyzer = Analyzer(
            language, stem=stem, stop_words=stop_words, token_pattern=token_pattern
        )

    @classmethod
    def from_vocabulary(
        cls,
        spellings: list[str],
        columns: NDArray[np.int32] | None,
        idf: NDArray[np.float64],
        token_pattern: str | None,
    ) -> TfIdf:
        """A fitted instance, from what a model stores."""
        tfidf = cls(language=None, token_pattern=token_pattern)
        tfidf._set_vocabulary(spellings, columns, idf)
        return tfidf

    def fit_transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Learn the vocabulary and weigh the documents, in one pass: texts may be a generator."""
        counter = make_counter([], self._analyzer.token_pattern)
        counted = count_words(texts, counter, grow=True)
        words = counter.words()
        frequency = np.bincount(counted.numbers, minlength=len(words))
        return self._learn(Sample(words, frequency, len(counted.ends) - 1, counted))

    def fit_sample(self, texts: Iterable[str], room: Room, seed: int) -> sparse.csr_matrix:
        """Learn the vocabulary from all documents, and weigh those for which there is room."""
        sample = take_sample(texts, self._analyzer.token_pattern, room, seed)
        learned = self._learn(sample)
        if learned.shape[0] < sample.n_documents:
            logger.info(
                "learning from %d of %d documents, each equally likely; words and their weights "
                "come from all of them",
                learned.shape[0],
                sample.n_documents,
            )
        return learned

    def _learn(self, sample: Sample) -> sparse.csr_matrix:
        """Learn the vocabulary from what was counted, and weigh the documents that were kept."""
        spellings, frequency, n_documents, counts = sample
        words, stems = spellings, None
        if self._analyzer.is_stemming:
            stems = numbered_stems(spellings, self._analyzer)
            words = shortest_spellings(spellings, stems)
            frequency, counts = stemmed(stems, frequency, counts)
        chosen = self._chosen(words, frequency, n_documents)
        idf = np.log((1 + n_documents) / (1 + frequency[chosen])) + 1
        barely = int(frequency[chosen].min()) if len(chosen) == self.max_words else self.min_df
        lasting = chosen[frequency[chosen] > barely]  # with any one document fewer
        if stems is None:
            self._set_vocabulary([words[j] for j in chosen], None, idf)
        else:
            self._set_vocabulary(*spellings_of(chosen, spellings, stems), idf)
        numbers = np.arange(len(spellings)) if stems is None else stems
        stays = np.isin(numbers, lasting) & (sample.frequency > 1)
        self.unseen_ = self._share_unknown(spellings, sample.frequency, n_documents, stays)
        return self._weigh(counts, len(words), chosen)

    def unknown_share(self, texts: Iterable[str], known: Set[str]) -> float | None:
        """Which share of the words of some documents is not among those that are known.

        Each word of a document counts once; stop words, and unknown ones in more than ``max_df`` of
        these documents, do not. None if no word is left.

        >>> TfIdf().unknown_share(["the red tram", "a green apple", "a bus"], {"red", "green", "bus"})
        0.4
        """
        counter = make_counter([], self._analyzer.token_pattern)
        counted = count_words(texts, counter, grow=True)
        words = counter.words()
        frequency = np.bincount(counted.numbers, minlength=len(words))
        is_known = np.array([word in known for word in words], dtype=bool)
        return self._share_unknown(words, frequency, len(counted.ends) - 1, is_known)

    def _share_unknown(
        self,
        words: list[str],
        frequency: NDArray[np.int64],
        n_documents: int,
        is_known: NDArray[np.bool_],
    ) -> float | None:
        unknown = self._telling(words, frequency, n_documents) & ~is_known
        n = int(frequency[unknown | is_known].sum())
        return float(frequency[unknown].sum() / n) if n else None

    def _telling(
        self, words: list[str], frequency: NDArray[np.int64], n_documents: int
    ) -> NDArray[np.bool_]:
        """Which words are neither stop words nor in more than ``max_df`` of the documents."""
        most = max(self.max_df * n_documents, 1)
        return np.array(
            [
                df <= most and word not in self._analyzer.stop_words
                for word, df in zip(words, frequency, strict=True)
            ],
            dtype=bool,
        )

    def _chosen(
        self, words: list[str], frequency: NDArray[np.int64], n_documents: int
    ) -> NDArray[np.int64]:
        """The numbers of the words of the vocabulary, in the order of the alphabet."""
        if n_documents == 0:
            raise ValueError("the corpus is empty: at least 2 documents are needed")
        telling = self._telling(words, frequency, n_documents)
        usable = telling & (frequency >= self.min_df)
        everywhere = frequency == n_documents
        if not usable.any() and everywhere.any() and everywhere.all() and n_documents > 1:
            raise ValueError(
                f"all {n_documents} documents are the same, or have the same words: "
                "at least 2 different ones are needed to fit"
            )
        if not usable.any():
            raise ValueError(
                f"no word is left for the vocabulary: of {len(words)} different words in "
                f"{n_documents} documents, all are stop words or occur in more than max_df="
                f"{self.max_df} of them or in fewer than min_df={self.min_df}"
            )
        ranked = sorted(np.flatnonzero(usable), key=lambda j: (-frequency[j], words[j]))
        chosen = np.array(sorted(ranked[: self.max_words], key=lambda j: words[j]))
        self.coverage_ = float(frequency[chosen].sum() / frequency[telling].sum())
        return chosen

    def transform(self, texts: Iterable[str]) -> sparse.csr_matrix:
        """Weigh documents; words not in the vocabulary do not count."""
        return self._weigh(count_words(texts, self._counter), len(self.words_))

    def _set_vocabulary(
        self, spellings: list[str], columns: NDArray[np.int32] | None, idf: NDArray[np.float64]
    ) -> None:
        self.spellings_, self.columns_ = spellings, columns
        self.idf_ = np.asarray(idf, dtype=np.float64)
        self._counter: Counter = make_counter(spellings, self._analyzer.token_pattern)
        if columns is not None:
            self._counter = StemmedCounter(self._counter, columns)
        self.words_ = self._counter.words()

    def _weigh(
        self, counts: Counts, n_words: int, chosen: NDArray[np.int64] | None = None
    ) -> sparse.csr_matrix:
        shape = (len(counts.ends) - 1, n_words)
        matrix = sparse.csr_matrix((counts.values, counts.numbers, counts.ends), shape=shape)
        matrix.has_canonical_format = True  # each word of a document once, in order
        if chosen is not None:
            matrix = matrix[:, chosen]
            matrix.sort_indices()
        matrix.data *= self.idf_[matrix.indices]
        return unit_rows(matrix)


def unit_rows(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Scale every row of a matrix (n_documents, n_words) to length 1; rows of zeros stay zero.

    >>> unit_rows(sparse.csr_matrix([[3.0, 4.0], [0.0, 0.0]])).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    n_values = np.diff(matrix.indptr)
    filled = n_values > 0
    sums = np.add.reduceat(np.square(matrix.data), matrix.indptr[:-1][filled])
    lengths = np.sqrt(sums)
    lengths[lengths == 0] = 1
    scaled = matrix.copy()
    scaled.data /= np.repeat(lengths, n_values[filled])
    return scaled
