"""A fit whose codes will not find much says so."""

import logging

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Text
from boltzhash.hashers.shared.poor_codes import complaints


def random_codes(n: int, n_bits: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=(n, n_bits // 8), dtype=np.uint8)


def test_good_codes_have_no_complaint() -> None:
    assert complaints(random_codes(500, 64), 0.9) == []
    assert complaints(random_codes(5000, 8), 0.9) == []


def test_few_codes_constant_bits_and_unknown_words_are_named() -> None:
    codes = random_codes(500, 64)
    few = codes[np.arange(500) % 7]
    assert complaints(few, None)[0].startswith("500 documents have only 7 different codes")
    codes[:, :2] = 255
    assert complaints(codes, None) == [
        "16 of 64 bits are the same in all documents: fewer bits would do, or more documents are "
        "needed to learn from"
    ]
    assert complaints(random_codes(500, 64), 0.25) == [
        "the vocabulary has 25% of the documents' words: raise max_words, or lower min_df"
    ]


def test_a_handful_of_documents_proves_nothing() -> None:
    assert complaints(np.zeros((50, 8), dtype=np.uint8), 0.1) == []


def test_a_fit_warns(caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(1)
    words = [f"word{i}" for i in range(2000)]
    texts = [" ".join(rng.choice(words, size=12)) for _ in range(300)]
    with caplog.at_level(logging.WARNING, "boltzhash"):
        LSH(64, text=Text(max_words=2000)).fit(texts)
        assert caplog.messages == []
        LSH(64, text=Text(max_words=50)).fit(texts)
    assert [m.partition(":")[2] for m in caplog.messages if "vocabulary" in m] == [
        " raise max_words, or lower min_df"
    ]


def test_bits_for_estimators_that_compare_columns() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    pipeline = pytest.importorskip("sklearn.pipeline")
    texts = ["stars and planets", "planets and moons", "bread and butter", "butter and jam"] * 5
    labels = [0, 0, 1, 1] * 5
    hasher = ITQ(8, output="bits", text=Text(max_df=1.0))
    classifier = neighbors.KNeighborsClassifier(1, metric="hamming")
    fitted = pipeline.make_pipeline(hasher, classifier).fit(texts, labels)
    assert fitted.predict(texts).tolist() == labels
    bits = hasher.transform(texts)
    assert (bits.dtype, bits.shape) == (np.bool_, (20, 8))
    np.testing.assert_array_equal(np.packbits(bits, axis=1), hasher.encode(texts))
    packed = ITQ(8, text=Text(max_df=1.0)).fit(texts)
    np.testing.assert_array_equal(packed.transform(texts), packed.encode(texts))
    assert packed.fingerprint() == hasher.fingerprint()
