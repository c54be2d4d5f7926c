"""The terms of an inverted index, and what a question asks for."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from boltzhash.corpus import Document
from boltzhash.text import analyzer as analyzer_module
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.fields import EXACT_WEIGHT, NAME_WEIGHT, term_counts
from boltzhash.text.queries import are_in_order, has_phrase, parsed

ENGLISH = Analyzer("english")
PLAIN = Analyzer("none")

# What a text is cut into: the words in order, and those that come beside them.
CUT = {
    "prose": ("Read the File, please!", "read the file please", ""),
    "a name with points": ("asyncio.gather", "asyncio gather", "asyncio.gather"),
    "of three parts": ("numpy.linalg.inv", "numpy linalg inv", "numpy.linalg.inv linalg.inv"),
    "of C++": ("std::vector", "std vector", "std::vector"),
    "one that cannot be cut": ("genfromtxt", "genfromtxt", ""),
    "camel case": ("TemporaryFile", "temporaryfile", "temporary file"),
    "lower camel case": ("readLine", "readline", "read line"),
    "capitals before a word": ("HTTPServer", "httpserver", "http server"),
    "capitals after words": ("GridSearchCV", "gridsearchcv", "grid search cv"),
    "digits in camel case": ("Base64Encoder", "base64encoder", "base64 encoder"),
    "capitals and digits": ("SHA256 A1B2C3", "sha256 a1b2c3", ""),
    "a lone letter is no part": ("iPhone", "iphone", "phone"),
    "capitals in the plural": ("URLs", "urls", ""),
    "base64 is no name": ("aBcDeFgHiJkLmNoPqRsT", "abcdefghijklmnopqrst", ""),
    "underscores": ("max_iter", "max iter", "max_iter"),
    "outer underscores": ("_so_ ______", "so", ""),
    "a special name": ("__init__", "init", "__init__"),
    "all at once": (
        "sklearn.svm.LinearSVC.max_iter",
        "sklearn svm linearsvc max iter",
        "sklearn.svm.linearsvc.max_iter linearsvc.max_iter linear svc max_iter",
    ),
    "hyphens": ("e-mail state-of-the-art", "e mail state of the art", "email stateoftheart"),
    "typographic hyphens": ("e\u2010mail e\u2011mail", "e mail e mail", "email email"),
    "a soft hyphen is not there": ("data\u00adbase", "database", ""),
    "a dash is no hyphen": ("this--that", "this that", ""),
    "points that end": ("A file.", "a file", ""),
    "an ellipsis": ("wait...what", "wait what", ""),
    "a full stop without its blank": ("the file.Read it", "the file read it", "file.read"),
    "letters with points": ("U.S. e.g. U.S.A.", "us eg usa", ""),
    "apostrophes": ("the cat's, don't, l'eau, O’Neil", "the cat don eau neil", ""),
    "letters and digits": ("vitamin C, R, figure 5", "vitamin c r figure 5", ""),
    "programming languages": ("C++ and C#.", "c++ and c#", ""),
    "numbers": ("3.14 2024-05-01", "3 14 2024 05 01", "3.14 20240501"),
    "paths": ("/usr/lib/python3.11", "usr lib python3 11", "python3.11"),
    "accents": ("naïve café cafe\u0301 Ångström", "naive cafe cafe angstrom", ""),
    "letters with strokes": ("Łódź smørrebrød Æsir", "lodz smorrebrod aesir", ""),
    "German": ("Größe der STRASSE, Straße", "grosse der strasse strasse", ""),
    "Greek": ("ΛΟΓΟΣ λόγος", "λογοσ λογοσ", ""),
    "Russian keeps its letters": ("Мой ёж, еж", "мой еж еж", ""),
    "Turkish": ("ISIRGAN ısırgan İstanbul", "isirgan isirgan istanbul", ""),
    "Hindi": ("हिन्दी भाषा।", "हिन्दी भाषा", ""),
    "Korean has spaces": ("한국어 문장", "한국어 문장", ""),
    "Japanese": ("東京タワーへ", "東京 京タ タワ ワー ーへ", ""),
    "Chinese among letters": ("Python编程, 水", "python 编程 水", ""),
    "Thai": ("ภาษา", "ภา าษ ษา", ""),
    "full width": ("ＡＢＣ．ｄｅｆ", "abc def", "abc.def"),
    "nothing": ("… – !? \u0301 🙂", "", ""),
}


@pytest.mark.parametrize(("text", "in_order", "beside"), CUT.values(), ids=CUT.keys())
def test_a_text_is_cut(text: str, in_order: str, beside: str) -> None:
    assert PLAIN.terms_in_order(text) == in_order.split()
    assert PLAIN.terms(text) == [*in_order.split(), *beside.split()]


# Spellings that find each other.
SAME = {
    "english": ["file files", "reading reads", "mining mined", "email e-mails", "URL URLs"],
    "german": ["Häuser haus", "Straßen STRASSE", "Bücher Buch"],
    "french": ["écoles ecole", "e\u0301cole école", "français francais", "chevaux cheval"],
    "spanish": ["canción canciones", "corazón corazon"],
    "russian": ["книги книга", "ёлка елка"],
    "finnish": ["talossa talon"],
    "none": ["Straße STRASSE", "ＡＢＣ abc", "U.S. US", "JavaScript javascript"],
}


@pytest.mark.parametrize(
    ("language", "pair"), [(language, pair) for language in SAME for pair in SAME[language]]
)
def test_spellings_of_one_word_meet(language: str, pair: str) -> None:
    one, other = (Analyzer(language).terms(spelling) for spelling in pair.split())
    assert set(one) & set(other)


def test_a_name_typed_in_lower_case_is_found() -> None:
    assert set(ENGLISH.terms("namedtemporaryfile")) <= set(ENGLISH.terms("NamedTemporaryFile"))


def test_parts_are_stemmed_and_wholes_with_signs_are_not() -> None:
    assert ENGLISH.terms("files.readers max_values") == [
        *("file", "reader", "max", "valu"),
        *("files.readers", "max_values"),
    ]


def test_what_has_digits_is_not_stemmed() -> None:
    assert ENGLISH.terms("files2 x86s 1990s") == ["files2", "x86s", "1990s"]


def test_no_language_is_none() -> None:
    assert Analyzer(None).terms("Reading the files") == Analyzer("none").terms("Reading the files")
    assert "the" in parsed("the files", Analyzer(None)).terms


@pytest.mark.parametrize("language", ["klingon", "", "English"])
def test_a_language_that_does_not_exist_is_refused(language: str) -> None:
    with pytest.raises(ValueError, match=r"one of .*english, .*swedish.* or None .*got"):
        Analyzer(language)


@pytest.mark.parametrize("language", Stemmer.algorithms())
def test_any_text_has_words_in_every_language(language: str) -> None:
    words = Analyzer(language)

    @given(st.text())
    def all_have_letters(text: str) -> None:
        assert all(words.terms(text))

    all_have_letters()


def test_a_very_long_word_is_cut_off_and_found() -> None:
    word = "ab" * 10_000
    assert ENGLISH.terms(word) == ENGLISH.terms(word + "c")
    assert len(ENGLISH.terms(word)[0]) < 200
    assert max(map(len, ENGLISH.terms("a.b." * 10_000))) < 200


# Documents


def test_names_count_more_than_text() -> None:
    document = Document("csv.reader", "A csv file.", {"title": "Rows", "name": "Row", "n": "file"})
    assert term_counts(document, ENGLISH) == {
        "a": 1,
        "file": 1,
        "csv": 1 + NAME_WEIGHT,
        "reader": NAME_WEIGHT,
        "csv.reader": NAME_WEIGHT,
        "row": 2 * NAME_WEIGHT,
        "=csv.reader": EXACT_WEIGHT,
        "~csv.reader": EXACT_WEIGHT,
    }


def test_a_number_is_no_name() -> None:
    assert term_counts(Document(42, "bread", {"title": 7, "subject": None}), ENGLISH) == {
        "bread": 1
    }
    exact = {"=42": EXACT_WEIGHT, "~42": EXACT_WEIGHT}
    assert term_counts(Document("42", "bread"), ENGLISH) == {"bread": 1, **exact}


IDS = ["asyncio.gather", "Sort", "sort", "a long name", "[", "-v", "Ünïcode", "水", "🙂"]


@pytest.mark.parametrize("name", IDS)
def test_an_id_is_asked_for_by_itself(name: str) -> None:
    """As it is written it finds its document alone, in another case at least it."""
    exact = {word for word in parsed(f" {name} ", ENGLISH).terms if word[0] in "=~"}
    assert len(exact) == 2
    counts = {other: term_counts(Document(other, ""), ENGLISH) for other in IDS}
    assert exact <= set(counts[name])
    assert not any(exact <= set(counts[other]) for other in IDS if other != name)
    assert set(parsed(name.upper(), ENGLISH).terms) & exact


def test_no_other_word_looks_like_an_exact_id() -> None:
    assert ENGLISH.terms("=sort ~sort a=b ~/file") == ["sort", "sort", "a", "b", "file"]


# Questions


def wanted(text: str, words: Analyzer = ENGLISH) -> dict[str, int]:
    """The words of a question but for the question as an id."""
    return {word: n for word, n in parsed(text, words).terms.items() if word[0] not in "=~"}


def test_stop_words_are_left_out_of_a_question() -> None:
    assert wanted("How do I read a csv file?") == {"read": 1, "csv": 1, "file": 1}
    assert wanted("wait_for") == {"wait": 1, "wait_for": 1}
    assert wanted("Was ist das Brot?", Analyzer("german")) == {"brot": 1}
    assert wanted("l'école à la mer", Analyzer("french")) == {"ecol": 1, "mer": 1}


def test_a_word_whose_stem_is_a_stop_word_stays() -> None:
    assert wanted("data mining") == {"data": 1, "mine": 1}


@pytest.mark.parametrize("text", ["to be or not to be", "who is who", "The The", "a"])
def test_a_question_of_stop_words_alone_keeps_them(text: str) -> None:
    assert wanted(text) == Counter(ENGLISH.terms(text))
    assert wanted(text).keys() <= set(ENGLISH.terms(f"They sing {text} again."))


def test_words_count_as_often_as_they_are_asked_for() -> None:
    assert wanted("file files TemporaryFile") == {"file": 3, "temporaryfil": 1, "temporari": 1}


def test_words_beside_others_are_told() -> None:
    assert parsed("numpy.linalg TemporaryFile file", ENGLISH).beside == {
        "numpy.linalg",
        "temporari",
    }


def test_a_phrase_must_occur() -> None:
    query = parsed('sort "to be" and “csv files” now', ENGLISH)
    assert query.phrases == [["to", "be"], ["csv", "file"]]
    assert wanted('sort "to be" and “csv files” now') == {"sort": 1, "csv": 1, "file": 1}


PHRASES = {
    "stop words": ('"to be or not"', "To be, or not to be", "be to or not"),
    "stems": ('"csv files"', "one CSV file more", "file csv"),
    "a name": ('"asyncio.gather"', "call asyncio.gather()", "gather asyncio"),
    "around a name": ('"call asyncio"', "call asyncio.gather()", "asyncio call"),
    "a hyphen": ('"state of the art"', "our state-of-the-art model", "state the art"),
    "camel case": ('"a javascript file"', "read a JavaScript file", "a script file"),
    "Japanese": ('「東京」 "東京タワー"', "昨日東京タワーへ", "東京のタワー"),
    "an apostrophe": ('"cat\'s toy"', "the cat’s toys", "cat and toy"),
}


@pytest.mark.parametrize(("question", "has", "has_not"), PHRASES.values(), ids=PHRASES.keys())
def test_a_phrase_occurs(question: str, has: str, has_not: str) -> None:
    (phrase,) = parsed(question, ENGLISH).phrases
    assert has_phrase(Document(1, has), phrase, ENGLISH)
    assert has_phrase(Document(1, "", {"title": has}), phrase, ENGLISH)
    assert has_phrase(Document(has, ""), phrase, ENGLISH)
    assert not has_phrase(Document(1, has_not), phrase, ENGLISH)
    assert set(phrase) <= set(ENGLISH.terms(has))  # the index can choose candidates


def test_a_phrase_does_not_run_from_one_field_into_the_next() -> None:
    assert not has_phrase(Document("file", "csv", {"title": "file"}), ["csv", "file"], ENGLISH)


EXCLUDED = {
    "bread -butter": {"butter"},
    "bread -Butters, -jam.": {"butter", "jam"},
    "numpy -numpy.linalg -max_iter": {"numpy.linalg", "max_iter"},
    "file -TemporaryFile": {"temporaryfil"},
    'bread -"butter"': {"butter"},
    "水 -茶": {"茶"},
    "an e-mail": set(),
    "ls -l -a": set(),
    "minus -5 and -273": set(),
    "tar --verbose": set(),
    "bread - butter": set(),
    "bread (-butter)": set(),
    "bread\u2013butter": set(),
}


@pytest.mark.parametrize(("question", "excluded"), EXCLUDED.items())
def test_words_with_a_minus_are_excluded(question: str, excluded: set[str]) -> None:
    query = parsed(question, ENGLISH)
    assert query.excluded == excluded
    assert not query.excluded_phrases
    assert not excluded & set(query.terms)
    assert not query.is_empty()


def test_phrases_with_a_minus_are_excluded() -> None:
    query = parsed('bread -"with butter" -机器学习', ENGLISH)
    assert query.excluded_phrases == [["with", "butter"], ["机器", "器学", "学习"]]
    assert not query.excluded
    assert not query.phrases
    assert wanted('bread -"with butter" -机器学习') == {"bread": 1}


def test_options_and_numbers_are_wanted_with_their_sign() -> None:
    assert wanted("ls -l -5 --verbose") == {"ls": 1, "l": 1, "5": 1, "verbos": 1}


@pytest.mark.parametrize("text", ['bread "butter', 'bread" butter', '"bread" "butter', '5" 3"'])
def test_a_quote_without_its_counterpart_is_a_blank(text: str) -> None:
    assert wanted(text) == Counter(ENGLISH.terms(text.replace('"', " ")))
    assert parsed(text, ENGLISH).phrases == ([["bread"]] if text.startswith('"') else [])


@pytest.mark.parametrize(
    "text", ["", " ", "-", '""', "- -", '-""', '"', '"" -', '" "', "\x00\x1b\x7f", "-bread", "--"]
)
def test_a_question_that_wants_nothing_is_empty(text: str) -> None:
    query = parsed(text, ENGLISH)
    assert query.is_empty()
    assert not query.terms


def test_a_question_of_signs_may_be_an_id() -> None:
    assert parsed("🙂", ENGLISH).terms == {"=🙂": 1, "~🙂": 1}
    assert not parsed("[", ENGLISH).is_empty()


def test_a_question_of_10_000_words() -> None:
    assert len(wanted(" ".join(f"word{n}" for n in range(10_000)))) == 10_000
    assert parsed('"' * 10_001 + "-" * 10_000, ENGLISH).is_empty()


# For any text

any_text = st.text() | st.text(st.sampled_from("aB1 é水_.:-'\"+#=~"))


@given(any_text)
def test_words_have_no_blanks_and_can_be_stored(text: str) -> None:
    query = parsed(text, ENGLISH)
    words = {
        *ENGLISH.terms(text),
        *query.terms,
        *query.excluded,
        *term_counts(Document(text, ""), ENGLISH),
    }
    for phrase in (*query.phrases, *query.excluded_phrases):
        words.update(phrase)
        assert phrase
    assert all(word.encode() and not any(map(str.isspace, word)) for word in words)


@given(st.text(st.characters(exclude_categories=[])))
def test_halves_of_surrogate_pairs_do_no_harm(text: str) -> None:
    for word in [*term_counts(Document(text, text), ENGLISH), *parsed(text, ENGLISH).terms]:
        word.encode()


@given(any_text)
def test_words_are_the_same_again(text: str) -> None:
    assert ENGLISH.terms(text) == ENGLISH.terms(text) == Analyzer("english").terms(text)
    assert ENGLISH.terms(text)[: len(ENGLISH.terms_in_order(text))] == ENGLISH.terms_in_order(text)


@given(any_text)
def test_signs_around_a_token_change_nothing(text: str) -> None:
    """They are taken off before the cache is asked a second time."""
    for token in text.split():
        assert PLAIN.terms(f"({token}).") == PLAIN.terms(f"| {token} |")


@given(st.text(st.characters(codec="ascii")))
def test_plain_text_is_cut_as_any_other(text: str) -> None:
    for token in text.split():
        assert PLAIN.terms_in_order(f"{token}|水") == [*PLAIN.terms_in_order(token), "水"]


part = st.text(st.sampled_from("abcdefgxyz"), min_size=2, max_size=8)
separated = st.builds(
    lambda sign, parts: (sign.join(parts), parts),
    st.sampled_from([".", "::", "_", "-"]),
    st.lists(part, min_size=2, max_size=5),
)
camel = st.lists(part, min_size=2, max_size=8).map(
    lambda parts: ("".join(part.title() for part in parts), parts)
)


@given(separated | camel)
def test_a_name_is_found_by_any_of_its_parts_and_by_itself(name: tuple[str, list[str]]) -> None:
    identifier, parts = name
    found = set(ENGLISH.terms(f"See `{identifier}`."))
    for part in parts:
        assert wanted(part).keys() <= found
    assert wanted(identifier).keys() <= found


@given(any_text)
def test_a_text_in_quotes_is_a_phrase(text: str) -> None:
    text = re.sub('["“”„‟«»＂]', " ", text)
    words = ENGLISH.terms_in_order(text)
    assert parsed(f'bread "{text}"', ENGLISH).phrases == ([words] if words else [])
    assert are_in_order(ENGLISH.terms(f"bread {text} | butter"), words)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc"), max_size=3))
def test_phrases_are_found_as_in_a_string(words: list[str], phrase: list[str]) -> None:
    assert are_in_order(words, phrase) == ("".join(phrase) in "".join(words))


# In a program


def test_several_threads_use_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the cache, here a small one, is emptied again and again."""
    monkeypatch.setattr(analyzer_module, "_MOST_KNOWN", 50)
    endings = ("ing", "ed", "ational", "fulness", "s")
    texts = [
        " ".join(f"{chr(97 + n % 26)}{chr(98 + n % 7)}o{e}" for e in endings) for n in range(500)
    ]
    expected = [Analyzer().terms(text) for text in texts]
    shared = Analyzer()
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [shared.terms(text) for text in texts], range(16)):
            assert found == expected


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer_module, "_MOST_KNOWN", 10)
    words = Analyzer()
    for n in range(100):
        assert words.terms(f"word{n} files") == [f"word{n}", "file"]
        assert len(words._remembered.cuts) <= 10


def test_it_can_be_sent_to_another_process() -> None:
    words = pickle.loads(pickle.dumps(Analyzer("german")))
    assert (words.language, words.terms("Häuser")) == ("german", ["haus"])
    assert repr(words) == "Analyzer('german')"


def test_the_fingerprint_tells_languages_and_stemmers_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {Analyzer(language).fingerprint() for language in ("none", "english", "german")}
    assert Analyzer(None).fingerprint() in before
    monkeypatch.setattr(Stemmer, "version", lambda: "99.0")
    assert len(before | {Analyzer("english").fingerprint()}) == 4


def test_quotes_and_minuses_in_prose_are_punctuation() -> None:
    few = '"linguistic filter" of large systems -lexical'
    many = few + " and so on" * 12
    assert parsed(few, Analyzer()).phrases == [["linguist", "filter"]]
    assert parsed(few, Analyzer()).excluded == frozenset({"lexic"})
    prose = parsed(many, Analyzer())
    assert (prose.phrases, prose.excluded) == ([], frozenset())
    assert {"linguist", "filter", "lexic"} <= set(prose.terms)


@settings(max_examples=300)
@given(
    st.lists(st.text("ab-._'é京CS ", max_size=12), max_size=20),
    st.lists(st.sampled_from(["a", "ab", "b", "京", "aab", "c", "s"]), max_size=3),
)
def test_tokens_that_have_a_word_are_those_that_are_cut_into_it(
    texts: list[str], wanted: list[str]
) -> None:
    words = Analyzer()
    tokens = {token for text in texts for token in text.split()}
    expected = {token for token in tokens if not set(wanted).isdisjoint(words.terms(token))}
    assert words.words_having(wanted, tokens) == expected  # all remembered
    assert Analyzer().words_having(wanted, tokens) == expected  # none remembered


def test_tokens_are_found_after_others_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analyzer_module, "_MOST_KNOWN", 3)
    words = Analyzer()
    tokens = {f"reading{sign}" for sign in ",.;:!?"} | {"written", "writes"}
    for _ in range(3):
        assert words.words_having({"read"}, tokens) == tokens - {"written", "writes"}
