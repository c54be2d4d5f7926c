"""Hashers that make codes from features and explain them by words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone

import boltzhash
from boltzhash import SemanticHasher
from boltzhash.codes import unpack
from boltzhash.errors import ModelError
from boltzhash.hashers import HASHERS
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.training import loop
from boltzhash.training.batches import Documents
from boltzhash.training.loop import generator_for
from boltzhash.training.networks import InferenceNetwork
from quick_hashers import quick as make_quick
from quick_hashers import separation

Vectors = NDArray[np.float32]

N_COLUMNS = 12
TAKERS = [name for name, kind in HASHERS.items() if kind.takes_features]
OTHERS = [name for name, kind in HASHERS.items() if not kind.takes_features]
takers = pytest.mark.parametrize("kind", TAKERS)

quick = partial(make_quick, training__epochs=20, training__batch_size=30)


@pytest.fixture(scope="module")
def vectors() -> Vectors:
    """A place for each topic, noise around it, and far from the origin, as embeddings are."""
    rng = np.random.default_rng(0)
    topics = np.repeat(rng.standard_normal((3, N_COLUMNS)), 30, axis=0)
    noisy = 5 + topics + 0.5 * rng.standard_normal((90, N_COLUMNS))
    return noisy.astype(np.float32)


@pytest.fixture(scope="module")
def fitted(texts: list[str], vectors: Vectors) -> SemanticHasher:
    """Tests only read it."""
    return quick().fit(texts, features=vectors)  # type: ignore[no-any-return]


def test_every_method_with_a_word_decoder_takes_features() -> None:
    assert {name for name, kind in HASHERS.items() if issubclass(kind, DeepHasher)} == set(TAKERS)
    assert {"SemanticHasher", "CorrSH", "NASH", "VDSH", "RBSH"} <= set(TAKERS)
    assert {"LSH", "ITQ", "StackedRBM"} <= set(OTHERS)


@takers
def test_codes_from_features_know_topics_and_not_the_batch(
    kind: str, texts: list[str], vectors: Vectors, tmp_path: Path
) -> None:
    hasher = quick(kind, training__epochs=30).fit(texts, features=vectors)
    codes = hasher.transform(features=vectors)
    assert separation(codes) > 2
    alone = np.concatenate([hasher.transform(features=row[None]) for row in vectors])
    assert alone.tobytes() == codes.tobytes()
    hasher.save(tmp_path / "model")
    loaded = boltzhash.load(tmp_path / "model")
    assert loaded.fingerprint() == hasher.fingerprint()
    assert loaded.transform(features=vectors).tobytes() == codes.tobytes()


def test_the_network_reads_features_and_the_decoder_says_words(
    fitted: SemanticHasher, vectors: Vectors
) -> None:
    assert fitted.tfidf_ is not None
    n_words = len(fitted.tfidf_.words_)
    assert fitted.n_features_in_ == n_words
    assert fitted.weights_["hidden1.weight"].shape == (N_COLUMNS, 32)
    assert fitted.weights_["decoder.weight"].shape == (16, n_words)
    assert {word for bit in fitted.explain() for word, _ in bit.up} <= set(fitted.tfidf_.words_)

    wide = {name: array.astype(np.float64) for name, array in fitted.weights_.items()}
    centred = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    h = centred * 16 / np.sqrt(np.square(centred).sum(axis=1).mean())
    for layer in ("hidden1", "hidden2"):
        h = np.maximum(h @ wide[f"{layer}.weight"] + wide[f"{layer}.bias"], 0)
    location = h @ wide["heads.location.weight"] + wide["heads.location.bias"]
    posterior = fitted.posterior(features=vectors)
    np.testing.assert_allclose(posterior.location, location, rtol=1e-9, atol=1e-9)
    bits = unpack(fitted.transform(features=vectors))
    np.testing.assert_array_equal(bits, posterior.location > 0)
    np.testing.assert_array_equal(bits, fitted.bit_probabilities(features=vectors) > 0.5)


def test_training_sees_what_inference_computes(texts: list[str], vectors: Vectors) -> None:
    """The trained network in torch, on the float32 rows of training, is the one in NumPy."""
    hasher = quick(network__dropout=0.0, training__epochs=40).fit(texts, features=vectors)
    assert hasher.history_[-1].reconstruction > hasher.history_[0].reconstruction + 1
    network = InferenceNetwork(N_COLUMNS, 32, hasher._heads(), 0.0, generator_for(0, 0))
    with torch.no_grad():
        for name, there in network.arrays().items():
            there.copy_(torch.from_numpy(hasher.weights_[name]))
        rows = torch.from_numpy(hasher._training_input(vectors))
        trained = hasher._boltzmann(network(rows, generator_for(0, 1)))
    shown = hasher.posterior(features=vectors)
    np.testing.assert_allclose(shown.location, trained.location, atol=1e-4)
    np.testing.assert_allclose(shown.covariance(), trained.covariance.dense(), atol=1e-4)


def test_documents_are_only_counted(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors
) -> None:
    codes = fitted.transform(features=vectors)
    for documents in (texts, texts[::-1], iter(texts), np.array(texts), fitted.tfidf(texts)):
        assert (fitted.transform(documents, features=vectors) == codes).all()
    assert fitted.transform(features=vectors[:0]).shape == (0, 2)
    for documents in (texts[:-1], iter(texts[:-1]), fitted.tfidf(texts[:-1])):
        with pytest.raises(ValueError, match="got 90 rows for 89 documents"):
            fitted.transform(documents, features=vectors)


def test_every_layout_of_the_same_numbers_gives_the_same_codes(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors, tmp_path: Path
) -> None:
    np.save(tmp_path / "vectors.npy", vectors)
    layouts = [
        vectors.astype(np.float64),
        np.asfortranarray(vectors),
        np.repeat(vectors, 2, axis=1)[:, ::2],
        np.load(tmp_path / "vectors.npy", mmap_mode="r"),
        vectors.tolist(),
        torch.from_numpy(vectors),
    ]
    codes = fitted.transform(features=vectors).tobytes()
    for layout in layouts:
        assert fitted.transform(features=layout).tobytes() == codes
        assert quick().fit(texts, features=layout).fingerprint() == fitted.fingerprint()


def test_the_size_of_features_does_not_matter(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors
) -> None:
    """Four times the numbers is exact in floats, so that the codes are the same to the last bit."""
    codes = quick().fit(texts, features=4 * vectors).transform(features=4 * vectors)
    assert codes.tobytes() == fitted.transform(features=vectors).tobytes()


def test_fit_transform_reads_documents_once(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors
) -> None:
    codes = fitted.transform(features=vectors)
    assert (quick().fit_transform(texts, features=vectors) == codes).all()
    assert (quick().fit_transform(iter(texts), features=vectors) == codes).all()
    by_words = quick().fit(texts).transform(texts)
    assert (quick().fit_transform(iter(texts)) == by_words).all()


def test_a_matrix_of_words_goes_with_features_as_well(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors
) -> None:
    hasher = quick().fit(fitted.tfidf(texts), features=vectors)
    codes = fitted.transform(features=vectors)
    assert hasher.transform(features=vectors).tobytes() == codes.tobytes()


def test_a_document_without_words_has_a_code_of_its_own(texts: list[str], vectors: Vectors) -> None:
    """It teaches nothing, so that the fit is that of the others; its features still say something."""
    hasher = quick().fit([*texts, "", ""], features=np.vstack([vectors, vectors[:1], vectors[-1:]]))
    again = quick().fit(texts, features=vectors)
    codes = hasher.transform(["", ""], features=vectors[[0, -1]])
    assert codes.tobytes() == again.transform(features=vectors[[0, -1]]).tobytes()
    assert codes[0].tobytes() != codes[1].tobytes()
    (block,) = hasher.transform_blocks(["", ""], features=vectors[[0, -1]])
    assert block.known_words is None
    assert hasher.known_word_counts(["", texts[0]])[0] == 0


@pytest.mark.parametrize("k", [1, 7, 200])
def test_neighbours_are_the_nearest_by_the_cosine_of_centred_features(
    fitted: SemanticHasher, texts: list[str], vectors: Vectors, k: int
) -> None:
    matrix = fitted.tfidf(texts)
    inputs = fitted._training_input(vectors)
    documents = quick(neighbours__count=k)._documents(Documents(inputs, matrix), matrix, 0)
    centred = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    expected = np.argsort(-cosines, axis=1)[:, : min(k, 89)]
    np.testing.assert_array_equal(documents.neighbours, expected)


def test_checkpoints_know_the_features(
    texts: list[str], vectors: Vectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    changed = vectors.copy()
    changed[3, 4] += 1
    for features, epochs in ((vectors, [1, 2, 3]), (vectors, []), (changed, [1, 2, 3])):
        seen: list[int] = []
        quick(training__epochs=3).fit(
            texts,
            features=features,
            checkpoint=tmp_path / "checkpoint",
            on_epoch=lambda h, seen=seen: seen.append(h.history_[-1].epoch),
        )
        assert seen == epochs


# Refusals


def test_a_model_of_features_refuses_words_alone(fitted: SemanticHasher, texts: list[str]) -> None:
    methods = (fitted.transform, fitted.transform_blocks, fitted.posterior)
    for method in (*methods, fitted.bit_probabilities):
        for documents in (texts, fitted.tfidf(texts), None):
            with pytest.raises(ValueError, match=r"fitted with features .* with 12 columns"):
                method(documents)


def test_a_model_of_words_refuses_features(texts: list[str], vectors: Vectors) -> None:
    hasher = quick(training__epochs=3).fit(texts)
    for documents in (texts, None):
        with pytest.raises(ValueError, match="was fitted without features and reads words"):
            hasher.transform(documents, features=vectors)
    with pytest.raises(ValueError, match="X must be a list of texts or a matrix, got None"):
        hasher.transform()


@pytest.mark.parametrize("kind", OTHERS)
def test_methods_without_a_word_decoder_say_who_takes_features(
    kind: str, texts: list[str], vectors: Vectors
) -> None:
    hasher = HASHERS[kind](16)
    expected = f"{kind} reads only words, got features; .* {', '.join(TAKERS)}$"
    with pytest.raises(ValueError, match=expected):
        hasher.fit(texts, features=vectors)
    if kind in ("LSH", "ITQ"):
        with pytest.raises(ValueError, match=expected):
            hasher.fit(texts).transform(texts, features=vectors)


@pytest.mark.parametrize(
    ("bad", "came"),
    [
        (lambda E: E[:-1], "got 89 rows for 90 documents"),
        (lambda E: np.where(E[3, 4] == E, np.nan, E), "got nan in row 3, column 4"),
        (lambda E: np.ones_like(E), "all the same"),
    ],
)
def test_a_refused_fit_keeps_the_model_of_before(
    bad: Any, came: str, fitted: SemanticHasher, texts: list[str], vectors: Vectors
) -> None:
    hasher = clone(fitted).fit(texts, features=vectors)
    with pytest.raises(ValueError, match=came):
        hasher.fit(texts, features=bad(vectors))
    assert hasher.fingerprint() == fitted.fingerprint()
    fresh = quick()
    with pytest.raises(ValueError, match=came):
        fresh.fit(texts, features=bad(vectors))
    assert not hasattr(fresh, "tfidf_")


def test_bad_features_are_named_before_the_corpus_is_read(vectors: Vectors) -> None:
    def never() -> Any:
        raise AssertionError("was read")
        yield

    with pytest.raises(ValueError, match="a matrix of floats"):
        quick().fit(never(), features=vectors[0])
    vectors = vectors.copy()
    vectors[7, 2] = np.nan
    with pytest.raises(ValueError, match="got nan in row 7, column 2"):
        quick().fit(never(), features=vectors)


def test_fitting_again_without_features_reads_words_again(
    texts: list[str], vectors: Vectors
) -> None:
    hasher = quick().fit(texts, features=vectors).fit(texts)
    assert hasher.fingerprint() == quick().fit(texts).fingerprint()


def test_a_model_whose_scaling_does_not_fit_its_weights_is_refused(fitted: SemanticHasher) -> None:
    arrays = {**fitted._stored_arrays(), "features.mean": np.zeros(N_COLUMNS + 1)}
    with pytest.raises(ModelError, match=r"'hidden1.weight' should have shape \(13, 32\)"):
        SemanticHasher._restore(fitted._plain_params(), arrays, fitted._words())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_features_train_on_a_gpu(texts: list[str], vectors: Vectors) -> None:
    hasher = quick(training__device="cuda").fit(texts, features=vectors)
    codes = hasher.transform(features=vectors)
    assert separation(codes) > 2
