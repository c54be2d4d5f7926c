"""A collection as Haystack's document store, held to Haystack's own tests, and its retriever."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boltzhash import ITQ, Collection, SemanticHasher, Training
from boltzhash.errors import MissingExtraError

pytest.importorskip("haystack", reason="haystack-ai is not installed")

from haystack import Document, Pipeline
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ByteStream
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DocumentStore, DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseTests

from boltzhash.integrations.haystack import BoltzhashDocumentStore, BoltzhashRetriever

TEXTS = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "library", ITQ(n_bits=16).fit(TEXTS)) as made:
        yield made


@pytest.fixture
def document_store(collection: Collection) -> BoltzhashDocumentStore:
    return BoltzhashDocumentStore(collection)


@pytest.fixture
def filled(document_store: BoltzhashDocumentStore) -> BoltzhashDocumentStore:
    documents = [
        Document(id=name, content=text, meta={"shelf": i})
        for i, (name, text) in enumerate(zip("abcd", TEXTS, strict=True))
    ]
    assert document_store.write_documents(documents) == 4
    return document_store


class TestHaystacksOwn(DocumentStoreBaseTests):
    @pytest.fixture
    def document_store(self, collection: Collection) -> BoltzhashDocumentStore:
        return BoltzhashDocumentStore(collection)

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """Embeddings are not kept."""
        assert received == [replace(document, embedding=None) for document in expected]

    def test_write_documents(self, document_store: DocumentStore) -> None:
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


def test_answers_are_those_of_the_collection(filled: BoltzhashDocumentStore) -> None:
    found = BoltzhashRetriever(filled).run("planets", top_k=3)["documents"]
    hits = filled.collection.search("planets", 3)
    assert [(d.id, d.score, d.content) for d in found] == [(h.id, h.score, h.text) for h in hits]
    by_words = BoltzhashRetriever(filled, by="words").run("planets")["documents"]
    assert [d.id for d in by_words] == filled.collection.search("planets", by="words").ids


def test_filters_of_the_retriever_and_of_a_run(filled: BoltzhashDocumentStore) -> None:
    late = {"field": "meta.shelf", "operator": ">=", "value": 2}
    early = {"field": "meta.shelf", "operator": "<", "value": 3}
    replaced = BoltzhashRetriever(filled, filters=late)
    assert {d.shelf for d in found(replaced, None)} == {2, 3}
    assert {d.shelf for d in found(replaced, early)} == {0, 1, 2}
    merged = BoltzhashRetriever(
        filled, filters={"operator": "AND", "conditions": [late]}, filter_policy=FilterPolicy.MERGE
    )
    assert {d.shelf for d in found(merged, {"operator": "AND", "conditions": [early]})} == {2}


class Shelved:
    def __init__(self, document: Document) -> None:
        self.shelf = document.meta["shelf"]


def found(retriever: Any, filters: dict[str, Any] | None) -> list[Shelved]:
    question = "butter bread planets stars moons jam"
    return [Shelved(document) for document in retriever.run(question, filters)["documents"]]


def test_a_pipeline_that_is_saved_finds_the_same(filled: BoltzhashDocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", BoltzhashRetriever(filled, top_k=2, by="words"))
    asked = {"retriever": {"query": "butter"}}
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=[BoltzhashRetriever.__module__])
    assert again.run(asked) == pipeline.run(asked)
    assert len(again.run(asked)["retriever"]["documents"]) == 2
    again.get_component("retriever").document_store.collection.close()


def test_a_writer_of_a_pipeline(document_store: BoltzhashDocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("writer", DocumentWriter(document_store, DuplicatePolicy.OVERWRITE))
    for text in ("comets", "comets have tails"):
        pipeline.run({"writer": {"documents": [Document(id="x", content=text)]}})
    assert [d.content for d in document_store.filter_documents()] == ["comets have tails"]


def test_of_documents_with_one_id_the_first_is_written_when_others_are_skipped(
    filled: BoltzhashDocumentStore,
) -> None:
    given = [Document(id=name, content=f"new {i}") for i, name in enumerate("eeaf")]
    assert filled.write_documents(given, DuplicatePolicy.SKIP) == 2
    assert [d.content for d in filled.filter_documents()] == [*TEXTS, "new 0", "new 3"]


def test_what_is_not_a_text_is_refused(document_store: BoltzhashDocumentStore) -> None:
    with pytest.raises(
        ValueError, match="document 'x' must have a text and nothing else, got none"
    ):
        document_store.write_documents([Document(id="x")])
    with pytest.raises(ValueError, match="got a blob as well"):
        document_store.write_documents([Document(content="x", blob=ByteStream(b"x"))])
    with pytest.raises(
        FilterError, match=r"filters are on metadata, such as 'meta.year', got 'id'"
    ):
        document_store.filter_documents({"field": "id", "operator": "==", "value": "x"})
    with pytest.raises(FilterError, match=r"the operator must be one of ==, .* got '='"):
        document_store.filter_documents({"field": "meta.x", "operator": "=", "value": "x"})
    with pytest.raises(TypeError, match="document_store must be a BoltzhashDocumentStore, got str"):
        BoltzhashRetriever("library")


def test_embeddings_that_a_model_of_words_cannot_read_are_pointed_out(
    document_store: BoltzhashDocumentStore, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        document_store.write_documents([Document(content="x", embedding=[1.0])])
    assert "embeddings of documents are neither read nor kept" in caplog.text


def test_a_model_of_vectors_is_given_them(tmp_path: Path) -> None:
    texts = [f"{text} {i}" for i in range(10) for text in TEXTS]
    vectors = [[float(i % 4 == axis) + i / 100 for axis in range(4)] for i in range(len(texts))]
    store = BoltzhashDocumentStore.from_documents(
        [Document(id=t, content=t, embedding=v) for t, v in zip(texts, vectors, strict=True)],
        location=tmp_path / "library",
        hasher=SemanticHasher(16, training=Training(epochs=2)),
    )
    assert store.collection.stats()["features"] == 4
    answer = BoltzhashRetriever(store, top_k=1).run(texts[7], query_embedding=vectors[7])
    assert [document.id for document in answer["documents"]] == [texts[7]]
    with pytest.raises(ValueError, match="document 'x' must have an embedding"):
        store.write_documents([Document(id="x", content="x")])
    store.collection.close()


def test_without_haystack_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "haystack", None)
    monkeypatch.delitem(sys.modules, "boltzhash.integrations.haystack")
    with pytest.raises(MissingExtraError, match=r"pip install 'boltzhash\[haystack\]'"):
        importlib.import_module("boltzhash.integrations.haystack")
