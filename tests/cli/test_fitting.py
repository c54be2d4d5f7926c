"""Fitting, the methods it can use, and what the bits of a model mean."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import boltzhash
from boltzhash import Training
from boltzhash.hashers import HASHERS
from boltzhash.training import loop
from command_line import FIT, Fitted, Run, contents, names, refused, run_apart, search_hits, succeed
from small_corpus import DOCUMENTS, TOPICS, as_jsonl


def test_fit_as_json(fitted: Fitted, tmp_path: Path) -> None:
    report = json.loads(succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--json"))
    assert list(report) == [
        *("model", "method", "bits", "words", "distinct_codes", "bit_balance", "seconds"),
        *("epochs", "reconstruction", "kl"),
    ]
    n_words = len({word for words in TOPICS.values() for word in words.split()})
    assert report["model"] == str(tmp_path / "model")
    assert (report["bits"], report["words"], report["epochs"]) == (16, n_words, 20)
    assert report["reconstruction"] < 0 < report["kl"]
    assert 3 <= report["distinct_codes"] <= len(DOCUMENTS)
    assert 0 < report["bit_balance"] <= 1
    assert report["seconds"] >= 0


def test_fit_for_humans_says_the_same(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)
    assert re.fullmatch(
        rf"wrote {re.escape(str(tmp_path / 'model'))}: SemanticHasher, 16 bits, 36 words, [\d.]+ s\n"
        r"\d+ distinct codes, bit balance 0\.\d\d\n"
        r"20 epochs: reconstruction -[\d.]+ and KL -?[\d.]+ nats per document\n",
        out,
    )


def test_every_method_can_be_chosen(fitted: Fitted, tmp_path: Path) -> None:
    output = tmp_path / "model"
    out = succeed("fit", fitted.corpus, "-o", output, "--method", "ITQ", "--bits", 16)
    assert out.startswith(f"wrote {output}: ITQ, 16 bits")
    assert succeed("encode", output, fitted.corpus, "-o", tmp_path / "codes")
    hits = search_hits(output, tmp_path / "codes", "planet orbit", "-k", 3)
    assert len(hits) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "Magic"], "--method must be one of SemanticHasher, "),
        (["--method", "ITQ", "--rank", 3], "--rank is not an argument of ITQ"),
        (["--method", "LSH", "--epochs", 3], "--epochs is not an argument of LSH"),
        (["--published"], "--published is for CorrSH, NASH, "),
        (["--method", "ITQ", "--published"], "got --method ITQ"),
    ],
)
def test_a_method_that_is_none_or_lacks_the_option(
    fitted: Fitted, tmp_path: Path, options: list[Any], message: str
) -> None:
    assert message in refused("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert names(tmp_path) == []


def test_a_full_rank_fit_as_published(fitted: Fitted, tmp_path: Path) -> None:
    options = ("--bits", 8, "--epochs", 20, "--method", "CorrSH", "--published", "--rank", "full")
    succeed("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert boltzhash.load(tmp_path / "model").get_params()["rank"] == "full"


# Same seed, same bytes


def test_the_same_seed_gives_the_same_bytes(
    fitted: Fitted, fitted_apart: tuple[Run, Path], tmp_path: Path
) -> None:
    _, model = fitted_apart
    assert contents(model) == contents(fitted.model)
    codes = tmp_path / "codes"
    assert run_apart("encode", model, fitted.corpus, "-o", codes).code == 0
    assert contents(codes) == contents(fitted.codes)


def test_a_bound_on_memory_with_room_for_all_changes_nothing(
    fitted: Fitted, tmp_path: Path
) -> None:
    succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--max-memory", "2GB")
    assert contents(tmp_path / "model") == contents(fitted.model)


# What cannot be fitted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bits", 12], "n_bits must be a multiple of 8 between 8 and 4096, got 12"),
        (["--rank", "half"], "rank must be an integer of 0 or more or 'full', got 'half'"),
        (["--max-memory", "50MB"], "max_memory must be at least "),
        (["--device", "abacus"], "device must be \"auto\" or a torch device, got 'abacus'"),
    ],
)
def test_a_wrong_argument_of_fit_is_named(
    fitted: Fitted, tmp_path: Path, options: list[object], message: str
) -> None:
    assert message in refused("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert names(tmp_path) == []


@pytest.mark.usefixtures("checkpoint_every_epoch")
def test_a_failed_fit_leaves_no_checkpoint_to_go_on_from(fitted: Fitted, tmp_path: Path) -> None:
    """The same command would only fail again."""
    arguments = ("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--learning-rate", "1e20")
    refused(*arguments, code=4)
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_an_output_folder_is_tried_before_training(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In /proc nobody may make a folder, not even root; what is allowed does not tell."""
    trained = []
    monkeypatch.setattr(loop, "train", lambda *_, **__: trained.append(1))
    message = refused("fit", fitted.corpus, "-o", "/proc/self/model", *FIT, code=5)
    assert message.startswith("[Errno ")
    assert message.endswith("'/proc/self/model'".replace("self", str(os.getpid())))
    assert not trained


def test_a_finished_model_is_replaced_only_if_asked_for(fitted: Fitted, model: Path) -> None:
    arguments = ("fit", fitted.corpus, "-o", model, *FIT, "--seed", 1)
    assert refused(*arguments, code=5) == (
        f"{model} is a finished model: name another folder, or replace it with --force"
    )
    assert contents(model) == contents(fitted.model)
    succeed(*arguments, "--force")
    assert contents(model) != contents(fitted.model)


# Methods and explanations


def test_methods_are_listed_with_their_papers() -> None:
    rows = [json.loads(line) for line in succeed("methods", "--json").splitlines()]
    assert [row["method"] for row in rows] == list(HASHERS)
    for row in rows:
        assert re.search(r"\((19|20)\d\d\)", row["reference"])
        assert row["summary"].endswith(".")
        assert row["summary"] in succeed("methods")
    needs = {row["method"]: row["fit_needs"] for row in rows}
    assert (needs["CorrSH"], needs["AMMI"], needs["LSH"]) == ("torch", "torch", None)
    assert needs["SelfTaughtHashing"] == "scikit-learn"


def test_explain_as_json(fitted: Fitted) -> None:
    bits = [json.loads(line) for line in succeed("explain", fitted.model, "--json").splitlines()]
    assert [bit["bit"] for bit in bits] == list(range(16))
    for bit in bits:
        assert list(bit) == ["bit", "up", "down"]
        up, down = ([weight for _, weight in bit[side]] for side in ("up", "down"))
        assert (len(up), len(down)) == (8, 8)
        assert up == sorted(up, reverse=True)
        assert down == sorted(down)
        assert up[-1] > down[-1]


def test_explain_for_humans_says_the_same(fitted: Fitted) -> None:
    out = succeed("explain", fitted.model, "--words", 3)
    bits = map(json.loads, succeed("explain", fitted.model, "--words", 3, "--json").splitlines())
    lines = []
    for bit in bits:
        up, down = (" ".join(word for word, _ in bit[side]) for side in ("up", "down"))
        lines += [f"bit {bit['bit']:<4} on:  {up}", f"         off: {down}"]
    assert out.splitlines() == lines


def with_topics(some: Any = lambda number, topic: topic) -> str:
    """The documents with a field ``topic``; records whose topic is None come without the field."""
    records = []
    for number, document in enumerate(DOCUMENTS):
        topic = some(number, document["id"].partition("-")[0])
        records.append(document if topic is None else {**document, "topic": topic})
    return as_jsonl(records)


def test_fit_learns_from_a_field_with_labels(fitted: Fitted, tmp_path: Path) -> None:
    """Strings, lists of strings or nothing, as in Python."""
    model = tmp_path / "model"
    labels = ("fit", "-", "-o", model, *FIT, "--labels", "topic", "--device", "cpu", "--force")
    out = succeed(*labels, stdin=with_topics())
    assert "\n3 labels of 60 documents; words tell those that are held out with a kappa of " in out
    report = json.loads(succeed(*labels, "--json", stdin=with_topics()))
    assert report["labels"]["documents"] == 60
    assert report["labels"]["agreement"] > 0.8
    texts = [document["text"] for document in DOCUMENTS]
    topics = [document["id"].partition("-")[0] for document in DOCUMENTS]
    taught = boltzhash.SemanticHasher(16, training=Training(epochs=20, device="cpu"))
    taught.fit(texts, topics)
    assert boltzhash.load(model).fingerprint() == taught.fingerprint()
    some = with_topics(lambda number, topic: None if number % 3 == 2 else [topic, "all"])
    report = json.loads(succeed(*labels, "--json", stdin=some))
    assert (report["labels"]["documents"], report["labels"]["labels"]) == (40, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--labels", "subject"], "--labels: no record has a field 'subject'"),
        (
            ["--labels", "topic", "--method", "ITQ"],
            "--labels is for SemanticHasher, CorrSH, NASH, ",
        ),
        (
            ["--labels", "topic", "--max-memory", "4GB"],
            "max_memory takes a sample of the documents",
        ),
    ],
)
def test_labels_that_cannot_be_learned_from(
    tmp_path: Path, options: list[str], message: str
) -> None:
    arguments = ("fit", tmp_path / "corpus.jsonl", "-o", tmp_path / "model", "--bits", 16)
    (tmp_path / "corpus.jsonl").write_text(with_topics())
    assert message in refused(*arguments, *options)
    (tmp_path / "corpus.jsonl").write_text(with_topics(lambda *_: {"name": "sky"}))
    bad = refused(*arguments, "--labels", "topic")
    assert "the label of document 0 must be a string, a number, None or a list" in bad
    assert names(tmp_path) == ["corpus.jsonl"]
