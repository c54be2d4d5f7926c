"""Answers: the dictionaries that routes return, which are also their OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from boltzhash.collection.facets import MOST_VALUES
from boltzhash.server.refusals import CODES


def doc(text: str) -> Any:
    """The description of a field."""
    return Field(description=text)


class LargeId(TypedDict):
    """An integer as a string of its digits, since JavaScript rounds numbers beyond 2^53."""

    int64: str


Id = str | int | LargeId


class Answer(TypedDict):
    generation: Annotated[int, doc("The state of the collection; each write raises it")]


# Searching


class Piece(TypedDict):
    """A part of a snippet; marked if it is a word of the query."""

    text: str
    marked: NotRequired[bool]


class Parts(TypedDict):
    """The two parts of a score."""

    words: Annotated[float, doc("BM25 in units of its spread for this query")]
    code: Annotated[float, doc("How well its code agrees with the query's; may be negative")]


class Passage(TypedDict):
    """Characters (Unicode code points) of a document, from start up to end."""

    start: int
    end: int


class Reasons(TypedDict):
    """Why a document is a hit, in words as it spells them."""

    shared: Annotated[list[str], doc("Those that were asked for, in any form")]
    near: Annotated[list[str], doc("Others, whose own codes agree best with the query's")]


class Hit(TypedDict):
    id: Id
    score: Annotated[float | None, doc("Hits are in its order; null by codes alone")]
    parts: Annotated[Parts | None, doc("The score is their sum; null by codes alone")]
    words: Annotated[float | None, doc("BM25 of its words; null by codes alone")]
    distance: Annotated[int | None, doc("Bits that differ; null if the query has no code")]
    title: str
    snippet: list[Piece]
    passage: NotRequired[Annotated[Passage, doc("The best, if documents are cut into passages")]]
    code: Annotated[str, doc("Of the passage, if there is one; so are score, words and distance")]
    metadata: dict[str, Any]
    reasons: NotRequired[Annotated[Reasons, doc("If they were asked for")]]
    number: NotRequired[Annotated[int | None, doc("On the map: of its point, null if it has none")]]


class AskedFor(TypedDict):
    code: Annotated[str | None, doc("null of a text where codes are made from features")]
    by: Annotated[str, doc("What documents were found and ranked by: both, words or codes")]
    known_words: Annotated[int | None, doc("Words of the query that the model knows")]


class Value(TypedDict):
    value: str | int | float | bool
    count: int


class FacetCounts(TypedDict):
    values: Annotated[list[Value], doc(f"The {MOST_VALUES} commonest, by number of documents")]
    least: Annotated[int | float | None, doc("The least number in the field, null if none")]
    most: int | float | None


class Found(TypedDict):
    query: AskedFor
    total: NotRequired[
        Annotated[int, doc("Documents that match; not counted for documents like one")]
    ]
    hits: list[Hit]
    facets: NotRequired[Annotated[dict[str, FacetCounts], doc("By field, over all that match")]]
    warning: NotRequired[Annotated[str, doc("Why a filter matches nothing")]]


class FoundIn(Answer, Found):
    """Hits in one generation."""


class Hits(FoundIn):
    milliseconds: Annotated[float, doc("Time in the service, waiting for a thread included")]


class SearchesAnswer(Answer):
    answers: Annotated[list[Found], doc("One for each query, in their order")]
    milliseconds: float


class BitAgreement(TypedDict):
    bit: int
    agrees: bool
    on: Annotated[bool, doc("Whether it is on in the document")]
    words: Annotated[list[str], doc("What the document's side of the bit stands for")]
    in_query: Annotated[list[str], doc("Which of the words the query has")]
    in_document: list[str]


class Explanation(Answer):
    distance: int
    query_code: str
    document_code: str
    shared_words: Annotated[list[str], doc("Words of the document that were asked for")]
    bits: list[BitAgreement]


# Documents


class StoredDocument(TypedDict):
    id: Id
    title: str
    text: str
    metadata: dict[str, Any]
    code: str


class Documents(Answer):
    documents: list[StoredDocument]


class OneDocument(Answer):
    document: StoredDocument


class DocumentsPage(Documents):
    total: Annotated[int, doc("How many documents the collection has")]
    next: Annotated[int | None, doc("What `after` goes on with; null at the end")]


class Written(Answer):
    written: Annotated[int, doc("Documents; one that was sent twice is one")]


class Deleted(Answer):
    deleted: int


# The collection


class Duplicate(TypedDict):
    id: Id
    similarity: Annotated[float, doc("Of its text to that of the document kept")]


class Group(TypedDict):
    size: Annotated[int, doc("With the document that is kept")]
    similarity: Annotated[float, doc("Of the duplicate that is least like the document kept")]
    kept: Annotated[Id, doc("The id of the document to keep")]
    duplicates: Annotated[list[Duplicate], doc("The others, or the first of them")]
    documents: Annotated[list[StoredDocument], doc("The document to keep, then the first others")]


class Duplicates(Answer):
    min_similarity: float
    keep: str
    n_groups: int
    n_extra: Annotated[int, doc("Documents of all groups but those to keep")]
    groups: Annotated[list[Group], doc("The most similar first, of equals the largest")]


class Fields(Answer):
    fields: dict[str, list[Value]]


class Topic(TypedDict):
    words: Annotated[list[str], doc("Those that set it apart, the most telling first")]
    share: Annotated[float, doc("Of the documents that were read")]


class Overview(Answer):
    documents: int
    topics: Annotated[list[Topic], doc("The largest first")]
    questions: Annotated[list[str], doc("One per topic: a sentence that finds its document first")]


class Region(TypedDict):
    """A part of the map where points lie dense."""

    parent: Annotated[int | None, doc("The number of the region around it")]
    x: Annotated[int, doc("Where it is densest, 0 to 65535")]
    y: int
    spread: Annotated[float, doc("How far its points lie from there, of the width")]
    size: Annotated[int, doc("Points in it")]
    words: Annotated[list[str], doc("Words that set its documents apart, best first")]


class Map(Answer):
    made: Annotated[bool, doc("Whether there is a map; if not, only message is given")]
    message: NotRequired[str]
    numbers: NotRequired[Annotated[list[int], doc("Of the documents, in the order of insertion")]]
    x: NotRequired[Annotated[list[int], doc("0 to 65535")]]
    y: NotRequired[list[int]]
    regions: NotRequired[Annotated[list[Region], doc("A parent comes before its children")]]
    region_of: NotRequired[Annotated[list[int], doc("The smallest region of each point, or -1")]]
    field: NotRequired[str | None]
    values: NotRequired[Annotated[list[str], doc("What the colours stand for")]]
    ordered: NotRequired[Annotated[bool, doc("Whether the values are ranges in order")]]
    colours: NotRequired[Annotated[list[int], doc("For each point, the index of its value")]]
    left_out: NotRequired[Annotated[int, doc("Documents that have no point")]]


class Passages(TypedDict):
    words: Annotated[int, doc("About as many as a passage has")]
    passages: int


class Stats(Answer):
    documents: int
    passages: NotRequired[Annotated[Passages | None, doc("If documents are cut into passages")]]
    no_known_word: int
    bits: int
    method: str
    features: Annotated[int | None, doc("The length of vectors that codes are made from, if any")]
    model: str
    bytes: dict[str, int]
    bytes_per_document: dict[str, float]
    writing: Annotated[bool, doc("Whether documents can be added and deleted")]
    version: str


# The service


class Health(TypedDict):
    status: str


class ErrorDetail(TypedDict):
    where: str
    problem: str


class ErrorBody(TypedDict):
    status: int
    code: Annotated[str, Field(description="For programs", json_schema_extra={"enum": [*CODES]})]
    message: Annotated[str, doc("What to change")]
    details: NotRequired[list[ErrorDetail]]


class Error(TypedDict):
    error: ErrorBody
