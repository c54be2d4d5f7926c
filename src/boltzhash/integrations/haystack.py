"""A collection as Haystack's document store, with the retriever that searches it.

``pip install 'boltzhash[haystack]'`` brings what it needs. Answers are those of
:meth:`boltzhash.Collection.search`: by words and codes in one score. A model of words needs no
embeddings; for a model that was fitted on vectors, documents and questions come with theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from boltzhash.collection import Collection
from boltzhash.corpus import Document as OwnDocument
from boltzhash.errors import DuplicateIdError, needs_extra
from boltzhash.hashers import Hasher, SemanticHasher
from boltzhash.integrations.scores import with_scores

try:
    from haystack import Document, component, default_from_dict, default_to_dict, logging
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError
except ImportError:
    raise needs_extra("boltzhash.integrations.haystack", "haystack-ai", "haystack") from None

logger = logging.getLogger(__name__)

_ORDERED = ("<", "<=", ">", ">=")
_OPERATORS = ("==", "!=", *_ORDERED, "in", "not in")


class BoltzhashDocumentStore:
    """A collection with Haystack's verbs.

    Parameters
    ----------
    collection : Collection, str or path
        A collection, or where one is; see ``Collection.open``. :meth:`from_documents` makes a new one.
        A pipeline that is saved keeps the location without a password.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> store = BoltzhashDocumentStore.from_documents(
    ...     [Document(id=text, content=text, meta={"shelf": i}) for i, text in enumerate(texts)],
    ...     location=Path(tempfile.mkdtemp(), "library"),
    ...     hasher=ITQ(n_bits=16),
    ... )
    >>> late = {"field": "meta.shelf", "operator": ">", "value": 2}
    >>> [found.id for found in store.filter_documents(late)]
    ['butter and jam']
    """

    def __init__(self, collection: Collection | str | Path) -> None:
        self.collection: Collection = (
            collection if isinstance(collection, Collection) else Collection.open(collection)
        )

    @classmethod
    def from_documents(
        cls, documents: Sequence[Document], *, location: str | Path, hasher: Hasher | None = None
    ) -> BoltzhashDocumentStore:
        """A new collection of the documents at ``location``, with a model that is fitted on them.

        ``hasher`` is what is fitted: ``SemanticHasher(purpose="questions")`` if it is not given, which
        needs ``boltzhash[train]`` and takes minutes for many documents; ``ITQ(stem=True)`` is fitted in
        seconds. If documents have embeddings, it is fitted on those.
        """
        model = SemanticHasher(purpose="questions") if hasher is None else hasher
        texts = [as_own(document).text for document in documents]
        has_vectors = any(document.embedding is not None for document in documents)
        vectors = vectors_of(documents) if has_vectors else None
        store = cls(Collection.create(location, model.fit(texts, features=vectors)))
        store.write_documents(list(documents))
        return store

    def to_dict(self) -> dict[str, Any]:
        """Where the collection is, for a pipeline that is saved."""
        return dict(default_to_dict(self, collection=self.collection.location))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BoltzhashDocumentStore:
        opened: BoltzhashDocumentStore = default_from_dict(cls, data)
        return opened

    def count_documents(self) -> int:
        return len(self.collection)

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """The documents that the filters let through, in the order of insertion."""
        with self.collection.snapshot() as now:
            return [as_haystack(found) for found in now.matching(as_where(filters))]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents; returns how many. Without a policy, an id that is there is an error.

        Embeddings are read if the model was fitted on such, and never kept.
        """
        if not isinstance(documents, list) or not all(isinstance(d, Document) for d in documents):
            raise ValueError(f"documents must be a list of Documents, got {documents!r:.100}")
        if policy is DuplicatePolicy.SKIP:
            with self.collection.snapshot() as now:
                there = now.find([document.id for document in documents])
            new = {document.id: document for document in reversed(documents)}
            documents = [found for name, found in reversed(new.items()) if name not in there]
        vectors = self._vectors(documents)
        own = list(map(as_own, documents))
        if policy is DuplicatePolicy.OVERWRITE:
            return self.collection.upsert(own, features=vectors)
        try:
            return self.collection.add(own, features=vectors)
        except DuplicateIdError as error:
            raise DuplicateDocumentError(str(error)) from error

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete those of the documents that are there."""
        self.collection.delete(document_ids)

    def _vectors(self, documents: Sequence[Document]) -> Any:
        if self.collection.hasher.n_feature_columns is not None and documents:
            return vectors_of(documents)
        if any(document.embedding is not None for document in documents):
            logger.warning(
                "The collection's model reads words: embeddings of documents are neither read nor kept."
            )
        return None


@component
class BoltzhashRetriever:
    """The documents that answer a question best, with scores: more is better.

    Parameters
    ----------
    document_store : BoltzhashDocumentStore
    filters : dict, optional
        Haystack's filters; ``filter_policy`` says what those given to ``run`` do to them.
    top_k : int
        How many documents are found at most.
    by : {"both", "words", "codes"}, optional
        As in ``Collection.search``.
    filter_policy : FilterPolicy

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import ITQ
    >>> texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"]
    >>> store = BoltzhashDocumentStore.from_documents(
    ...     [Document(content=text) for text in texts],
    ...     location=Path(tempfile.mkdtemp(), "library"),
    ...     hasher=ITQ(n_bits=16),
    ... )
    >>> [found.content for found in BoltzhashRetriever(store, top_k=1).run("bread")["documents"]]
    ['bread and butter']
    """

    def __init__(
        self,
        document_store: BoltzhashDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        by: str | None = None,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        if not isinstance(document_store, BoltzhashDocumentStore):
            raise TypeError(
                f"document_store must be a BoltzhashDocumentStore, got {type(document_store).__name__}"
            )
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.by = by
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        return dict(
            default_to_dict(
                self,
                document_store=self.document_store,
                filters=self.filters,
                top_k=self.top_k,
                by=self.by,
                filter_policy=self.filter_policy.value,
            )
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BoltzhashRetriever:
        policy = FilterPolicy.from_str(data["init_parameters"]["filter_policy"])
        parameters = {**data["init_parameters"], "filter_policy": policy}
        made: BoltzhashRetriever = default_from_dict(cls, {**data, "init_parameters": parameters})
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
    ) -> dict[str, list[Document]]:
        """Search; ``query_embedding`` is for a model that was fitted on vectors."""
        answer = self.document_store.collection.search(
            query,
            self.top_k if top_k is None else top_k,
            where=as_where(apply_filter_policy(self.filter_policy, self.filters, filters)),
            by=self.by,
            features=None if query_embedding is None else np.array(query_embedding),
        )
        return {"documents": [as_haystack(found, score) for found, score in with_scores(answer)]}


def as_own(document: Document) -> OwnDocument:
    if document.content is None or document.blob is not None:
        what = "none" if document.content is None else "a blob as well"
        raise ValueError(f"document {document.id!r} must have a text and nothing else, got {what}")
    return OwnDocument(document.id, document.content, dict(document.meta))


def as_haystack(document: OwnDocument, score: float | None = None) -> Document:
    return Document(
        id=str(document.id), content=document.text, meta=dict(document.metadata or {}), score=score
    )


def vectors_of(documents: Sequence[Document]) -> Any:
    """float64 (n, n_dimensions), rows in the order of the documents; an error if one has none."""
    for document in documents:
        if document.embedding is None:
            raise ValueError(
                f"document {document.id!r} must have an embedding, as the model reads those"
            )
    return np.array([document.embedding for document in documents])


def as_where(filters: dict[str, Any] | None) -> dict[str, Any]:
    """Haystack's filters as ``Collection.search`` takes them.

    >>> as_where({"field": "meta.shelf", "operator": ">", "value": 2})
    {'shelf': {'>': 2}}
    >>> as_where({"operator": "OR", "conditions": [{"field": "a", "operator": "==", "value": 1}]})
    {'$or': [{'a': 1}]}
    """
    if not filters:
        return {}
    if "field" in filters:
        for name in ("operator", "value"):
            if name not in filters:
                raise FilterError(f"the filter {filters} must have {name!r}")
        return _condition(_name(filters["field"]), filters["operator"], filters["value"])
    operator, conditions = filters.get("operator"), filters.get("conditions")
    if operator not in ("AND", "OR", "NOT") or not isinstance(conditions, list):
        raise FilterError(
            "a filter must have 'field', 'operator' and 'value', or the operator AND, OR or NOT with "
            f"'conditions', got {filters}"
        )
    inner = list(map(as_where, conditions))
    if operator == "NOT":
        return {"$not": {"$and": inner}}
    return {"$and" if operator == "AND" else "$or": inner}


def _name(field: str) -> str:
    if field in {each.name for each in fields(Document)}:
        raise FilterError(f"filters are on metadata, such as 'meta.year', got {field!r}")
    return field.removeprefix("meta.")


def _condition(field: str, operator: str, value: Any) -> dict[str, Any]:
    """A missing field is unequal to any value, and None is neither more nor less than any."""
    if operator not in _OPERATORS:
        raise FilterError(f"the operator must be one of {', '.join(_OPERATORS)}, got {operator!r}")
    if operator in ("in", "not in") and not isinstance(value, list):
        raise FilterError(f"{operator!r} takes a list, got {value!r} for {field!r}")
    if operator in ("==", "in"):
        return {field: value}
    if operator in ("!=", "not in"):
        return {"$not": {field: value}}
    if value is None:
        return {"$or": []}
    if isinstance(value, str):
        _check_is_date(field, operator, value)
    if not isinstance(value, str | int | float | datetime):
        raise FilterError(f"{operator!r} takes a number or a date, got {value!r} for {field!r}")
    return {field: {operator: value}}


def _check_is_date(field: str, operator: str, value: str) -> None:
    """Haystack compares no other strings."""
    try:
        datetime.fromisoformat(value)
    except ValueError:
        raise FilterError(
            f"{operator!r} takes a number or a date in ISO 8601, got {value!r} for {field!r}"
        ) from None
