"""What a model keeps of the documents it was fitted on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Hasher, Network, SemanticHasher, Text, Training, load
from boltzhash.codes import unpack
from boltzhash.errors import ModelError
from boltzhash.storage.folders import read_model, write_model
from small_corpus import DOCUMENTS

TEXTS = [document["text"] for document in DOCUMENTS]


@pytest.mark.parametrize(
    "hasher",
    [
        ITQ(16),
        LSH(16),
        SemanticHasher(16, training=Training(epochs=1), network=Network(hidden_units=20)),
    ],
    ids=str,
)
def test_it_is_saved_with_the_model(hasher: Hasher, tmp_path: Path) -> None:
    hasher.fit(TEXTS).save(tmp_path / "model")
    kept = load(tmp_path / "model").fitted_on_
    assert (kept.documents, kept.unknown_words) == (60, 0.0)  # every word is in two or more
    np.testing.assert_array_equal(kept.bit_means, unpack(hasher.encode(TEXTS)).mean(axis=0))


def test_of_a_matrix_words_are_not_known(tmp_path: Path) -> None:
    hasher = LSH(16).fit(LSH(16).fit(TEXTS).tfidf(TEXTS))
    hasher.save(tmp_path / "model")
    kept = load(tmp_path / "model").fitted_on_
    assert kept.unknown_words is None
    with pytest.raises(ValueError, match="was fitted on a matrix and knows no words"):
        hasher.unknown_word_share(TEXTS)


def test_what_does_not_fit_the_model_is_refused(tmp_path: Path) -> None:
    LSH(16).fit(TEXTS).save(tmp_path / "model")
    kind, params, arrays, words = read_model(tmp_path / "model")
    arrays["fitted_on.bit_means"] = np.zeros(8)
    write_model(tmp_path / "model", kind=kind, params=params, arrays=arrays, words=words)
    with pytest.raises(ModelError, match="bit_means should have shape \\(16,\\), got \\(8,\\)"):
        load(tmp_path / "model")


def zipf_texts(n: int, seed: int) -> list[str]:
    """Texts of 30 words, of which most are rare."""
    rng = random.Random(seed)
    return [
        " ".join(f"w{int(rng.paretovariate(0.7))}" for _ in range(30)).replace("w1 ", "")
        for _ in range(n)
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"text__min_df": 3},
        {"text__max_words": 300},
        {"text__stem": True},
        {"text__language": None},
    ],
    ids=str,
)
def test_the_expected_share_of_unknown_words_is_that_of_further_documents(
    settings: dict[str, Any],
) -> None:
    texts = zipf_texts(3000, seed=0)
    hasher = LSH(8).set_params(**settings).fit(texts[:2000])
    expected, found = hasher.fitted_on_.unknown_words, hasher.unknown_word_share(texts[2000:])
    assert expected is not None
    assert found == pytest.approx(expected, rel=0.06)
    assert expected > 0.02
    in_sample = hasher.unknown_word_share(texts[:2000])
    assert in_sample is not None
    assert in_sample < 0.9 * expected  # which is what makes it worth expecting


def test_stop_words_are_not_unknown_words() -> None:
    hasher = LSH(8, text=Text(stop_words=["moon"], min_df=1)).fit(
        ["star comet", "orbit comet", "sun star", "orbit"]
    )
    assert hasher.unknown_word_share(["moon star", "moon orbit", "moon quasar", "sun"]) == 0.25
    assert hasher.unknown_word_share(["moon"]) is None
