"""The tables of a collection in PostgreSQL, in a schema of the collection's name.

documents   what the user gave; ``place`` is the order of insertion and is never used twice. An id is a
            ``number`` or a ``name``. ``metadata`` is as given; ``fields`` is what a filter sees of it
codes       the code of each document as bit(n), and whether the model knew any word of it
next_codes  the codes of a rehash under way; takes the place of ``codes`` when it is complete
distinct_codes
            each code once, for approximate search; there once ``build_approximate`` was called
word_segments, word_pages
            the inverted index: see :mod:`boltzhash.collection.postgres.words`
models      the files of the hashers, with their digests
state       one row: see ``store.Standing``. ``unfinished`` and ``approximate`` are JSON;
            ``language`` and ``word_rules`` say how texts become words
"""

from __future__ import annotations

TABLES = """
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
    n_documents bigint NOT NULL,
    last_place bigint NOT NULL,
    model text NOT NULL,
    n_bits integer NOT NULL,
    next_model text,
    unfinished json,
    approximate json,
    language text NOT NULL,
    word_rules text NOT NULL
);
CREATE TABLE word_segments (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
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

# HNSW over distinct codes. Documents that share a code are each other's nearest and fill each other's
# lists of neighbours, so a graph over the codes of all documents falls into islands, and a search never
# leaves the one it comes to. The triggers keep the distinct codes up to date, whoever writes.
APPROXIMATE = """
CREATE INDEX same_code ON codes (code);
CREATE TABLE distinct_codes AS SELECT DISTINCT code FROM codes;
ALTER TABLE distinct_codes ADD PRIMARY KEY (code);
CREATE INDEX nearest ON distinct_codes USING hnsw (code bit_hamming_ops);
CREATE FUNCTION keep_distinct_codes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO distinct_codes SELECT DISTINCT code FROM came ON CONFLICT DO NOTHING;
    ELSE
        DELETE FROM distinct_codes USING (SELECT DISTINCT code FROM gone) AS freed
        WHERE distinct_codes.code = freed.code
        AND NOT EXISTS (SELECT FROM codes WHERE codes.code = freed.code);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER came AFTER INSERT ON codes REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION keep_distinct_codes();
CREATE TRIGGER gone AFTER DELETE ON codes REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION keep_distinct_codes();
"""
# What is on ``codes`` first: its lock keeps searches out until all is there again.
NOT_APPROXIMATE = """
DROP FUNCTION IF EXISTS keep_distinct_codes CASCADE;
DROP INDEX IF EXISTS same_code;
DROP TABLE IF EXISTS distinct_codes;
"""


def codes_table(table: str, n_bits: int) -> str:
    """The statement that makes a table of codes."""
    return (
        f"CREATE TABLE {table} "
        f"(place bigint PRIMARY KEY, code bit({int(n_bits)}) NOT NULL, known boolean NOT NULL)"
    )
