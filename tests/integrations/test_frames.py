"""pandas, polars and Hugging Face's datasets: columns are texts, rows are documents."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, Collection, read_corpus
from boltzhash.corpus import BadRecord, CorpusError, Document

TEXTS = ["bread and butter", "stars and planets", "butter and jam"]
ROWS = {
    "id": ["a", "b", "c"],
    "text": TEXTS,
    "year": [2019, 2020, None],
    "printed": [datetime.date(2020, 1, 31), None, datetime.date(2021, 5, 1)],
    "tags": [["x", "y"], [], ["x"]],
}


def pandas_frame(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def polars_frame(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def dataset(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("datasets.arrow_dataset").Dataset.from_dict(columns)


def streamed(columns: dict[str, Any]) -> Any:
    return dataset(columns).to_iterable_dataset()


MAKERS = [pandas_frame, polars_frame, dataset, streamed]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def framed(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_column_of_texts(framed: Any) -> None:
    column = framed(ROWS)["text"]
    hasher = LSH(16).fit(column)
    assert hasher.fingerprint() == LSH(16).fit(TEXTS).fingerprint()
    np.testing.assert_array_equal(hasher.transform(column), hasher.transform(TEXTS))
    np.testing.assert_array_equal(LSH(16).fit_transform(column), hasher.transform(TEXTS))


def test_a_missing_text_is_named_by_its_number(framed: Any) -> None:
    column = framed({"text": [*TEXTS, None]})["text"]
    missing = r"document 3 must be a string, got \w+, a missing value: leave it out, or make it ''"
    with pytest.raises(ValueError, match=missing):
        LSH(16).fit(column)


def test_a_frame_is_not_texts(framed: Any) -> None:
    given = framed(ROWS)
    told = f"got a {type(given).__name__} with the columns 'id', .*: pass .* such as X\\['text'\\]"
    with pytest.raises(ValueError, match=told):
        LSH(16).fit(given)


def test_rows_are_documents(framed: Any, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "library", LSH(16).fit(TEXTS)) as collection:
        assert collection.add(framed(ROWS)) == 3
        assert list(collection) == [
            Document("a", TEXTS[0], {"year": 2019, "printed": "2020-01-31", "tags": ["x", "y"]}),
            Document("b", TEXTS[1], {"year": 2020, "printed": None, "tags": []}),
            Document("c", TEXTS[2], {"year": None, "printed": "2021-05-01", "tags": ["x"]}),
        ]
        assert collection.search("butter", where={"year": 2019}).ids == ["a"]
        changed = framed({"id": ["b"], "text": ["moons"]})
        assert collection.upsert(changed) == 1
        assert collection.get("b") == Document("b", "moons", {})


def test_other_columns_are_named_as_for_files(framed: Any) -> None:
    given = framed({"key": [7, 8], "body": TEXTS[:2], "year": [1, 2], "lang": ["de", "en"]})
    found = read_corpus(given, text_field="body", id_field="key", metadata=["lang"])
    assert list(found) == [
        Document(7, TEXTS[0], {"lang": "de"}),
        Document(8, TEXTS[1], {"lang": "en"}),
    ]
    assert [d.id for d in read_corpus(given, text_field="body")] == [0, 1]
    kind = type(given).__name__
    told = f"{kind}: expected a column 'text', got the columns: 'key', 'body', 'year', 'lang'"
    for option, arguments in (
        ("text_field", {}),
        ("id_field", {"text_field": "body", "id_field": "no"}),
        ("metadata", {"text_field": "body", "metadata": ["no"]}),
    ):
        missing = told if option == "text_field" else told.replace("'text'", "'no'")
        with pytest.raises(
            CorpusError, match=f"{missing}; name another with {option}= of read_corpus"
        ):
            read_corpus(given, **arguments)
    with pytest.raises(CorpusError, match="format= is for files, got 'csv'"):
        read_corpus(given, text_field="body", format="csv")


def test_missing_cells_are_named_by_their_rows(framed: Any) -> None:
    given = framed({"id": ["a", "b", None], "text": ["x", None, "z"]})
    kind = type(given).__name__
    with pytest.raises(CorpusError, match=f"{kind}, row 1: field 'text' must be a string, got"):
        list(read_corpus(given))
    bad: list[BadRecord] = []
    assert [d.id for d in read_corpus(given, on_bad=bad.append)] == ["a"]
    assert [one.where for one in bad] == [f"{kind}, row 1", f"{kind}, row 2"]
    assert bad[1].problem.startswith("field 'id' must be a string or an integer, got")


def test_nothing_is_added_of_a_frame_without_texts(framed: Any, tmp_path: Path) -> None:
    with Collection.create(tmp_path / "library", LSH(16).fit(TEXTS)) as collection:
        with pytest.raises(
            CorpusError, match="expected a column 'text', got the columns: 'id', 'body'"
        ):
            collection.add(framed({"id": ["a"], "body": ["x"]}))
        assert len(collection) == 0


def test_names_of_columns_in_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(CorpusError, match="names of columns must be strings, got 0"):
        read_corpus(pandas.DataFrame([["a", "b"]]))
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(CorpusError, match="expected one column 'text', got 2"):
        read_corpus(twice)
    with pytest.raises(CorpusError, match="expected a column 'text', got the columns: none"):
        read_corpus(pandas.DataFrame(index=[1, 2]))


def test_the_index_and_types_of_pandas(tmp_path: Path) -> None:
    """Rows are counted, whatever the index says; values are what JSON can say."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "text": pandas.Series(TEXTS[:2], dtype="string"),
            "kind": pandas.Categorical(["x", "y"]),
            "when": pandas.to_datetime(["2020-01-31 10:00", None]),
            "n": pandas.array([1, None], dtype="Int64"),
            "yes": [True, False],
        }
    )
    frame.index = [5, 5]
    with Collection.create(tmp_path / "library", LSH(16).fit(frame["text"].tolist() * 2)) as made:
        made.add(frame)
        assert list(made) == [
            Document(
                0, TEXTS[0], {"kind": "x", "when": "2020-01-31T10:00:00", "n": 1, "yes": True}
            ),
            Document(1, TEXTS[1], {"kind": "y", "when": None, "n": None, "yes": False}),
        ]


def test_what_is_no_frame_yet() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(
        TypeError, match=r"got a LazyFrame, which is not computed yet: collect\(\) it"
    ):
        read_corpus(polars.DataFrame(ROWS).lazy())
    with pytest.raises(ValueError, match=r"got a LazyFrame, which is not computed yet"):
        LSH(8).fit(polars.DataFrame(ROWS).lazy())
    datasets = pytest.importorskip("datasets.dataset_dict")
    with pytest.raises(
        TypeError, match="got a DatasetDict, which has parts: choose one of 'train'"
    ):
        read_corpus(datasets.DatasetDict({"train": dataset(ROWS)}))


def test_a_polars_frame_of_numbers_is_a_matrix() -> None:
    polars = pytest.importorskip("polars")
    matrix = np.eye(3) + 1
    expected = LSH(8).fit_transform(matrix)
    np.testing.assert_array_equal(LSH(8).fit_transform(polars.DataFrame(matrix)), expected)


@pytest.mark.filterwarnings("ignore:X .* feature names")  # a frame, then an array
@pytest.mark.parametrize(
    "check", ["check_set_output_transform", "check_global_set_output_transform"]
)
def test_scikit_learns_checks_of_polars(check: str) -> None:
    pytest.importorskip("polars")
    from sklearn.utils import estimator_checks

    getattr(estimator_checks, f"{check}_polars")("LSH", LSH(8, output="bits"))
