"""A collection as LangChain's vector store, and as its retriever.

``pip install 'boltzhash[langchain]'`` brings what it needs. Answers are those of
:meth:`boltzhash.Collection.search`: by words and codes in one score. A model of words needs no
embeddings; for a model that was fitted on vectors, ``embedding`` makes those of documents and questions.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.collection import Collection
from boltzhash.corpus import Document as OwnDocument
from boltzhash.errors import needs_extra
from boltzhash.hashers import Hasher, SemanticHasher
from boltzhash.integrations.scores import with_scores

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
except ImportError:
    raise needs_extra("boltzhash.integrations.langchain", "langchain-core", "langchain") from None


class BoltzhashRetriever(BaseRetriever):
    """The k documents of a collection that answer a question best, by ``Collection.search``.

    For a collection whose model was fitted on vectors: ``BoltzhashVectorStore(…).as_retriever()``.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> library = Collection.create(Path(tempfile.mkdtemp(), "library"), ITQ(n_bits=16).fit(texts))
    >>> n = library.add({"id": str(i), "text": text} for i, text in enumerate(texts))
    >>> [found.id for found in BoltzhashRetriever(collection=library, k=1).invoke("bread")]
    ['2']
    """

    collection: Collection
    k: int = 10
    where: dict[str, Any] | None = None
    by: str | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        answer = self.collection.search(query, k or self.k, where=self.where, by=self.by)
        return [as_langchain(document) for document, _ in with_scores(answer)]


class BoltzhashVectorStore(VectorStore):
    """A collection with LangChain's verbs; ``as_retriever()`` and what is asynchronous come with them.

    Parameters
    ----------
    collection : Collection
        Made or opened elsewhere, or by :meth:`from_texts`. Documents that are added replace those of
        the same id.
    embedding : Embeddings, optional
        For a collection whose model was fitted on vectors, and only for one.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> store = BoltzhashVectorStore.from_texts(
    ...     texts,
    ...     metadatas=[{"shelf": i} for i in range(4)],
    ...     ids=["a", "b", "c", "d"],
    ...     location=Path(tempfile.mkdtemp(), "library"),
    ...     hasher=ITQ(n_bits=16),
    ... )
    >>> [found.id for found in store.similarity_search("butter", k=2, filter={"shelf": {">": 2}})]
    ['d']
    """

    def __init__(self, collection: Collection, embedding: Embeddings | None = None) -> None:
        self.collection = collection
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings | None:
        return self._embedding

    @classmethod
    def from_texts(  # type: ignore[override]  # embeddings may be left out
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        location: str | Path,
        hasher: Hasher | None = None,
    ) -> BoltzhashVectorStore:
        """A new collection of the texts at ``location``, with a model that is fitted on them.

        ``hasher`` is what is fitted: ``SemanticHasher(purpose="questions")`` if it is not given, which
        needs ``boltzhash[train]`` and takes minutes for many texts; ``ITQ()`` is fitted in seconds.
        """
        model = SemanticHasher(purpose="questions") if hasher is None else hasher
        vectors = None if embedding is None else vectors_of(embedding, texts)
        store = cls(Collection.create(location, model.fit(texts, features=vectors)), embedding)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def add_texts(  # type: ignore[override]  # arguments that are not known are refused
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
    ) -> list[str]:
        """Add texts, or replace those whose ids are there; returns ids, made up where there are none."""
        texts = list(texts)
        for name, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ValueError(
                    f"{name} must be one for each of {len(texts)} texts, got {len(given)}"
                )
        names = [name or str(uuid.uuid4()) for name in ids or [""] * len(texts)]
        vectors = None if self._embedding is None else vectors_of(self._embedding, texts)
        about = metadatas or [{} for _ in texts]
        self.collection.upsert(map(OwnDocument, names, texts, about), features=vectors)
        return names

    def delete(self, ids: list[str] | None = None) -> bool:  # type: ignore[override]
        """Delete the documents with these ids; True if all of them were there."""
        if ids is None:
            raise ValueError("ids must name what is to be deleted, got None")
        return self.collection.delete(ids) == len(set(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids that are there, in this order."""
        found = (self.collection.get(name) for name in ids)
        return [as_langchain(document) for document in found if document is not None]

    def similarity_search(  # type: ignore[override]
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None
    ) -> list[Document]:
        """The k documents that answer best; ``filter`` is ``where`` of ``Collection.search``."""
        found = self.similarity_search_with_score(query, k, filter)
        return [document for document, _score in found]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None
    ) -> list[tuple[Document, float]]:
        """The same with scores: more is better, and what is the most depends on the question."""
        vector = None if self._embedding is None else np.array(self._embedding.embed_query(query))
        answer = self.collection.search(query, k, where=filter, features=vector)
        return [(as_langchain(document), score) for document, score in with_scores(answer)]


def vectors_of(embedding: Embeddings, texts: Sequence[str]) -> Any:
    """float64 (n, n_dimensions), rows in the order of the texts."""
    return np.array(embedding.embed_documents(list(texts)))


def as_langchain(document: OwnDocument) -> Document:
    return Document(
        id=str(document.id), page_content=document.text, metadata=dict(document.metadata or {})
    )
