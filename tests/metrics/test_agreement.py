"""Agreement of the codes of halves, against the same measure of vectors and a plain count."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash import LSH
from boltzhash.codes import Codes, hamming, pack, unpack
from boltzhash.hashers.shared.halves import agreement_of_halves
from boltzhash.metrics import agreement_of_codes, codes_of_halves, ties
from small_corpus import make_documents


def random_codes(n: int, n_bits: int, seed: int) -> Codes:
    return pack(np.random.default_rng(seed).random((n, n_bits)) < 0.5)


def signs(codes: Codes) -> np.ndarray:
    return unpack(codes).astype(np.float32) * 2 - 1


@pytest.mark.parametrize("pairs", [1, 2**22])
@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize(("n_bits", "k"), [(8, 1), (8, 40), (72, 5), (72, 99)])
def test_it_is_the_agreement_of_vectors_of_signs(
    n_bits: int, k: int, is_own: bool, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ties, "_PAIRS", pairs)
    one, other, codes = (random_codes(n, n_bits, n) for n in (7, 8, 100))
    other = other[:7]
    own = np.random.default_rng(0).permutation(100)[:7] if is_own else None
    found = agreement_of_codes(one, other, codes=codes, k=k, own=own)
    expected = agreement_of_halves(signs(one), signs(other), signs(codes), k, own)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_it_is_a_plain_count_where_nothing_ties() -> None:
    """Codes 0, 1, 3, 7, … : from either end, all distances differ."""
    codes = pack(np.tri(17, 16, k=-1, dtype=bool))
    one, other = codes[[0, 0, 16]], codes[[0, 16, 16]]
    near = [[set(np.argsort(row)[:5].tolist()) for row in hamming(h, codes)] for h in (one, other)]
    counted = [len(a & b) / 5 for a, b in zip(*near, strict=True)]
    assert counted == [1, 0, 1]
    np.testing.assert_allclose(agreement_of_codes(one, other, codes=codes, k=5), counted)


def test_k_is_a_thirtieth_of_what_may_be_near() -> None:
    codes = random_codes(91, 16, 0)
    halves = codes[:4], codes[4:8]
    own = np.arange(4)
    for_ninety = agreement_of_codes(*halves, codes=codes, own=own)
    np.testing.assert_array_equal(
        for_ninety, agreement_of_codes(*halves, codes=codes, k=3, own=own)
    )


def test_halves_are_coded_as_texts_of_their_words() -> None:
    texts = [document["text"] for document in make_documents(60)]
    hasher = LSH(32).fit(texts)
    words = hasher.tfidf(["star orbit"])
    one, other = codes_of_halves(hasher, words)
    expected = hasher.encode(["star", "orbit"])
    assert words.nnz == 2
    assert {one.tobytes(), other.tobytes()} == {code.tobytes() for code in expected}


def test_what_does_not_fit_is_refused() -> None:
    codes = random_codes(10, 16, 0)
    with pytest.raises(ValueError, match=r"k must be between 1 and the 9 documents, got 10"):
        agreement_of_codes(codes[:1], codes[:1], codes=codes, k=10, own=np.array([0]))
    with pytest.raises(
        ValueError, match=r"other has 8 bits and codes 16: they come from different"
    ):
        agreement_of_codes(codes[:1], codes[:1, :1], codes=codes)
    with pytest.raises(ValueError, match=r"there are 2 first halves and 1 rows of other"):
        agreement_of_codes(codes[:2], codes[:1], codes=codes)
    with pytest.raises(ValueError, match=r"there are 2 first halves and 1 rows of own"):
        agreement_of_codes(codes[:2], codes[:2], codes=codes, own=np.array([0]))
