"""Corpora and models that are damaged or are none: each is named, in one line, with exit code 2."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.storage.folders import FORMAT_VERSION
from command_line import Fitted, names, refused


def test_a_missing_corpus_is_named(fitted: Fitted, tmp_path: Path) -> None:
    gone = tmp_path / "gone.jsonl"
    message = f"{gone}: expected a file or a folder, got no such path"
    assert refused("fit", gone, "-o", tmp_path / "model") == message
    assert refused("encode", fitted.model, gone, "-o", tmp_path / "codes") == message
    assert refused("search", fitted.model, fitted.codes, "onion", "--corpus", gone) == message
    assert names(tmp_path) == []


# Models


@pytest.mark.parametrize("command", ["encode", "search", "explain"])
def test_what_is_not_a_model_folder(fitted: Fitted, tmp_path: Path, command: str) -> None:
    arguments: dict[str, list[object]] = {
        "encode": [fitted.corpus, "-o", tmp_path / "codes"],
        "search": [fitted.codes, "ship"],
        "explain": [],
    }
    empty, gone = tmp_path / "empty", tmp_path / "gone"
    empty.mkdir()
    expected = {
        empty: f"{empty} is not a boltzhash model folder: config.json is missing",
        gone: f"{gone} is not a folder; expected a boltzhash model folder",
        fitted.corpus: f"{fitted.corpus} is not a folder; expected a boltzhash model folder",
        fitted.codes: f"{fitted.codes} holds a 'boltzhash codes'; expected a 'boltzhash model'",
    }
    for folder, message in expected.items():
        assert refused(command, folder, *arguments[command]) == message
    assert names(tmp_path) == ["empty"]


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights[:1000],
        lambda weights: b"",
        lambda weights: weights[:-1] + bytes([weights[-1] ^ 1]),
        lambda weights: weights + b"\0",
    ],
    ids=["truncated", "emptied", "one bit", "one byte more"],
)
def test_damaged_weights(fitted: Fitted, model: Path, change: Callable[[bytes], bytes]) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(change(weights.read_bytes()))
    assert refused("search", model, fitted.codes, "ship") == (
        f"{weights} is damaged: its contents are not those that were saved with config.json"
    )


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.json"])
def test_a_model_that_is_not_whole(fitted: Fitted, model: Path, name: str) -> None:
    (model / name).unlink()
    message = refused("search", model, fitted.codes, "ship")
    assert message == f"{model} is not a complete model: {name} is missing"


def test_a_changed_vocabulary(fitted: Fitted, model: Path) -> None:
    path = model / "vocabulary.json"
    path.write_text(path.read_text().replace("ship", "shop"))
    assert f"{path} is damaged" in refused("search", model, fitted.codes, "ship")


def change_config(model: Path, **changes: object) -> None:
    """With None, a key is taken out."""
    path = model / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: v for key, v in config.items() if v is not None}))


def test_a_model_of_a_newer_format(fitted: Fitted, model: Path) -> None:
    change_config(model, format_version=FORMAT_VERSION + 1)
    assert refused("search", model, fitted.codes, "ship") == (
        f"{model} has format version {FORMAT_VERSION + 1}, this boltzhash reads "
        f"{FORMAT_VERSION}: make it again"
    )


@pytest.mark.parametrize("key", ["format", "format_version", "class", "params", "sha256"])
def test_a_config_with_something_missing(fitted: Fitted, model: Path, key: str) -> None:
    change_config(model, **{key: None})
    assert str(model) in refused("search", model, fitted.codes, "ship")


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "Unheard"},
        {"class": 7},
        {"params": {"unheard": 1}},
        {"params": {"n_bits": 8}},
        {"params": []},
        {"sha256": []},
    ],
    ids=str,
)
def test_a_config_that_does_not_fit(
    fitted: Fitted, model: Path, changes: dict[str, object]
) -> None:
    change_config(model, **changes)
    assert str(model) in refused("search", model, fitted.codes, "ship")
