"""Switching to another model, with the old codes in use until the new ones are complete."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite.database import Database, StateRow
from boltzhash.collection.sqlite.models import remove_models_but, save_model
from boltzhash.collection.sqlite.schema import replace_codes
from boltzhash.collection.sqlite.writes import code_row, passage_rows, start_changes_anew
from boltzhash.collection.store import rehash_taken_over
from boltzhash.encoding.coding import coded_passages, coded_texts
from boltzhash.hashers import Hasher

Writing = Callable[[], AbstractContextManager[tuple[Database, StateRow]]]


def rehash(
    writing: Writing,
    folder: Path,
    coder: Coder,
    batch: int,
    on_batch: Callable[[int, int], object] | None,
) -> None:
    """Rehash all documents, one batch per transaction; the last transaction switches.

    Each batch is read, hashed and written in one transaction, so a document that is overwritten
    meanwhile is hashed as it then is: an overwritten document loses its new code.
    """
    done = _start(writing, folder, coder)
    if done is None:
        return
    last = 0
    while True:
        with writing() as (database, row):
            if row.next_model != coder.model:
                raise rehash_taken_over(str(folder))
            rows = _without_new_code(database, last, batch)
            if not rows and last == 0:
                replace_codes(database.connection)
                start_changes_anew(database.connection, row.generation)
                database.connection.execute(
                    "UPDATE state SET model = ?, n_bits = ?, next_model = NULL",
                    (coder.model, coder.hasher.n_bits),
                )
                break
            _write_codes(database, coder.hasher, rows, row.passage_words)
        done += len(rows)
        last = rows[-1][0] if rows else 0  # after the last come those that changed meanwhile
        if on_batch is not None:
            on_batch(done, row.n_documents)


def _start(writing: Writing, folder: Path, coder: Coder) -> int | None:
    """Note the new model; returns how many codes it has already, None if they are all in use.

    The models of earlier rehashes are removed when that is noted, so that whenever this is killed the
    models that the database names are there; and not right after a switch, when another process may be
    about to load the old one.
    """
    with writing() as (database, row):
        if row.model == coder.model:
            return None
        if row.next_model != coder.model:
            save_model(folder, coder)
            database.connection.execute("DELETE FROM next_codes")
            database.connection.execute("DELETE FROM next_passages")
            database.connection.execute("UPDATE state SET next_model = ?", (coder.model,))
    with writing() as (database, row):  # so that nobody saves another one at this moment
        remove_models_but(folder, [row.model, row.next_model])
        ((done,),) = database.rows("SELECT count(*) FROM next_codes")
    return int(done)


def _without_new_code(database: Database, last: int, limit: int) -> list[tuple[int, str]]:
    return database.rows(
        "SELECT documents.place, text FROM documents LEFT JOIN next_codes USING (place) "
        "WHERE documents.place > ? AND next_codes.place IS NULL ORDER BY documents.place LIMIT ?",
        (last, limit),
    )


def _write_codes(
    database: Database, hasher: Hasher, rows: list[tuple[int, str]], passage_words: int | None
) -> None:
    if not rows:
        return
    places, texts = zip(*rows, strict=True)
    if passage_words is None:
        coded = coded_texts(hasher, texts)
    else:
        both = coded_passages(hasher, texts, passage_words)
        coded = [whole for whole, _ in both]
        database.connection.executemany(
            "INSERT INTO next_passages VALUES (?, ?, ?, ?, ?, ?)",
            (
                row
                for place, (_, passages) in zip(places, both, strict=True)
                for row in passage_rows(place, passages)
            ),
        )
    database.connection.executemany(
        "INSERT INTO next_codes VALUES (?, ?, ?, ?)",
        (code_row(place, *text) for place, text in zip(places, coded, strict=True)),
    )
