"""Text → terms: the language, stemming and stop words of a model and of its index.

Models count *tokens*, which :mod:`boltzhash.text.tokens` cuts: a vocabulary of them is closed. An index
has postings of *terms*, which :mod:`boltzhash.text.names` cuts: none is left out, since a person's query
should find what a person has written.

**Stems and accents.** A term of letters alone is stemmed, parts and wholes alike: whoever types
``temporaryfile`` in lower case has written a plain word, and must find ``TemporaryFile``. Numbers, words
with digits, and wholes with their signs (``asyncio.gather``, ``max_iter``) stay as they are. Accents of
Latin and Greek letters go after stemming, which needs them: "café" is found by "cafe". Cyrillic keeps
its letters but for ё, which is rarely written.

**Stop words** are no tokens of a vocabulary. In an index they are terms like others, and are left out of
a question only if something else remains: "to be or not to be" can be asked.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import Stemmer

from boltzhash.text.names import Cut, core_of, cut_word, plain_term
from boltzhash.text.stopwords import function_words
from boltzhash.text.tokens import compile_pattern, fold, tokenize

NO_LANGUAGE = "none"
_RULES = 1  # to be raised when the same text gives other terms or counts

_MOST_KNOWN = 100_000  # words whose terms are remembered, before all are forgotten
_LONGEST_KNOWN = 64
_MOST_TERMS_KNOWN = 8  # a sentence of a script without spaces has more, and does not come back

_UNSTEMMED = re.compile(r"[\d._:+#-]")
_ACCENTS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+|(?<=е)\u0308")
_LETTERS_WITH_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"}
)


class Analyzer:
    """Cuts texts into the tokens of models and the terms of indexes; several threads may use it.

    Parameters
    ----------
    language
        A language of Snowball, whose words are stemmed and whose function words are stop words, if
        :mod:`boltzhash.text.stopwords` lists them. ``"none"`` or None: neither.
    stem
        False if words stay as they are written.
    stop_words
        Instead of those of the language.
    token_pattern
        A regular expression of tokens, instead of :func:`tokenize`'s rule.

    Examples
    --------
    >>> Analyzer().terms("Reading files: asyncio.gather, TemporaryFile")
    ['read', 'file', 'asyncio', 'gather', 'temporaryfil', 'asyncio.gather', 'temporari', 'file']
    >>> Analyzer("none").terms("Reading files")
    ['reading', 'files']
    """

    def __init__(
        self,
        language: str | None = "english",
        *,
        stem: bool = True,
        stop_words: Iterable[str] | None = None,
        token_pattern: str | None = None,
    ) -> None:
        self.language = NO_LANGUAGE if language is None else language
        own = [] if self.language == NO_LANGUAGE else function_words(self.language)
        self.stop_words = (
            frozenset(map(fold, own)) if stop_words is None else _tokens_of_all(stop_words)
        )
        self.token_pattern = compile_pattern(token_pattern)
        self._settings = {
            "language": self.language,
            "stem": stem,
            "stop_words": None if stop_words is None else self.stop_words,
            "token_pattern": token_pattern,
        }
        self._stemmer: Stemmer.Stemmer | None = None
        if stem and self.language != NO_LANGUAGE:
            self._stemmer = Stemmer.Stemmer(self.language, 0)  # we remember what it said
        self._one_at_a_time = threading.Lock()  # a stemmer works in place
        self._stop_stems = frozenset(self._stemmed(sorted(self.stop_words)))
        self._remembered = _Remembered({}, {})

    def __repr__(self) -> str:
        return f"Analyzer({self.language!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self._settings

    def __setstate__(self, settings: dict[str, Any]) -> None:
        self.__init__(**settings)  # type: ignore[misc]

    @property
    def is_stemming(self) -> bool:
        return self._stemmer is not None

    def fingerprint(self) -> str:
        """What an index was made with; with another fingerprint its terms may be others.

        >>> Analyzer("none").fingerprint()
        'words 1, language none'
        """
        stemmer = f", PyStemmer {Stemmer.version()}" if self._stemmer is not None else ""
        return f"words {_RULES}, language {self.language}{stemmer}"

    # Models

    def stems(self, tokens: Sequence[str]) -> list[str]:
        """The stem of each token.

        >>> Analyzer().stems(["sorts", "sorting"])
        ['sort', 'sort']
        """
        if self._stemmer is None:
            return list(tokens)
        with self._one_at_a_time:
            return list(self._stemmer.stemWords(list(tokens)))

    # Indexes

    def terms(self, text: str) -> list[str]:
        """The terms of a text: those of :meth:`terms_in_order`, then those that come beside them."""
        terms: list[str] = []
        beside: list[str] = []
        known = self._remembered.cuts
        for word in text.split():
            cut = known.get(word) or self._cut(word)
            terms += cut[0]
            if cut[1]:
                beside += cut[1]
        return terms + beside

    def terms_in_order(self, text: str) -> list[str]:
        """The terms of a text one after the other, without those that stand for several or for a part.

        Phrases are made of these.

        >>> Analyzer().terms_in_order("a TemporaryFile of numpy.linalg")
        ['a', 'temporaryfil', 'of', 'numpi', 'linalg']
        """
        known = self._remembered.cuts
        cuts = (known.get(word) or self._cut(word) for word in text.split())
        return [term for cut in cuts for term in cut.in_order]

    def terms_of_words(self, words: Sequence[str]) -> tuple[list[str], list[int]]:
        """The terms of many words, which hold no blank, one word after the other; how many each has.

        They are those of :meth:`terms`, faster for words that were not seen before.

        >>> Analyzer().terms_of_words(["Reading", "asyncio.gather,", "!"])
        (['read', 'asyncio', 'gather', 'asyncio.gather'], [1, 3, 0])
        """
        terms: list[str] = []
        sizes: list[int] = []
        for word in words:
            core = core_of(word)
            plain = plain_term(core)
            own = (plain,) if plain is not None else sum(cut_word(core), ())
            terms += own
            sizes.append(len(own))
        return self._stemmed(terms), sizes

    def terms_asked_for(self, text: str) -> Cut:
        """The terms of a text without stop words, or with them if there are no others.

        Stop words are known by their spelling, since the stem of "mining" is one of them."""
        cuts = [cut_word(core_of(word)) for word in text.split()]
        in_order = [term for cut in cuts for term in cut.in_order]
        beside = [term for cut in cuts for term in cut.beside if term not in self.stop_words]
        telling = [term for term in in_order if term not in self.stop_words]
        return Cut(tuple(self._stemmed(telling or in_order)), tuple(self._stemmed(beside)))

    def words_having(self, terms: Iterable[str], words: set[str]) -> set[str]:
        """Those of some words, which hold no blank, that have any of some terms.

        It looks up which words a term is known to stand in, rather than the terms of every word.

        >>> sorted(Analyzer().words_having({"read"}, {"Reading,", "writes", "read_csv"}))
        ['Reading,', 'read_csv']
        """
        remembered = self._remembered
        having = set()
        for word in words.difference(remembered.cuts):
            if not self._cut(word).terms().isdisjoint(terms):
                having.add(word)
        for term in terms:
            having.update(words.intersection(remembered.words.get(term, ())))
        return having

    def are_telling(self, terms: Sequence[str]) -> list[bool]:
        """Of terms of a text, whether each counts as length: stop words do not.

        >>> Analyzer().are_telling(["the", "csv"])
        [False, True]
        """
        weightless = self._stop_stems
        return [term not in weightless for term in terms]

    def _cut(self, word: str) -> Cut:
        """The terms of a word, remembered since texts repeat themselves."""
        remembered = self._remembered
        core = core_of(word)
        stemmed = remembered.cuts.get(core)
        if stemmed is None:
            in_order, beside = cut_word(core)
            stemmed = Cut(tuple(self._stemmed(in_order)), tuple(self._stemmed(beside)))
        if len(word) <= _LONGEST_KNOWN and len(stemmed.in_order) <= _MOST_TERMS_KNOWN:
            if len(remembered.cuts) >= _MOST_KNOWN:
                remembered = self._remembered = _Remembered({}, {})
            for term in stemmed.terms():
                remembered.words.setdefault(term, set()).add(word)
            remembered.cuts[word] = stemmed
        return stemmed

    def _stemmed(self, terms: Iterable[str]) -> list[str]:
        terms = list(terms)
        if self._stemmer is not None:
            rows = [i for i, t in enumerate(terms) if t.isalpha() or not _UNSTEMMED.search(t)]
            stems = self.stems([terms[row] for row in rows])
            for row, stem in zip(rows, stems, strict=True):
                terms[row] = stem or terms[row]
        return [term if term.isascii() else _without_accents(term) for term in terms]


@functools.cache
def analyzer_of(language: str | None) -> Analyzer:
    """One for all collections of a language: it remembers stems."""
    return Analyzer(language)


class _Remembered(NamedTuple):
    """The terms of words, and the words of each term. They are forgotten together."""

    cuts: dict[str, Cut]
    words: dict[str, set[str]]


def _tokens_of_all(stop_words: Iterable[str]) -> frozenset[str]:
    if isinstance(stop_words, str):
        raise ValueError(
            f"stop_words must be a list of words or None, got the string {stop_words!r}; "
            "language= chooses a ready-made list"
        )
    stop_words = list(stop_words)
    if not all(isinstance(word, str) for word in stop_words):
        raise ValueError(f"stop_words must be a list of words or None, got {stop_words!r}")
    return frozenset(token for word in stop_words for token in tokenize(word))


def _without_accents(term: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", term))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS_WITH_STROKES)
