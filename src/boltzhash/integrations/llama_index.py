"""A collection as LlamaIndex's vector store, and as its retriever.

``pip install 'boltzhash[llama-index]'`` brings what it needs. Answers are those of
:meth:`boltzhash.Collection.search`: by words and codes in one score. A model of words needs no
embeddings; for a model that was fitted on vectors, nodes and questions come with theirs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.collection import Collection
from boltzhash.collection.filters import matches, parse_where
from boltzhash.corpus import Document
from boltzhash.errors import needs_extra
from boltzhash.hashers import Hasher, SemanticHasher
from boltzhash.integrations.scores import with_scores

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
except ImportError:
    raise needs_extra(
        "boltzhash.integrations.llama_index", "llama-index-core", "llama-index"
    ) from None

# Where the metadata of a document has what a node has beside its id, text and metadata.
SOURCE, REST = "ref_doc_id", "_node"
_BY = {  # LlamaIndex's ways to search that a collection has, as it calls them
    VectorStoreQueryMode.DEFAULT: None,
    VectorStoreQueryMode.HYBRID: "both",
    VectorStoreQueryMode.TEXT_SEARCH: "words",
    VectorStoreQueryMode.SPARSE: "words",
}


class BoltzhashRetriever(BaseRetriever):
    """The k documents of a collection that answer a question best, by ``Collection.search``.

    For a collection whose model was fitted on vectors: that of an index over
    :class:`BoltzhashVectorStore`.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> library = Collection.create(Path(tempfile.mkdtemp(), "library"), ITQ(n_bits=16).fit(texts))
    >>> n = library.add({"id": str(i), "text": text} for i, text in enumerate(texts))
    >>> [found.node_id for found in BoltzhashRetriever(library, k=1).retrieve("bread")]
    ['2']
    """

    def __init__(
        self,
        collection: Collection,
        k: int = 10,
        where: dict[str, Any] | None = None,
        by: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.collection, self.k, self.where, self.by = collection, k, where, by

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self.collection.search(
            query_bundle.query_str, self.k, where=self.where, by=self.by
        )
        return [
            NodeWithScore(node=as_node(document), score=score)
            for document, score in with_scores(answer)
        ]


class BoltzhashVectorStore(BasePydanticVectorStore):
    """A collection with LlamaIndex's verbs: ``VectorStoreIndex.from_vector_store`` takes it.

    Parameters
    ----------
    collection : Collection
        Made or opened elsewhere, or by :meth:`from_nodes`. Nodes that are added replace those of the
        same id.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> store = BoltzhashVectorStore.from_nodes(
    ...     [TextNode(id_=text, text=text, metadata={"shelf": i}) for i, text in enumerate(texts)],
    ...     location=Path(tempfile.mkdtemp(), "library"),
    ...     hasher=ITQ(n_bits=16),
    ... )
    >>> late = MetadataFilters(filters=[MetadataFilter(key="shelf", operator=">", value=2)])
    >>> store.query(VectorStoreQuery(query_str="butter", similarity_top_k=2, filters=late)).ids
    ['butter and jam']
    """

    stores_text: bool = True
    collection: Collection

    def __init__(self, collection: Collection) -> None:
        reads_vectors = collection.hasher.n_feature_columns is not None
        values: dict[str, Any] = {"collection": collection, "is_embedding_query": reads_vectors}
        super().__init__(**values)

    @classmethod
    def class_name(cls) -> str:
        return "BoltzhashVectorStore"

    @classmethod
    def from_nodes(
        cls, nodes: Sequence[BaseNode], *, location: str | Path, hasher: Hasher | None = None
    ) -> BoltzhashVectorStore:
        """A new collection of the nodes at ``location``, with a model that is fitted on them.

        ``hasher`` is what is fitted: ``SemanticHasher(purpose="questions")`` if it is not given, which
        needs ``boltzhash[train]`` and takes minutes for many nodes; ``ITQ()`` is fitted in seconds.
        If nodes have embeddings, it is fitted on those.
        """
        model = SemanticHasher(purpose="questions") if hasher is None else hasher
        texts = [as_document(node).text for node in nodes]
        vectors = vectors_of(nodes) if any(node.embedding is not None for node in nodes) else None
        store = cls(Collection.create(location, model.fit(texts, features=vectors)))
        store.add(nodes)
        return store

    @property
    def client(self) -> Collection:
        return self.collection

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those whose ids are there; returns their ids.

        Embeddings are read if the model was fitted on such, and never kept.
        """
        vectors = vectors_of(nodes) if self.is_embedding_query and nodes else None
        self.collection.upsert(list(map(as_document, nodes)), features=vectors)
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes that were cut from one document."""
        self._delete(self._matching({SOURCE: ref_doc_id}))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes by their ids, by a filter, or those of the ids that a filter lets through."""
        if node_ids is None and filters is None:
            raise ValueError("node_ids or filters must say what is to be deleted, got neither")
        self._delete(self._chosen(node_ids, filters))

    def clear(self) -> None:
        """Delete all nodes; the model stays."""
        self._delete(self._matching({}))

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The nodes with these ids that are there, in that order; those that a filter lets through."""
        return [as_node(document) for document in self._chosen(node_ids, filters)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes that answer best, with scores: more is better."""
        if query.mode not in _BY:
            raise ValueError(
                f"mode must be one of {', '.join(mode.value for mode in _BY)}, got {query.mode.value}"
            )
        if query.node_ids:
            raise ValueError("a collection searches by metadata, not among node_ids: use filters")
        vector = np.array(query.query_embedding) if self.is_embedding_query else None
        of = {SOURCE: list(query.doc_ids)} if query.doc_ids else {}
        answer = self.collection.search(
            query.query_str,
            query.similarity_top_k,
            where={"$and": [of, as_where(query.filters)]},
            by=_BY[query.mode],
            features=vector,
        )
        found = list(with_scores(answer))
        return VectorStoreQueryResult(
            nodes=[as_node(document) for document, _ in found],
            similarities=[score for _, score in found],
            ids=[str(document.id) for document, _ in found],
        )

    def _chosen(
        self, node_ids: list[str] | None, filters: MetadataFilters | None
    ) -> list[Document]:
        if node_ids is None:
            return self._matching(as_where(filters))
        with self.collection.snapshot() as now:
            there = now.find(node_ids)
        conditions = parse_where(as_where(filters))
        chosen = [there[name].document for name in node_ids if name in there]
        return [found for found in chosen if matches(conditions, found.metadata or {})]

    def _matching(self, where: dict[str, Any]) -> list[Document]:
        with self.collection.snapshot() as now:
            return now.matching(where)

    def _delete(self, documents: Sequence[Document]) -> None:
        self.collection.delete([document.id for document in documents])


def as_document(node: BaseNode) -> Document:
    """A node as a collection keeps it: what has no place of its own goes into the metadata."""
    if type(node) is not TextNode:
        raise TypeError(
            f"nodes must be TextNodes, got {type(node).__name__} {node.node_id!r}: cut documents into "
            "nodes first, such as with SentenceSplitter"
        )
    left_out = {"id_", "text", "metadata", "embedding"}
    rest = node.model_dump(mode="json", exclude=left_out, exclude_defaults=True)
    metadata = dict(node.metadata)
    for name in {SOURCE, REST} & metadata.keys():
        raise ValueError(f"the metadata of node {node.node_id!r} must not have the field {name!r}")
    if node.ref_doc_id is not None:
        metadata[SOURCE] = node.ref_doc_id
    if rest.keys() - {"class_name"}:
        metadata[REST] = json.dumps(rest)
    return Document(node.node_id, node.get_content(MetadataMode.NONE), metadata)


def as_node(document: Document) -> TextNode:
    """The node that was added; a document that came otherwise is one with its id, text and metadata."""
    metadata = dict(document.metadata or {})
    metadata.pop(SOURCE, None)
    rest = json.loads(str(metadata.pop(REST, "{}")))
    return TextNode(
        **{**rest, "id_": str(document.id), "text": document.text, "metadata": metadata}
    )


def vectors_of(nodes: Sequence[BaseNode]) -> Any:
    """float64 (n, n_dimensions), rows in the order of the nodes; an error if one has none."""
    for node in nodes:
        if node.embedding is None:
            raise ValueError(
                f"node {node.node_id!r} must have an embedding, as the model reads those"
            )
    return np.array([node.embedding for node in nodes])


def as_where(filters: MetadataFilter | MetadataFilters | None) -> dict[str, Any]:
    """LlamaIndex's filters as ``Collection.search`` takes them.

    >>> as_where(MetadataFilters(filters=[MetadataFilter(key="shelf", value=2)], condition="or"))
    {'$or': [{'shelf': {'=': 2}}]}
    """
    if filters is None:
        return {}
    if isinstance(filters, MetadataFilter):
        return _condition(filters.key, filters.operator, filters.value)
    inner = list(map(as_where, filters.filters))
    if filters.condition == FilterCondition.NOT:
        return {"$not": {"$or": inner}}
    return {"$or" if filters.condition == FilterCondition.OR else "$and": inner}


def _condition(field: str, operator: FilterOperator, value: Any) -> dict[str, Any]:
    """A missing field is unequal to any value, as LlamaIndex has it."""
    if operator in (FilterOperator.NE, FilterOperator.NIN):
        return {"$not": {field: value}}
    if operator is FilterOperator.ALL:
        return {"$and": [{field: each} for each in value]}
    if operator is FilterOperator.IS_EMPTY:
        raise ValueError(
            f"the filter on {field!r} has the operator is_empty, which is not supported"
        )
    if operator is FilterOperator.TEXT_MATCH_INSENSITIVE:
        raise ValueError(
            f"the filter on {field!r} must mind case, got text_match_insensitive: use text_match"
        )
    names = {
        FilterOperator.EQ: "=",
        FilterOperator.ANY: "in",
        FilterOperator.TEXT_MATCH: "contains",
    }
    return {field: {names.get(operator, operator.value): value}}
