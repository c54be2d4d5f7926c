"""Reranking: the order of cosines, worked by hand, and orders by their names."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from boltzhash import LSH, Collection, Text
from boltzhash.cli.parser import main
from boltzhash.search import Hit, rerank
from boltzhash.search import order as orders
from boltzhash.search.order import ORDERS
from boltzhash.text.tfidf import TfIdf


def rows(*values: list[float]) -> sparse.csr_matrix:
    return sparse.csr_matrix(np.array(values))


def test_the_largest_cosine_comes_first() -> None:
    query = rows([0.6, 0.8, 0.0])
    candidates = rows([0, 0, 1], [1, 0, 0], [0, 1, 0], [0.6, 0.8, 0])  # 0, .6, .8, 1
    assert rerank(query, candidates).tolist() == [3, 2, 1, 0]


def test_equal_cosines_keep_their_place() -> None:
    query = rows([1.0, 0.0, 0.0])
    candidates = rows([0, 1, 0], [0.6, 0.8, 0], [0, 0, 1], [0.6, 0, 0.8], [0, 1, 0], [1, 0, 0])
    assert rerank(query, candidates).tolist() == [5, 1, 3, 0, 2, 4]


def test_a_query_without_words_leaves_the_order_alone() -> None:
    query = sparse.csr_matrix((1, 3))
    assert rerank(query, rows([0, 1, 0], [1, 0, 0], [0, 0, 1])).tolist() == [0, 1, 2]


def test_candidates_without_words_come_last_in_their_order() -> None:
    query = rows([1.0, 0.0])
    candidates = rows([0, 0], [0.6, 0.8], [0, 0], [1, 0])
    assert rerank(query, candidates).tolist() == [3, 1, 0, 2]


def test_no_candidates_give_an_empty_order() -> None:
    order = rerank(rows([1.0, 0.0]), sparse.csr_matrix((0, 2)))
    assert order.tolist() == []


def test_one_query_at_a_time() -> None:
    with pytest.raises(ValueError, match="rerank takes one query, got 2"):
        rerank(rows([1, 0], [0, 1]), rows([1, 0]))


def test_the_order_is_that_of_cosines_computed_densely() -> None:
    rng = np.random.default_rng(0)
    dense = rng.random((50, 30)) * (rng.random((50, 30)) < 0.3)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    query, candidates = dense[0], dense[1:]
    cosines = [math.fsum(query * candidate) for candidate in candidates]
    expected = sorted(range(49), key=lambda place: (-round(cosines[place], 12), place))
    order = rerank(sparse.csr_matrix(query[None]), sparse.csr_matrix(candidates))
    assert order.tolist() == expected


def test_words_settle_the_order_of_texts() -> None:
    texts = ["red apple pie", "green apple", "blue train", "red train", "old bus", "new bus"]
    tfidf = TfIdf()
    candidates = tfidf.fit_transform(texts)
    # "red" stands in two documents, "train" in two: the only text with both comes first, and of
    # the other two the shorter, whose one known word weighs more.
    order = rerank(tfidf.transform(["a red train"]), candidates)
    assert [texts[place] for place in order[:3]] == ["red train", "blue train", "red apple pie"]


def backwards(query: object, nearest: Sequence[Hit], hasher: object) -> list[Hit]:
    return list(nearest[::-1])


def test_a_further_order_is_a_line_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["red apple", "green apple", "blue train", "old bus"]
    with Collection.create(tmp_path / "c", LSH(64, text=Text(max_df=1.0)).fit(texts)) as collection:
        collection.add({"id": i, "text": text} for i, text in enumerate(texts))
        nearest = collection.search("red apple", by="codes").ids
        monkeypatch.setitem(ORDERS, "backwards", backwards)
        assert collection.search("red apple", order="backwards").ids == nearest[::-1]
        with monkeypatch.context() as fewer:
            fewer.setattr(orders, "CANDIDATES", 2)
            two = collection.search("red apple", order="backwards")
        assert two.ids == [*nearest[1::-1], *nearest[2:]]  # the candidates alone
    command = ["search", str(tmp_path / "c"), "red apple", "--order", "backwards"]
    assert main([*command, "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert [hit["id"] for hit in hits] == nearest[::-1]


def test_confidence_counts_bits_by_how_sure_the_model_is(tmp_path: Path) -> None:
    words = "star planet moon orbit comet bread butter oven".split()
    texts = [f"{one} {other}" for one in words for other in words]
    hasher = LSH(16, text=Text(max_df=1.0)).fit(texts)
    with Collection.create(tmp_path / "library", hasher) as collection:
        collection.add({"id": i, "text": text} for i, text in enumerate(texts))
        found = collection.search("star moon oven", 64, order="confidence")
        margins = hasher.margins(["star moon oven"])[0]
        bits = np.unpackbits(hasher.transform(texts), axis=1)
        score = (np.where(bits, 1.0, -1.0) * margins).sum(axis=1).round(9)
        assert [score[int(id_)] for id_ in found.ids] == sorted(score.tolist(), reverse=True)
        with pytest.raises(ValueError, match="order 'confidence' needs a text"):
            collection.search(hasher.transform(["star"])[0], order="confidence")
