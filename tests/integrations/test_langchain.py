"""A collection as LangChain's vector store and retriever; beside this are LangChain's own tests."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boltzhash import ITQ, Collection, SemanticHasher, Training
from boltzhash.errors import MissingExtraError

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from boltzhash.integrations.langchain import BoltzhashRetriever, BoltzhashVectorStore

TEXTS = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BoltzhashVectorStore]:
    made = BoltzhashVectorStore.from_texts(
        TEXTS,
        metadatas=[{"shelf": i} for i in range(4)],
        ids=list("abcd"),
        location=tmp_path / "library",
        hasher=ITQ(n_bits=16),
    )
    yield made
    made.collection.close()


def test_answers_are_those_of_the_collection(store: BoltzhashVectorStore) -> None:
    found = store.similarity_search_with_score("planets", k=3)
    hits = store.collection.search("planets", 3)
    assert [(d.id, score) for d, score in found] == [(hit.id, hit.score) for hit in hits]
    assert [d.page_content for d, _ in found] == [hit.text for hit in hits]
    assert found[0][0].metadata == {"shelf": hits.documents[0].metadata["shelf"]}
    assert store.similarity_search("planets", k=3) == [document for document, _ in found]


def test_a_filter_is_where(store: BoltzhashVectorStore) -> None:
    (only,) = store.similarity_search("butter", k=4, filter={"shelf": {">": 2}})
    assert only.id == "d"


def test_documents_replace_those_of_the_same_id(store: BoltzhashVectorStore) -> None:
    assert store.add_documents([Document(id="a", page_content="comets and planets")]) == ["a"]
    (given,) = store.add_texts(["jam tomorrow"])
    assert len(store.collection) == 5
    texts = [document.page_content for document in store.get_by_ids(["a", given, "none"])]
    assert texts == ["comets and planets", "jam tomorrow"]


def test_deleting_says_whether_all_were_there(store: BoltzhashVectorStore) -> None:
    assert store.delete(["a", "b"])
    assert not store.delete(["a", "c"])
    assert [document.id for document in store.collection] == ["d"]
    with pytest.raises(ValueError, match="ids must name what is to be deleted"):
        store.delete()


def test_what_does_not_fit_is_refused(store: BoltzhashVectorStore) -> None:
    with pytest.raises(ValueError, match="metadatas must be one for each of 2 texts, got 1"):
        store.add_texts(["x", "y"], [{}])
    with pytest.raises(ValueError, match="ids must be one for each of 1 texts, got 2"):
        store.add_texts(["x"], ids=["1", "2"])
    with pytest.raises(TypeError, match="fetch_k"):
        store.similarity_search("x", fetch_k=3)  # type: ignore[call-arg]


def test_retrievers(store: BoltzhashVectorStore) -> None:
    own = BoltzhashRetriever(collection=store.collection, k=1, where={"shelf": 2})
    assert [document.id for document in own.invoke("butter")] == ["c"]
    theirs = store.as_retriever(search_kwargs={"k": 1, "filter": {"shelf": 3}})
    assert [document.id for document in asyncio.run(theirs.ainvoke("butter"))] == ["d"]
    assert len(BoltzhashRetriever(collection=store.collection).invoke("butter", k=2)) == 2


def test_a_model_of_vectors_is_given_them(tmp_path: Path) -> None:
    embedding = DeterministicFakeEmbedding(size=24)
    texts = [f"{text} {i}" for i in range(10) for text in TEXTS]
    store = BoltzhashVectorStore.from_texts(
        *(texts, embedding),
        location=tmp_path / "library",
        hasher=SemanticHasher(16, training=Training(epochs=2)),
    )
    assert store.embeddings is embedding
    assert store.collection.stats()["features"] == 24
    found = store.similarity_search(texts[7], k=1)
    assert [document.page_content for document in found] == [texts[7]]
    with Collection.open(tmp_path / "library") as collection:
        assert len(collection) == len(texts)


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks", None)
    monkeypatch.delitem(sys.modules, "boltzhash.integrations.langchain")
    with pytest.raises(MissingExtraError, match=r"pip install 'boltzhash\[langchain\]'"):
        importlib.import_module("boltzhash.integrations.langchain")
