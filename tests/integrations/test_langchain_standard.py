"""LangChain's own tests of vector stores and retrievers; `make test-integrations` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from boltzhash import ITQ, Collection
from boltzhash.integrations.langchain import BoltzhashRetriever, BoltzhashVectorStore

KNOWN = ["foo one", "foo two", "bar three", "bar four", "baz five", "baz six", "thud seven", "thud"]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "library", ITQ(n_bits=16).fit(KNOWN)) as collection:
        yield collection


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, library: Collection) -> VectorStore:  # type: ignore[override]
        return BoltzhashVectorStore(library)


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def filled(self, library: Collection) -> None:
        library.add({"id": str(i), "text": f"foo {text}"} for i, text in enumerate(KNOWN))
        self.library = library

    @property
    def retriever_constructor(self) -> type[BoltzhashRetriever]:
        return BoltzhashRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"collection": self.library}

    @property
    def retriever_query_example(self) -> str:
        return "foo bar"
