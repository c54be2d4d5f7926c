"""Batches of documents on their way into a collection: hashed first, then each written as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from boltzhash.collection.models import Coder
from boltzhash.collection.store import Store, Transaction
from boltzhash.encoding.coding import Coded, Input, coded_documents


class CodedBatch(NamedTuple):
    """Documents as they were given, and as a model has coded them."""

    coder: Coder
    given: list[Input]
    coded: list[Coded]


WriteBatch = Callable[[Transaction, CodedBatch], None]


def coded_batch(coder: Coder, given: list[Input], passages: int | None) -> CodedBatch:
    return CodedBatch(coder, given, coded_documents(coder.hasher, given, passages=passages))


def write_batches(
    store: Store,
    batches: Iterable[CodedBatch],
    coder_of: Callable[[str], Coder],
    write: WriteBatch,
) -> int:
    """Write each batch in its own transaction; returns how many documents were written.

    A batch is hashed again if another client has rehashed meanwhile.
    """
    n = 0
    for batch in batches:
        with store.write() as transaction:
            model = transaction.state.model
            if model != batch.coder.model:
                batch = coded_batch(coder_of(model), batch.given, store.passages)
            write(transaction, batch)
        n += len(batch.given)
    return n
