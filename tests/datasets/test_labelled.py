"""The corpus object and the split by hash."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets.labelled import LabelledDocument, make_corpus, split_by_hash


def documents(n: int) -> list[LabelledDocument]:
    return [LabelledDocument(f"d{i}", f"text {i}", (f"l{i % 3}",)) for i in range(n)]


def test_labels_are_columns_in_alphabetical_order() -> None:
    parts = {
        "train": [LabelledDocument("a", "x", ("wheat", "corn")), LabelledDocument("b", "y", ())],
        "val": [LabelledDocument("c", "z", ("oil",))],
        "test": [LabelledDocument("d", "u", ("corn",))],
    }
    corpus = make_corpus("small", parts, [])
    assert corpus.label_names == ("corn", "oil", "wheat")
    assert corpus.train.labels.tolist() == [[True, False, True], [False, False, False]]
    assert corpus.val.labels.tolist() == [[False, True, False]]
    assert corpus.test.labels.dtype == np.bool_
    assert (corpus.train.ids, corpus.train.texts) == (["a", "b"], ["x", "y"])


def test_an_id_in_two_parts_is_refused() -> None:
    parts = {part: documents(1) for part in ("train", "val", "test")}
    with pytest.raises(CorpusError, match="expected distinct ids, got 'd0' twice"):
        make_corpus("small", parts, [])


def test_an_empty_part_is_refused() -> None:
    with pytest.raises(CorpusError, match="expected documents in the part 'val', got none"):
        make_corpus("small", {"train": documents(1), "test": documents(2)[1:]}, [])


def test_split_is_a_partition_that_keeps_the_order() -> None:
    all_of_them = documents(1003)
    parts = split_by_hash(all_of_them, (0.8, 0.1, 0.1))
    assert [len(part) for part in parts] == [802, 101, 100]
    assert sorted((d for part in parts for d in part), key=all_of_them.index) == all_of_them
    for part in parts:
        assert part == sorted(part, key=all_of_them.index)


def test_split_does_not_depend_on_the_order_of_documents() -> None:
    one = split_by_hash(documents(200), (0.9, 0.1))[1]
    other = split_by_hash(documents(200)[::-1], (0.9, 0.1))[1]
    assert {document.id for document in one} == {document.id for document in other}


def test_split_is_fixed_for_ever() -> None:
    """These ids were computed once; another result means that published splits have changed."""
    val = split_by_hash(documents(40), (0.9, 0.1))[1]
    assert [document.id for document in val] == ["d7", "d32", "d35", "d38"]
    other = split_by_hash(documents(40), (0.9, 0.1), seed=1)[1]
    assert other != val
