"""The tables of a collection in PostgreSQL, in a schema of the collection's name.

documents   what the user gave; ``place`` is the order of insertion and is never used twice. An id is a
            ``number`` or a ``name``. ``metadata`` is as given; ``fields`` is what a filter sees of it
codes_1, codes_2 …
            the code of each document as bit(n), and whether the model knew any word of it. A rehash
            makes the next table, which the state then names, so that snapshots keep the last one;
            whoever rehashes next drops it
word_segments, word_pages
            the inverted index: see :mod:`boltzhash.collection.postgres.words`
models      the files of the hashers, with their digests
state       one row: see ``store.State``. ``codes`` and ``next_codes`` are the numbers of the table in
            use and of that of a rehash under way; ``unfinished`` is JSON; ``language`` and
            ``word_rules`` say how texts become words
"""

from __future__ import annotations

_WORDS = """
CREATE TABLE word_segments (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token bigint NOT NULL,
    size bigint NOT NULL,
    n_documents bigint NOT NULL,
    n_gone bigint NOT NULL,
    places bytea NOT NULL,
    lengths bytea NOT NULL,
    gone bytea NOT NULL
);
CREATE TABLE word_pages (
    segment bigint NOT NULL,
    first bigint NOT NULL,
    contents bytea NOT NULL,
    PRIMARY KEY (segment, first)
);
ALTER TABLE word_segments ALTER places SET STORAGE EXTERNAL, ALTER lengths SET STORAGE EXTERNAL,
    ALTER gone SET STORAGE EXTERNAL;
ALTER TABLE word_pages ALTER contents SET STORAGE EXTERNAL;
"""

TABLES = f"""
CREATE TABLE documents (
    place bigint PRIMARY KEY,
    number bigint UNIQUE,
    name text COLLATE "C" UNIQUE,
    text text NOT NULL,
    metadata json NOT NULL,
    fields jsonb NOT NULL,
    CHECK (num_nonnulls(number, name) = 1)
);
CREATE TABLE models (
    fingerprint text NOT NULL,
    file text NOT NULL,
    sha256 text NOT NULL,
    contents bytea NOT NULL,
    PRIMARY KEY (fingerprint, file)
);
CREATE TABLE state (
    one boolean PRIMARY KEY DEFAULT TRUE CHECK (one),
    format_version integer NOT NULL,
    generation bigint NOT NULL,
    token bigint NOT NULL,
    n_documents bigint NOT NULL,
    last_place bigint NOT NULL,
    model text NOT NULL,
    n_bits integer NOT NULL,
    codes bigint NOT NULL,
    next_codes bigint NOT NULL,
    next_model text,
    unfinished json,
    language text NOT NULL,
    word_rules text NOT NULL
);
{_WORDS}
"""


def create_codes(number: int, n_bits: int) -> str:
    """The statement that makes a table of codes."""
    return (
        f"CREATE TABLE codes_{int(number)} "
        f"(place bigint PRIMARY KEY, code bit({int(n_bits)}) NOT NULL, known boolean NOT NULL)"
    )


def drop_codes(number: int) -> str:
    """The statement that drops a table of codes."""
    return f"DROP TABLE IF EXISTS codes_{int(number)}"
