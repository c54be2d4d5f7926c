"""How an answer looks: printed, and as JSON."""

from __future__ import annotations

import pytest

from boltzhash.corpus import Document
from boltzhash.search.hits import Answer, Hit


def hit(id_: str | int, distance: int, text: str | None = None) -> Hit:
    return Hit(id_, distance, Document(id_, text) if text is not None else None)


def test_an_answer_prints_in_columns() -> None:
    hits = [hit("short", 0, "The text."), hit("a longer id", 12, "Another."), hit(7, 100, "")]
    assert str(Answer(hits, "my query", None, 2)).splitlines() == [
        "my query",
        "   1    0  short        The text.",
        "   2   12  a longer id  Another.",
        "   3  100  7",
    ]


def test_ranks_of_two_digits_stand_below_one_another() -> None:
    lines = str(Answer([hit("a", 3)] * 10, "q", None, 1)).splitlines()
    assert lines[9:] == ["   9    3  a", "  10    3  a"]


def test_an_answer_without_texts_has_no_blanks_at_the_end() -> None:
    lines = str(Answer([hit("a", 3), hit("bcd", 3)], "q", None, 1)).splitlines()
    assert lines == ["q", "   1    3  a", "   2    3  bcd"]


def test_one_very_long_id_does_not_push_all_texts_off_the_screen() -> None:
    hits = [hit("a", 0, "First."), hit("b" * 100, 0, "Second.")]
    _, first, second = str(Answer(hits, "q", None, 1)).splitlines()
    assert first == f"   1    0  {'a':<48}  First."
    assert second == f"   2    0  {'b' * 100}  Second."


def test_a_query_without_known_words_is_said_to_mean_nothing() -> None:
    lines = str(Answer([hit("a", 3)], "zebra", None, 0)).splitlines()
    assert lines[:2] == [
        "zebra",
        "  (the model knows no word of this query: these hits mean nothing)",
    ]


def test_a_document_without_known_words_is_flagged() -> None:
    unknown = hit("a", 3, "Text.")._replace(known=False)
    answer = Answer([unknown], "q", None, 1)
    assert str(answer).splitlines()[1] == "   1    3  a  (no word of it is known) Text."
    assert answer.as_json()["hits"][0]["no_known_word"] is True


@pytest.mark.parametrize("odd", ["two\nlines", "re\rturn", "a\x1b[2Jb", "tab\tbed"])
def test_a_hit_is_one_line_whatever_its_id(odd: str) -> None:
    lines = str(Answer([hit(odd, 0, "Text."), hit("b", 0, "Text.")], "q", None, 1))
    assert len(lines.splitlines()) == 3
    assert lines.replace("\n", "").isprintable()


def test_a_first_paragraph_that_only_says_the_id_is_not_shown() -> None:
    shown = str(Answer([hit("zipfile.ZipFile", 0, "zipfile ZipFile\n\nOpen an archive.")], "q"))
    assert shown.splitlines()[1] == "   1    0  zipfile.ZipFile  Open an archive."


def test_an_answer_as_json_leaves_out_what_it_has_not() -> None:
    answer = Answer([hit("a", 3, "Text."), hit(7, 4)], "q", None, 1)
    assert answer.as_json() == {
        "query": "q",
        "by": "codes",
        "known_words": 1,
        "hits": [
            {"rank": 1, "distance": 3, "id": "a", "snippet": "Text."},
            {"rank": 2, "distance": 4, "id": 7},
        ],
    }
