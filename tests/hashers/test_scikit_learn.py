"""Hashers among scikit-learn's estimators: names of columns, data frames, a classifier of codes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from boltzhash import ITQ, LSH, Hasher
from boltzhash.errors import MissingExtraError

CHECKS = (
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_get_feature_names_out_error",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
)


@pytest.fixture(scope="module")
def topics() -> list[str]:
    return [topic for topic in ("space", "food", "law") for _ in range(30)]


@pytest.mark.filterwarnings("ignore:X .* feature names")  # a frame, then an array
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("hasher", [ITQ(8), LSH(8, output="bits")], ids=str)
def test_scikit_learns_checks_of_outputs(hasher: Hasher, check: str) -> None:
    getattr(estimator_checks, check)(type(hasher).__name__, hasher)


def test_columns_are_named_after_bits_or_bytes(texts: list[str]) -> None:
    bits = LSH(16, output="bits").fit(texts).get_feature_names_out()
    assert bits.tolist() == [f"lsh{bit}" for bit in range(16)]
    assert LSH(16).fit(texts).get_feature_names_out().tolist() == ["lsh_byte0", "lsh_byte1"]
    with pytest.raises(NotFittedError):
        LSH(16).get_feature_names_out()


def test_a_data_frame_has_the_bits_and_the_index_of_the_texts(texts: list[str]) -> None:
    series = pd.Series(texts, index=[f"row {i}" for i in range(len(texts))])
    hasher = LSH(16, output="bits").fit(series)
    frame = hasher.set_output(transform="pandas").transform(series)
    assert frame.index.equals(series.index)
    assert frame.columns.tolist() == hasher.get_feature_names_out().tolist()
    np.testing.assert_array_equal(
        frame.to_numpy(), hasher.set_output(transform="default").transform(texts)
    )
    assert list(hasher.set_output(transform="pandas").transform(texts).index) == [
        *range(len(texts))
    ]


def test_what_a_hasher_says_goes_before_the_configuration(texts: list[str]) -> None:
    hasher = LSH(16).fit(texts)
    with config_context(transform_output="pandas"):
        assert isinstance(hasher.transform(texts), pd.DataFrame)
        assert isinstance(hasher.encode(texts), np.ndarray)
        assert isinstance(hasher.set_output(transform="default").transform(texts), np.ndarray)


def test_the_container_is_cloned_and_is_no_part_of_the_model(texts: list[str]) -> None:
    hasher = LSH(16).fit(texts)
    before = hasher.fingerprint()
    hasher.set_output(transform="pandas")
    assert hasher.set_output() is hasher
    assert isinstance(clone(hasher).fit_transform(texts), pd.DataFrame)
    assert hasher.fingerprint() == before
    with pytest.raises(ValueError, match="transform must be one of 'default', 'pandas', 'polars'"):
        hasher.set_output(transform="arrow")


def test_frames_without_scikit_learn_or_without_their_library(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hasher = LSH(16).fit(texts).set_output(transform="pandas")
    monkeypatch.delitem(sys.modules, "sklearn")
    assert isinstance(hasher.transform(texts), pd.DataFrame)
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(MissingExtraError, match=f"needs {library}, which is not installed"):
            hasher.set_output(transform=library).transform(texts)


def test_a_classifier_of_bits(texts: list[str], topics: list[str]) -> None:
    """Texts in, topics out; names of columns lead through the pipeline, and a grid search works."""
    pipeline = make_pipeline(ITQ(output="bits"), LogisticRegression())
    search = GridSearchCV(pipeline, {"itq__n_bits": [8, 16]}, cv=3).fit(texts, topics)
    assert search.best_score_ > 0.9
    best = search.best_estimator_.set_output(transform="pandas").fit(texts, topics)
    names = best[:-1].get_feature_names_out().tolist()
    assert best[-1].feature_names_in_.tolist() == names
    assert names[0] == "itq0"


def test_a_column_of_texts_beside_others(texts: list[str], topics: list[str]) -> None:
    frame = pd.DataFrame({"text": texts, "year": np.arange(len(texts))})
    columns: Any = make_column_transformer(
        (ITQ(16, output="bits"), "text"), ("passthrough", ["year"])
    ).set_output(transform="pandas")
    made = columns.fit_transform(frame, topics)
    assert made.columns.tolist() == [*(f"itq__itq{bit}" for bit in range(16)), "passthrough__year"]
