"""Models on disk: whole or not there, damage named, nothing executed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import boltzhash
from boltzhash import Network, SemanticHasher, Training
from boltzhash.errors import ModelError
from boltzhash.storage import folders
from boltzhash.storage.folders import CONFIG, VOCABULARY, WEIGHTS, atomic_folder, sha256


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    SemanticHasher(
        16, training=Training(epochs=2, device="cpu"), network=Network(hidden_units=8)
    ).fit(texts).save(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


KIND = "boltzhash model"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **changes}))


def forge_config(folder: Path, **changes: Any) -> None:
    """Change config.json and make all of its checksums right again."""
    change_config(folder, **changes)
    config = json.loads((folder / CONFIG).read_text())
    digests = {n: sha256(folder / n) for n in (WEIGHTS, VOCABULARY)}
    digests["params"] = folders._digest_of([config["class"], config["params"]])
    change_config(folder, sha256=digests)


def test_a_model_is_three_files(model: Path) -> None:
    assert sorted(contents(model)) == sorted([CONFIG, WEIGHTS, VOCABULARY])
    config = json.loads((model / CONFIG).read_text())
    assert config["format_version"] == 1
    assert config["class"] == "SemanticHasher"
    assert config["params"]["n_bits"] == 16


def test_posterior_survives_saving(model: Path, texts: list[str]) -> None:
    """D and U are there for inference to show, not only μ."""
    fitted = SemanticHasher(
        16, training=Training(epochs=2, device="cpu"), network=Network(hidden_units=8)
    ).fit(texts)
    loaded = boltzhash.load(model)
    assert isinstance(loaded, SemanticHasher)
    for one, other in zip(fitted.posterior(texts), loaded.posterior(texts), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.explain() == fitted.explain()


def truncate(name: str) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def flip_a_byte(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-5] ^= 1
    (folder / WEIGHTS).write_bytes(content)


def swap_in_other_shapes(folder: Path) -> None:
    """A weights file that is whole and has the right checksum, but not the shapes of config.json."""
    arrays = load_file(folder / WEIGHTS)
    arrays["learned.hidden2.weight"] = np.zeros((3, 3), dtype=np.float32)
    save_file(arrays, folder / WEIGHTS)
    forge_config(folder)


def put_in_a_nan(folder: Path) -> None:
    arrays = load_file(folder / WEIGHTS)
    arrays["learned.hidden2.weight"][0, 0] = np.nan
    save_file(arrays, folder / WEIGHTS)
    forge_config(folder)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated weights": (truncate(WEIGHTS), "model.safetensors is damaged"),
    "tampered weights": (flip_a_byte, "model.safetensors is damaged"),
    "truncated vocabulary": (truncate(VOCABULARY), "vocabulary.json is damaged"),
    "truncated config": (truncate(CONFIG), "config.json is damaged or not ours"),
    "no config": (lambda f: (f / CONFIG).unlink(), "config.json is missing"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), "model.safetensors is missing"),
    "newer format": (
        lambda f: change_config(f, format_version=2),
        "has format version 2, this boltzhash reads 1: make it again",
    ),
    "older format": (
        lambda f: change_config(f, format_version=0),
        "has format version 0, this boltzhash reads 1: make it again",
    ),
    "other format": (
        lambda f: change_config(f, format="boltzhash codes"),
        "holds a 'boltzhash codes'",
    ),
    "unknown class": (lambda f: forge_config(f, **{"class": "Magic"}), "holds a 'Magic'"),
    "unknown parameter": (
        lambda f: forge_config(f, params={"colour": 1}),
        "is a SemanticHasher with other settings than this boltzhash has",
    ),
    "not an object": (lambda f: (f / CONFIG).write_text("[1]"), "damaged or not ours"),
    "other settings": (
        lambda f: change_config(f, params={"n_bits": 8}),
        "its params are not those",
    ),
    "no version": (lambda f: change_config(f, format_version="1"), "'1' is not a format version"),
    "not numbers": (put_in_a_nan, "'hidden2.weight' hold values that are not finite numbers"),
    "other shapes": (swap_in_other_shapes, "'hidden2.weight' should have shape"),
    "pickled weights": (
        lambda f: (f / WEIGHTS).write_bytes(pickle.dumps({"a": 1})),
        "model.safetensors is damaged",
    ),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_named(model: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(model)
    with pytest.raises(ModelError, match=message):
        boltzhash.load(model)


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nowhere is not a folder"):
        boltzhash.load(tmp_path / "nowhere")


def test_saving_over_a_model_replaces_it_whole(model: Path, texts: list[str]) -> None:
    other = SemanticHasher(
        8, training=Training(epochs=2, device="cpu"), network=Network(hidden_units=8)
    ).fit(texts)
    other.save(model)
    assert boltzhash.load(model).fingerprint() == other.fingerprint()
    assert [path.name for path in model.parent.iterdir()] == ["model"]


def test_two_saves_write_the_same_bytes(model: Path, texts: list[str], tmp_path: Path) -> None:
    boltzhash.load(model).save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(model)


def test_a_write_that_fails_loses_nothing(model: Path, tmp_path: Path) -> None:
    """The file-size limit makes a real write fail half-way, as a full disk does."""
    before = contents(model)
    script = (
        "import resource, boltzhash\n"
        f"hasher = boltzhash.load({str(model)!r})\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"hasher.save({str(model)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert contents(model) == before
    assert [path.name for path in model.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two renames"])
def test_an_error_while_writing_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    target = tmp_path / "folder"
    with atomic_folder(target, KIND) as fresh:
        (fresh / "a").write_text("old")
        (fresh / CONFIG).write_text(json.dumps({"format": KIND, "format_version": 1}))
    with pytest.raises(RuntimeError, match="half-way"), atomic_folder(target, KIND) as fresh:
        (fresh / "a").write_text("new")
        raise RuntimeError("half-way")
    assert (target / "a").read_text() == "old"
    with atomic_folder(target, KIND) as fresh:
        (fresh / "a").write_text("new")
    assert (target / "a").read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_names_the_folder_and_not_what_is_under_construction(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    for nameless in (True, False):
        with (
            pytest.raises(OSError, match="No space") as raised,
            atomic_folder(target, KIND) as fresh,
        ):
            raise OSError(*(28, "No space left"), *(() if nameless else (str(fresh / "a"),)))
        assert raised.value.filename == str(target)
    with (
        pytest.raises(FileNotFoundError) as raised_elsewhere,
        atomic_folder(target, KIND),
    ):
        (tmp_path / "corpus.jsonl").read_text()
    assert raised_elsewhere.value.filename == str(tmp_path / "corpus.jsonl")


def test_a_file_is_not_overwritten_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with (
        pytest.raises(NotADirectoryError, match="file, which is a file"),
        atomic_folder(tmp_path / "file", KIND),
    ):
        pass
    assert (tmp_path / "file").read_text() == "precious"


def test_folder_permissions_follow_the_umask(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "folder", KIND):
        pass
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "folder").stat().st_mode == (tmp_path / "plain").stat().st_mode
