"""Models, codes and collections that the tests of the commands share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from boltzhash import ITQ, LSH
from boltzhash.training import loop
from command_line import FIT, Fitted, Made, Run, run_apart, succeed
from small_corpus import DOCUMENTS, make_records, write_corpus, write_jsonl
from torch_threads import threads


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    with threads(1):
        yield


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    fitted = Fitted(folder / "corpus.jsonl", folder / "model", folder / "codes")
    write_jsonl(fitted.corpus, DOCUMENTS)
    with threads(1):
        succeed("fit", fitted.corpus, "-o", fitted.model, *FIT)
        succeed("encode", fitted.model, fitted.corpus, "-o", fitted.codes)
    return fitted


@pytest.fixture(scope="session")
def other_model(fitted: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same but for the seed."""
    model = tmp_path_factory.mktemp("other") / "model"
    with threads(1):
        succeed("fit", fitted.corpus, "-o", model, *FIT, "--seed", 1)
    return model


@pytest.fixture(scope="session")
def fitted_apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """The same in a process of its own, from another kind of corpus, and what it printed."""
    folder = tmp_path_factory.mktemp("apart")
    corpus = write_corpus("csv", folder)
    return run_apart("fit", corpus, "-o", folder / "model", *FIT), folder / "model"


@pytest.fixture
def model(fitted: Fitted, tmp_path: Path) -> Path:
    """A copy of the model, to be damaged."""
    return Path(shutil.copytree(fitted.model, tmp_path / "model"))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    records = make_records(60)
    texts = [record["text"] for record in records]
    made = Made(*(tmp_path / name for name in ("model", "other", "corpus.jsonl", "collection")))
    ITQ(32).fit(texts).save(made.model)
    LSH(64).fit(texts).save(made.other)
    write_jsonl(made.corpus, records)
    succeed("index", made.model, made.corpus, "-o", made.collection)
    return made


@pytest.fixture
def checkpoint_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1)
