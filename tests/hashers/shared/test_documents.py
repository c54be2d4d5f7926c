"""What is given in place of texts, and the messages that say what to pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, Collection

TEXTS = ["bread and butter", "stars and planets", "butter and jam"]


def refusal(X: Any) -> str:
    with pytest.raises(ValueError) as of_fit:  # noqa: PT011  # the message is what is tested
        LSH(8).fit(X)
    with pytest.raises(ValueError) as of_transform:  # noqa: PT011
        LSH(8).fit(TEXTS).transform(X)
    assert str(of_fit.value) == str(of_transform.value)
    return str(of_fit.value)


def test_a_frame_of_texts() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 2, 3], "text": TEXTS})
    assert refusal(frame) == (
        "X must be a list of texts or a matrix, got a DataFrame with the columns 'id', 'text': pass the "
        "column with the texts, such as X['text']"
    )
    assert refusal(frame[["text"]].rename(columns={"text": "body"})).endswith("such as X['body']")
    LSH(8).fit(frame["text"])


def test_a_frame_of_numbers_is_a_matrix() -> None:
    pandas = pytest.importorskip("pandas")
    matrix = np.eye(3) + 1
    expected = LSH(8, random_state=0).fit_transform(matrix)
    hasher = LSH(8, random_state=0)
    np.testing.assert_array_equal(hasher.fit_transform(pandas.DataFrame(matrix)), expected)


def test_a_series_of_mixed_types() -> None:
    pandas = pytest.importorskip("pandas")
    missing = ", a missing value: leave it out, or make it ''"
    missing += " (fillna('') in pandas, fill_null('') in polars)"
    series = pandas.Series([*TEXTS, float("nan")], dtype=object)
    assert refusal(series) == f"document 3 must be a string, got float{missing}"
    assert refusal(pandas.Series([None, *TEXTS], dtype=object)).endswith(f"got NoneType{missing}")
    assert refusal(pandas.Series([*TEXTS, 7], dtype=object)) == (
        "document 3 must be a string, got int"
    )


def test_bytes_records_and_dicts() -> None:
    assert refusal([b"bread", b"butter"]) == (
        "document 0 must be a string, got bytes: decode them first, such as with "
        "text.decode('utf-8')"
    )
    assert refusal([{"id": 1, "text": "bread"}]) == (
        "document 0 must be a string, got dict: pass only its text"
    )
    assert refusal([["bread", "butter"]]).startswith("document 0 must be a string, got list")
    assert refusal({"a": "bread", "b": "butter"}).endswith("such as X.values()")


def test_what_a_collection_is_told_of_a_series_and_bytes(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    hasher = LSH(8).fit(TEXTS)
    with Collection.create(tmp_path / "library", hasher) as collection:
        with pytest.raises(TypeError, match="got a Series, one column: pass a data frame with"):
            collection.add(pandas.Series(TEXTS))
        with pytest.raises(TypeError, match=r"got bytes b'x': decode it first"):
            collection.add([{"id": 1, "text": b"x"}])
        assert collection.add(pandas.Series(TEXTS, name="text").to_frame()) == 3
