"""Encoding on a real local Ray cluster, with a worker killed half-way."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash import LSH, Text
from boltzhash.cli.parser import main
from boltzhash.collection import Collection
from boltzhash.collection.cluster import add_from
from boltzhash.corpus import CorpusError, read_corpus
from boltzhash.encoding.ray import encode_on_ray
from boltzhash.storage.codes import read_codes
from snapshots import Newest

pytestmark = [
    pytest.mark.engines,
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]

WORDS = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave".split()


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A cluster of two workers on this machine."""
    if os.environ.get("BOLTZHASH_TEST_ENGINES"):
        ray = importlib.import_module("ray")
    else:
        ray = pytest.importorskip("ray", reason="ray is not installed: `make test-engines`")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        _start(ray)
    yield ray
    ray.shutdown()


def _start(ray: Any, attempts: int = 3) -> None:
    """Ray gives itself half a minute to start, which a busy machine may not keep."""
    try:
        ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    except Exception:
        ray.shutdown()
        if attempts == 1:
            raise
        _start(ray, attempts - 1)


@pytest.fixture(scope="module")
def hasher() -> LSH:
    return LSH(64, random_state=0, text=Text(max_df=1.0)).fit(
        [f"{a} {b}" for a in WORDS for b in WORDS]
    )


def write_corpus(folder: Path, n: int, n_files: int) -> list[Path]:
    """JSONL and Parquet by turns; some documents without an id."""
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    rng = np.random.default_rng(0)
    folder.mkdir()
    paths = []
    for number in range(n_files):
        texts = [" ".join(rng.choice(WORDS, 30)) for _ in range(n // n_files)]
        if number % 2:
            path = folder / f"part-{number}.parquet"
            ids = [f"{number}/{i}" for i in range(len(texts))]
            table = pyarrow.table({"id": ids, "text": texts})
            parquet.write_table(table, path, row_group_size=1000)
        else:
            path = folder / f"part-{number}.jsonl"
            records = [
                {"text": text} if i % 3 else {"id": f"{number}/{i}", "text": text, "n": i}
                for i, text in enumerate(texts)
            ]
            path.write_text("".join(json.dumps(record) + "\n" for record in records))
        paths.append(path)
    return paths


def expected_of(hasher: LSH, paths: list[Path]) -> tuple[list[Any], Any]:
    """Ids and codes as one process makes them; what has no id is numbered through all files."""
    ids: list[Any] = []
    texts: list[str] = []
    for path in paths:
        for document in read_corpus(path):
            ids.append(len(ids) if isinstance(document.id, int) else document.id)
            texts.append(document.text)
    return ids, hasher.transform(texts)


@pytest.mark.usefixtures("ray")
def test_the_same_codes_as_one_process(tmp_path: Path, hasher: LSH) -> None:
    paths = write_corpus(tmp_path / "corpus", 4000, 4)
    seen: list[tuple[int, int]] = []
    counts = encode_on_ray(
        hasher,
        paths,
        tmp_path / "codes",
        shard_bytes=50_000,
        on_shard=lambda *done: seen.append(done),
    )
    stored = read_codes(tmp_path / "codes", model=hasher.fingerprint())
    ids, codes = expected_of(hasher, paths)
    assert counts == {"documents": 4000, "no_known_word": 0}
    assert stored.ids == ids
    np.testing.assert_array_equal(stored.codes, codes)
    assert seen[-1][0] == seen[-1][1] > 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codes", "corpus"]


@pytest.mark.usefixtures("ray")
def test_a_killed_worker_loses_nothing(tmp_path: Path, hasher: LSH) -> None:
    """SIGKILL in the middle of a shard: every document has exactly one code at the end."""
    paths = write_corpus(tmp_path / "corpus", 40_000, 2)
    output, failures = tmp_path / "codes", []

    def encode() -> None:
        try:
            encode_on_ray(hasher, paths, output, shard_bytes=400_000)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=encode)
    thread.start()
    killed = kill_workers_at_work(tmp_path / "codes.shards", 3, thread)
    thread.join(timeout=240)
    assert not thread.is_alive()
    assert not failures
    assert len(killed) == 3
    stored = read_codes(output, model=hasher.fingerprint())
    ids, codes = expected_of(hasher, paths)
    assert stored.ids == ids
    assert len(set(stored.ids)) == 40_000
    np.testing.assert_array_equal(stored.codes, codes)


def kill_workers_at_work(folder: Path, n: int, thread: threading.Thread) -> list[int]:
    """Kill workers that have begun a shard and not finished it; their process ids."""
    killed: list[int] = []
    while thread.is_alive() and len(killed) < n:
        for path in folder.glob("*.npz.*"):  # what a worker has not finished yet
            pid = int(path.name.rpartition(".")[2])
            if pid not in killed:
                with contextlib.suppress(ProcessLookupError):  # Ray has ended it itself
                    os.kill(pid, signal.SIGKILL)
                if path.exists():  # it did not finish in the last moment
                    killed.append(pid)
                break
        time.sleep(0.02)
    return killed


@pytest.mark.usefixtures("ray")
def test_the_same_call_goes_on(tmp_path: Path, hasher: LSH) -> None:
    """A document that cannot be read ends it; what is done by then is not done again."""
    paths = write_corpus(tmp_path / "corpus", 2000, 2)
    broken = tmp_path / "corpus" / "part-9.jsonl"
    broken.write_text('{"text": 3}\n')
    with pytest.raises(CorpusError, match=r"part-9.jsonl, byte 0: field 'text' must be a string"):
        encode_on_ray(hasher, [*paths, broken], tmp_path / "codes", shard_bytes=30_000)
    assert not (tmp_path / "codes").exists()
    done = len(list((tmp_path / "codes.shards").glob("*.npz")))
    assert done
    broken.write_text('{"text": "star"}\n')
    shown: list[int] = []
    encode_on_ray(
        hasher,
        [*paths, broken],
        tmp_path / "codes",
        shard_bytes=30_000,
        on_shard=lambda _, total: shown.append(total),
    )
    assert 1 <= len(shown) <= shown[0] - done
    stored = read_codes(tmp_path / "codes", model=hasher.fingerprint())
    assert stored.ids == expected_of(hasher, [*paths, broken])[0]


@pytest.mark.usefixtures("ray")
def test_a_collection_is_filled_by_the_cluster(tmp_path: Path, hasher: LSH) -> None:
    paths = write_corpus(tmp_path / "corpus", 3000, 2)
    ids, codes = expected_of(hasher, paths)
    with Collection.create(tmp_path / "collection", hasher) as collection:
        assert add_from(collection, paths) == 3000
        assert [document.id for document in collection] == ids
        assert collection.get("0/0").metadata == {"n": 0}
        Newest(collection).check()
        assert add_from(collection, paths) == 3000  # again: nothing is there twice
        assert [document.id for document in collection] == ids
        np.testing.assert_array_equal(Newest(collection).rows().codes, codes)


@pytest.mark.usefixtures("ray")
def test_the_command(tmp_path: Path, hasher: LSH, capsys: pytest.CaptureFixture[str]) -> None:
    write_corpus(tmp_path / "corpus", 600, 2)
    hasher.save(tmp_path / "model")
    model, corpus = str(tmp_path / "model"), tmp_path / "corpus"
    output = str(tmp_path / "codes")
    assert main(["encode", model, str(corpus), "-o", output, "--ray", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report == {"codes": output, "bits": 64, "documents": 600, "no_known_word": 0}
    stored = read_codes(output, model=hasher.fingerprint())
    assert stored.ids == expected_of(hasher, sorted(corpus.iterdir()))[0]
    refused = ["encode", model, str(corpus), "-o", output, "--ray", "--encoding", "latin-1"]
    assert main(refused) == 2
    assert "--ray reads utf-8 only" in capsys.readouterr().err


@pytest.mark.usefixtures("ray")
def test_what_docs_scale_md_shows(
    tmp_path: Path, hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^boltzhash (encode .*? --ray)", page, re.M)
    (call,) = re.findall(r"^add_from\(library, .*\)$", page, re.M)
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "corpus", 600, 3)
    hasher.save("model")
    assert main(command.split()) == 0
    assert len(read_codes(tmp_path / "codes", model=hasher.fingerprint()).ids) == 600
    for name, number in {"part-1.parquet": 1, "part-2.jsonl": 2}.items():
        (tmp_path / "corpus" / f"part-{number}{Path(name).suffix}").rename(tmp_path / name)
    with Collection.create("library", hasher) as library:
        exec(call.replace("/shared/shards", "shards"), {"library": library, "add_from": add_from})
        assert len(library) == 400
