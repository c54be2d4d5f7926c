"""Hashers that are taught labels: in every form, by some of the documents, and to no harm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

import boltzhash
from boltzhash.hashers import HASHERS
from boltzhash.hashers.shared.deep import DeepHasher
from boltzhash.training import loop
from quick_hashers import quick as make_quick
from quick_hashers import separation
from small_corpus import TOPICS

TAKERS = [name for name, kind in HASHERS.items() if kind.takes_labels]
OTHERS = [name for name, kind in HASHERS.items() if not kind.takes_labels]
takers = pytest.mark.parametrize("kind", TAKERS)

quick = partial(make_quick, training__epochs=20, training__batch_size=30)


@pytest.fixture(scope="module")
def topics() -> list[str]:
    return [topic for topic in TOPICS for _ in range(30)]


@pytest.fixture(scope="module")
def plain(texts: list[str]) -> Callable[[str], Any]:
    """Each method without labels, fitted once; tests only read it."""
    return cache(lambda kind: quick(kind).fit(texts))


def test_every_method_with_a_word_decoder_takes_labels() -> None:
    assert {name for name, kind in HASHERS.items() if issubclass(kind, DeepHasher)} == set(TAKERS)
    assert {"LSH", "ITQ", "StackedRBM"} <= set(OTHERS)


@takers
def test_codes_of_one_label_become_near(kind: str, texts: list[str], topics: list[str]) -> None:
    """Labels that have nothing to do with topics and that one word tells."""
    colours = ["red", "blue"] * 45
    coloured = [f"{text} {colour}" for text, colour in zip(texts, colours, strict=True)]
    alone = quick(kind, training__epochs=100).fit(coloured)
    taught = quick(kind, training__epochs=100).fit(coloured, colours)
    before, after = (separation(hasher.encode(coloured), colours) for hasher in (alone, taught))
    # PairRec's pairs, which know no labels, hold against them: 0.8 to 3.1 bits with five seeds.
    assert after > before + (0.5 if kind == "PairRec" else 2)
    assert separation(taught.encode(coloured), topics) > 1  # what the words are about is not lost
    assert taught.labelling_[:2] == (90, 2)
    assert taught.labelling_.agreement > 0.8


@takers
def test_without_labels_nothing_changes(
    kind: str, texts: list[str], plain: Callable[[str], Any]
) -> None:
    nothing = [None, float("nan"), [], "", pd.NA, pd.NaT] * 15
    hasher = quick(kind).fit(texts, nothing)
    assert hasher.labelling_ is None
    assert hasher.fingerprint() == plain(kind).fingerprint()
    assert hasher.encode(texts).tobytes() == plain(kind).encode(texts).tobytes()


@takers
def test_labels_that_mean_nothing_change_nothing(
    kind: str,
    texts: list[str],
    topics: list[str],
    plain: Callable[[str], Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "boltzhash"):
        hasher = quick(kind).fit(texts, np.random.default_rng(3).permutation(topics))
    assert "labels are not used: words do not tell those that were held out" in caplog.text
    assert hasher.labelling_ == (90, 3, 0.0)
    assert hasher.encode(texts).tobytes() == plain(kind).encode(texts).tobytes()


USELESS: dict[str, list[Any]] = {
    "one class": ["the same"] * 90,
    "a label each": list(range(90)),
    "one labelled document": ["only one", *[None] * 89],
    "two labelled documents": ["one", "other", *[None] * 88],
}


@pytest.mark.parametrize("y", USELESS.values(), ids=USELESS.keys())
@pytest.mark.parametrize("weight", [None, 1.0])
def test_labels_that_tell_nothing_apart(
    y: list[Any], weight: float | None, texts: list[str], plain: Callable[[str], Any]
) -> None:
    hasher = quick(objective__label_weight=weight).fit(texts, y)
    assert hasher.labelling_.agreement == 0
    if weight is None:
        assert hasher.encode(texts).tobytes() == plain("SemanticHasher").encode(texts).tobytes()


def test_labels_with_a_weight_are_taught_whatever_words_say(
    texts: list[str], topics: list[str], plain: Callable[[str], Any]
) -> None:
    trusted = quick(objective__label_weight=1.0).fit(
        texts, np.random.default_rng(3).permutation(topics)
    )
    assert trusted.labelling_.agreement == 0
    assert (trusted.encode(texts) != plain("SemanticHasher").encode(texts)).any()


FORMS = {
    "strings": lambda topics: topics,
    "array": np.array,
    "array of objects": lambda topics: np.array(topics, dtype=object),
    "series": pd.Series,
    "series with another index": lambda topics: pd.Series(topics, index=range(90, 0, -1)),
    "categories": lambda topics: pd.Series(topics, dtype="category"),
    "generator": iter,
    "integers": lambda topics: [sorted(TOPICS).index(topic) for topic in topics],
    "floats": lambda topics: np.array([float(sorted(TOPICS).index(t)) for t in topics]),
    "lists": lambda topics: [[topic] for topic in topics],
    "tuples and sets": lambda topics: [(t, t) if i % 2 else {t} for i, t in enumerate(topics)],
    "matrix of bools": lambda topics: np.array([[t == name for name in TOPICS] for t in topics]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_labels_in_every_form_teach_the_same(
    form: Any, texts: list[str], topics: list[str]
) -> None:
    expected = quick("NASH", training__epochs=5).fit(texts, topics)
    hasher = quick("NASH", training__epochs=5).fit(texts, form(topics))
    assert hasher.labelling_ == expected.labelling_ == (90, 3, 1.0)
    assert hasher.encode(texts).tobytes() == expected.encode(texts).tobytes()


@takers
def test_some_labels_and_several(kind: str, texts: list[str], topics: list[str]) -> None:
    """Two thirds are unknown, and documents have one or two labels."""
    some: list[Any] = [
        None if number % 3 else [topic, "even"] if number % 2 == 0 else topic
        for number, topic in enumerate(topics)
    ]
    hasher = quick(kind).fit(texts, some)
    assert hasher.labelling_[:2] == (30, 4)


def test_what_pandas_has_no_label_for(texts: list[str], topics: list[str]) -> None:
    some = [topic if number % 3 == 0 else None for number, topic in enumerate(topics)]
    expected = quick("NASH", training__epochs=5).fit(texts, some)
    assert expected.labelling_[:2] == (30, 3)
    for y in (pd.Series(some), pd.Series(some, dtype="category"), pd.array(some, dtype="string")):
        hasher = quick("NASH", training__epochs=5).fit(texts, y)
        assert hasher.encode(texts).tobytes() == expected.encode(texts).tobytes()


BAD = {
    "too few": (["a"] * 89, "y must have one entry per document.*got 89 for 90 documents"),
    "too many": (["a"] * 91, "got 91 for 90 documents"),
    "a single string": ("astronomy", "y must have one entry per document, got a single str"),
    "a number": (3, "got a single int"),
    "numbers in a matrix": (np.ones((90, 2)), "got a matrix of shape .90, 2. that is not of bools"),
    "a frame": (
        pd.DataFrame({"a": [1] * 90}),
        "got a matrix of shape .90, 1. that is not of bools",
    ),
    "a record": ([{"topic": "a"}] * 90, "label of document 0 must be .* got dict"),
    "lists in lists": (["a", [["b"]]] * 45, "label of document 1 must be .* got list"),
}


@pytest.mark.parametrize(("y", "message"), BAD.values(), ids=BAD.keys())
def test_bad_labels_are_named(y: Any, message: str, texts: list[str]) -> None:
    with pytest.raises(ValueError, match=message):
        quick("NASH").fit(texts, y)


def test_labels_and_a_bound_on_memory_exclude_each_other(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="max_memory takes a sample of the documents, but y has"):
        quick().fit(texts, ["a"] * 90, max_memory="4 GB")


@pytest.mark.parametrize("kind", OTHERS)
def test_other_methods_ignore_labels(kind: str, texts: list[str], topics: list[str]) -> None:
    hasher = HASHERS[kind](n_bits=16)
    small = {"training__device": "cpu", "hidden_units": (32,)}
    hasher.set_params(**{name: small[name] for name in small if name in hasher.get_params()})
    one = hasher.fit(texts, topics).encode(texts)
    assert (one == hasher.fit(texts).encode(texts)).all()


@takers
def test_a_taught_model_is_saved_whole(
    kind: str, texts: list[str], topics: list[str], plain: Callable[[str], Any], tmp_path: Path
) -> None:
    hasher = quick(kind).fit(texts, topics)
    hasher.save(tmp_path / "model")
    loaded = boltzhash.load(tmp_path / "model")
    assert loaded.fingerprint() == hasher.fingerprint()
    assert loaded.encode(texts).tobytes() == hasher.encode(texts).tobytes()
    assert loaded.fingerprint() != plain(kind).fingerprint()


def test_a_pipeline_passes_labels_on(texts: list[str], topics: list[str]) -> None:
    matrix = quick().fit(texts).tfidf(texts)
    pipeline = make_pipeline(MaxAbsScaler(), quick()).fit(matrix, topics)
    assert pipeline[-1].labelling_.labels == 3


def test_documents_without_words_keep_labels_apart(texts: list[str], topics: list[str]) -> None:
    """A row that teaches nothing takes its label with it."""
    expected = quick().fit(texts, topics)
    matrix = expected.tfidf(["", *texts])
    hasher = quick().fit(matrix, ["none of these", *topics])
    assert hasher.labelling_.documents == 90
    assert (hasher.encode(matrix[1:]) == quick().fit(matrix[1:], topics).encode(matrix[1:])).all()


def test_checkpoints_know_the_labels(
    texts: list[str], topics: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    others = ["other", *topics[1:]]
    for labels, epochs in ((topics, [1, 2, 3]), (topics, []), (others, [1, 2, 3])):
        seen: list[int] = []
        quick(training__epochs=3).fit(
            texts,
            labels,
            checkpoint=tmp_path / "checkpoint",
            on_epoch=lambda h, seen=seen: seen.append(h.history_[-1].epoch),
        )
        assert seen == epochs


def test_published_forms_are_those_of_the_tables() -> None:
    """VDSH-S and NASH-S: the recipe under which the tables list the methods, and labels as they are."""
    from experiments.runs.sweeps import AS_PUBLISHED

    listed: dict[str, dict[str, Any]] = {
        s.method: s.arguments for s in AS_PUBLISHED if s.method not in ("CorrSH", "RBSH")
    }
    as_they_are = {"objective__label_weight": 1.0, "objective__label_guesses": False}
    for kind, arguments in listed.items():
        likelihood = "sigmoid" if kind in ("VDSH", "GMSH") else "softmax"
        changes = {**arguments, **as_they_are, "objective__label_likelihood": likelihood}
        expected = HASHERS[kind]().set_params(**changes).recipe()
        assert HASHERS[kind].as_published().recipe() == expected  # type: ignore[attr-defined]
