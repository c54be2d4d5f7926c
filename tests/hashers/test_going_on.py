"""Fits that go on from a fitted model: what they keep, what they add, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boltzhash import ITQ, NASH, CorrSH, Hasher, load
from boltzhash.hashers import HASHERS
from boltzhash.hashers.shared import deep
from boltzhash.hashers.shared.base import WITH_A_WORD_DECODER
from boltzhash.hashers.shared.going_on import Start
from boltzhash.training import networks
from small_corpus import DOCUMENTS, make_documents

TEXTS = [document["text"] for document in DOCUMENTS]
# A kitchen that has got a wok, and a topic that nobody knew.
NEWER = [
    *(text + " wok" for text in TEXTS[1::3]),
    *(f"violin cello {'viola' if i % 2 else 'harp'} orchestra" for i in range(20)),
]
SHORT: dict[str, Any] = {"epochs": 3, "hidden_units": 20}


@pytest.fixture(scope="module")
def fitted() -> CorrSH:
    return CorrSH(16, **SHORT).fit(TEXTS)


@pytest.fixture
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "KEPT", 1.0)  # all of the weights


def begun(method: str, start: Hasher | None, texts: list[str], **settings: Any) -> dict[str, Any]:
    """The weights that a fit begins with, kept from the step that would change them."""
    weights: dict[str, Any] = {}

    class EnoughError(Exception):
        pass

    def stop(hasher: Any) -> None:
        weights.update(hasher.weights_)
        raise EnoughError

    kind = HASHERS[method]
    hasher = kind(16, **{**SHORT, **settings, "learning_rate": 1e-30})
    start_with = {} if start is None else {"start": start}
    with pytest.raises(EnoughError):
        hasher.fit(texts, on_epoch=stop, **start_with)
    return weights


@pytest.mark.usefixtures("_kept")
@pytest.mark.parametrize("method", WITH_A_WORD_DECODER)
def test_every_method_with_a_word_decoder_begins_with_the_weights_of_its_start(method: str) -> None:
    start: Any = HASHERS[method](16, **SHORT).fit(TEXTS)
    weights = begun(method, start, NEWER)
    n_known = start.n_features_in_
    for name, before in start.weights_.items():
        if name == "medians":  # of the documents of a fit
            continue
        now = weights[name]
        if name == "decoder.weight":
            now = now[:, :n_known]
        elif name in ("decoder.bias", "hidden1.weight"):
            now = now[:n_known]
        np.testing.assert_allclose(now, before, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("RBSH", {"word_importance": True}),
        ("SNUH", {"hidden_units": 0}),
        ("CorrSH", {"networks": 2, "prior_groups": 3}),
    ],
)
@pytest.mark.usefixtures("_kept")
def test_weights_are_kept_whatever_the_network(method: str, settings: dict[str, Any]) -> None:
    start: Any = HASHERS[method](16, **{**SHORT, **settings}).fit(TEXTS)
    weights = begun(method, start, TEXTS, **settings)
    for name, before in start.weights_.items():
        np.testing.assert_allclose(weights[name], before, atol=1e-5, err_msg=name)


def test_a_fit_begins_half_way_between_its_start_and_a_fresh_one(fitted: CorrSH) -> None:
    fresh, weights = begun("CorrSH", None, TEXTS), begun("CorrSH", fitted, TEXTS)
    for name, before in fitted.weights_.items():
        own = before if name == "decoder.bias" else fresh[name]
        np.testing.assert_allclose(weights[name], (before + own) / 2, atol=1e-6, err_msg=name)


def test_a_grown_model_knows_old_and_new_words(fitted: CorrSH) -> None:
    grown = CorrSH(16, **SHORT).fit(NEWER, start=fitted)
    assert fitted.tfidf_ is not None
    assert grown.tfidf_ is not None
    n_known = fitted.n_features_in_
    assert grown.tfidf_.words_[:n_known] == fitted.tfidf_.words_
    assert grown.tfidf_.words_[n_known:] == ["cello", "harp", "orchestra", "viola", "violin", "wok"]
    np.testing.assert_array_equal(grown.tfidf_.idf_[:n_known], fitted.tfidf_.idf_)
    assert grown.known_word_counts(["moon wok", "harp"]).tolist() == [2, 1]


def test_a_new_word_begins_as_the_mean_of_those_that_it_occurs_with() -> None:
    reads = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], dtype=np.float32)
    weights = {
        "hidden1.weight": reads,
        "decoder.weight": reads.T.copy(),
        "decoder.bias": np.zeros(3, dtype=np.float32),
    }
    matrix = sparse.csr_matrix([[0.6, 0.2, 0, 0.4, 0], [0, 0, 1.0, 0, 0], [0, 0, 0, 0, 1.0]])
    grown = Start(None, weights, None, False).grown(matrix)
    np.testing.assert_allclose(grown["hidden1.weight"][3:], [[0.75, 0.25], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(grown["decoder.weight"][:, 3], [0.75, 0.25], atol=1e-6)


def test_spellings_of_known_stems_join_them() -> None:
    before = CorrSH(16, stem=True, **SHORT).fit([*TEXTS, "sorting a ship"])
    grown = CorrSH(16, stem=True, **SHORT).fit([*NEWER, "sorts and planets"], start=before)
    assert before.tfidf_ is not None
    assert grown.tfidf_ is not None
    assert grown.tfidf_.idf_.shape == (before.n_features_in_ + 6,)
    assert grown.known_word_counts(["sorts", "sorting", "planets"]).tolist() == [1, 1, 1]
    one, other = grown.tfidf(["sorting"]), grown.tfidf(["sorts"])
    assert one.indices.tolist() == other.indices.tolist()
    assert one.indices[0] < before.n_features_in_
    np.testing.assert_array_equal(grown.tfidf(TEXTS[:3]).data, before.tfidf(TEXTS[:3]).data)


def test_going_on_takes_fewer_epochs_and_finds_the_new_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deep, "MINIMUM_STEPS", 200)  # enough for four topics
    small: dict[str, Any] = {"hidden_units": 20, "batch_size": 20}
    start = CorrSH(16, **small).fit(TEXTS)
    grown = CorrSH(16, **small).fit(TEXTS + NEWER, start=start)
    assert grown.history_[-1].epoch < start.history_[-1].epoch / 2
    codes = grown.encode(["violin harp", "viola cello", "moon comet"])
    distances = np.bitwise_count(codes[0] ^ codes[1:]).sum(axis=1)
    assert distances[0] < distances[1]


def test_a_model_can_go_on_from_itself_and_is_saved_like_any_other(tmp_path: Path) -> None:
    hasher = CorrSH(16, **SHORT).fit(TEXTS)
    n_known = hasher.n_features_in_
    hasher.fit(NEWER, start=hasher)
    hasher.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.n_features_in_ == n_known + 6
    np.testing.assert_array_equal(loaded.encode(NEWER), hasher.encode(NEWER))
    assert loaded.fingerprint() == hasher.fingerprint()
    other = CorrSH(16, **SHORT).fit(NEWER, start=loaded)
    assert other.n_features_in_ == loaded.n_features_in_


def test_the_same_start_gives_the_same_codes(fitted: CorrSH) -> None:
    one, other = (CorrSH(16, **SHORT).fit(NEWER, start=fitted) for _ in range(2))
    np.testing.assert_array_equal(one.encode(NEWER), other.encode(NEWER))
    assert one.fingerprint() != CorrSH(16, **SHORT).fit(NEWER).fingerprint()


def test_a_checkpoint_of_another_start_is_not_resumed(
    fitted: CorrSH, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boltzhash.training import loop

    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1)
    matrix = fitted.tfidf(TEXTS)
    of_matrix = CorrSH(16, **SHORT).fit(matrix)
    other = CorrSH(16, **SHORT, random_state=5).fit(matrix)
    folder = tmp_path / "checkpoint"
    expected = CorrSH(16, **SHORT).fit(matrix, start=of_matrix)
    CorrSH(16, **SHORT).fit(matrix, start=other, checkpoint=folder)
    again = CorrSH(16, **SHORT).fit(matrix, start=of_matrix, checkpoint=folder)
    np.testing.assert_array_equal(again.encode(matrix), expected.encode(matrix))


def test_features_keep_their_scale(fitted: CorrSH) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 4)).astype(np.float32)
    start = CorrSH(16, **SHORT).fit(TEXTS, features=vectors)
    grown = CorrSH(16, **SHORT).fit(NEWER, features=vectors[:40] + 0.5, start=start)
    assert start.feature_scaling_ is not None
    assert grown.feature_scaling_ is not None
    np.testing.assert_array_equal(grown.feature_scaling_.mean, start.feature_scaling_.mean)
    with pytest.raises(ValueError, match="start makes codes from features of 4 columns, got words"):
        CorrSH(16, **SHORT).fit(NEWER, start=start)
    with pytest.raises(ValueError, match="start makes codes from words, got features of 4 columns"):
        CorrSH(16, **SHORT).fit(NEWER, features=vectors[:40], start=fitted)


def test_what_cannot_be_gone_on_from_is_refused(fitted: CorrSH) -> None:
    with pytest.raises(ValueError, match="start was fitted with n_bits=16, got 32"):
        CorrSH(32, **SHORT).fit(NEWER, start=fitted)
    with pytest.raises(ValueError, match="start was fitted with language='english', got None"):
        CorrSH(16, language=None, **SHORT).fit(NEWER, start=fitted)
    with pytest.raises(ValueError, match="start must be a fitted NASH, got a CorrSH"):
        NASH(16, **SHORT).fit(NEWER, start=fitted)
    with pytest.raises(ValueError, match="ITQ learns all at once and cannot go on from a fitted"):
        ITQ(16).fit(NEWER, start=ITQ(16).fit(TEXTS))
    with pytest.raises(ValueError, match="not fitted yet"):
        CorrSH(16, **SHORT).fit(NEWER, start=CorrSH(16, **SHORT))
    with pytest.raises(ValueError, match="max_memory takes a sample"):
        CorrSH(16, **SHORT).fit(NEWER, start=fitted, max_memory="4 GB")
    with pytest.raises(ValueError, match="start was fitted on texts, got a matrix"):
        CorrSH(16, **SHORT).fit(fitted.tfidf(TEXTS), start=fitted)


def test_a_failed_fit_leaves_the_model_as_it_was(fitted: CorrSH) -> None:
    hasher = CorrSH(16, **SHORT).fit(TEXTS)
    before = hasher.fingerprint()
    with pytest.raises(ValueError, match="the corpus is empty"):
        hasher.fit([], start=fitted)
    assert hasher.fingerprint() == before
    more = [document["text"] for document in make_documents(30, seed=1)]
    again = hasher.fit(more)  # and the next fit begins anew
    np.testing.assert_array_equal(again.encode(more), CorrSH(16, **SHORT).fit(more).encode(more))
