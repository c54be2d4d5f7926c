"""Text → the words by which an inverted index finds it, and a question → what it asks for.

Words here are not the tokens that models count (:mod:`boltzhash.text.tokens`): no vocabulary is closed,
and what a person might type should find what a person has written.

**What is a word.** Letters and digits, folded to one spelling, in order. Single letters and digits are
words as well: "vitamin C", "R" and "figure 5" are asked for, and where a letter stands everywhere its
idf makes it weightless. Only beside an apostrophe they are dropped ("cat's", "don't", "l'eau"). ``C++``
and ``C#`` are words. Scripts without spaces are cut into pairs of characters.

**Names whole and in parts.** Letters joined by points, ``::``, hyphens or underscores are read as one
name. Its parts are words, in order: ``numpy.linalg.inv`` gives numpy, linalg and inv. The whole comes
beside them, and of three parts or more also the last two (people write ``linalg.inv``). A hyphen's whole
is written together, so "e-mail" and "email" meet. In camel case it is the other way round: the whole is
the word, since "JavaScript" and "javascript" are one, and its parts come beside it. A sentence whose
full stop lacks its blank ("file.Read") costs one rare word more and no other harm. Single letters with
points are one word: "U.S." and "US", "e.g." and "eg".

**Stems and accents.** What consists of letters alone is stemmed, parts and wholes alike: whoever types
``temporaryfile`` in lower case has written a plain word, and must find ``TemporaryFile``. Numbers, words
with digits, and wholes with their signs (``asyncio.gather``, ``max_iter``) stay as they are. Accents of
Latin and Greek letters go after stemming, which needs them: "café" is found by "cafe". Cyrillic keeps
its letters but for ё, which is rarely written.

**Stop words** are words of the index like others, and are left out of a question only if something else
remains: "to be or not to be" can be asked.

**Names of documents.** Words of the id and the title count several times. The id as a whole is a word of
its own, once as written and once folded, and a question asks for itself in the same two ways: who types
an exact name gets it first, and its case decides between names that differ in nothing else.
"""

from __future__ import annotations

import functools
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import Stemmer

from boltzhash.corpus import Document
from boltzhash.corpus.documents import Id
from boltzhash.text.stopwords import function_words
from boltzhash.text.tokens import MARKS, UNSPACED, fold, tokenize

TITLE_FIELDS = ("title", "name", "subject")
NAME_WEIGHT = 3  # how often a word of the id or of a title counts
EXACT_WEIGHT = 30  # the same for the id as a whole: much, since a long text waters it down
_RULES = 1  # to be raised when the same text gives other words or counts

_MOST_KNOWN = 100_000  # tokens whose words are remembered, before all are forgotten
_LONGEST_KNOWN = 64
_MOST_WORDS_KNOWN = 8  # a sentence of a script without spaces has more, and does not come back
_LONGEST_WORD = 128  # what is longer is no word; its beginning is kept
_LONGEST_NAME = 1000  # of an exact id
_MOST_CAMEL_PARTS = 8  # more humps than that has base64, not a name

# A chunk is what is cut further by itself: a name with all its parts, or a run of an unspaced script.
_LANGUAGE_NAME = r"[A-Za-z](?:\+\+|#)"  # C++, C#
_FIRST = f"(?![{UNSPACED}])\\w"
_LETTER = f"(?:{_FIRST}|[{MARKS}])"
_CHUNKS = re.compile(
    f"[{UNSPACED}]+|{_LANGUAGE_NAME}|{_FIRST}{_LETTER}*(?:(?:[.'-]|::){_LETTER}+)*"
)
# The same for ASCII, faster.
_ASCII_CHUNKS = re.compile(f"{_LANGUAGE_NAME}|[A-Za-z0-9_]+(?:(?:[.'-]|::)[A-Za-z0-9_]+)*")
_AROUND_WORDS = ".,;:!?()[]{}<>\"'`*/"  # never the first or last character of a chunk
# Signs that are written in several ways, and some that are not seen at all.
_SIGNS = str.maketrans({"’": "'", "ʼ": "'", "‐": "-", "\u00ad": "", "\u200d": "", "\u2060": ""})
_PLAIN = re.compile("[a-z]+|[A-Z][a-z]*|[A-Z]+s?|[0-9]+")  # nothing to cut: most of any text
_HYPHENATED = re.compile(f"(?:{_PLAIN.pattern})(?:-(?:{_PLAIN.pattern}))+")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]")
_POINTS = re.compile(r"\.|::")
_LAST_TWO = re.compile(r"[^.:]+(?:\.|::)[^.:]+$")
_HUMPS = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")
_PLURAL = re.compile("[A-Z]{2,}s")  # URLs

_UNSTEMMED = re.compile(r"[\d._:+#-]")
_ACCENTS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+|(?<=е)\u0308")
_LETTERS_WITH_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"}
)

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»＂", '"'))
_QUOTED = re.compile(r'((?<!\S)-)?(?<![0-9])"([^"]*)"')  # after a digit it is an inch
_OPERATORS = '-" '
_MOST_TYPED = 32  # words of a question that may have operators
_EXACT = ("=", "~")  # before an id as it is written, and folded
_BLANK = "␣"  # in an id that is one word
_OF_BLANKS = re.compile('[ "]')


class WordQuery(NamedTuple):
    """What a question asks for, in words of :class:`Words`."""

    words: Counter[str]  # wanted, by how often they were asked for
    phrases: list[list[str]]  # each must occur, its words one after the other
    excluded: frozenset[str]  # must not occur
    excluded_phrases: Sequence[Sequence[str]] = ()  # must not occur one after the other
    beside: frozenset[str] = frozenset()  # of the words, those that stand for several or for a part

    def is_empty(self) -> bool:
        """Whether nothing is wanted, so that there is nothing to search for.

        >>> words = Words()
        >>> [words.query(text).is_empty() for text in ("bread", "-bread", '- ""')]
        [False, True, True]
        """
        return not self.words and not self.phrases


class Words:
    """How texts become the words of an inverted index.

    Parameters
    ----------
    language
        Whose words are stemmed (a language of Snowball) and whose stop words are left out of questions
        (if :mod:`boltzhash.text.stopwords` has them). ``"none"`` or None: neither.

    Examples
    --------
    >>> Words().of("Reading files: asyncio.gather, TemporaryFile")
    ['read', 'file', 'asyncio', 'gather', 'temporaryfil', 'asyncio.gather', 'temporari', 'file']
    >>> Words("none").of("Reading files")
    ['reading', 'files']

    It may be used from several threads.
    """

    def __init__(self, language: str | None = "english") -> None:
        self.language = language if language is not None else "none"
        self._stemmer: Stemmer.Stemmer | None = None
        if self.language != "none":
            if self.language not in Stemmer.algorithms():
                raise ValueError(
                    f"language must be one of {', '.join(Stemmer.algorithms())}, or none "
                    f"(words stay as they are written), got {language!r}"
                )
            self._stemmer = Stemmer.Stemmer(self.language, 0)  # we remember what it said
        self._one_at_a_time = threading.Lock()  # a stemmer works in place
        listed = function_words(self.language) if self.language != "none" else []
        self._stop_words = frozenset(fold(word) for word in listed)
        self._stop_stems = frozenset(self._stems(sorted(self._stop_words)))
        self._remembered = _Remembered({}, {})
        self._last_query: tuple[str, WordQuery] | None = None

    def __repr__(self) -> str:
        return f"Words({self.language!r})"

    def __reduce__(self) -> tuple[type[Words], tuple[str]]:
        return Words, (self.language,)

    def fingerprint(self) -> str:
        """What an index was made with; with another fingerprint its words may be others.

        >>> Words("none").fingerprint()
        'words 1, language none'
        """
        stemmer = f", PyStemmer {Stemmer.version()}" if self._stemmer is not None else ""
        return f"words {_RULES}, language {self.language}{stemmer}"

    def of(self, text: str) -> list[str]:
        """The index words of a text: those of :meth:`in_order`, then those that come beside them."""
        words: list[str] = []
        beside: list[str] = []
        known = self._remembered.cuts
        for token in text.split():
            cut = known.get(token) or self._cut(token)
            words += cut[0]
            if cut[1]:
                beside += cut[1]
        return words + beside

    def in_order(self, text: str) -> list[str]:
        """The words of a text one after the other, without those that stand for several or for a part.

        Phrases are made of these.

        >>> Words().in_order("a TemporaryFile of numpy.linalg")
        ['a', 'temporaryfil', 'of', 'numpi', 'linalg']
        """
        known = self._remembered.cuts
        cuts = (known.get(token) or self._cut(token) for token in text.split())
        return [word for cut in cuts for word in cut.in_order]

    def tokens_having(self, words: Iterable[str], tokens: set[str]) -> set[str]:
        """Those of some tokens, which hold no blank, that have any of some words of the index.

        It looks up which tokens a word is known to stand in, rather than the words of every token.

        >>> sorted(Words().tokens_having({"read"}, {"Reading,", "writes", "read_csv"}))
        ['Reading,', 'read_csv']
        """
        remembered = self._remembered
        new = {token: self._cut(token) for token in tokens.difference(remembered.cuts)}
        having = {token for token, cut in new.items() if not cut.words().isdisjoint(words)}
        for word in words:
            having.update(tokens.intersection(remembered.tokens.get(word, ())))
        return having

    def counts(self, document: Document) -> Counter[str]:
        """How often each word counts in a document: once in its text, more often in its names.

        >>> counts = Words().counts(Document("csv.reader", "Reads rows.", {"title": "Rows"}))
        >>> counts["csv.reader"], counts["=csv.reader"], counts["row"]
        (3, 30, 4)
        """
        counts = Counter(self.of(document.text))
        for title in titles_of(document):
            for word in self.of(title):
                counts[word] += NAME_WEIGHT
        for word in self.of(name_of(document.id)):
            counts[word] += NAME_WEIGHT
        for word in exact_of(document.id):
            counts[word] += EXACT_WEIGHT
        return counts

    def of_tokens(self, tokens: Sequence[str]) -> tuple[list[str], list[int]]:
        """The words of many tokens that hold no blank, one token after the other; how many each has.

        They are those of :meth:`of`, faster for tokens that were not seen before.

        >>> Words().of_tokens(["Reading", "asyncio.gather,", "!"])
        (['read', 'asyncio', 'gather', 'asyncio.gather'], [1, 3, 0])
        """
        words: list[str] = []
        sizes: list[int] = []
        for token in tokens:
            core = token.strip(_AROUND_WORDS)
            if _PLAIN.fullmatch(core):
                words.append(core.lower()[:_LONGEST_WORD])
                sizes.append(1)
            else:
                in_order, beside = _cut(core)
                words += in_order
                words += beside
                sizes.append(len(in_order) + len(beside))
        return self._all_stems(words), sizes

    def has_phrase(self, document: Document, phrase: Sequence[str]) -> bool:
        """Whether a phrase of a query occurs in the text or in a name of a document.

        >>> document = Document(1, "The cat's toys", {"title": "Of cats"})
        >>> query = Words().query('"cat toy" "of cat"')
        >>> [Words().has_phrase(document, phrase) for phrase in query.phrases]
        [True, True]
        """
        texts = (document.text, *_names(document))
        return any(has_phrase(self.in_order(text), phrase) for text in texts)

    def query(self, text: str) -> WordQuery:
        """What a question asks for.

        Words in quotes must occur as they stand there, a word or quotes with a minus before them must
        not; all else is wanted. A minus is one only before a word of two letters or more: ``ls -l`` and
        ``-5`` have none. A quote without its counterpart is a blank. In more than 32 words quotes and
        minuses are punctuation: nobody types that many to search, people paste prose.

        >>> query = Words().query('read a "csv file" -pandas')
        >>> query.phrases, query.excluded
        ([['csv', 'file']], frozenset({'panda'}))
        >>> sorted(query.words)[1:-1]
        ['csv', 'file', 'read']
        """
        last = self._last_query
        if last is None or last[0] != text:  # who searches asks again, to mark what was found
            last = self._last_query = (text, self._query(text))
        return last[1]

    def _query(self, text: str) -> WordQuery:
        plain = text.translate(_QUOTES)
        is_prose = len(plain.split()) > _MOST_TYPED
        if is_prose:
            plain = plain.replace('"', " ")
        wanted, phrases, unwanted = [], [], []
        for minus, quoted in _QUOTED.findall(plain):
            if minus:
                unwanted.append(quoted)
            else:
                wanted.append(quoted)
                phrases.append(self.in_order(quoted))
        for token in _QUOTED.sub(" ", plain).replace('"', " ").split():
            if not is_prose and token[0] == "-" and self._can_be_excluded(token[1:]):
                unwanted.append(token[1:])
            else:
                wanted.append(token)
        in_order, beside = self._asked_for(" ".join(wanted))
        words = Counter(in_order + beside)
        if any(c.isprintable() and c not in _OPERATORS for token in wanted for c in token):
            words.update(_exact(text))
        excluded, excluded_phrases = self._excluded(unwanted)
        phrases = [phrase for phrase in phrases if phrase]
        only_beside = frozenset(beside).difference(in_order)
        return WordQuery(words, phrases, excluded, excluded_phrases, only_beside)

    def like(self, document: Document) -> WordQuery:
        """What asks for documents like this one: its words, whatever signs stand around them.

        >>> sorted(Words().like(Document("csv.reader", 'Reads "all the" rows -fast')).words)
        ['csv', 'csv.reader', 'fast', 'read', 'reader', 'row']
        """
        in_order, beside = self._asked_for(" ".join([document.text, *_names(document)]))
        only_beside = frozenset(beside).difference(in_order)
        return WordQuery(Counter(in_order + beside), [], frozenset(), beside=only_beside)

    def length(self, counts: Counter[str]) -> int:
        """How long a document of these counts is, for BM25: stop words and exact ids do not count.

        >>> Words().length(Counter({"the": 5, "csv": 2, "=csv": 3}))
        2
        """
        weightless = self._stop_stems
        return sum(
            count
            for word, count in counts.items()
            if word not in weightless and not word.startswith(_EXACT)
        )

    def are_telling(self, words: Sequence[str]) -> list[bool]:
        """Of words of a text, whether each counts for :meth:`length`.

        >>> Words().are_telling(["the", "csv"])
        [False, True]
        """
        weightless = self._stop_stems
        return [word not in weightless for word in words]

    def _asked_for(self, text: str) -> _Cut:
        """The words of a text without stop words, or with them if there are no others.

        Stop words are known by their spelling, since the stem of "mining" is one of them."""
        cuts = [_cut(token) for token in text.split()]
        in_order = [word for cut in cuts for word in cut.in_order]
        beside = [word for cut in cuts for word in cut.beside]
        telling = [word for word in in_order if word not in self._stop_words]
        beside = [word for word in beside if word not in self._stop_words]
        return _Cut(self._stems(telling or in_order), self._stems(beside))

    def _can_be_excluded(self, token: str) -> bool:
        return token[:1].isalpha() and any(
            len(word) > 1 or not word.isascii() for word in self.in_order(token)
        )

    def _excluded(self, texts: list[str]) -> tuple[frozenset[str], list[list[str]]]:
        """A name is excluded as a whole; what has no whole, as a phrase."""
        words, phrases = set(), []
        for text in texts:
            in_order = self.in_order(text)
            whole = next(iter(self.of(text)[len(in_order) :]), None)
            if len(in_order) == 1:
                words.add(in_order[0])
            elif whole is not None and not re.search(r"\s", text):
                words.add(whole)
            elif in_order:
                phrases.append(in_order)
        return frozenset(words), phrases

    def _cut(self, token: str) -> _Cut:
        """The words of what stands between two blanks, remembered since texts repeat themselves."""
        remembered = self._remembered
        core = token.strip(_AROUND_WORDS)
        cut = remembered.cuts.get(core)
        if cut is None:
            raw = _cut(core)
            cut = _Cut(self._stems(raw.in_order), self._stems(raw.beside))
        if len(token) <= _LONGEST_KNOWN and len(cut.in_order) <= _MOST_WORDS_KNOWN:
            if len(remembered.cuts) >= _MOST_KNOWN:
                remembered = self._remembered = _Remembered({}, {})
            for word in cut.words():
                remembered.tokens.setdefault(word, []).append(token)
            remembered.cuts[token] = cut
        return cut

    def _stems(self, words: Sequence[str]) -> tuple[str, ...]:
        return tuple([_without_accents(self._stem(word)) for word in words])

    def _all_stems(self, words: list[str]) -> list[str]:
        """The same at once, in place of what is stemmed."""
        if self._stemmer is not None:
            rows = [i for i, w in enumerate(words) if w.isalpha() or not _UNSTEMMED.search(w)]
            with self._one_at_a_time:
                stems = self._stemmer.stemWords([words[row] for row in rows])
            for row, stem in zip(rows, stems, strict=True):
                words[row] = stem or words[row]
        return [word if word.isascii() else _without_accents(word) for word in words]

    def _stem(self, word: str) -> str:
        if self._stemmer is None or (not word.isalpha() and _UNSTEMMED.search(word)):
            return word
        with self._one_at_a_time:
            return str(self._stemmer.stemWord(word)) or word


@functools.cache
def words_of(language: str | None) -> Words:
    """One for all collections of a language: it remembers stems."""
    return Words(language)


def has_phrase(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether words have those of a phrase one after the other.

    >>> has_phrase(["a", "csv", "file"], ["csv", "file"]), has_phrase(["file", "csv"], ["csv", "file"])
    (True, False)
    """
    length = len(phrase)
    wanted = list(phrase)
    return not wanted or any(
        word == wanted[0] and list(words[start : start + length]) == wanted
        for start, word in enumerate(words)
    )


class _Cut(NamedTuple):
    """What a token between blanks is cut into."""

    in_order: tuple[str, ...]
    beside: tuple[str, ...]

    def words(self) -> set[str]:
        return {*self.in_order, *self.beside}


class _Remembered(NamedTuple):
    """The words of tokens, and the tokens of each word. They are forgotten together."""

    cuts: dict[str, _Cut]
    tokens: dict[str, list[str]]


def _cut(token: str) -> _Cut:
    """The words of a token, folded but not stemmed."""
    if _PLAIN.fullmatch(token):
        return _Cut((token.lower()[:_LONGEST_WORD],), ())
    if len(token) <= _LONGEST_WORD and _HYPHENATED.fullmatch(token):  # many an id is of this kind
        pieces = token.lower().split("-")
        return _Cut(tuple(pieces), ("".join(pieces),))
    if token.isascii():
        chunks = _ASCII_CHUNKS.findall(token)
    else:
        chunks = _CHUNKS.findall(unicodedata.normalize("NFKC", token).translate(_SIGNS))
    in_order: list[str] = []
    beside: list[str] = []
    for chunk in chunks:
        _cut_chunk(chunk, in_order, beside)
    if token.isascii() and len(token) <= _LONGEST_WORD:  # and so are its words
        return _Cut(tuple(in_order), tuple(beside))
    return _Cut(
        tuple(word[:_LONGEST_WORD] for word in in_order),
        tuple(word for word in beside if len(word) <= _LONGEST_WORD),
    )


def _cut_chunk(chunk: str, in_order: list[str], beside: list[str]) -> None:
    if _UNSPACED_RUN.match(chunk):
        in_order.extend(tokenize(chunk))
    elif chunk[-1] in "+#":
        in_order.append(chunk.lower())
    else:
        runs = chunk.split("'")
        for run in [run for run in runs if len(run) > 1] or runs:
            _cut_at_points(run, in_order, beside)


def _cut_at_points(run: str, in_order: list[str], beside: list[str]) -> None:
    segments = _POINTS.split(run) if "." in run or ":" in run else [run]
    if len(segments) > 1 and all(len(s) == 1 and s.isalpha() for s in segments):
        in_order.append(fold("".join(segments)))  # U.S.A
        return
    if len(segments) > 1:
        whole = fold(run)
        beside.append(whole)
        if len(segments) > 2:
            beside.extend(_LAST_TWO.findall(whole))
    for segment in segments:
        pieces = segment.split("-")
        if len(pieces) > 1:
            beside.append(fold("".join(pieces)))
        for piece in pieces:
            _cut_at_underscores(piece, in_order, beside)


def _cut_at_underscores(piece: str, in_order: list[str], beside: list[str]) -> None:
    """Outer underscores are emphasis (_so_) and left out, but for Python's ``__init__``."""
    parts = [part for part in piece.split("_") if part]
    special = piece.startswith("__") and piece.endswith("__")
    if len(parts) > 1 or (parts and special):
        beside.append(fold(piece if special else piece.strip("_")))
    for part in parts:
        in_order.append(fold(part))
        if part.islower() or part.isdigit():
            continue  # without humps, as most are
        humps = _HUMPS.split(part)
        if 1 < len(humps) <= _MOST_CAMEL_PARTS and not _PLURAL.fullmatch(part):
            beside.extend(fold(hump) for hump in humps if len(hump) > 1)


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare).translate(_LETTERS_WITH_STROKES)


def _names(document: Document) -> Iterator[str]:
    """The id and the titles; a number says nothing, also where it is written as a string."""
    if name := name_of(document.id):
        yield name
    yield from titles_of(document)


def name_of(id_: Id) -> str:
    """What of an id says something; nothing of a number.

    >>> name_of("csv.reader"), name_of("7"), name_of(7)
    ('csv.reader', '', '')
    """
    return id_ if isinstance(id_, str) and not id_.isdecimal() else ""


def exact_of(id_: Id) -> list[str]:
    """An id as one word, as it is written and folded; a number has none, unless it is a string.

    >>> exact_of("Moon 7"), exact_of(7)
    (['=Moon␣7', '~moon␣7'], [])
    """
    if not isinstance(id_, str):
        return []
    if id_.isascii() and id_.isprintable() and not _OF_BLANKS.search(id_):  # as most are
        return [_EXACT[0] + id_, _EXACT[1] + id_.lower()] if 0 < len(id_) <= _LONGEST_NAME else []
    return _exact(id_)


def titles_of(document: Document) -> Iterator[str]:
    """Those of its metadata whose words count more.

    >>> list(titles_of(Document(1, "text", {"title": "A name", "year": 2020})))
    ['A name']
    """
    if document.metadata:
        for field in TITLE_FIELDS:
            title = document.metadata.get(field)
            if isinstance(title, str):
                yield title


def _exact(name: str) -> list[str]:
    """A name as one word, as it is written and folded; no other word has their first characters."""
    name = name[: 2 * _LONGEST_NAME].strip().strip('"')
    if not name.isascii():
        name = name.encode(errors="replace").decode()  # half a surrogate pair cannot be stored
    written, folded = [_BLANK.join(spelling.split()) for spelling in (name, fold(name))]
    if not written or len(written) > _LONGEST_NAME:
        return []
    return [_EXACT[0] + written, _EXACT[1] + folded]
