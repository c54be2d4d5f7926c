"""The tables of a collection in PostgreSQL, in a schema of the collection's name.

documents   what the user gave; ``place`` is the order of insertion and is never used twice. An id is a
            ``number`` or a ``name``. ``metadata`` is as given; ``fields`` is what a filter sees of it
codes_1, codes_2 …
            the code of each document as bit(n), and whether the model knew any word of it. A rehash
            makes the next table, which the state then names, so that snapshots keep the last one;
            whoever rehashes next drops it
distinct_codes_1 …
            each code once, for approximate search; exists once ``build_approximate`` was called
word_segments, word_pages
            the inverted index: see :mod:`boltzhash.collection.postgres.words`
models      the files of the hashers, with their digests
state       one row: see ``store.State``. ``codes`` and ``next_codes`` are the numbers of the table in
            use and of that of a rehash under way; ``unfinished`` and ``approximate`` are JSON;
            ``language`` and ``word_rules`` say how texts become words
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
    approximate json,
    language text NOT NULL,
    word_rules text NOT NULL
);
{_WORDS}
"""

# HNSW over distinct codes. Documents that share a code are each other's nearest and fill each other's
# lists of neighbours, so a graph over the codes of all documents falls into islands, and a search never
# leaves the one it comes to. The triggers keep the distinct codes up to date, whoever writes.
_APPROXIMATE = """
CREATE INDEX same_code_{n} ON codes_{n} (code);
CREATE TABLE distinct_codes_{n} AS SELECT DISTINCT code FROM codes_{n};
ALTER TABLE distinct_codes_{n} ADD PRIMARY KEY (code);
CREATE INDEX nearest_{n} ON distinct_codes_{n} USING hnsw (code bit_hamming_ops);
CREATE FUNCTION keep_distinct_codes_{n}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO distinct_codes_{n} SELECT DISTINCT code FROM came ON CONFLICT DO NOTHING;
    ELSE
        DELETE FROM distinct_codes_{n} AS kept USING (SELECT DISTINCT code FROM gone) AS freed
        WHERE kept.code = freed.code
        AND NOT EXISTS (SELECT FROM codes_{n} AS codes WHERE codes.code = freed.code);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER came AFTER INSERT ON codes_{n} REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION keep_distinct_codes_{n}();
CREATE TRIGGER gone AFTER DELETE ON codes_{n} REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION keep_distinct_codes_{n}();
"""
_NOT_APPROXIMATE = """
DROP FUNCTION IF EXISTS keep_distinct_codes_{n} CASCADE;
DROP INDEX IF EXISTS same_code_{n};
DROP TABLE IF EXISTS distinct_codes_{n};
"""


def approximate(number: int) -> str:
    """The statements that make the approximate index of a table of codes anew."""
    return (_NOT_APPROXIMATE + _APPROXIMATE).replace("{n}", str(int(number)))


def create_codes(number: int, n_bits: int) -> str:
    """The statement that makes a table of codes."""
    return (
        f"CREATE TABLE codes_{int(number)} "
        f"(place bigint PRIMARY KEY, code bit({int(n_bits)}) NOT NULL, known boolean NOT NULL)"
    )


def drop_codes(number: int) -> str:
    """The statements that drop a table of codes with its approximate index."""
    dropped = _NOT_APPROXIMATE + "DROP TABLE IF EXISTS codes_{n};"
    return dropped.replace("{n}", str(int(number)))
