"""What every collection promises, whatever engine keeps it: value for value against plain Python."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from boltzhash import Hasher
from boltzhash.codes import hamming
from boltzhash.collection import Collection
from boltzhash.collection.drift import LATEST, measured_drift
from boltzhash.corpus import Document
from boltzhash.encoding.coding import Input, coded_documents
from boltzhash.encoding.model_files import ModelFile
from boltzhash.errors import ChangedDocumentsError, CollectionBusyError, DuplicateIdError
from boltzhash.search.relevance import BESIDE_WEIGHT, agreement
from boltzhash.text.analyzer import Analyzer
from boltzhash.text.fields import term_counts
from boltzhash.text.queries import has_phrase, parsed
from snapshots import Newest
from term_lengths import length

# Of what a random filter asks for, many collections have nothing.
pytestmark = pytest.mark.filterwarnings("ignore::boltzhash.collection.FilterWarning")

Id = str | int


class Oracle:
    """A collection as a list of documents: everything is compared with everything."""

    def __init__(self, hasher: Hasher) -> None:
        self.hasher = hasher
        self.documents: dict[Id, Document] = {}  # a dict keeps the place of what is overwritten

    def write(self, documents: list[dict[str, Any]]) -> None:
        for document in documents:
            metadata = json.loads(json.dumps(document.get("metadata", {})))
            made = Document(document["id"], document["text"], metadata)
            self.documents[made.id] = made

    def delete(self, ids: list[Id]) -> int:
        return sum(self.documents.pop(id_, None) is not None for id_ in ids)

    def search(
        self, query: Any, where: Any = None, *, by_words: bool = False
    ) -> list[tuple[Id, int]]:
        """All documents with their distances, best first."""
        allowed = [d for d in self.documents.values() if holds(where, d.metadata or {})]
        if not allowed:
            return []
        code = self.hasher.transform([query]) if isinstance(query, str) else query[None]
        distances = hamming(code, self.hasher.transform([d.text for d in allowed]))[0]
        order = np.argsort(distances, kind="stable")
        if by_words:
            rows = self.hasher.tfidf([allowed[i].text for i in order])
            cosine = (rows @ self.hasher.tfidf([query]).T).toarray().ravel()
            order = order[np.argsort(-cosine, kind="stable")]
        return [(allowed[i].id, int(distances[i])) for i in order]

    def ranked(self, query: str, where: Any, *, by: str) -> dict[Id, float]:
        """The scores of all that are found: BM25 over its spread, and the agreement of the bits."""
        words, documents = Analyzer(self.hasher.language), list(self.documents.values())
        counted = {document.id: term_counts(document, words) for document in documents}
        lengths = {id_: length(counts, words) for id_, counts in counted.items()}
        mean, asked = max(sum(lengths.values()) / max(len(lengths), 1), 1e-9), parsed(query, words)
        scores, variance = dict.fromkeys(counted, 0.0), 0.0
        for word, times in asked.terms.items():
            having = [id_ for id_, counts in counted.items() if word in counts]
            share = len(having) / max(len(documents), 1)
            weight = times * (BESIDE_WEIGHT if word in asked.beside else 1.0)
            weight *= np.log1p((len(documents) - len(having) + 0.5) / (len(having) + 0.5))
            variance += weight**2 * share * (1 - share)
            for id_ in having:
                tf, norm = counted[id_][word], 1.5 * (0.25 + 0.75 * lengths[id_] / mean)
                scores[id_] += weight * tf / (tf + norm)
        with_codes = by == "both" and self.knows(query)
        margins = self.hasher.margins([query])[0]
        ranked = {}
        for document in documents:
            has = partial(has_phrase, document, analyzer=words)
            score = scores[document.id]
            if (
                holds(where, document.metadata or {})
                and all(map(has, asked.phrases))
                and not any(map(has, asked.excluded_phrases))
                and not asked.excluded & counted[document.id].keys()
                and (score or with_codes)
            ):
                part = agreement(margins, self.hasher.transform([document.text]))[0]
                spread = score / np.sqrt(variance) if variance else 0.0
                code = self.hasher.weight_beside_words * part if with_codes else 0.0
                ranked[document.id] = spread + code
        return ranked

    def duplicates(self, least: float, keep: str) -> list[tuple[Id, list[tuple[Id, float]]]]:
        order = list(self.documents.values())
        if keep == "longest":
            order.sort(key=lambda document: -len(document.text))
        elif keep == "newest":
            order.reverse()
        groups: dict[Id, list[tuple[Id, float]]] = {}
        for document in order:
            near = {id_: nearness(document.text, self.documents[id_].text) for id_ in groups}
            best = max(near.values(), default=0)
            if best >= least:
                first = next(id_ for id_ in groups if near[id_] == best)
                groups[first].append((document.id, best))
            else:
                groups[document.id] = []
        in_order = {id_: place for place, id_ in enumerate(self.documents)}
        for members in groups.values():
            members.sort(key=lambda member: in_order[member[0]])
        kept = sorted((id_ for id_ in groups if groups[id_]), key=in_order.__getitem__)
        return [(id_, groups[id_]) for id_ in kept]

    def is_duplicate(self, text: str, least: float) -> bool:
        return any(nearness(text, other.text) >= least for other in self.documents.values())

    def knows(self, text: str) -> bool:
        return bool(self.hasher.known_word_counts([text])[0])


def nearness(one: str, other: str) -> float:
    """Of the word trigrams that either has, the share that both have; 0 of what differs in a field."""

    def trigrams(words: list[str]) -> set[tuple[str, ...]]:
        if len(words) < 3:
            return {tuple(words)} if words else set()
        return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}

    def has_a_field(these: Counter[str], those: Counter[str]) -> bool:
        more = {word: n - those[word] for word, n in these.items() if n > those[word]}
        fields = [n for word, n in more.items() if n >= 2 and these[word] >= 2 * those[word]]
        return bool(fields) and 4 * sum(fields) >= sum(more.values())

    words, others = (re.findall("[a-z]+", text) for text in (one, other))
    if has_a_field(Counter(words), Counter(others)) and has_a_field(
        Counter(others), Counter(words)
    ):
        return 0.0
    these, those = trigrams(words), trigrams(others)
    return len(these & those) / len(these | those) if these | those else 0.0


def holds(where: Any, metadata: dict[str, Any]) -> bool:
    """The plain part of the language of filters, written as one would explain it."""
    for field, wanted in (where or {}).items():
        value = metadata.get(field)
        values = value if isinstance(value, list) else [value]
        if isinstance(wanted, dict):
            if value is None:
                return False
            for operator, other in wanted.items():
                if not _compares(values, operator, other):
                    return False
        elif not any(
            _same(one, other)
            for one in values
            for other in (wanted if isinstance(wanted, list) else [wanted])
        ):
            return False
    return True


def _same(one: Any, other: Any) -> bool:
    return _kind(one) == _kind(other) and one == other


def _kind(value: Any) -> str:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", type(None): "nothing"}
    return kinds.get(type(value), "no scalar")


def _compares(values: list[Any], operator: str, other: Any) -> bool:
    if operator == "!=":
        return not any(_same(value, other) for value in values)
    return any(
        {"<": value < other, "<=": value <= other, ">": value > other, ">=": value >= other}[
            operator
        ]
        for value in values
        if _kind(value) == _kind(other)
    )


def found(matches: Any) -> list[tuple[Id, int]]:
    return list(zip(matches.ids, matches.distances.tolist(), strict=True))


WORDS = st.sampled_from(
    "star planet moon orbit comet bread butter oven flour sugar ship sail unheard-of".split()
)
TEXTS = st.lists(WORDS, max_size=4).map(" ".join)
ASKED = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
QUESTIONS = st.tuples(
    WORDS, st.lists(st.one_of(WORDS, WORDS.map("-{}".format), ASKED.map('"{}"'.format)), max_size=3)
).map(lambda parts: " ".join([parts[0], *parts[1]]))
# Few ids, so that they meet again; 1 and "1" are two.
IDS = st.one_of(
    st.integers(0, 6),
    st.integers(0, 6).map(str),
    st.sampled_from(["", "ä\0'", -(2**63), 2**63 - 1]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.sampled_from([0.5, 1.0, -0.0, 2.5, "", "1", "a", "b", "é", "\0", 2**53 + 1]),
)
FIELDS = st.sampled_from(["year", "a.b", 'quo"te', ""])
METADATA = st.dictionaries(
    FIELDS, st.one_of(SCALARS, st.just([1, "a"]), st.just({"x": 1})), max_size=3
)
ORDERED = st.one_of(st.integers(-1, 3), st.sampled_from([0.5, 2.5, "", "a", "b", 2**53 + 1]))
COMPARISONS = st.dictionaries(
    st.sampled_from(["<", "<=", ">", ">="]), ORDERED, min_size=1, max_size=2
)
WHERES = st.one_of(
    st.none(),
    st.dictionaries(
        FIELDS,
        st.one_of(
            SCALARS, st.lists(SCALARS, max_size=3), COMPARISONS, SCALARS.map(lambda v: {"!=": v})
        ),
        max_size=2,
    ),
)
DOCUMENTS = st.fixed_dictionaries({"id": IDS, "text": TEXTS, "metadata": METADATA})


WHICH = st.integers(0, 3)  # of the newest generation and the snapshots that are held


class Histories(RuleBasedStateMachine):
    """Random lives of a collection, compared with the oracle at every step.

    Snapshots are held meanwhile, and each is asked the same as the newest generation.
    """

    def __init__(self, engine: Any, hashers: list[Hasher]) -> None:
        super().__init__()
        self.engine = engine
        self.hashers = hashers
        self.held: list[tuple[Any, Oracle]] = []
        self.saved: tuple[Any, Oracle] | None = None

    def one(self, which: int) -> tuple[Any, Oracle]:
        """The newest generation, or a snapshot that is held, with what it must say."""
        every = [(Newest(self.collection), self.oracle), *self.held]
        return every[which % len(every)]

    @rule()
    def hold(self) -> None:
        self.held.append((self.collection.snapshot(), copy.deepcopy(self.oracle)))

    @precondition(lambda self: self.held)
    @rule(which=WHICH)
    def let_go(self, which: int) -> None:
        snapshot, _ = self.held.pop(which % len(self.held))
        snapshot.close()
        with pytest.raises(ValueError, match=r"the snapshot of .* is closed"):
            snapshot.search("star")

    @rule()
    def save(self) -> None:
        self.saved = self.engine.saved(self.collection), copy.deepcopy(self.oracle)

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        assert self.saved is not None
        self.engine.restore(self.collection, self.saved[0])
        self.oracle = copy.deepcopy(self.saved[1])

    @initialize()
    def create(self) -> None:
        self.collection = self.engine.create(self.hashers[0])
        self.oracle = Oracle(self.hashers[0])

    @rule(documents=st.lists(DOCUMENTS, max_size=6))
    def add(self, documents: list[dict[str, Any]]) -> None:
        ids = [document["id"] for document in documents]
        if len(set(ids)) < len(ids) or any(id_ in self.oracle.documents for id_ in ids):
            with pytest.raises(DuplicateIdError):
                self.collection.add(documents)
        else:
            assert self.collection.add(documents) == len(documents)
            self.oracle.write(documents)

    @rule(documents=st.lists(DOCUMENTS, max_size=6))
    def upsert(self, documents: list[dict[str, Any]]) -> None:
        assert self.collection.upsert(documents) == len(documents)
        self.oracle.write(documents)

    @rule(ids=st.lists(IDS, max_size=4))
    def delete(self, ids: list[Id]) -> None:
        assert self.collection.delete(ids) == self.oracle.delete(ids)

    @rule(text=ASKED, k=st.integers(1, 20), where=WHERES, which=WHICH)
    def search(self, text: str, k: int, where: Any, which: int) -> None:
        now, oracle = self.one(which)
        matches = now.search(text, k, by="codes", where=where)
        assert found(matches) == oracle.search(text, where)[:k]
        assert matches.documents == [oracle.documents[id_] for id_ in matches.ids]
        assert (matches.known_words == 0) == (not oracle.knows(text))

    @rule(text=ASKED, k=st.integers(1, 9), where=WHERES, which=WHICH)
    def reorder(self, text: str, k: int, where: Any, which: int) -> None:
        now, oracle = self.one(which)
        matches = now.search(text, k, where=where, order="words")
        assert found(matches) == oracle.search(text, where, by_words=True)[:k]

    @rule(text=QUESTIONS, where=WHERES, by=st.sampled_from(["words", "both"]), which=WHICH)
    def ask(self, text: str, where: Any, by: str, which: int) -> None:
        now, oracle = self.one(which)
        """All that are found."""
        matches = now.search(text, 100, by=by, where=where)
        expected = oracle.ranked(text, where, by=by)
        assert {hit.id: hit.score for hit in matches} == pytest.approx(expected, rel=1e-4, abs=1e-6)
        places = {id_: place for place, id_ in enumerate(oracle.documents)}
        ranks = [(-(hit.score or 0.0), hit.distance, places[hit.id]) for hit in matches]
        assert ranks == sorted(ranks)
        assert matches.documents == [oracle.documents[id_] for id_ in matches.ids]

    @rule(text=TEXTS, radius=st.integers(0, 16), where=WHERES, which=WHICH)
    def within(self, text: str, radius: int, where: Any, which: int) -> None:
        now, oracle = self.one(which)
        code = oracle.hasher.transform([text])[0]
        matches = now.within(code, radius, where=where)
        expected = [hit for hit in oracle.search(code, where) if hit[1] <= radius]
        assert found(matches) == expected
        assert matches.known_words is None

    @rule(
        least=st.sampled_from([0.3, 0.5, 0.8, 1.0]),
        keep=st.sampled_from(["first", "longest", "newest"]),
        text=TEXTS,
        which=WHICH,
    )
    def duplicates(self, least: float, keep: str, text: str, which: int) -> None:
        now, oracle = self.one(which)
        found = now.duplicates(least, keep=keep)
        assert [(kept, list(map(tuple, members))) for kept, members in found] == (
            oracle.duplicates(least, keep)
        )
        assert now.is_duplicate(text, least) == oracle.is_duplicate(text, least)

    @rule(least=st.sampled_from([0.5, 1.0]), keep=st.sampled_from(["first", "newest"]))
    def delete_duplicates(self, least: float, keep: str) -> None:
        groups = self.oracle.duplicates(least, keep)
        assert len(self.collection.delete_duplicates(least, keep=keep)) == len(groups)
        self.oracle.delete([id_ for _, members in groups for id_, _ in members])
        assert Newest(self.collection).duplicates(least, keep=keep) == []

    @rule(number=st.integers(0, 1))
    def rehash(self, number: int) -> None:
        self.collection.rehash(self.hashers[number])
        self.oracle.hasher = self.hashers[number]

    @rule()
    def reopen(self) -> None:
        self.collection = self.engine.reopen(self.collection)

    @rule()
    def crash(self) -> None:
        self.collection = self.engine.crash(self.collection)

    @rule(id_=IDS, which=WHICH)
    def get(self, id_: Id, which: int) -> None:
        now, oracle = self.one(which)
        assert now.get(id_) == oracle.documents.get(id_)
        assert (id_ in self.collection) == (id_ in self.oracle.documents)

    @rule(which=WHICH)
    def check(self, which: int) -> None:
        self.one(which)[0].check()

    @invariant()
    def holds_the_same(self) -> None:
        every = [(self.collection, self.oracle), *self.held] if hasattr(self, "collection") else []
        for now, oracle in every:
            assert len(now) == len(oracle.documents)
            assert list(now) == list(oracle.documents.values())

    def teardown(self) -> None:
        for snapshot, _ in self.held:
            snapshot.check()
            snapshot.close()
        if hasattr(self, "collection"):
            Newest(self.collection).check()
            self.collection.close()


def test_random_histories(engine: Any, hasher: Hasher, other_hasher: Hasher) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: Histories(engine, [hasher, other_hasher]),
        settings=settings(
            max_examples=engine.examples,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_filtered_search_returns_k_where_k_exist(collection: Any) -> None:
    """The allowed ones are the furthest: a filter after the cut would find none of them."""
    texts = ["star"] * 50 + ["bread butter"] * 5
    collection.add(
        {"id": i, "text": text, "metadata": {"topic": "sky" if i < 50 else "kitchen"}}
        for i, text in enumerate(texts)
    )
    matches = collection.search("star", 5, where={"topic": "kitchen"})
    assert matches.ids == [50, 51, 52, 53, 54]
    assert collection.search("star", 5).ids == [0, 1, 2, 3, 4]


def test_an_upsert_keeps_its_place_among_ties(collection: Any) -> None:
    collection.add({"id": name, "text": "star"} for name in "abc")
    collection.upsert([{"id": "a", "text": "bread"}])
    collection.upsert([{"id": "a", "text": "star"}, {"id": "d", "text": "star"}])
    assert collection.search("star").ids == ["a", "b", "c", "d"]


def test_a_deleted_id_that_comes_back_is_new(collection: Any) -> None:
    collection.add({"id": name, "text": "star"} for name in "abc")
    assert collection.delete(["c", "a", "nobody"]) == 2
    collection.add([{"id": "a", "text": "star"}])
    assert collection.search("star").ids == ["b", "a"]


def test_a_phrase_is_looked_for_after_the_last_document_was_deleted(
    collection: Any, engine: Any
) -> None:
    """Its code is still in memory, and its words never were."""
    collection.add([{"id": 0, "text": "star moon"}, {"id": 1, "text": "sail star"}])
    collection = engine.reopen(collection)
    collection.delete([1])
    for by in ("words", "both"):
        assert collection.search('moon "star"', by=by).ids == [0]


def test_top_10_is_a_prefix_of_top_100(collection: Any) -> None:
    rng = np.random.default_rng(0)
    words = "star planet moon bread butter oven".split()
    collection.add({"id": i, "text": " ".join(rng.choice(words, 2))} for i in range(200))
    all_of_them = found(collection.search("moon bread", 100))
    assert len(all_of_them) == 100
    assert found(collection.search("moon bread", 10)) == all_of_them[:10]


def test_many_batches_and_a_generator(collection: Any) -> None:
    n = 2500
    assert (
        collection.add({"id": i, "text": "star" if i % 3 else "moon bread"} for i in range(n)) == n
    )
    assert len(collection) == n
    expected = [i for i in range(n) if i % 3]
    assert collection.within("star", 0).ids[: len(expected)] == expected


def test_drift_is_that_of_the_documents_inserted_last(collection: Any, hasher: Hasher) -> None:
    assert Newest(collection).drift() is None  # of no documents
    texts = [f"star {'moon' if i % 3 else 'quasar'} x{i}" for i in range(LATEST + 60)]
    collection.add({"id": i, "text": text} for i, text in enumerate(texts))
    collection.upsert([{"id": 3, "text": "bread"}])  # which keeps its place
    collection.delete([20, LATEST + 10, LATEST + 59])
    left = [i for i in range(len(texts)) if i not in (20, LATEST + 10, LATEST + 59)]
    documents = [Document(i, "bread" if i == 3 else texts[i]) for i in left[-LATEST:]]
    assert documents[0].id == 58
    expected = measured_drift(hasher, coded_documents(hasher, [Input(d) for d in documents]))
    assert Newest(collection).drift() == expected
    assert expected is not None
    assert expected.documents == LATEST


SENTENCE = "a star is a ball of gas that shines by its own light and a planet is not"
NEAR = [
    ("a", SENTENCE),
    ("b", SENTENCE.replace("light", "LIGHT,") + " at all"),  # 16 of 18 trigrams
    ("c", "bread and butter"),
    ("d", SENTENCE + "."),
    ("e", SENTENCE.replace("ball of gas", "thing in heaven")),  # 11 of 21
    ("f", ""),
    ("g", ""),
]


def test_duplicates(collection: Any) -> None:
    collection.add({"id": id_, "text": text} for id_, text in NEAR)
    seen: list[tuple[int, int]] = []
    groups = Newest(collection).duplicates(on_batch=lambda done, total: seen.append((done, total)))
    assert groups == [("a", [("b", 16 / 18), ("d", 1.0)])]
    assert (groups[0].kept, groups[0].duplicates[0].id) == ("a", "b")
    assert seen[-1] == (7, 7)
    assert Newest(collection).duplicates(keep="newest") == [("d", [("a", 1.0), ("b", 16 / 18)])]
    assert Newest(collection).duplicates(keep="longest") == [
        ("b", [("a", 16 / 18), ("d", 16 / 18)])
    ]
    assert Newest(collection).duplicates(0.9) == [("a", [("d", 1.0)])]


def test_texts_of_a_template_are_no_duplicates(collection: Any) -> None:
    """However similar: each has something of its own to say."""
    boilerplate = " ".join(f"word{i}" for i in range(80))
    texts = {name: f"the {name} {boilerplate} is a {name}" for name in ("star", "planet", "moon")}
    collection.add({"id": name, "text": text} for name, text in texts.items())
    collection.add([{"id": "again", "text": texts["planet"] + "!"}])
    assert Newest(collection).duplicates() == [("planet", [("again", 1.0)])]
    assert Newest(collection).is_duplicate(texts["moon"])
    assert not Newest(collection).is_duplicate(texts["moon"].replace("moon", "comet"))


def test_is_duplicate(collection: Any) -> None:
    collection.add({"id": id_, "text": text} for id_, text in NEAR)
    assert Newest(collection).is_duplicate(SENTENCE.upper())
    assert Newest(collection).is_duplicate(SENTENCE + " at last")
    assert not Newest(collection).is_duplicate(SENTENCE + " at last", 0.95)
    assert Newest(collection).is_duplicate("Bread, and butter")
    assert not Newest(collection).is_duplicate("bread and jam")
    assert not Newest(collection).is_duplicate("")
    collection.upsert([{"id": "c", "text": "x y z"}, {"id": "h", "text": "unheard-of"}])
    assert not Newest(collection).is_duplicate("bread and butter")
    assert Newest(collection).is_duplicate("X, Y, Z")  # single letters only
    assert Newest(collection).is_duplicate("unheard of")  # none of its words is known to the model
    collection.delete(["c"])
    assert not Newest(collection).is_duplicate("x y z")


def test_duplicates_are_deleted(collection: Any) -> None:
    collection.add({"id": id_, "text": text} for id_, text in NEAR)
    groups = Newest(collection).duplicates(keep="newest")
    assert collection.delete_duplicates(keep="newest") == groups
    assert [document.id for document in collection] == ["c", "d", "e", "f", "g"]
    assert collection.delete_duplicates() == Newest(collection).duplicates() == []


def test_nothing_is_deleted_where_others_have_written(collection: Any) -> None:
    """What was a copy when it was read may be another text by now."""
    collection.add({"id": id_, "text": text} for id_, text in NEAR)

    def write_meanwhile(*_: int) -> None:
        collection.upsert([{"id": "d", "text": "no copy any more"}])

    with pytest.raises(
        CollectionBusyError, match="was written to while duplicates were looked for"
    ):
        collection.delete_duplicates(on_batch=write_meanwhile)
    assert [document.id for document in collection] == [id_ for id_, _ in NEAR]


@pytest.mark.parametrize("value", [0, -0.5, 1.01, 80, "0.8", True, float("nan")])
def test_a_similarity_is_a_share(collection: Any, value: Any) -> None:
    for ask in (
        Newest(collection).duplicates,
        collection.delete_duplicates,
        lambda value: Newest(collection).is_duplicate("star", value),
    ):
        with pytest.raises(ValueError, match="min_similarity must be a number above 0 and at most"):
            ask(value)
    with pytest.raises(
        ValueError, match="keep must be one of 'first', 'longest', 'newest', got 'last'"
    ):
        Newest(collection).duplicates(keep="last")
    with pytest.raises(TypeError, match="text must be a string, got int"):
        Newest(collection).is_duplicate(7)


def test_a_duplicate_id_leaves_the_batch_out_and_the_earlier_ones_in(collection: Any) -> None:
    documents = [{"id": i, "text": "star"} for i in range(2000)] + [{"id": 7, "text": "moon"}]
    with pytest.raises(DuplicateIdError, match="the id 7 is already in the collection"):
        collection.add(documents)
    assert [document.id for document in collection] == list(range(1024))
    assert collection.get(7).text == "star"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"id": 1.5, "text": "a"},
            "the id of document 0 must be a string or an integer, got float",
        ),
        (
            {"id": True, "text": "a"},
            "the id of document 0 must be a string or an integer, got bool",
        ),
        ({"id": 2**63, "text": "a"}, "the id of document 0 must fit into 64 bits"),
        ({"id": "\ud800", "text": "a"}, "the id of document 0 must be Unicode"),
        ({"id": 1}, "document 0 has no 'text'"),
        ({"text": "a"}, "document 0 has no 'id'"),
        ({"id": 1, "text": None}, "the text of document 1 must be a string, got None"),
        ({"id": 1, "text": "a", "year": 1}, "document 0 has the field 'year'"),
        ({"id": 1, "text": "a", "metadata": [1]}, "the metadata of document 1 must be a dict"),
        (
            {"id": 1, "text": "a", "metadata": {"y": float("nan")}},
            "metadata field 'y' of document 1",
        ),
        ({"id": 1, "text": "a", "metadata": {"y": [{1, 2}]}}, "metadata field 'y' of document 1"),
        ({"id": 1, "text": "a", "metadata": {"y": 2**64}}, "metadata field 'y' .* 64 bits"),
        ({"id": 1, "text": "a", "metadata": {3: 1}}, "metadata field 3 of document 1"),
        ("a", "document 0 must be a Document or a dict"),
    ],
)
def test_what_is_no_document_is_named(
    engine: Any, hasher: Hasher, document: Any, message: str
) -> None:
    collection = engine.empty(hasher)
    with pytest.raises((TypeError, ValueError), match=message):
        collection.add([document])
    assert len(collection) == 0


VALUES = [
    *(None, True, False, 0, 1, -0.0, 1.0, 0.5, 2, 2**53, 2**53 + 1, float(2**53), -(2**63)),
    *("", "0", "1", "a", "A", "b", "é", "\U0001f600", "true", [], [1], ["a"], {"a": 1}),
]
SCALAR_VALUES = [value for value in VALUES if not isinstance(value, list | dict)]
ALL_WHERES = [
    *({"f": value} for value in SCALAR_VALUES),
    *({"f": list(pair)} for pair in itertools.combinations(SCALAR_VALUES, 2)),
    {"f": []},
    *({"f": {"!=": value}} for value in SCALAR_VALUES),
    *(
        {"f": {operator: value}}
        for operator in ("<", "<=", ">", ">=")
        for value in SCALAR_VALUES
        if value is not None and not isinstance(value, bool)
    ),
    {"f": {">=": 0, "<": 2, "!=": 1}},
    {"f": {">": 0}, "g": 1},
    {"f": None, "g": [0, None]},
]


def test_every_filter_over_every_kind_of_value(engine: Any, hasher: Hasher) -> None:
    collection, oracle = engine.create(hasher), Oracle(hasher)
    documents = [
        {"id": i, "text": "star", "metadata": {"f": value, "g": i % 2}}
        for i, value in enumerate(VALUES)
    ]
    documents.append({"id": "without", "text": "star", "metadata": {}})
    collection.add(documents)
    oracle.write(documents)
    # A server that answers in ticks is asked every fourth; it is given the same expressions.
    for where in ALL_WHERES[:: 1 if engine.examples > 5 else 4]:
        assert found(collection.within("star", 0, where=where)) == oracle.search("star", where), (
            where
        )


def test_a_filter_is_asked_anew_when_documents_change(collection: Any) -> None:
    collection.add({"id": i, "text": "star", "metadata": {"n": i % 2}} for i in range(6))
    assert collection.search("star", where={"n": 1}).ids == [1, 3, 5]
    collection.upsert([{"id": 0, "text": "star", "metadata": {"n": 1}}, {"id": 3, "text": "star"}])
    collection.add([{"id": 6, "text": "star", "metadata": {"n": 1}}])
    assert collection.search("star", where={"n": 1}).ids == [0, 1, 5, 6]
    assert collection.search("star", where={"n": None}).ids == [3]


def test_filters_never_become_sql(collection: Any) -> None:
    evil = "x'; DROP TABLE documents; --"
    collection.add(
        [{"id": evil, "text": evil, "metadata": {evil: evil}}, {"id": 1, "text": "star"}]
    )
    assert collection.search("star", where={evil: evil}).ids == [evil]
    assert collection.search("star", where={evil: {">=": evil}}).ids == [evil]
    assert collection.delete([evil]) == 1
    assert [document.id for document in collection] == [1]


def test_many_values_of_one_field(collection: Any) -> None:
    collection.add({"id": i, "text": "star", "metadata": {"n": i}} for i in range(3000))
    wanted = list(range(0, 3000, 2))
    assert collection.within("star", 0, where={"n": wanted}).ids == wanted


@pytest.mark.parametrize(
    "query",
    [np.zeros(3, dtype=np.uint8), np.zeros((2, 1), dtype=np.uint8), np.zeros(8, bool), 3, b"x"],
)
def test_what_is_no_query_is_named(engine: Any, hasher: Hasher, query: Any) -> None:
    collection = engine.empty(hasher)
    with pytest.raises(TypeError, match=r"query must be a text or one packed code, .* \(1,\), got"):
        collection.search(query)


def test_arguments_are_checked(engine: Any, hasher: Hasher) -> None:
    collection = engine.empty(hasher)
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        collection.search("star", 0)
    with pytest.raises(ValueError, match="radius must be an integer of 0 or more, got -1"):
        collection.within("star", -1)
    with pytest.raises(
        ValueError, match="order must be one of distance, confidence, words, got 'm"
    ):
        collection.search("star", order="mood")
    with pytest.raises(ValueError, match="by must be one of 'both', 'words', 'codes', got 'all'"):
        collection.search("star", by="all")
    with pytest.raises(ValueError, match="order 'words' compares words"):
        collection.search(hasher.transform(["star"])[0], order="words")
    with pytest.raises(ValueError, match="field 'year' has the operator '=>'"):
        collection.search("star", where={"year": {"=>": 1}})
    with pytest.raises(TypeError, match="ids must be a list of ids, got 'abc'"):
        collection.delete("abc")


def test_export_has_everything(collection: Any, tmp_path: Path) -> None:
    documents = [
        {"id": 1, "text": "star\n\u2028", "metadata": {"tags": ["a", None], "é": 1.5}},
        {"id": "1", "text": "", "metadata": {}},
    ]
    collection.add(documents)
    assert Newest(collection).export(tmp_path / "out.jsonl") == 2
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
    assert [json.loads(line) for line in lines if line] == documents
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_stats_are_the_same_whatever_keeps_them(collection: Any, hasher: Hasher) -> None:
    collection.add({"id": i, "text": "star" if i else "unheard-of"} for i in range(10))
    collection.delete([3])
    stats = collection.stats()
    assert list(stats) == [
        *("documents", "no_known_word", "bits", "method", "passages", "features", "model"),
        *("generation", "format_version", "unfinished", "rehash", "bytes"),
        "bytes_per_document",
    ]
    assert (stats["documents"], stats["bits"], stats["method"]) == (9, 8, "LSH")
    assert stats["no_known_word"] == 1
    assert stats["model"] == hasher.fingerprint()
    assert stats["unfinished"] is stats["rehash"] is None
    assert stats["generation"] == 2
    json.dumps(stats)


def test_an_interrupted_add_resumes(collection: Any, engine: Any) -> None:
    documents = [{"id": i, "text": "star"} for i in range(2500)]

    def interrupted() -> Iterator[dict[str, Any]]:
        yield from documents[:2100]
        raise InterruptedError

    with pytest.raises(InterruptedError):
        collection.add_resumably(interrupted(), "all")
    collection = engine.reopen(collection)
    unfinished = Newest(collection).state.unfinished
    assert collection.stats()["unfinished"] == unfinished
    assert len(unfinished.pop("checksum")) == 64
    assert unfinished == {"name": "all", "done": 2048, "last_id": 2047}
    with pytest.raises(ValueError, match="number 2047 must have the id 2047, got 2048"):
        collection.add_resumably(documents[1:], "all")
    with pytest.raises(ValueError, match="number 2047 must have the id 2047, got no more"):
        collection.add_resumably(documents[:2000], "all")
    for change in ({"text": "cleaned"}, {"metadata": {"parity": 2}}):
        with pytest.raises(ChangedDocumentsError, match="up to number 2047 are no longer those"):
            collection.add_resumably([{**documents[0], **change}, *documents[1:]], "all")
    assert collection.add_resumably(documents, "all") == 452
    with pytest.raises(DuplicateIdError):
        collection.add_resumably(documents, "all")
    assert Newest(collection).state.unfinished is None
    assert [document.id for document in collection] == list(range(2500))


def test_a_backup_is_a_collection_in_a_folder(
    collection: Any, hasher: Hasher, tmp_path: Path
) -> None:
    collection.add({"id": i, "text": "star moon" if i % 2 else "oven"} for i in range(30))
    collection.delete([7])
    collection.backup(tmp_path / "backup")
    with pytest.raises(FileExistsError, match="a backup goes into a new folder"):
        collection.backup(tmp_path / "backup")
    collection.delete([8])
    with Collection.open(tmp_path / "backup") as backup:
        assert [document.id for document in backup] == [i for i in range(30) if i != 7]
        assert backup.hasher.fingerprint() == hasher.fingerprint()
        assert found(backup.search("oven", 3)) == [(0, 0), (2, 0), (4, 0)]
        Newest(backup).check()
        backup.add([{"id": 7, "text": "star moon"}])
        assert found(backup.search("star moon", 30))[14] == (7, 0)  # in a place of its own


def test_documents_are_found_by_their_places(collection: Any, hasher: Hasher) -> None:
    texts = ["star", "oven", "", "moon bread"]
    collection.add({"id": f"d{i}", "text": text} for i, text in enumerate(texts))
    collection.delete(["d1"])
    rows = Newest(collection).rows()
    kept = ["star", "", "moon bread"]
    np.testing.assert_array_equal(rows.codes, hasher.transform(kept))
    assert rows.known.tolist() == [True, False, True]
    assert [document.text for document in Newest(collection).documents_at(rows.places)] == kept
    gone = np.array([10**9])
    assert Newest(collection).ids_at(np.concatenate([rows.places[::-1], gone])) == [
        "d3",
        "d2",
        "d0",
        None,
    ]
    coded = Newest(collection).find(["d3", "d1", "nobody"])
    assert list(coded) == ["d3"]
    assert coded["d3"].code == rows.codes[2].tobytes()
    assert coded["d3"].document == Document("d3", "moon bread", {})


def test_hits_carry_their_codes(collection: Any, hasher: Hasher) -> None:
    collection.add([{"id": 1, "text": "star"}, {"id": 2, "text": "unheard-of"}])
    for answer in (collection.search("star"), collection.within("star", 8)):
        by_id = {hit.id: hit for hit in answer}
        assert (by_id[1].known, by_id[2].known) == (True, False)
        assert by_id[1].code == hasher.transform(["star"])[0].tobytes()
        assert answer.query == "star"
        np.testing.assert_array_equal(answer.code, hasher.transform(["star"])[0])


def test_values_of_fields_are_counted(collection: Any) -> None:
    given: list[dict[str, Any]] = [
        {"lang": "de", "year": 2020, "tags": ["a"]},
        {"lang": "en", "year": 2020.0, "true": True},
        {"lang": "en", "year": 1, "true": 1, 'é"': "\0"},
        {"lang": None, "year": "2020", "true": False},
    ]
    collection.add({"id": i, "text": "star", "metadata": data} for i, data in enumerate(given))
    values = Newest(collection).field_values(2)
    assert values["lang"] == [("en", 2), ("de", 1)]
    assert values["year"][0] == (2020, 2)
    assert sorted(values) == sorted(["lang", "year", "tags", "true", 'é"'])
    assert {type(value) for value, _ in Newest(collection).field_values(9)["true"]} == {bool, int}
    assert values['é"'] == [("\0", 1)]
    places = Newest(collection).rows().places.tolist()
    lang = Newest(collection).column("lang")
    assert lang.values == ["de", "en"]
    assert sorted(zip(lang.places.tolist(), lang.numbers.tolist(), strict=True)) == [
        *zip(places, [0, 1, 1], strict=False)
    ]
    assert Newest(collection).column("tags").values == ["a"]
    assert Newest(collection).column("nothing").values == []


def test_what_matches_is_counted_by_the_values_of_fields(collection: Any) -> None:
    given: list[dict[str, Any]] = [
        {"lang": "de", "year": 2020, "tags": ["a", "b"]},
        {"lang": "en", "year": 2020.0, "tags": "a", "author": {"name": "Ann"}},
        {"lang": "en", "year": 1.5, "true": True},
        {"lang": "fr", "year": "2020", "true": 1, "author": {"name": "Bob"}},
    ]
    texts = ["star planet", "star moon", "planet", "bread"]
    collection.add(
        {"id": i, "text": text, "metadata": data}
        for i, (text, data) in enumerate(zip(texts, given, strict=True))
    )
    collection.add([{"id": "gone", "text": "star planet", "metadata": {"lang": "xx"}}])
    collection.delete(["gone"])
    fields = ["lang", "year", "tags", "author.name", "true"]

    def counted(**asked: Any) -> Any:
        answer = collection.search("star planet", 1, facets=fields, **asked)
        assert list(answer.facets) == fields
        return answer.total, answer.facets

    total, facets = counted(by="codes")
    assert total == 4
    assert facets["lang"] == ([("en", 2), ("de", 1), ("fr", 1)], None, None)
    assert facets["year"] == ([(2020, 2), (1.5, 1), ("2020", 1)], 1.5, 2020)
    assert facets["tags"] == ([("a", 2), ("b", 1)], None, None)
    assert facets["author.name"].values == [("Ann", 1), ("Bob", 1)]
    assert {type(value) for value, _ in facets["true"].values} == {bool, int}
    total, facets = counted(by="codes", where={"year": {"<": 2021}, "lang": {"!=": "de"}})
    assert (total, facets["lang"].values) == (2, [("en", 2)])
    assert facets["year"] == ([(1.5, 1), (2020, 1)], 1.5, 2020)
    assert collection.search("star planet").total is None
    assert collection.search("star planet", by="codes", facets=[]).total == 4
    assert collection.search("star", by="codes", facets=[], where={"lang": "en"}).total == 2
    for by in ("words", "both"):
        total, facets = counted(by=by)
        assert (total, facets["lang"].values) == (3, [("en", 2), ("de", 1)])
        total, facets = counted(by=by, where={"lang": "en"})
        assert (total, facets["lang"].values) == (2, [("en", 2)])
    without = collection.search("star planet -moon", facets=["lang"])
    assert (without.total, without.facets["lang"].values) == (2, [("de", 1), ("en", 1)])
    assert collection.search('"star planet"', facets=[]).total == 1


def test_a_facet_of_a_field_that_no_document_has_is_pointed_out(collection: Any) -> None:
    assert collection.search("star", facets=["yaer"]).warning is None  # there is nothing at all
    collection.add([{"id": 1, "text": "star", "metadata": {"year": 2020, "tags": []}}])
    answer = collection.search("star", facets=["year", "yaer"])
    assert answer.warning.startswith("no document has a field 'yaer' (is 'year' meant?)")
    assert answer.facets["yaer"] == ([], None, None)
    assert collection.search("star", facets=["tags"]).warning is None


def test_a_walk_through_the_collection_sees_what_stays(collection: Any) -> None:
    collection.add({"id": i, "text": f"star {i}", "metadata": {"n": i}} for i in range(7))
    collection.delete([2, 6])
    first = Newest(collection).page(0, 3)
    assert [coded.document.id for _, coded in first] == [0, 1, 3]
    assert first[0][1] == Newest(collection).find([0])[0]
    collection.delete([3])
    collection.upsert([{"id": 0, "text": "again"}, {"id": "new", "text": "moon"}])
    second = Newest(collection).page(first[-1][0], 3)
    assert [coded.document.id for _, coded in second] == [4, 5, "new"]
    assert Newest(collection).page(second[-1][0], 3) == []


def test_looking_for_duplicates_can_be_ended_while_they_are_read_and_compared(
    collection: Any,
) -> None:
    collection.add({"id": i, "text": f"star number {i}"} for i in range(2100))
    told: list[tuple[int, int]] = []
    found = Newest(collection).duplicates(on_batch=lambda *done: told.append(done))
    assert found == Newest(collection).duplicates()
    assert told[:3] == [(1024, 2100), (2048, 2100), (2100, 2100)]
    assert told[3:] == [(2100, 2100)] * 2
    for last in range(len(told)):
        n_told = itertools.count()

        def end_at(*_: int, n_told: Iterator[int] = n_told, last: int = last) -> None:
            if next(n_told) == last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Newest(collection).duplicates(on_batch=end_at)
    assert len(collection) == 2100


def test_files_beside_the_documents_come_back(
    collection: Any, engine: Any, other_hasher: Hasher
) -> None:
    assert collection.store.load_files("map") == []
    before = collection.store.files_version("map")
    config = b'{"format": "boltzhash map", "format_version": 1}'
    for contents in (b"\0\xff" * 100_000, b"another"):
        files = [ModelFile.of("config.json", config), ModelFile.of("points.npy", contents)]
        collection.store.save_files("map", files)
        assert collection.store.load_files("map") == files
        assert collection.store.files_version("map") not in (before, None)
        before = collection.store.files_version("map")
    collection.add([{"id": 1, "text": "star"}])
    collection.rehash(other_hasher)
    assert collection.store.load_files("map") == files
    assert engine.reopen(collection).store.files_version("map") == before


def test_threads_share_a_snapshot_that_others_write_past(collection: Any) -> None:
    collection.add({"id": i, "text": f"star {WORDS_OF_THREADS[i % 5]}"} for i in range(200))
    with collection.snapshot() as held:
        expected = {
            word: (held.search(word, 300).ids, held.search(word, 300, by="codes").ids)
            for word in WORDS_OF_THREADS
        }

        def ask(word: str) -> Any:
            found = [held.get(i).text for i in range(0, 200, 20)]  # type: ignore[union-attr]
            assert found == [f"star {WORDS_OF_THREADS[i % 5]}" for i in range(0, 200, 20)]
            return word, (held.search(word, 300).ids, held.search(word, 300, by="codes").ids)

        with ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(ask, word) for word in WORDS_OF_THREADS * 6]
            for i in range(10):
                collection.upsert([{"id": i, "text": "bread"}, {"id": f"new {i}", "text": "moon"}])
                collection.delete([i + 100])
            for answer in answers:
                word, found = answer.result()
                assert found == expected[word]
        assert (held.generation, len(held)) == (1, 200)
    assert len(collection) == 200


WORDS_OF_THREADS = ["planet", "moon", "orbit", "bread", "oven"]


def test_words_and_codes_answer_as_in_a_folder(
    engine: Any, long_hasher: Hasher, tmp_path: Path
) -> None:
    """Ids in order, documents, distances, scores and BM25: the same by default, by words and by both."""
    collection, rng = engine.create(long_hasher), np.random.default_rng(0)
    words = "star planet moon orbit comet bread butter oven flour sugar unheard".split()
    given = [
        {
            "id": f"doc-{i}" if i % 3 else i,
            "text": " ".join(rng.choice(words, rng.integers(1, 9))),
            "metadata": {"even": i % 2 == 0, "title": str(rng.choice(words))},
        }
        for i in range(700)
    ]
    with Collection.create(tmp_path / "folder", long_hasher) as folder:
        for one in (collection, folder):
            one.add(given)
            one.upsert(given[100:150][::-1])
            one.delete([0, "doc-1", 3])
        for question in ("moon bread", "Doc-7", '"moon bread" -star', "unheard -planet", "oven"):
            for by in ("words", "both", None):
                for where in (None, {"even": True}):
                    asked = {"by": by, "where": where}
                    answer = collection.search(question, 20, **asked)
                    expected = folder.search(question, 20, **asked)
                    assert [hit[1:5] for hit in answer] == [hit[1:5] for hit in expected]
                    assert (answer.ids, answer.by) == (expected.ids, expected.by)
                    for part in ("score", "words"):
                        assert [getattr(hit, part) for hit in answer] == pytest.approx(
                            [getattr(hit, part) for hit in expected], abs=1e-4
                        )
        like, expected = collection.more_like("doc-7", 5), folder.more_like("doc-7", 5)
        assert (like.by, like.ids) == ("both", expected.ids)
    assert collection.search("moon bread", 5).by == "both"
