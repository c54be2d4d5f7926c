"""Searching, in codes and in collections."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import boltzhash
from boltzhash.collection import Collection
from command_line import Fitted, Made, Run, misused, refused, run, search_hits, succeed
from small_corpus import DOCUMENTS, make_records, write_jsonl


def test_search_prints_rank_distance_and_id(fitted: Fitted) -> None:
    hits = search_hits(fitted.model, fitted.codes, "ship sail")
    first, *lines = succeed("search", fitted.model, fitted.codes, "ship sail").splitlines()
    assert first == "ship sail"
    assert lines == [f"{hit['rank']:>4} {hit['distance']:>4}  {hit['id']}" for hit in hits]
    assert [hit["rank"] for hit in hits] == list(range(1, 11))
    distances = [hit["distance"] for hit in hits]
    assert distances == sorted(distances)


def test_search_with_the_corpus_shows_the_text(fitted: Fitted) -> None:
    out = succeed(
        "search", fitted.model, fitted.codes, "ship sail", "-k", 5, "--corpus", fitted.corpus
    )
    texts = {document["id"]: document["text"] for document in DOCUMENTS}
    for line in out.splitlines()[1:]:
        _, _, name, shown = line.split(maxsplit=3)
        assert shown == texts[name]


def test_distances_are_those_of_the_stored_codes(fitted: Fitted) -> None:
    codes = np.load(fitted.codes / "codes.npy")
    query = boltzhash.load(fitted.model).transform(["comet sun"])[0]
    distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1)
    order = np.argsort(distances, kind="stable")[:10]
    expected = [(DOCUMENTS[row]["id"], distances[row]) for row in order]
    hits = search_hits(fitted.model, fitted.codes, "comet sun")
    assert [(hit["id"], hit["distance"]) for hit in hits] == expected


def test_queries_come_one_a_line_from_standard_input(fitted: Fitted) -> None:
    stdin = "ship sail\n\n   \n  Brot und butter \nзвезда planet"
    lines = succeed("search", fitted.model, fitted.codes, "--json", stdin=stdin).splitlines()
    queries = ["ship sail", "Brot und butter", "звезда planet"]
    assert [json.loads(line)["query"] for line in lines] == queries
    given = succeed("search", fitted.model, fitted.codes, *queries, "--json")
    assert given.splitlines() == lines


def test_answers_to_several_queries_are_set_apart(fitted: Fitted) -> None:
    out = succeed("search", fitted.model, fitted.codes, "ship", "oven", "-k", 2)
    first, second = out.rstrip("\n").split("\n\n")
    assert first + "\n" == succeed("search", fitted.model, fitted.codes, "ship", "-k", 2)
    assert second + "\n" == succeed("search", fitted.model, fitted.codes, "oven", "-k", 2)


def test_no_queries_give_no_output(fitted: Fitted) -> None:
    result = run("search", fitted.model, fitted.codes, stdin="\n \n")
    assert result == Run(0, "", "boltzhash: no query came on standard input\n")


def test_a_query_may_follow_the_options(fitted: Fitted) -> None:
    expected = succeed("search", fitted.model, fitted.codes, "ship", "sail", "-k", "3")
    assert succeed("search", fitted.model, fitted.codes, "-k", "3", "ship", "sail") == expected
    assert succeed("search", "-k", "3", fitted.model, fitted.codes, "ship", "sail") == expected


def test_search_as_json(fitted: Fitted) -> None:
    out = succeed("search", fitted.model, fitted.codes, "ship", "oven", "--json")
    for line in out.splitlines():
        answer = json.loads(line)
        assert list(answer) == ["query", "by", "known_words", "hits"]
        assert answer["known_words"] == 1
        assert {tuple(hit) for hit in answer["hits"]} == {("rank", "distance", "id")}
    hits = search_hits(fitted.model, fitted.codes, "ship", "--corpus", fitted.corpus)
    shown = ("rank", "score", "words", "distance", "id", "snippet")
    assert {tuple(hit) for hit in hits} == {shown}


def test_hits_with_no_known_word_are_flagged(fitted: Fitted, tmp_path: Path) -> None:
    rows = [{"id": "odd", "text": "zzzz qqqq"}, {"id": "fine", "text": "planet orbit"}]
    corpus = write_jsonl(tmp_path / "corpus.jsonl", rows)
    run("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    hits = search_hits(fitted.model, tmp_path / "codes", "planet", "-k", 2)
    assert {hit["id"]: hit.get("no_known_word") for hit in hits} == {"odd": True, "fine": None}
    out = succeed("search", fitted.model, tmp_path / "codes", "planet")
    assert re.search(r"odd +\(no word of it is known\)", out)


def test_a_query_without_a_known_word_says_so(fitted: Fitted) -> None:
    _, note, *hits = succeed("search", fitted.model, fitted.codes, "zebra").splitlines()
    assert note == "  (the model knows no word of this query: these hits mean nothing)"
    assert len(hits) == 10
    answer = json.loads(succeed("search", fitted.model, fitted.codes, "zebra", "--json"))
    assert (answer["known_words"], len(answer["hits"])) == (0, 10)


# The order of the nearest


def test_words_need_the_corpus(fitted: Fitted) -> None:
    message = "words are compared in the texts: give the encoded corpus with --corpus"
    for option in (("--order", "words"), ("--by", "words"), ("--by", "both")):
        assert refused("search", fitted.model, fitted.codes, "ship", *option) == message


def test_codes_with_their_corpus_answer_as_a_collection_does(
    fitted: Fitted, tmp_path: Path
) -> None:
    succeed("index", fitted.model, fitted.corpus, "-o", tmp_path / "library")
    for query in ("ship sail anchor", '"salt" -oven', "kitchen-7"):
        from_codes = search_hits(fitted.model, fitted.codes, query, "--corpus", fitted.corpus)
        assert from_codes == search_hits(tmp_path / "library", query)
        assert from_codes[0]["score"] > 0


# What is refused


def test_numbers_of_hits_must_be_positive(fitted: Fitted) -> None:
    for k in (0, -3):
        message = refused("search", fitted.model, fitted.codes, "ship", "-k", k)
        assert message == f"k must be at least 1, got {k}"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            [*DOCUMENTS[:7], {**DOCUMENTS[7], "id": "new"}, *DOCUMENTS[8:]],
            "document 7 has the id 'new', the codes expect 'kitchen-7'",
        ),
        (
            [*DOCUMENTS, {"id": "extra", "text": "onion"}],
            "document 60 has the id 'extra', the codes expect no more",
        ),
        (DOCUMENTS[:-1], "it has 59 documents, the codes 60"),
    ],
    ids=["another id", "more", "fewer"],
)
def test_a_corpus_that_changed_since_is_refused(
    fitted: Fitted, tmp_path: Path, changed: list[dict[str, str]], problem: str
) -> None:
    corpus = write_jsonl(tmp_path / "corpus.jsonl", changed)
    message = f"the corpus is not the one that was encoded: {problem}"
    assert refused("search", fitted.model, fitted.codes, "ship", "--corpus", corpus) == message


def test_standard_input_cannot_be_both_corpus_and_queries(fitted: Fitted) -> None:
    arguments = ("search", fitted.model, fitted.codes, "--corpus", "-")
    assert "standard input" in refused(*arguments, stdin="ship\n")


def test_codes_of_another_model(fitted: Fitted, other_model: Path) -> None:
    assert refused("search", other_model, fitted.codes, "ship") == (
        f"{fitted.codes} was encoded by another model: encode the corpus again with this one"
    )


# In a collection


def test_search_in_a_collection(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        where = {"year": {">=": 2005}}
        expected = collection.search("bread and butter", 4, where=where)
        by_codes = collection.search("bread and butter", 4, order="confidence")
    arguments = ("bread and butter", "-k", 4)
    for folders in ([made.collection], [made.model, made.collection]):
        hits = search_hits(*folders, *arguments, "--where", json.dumps(where))
        assert [hit["id"] for hit in hits] == expected.ids
        assert [hit["distance"] for hit in hits] == expected.distances.tolist()
    hits = search_hits(made.collection, *arguments, "--order", "confidence")
    assert [hit["id"] for hit in hits] == by_codes.ids
    query, hit = succeed("search", made.collection, "-k", 1, "bread and butter").splitlines()
    assert query == "bread and butter"
    rank, _, _, text = hit.split(maxsplit=3)
    assert rank == "1"
    assert text in [record["text"] for record in make_records(60)]


def test_search_refuses(made: Made) -> None:
    assert "was made by another model" in refused("search", made.other, made.collection, "moon")
    assert "is not a collection" in misused("search", made.model)
    assert "field 'year' has the operator '~'" in refused(
        "search", made.collection, "moon", "--where", '{"year": {"~": 1}}'
    )
    assert "expected a JSON object, got '[1'" in misused(
        "search", made.collection, "moon", "--where", "[1"
    )
    assert "--corpus is for a folder of codes" in refused(
        "search", made.collection, "moon", "--corpus", made.corpus
    )


def test_a_filter_that_nothing_could_match_is_pointed_out(made: Made) -> None:
    arguments = ("search", made.collection, "moon", "--json", "--where")
    for where, told in {
        '{"yeer": 2005}': "boltzhash: nothing found: no document has a field 'yeer' (is 'year' meant?); "
        "fields are: ",
        '{"year": "2005"}': "boltzhash: nothing found: no document has a string in the field 'year', as "
        "the filter asks for; one has a number, 20",
    }.items():
        done = run(*arguments, where)
        assert json.loads(done.out)["hits"] == []
        assert done.err.startswith(told)
        assert done.err.count("\n") == 1  # and not once more as a warning of Python's
    assert run(*arguments, '{"year": 1}').err == ""


def test_where_is_not_for_codes(made: Made, tmp_path: Path) -> None:
    succeed("encode", made.model, made.corpus, "-o", tmp_path / "codes")
    message = refused("search", made.model, tmp_path / "codes", "moon", "--where", "{}")
    assert "--where is for a collection" in message


# More like a document


def test_documents_like_one(made: Made) -> None:
    with Collection.open(made.collection) as collection:
        expected = collection.more_like(7, 4, where={"year": {">=": 2005}})
    where = ("--where", '{"year": {">=": 2005}}')
    out = succeed("search", made.collection, "--like", 7, "-k", 4, *where, "--json")
    answer = json.loads(out)
    assert (answer["like"], answer["by"]) == (7, "both")
    assert [hit["id"] for hit in answer["hits"]] == expected.ids
    for folders in ([made.collection], [made.model, made.collection]):
        first, *lines = succeed("search", *folders, "--like", 7, "-k", 4, *where).splitlines()
        assert first == "like 7"
        assert [line.split()[2] for line in lines] == [str(id_) for id_ in expected.ids]


def test_which_document_is_meant(made: Made) -> None:
    """As delete understands it: 7 is the integer, 8, which is none, the string."""
    for given, meant in ((7, 7), (8, "8"), ('"8"', "8")):
        assert (
            json.loads(succeed("search", made.collection, "--like", given, "--json"))["like"]
            == meant
        )


def test_what_is_like_nothing(made: Made, tmp_path: Path) -> None:
    message = refused("search", made.collection, "--like", "nobody")
    assert message == f"there is no document with the id 'nobody' in {made.collection}"
    assert "got a query as well" in refused("search", made.collection, "moon", "--like", 7)
    assert "got --order as well" in refused(
        "search", made.collection, "--like", 7, "--order", "confidence"
    )
    succeed("encode", made.model, made.corpus, "-o", tmp_path / "codes")
    message = refused("search", made.model, tmp_path / "codes", "--like", 7)
    assert message == "--like is for a collection: a folder of codes has no documents"


def test_an_empty_query_is_an_error_and_not_a_wait(made: Made) -> None:
    assert refused("search", made.collection, "") == "the query is empty: give a text to search for"
