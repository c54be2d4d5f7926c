"""Filters mean the same on every engine: what :func:`boltzhash.collection.filters.matches` says."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from boltzhash.collection import Answer, FilterWarning
from boltzhash.collection.filters import look_up, matches, parse_where, seen_fields
from snapshots import Newest

pytestmark = pytest.mark.filterwarnings("ignore::boltzhash.collection.FilterWarning")

LIBRARY: dict[Any, dict[str, Any]] = {
    "ann": {"year": 2019, "lang": "de", "tags": ["python", "data"], "author": {"name": "Ann"}},
    "bob": {"year": 2020, "lang": "en", "tags": ["rust"], "author": {"name": "Bob", "age": 40}},
    "both": {"year": 2021, "tags": [], "authors": [{"name": "Ann"}, {"name": "Bob"}]},
    "dated": {"date": "2020-05-17", "seen": ["2019-12-31", "2021-01-01"], "lang": "en"},
    "dotted": {"author.name": "Cid", "author": {"name": "Ann", "age": 30}, "year": "2020"},
    "odd": {"tags": [1, True, "1", None, [2], {"tags": 3}], "year": None, "$or": "x", "or": 1},
    "text": {"tags": "python data", "author": "Ann", "price": 2.5, "deep": {"a": {"b": [1, 2]}}},
    "nothing": {},
}

# What follows from the rules, by hand.
TABLE: list[tuple[dict[str, Any], str]] = [
    ({}, "ann bob both dated dotted odd text nothing"),
    ({"year": 2020}, "bob"),
    ({"year": "2020"}, "dotted"),
    ({"year": [2019, 2020]}, "ann bob"),
    ({"year": None}, "dated odd text nothing"),
    ({"year": [2019, None]}, "ann dated odd text nothing"),
    ({"year": {"=": 2020}}, "bob"),
    ({"year": {"!=": 2020}}, "ann both dotted"),
    ({"year": {"!=": None}}, "ann bob both dotted"),
    ({"year": {"in": [2019, "2020"]}}, "ann dotted"),
    ({"year": {"in": []}}, ""),
    ({"year": {"not in": [2019, "2020"]}}, "bob both"),
    ({"year": {"not in": [2019, None]}}, "bob both dotted"),
    ({"year": {">=": 2020}}, "bob both"),
    ({"year": {">=": "2"}}, "dotted"),
    ({"year": {">=": 2019, "<": 2021, "!=": 2019}}, "bob"),
    ({"year": {"exists": True}}, "ann bob both dotted"),
    ({"year": {"exists": False}}, "dated odd text nothing"),
    # lists
    ({"tags": "python"}, "ann"),
    ({"tags": ["rust", "data"]}, "ann bob"),
    ({"tags": {"contains": "python"}}, "ann text"),
    ({"tags": {"contains": "pyth"}}, "text"),
    ({"tags": {"contains": ""}}, "text"),
    ({"tags": {"contains": 1}}, "odd"),
    ({"tags": 1}, "odd"),
    ({"tags": True}, "odd"),
    ({"tags": False}, ""),
    ({"tags": 2}, ""),
    ({"tags": {"!=": "python"}}, "bob both odd text"),
    ({"tags": {"not in": ["python", "rust"]}}, "both odd text"),
    ({"tags": {">=": "q"}}, "bob"),
    ({"tags": {"exists": True}}, "ann bob both odd text"),
    ({"$not": {"tags": "python"}}, "bob both dated dotted odd text nothing"),
    # fields in fields
    ({"author.name": "Ann"}, "ann"),
    ({"author.name": "Cid"}, "dotted"),
    ({"author.age": {"<": 35}}, "dotted"),
    ({"author": "Ann"}, "text"),
    ({"author": {"exists": True}}, "ann bob dotted text"),
    ({"author": {"contains": "n"}}, "text"),
    ({"authors.name": ["Bob"]}, "both"),
    ({"authors.name": {"contains": "Ann"}}, "both"),
    ({"authors.name": {"contains": "An"}}, ""),
    ({"authors.name": {"exists": True}}, "both"),
    ({"deep.a.b": 2}, "text"),
    ({"deep.a": {"exists": True}}, "text"),
    ({"tags.tags": 3}, "odd"),
    # dates
    ({"date": {">=": date(2020, 1, 1), "<": "2021"}}, "dated"),
    ({"date": date(2020, 5, 17)}, "dated"),
    ({"date": {"<": datetime(2020, 5, 17, tzinfo=UTC)}}, "dated"),
    ({"seen": {"in": [date(2019, 12, 31)]}}, "dated"),
    ({"seen": {">=": "2020", "<": "2021"}}, "dated"),  # by two different members
    # combinations
    ({"$or": [{"year": 2019}, {"lang": "en"}]}, "ann bob dated"),
    ({"$or": [{"year": 2020, "lang": "de"}, {"price": {">": 2}}]}, "text"),
    ({"$or": []}, ""),
    ({"$and": []}, "ann bob both dated dotted odd text nothing"),
    ({"$and": [{"tags": "python"}, {"tags": "data"}]}, "ann"),
    ({"$not": {}}, ""),
    ({"$not": {"year": {">=": 2020}}}, "ann dated dotted odd text nothing"),
    ({"$not": {"year": 2020, "lang": "en"}}, "ann both dated dotted odd text nothing"),
    ({"$not": {"author.name": {"contains": "n"}}}, "bob both dated dotted odd text nothing"),
    ({"$not": {"$or": [{"tags": {"exists": True}}, {"date": {"<": "3"}}]}}, "dotted nothing"),
    ({"lang": "en", "$or": [{"year": 2020}, {"$not": {"tags": "rust"}}]}, "bob dated"),
    ({"or": 1}, "odd"),
    ({"yeer": 2020}, ""),
]


def test_the_reference_says_what_the_rules_say() -> None:
    for where, expected in TABLE:
        conditions = parse_where(where)
        found = [id_ for id_, metadata in LIBRARY.items() if matches(conditions, metadata)]
        assert found == expected.split(), where


def test_every_engine_says_what_the_rules_say(collection: Any) -> None:
    collection.add({"id": i, "text": "star", "metadata": m} for i, m in LIBRARY.items())
    for where, expected in TABLE:
        assert collection.within("star", 0, where=where).ids == expected.split(), where
        assert [found.id for found in Newest(collection).matching(where)] == expected.split(), where


NAMES = ["a", "b", "a.b", "b.a", "", ".", "\0", "é'\"%"]
SCALARS = [
    *(0, 1, -1, 2.5, 1.0, -0.0, 2**53, 2**53 + 1, float(2**53), -(2**63), 1e300, True, False),
    *("", "a", "ab", "b", "1", "é", "\U0001f600", "\0", "\x01", "\x02", "\0\x02", "a\0b", "%", "_"),
]


def some_value(chance: random.Random, levels: int) -> Any:
    kind = chance.random() if levels else 1
    if kind < 0.2:
        return [some_value(chance, levels - 1) for _ in range(chance.randrange(4))]
    if kind < 0.4:
        return some_object(chance, levels - 1)
    return chance.choice([None, *SCALARS])


def some_object(chance: random.Random, levels: int) -> dict[str, Any]:
    return {chance.choice(NAMES): some_value(chance, levels) for _ in range(chance.randrange(4))}


def some_filter(chance: random.Random, levels: int) -> dict[str, Any]:
    return dict(some_condition(chance, levels) for _ in range(chance.choice([1, 1, 2])))


def some_condition(chance: random.Random, levels: int) -> tuple[str, Any]:
    if levels and chance.random() < 0.5:
        if chance.random() < 0.4:
            return "$not", some_filter(chance, levels - 1)
        filters = [some_filter(chance, levels - 1) for _ in range(chance.choice([0, 1, 2, 2, 3]))]
        return chance.choice(["$or", "$and"]), filters
    path = ".".join(chance.choices(NAMES, k=chance.choice([1, 1, 1, 2, 3])))
    value = chance.choice(SCALARS)
    several = chance.choices([None, *SCALARS], k=chance.randrange(4))
    ordered = 0 if isinstance(value, bool) else value
    name = chance.choice(["=", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "exists"])
    given = {"in": several, "not in": several, "contains": value, "exists": bool(several)}
    plain = chance.choice([several, value, None])
    compared = {name: given.get(name, value if name in ("=", "!=") else ordered)}
    return path, chance.choice([plain, compared, compared])


def test_every_engine_agrees_with_the_reference(collection: Any, engine: Any) -> None:
    """Over random metadata and filters; a server that answers in ticks is asked fewer of them."""
    chance = random.Random(0)
    library = {i: some_object(chance, 3) for i in range(200)}
    collection.add({"id": i, "text": "star", "metadata": m} for i, m in library.items())
    n_telling = 0
    n_filters = 600 if engine.examples > 20 else 120
    for _ in range(n_filters):
        where = some_filter(chance, 2)
        conditions = parse_where(where)
        expected = [i for i, metadata in library.items() if matches(conditions, metadata)]
        assert collection.within("star", 0, where=where).ids == expected, where
        n_telling += 0 < len(expected) < len(library)
    assert n_telling > n_filters / 3


def test_what_an_engine_keeps_is_what_is_looked_up() -> None:
    chance = random.Random(0)

    def as_set(seen: Any) -> Any:
        return {(type(v) is bool, v) for v in seen} if isinstance(seen, list) else (seen,)

    for _ in range(2000):
        metadata = some_object(chance, 4)
        kept = seen_fields(metadata)
        for path in {*kept, *NAMES, "a.b.a", "a.a", "b..a"}:
            assert as_set(kept.get(path)) == as_set(look_up(metadata, path)), (path, metadata)


def test_a_filter_follows_members_of_lists_that_change(collection: Any) -> None:
    collection.add(
        {"id": i, "text": "star", "metadata": {"tags": ["x", i], "in": {"side": i}}} for i in (1, 2)
    )
    collection.upsert([{"id": 1, "text": "star", "metadata": {"tags": ["y"], "in": {"side": 3}}}])
    assert collection.within("star", 0, where={"tags": "x"}).ids == [2]
    assert collection.within("star", 0, where={"tags": "y", "in.side": 3}).ids == [1]
    assert collection.within("star", 0, where={"in.side": 1}).ids == []
    collection.delete([2])
    assert collection.within("star", 0, where={"tags": {"exists": True}}).ids == [1]
    Newest(collection).check()


def test_fields_in_fields_and_members_are_counted(collection: Any) -> None:
    for i, tags in enumerate([["a", "b"], ["a"], "a", []]):
        metadata = {"tags": tags, "author": {"name": "Ann"}}
        collection.add([{"id": i, "text": "star", "metadata": metadata}])
    counted = Newest(collection).field_values(5)
    assert {name: [tuple(v) for v in values] for name, values in counted.items()} == {
        "tags": [("a", 3), ("b", 1)],
        "author.name": [("Ann", 4)],
    }
    tags = Newest(collection).column("tags")
    assert [tags.values[n] for n in sorted(tags.numbers)] == ["a", "a", "a", "b"]
    assert len(Newest(collection).column("author.name").places) == 4


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"year": {"$gt": 1}},
            r"has the operator '\$gt' \(here: >\); expected one of = != < <= > >=",
        ),
        ({"year": {"near": 1}}, "has the operator 'near'; expected one of = != < <= > >= in "),
        ({"year": {"in": 3}}, "field 'year': in takes a list of values, got 3"),
        ({"year": {"not in": "ab"}}, "field 'year': not in takes a list of values, got 'ab'"),
        ({"year": {"=": [3]}}, r"field 'year': = takes one value, got \[3\]: in takes a list"),
        ({"year": {"!=": [3]}}, r"!= takes one value, got \[3\]: not in takes a list"),
        ({"year": {"exists": 1}}, "field 'year': exists takes true or false, got 1"),
        ({"year": {"contains": ["a"]}}, "field 'year': contains takes a string or another single"),
        ({"year": {"contains": float("nan")}}, "field 'year' must be a finite number"),
        ({"year": {">": [1]}}, r"field 'year': > takes a number or a string, got \[1\]"),
        ({"$or": {"year": 1}}, r"where: \$or takes a list of filters, got {'year': 1}"),
        ({"$and": "x"}, r"where: \$and takes a list of filters, got 'x'"),
        ({"$or": [1]}, r"where: \$or: each must be a dict from fields to values, got 1"),
        (
            {"$not": [{"a": 1}]},
            r"where: \$not must be a dict from fields to values, got \[{'a': 1}\]",
        ),
        ({"$or": [{"year": {"=>": 1}}]}, "field 'year' has the operator '=>'"),
        ({"year": {}}, "field 'year' has no operator"),
        ({"year": {"<": None}}, "field 'year': < takes a number or a string, got None"),
        ({"year": {"<": True}}, "field 'year': < takes a number or a string, got True"),
        ({"year": [[1]]}, "field 'year' must be compared with"),
        ({"year": float("inf")}, "field 'year' must be a finite number"),
        ({"year": 2**70}, "field 'year' must fit into 64 bits"),
        ({3: 1}, "the name of a field must be a string, got 3"),
        ("year = 1", "where must be a dict"),
    ],
)
def test_what_is_no_filter_is_named(where: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        parse_where(where)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            {"yeer": 2020},
            r"^no document has a field 'yeer' \(is 'year' meant\?\); fields are: 'author', "
            r"'author\.name', 'lang', 'tags', 'year'$",
        ),
        (
            {"$or": [{"year": 1999}, {"nonsense": {">": 3}}]},
            "^no document has a field 'nonsense'; fields",
        ),
        (
            {"lang": 7},
            "has a number in the field 'lang', as the filter asks for; one has a string, 'de'$",
        ),
        ({"year": {">=": "2020"}}, "has a string in the field 'year', .*; one has a number, 2020$"),
        (
            {"tags": {"contains": 3}},
            r"has a number in the field 'tags', .*; one has the list \['a'\]$",
        ),
        (
            {"author": "Ann"},
            "has a string in the field 'author', .*; one has an object or a list without",
        ),
        ({"lang": [True, 3]}, "has true or false or a number in the field 'lang'"),
        ({"yeer": {"!=": 2020}}, "^no document has a field 'yeer'"),
    ],
)
def test_what_no_document_could_match_is_pointed_out(
    collection: Any, where: Any, message: str
) -> None:
    metadata = {"year": 2020, "lang": "de", "tags": ["a"], "author": {"name": "Ann"}}
    collection.add([{"id": i, "text": "star", "metadata": metadata} for i in range(2)])
    searches: list[Callable[[], Answer]] = [
        lambda: collection.search("star", where=where),
        lambda: collection.within("star", 0, where=where),
        lambda: collection.more_like(0, where=where),
    ]
    for search in searches:
        with pytest.warns(FilterWarning, match=message) as issued:
            answer = search()
        assert answer.ids == []
        assert answer.warning == str(issued[0].message)
        assert issued[0].filename == __file__  # the caller's line, not one of ours


@pytest.mark.filterwarnings("error")
def test_nothing_is_pointed_out_about_what_could_have_matched(collection: Any) -> None:
    assert collection.search("star", where={"yeer": 1}).warning is None  # it has no documents
    collection.add([{"id": 1, "text": "star", "metadata": {"year": 2020, "tags": ["a", 1]}}])
    for where in ({"year": 1999}, {"tags": {"<": 0}}, {"tags": "b", "year": 2020}, {"year": []}):
        answer = collection.search("star", where=where)
        assert (answer.ids, answer.warning) == ([], None)
    assert collection.search("star", where={"$not": {"yeer": 1}}).ids == [1]


def test_fields_of_documents_without_metadata(collection: Any) -> None:
    collection.add([{"id": 1, "text": "star"}])
    answer = collection.search("star", where={"year": 1})
    assert answer.warning == "no document has a field 'year'; the documents have no metadata"
    metadata = {f"field {i:02}": i for i in range(30)}
    collection.add([{"id": 2, "text": "star", "metadata": metadata}])
    warning = collection.search("star", where={"y\0ear" * 30: 1}).warning
    assert warning.startswith("no document has a field 'y\\x00eary\\x00ear")
    assert warning.endswith("'field 19', …")
    assert len(warning) < 500


def test_filters_are_nested_only_so_deep() -> None:
    where: dict[str, Any] = {"a": 1}
    for _ in range(32):
        where = {"$not": where}
    assert matches(parse_where(where), {"a": 1})
    with pytest.raises(ValueError, match="nested at most 32 levels deep"):
        parse_where({"$not": where})


def test_metadata_nested_very_deeply_is_kept(collection: Any) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = {"a": deep}
    collection.add([{"id": 1, "text": "star", "metadata": deep}])
    assert collection.get(1).metadata == deep
    assert collection.within("star", 0, where={".".join("a" * 33): {"exists": True}}).ids == [1]
    assert collection.within("star", 0, where={".".join("a" * 34): {"exists": True}}).ids == []
