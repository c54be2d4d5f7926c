"""A collection as LlamaIndex's vector store and retriever, beside LlamaIndex's own store."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boltzhash import ITQ, Collection, SemanticHasher, Training
from boltzhash.errors import MissingExtraError

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, ImageNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from boltzhash.integrations.llama_index import BoltzhashRetriever, BoltzhashVectorStore

TEXTS = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
ABOUT: list[dict[str, Any]] = [
    {"shelf": 1, "lang": "en", "tags": ["sky", "far"]},
    {"shelf": 2, "lang": "de", "tags": ["sky"]},
    {"shelf": 3, "tags": []},
    {"shelf": 4, "lang": "en"},
]


def nodes() -> list[TextNode]:
    """The first two were cut from the document "sky", the others from "table"."""
    made = []
    for name, text, about, source in zip(
        "abcd", TEXTS, ABOUT, ["sky", "sky", "table", "table"], strict=True
    ):
        node = TextNode(id_=name, text=text, metadata=about, excluded_llm_metadata_keys=["tags"])
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=source)
        made.append(node)
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BoltzhashVectorStore]:
    made = BoltzhashVectorStore.from_nodes(
        nodes(), location=tmp_path / "library", hasher=ITQ(n_bits=16)
    )
    yield made
    made.collection.close()


def filtered(*filters: Any, condition: str = "and") -> MetadataFilters:
    return MetadataFilters(
        filters=[MetadataFilter(key=k, operator=o, value=v) for k, o, v in filters],
        condition=condition,
    )


def test_answers_are_those_of_the_collection(store: BoltzhashVectorStore) -> None:
    found = store.query(VectorStoreQuery(query_str="planets", similarity_top_k=3))
    hits = store.collection.search("planets", 3)
    assert (found.ids, found.similarities) == (hits.ids, [hit.score for hit in hits])
    assert [node.text for node in found.nodes] == [hit.text for hit in hits]
    by_words = VectorStoreQuery(
        query_str="planets", similarity_top_k=3, mode=VectorStoreQueryMode.TEXT_SEARCH
    )
    assert store.query(by_words).ids == store.collection.search("planets", 3, by="words").ids


def test_nodes_come_back_as_they_were(store: BoltzhashVectorStore) -> None:
    assert store.get_nodes(list("dab")) == [nodes()[3], nodes()[0], nodes()[1]]
    store.add([plain := TextNode(id_="plain", text="comets")])
    assert store.get_nodes(["plain", "none"]) == [plain]
    document = store.collection.get("plain")
    assert document is not None
    assert document.metadata == {}


FILTERS = [
    filtered(("shelf", "==", 2)),
    filtered(("lang", "!=", "en")),
    filtered(("shelf", ">", 1), ("shelf", "<=", 3)),
    filtered(("shelf", ">=", 4), ("lang", "==", "de"), condition="or"),
    filtered(("shelf", "==", 1), ("lang", "==", "de"), condition="not"),
    filtered(("lang", "in", ["de", "fr"])),
    filtered(("lang", "nin", ["de", "fr"])),
    filtered(("tags", "any", ["far", "near"])),
    filtered(("tags", "all", ["sky", "far"])),
    filtered(("tags", "contains", "sky")),
    filtered(("lang", "text_match", "e")),
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_mean_what_they_mean_in_llama_indexs_own_store(
    store: BoltzhashVectorStore, filters: MetadataFilters
) -> None:
    theirs = SimpleVectorStore()
    for node in nodes():
        node.embedding = [1.0]
        theirs.add([node])
    query = {"similarity_top_k": 4, "filters": filters}
    expected = theirs.query(VectorStoreQuery(query_embedding=[1.0], **query)).ids
    assert 0 < len(expected) < 4
    assert [node.node_id for node in store.get_nodes(filters=filters)] == sorted(expected)
    by_codes = store.query(VectorStoreQuery(query_str="butter", **query)).ids
    assert set(by_codes or []) <= set(expected)


def test_filters_within_filters(store: BoltzhashVectorStore) -> None:
    either = filtered(("shelf", "==", 1), ("shelf", "==", 4), condition="or")
    both = MetadataFilters(filters=[either, MetadataFilter(key="tags", value="far")])
    assert [node.node_id for node in store.get_nodes(filters=both)] == ["a"]


def test_what_is_not_there_is_refused(store: BoltzhashVectorStore) -> None:
    with pytest.raises(ValueError, match="'tags' has the operator is_empty"):
        store.get_nodes(filters=filtered(("tags", "is_empty", None)))
    with pytest.raises(ValueError, match="must mind case, got text_match_insensitive"):
        store.get_nodes(filters=filtered(("lang", "text_match_insensitive", "E")))
    with pytest.raises(ValueError, match=r"mode must be one of default, hybrid, .* got mmr"):
        store.query(VectorStoreQuery(query_str="x", mode=VectorStoreQueryMode.MMR))
    with pytest.raises(ValueError, match="not among node_ids"):
        store.query(VectorStoreQuery(query_str="x", node_ids=["a"]))
    with pytest.raises(TypeError, match="must be TextNodes, got ImageNode 'i'"):
        store.add([ImageNode(id_="i", text="x")])
    with pytest.raises(ValueError, match="must not have the field 'ref_doc_id'"):
        store.add([TextNode(id_="t", text="x", metadata={"ref_doc_id": "y"})])


def test_deleting(store: BoltzhashVectorStore) -> None:
    left = lambda: [document.id for document in store.collection]  # noqa: E731
    with pytest.raises(ValueError, match="must say what is to be deleted"):
        store.delete_nodes()
    store.delete_nodes(["a", "b", "none"], filtered(("shelf", ">", 1)))
    assert left() == ["a", "c", "d"]
    store.delete("table")
    assert left() == ["a"]
    store.clear()
    assert left() == []


def test_an_index_over_it(store: BoltzhashVectorStore) -> None:
    """Documents are cut, added, found by a question and deleted by LlamaIndex itself."""
    index = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(1))
    index.insert(Document(id_="comets", text="comets have tails", metadata={"shelf": 9}))
    retriever = index.as_retriever(similarity_top_k=1, filters=filtered(("shelf", "==", 9)))
    (found,) = retriever.retrieve("tails")
    assert (found.node.ref_doc_id, found.node.metadata) == ("comets", {"shelf": 9})
    assert asyncio.run(retriever.aretrieve("tails"))[0].node == found.node
    index.delete_ref_doc("comets")
    assert [document.id for document in store.collection] == list("abcd")
    of_sky = index.as_retriever(similarity_top_k=4, doc_ids=["sky"]).retrieve("butter planets")
    assert {hit.node_id for hit in of_sky} == {"a", "b"}


def test_a_retriever(store: BoltzhashVectorStore) -> None:
    own = BoltzhashRetriever(store.collection, k=1, where={"shelf": 3})
    (found,) = own.retrieve("butter")
    assert found.node == nodes()[2]
    assert found.score == store.collection.search("butter", 1, where={"shelf": 3}).hits[0].score
    assert len(asyncio.run(BoltzhashRetriever(store.collection, k=2).aretrieve("butter"))) == 2


def test_a_model_of_vectors_is_given_them(tmp_path: Path) -> None:
    texts = [f"{text} {i}" for i in range(10) for text in TEXTS]
    made = [TextNode(id_=text, text=text) for text in texts]
    for i, node in enumerate(made):
        node.embedding = [float(i % 4 == axis) + i / 100 for axis in range(4)]
    store = BoltzhashVectorStore.from_nodes(
        made, location=tmp_path / "library", hasher=SemanticHasher(16, training=Training(epochs=2))
    )
    assert store.is_embedding_query
    assert store.collection.stats()["features"] == 4
    query = VectorStoreQuery(query_str=texts[7], query_embedding=made[7].embedding)
    assert store.query(query).ids == [texts[7]]
    with pytest.raises(ValueError, match="node 'x' must have an embedding"):
        store.add([TextNode(id_="x", text="x")])
    context = StorageContext.from_defaults(vector_store=store)
    VectorStoreIndex(
        [TextNode(id_="new", text="new")], storage_context=context, embed_model=MockEmbedding(4)
    )
    with Collection.open(tmp_path / "library") as collection:
        assert "new" in collection


def test_without_llama_index_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index.core.base.base_retriever", None)
    monkeypatch.delitem(sys.modules, "boltzhash.integrations.llama_index")
    with pytest.raises(MissingExtraError, match=r"pip install 'boltzhash\[llama-index\]'"):
        importlib.import_module("boltzhash.integrations.llama_index")
