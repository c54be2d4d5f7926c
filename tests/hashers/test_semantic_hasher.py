"""SemanticHasher alone: its posterior, settings, training reports, checkpoints and explanations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from boltzhash import Neighbours, SemanticHasher, Text, Training, load
from boltzhash.codes import unpack
from boltzhash.errors import TrainingError
from boltzhash.training import loop
from boltzhash.training.batches import Batch
from boltzhash.training.loop import generator_for
from boltzhash.training.networks import InferenceNetwork
from boltzhash.training.objectives import neighbour_contrast
from boltzhash.training.rows import SparseRows


def quick(**changes: Any) -> SemanticHasher:
    settings = {
        "n_bits": 16,
        "training__epochs": 20,
        "training__batch_size": 30,
        "network__hidden_units": 32,
        "training__device": "cpu",
    }
    return SemanticHasher().set_params(**{**settings, **changes})


@pytest.mark.parametrize("rank", [0, 1, 5, 24, "full"])
@pytest.mark.parametrize("n_components", [1, 3])
@pytest.mark.parametrize("bound", ["rearranged", "printed"])
def test_every_shape_of_the_posterior_trains(
    texts: list[str], rank: int | str, n_components: int, bound: str
) -> None:
    settings = {"rank": rank, "n_components": n_components, "objective__bound": bound}
    hasher = quick(**settings, training__epochs=40, training__learning_rate=0.02).fit(texts)
    first, last = hasher.history_[0], hasher.history_[-1]
    assert last.reconstruction > first.reconstruction + 1
    assert np.isfinite(last.kl)


@pytest.mark.parametrize("rank", [0, 1, 5, 24, "full"])
def test_numpy_posterior_is_the_twin_of_the_trained_one(texts: list[str], rank: int | str) -> None:
    """The posterior that inference shows is the one that training sampled from."""
    hasher = quick(rank=rank, network__dropout=0.0).fit(texts)
    matrix = hasher.tfidf(texts)
    network = InferenceNetwork(matrix.shape[1], 32, hasher._heads(), 0.0, generator_for(0, 0))
    with torch.no_grad():
        for name, there in network.arrays().items():
            there.copy_(torch.from_numpy(hasher.weights_[name]))
    rows = hasher._network_input(matrix).astype(np.float32)
    batch = SparseRows(*(torch.from_numpy(a) for a in (rows.indices, rows.data, rows.indptr)))
    trained = hasher._boltzmann(network(batch, generator_for(0, 1)))

    shown = hasher.posterior(texts)
    np.testing.assert_allclose(shown.location, trained.location.detach(), atol=1e-4)
    np.testing.assert_allclose(shown.covariance(), trained.covariance.dense().detach(), atol=1e-4)
    np.testing.assert_allclose(
        shown.variances(), np.diagonal(shown.covariance(), axis1=1, axis2=2), atol=1e-12
    )


def test_code_is_location_above_zero_and_probability_above_half(texts: list[str]) -> None:
    hasher = quick().fit(texts)
    bits = unpack(hasher.transform(texts))
    assert (bits == (hasher.posterior(texts).location > 0)).all()
    assert (bits == (hasher.bit_probabilities(texts) > 0.5)).all()


def test_bit_probabilities_are_those_of_sampling(texts: list[str]) -> None:
    """E σ(μ + √Σ_ii ε) against plain Monte Carlo, to five standard errors."""
    hasher = quick().fit(texts)
    posterior = hasher.posterior(texts[:3])
    epsilon = np.random.default_rng(0).standard_normal((40_000, 1, 1))
    draws = 1 / (1 + np.exp(-(posterior.location + np.sqrt(posterior.variances()) * epsilon)))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    difference = np.abs(hasher.bit_probabilities(texts[:3]) - draws.mean(axis=0))
    assert (difference <= 5 * error + 1e-9).all()


def test_a_purpose_is_a_recipe_whose_fields_can_be_changed() -> None:
    hasher = SemanticHasher(purpose="questions", text=Text(language="german"))
    params = hasher.get_params()
    assert (params["text__language"], params["text__stem"]) == ("german", True)
    assert (params["neighbours__count"], params["neighbours__dimensions"]) == (20, (64,))
    changed = hasher.set_params(neighbours__share=0.1, purpose="topics").get_params()
    assert (changed["neighbours__share"], changed["text__stem"]) == (0.1, False)
    assert (changed["neighbours__count"], changed["text__language"]) == (None, "german")


def test_groups_show_what_is_otherwise_and_refuse_what_is_none() -> None:
    hasher = SemanticHasher(16, training=Training(epochs=3, batch_size=200))
    assert repr(hasher) == "SemanticHasher(n_bits=16, training=Training(epochs=3))"
    with pytest.raises(ValueError, match="has no parameter 'text__stems'"):
        hasher.set_params(text__stems=True)
    with pytest.raises(ValueError, match=r"text must be a Text or None, got Training"):
        SemanticHasher(text=Training()).fit(["one two"])  # type: ignore[arg-type]


def test_small_corpora_get_enough_steps() -> None:
    assert SemanticHasher()._n_epochs(9_000) == 25
    assert SemanticHasher()._n_epochs(100) == 250
    assert SemanticHasher()._n_epochs(2_000) * 10 == 500
    assert SemanticHasher()._n_epochs(5_000) * 25 == 1000
    assert SemanticHasher()._n_epochs(100_000) * 500 == 5000
    assert SemanticHasher()._n_epochs(10_000_000) == 1
    assert SemanticHasher(training=Training(epochs=7))._n_epochs(100) == 7
    assert SemanticHasher(training=Training(least_steps=600))._n_epochs(100) == 600
    assert SemanticHasher(training=Training(least_steps=600))._n_epochs(100_000) * 500 == 5000
    assert SemanticHasher(purpose="questions")._n_epochs(100) == 1000


@pytest.mark.parametrize("networks", [1, 2])
@pytest.mark.parametrize("bound", ["rearranged", "printed"])
def test_history_has_the_terms_of_what_is_maximised(
    texts: list[str], networks: int, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """reconstruction − β KL, however many networks make the code."""
    losses = []
    step = SemanticHasher._step

    def watched(self: SemanticHasher, model: Any, batch: Batch) -> Any:
        terms = step(self, model, batch)
        losses.append(terms.loss.item())
        return terms

    monkeypatch.setattr(SemanticHasher, "_step", watched)
    beta = 0.7
    settings = {
        "objective__kl_weight": (beta, beta),
        "neighbours__count": 0,
        "training__epochs": 1,
        "training__batch_size": len(texts),
    }
    hasher = quick(**settings, objective__bound=bound, network__networks=networks).fit(texts)
    (record,) = hasher.history_
    assert -losses[0] == pytest.approx(record.reconstruction - beta * record.kl, rel=1e-5)


def test_explain_is_the_derivative_of_word_frequencies(texts: list[str]) -> None:
    hasher = quick(training__epochs=60).fit(texts)
    explained = hasher.explain(n_words=4)
    assert [bit.bit for bit in explained] == list(range(16))
    embedding = hasher.weights_["decoder.weight"].astype(np.float64)
    bias = hasher.weights_["decoder.bias"].astype(np.float64)

    def frequencies(s: np.ndarray) -> np.ndarray:
        odds = np.exp(s @ embedding + bias)
        return np.asarray(odds / odds.sum())

    halves, step = np.full(16, 0.5), 1e-5
    centred = [
        (frequencies(halves + e) - frequencies(halves - e))
        / (2 * step)
        / frequencies(halves) ** 0.5
        for e in step * np.eye(16)
    ]
    for bit in explained:
        weights = dict(zip(hasher.tfidf_.words_, centred[bit.bit], strict=True))  # type: ignore[union-attr]
        ordered = sorted(weights, key=lambda word: weights[word])
        assert {word for word, _ in bit.up} == set(ordered[-4:])
        assert {word for word, _ in bit.down} == set(ordered[:4])
        assert bit.up[0] == (ordered[-1], pytest.approx(weights[ordered[-1]]))


def test_explain_of_a_matrix_calls_words_by_column(texts: list[str]) -> None:
    hasher = quick().fit(quick().fit(texts).tfidf(texts))
    assert hasher.explain(1)[0].up[0][0].startswith("column ")


def test_targets_sum_to_the_number_of_different_words(texts: list[str]) -> None:
    matrix = quick().fit(texts).tfidf(texts)
    lengths = np.diff(matrix.indptr)
    for target in ("words", "root-tfidf", "tfidf"):
        sums = np.asarray(
            quick(objective__target=target)._decoder_target(matrix).sum(axis=1)
        ).ravel()
        np.testing.assert_allclose(sums, lengths)
    assert set(quick(objective__target="words")._decoder_target(matrix).data) == {1.0}


@pytest.mark.parametrize("learning_rate", [10.0, 1e10, 1e30])
def test_divergence_is_reported_and_leaves_nothing_fitted(
    texts: list[str], learning_rate: float
) -> None:
    hasher = quick(training__learning_rate=learning_rate)
    with pytest.raises(TrainingError, match=r"diverged.* learning_rate=.* is too high.*try"):
        hasher.fit(texts)
    with pytest.raises(ValueError, match="not fitted"):
        hasher.transform(texts)


def test_collapse_is_reported_and_leaves_nothing_fitted(texts: list[str]) -> None:
    """Input too faint to move a bit: all documents stay on the code of the biases."""
    hasher = quick(network__input_length=1e-6)
    with pytest.raises(TrainingError, match=r"all 90 documents got the same code.*learning_rate"):
        hasher.fit(texts)
    with pytest.raises(ValueError, match="not fitted"):
        hasher.transform(texts)


def test_checkpoints_are_written_at_most_every_ten_seconds(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that gains four seconds at every look: due after three epochs, and once at the end."""
    clock = itertools.count(step=4)
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(clock)))
    kept: list[int] = []
    original = loop._save

    def counted(*arguments: Any) -> None:
        kept.append(len(arguments[-1]))
        original(*arguments)

    monkeypatch.setattr(loop, "_save", counted)
    quick(training__epochs=10).fit(texts, checkpoint=tmp_path / "checkpoint")
    assert kept == [3, 6, 9, 10]


def test_a_full_disk_does_not_end_a_fit_that_checkpoints(
    texts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    (tmp_path / "file").write_text("in the way")
    hasher = quick(training__epochs=3).fit(texts, checkpoint=tmp_path / "file" / "checkpoint")
    assert len(hasher.history_) == 3
    assert "no checkpoint could be written" in caplog.text


def test_a_diverged_fit_leaves_no_checkpoint(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Going on from it would fail again."""
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    with pytest.raises(TrainingError):
        quick(training__learning_rate=10.0).fit(texts, checkpoint=tmp_path / "checkpoint")
    assert list(tmp_path.iterdir()) == []


def test_networks_side_by_side_are_networks(texts: list[str]) -> None:
    """Two networks: what each says of a text from its own columns of the weights, in plain NumPy."""
    hasher = quick(n_bits=24, rank=10, network__networks=2).fit(texts)
    assert hasher.tfidf_ is not None
    x = hasher.tfidf_.transform(texts).toarray()
    x *= hasher._network.input_length / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-30)
    w = {name: array.astype(np.float64) for name, array in hasher.weights_.items()}
    posterior = hasher.posterior(texts)
    for number in range(2):

        def own(array: np.ndarray, number: int = number) -> np.ndarray:
            return np.split(array, 2, axis=-1)[number]

        h = np.maximum(x @ own(w["hidden1.weight"]) + own(w["hidden1.bias"]), 0)
        h = np.maximum(h @ own(w["hidden2.weight"]) + own(w["hidden2.bias"]), 0)
        location = h @ own(w["heads.location.weight"]) + own(w["heads.location.bias"])
        couplings = h @ own(w["heads.couplings.weight"]) + own(w["heads.couplings.bias"])
        bits = slice(12 * number, 12 * (number + 1))
        np.testing.assert_allclose(posterior.location[:, bits], location, rtol=1e-9, atol=1e-9)
        factor = np.tanh(couplings).reshape(len(texts), 12, -1) / hasher.rank
        np.testing.assert_allclose(posterior.factor[:, bits], factor, rtol=1e-9, atol=1e-9)


def test_longer_codes_are_made_by_two_networks(tmp_path: Path, texts: list[str]) -> None:
    shapes = {}
    for n_bits in (32, 40):
        hasher = quick(n_bits=n_bits, training__epochs=1).fit(texts)
        hasher.save(tmp_path / str(n_bits))
        loaded = load(tmp_path / str(n_bits))
        assert (loaded.transform(texts) == hasher.transform(texts)).all()
        shapes[n_bits] = loaded.weights_["hidden2.weight"].shape
    units = hasher._network.hidden_units
    assert shapes == {32: (units, units), 40: (units, 2 * units)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network__networks": 0}, "networks must be a positive integer or None, got 0"),
        ({"network__networks": 3}, "n_bits=16 cannot be divided among 3 networks equally"),
        ({"network__networks": 2, "rank": "full"}, 'rank="full" couples the bits of one network'),
    ],
)
def test_networks_that_cannot_be(settings: dict[str, Any], message: str, texts: list[str]) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        quick(n_bits=16, **settings).fit(texts)


@pytest.mark.parametrize("n_bits", [8, 24, 32, 40, 96])
def test_the_bits_of_each_network_say_the_document(n_bits: int) -> None:
    """The mean over networks of log p(x | bits of the network), by hand; one is the plain decoder."""
    hasher = quick(n_bits=n_bits)
    model = hasher._build(7, generator_for(0, 0))
    codes = torch.randn(3, n_bits, generator=generator_for(0, 1))
    targets = torch.rand(3, 7, generator=generator_for(0, 2))
    batch = Batch(targets, targets, torch.tensor(0.0), generator_for(0, 3))
    weight, bias = model.decoder.weight, model.decoder.bias
    networks = 1 if n_bits <= 32 else 2
    expected = torch.zeros(3)
    for part in np.split(np.arange(n_bits), networks):
        logits = codes[:, part] @ weight[part] + bias
        expected = expected + (targets * logits.log_softmax(-1)).sum(-1) / networks
    likelihood = hasher._log_likelihood(model, codes, batch)
    torch.testing.assert_close(likelihood, expected)
    if networks == 1:
        whole = super(SemanticHasher, hasher)._log_likelihood(model, codes, batch)
        torch.testing.assert_close(likelihood, whole)


@pytest.mark.parametrize(
    ("contrast_codes", "codes_of"),
    [("means", lambda x: 2 * x.sigmoid() - 1), ("bits", lambda x: 2.0 * (x > 0) - 1)],
)
def test_contrast_weighs_more_for_short_codes_and_nothing_without_neighbours(
    contrast_codes: str, codes_of: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """The loss with contrast less that without: 32 / m times its value, summed over the networks."""
    targets = torch.rand(6, 9, generator=generator_for(0, 1))
    beside = torch.rand(6, 9, generator=generator_for(0, 2))
    for n_bits in (8, 64):
        losses = []
        for contrast in (0.0, 1.0):
            hasher = quick(
                n_bits=n_bits,
                neighbours__contrast=contrast,
                neighbours__contrast_codes=contrast_codes,
                network__dropout=0.0,
            )
            model = hasher._build(9, generator_for(0, 0))
            where = (torch.tensor(0.0), generator_for(0, 3))
            losses.append(hasher._step(model, Batch(targets, targets, *where, (), beside)).loss)
            alone = hasher._step(model, Batch(targets, targets, *where)).loss
            assert torch.isfinite(alone)
        of_documents, of_neighbours = (
            codes_of(model.encoder(rows, generator_for(0, 4))["location"])
            for rows in (targets, beside)
        )
        n = 1 if n_bits <= 32 else 2
        pairs = zip(of_documents.chunk(n, 1), of_neighbours.chunk(n, 1), strict=True)
        value = sum(neighbour_contrast(*pair, 0.2).mean() for pair in pairs)
        torch.testing.assert_close(losses[1] - losses[0], 32 / n_bits * value, rtol=1e-3, atol=1e-4)


def test_short_codes_are_compared_by_their_means_and_the_first_training_as_the_second(
    texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, str, float]] = []
    step = SemanticHasher._step

    def watched(self: SemanticHasher, *arguments: Any) -> Any:
        seen.append((self.n_bits, self._compared_codes(), self._nearness()))
        return step(self, *arguments)

    monkeypatch.setattr(SemanticHasher, "_step", watched)
    for n_bits, expected in ((16, ("means", 1.0)), (24, ("bits", 2.0))):
        seen.clear()
        SemanticHasher(
            n_bits,
            training=Training(epochs=1),
            neighbours=Neighbours(count=3, second_training=True),
        ).fit(texts)
        assert set(seen) == {(64, *expected), (n_bits, *expected)}
