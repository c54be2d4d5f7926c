"""Codes measured on one's own texts: what is sampled, held out and counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import ITQ, LSH, Collection, SemanticHasher, Text, Training
from boltzhash.codes import hamming
from boltzhash.hashers.shared.halves import halves
from boltzhash.metrics import compare_hashers, evaluate_codes, own_texts, variants
from boltzhash.metrics.codes_report import CodesReport, Halves, Measured
from boltzhash.metrics.significance import Estimate
from boltzhash.text.tfidf import unit_rows
from small_corpus import make_documents

DOCUMENTS = make_documents(90)
TEXTS = [document["text"] for document in DOCUMENTS]
TOPICS = [document["id"].partition("-")[0] for document in DOCUMENTS]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    """Three topics; every fourth document has no label, every fourth a second one."""
    with Collection.create(tmp_path / "library", ITQ(16).fit(TEXTS)) as collection:
        collection.add(
            {"id": i, "text": text, "metadata": {"topic": topic}}
            for i, (text, topic) in enumerate(zip(TEXTS, labels(), strict=True))
        )
        yield collection


def labels() -> list[Any]:
    found: list[Any] = list(TOPICS)
    for number in range(0, 90, 4):
        found[number] = None
    for number in range(1, 90, 4):
        found[number] = [found[number], "sky"]
    return found


def near(distances: np.ndarray, k: int) -> np.ndarray:
    """The probability to be among the k nearest, document by document."""
    return np.array(
        [
            min(1, max(0, k - (distances < d).sum()) / (distances == d).sum())
            for d in distances.tolist()
        ]
    )


@pytest.mark.parametrize("latent_up_to", [0, 1000])
def test_agreement_of_a_collection(
    collection: Collection, latent_up_to: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a count, document by document, whether or not all texts are read."""
    monkeypatch.setattr(own_texts, "LATENT_UP_TO", latent_up_to)
    monkeypatch.setattr(own_texts, "BATCH", 40)
    report = evaluate_codes(collection)
    order = np.random.default_rng(0).permutation(90)
    hasher = collection.hasher
    words = hasher.tfidf([TEXTS[row] for row in order])
    order, words = order[np.diff(words.indptr) >= 2], words[np.diff(words.indptr) >= 2]
    one, other = (
        hasher.encode(unit_rows(half)) for half in halves(words, np.random.default_rng(0))
    )
    codes, values = hasher.encode(TEXTS), []
    for row, *both in zip(order, one, other, strict=True):
        rest = np.delete(codes, row, axis=0)
        first, second = (near(hamming(half[None], rest)[0], 2) for half in both)
        values.append((first * second).sum() / 2)
    assert report.halves[:4] == (len(order), 89, 2, np.median(np.diff(words.indptr)))
    assert report.halves.chance == 2 / 89
    assert (report.halves.latent_semantics is None) == (latent_up_to == 0)
    (model,) = report.models
    assert model.agreement.mean == pytest.approx(np.mean(values))
    assert model.agreement.low < model.agreement.mean < model.agreement.high
    assert (model.method, model.bits, model.seconds) == ("ITQ", 16, None)


def test_at_most_a_thousand_documents_are_cut(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_texts, "DOCUMENTS", 12)
    assert evaluate_codes(collection, "topic").halves.documents == 12
    assert compare_hashers([LSH(16)], TEXTS * 3).halves.documents <= 12


@pytest.mark.parametrize(("top", "k"), [(100, 66), (10, 10)])
def test_precision_by_a_field(collection: Collection, top: int, k: int) -> None:
    """Only labelled documents ask and are found, none finds itself, one label in common is enough."""
    report = evaluate_codes(collection, "topic", top=top)
    given = [{label} if isinstance(label, str) else set(label or ()) for label in labels()]
    rows = [row for row, own in enumerate(given) if own]
    codes = collection.hasher.encode(TEXTS)
    values, chance = [], []
    for row in rows:
        rest = [other for other in rows if other != row]
        relevant = np.array([bool(given[row] & given[other]) for other in rest])
        values.append(near(hamming(codes[row][None], codes[rest])[0], k) @ relevant / k)
        chance.append(relevant.mean())
    assert report.labelled is not None
    assert report.labelled[:5] == ("topic", k, 67, 66, 23)
    assert report.labelled.chance == pytest.approx(np.mean(chance))
    (model,) = report.models
    assert model.precision is not None
    assert model.precision.mean == pytest.approx(np.mean(values))
    assert f"precision@{k}" in str(report)


def test_models_are_compared_on_documents_that_they_have_not_seen() -> None:
    seen: list[list[str]] = []

    class Noting(LSH):
        def fit(self, X: Any, *others: Any, **more: Any) -> Noting:
            seen.append(list(X))
            return super().fit(X, *others, **more)

    texts = [f"{text} number{row}" for row, text in enumerate(TEXTS)]
    report = compare_hashers([Noting(8), Noting(64)], texts, labels=labels())
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 81
    held_out = sorted(set(texts) - set(seen[0]))
    assert report.halves.among == 81
    assert report.halves.documents == len(held_out) == 9
    assert [(model.bits, model.method) for model in report.models] == [
        (8, "Noting"),
        (64, "Noting"),
    ]
    given = dict(zip(texts, labels(), strict=True))
    own = {text: {t} if isinstance(t := given[text], str) else set(t or ()) for text in texts}
    there = [own[text] for text in seen[0] if own[text]]
    values = [
        np.mean([bool(own[text] & other) for other in there]) for text in held_out if own[text]
    ]
    precision = report.models[1].precision
    assert precision is not None
    assert report.labelled is not None
    assert report.labelled.among == report.labelled.k == len(there)  # so all are found
    assert precision.mean == pytest.approx(np.mean(values)) == report.labelled.chance


def test_topics_are_told_from_noise() -> None:
    """Codes that know the topics agree better than random hyperplanes."""
    report = compare_hashers([ITQ(8), LSH(8)], make_texts(600))
    itq, lsh = (model.agreement for model in report.models)
    assert itq.low > lsh.high
    assert report.best.method == "ITQ"
    assert itq.mean > 2 * report.halves.chance


def make_texts(n: int) -> list[str]:
    return [document["text"] for document in make_documents(n, seed=1)]


def test_the_shortest_that_is_as_good() -> None:
    def measured(bits: int, mean: float) -> Measured:
        return Measured("ITQ", bits, Estimate(mean, mean - 0.02, mean + 0.02))

    halves = Halves(100, 900, 30, 50, None)
    models = [measured(8, 0.2), measured(32, 0.47), measured(64, 0.5), measured(128, 0.49)]
    assert CodesReport(models, halves).shortest.bits == 32
    assert CodesReport([*models, measured(32, 0.49)], halves).shortest == measured(32, 0.49)
    assert CodesReport(models[:2], halves).shortest.bits == 32


def test_variants_keep_the_settings() -> None:
    own = SemanticHasher(
        64,
        random_state=7,
        verbose=True,
        output="bits",
        training=Training(epochs=3, device="cpu"),
        text=Text(stem=True),
    )
    kinds = variants(own, [16, 128], methods=[])
    assert [kind.n_bits for kind in kinds] == [16, 128]
    assert all(isinstance(kind, SemanticHasher) for kind in kinds)
    expected = {**own.get_params(), "n_bits": 128, "verbose": False, "output": "codes"}
    assert kinds[1].get_params() == expected
    (itq,) = variants(own, [], methods=["ITQ"])
    assert (itq.n_bits, itq.get_params()["text__stem"], itq.random_state) == (64, True, 7)
    (nash,) = variants(own, [], methods=["NASH"])
    assert nash.get_params()["training__device"] == "cpu"
    assert nash.get_params()["training__epochs"] is None
    with pytest.raises(ValueError, match=r"method must be one of"):
        variants(own, [], methods=["MD5"])
    with pytest.raises(ValueError, match=r"n_bits must be a multiple of 8"):
        variants(own, [12], methods=[])


def test_what_cannot_be_measured_is_refused(collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no document has a label in its field 'year'"):
        evaluate_codes(collection, "year")
    with pytest.raises(ValueError, match="20 documents are needed: there are 19"):
        compare_hashers([LSH(8)], TEXTS[:19])
    with pytest.raises(ValueError, match="at least one hasher, got none"):
        compare_hashers([], TEXTS)
    one_word = [text.split()[0] for text in TEXTS]
    with pytest.raises(ValueError, match="no document has two words or more"):
        compare_hashers([LSH(8)], one_word)
    collection.delete(range(1, 90))
    with pytest.raises(ValueError, match="20 documents are needed: there are 1"):
        evaluate_codes(collection)
