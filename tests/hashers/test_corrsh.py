"""CorrSH: the paper's model by default, its authors' code as published, and the parts of others."""

from __future__ import annotations

import numpy as np
import pytest

from boltzhash import Bound, CorrSH, Training

PRINTED = {
    "n_bits": 32,
    "rank": 10,
    "n_components": 10,
    "objective__bound": "printed",
    "objective__gradient": "straight-through-half",
    "objective__target": "words",
    "objective__kl_weight": (1.0, 1.0),
    "objective__decoder_noise": (0.0, 0.0),
    "objective__prior_groups": 0,
    "objective__ranking": 0.0,
    "network__input_length": None,
    "network__hidden_units": 500,
    "network__dropout": 0.2,
    "network__unigram_start": False,
    "training__epochs": 100,
    "training__batch_size": 100,
    "training__learning_rate": 1e-3,
    "training__learning_rate_decay": "steps",
}


def test_the_defaults_are_what_the_paper_prints() -> None:
    params = CorrSH(32).get_params()
    assert {name: params[name] for name in PRINTED} == PRINTED
    assert "neighbours" not in params


def test_as_published_is_the_authors_code() -> None:
    authors = {
        "objective__bound": "rearranged",
        "objective__gradient": "straight-through",
        "objective__kl_weight": (0.0, 0.1),
        "objective__decoder_noise": (1.0, 0.9),
    }
    expected = {**PRINTED, **authors}
    params = CorrSH.as_published(32).get_params()
    assert {name: params[name] for name in expected} == expected
    # The authors' code raises β by 1 / (50 (v + k)) an epoch: .2 at v = 0, 1 at v = k = 1.
    assert _kl(rank=0) == ((0.0, 0.2), 1.0)
    assert _kl(rank=1, n_components=1) == ((0.0, 1.0), 1.0)
    assert _kl(rank=0, n_components=1) == ((0.0, 1.0), 0.5)  # by .02 an epoch, at 1 halfway
    assert CorrSH.as_published(training__epochs=5).get_params()["training__epochs"] == 5
    with pytest.raises(ValueError, match="rank must be an integer of 0 or more or 'full', got -1"):
        CorrSH.as_published(rank=-1)


def _kl(**symbols: int) -> tuple[tuple[float, float], float]:
    params = CorrSH.as_published(32, **symbols).get_params()
    return params["objective__kl_weight"], params["objective__kl_ramp"]


@pytest.mark.parametrize("rank", [0, 3])
def test_what_is_printed_trains(texts: list[str], rank: int) -> None:
    fast = Training(epochs=40, batch_size=30, learning_rate=0.02, device="cpu")
    hasher = CorrSH(16, rank=rank, training=fast).fit(texts)
    first, last = hasher.history_[0], hasher.history_[-1]
    assert last.reconstruction > first.reconstruction + 1
    assert np.isfinite(last.kl)
    plain = CorrSH(16, rank=rank, training=fast, objective=Bound(gradient="straight-through"))
    assert plain.fit(texts).fingerprint() != hasher.fingerprint()
