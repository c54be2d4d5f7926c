"""Switching to another model, with the old codes in use until the new ones are complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from boltzhash.collection.models import Coder
from boltzhash.collection.sqlite.database import Database
from boltzhash.collection.sqlite.models import remove_models_but, save_model
from boltzhash.collection.sqlite.schema import replace_codes
from boltzhash.collection.sqlite.writes import code_row, passage_rows, start_changes_anew
from boltzhash.collection.store import rehash_taken_over
from boltzhash.encoding.coding import coded_passages, coded_texts
from boltzhash.hashers import Hasher


def rehash(
    database: Database,
    folder: Path,
    coder: Coder,
    batch: int,
    on_batch: Callable[[int, int], object] | None,
) -> None:
    """Rehash all documents, one batch per transaction; the last transaction switches.

    Each batch is read, hashed and written in one transaction, so a document that is overwritten
    meanwhile is hashed as it then is: an overwritten document loses its new code.
    """
    if not _start(database, folder, coder):
        return
    done = _count_new_codes(database)
    last = 0
    while True:
        with database.writing() as state:
            if state.next_model != coder.model:
                raise rehash_taken_over(str(folder))
            rows = _without_new_code(database, last, batch)
            if not rows and last == 0:
                replace_codes(database.connection)
                start_changes_anew(database.connection, state.generation)
                database.connection.execute(
                    "UPDATE state SET model = ?, n_bits = ?, next_model = NULL",
                    (coder.model, coder.hasher.n_bits),
                )
                break
            _write_codes(database, coder.hasher, rows, state.passage_words)
        done += len(rows)
        last = rows[-1][0] if rows else 0  # after the last come those that changed meanwhile
        if on_batch is not None:
            on_batch(done, state.n_documents)


def _start(database: Database, folder: Path, coder: Coder) -> bool:
    """Note what is to be done; False if the codes are already this model's.

    The models of earlier rehashes are removed when that is noted, so that whenever this is killed the
    models that the database names are there; and not right after a switch, when another process may be
    about to load the old one.
    """
    with database.writing() as state:
        if state.model == coder.model:
            return False
        if state.next_model != coder.model:
            save_model(folder, coder)
            database.connection.execute("DELETE FROM next_codes")
            database.connection.execute("DELETE FROM next_passages")
            database.connection.execute("UPDATE state SET next_model = ?", (coder.model,))
    with database.writing() as state:  # so that nobody saves another one at this moment
        remove_models_but(folder, [state.model, state.next_model])
    return True


def _without_new_code(database: Database, last: int, limit: int) -> list[tuple[int, str]]:
    return database.connection.execute(
        "SELECT documents.place, text FROM documents LEFT JOIN next_codes USING (place) "
        "WHERE documents.place > ? AND next_codes.place IS NULL ORDER BY documents.place LIMIT ?",
        (last, limit),
    ).fetchall()


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


def _count_new_codes(database: Database) -> int:
    (count,) = database.connection.execute("SELECT count(*) FROM next_codes").fetchone()
    return int(count)
