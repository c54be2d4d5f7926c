"""The collection in a folder: what it survives, whom it refuses, what others see of it meanwhile."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from boltzhash import LSH, Hasher
from boltzhash.collection import Collection
from boltzhash.collection import collection as verbs
from boltzhash.collection.sqlite import codes_following, maintenance, rehashing, words
from boltzhash.collection.sqlite.codes_file import CODES_FILE, read_codes_file
from boltzhash.collection.sqlite.database import DATABASE, Database
from boltzhash.collection.sqlite.store import SqliteStore, SqliteTransaction
from boltzhash.encoding.coding import Coded
from boltzhash.errors import (
    CollectionBusyError,
    CollectionError,
    CollectionGoneError,
)
from boltzhash.search import compiled, multi_index
from snapshots import Newest

TEXTS = [
    "star planet",
    "moon orbit",
    "bread butter",
    "oven flour sugar",
    "ship sail",
    "nobody knows",
]


def documents(n: int, start: int = 0) -> Iterator[dict[str, Any]]:
    for i in range(start, start + n):
        yield {"id": i, "text": TEXTS[i % 6], "metadata": {"parity": i % 2, "name": f"n{i}"}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "collection"


@pytest.fixture
def filled(path: Path, long_hasher: LSH) -> Path:
    with Collection.create(path, long_hasher) as collection:
        collection.add(documents(100))
        flush(collection)
    return path


def ask_sqlite(path: Path, question: str) -> Any:
    with contextlib.closing(sqlite3.connect(path / DATABASE)) as connection:
        return connection.execute(question).fetchone()[0]


def flush(collection: Collection) -> None:
    """Put all codes into codes.map."""
    assert isinstance(collection.store, SqliteStore)
    collection.store.flush()


def answers(collection: Collection) -> list[Any]:
    """Much of what a collection can be asked."""
    return [
        list(collection),
        collection.search("moon orbit", 30).ids,
        collection.search("moon orbit", 30, by="codes").ids,
        collection.search("moon orbit", 30, where={"parity": 1}).ids,
        collection.within("bread star", 20, where={"name": {">=": "n5"}}).ids,
        Newest(collection).duplicates(),
    ]


def answers_of(path: Path) -> list[Any]:
    with Collection.open(path) as collection:
        return answers(collection)


def in_a_process(
    program: str, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        **options,
    )


# Who may open what


@pytest.mark.parametrize("kind", ["nothing", "folder", "file", "other sqlite", "rubbish"])
def test_what_is_no_collection_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "file":
        path.write_text("x")
    elif kind != "nothing":
        path.mkdir()
    if kind == "rubbish":
        (path / DATABASE).write_bytes(b"rubbish" * 1000)
    if kind == "other sqlite":
        with contextlib.closing(sqlite3.connect(path / DATABASE)) as connection:
            connection.execute("CREATE TABLE t (x)")
    with pytest.raises(CollectionError, match=str(path)):
        Collection.open(path)


def test_creating_never_overwrites(filled: Path, tmp_path: Path, hasher: LSH) -> None:
    before = answers_of(filled)
    with pytest.raises(FileExistsError, match="is already a collection"):
        Collection.create(filled, hasher)
    assert answers_of(filled) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="mine"):
        Collection.create(tmp_path / "mine", hasher)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["file"]


def test_a_hasher_without_words_is_refused(path: Path) -> None:
    hasher = LSH(8).fit(sparse.csr_matrix(np.eye(4)))
    with pytest.raises(ValueError, match="was fitted on a matrix and knows no words"):
        Collection.create(path, hasher)
    assert not path.exists()


def test_the_wrong_model_is_refused(filled: Path, long_hasher: LSH, hasher: LSH) -> None:
    with pytest.raises(CollectionError, match="was made by another model"):
        Collection.open(filled, hasher)
    Collection.open(filled, long_hasher).close()


def test_a_model_put_in_by_hand_is_refused(filled: Path, hasher: LSH) -> None:
    (folder,) = (filled / "models").iterdir()
    shutil.rmtree(folder)
    hasher.save(folder)
    with pytest.raises(CollectionError, match="is not the model that made the codes"):
        Collection.open(filled)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocabulary.json"])
def test_a_damaged_model_is_named(filled: Path, name: str) -> None:
    (folder,) = (filled / "models").iterdir()
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(CollectionError, match=f"the model of {filled} is damaged: .*{folder.name}"):
        Collection.open(filled)


@pytest.mark.parametrize("version", [0, 2])
def test_another_format_is_refused(filled: Path, version: int) -> None:
    with contextlib.closing(sqlite3.connect(filled / DATABASE)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    expected = f"has format version {version}, this boltzhash reads 1: index again"
    with pytest.raises(CollectionError, match=expected):
        Collection.open(filled)


# Damage


def test_a_flipped_byte_is_found_or_does_no_harm(filled: Path, tmp_path: Path) -> None:
    """Every answer is right or an error, and ``check`` finds whatever could make one wrong."""
    expected = answers_of(filled)
    original = (filled / DATABASE).read_bytes()
    rng = random.Random(1)
    found = 0
    for trial in range(150):
        copy = tmp_path / f"copy-{trial}"
        shutil.copytree(filled, copy)
        damaged = bytearray(original)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (copy / DATABASE).write_bytes(damaged)
        if trial % 2:
            (copy / CODES_FILE).unlink()
        try:
            with Collection.open(copy) as collection:
                Newest(collection).check()
                assert answers(collection) == expected
        except CollectionError as error:
            assert str(copy) in str(error)  # noqa: PT017  # either way is right, and both are checked
            found += 1
        shutil.rmtree(copy)
    assert found > 30


@pytest.mark.parametrize("where", [5, 4096 + 3, 4096 + 800 + 5, -2])
def test_damaged_codes_are_made_again(
    filled: Path, where: int, caplog: pytest.LogCaptureFixture
) -> None:
    """In the header, the places, the codes, and the flags of known words."""
    expected = answers_of(filled)
    content = bytearray((filled / CODES_FILE).read_bytes())
    content[where] ^= 4
    (filled / CODES_FILE).write_bytes(content)
    assert answers_of(filled) == expected
    assert f"{filled / CODES_FILE} is damaged" in caplog.text


@pytest.mark.parametrize("size", [0, 100, 4096, 5000])
def test_codes_cut_short_are_made_again(filled: Path, size: int) -> None:
    expected = answers_of(filled)
    os.truncate(filled / CODES_FILE, size)
    assert answers_of(filled) == expected


def test_codes_of_an_older_generation_are_brought_up_to_date(filled: Path) -> None:
    with Collection.open(filled) as collection:
        collection.delete([0, 7, 99])
        collection.upsert([{"id": 1, "text": "ship sail"}, {"id": 200, "text": "bread butter"}])
        expected = answers(collection)
    assert (filled / CODES_FILE).exists()
    assert answers_of(filled) == expected
    (filled / CODES_FILE).unlink()
    assert answers_of(filled) == expected


def test_codes_of_a_later_database_are_not_taken_for_those_of_an_older_one(
    filled: Path, tmp_path: Path
) -> None:
    """An old collection.sqlite put back beside a newer codes.map, and written to until it is as far."""
    with Collection.open(filled) as collection:
        collection.backup(tmp_path / "backup")
        for _ in range(5):
            collection.upsert([{"id": 1, "text": "bread butter"}])
        flush(collection)
    shutil.copy(tmp_path / "backup" / DATABASE, filled / DATABASE)
    with Collection.open(filled) as collection:
        for i in range(8):
            collection.upsert([{"id": 50 + i, "text": "ship sail"}])
        expected = answers(collection)
        Newest(collection).check()
    assert answers_of(filled) == expected
    with Collection.open(filled) as collection:
        Newest(collection).check()


# Full disks and read-only files

FILL_THE_DISK = """
import resource, sys
from boltzhash.collection import Collection
collection = Collection.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
n = 0
try:
    while True:
        collection.add({"id": f"new-{n + i}", "text": "star planet " * 20} for i in range(10))
        n += 10
        print(n, flush=True)
except OSError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
"""


def test_a_full_disk_is_an_error_and_loses_nothing(filled: Path) -> None:
    size = (filled / DATABASE).stat().st_size
    done = in_a_process(FILL_THE_DISK, filled, size + 20_000)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("OSError")
    assert DATABASE in done.stderr
    acknowledged = int(done.stdout.split()[-1])
    with Collection.open(filled) as collection:
        Newest(collection).check()
        ids = [document.id for document in collection]
        assert ids == [*range(100), *(f"new-{i}" for i in range(acknowledged))]
        collection.add(documents(1, start=500))


READ_ONLY = """
import os, sys
from boltzhash.collection import Collection
if os.geteuid() == 0:
    os.setuid(65534)
with Collection.open(sys.argv[1]) as collection:
    print(collection.search("moon orbit", 3).ids, len(collection))
    for write in (
        lambda: collection.add([{"id": "new", "text": "star"}]),
        lambda: collection.delete([1]),
    ):
        try:
            write()
        except PermissionError as error:
            print(error)
"""


def test_a_read_only_collection_can_be_searched_and_not_written(long_hasher: LSH) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "collection"
        with Collection.create(path, long_hasher) as collection:
            collection.add(documents(100))
            expected = collection.search("moon orbit", 3).ids
        for item in [*path.rglob("*"), path]:
            item.chmod(0o555 if item.is_dir() else 0o444)
        before = (path / DATABASE).read_bytes()
        done = in_a_process(READ_ONLY, path)
        for item in [path, *path.rglob("*")]:
            item.chmod(0o755 if item.is_dir() else 0o644)
        lines = done.stdout.splitlines()
        assert lines[0] == f"{expected} 100", done.stderr
        assert len(lines) == 3
        assert all("the collection cannot be written" in line for line in lines[1:])
        assert (path / DATABASE).read_bytes() == before


READ_TWICE = """
import os, sys
from boltzhash.collection import Collection
if os.geteuid() == 0:
    os.setuid(65534)
with Collection.open(sys.argv[1]) as collection:
    print(len(collection), collection.search("ship sail", 3).ids, flush=True)
    for _ in sys.stdin:
        print(len(collection), collection.search("ship sail", 3).ids, flush=True)
"""


def test_who_cannot_lock_still_sees_what_others_write(long_hasher: LSH) -> None:
    """A reader without permission to write, of a file that others write meanwhile and afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "collection"
        Collection.create(path, long_hasher).close()
        chmod_all(path, 0o555, 0o444)
        with subprocess.Popen(
            [sys.executable, "-c", READ_TWICE, str(path)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            seen, expected = [reader.stdout.readline()], ["0 []\n"]
            chmod_all(path, 0o755, 0o644)
            for n in (6, 12):
                with Collection.open(path) as collection:
                    collection.add(documents(6, start=n - 6))
                    expected += 2 * [f"{n} {collection.search('ship sail', 3).ids}\n"]
                    seen.append(asked(reader))  # the writer has the file open
                seen.append(asked(reader))  # all is in the file
            reader.stdin.close()
        assert seen == expected


def test_who_cannot_lock_is_not_given_half_of_a_write(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Collection.open(filled) as writer:
        monkeypatch.setattr(os, "access", lambda *_: False)
        with contextlib.closing(Database(filled, wait=1)) as reader:
            reader.begin()
            writer.delete([1])
            with pytest.raises(CollectionBusyError, match="was written while it was read"):
                reader.rows("SELECT id FROM documents")
            reader.end()
            assert reader.begin().n_documents == 99
            reader.end()


def asked(reader: subprocess.Popen[str]) -> str:
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write("again\n")
    reader.stdin.flush()
    return reader.stdout.readline()


def chmod_all(path: Path, of_folders: int, of_files: int) -> None:
    for item in [path, *path.rglob("*")]:
        item.chmod(of_folders if item.is_dir() else of_files)


# One writer, many readers


def test_a_second_writer_waits_and_then_says_so(filled: Path) -> None:
    with Collection.open(filled) as one, Collection.open(filled, wait=0.2) as other:
        with one.store.write():
            with pytest.raises(
                CollectionBusyError, match=r"another process has been writing for 0.2 s"
            ):
                other.add(documents(1, start=500))
            assert other.search("moon orbit", 1).ids == [1]  # reading goes on
        other.add(documents(1, start=500))


def test_a_second_writer_gets_its_turn(filled: Path) -> None:
    with Collection.open(filled) as one, Collection.open(filled, wait=30) as other:
        added = []
        adding = threading.Thread(target=lambda: added.append(other.add(documents(1, start=500))))
        with one.store.write():
            adding.start()
            adding.join(0.3)
            assert not added
        adding.join()
        assert added == [1]


WRITE_BATCHES = """
import sys
from boltzhash.collection import Collection
with Collection.open(sys.argv[1]) as collection:
    for batch in range(60):
        collection.upsert(
            {"id": i if i < 5 else f"{batch}-{i}", "text": "star", "metadata": {"batch": batch}}
            for i in range(10)
        )
"""


def test_readers_never_see_half_a_batch(path: Path, long_hasher: LSH) -> None:
    """Each batch overwrites five documents and adds five, so any mixture would show."""
    Collection.create(path, long_hasher).close()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    seen = set()
    with (
        Collection.open(path) as reader,
        subprocess.Popen(
            [sys.executable, "-c", WRITE_BATCHES, str(path)], env=environment
        ) as writer,
    ):
        while writer.poll() is None:
            found = [d.metadata for d in reader.within("star", 0).documents]
            iterated = [d.metadata for d in reader]
            for batches in ([d["batch"] for d in some if d] for some in (found, iterated)):
                newest = max(batches, default=-1)
                whole = [b for b in range(newest + 1) for _ in range(5)]
                assert sorted(batches) == whole + [newest] * (5 if batches else 0)
            seen.add(len(found))
        assert writer.returncode == 0
        assert len(reader.within("star", 0)) == 305
    assert len(seen) > 2, "the reader saw nothing while the writer wrote"


def test_readers_follow_changes_too_many_to_log(path: Path, hasher: LSH) -> None:
    with Collection.create(path, hasher) as writer, Collection.open(path) as reader:
        writer.add(documents(12_000))
        assert len(reader.within("moon orbit", 0, where={"parity": 1})) == 2000
        assert (path / CODES_FILE).exists()
        writer.delete(range(11_000))
        assert ask_sqlite(path, "SELECT n_changes FROM state") == 0  # too many: the log starts anew
        assert answers(reader) == answers(writer)
        writer.upsert([{"id": 11_500, "text": "star planet"}])
        assert answers(reader) == answers(writer)
        Newest(reader).check()


def test_an_idle_reader_pins_nothing(filled: Path) -> None:
    """After snapshots were closed, and answers given, the log can be cut to nothing."""
    log = filled / f"{DATABASE}-wal"
    with Collection.open(filled) as reader, Collection.open(filled) as writer:
        answers(reader)
        unfinished = iter(reader)
        next(unfinished)
        writer.delete([1])
        for is_held, busy in ((True, 1), (False, 0)):
            if not is_held:
                unfinished.close()  # type: ignore[attr-defined]
            with contextlib.closing(sqlite3.connect(filled / DATABASE)) as connection:
                told = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            assert told[0] == busy
        assert log.stat().st_size == 0


def test_a_database_that_was_restored_is_noticed_while_it_is_open(filled: Path) -> None:
    """Its generation comes to the same number again, with other documents in it."""
    with Collection.open(filled) as collection, collection.snapshot() as before:
        with contextlib.closing(sqlite3.connect(":memory:")) as saved:
            with contextlib.closing(sqlite3.connect(filled / DATABASE)) as connection:
                connection.backup(saved)
            collection.upsert([{"id": 1, "text": "comet wave"}])
            last = Newest(collection).state.version
            assert collection.search("comet", by="words").ids == [1]
            with contextlib.closing(sqlite3.connect(filled / DATABASE)) as connection:
                saved.backup(connection)
        assert collection.search("comet", by="words").ids == []
        collection.upsert([{"id": 2, "text": "storm wave"}])
        assert Newest(collection).state.generation == last.generation
        assert Newest(collection).state.token != last.token
        assert collection.search("comet", by="words").ids == []
        assert collection.search("storm wave", 1).ids == [2]
        codes = [hit.code for hit in collection.search("moon orbit", 200, by="codes")]
        assert sorted(codes) == sorted(
            map(bytes, collection.hasher.encode(d.text for d in collection))
        )
        assert before.search("comet", by="words").ids == []
        assert [document.id for document in before] == list(range(100))
        Newest(collection).check()


def test_an_iteration_is_of_one_generation(filled: Path) -> None:
    with Collection.open(filled) as collection, Collection.open(filled) as other:
        iteration = iter(collection)
        seen = [next(iteration).id]
        other.delete(range(50))
        collection.add(documents(10, start=1000))
        seen += [document.id for document in iteration]
        assert seen == list(range(100))
        assert len(collection) == 60


def test_threads_take_turns(filled: Path) -> None:
    failures: list[BaseException] = []
    with Collection.open(filled) as collection:

        def work(number: int) -> None:
            try:
                for i in range(10):
                    collection.add([{"id": f"{number}-{i}", "text": "ship sail"}])
                    assert f"{number}-{i}" in collection
                    assert len(collection.search("ship sail", 5)) == 5
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert len(collection) == 140


def test_a_closed_collection_says_so(filled: Path) -> None:
    collection = Collection.open(filled)
    collection.close()
    collection.close()
    with pytest.raises(ValueError, match="is closed"):
        collection.search("star")


# Going over to another model


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "BATCH", 16)


@pytest.mark.usefixtures("_small_batches")
def test_the_old_codes_serve_until_the_new_are_complete(filled: Path, other_hasher: LSH) -> None:
    old = answers_of(filled)
    seen = []
    with Collection.open(filled) as collection, Collection.open(filled) as reader:

        def look(done: int, total: int) -> None:
            seen.append((done, total))
            assert answers(reader) == old

        collection.rehash(other_hasher, on_batch=look)
        assert seen[:7] == [(min(16 * i, 100), 100) for i in range(1, 8)]
        assert reader.hasher.fingerprint() == other_hasher.fingerprint()
        assert answers(reader) == answers(collection) != old
        Newest(reader).check()


class Stop(Exception):  # noqa: N818  # nothing went wrong
    pass


@pytest.mark.usefixtures("_small_batches")
def test_an_interrupted_rehash_goes_on(filled: Path, tmp_path: Path, other_hasher: LSH) -> None:
    """Documents that come, go and change meanwhile are hashed as they are in the end."""
    old = answers_of(filled)
    with Collection.open(filled) as other, Collection.open(filled) as collection:

        def disturb(done: int, _: int) -> None:
            if done == 48:
                other.upsert([{"id": 5, "text": "ship sail"}, {"id": 90, "text": "ship sail"}])
                other.delete([6, 91])
                other.add([{"id": "new", "text": "ship sail"}])
                raise Stop

        with pytest.raises(Stop):
            collection.rehash(other_hasher, on_batch=disturb)
        assert other.stats()["rehash"] == {"model": other_hasher.fingerprint(), "documents": 46}
        assert answers(other) != old
        Newest(other).check()
    done = []
    with Collection.open(filled) as collection:
        collection.rehash(other_hasher, on_batch=lambda n, _: done.append(n))
        remaining = list(collection)
        rehashed = answers(collection)
        Newest(collection).check()
    assert done[0] == 46 + 16  # not from the beginning
    with Collection.create(tmp_path / "fresh", other_hasher) as fresh:
        fresh.add(remaining)
        assert answers(fresh) == rehashed


@pytest.mark.usefixtures("_small_batches")
def test_what_changes_behind_a_rehash_is_hashed_again(
    filled: Path, tmp_path: Path, other_hasher: LSH
) -> None:
    """No interruption: the rehash itself must come back for what it has already passed."""
    with Collection.open(filled) as other, Collection.open(filled) as collection:

        def disturb(done: int, _: int) -> None:
            if done == 48:
                other.upsert([{"id": 5, "text": "ship sail"}])
                other.delete([6])

        collection.rehash(other_hasher, on_batch=disturb)
        Newest(collection).check()
        with Collection.create(tmp_path / "fresh", other_hasher) as fresh:
            fresh.add(collection)
            assert answers(fresh) == answers(collection)


@pytest.mark.usefixtures("_small_batches")
def test_another_rehash_takes_over(filled: Path, other_hasher: LSH, hasher: LSH) -> None:
    with Collection.open(filled) as one, Collection.open(filled) as other:
        with pytest.raises(CollectionError, match="another rehash has taken over"):
            one.rehash(other_hasher, on_batch=lambda *_: other.rehash(hasher))
        assert one.hasher.fingerprint() == hasher.fingerprint()
        Newest(one).check()
        one.rehash(other_hasher)
        names = {path.name for path in (filled / "models").iterdir()}
        assert names == {h.fingerprint()[:16] for h in (hasher, other_hasher)}


@pytest.mark.usefixtures("_small_batches")
def test_a_rehash_that_dies_taking_over_leaves_the_earlier_one(
    filled: Path, tmp_path: Path, other_hasher: LSH, hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The models that the database names are there whenever it dies."""

    def stop(*_: object) -> None:
        raise Stop

    with Collection.open(filled) as collection:
        with pytest.raises(Stop):
            collection.rehash(other_hasher, on_batch=stop)
        for step in ("save_model", "remove_models_but"):
            with monkeypatch.context() as patch, pytest.raises(Stop):
                patch.setattr(rehashing, step, stop)
                collection.rehash(hasher)
            collection.backup(tmp_path / step)
            Collection.open(tmp_path / step).close()
        collection.rehash(other_hasher)
    with Collection.open(filled) as collection:
        assert collection.hasher.fingerprint() == other_hasher.fingerprint()
        Newest(collection).check()


@pytest.mark.usefixtures("_small_batches")
def test_a_writer_notices_that_another_has_rehashed(filled: Path, other_hasher: LSH) -> None:
    with Collection.open(filled) as one, Collection.open(filled) as other:
        one.rehash(other_hasher)
        other.add([{"id": "new", "text": "ship sail"}])
        code = other_hasher.transform(["ship sail"])[0]
        assert "new" in other.within(code, 0).ids
        assert "new" in one.within(code, 0).ids


# Adding that goes on


# Copies


@pytest.mark.usefixtures("_small_batches")
def test_a_backup_takes_an_unfinished_rehash_along(
    filled: Path, tmp_path: Path, hasher: LSH
) -> None:
    def stop(*_: int) -> None:
        raise Stop

    with Collection.open(filled) as collection:
        with pytest.raises(Stop):
            collection.rehash(hasher, on_batch=stop)
        collection.backup(tmp_path / "backup")
    done = []
    with Collection.open(tmp_path / "backup") as backup:
        backup.rehash(hasher, on_batch=lambda n, _: done.append(n))
        Newest(backup).check()
    assert done[0] == 32


def test_a_failed_export_leaves_the_old_file(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("old")
    with contextlib.closing(sqlite3.connect(filled / DATABASE)) as connection:
        connection.execute("UPDATE documents SET text = 'changed by hand' WHERE id = 60")
        connection.commit()
    with Collection.open(filled) as collection, pytest.raises(CollectionError, match="id 60"):
        Newest(collection).export(target)
    assert target.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["collection", "out.jsonl"]


# What it is made of


def test_stats_add_up(filled: Path) -> None:
    with Collection.open(filled) as collection:
        size = collection.stats()["bytes"]
    assert size["database"] == (filled / DATABASE).stat().st_size
    assert size["codes_file"] == (filled / CODES_FILE).stat().st_size == 4096 + 100 * (8 + 8 + 1)
    parts = size["documents"] + size["codes"] + size["index"]
    others = (
        5 * 4096
    )  # the tables of the schema, the state, the log, its generations and next_codes
    assert size["database"] - parts == others


def test_codes_file_follows_in_steps(
    path: Path, hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is made anew when much has changed, not with every write."""
    monkeypatch.setattr(codes_following, "_MANY", 50)
    made = set()
    with Collection.create(path, hasher) as collection:
        for i in range(200):
            collection.add(documents(1, start=i))
            if (path / CODES_FILE).exists():
                made.add(
                    (path / CODES_FILE).stat().st_ino * 10**6 + (path / CODES_FILE).stat().st_size
                )
        assert len(made) == 3
        Newest(collection).check()


def test_searching_needs_no_torch(filled: Path) -> None:
    program = (
        "import sys\nfrom boltzhash.collection import Collection\n"
        "with Collection.open(sys.argv[1]) as c: c.search('star')\n"
        "print('torch' in sys.modules)"
    )
    assert in_a_process(program, filled).stdout.strip() == "False"


def test_nothing_is_written_to_a_collection_that_was_deleted_or_replaced(
    tmp_path: Path, hasher: Hasher
) -> None:
    """SQLite would go on in the file that has no name any more, and acknowledge it."""
    folder = tmp_path / "c"
    made = Collection.create(folder, hasher)
    made.add([{"id": 1, "text": "star"}])
    shutil.move(folder, tmp_path / "elsewhere")
    for use in (lambda: made.add([{"id": 2, "text": "moon"}]), lambda: made.search("star")):
        with pytest.raises(
            CollectionGoneError, match=r"was deleted or moved .* nothing was written"
        ):
            use()
    shutil.copytree(tmp_path / "elsewhere", folder)
    with pytest.raises(CollectionGoneError, match="was replaced by another after it was opened"):
        made.delete([1])
    before = sorted(path.name for path in folder.rglob("*"))
    made.close()
    assert sorted(path.name for path in folder.rglob("*")) == before
    with Collection.open(folder) as replaced:
        assert [document.id for document in replaced] == [1]
        replaced.add([{"id": 2, "text": "moon"}])
        assert replaced.search("moon").ids == [2, 1]


def test_what_is_written_while_it_is_replaced_is_not_acknowledged(
    tmp_path: Path, hasher: Hasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    with Collection.create(folder, hasher) as made:

        def add_and_delete(transaction: SqliteTransaction, batch: list[Coded]) -> None:
            add(transaction, batch)
            shutil.rmtree(folder)

        add = SqliteTransaction.add
        monkeypatch.setattr(SqliteTransaction, "add", add_and_delete)
        with pytest.raises(CollectionGoneError, match="may be lost") as raised:
            made.add([{"id": 1, "text": "star"}])
        assert raised.value.has_written


def test_a_collection_stays_open_when_the_process_goes_to_another_folder(
    tmp_path: Path, hasher: Hasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Collection.create("c", hasher) as made:
        (tmp_path / "other").mkdir()
        monkeypatch.chdir(tmp_path / "other")
        made.add([{"id": 1, "text": "star"}])
        assert made.search("star").ids == [1]


def test_filters_of_codes_that_are_mapped_in_memory_overwritten_and_gone(filled: Path) -> None:
    with Collection.open(filled) as collection:
        _check_filters(collection)
        collection.delete(range(0, 100, 3))
        collection.upsert({"id": i, "text": "moon", "metadata": {"name": "new"}} for i in (5, 8))
        collection.add(documents(30, start=100))
        collection.delete([119])
        _check_filters(collection)


def _check_filters(collection: Collection) -> None:
    wheres: list[Any] = [
        {"parity": 1},
        {"$not": {"parity": 1}},
        {"parity": 0, "name": {"<": "n5"}},
        {"$or": [{"name": "n7"}, {"name": "n120"}, {"name": "new"}]},
    ]
    for where in wheres:
        expected = {document.id for document in collection if _passes(document.metadata, where)}
        assert {document.id for document in Newest(collection).matching(where)} == expected
        assert set(collection.search("moon", 1000, by="codes", where=where).ids) == expected
        both = collection.search("moon orbit", 1000, where=where).ids
        assert len(both) == len(set(both))
        assert set(both) <= expected


def _passes(metadata: Any, where: Any) -> bool:
    name, parity = metadata["name"], metadata.get("parity")
    if "$or" in where:
        return name in ("n7", "n120", "new")
    if "$not" in where:
        return parity != 1
    return parity == where["parity"] and ("name" not in where or name < "n5")


def test_what_is_kept_of_a_filter_does_not_grow_with_documents_that_are_gone(
    path: Path, long_hasher: LSH
) -> None:
    with Collection.create(path, long_hasher) as collection:
        for start in range(0, 1000, 100):
            collection.add(documents(100, start=start))
            collection.delete(range(start, start + 90))
        assert len(collection.search("moon", 200, by="codes", where={"parity": 1})) == 50
        for name in range(20):
            assert collection.search("moon", by="codes", where={"name": f"n{name}"}).ids == []
        with collection.snapshot() as now:
            kept = now._inner.copies.filter._answers.values()  # type: ignore[attr-defined]
        assert kept
        assert sum(len(mask) for mask in kept) <= 16 * 100


def test_a_writer_leaves_its_codes_in_a_file(
    path: Path, long_hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_following, "_MANY", 50)
    with Collection.create(path, long_hasher) as collection:
        collection.add(documents(500))
        collection.add(documents(60, start=500))
        expected = answers(collection)
    found = read_codes_file(path / CODES_FILE, long_hasher.fingerprint(), 8)
    assert found is not None
    assert len(found.rows.places) == 560
    assert answers_of(path) == expected


def test_within_is_the_same_by_tables_and_by_a_scan(
    path: Path, long_hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes_following, "_MANY", 50)
    monkeypatch.setattr(multi_index, "LOOKUP_COST", 1)
    asked = [(f"{text} moon", radius) for text in TEXTS for radius in (0, 2, 3, 64)]

    def found(collection: Collection) -> list[list[tuple[Any, int]]]:
        hits = [collection.within(text, radius) for text, radius in asked]
        return [[(hit.id, hit.distance) for hit in some] for some in hits]

    with Collection.create(path, long_hasher) as collection:
        collection.add(documents(500))
    with Collection.open(path) as collection:
        collection.add(documents(20, start=500))  # these stay in memory
        collection.delete([3, 4])
        by_scan = found(collection)
        monkeypatch.setattr(multi_index, "SCANS_A_BUILD", 1)
        assert found(collection) == by_scan
        store = collection.store
        assert isinstance(store, SqliteStore)
        has_tables = store.snapshot().copies.codes.near._tables is not None
        assert has_tables == (compiled.kernel_name() != compiled.NONE)


def test_deleting_most_documents_frees_their_room(
    path: Path, long_hasher: LSH, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_MANY_PAGES", 16)
    monkeypatch.setattr(maintenance, "LOG_BYTES", 0)
    monkeypatch.setattr(words, "_AT_ONCE", 64)
    with Collection.create(path, long_hasher) as collection:
        collection.add({"id": i, "text": f"{TEXTS[i % 6]} w{i} " * 9} for i in range(5000))
        before = collection.stats()["bytes"]
        collection.delete(i for i in range(5000) if i % 500)
        after, kept = collection.stats()["bytes"], collection.search("moon w4500", 10).ids
        assert sum(file.stat().st_size for file in path.glob("collection.sqlite*")) < 400_000
        Newest(collection).check()
    assert after["database"] < before["database"] / 8
    assert after["words_files"] < before["words_files"] / 4
    assert kept[0] == 4500
    with Collection.open(path) as collection:
        assert collection.search("moon w4500", 10).ids == kept
        assert collection.search("w4499", 10, by="words").ids == []
        assert sorted(document.id for document in collection) == list(range(0, 5000, 500))
    assert sum(file.stat().st_size for file in path.glob("collection.sqlite*")) < 400_000
