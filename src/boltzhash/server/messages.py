"""What requests and answers look like. These are also the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)

from boltzhash.codes import MAX_BITS
from boltzhash.collection.facets import MOST_VALUES
from boltzhash.collection.filters import (
    COMBINATIONS,
    OneOf,
    conditions_on_fields,
    parse_where,
)
from boltzhash.search.order import ORDERS, check_order
from boltzhash.server.refusals import CODES
from boltzhash.server.settings import (
    MAX_BATCH,
    MAX_CONDITIONS,
    MAX_DEPTH,
    MAX_FACETS,
    MAX_FEATURES,
    MAX_FIELD,
    MAX_IN_GROUP,
    MAX_K,
    MAX_LISTED_IN_GROUP,
    MAX_QUERIES,
    MAX_QUERY,
    MAX_REACH,
    MAX_TEXT,
    MAX_VALUES,
)

_INT64 = 2**63 - 1
MAX_ID = 1000  # characters

StringId = Annotated[StrictStr, Field(max_length=MAX_ID)]
IntegerId = Annotated[StrictInt, Field(ge=-_INT64 - 1, le=_INT64)]


_DIGITS = "^(0|-?[1-9][0-9]{0,18})$"


class LargeId(BaseModel):
    """An integer as a string of its digits, since JavaScript rounds numbers beyond 2^53."""

    model_config = ConfigDict(extra="forbid")

    int64: Annotated[StrictStr, Field(pattern=_DIGITS)]


def _integer_of(given: Any) -> Any:
    """The integer that a :class:`LargeId` stands for; anything else as it is."""
    if isinstance(given, dict) and given.keys() == {"int64"}:
        return int(LargeId.model_validate(given).int64)
    return given


Id = Annotated[
    StringId | IntegerId,
    BeforeValidator(_integer_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "maxLength": MAX_ID},
                {"type": "integer", "minimum": -_INT64 - 1, "maximum": _INT64},
                {
                    "type": "object",
                    "properties": {"int64": {"type": "string", "pattern": _DIGITS}},
                    "required": ["int64"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
ShownId = str | int | LargeId
Text = Annotated[StrictStr, Field(max_length=MAX_QUERY)]
Code = Annotated[
    StrictStr,
    Field(
        pattern="^[0-9a-f]+$",
        max_length=MAX_BITS // 4,
        description="A packed code in hexadecimal, two digits per byte, bit 0 the highest of the first",
    ),
]
Features = Annotated[
    list[Annotated[float, Field(strict=True, allow_inf_nan=False)]] | None,
    Field(
        min_length=1,
        max_length=MAX_FEATURES,
        description="The vector that codes are made from, if the model was fitted with features: as "
        'many numbers as "features" of the statistics says',
    ),
]


def _check_where(where: dict[str, Any]) -> dict[str, Any]:
    """What every filter must be, and no more of it than a service can answer quickly."""
    try:
        on_fields = list(conditions_on_fields(parse_where(where)))
    except TypeError as error:
        raise ValueError(str(error)) from None
    n_conditions = _count_conditions(where)
    if n_conditions > MAX_CONDITIONS:
        raise ValueError(
            f"a filter may have at most {MAX_CONDITIONS} conditions, got {n_conditions}"
        )
    for one in on_fields:
        if isinstance(one, OneOf) and len(one.values) > MAX_VALUES:
            raise ValueError(
                f"the field {one.field[:100]!r} may be compared with at most {MAX_VALUES} values, got "
                f"{len(one.values)}"
            )
    return where


def _count_conditions(where: dict[str, Any]) -> int:
    """Each filter inside another is at least one, even if it is empty."""
    n = 0
    for name, wanted in where.items():
        filters = wanted if isinstance(wanted, list) else [wanted]
        is_combination = name in COMBINATIONS
        n += sum(max(1, _count_conditions(f)) for f in filters) if is_combination else 1
    return n


def _check_depth(metadata: dict[str, Any]) -> dict[str, Any]:
    """Level by level: what is nested too deeply could be stored, but not read back."""
    level: list[Any] = [metadata]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for whole in level
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, dict | list)
        ]
        if not level:
            return metadata
    raise ValueError(f"metadata may be nested at most {MAX_DEPTH} levels deep")


Metadata = Annotated[dict[StrictStr, Any], AfterValidator(_check_depth)]
Conditions = Annotated[dict[StrictStr, Any], AfterValidator(_check_where)]
Where = Annotated[
    Conditions | None,
    Field(
        description="Filter by metadata: a value, a list of values, or operators such as "
        '{"year": {">=": 2020}} (= != < <= > >= in, not in, contains, exists); null means that the '
        'field is missing; {"$or": [...]}, {"$and": [...]} and {"$not": {...}} combine filters',
        examples=[{"year": {">=": 2020}, "lang": ["de", "en"]}],
    ),
]
By = Annotated[
    Literal["both", "words", "codes"] | None,
    Field(
        description="What documents are found and ranked by: words and codes in one score, words alone, "
        "or codes alone. If it is left out both, "
        "or words for a text without features where codes are made from features"
    ),
]
Order = Annotated[
    StrictStr | None,
    Field(
        description="How the nearest 500 are put in order; only for a search by codes, which "
        "it implies",
        json_schema_extra={"enum": [*ORDERS, None]},
    ),
    AfterValidator(lambda order: order if order is None else check_order(order)),
]
K = Annotated[StrictInt, Field(ge=1, le=MAX_K, description="The most hits to return")]
WithReasons = Annotated[
    StrictBool,
    Field(description="Say of each hit, in words, why it is one; takes some milliseconds"),
]

Offset = Annotated[
    StrictInt,
    Field(
        ge=0,
        le=MAX_REACH - 1,
        description=f"How many hits to leave out; with k at most {MAX_REACH}, beyond which the order "
        "is not worked out",
    ),
]
Facets = Annotated[
    list[Annotated[StrictStr, Field(max_length=MAX_FIELD)]],
    Field(
        max_length=MAX_FACETS,
        description="Metadata fields whose values are counted over all documents that match",
        examples=[["lang", "year"]],
    ),
]


class Strict(BaseModel):
    """A body in which a misspelt field is an error, not ignored."""

    model_config = ConfigDict(extra="forbid")


class Paged(Strict):
    """Asks for some hits of an order."""

    k: K = 10
    offset: Offset = 0

    @model_validator(mode="after")
    def _check_reach(self) -> Self:
        if self.offset + self.k > MAX_REACH:
            raise ValueError(
                f"offset and k may be at most {MAX_REACH} together, got {self.offset + self.k}: "
                "a filter narrows a search, and GET /v1/documents goes through all documents"
            )
        return self


class SearchRequest(Paged):
    text: Annotated[
        Text | None,
        Field(
            description="A question; a phrase in quotes must occur, a word after a minus must not, "
            "unless it is asked by codes. It may be left out if there are features",
            examples=["read a csv file"],
        ),
    ] = None
    features: Features = None
    by: By = None
    where: Where = None
    order: Order = None
    facets: Facets = []
    reasons: WithReasons = False

    @model_validator(mode="after")
    def _check_asked(self) -> Self:
        if self.text is None and self.features is None:
            raise ValueError("there is nothing to search for: send a text, or features")
        return self


class SearchesRequest(Strict):
    queries: Annotated[list[SearchRequest], Field(min_length=1, max_length=MAX_QUERIES)]


class SimilarRequest(Paged):
    id: Id
    by: By = None
    where: Where = None
    reasons: WithReasons = False


class MapSearchRequest(Strict):
    text: Annotated[
        Text | None, Field(description="A question, or null: give one of `text` and `id`, or none")
    ] = None
    id: Annotated[Id | None, Field(description="A document: more like it")] = None
    region: Annotated[
        StrictInt | None,
        Field(
            ge=0,
            le=_INT64,
            description="Only among the documents of this region of the map; with neither `text` nor "
            "`id`, those most typical of it",
        ),
    ] = None
    k: K = 10
    by: By = None
    where: Where = None


class NearestRequest(Paged):
    code: Code
    where: Where = None
    facets: Facets = []


class TextQuery(Strict):
    text: Text
    features: Features = None


class IdQuery(Strict):
    id: Id


class CodeQuery(Strict):
    code: Code


class ExplainRequest(Strict):
    query: Annotated[
        TextQuery | IdQuery | CodeQuery,
        Field(description="What was searched for: one of the three"),
    ]
    id: Annotated[Id, Field(description="The hit")]
    code: Annotated[
        Code | None,
        Field(description="The hit's, if documents are cut into passages; else it is known"),
    ] = None


class GetRequest(Strict):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_K)]


class NewDocument(Strict):
    id: Id
    text: Annotated[StrictStr, Field(max_length=MAX_TEXT)]
    metadata: Metadata | None = None
    features: Features = None


class AddRequest(Strict):
    documents: Annotated[list[NewDocument], Field(min_length=1, max_length=MAX_BATCH)]
    overwrite: Annotated[
        StrictBool,
        Field(description="Replace documents whose id exists; otherwise that is an error"),
    ] = False


class DeleteRequest(Strict):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_BATCH)]


# Answers


class Answer(BaseModel):
    generation: Annotated[
        int,
        Field(description="The state of the collection for which this is true; writes raise it"),
    ]


class Piece(BaseModel):
    """A part of a snippet; marked if it is a word of the query."""

    text: str
    marked: bool = False


class Parts(BaseModel):
    """What a score is the sum of."""

    words: Annotated[float, Field(description="BM25 in units of its spread for this query")]
    code: Annotated[
        float, Field(description="How well its code agrees with the query's; may be negative")
    ]


class Passage(BaseModel):
    """Where to look in a document: characters (Unicode code points) from start up to end."""

    start: int
    end: int


class Reasons(BaseModel):
    """Why a document is a hit, in words as it spells them."""

    shared: Annotated[list[str], Field(description="Those that were asked for, in any form")]
    near: Annotated[
        list[str], Field(description="Others, whose own codes agree best with the query's")
    ]


class Hit(BaseModel):
    id: ShownId
    score: Annotated[
        float | None,
        Field(description="What it was ranked by, more is better; null by codes alone"),
    ] = None
    parts: Annotated[
        Parts | None, Field(description="What the score is the sum of; null by codes alone")
    ] = None
    words: Annotated[float | None, Field(description="BM25 of its words; null by codes alone")] = (
        None
    )
    distance: Annotated[
        int | None,
        Field(description="In how many bits its code differs; null if the query has no code"),
    ]
    title: str
    snippet: list[Piece]
    passage: Annotated[
        Passage | None,
        Field(
            description="Where the best passage is, if documents are cut into passages: the snippet "
            "is from there, and score, words, distance and code are of this passage"
        ),
    ] = None
    code: str
    metadata: dict[str, Any]
    reasons: Annotated[Reasons | None, Field(description="There only if they were asked for")] = (
        None
    )


class AskedFor(BaseModel):
    code: Annotated[
        str | None,
        Field(description="null of a text without features, where codes are made from features"),
    ]
    by: Annotated[
        Literal["both", "words", "codes"],
        Field(description="What documents were found and ranked by"),
    ]
    known_words: Annotated[
        int | None,
        Field(
            description="How many words of the query the model knows; with 0 its code means nothing, "
            "nor does an order by codes"
        ),
    ]


class Value(BaseModel):
    value: str | int | float | bool
    count: int


class FacetCounts(BaseModel):
    values: Annotated[
        list[Value],
        Field(description=f"The {MOST_VALUES} commonest, with how many documents have each"),
    ]
    least: Annotated[
        int | float | None, Field(description="The least number in the field, null if none")
    ]
    most: int | float | None


class FoundHits(BaseModel):
    query: AskedFor
    total: Annotated[
        int | None,
        Field(
            description="How many documents match: those with a word of the query, or by codes all that "
            "the filter lets through. By both, more may be hits, for their codes alone. Not counted "
            "for documents like one"
        ),
    ] = None
    hits: list[Hit]
    facets: Annotated[
        dict[str, FacetCounts] | None,
        Field(description="By field, over all documents that match; there if it was asked for"),
    ] = None
    warning: Annotated[
        str | None,
        Field(
            description="There only if nothing was found because no document has a field of the filter, "
            "or such a kind of value in it"
        ),
    ] = None


class Hits(Answer, FoundHits):
    milliseconds: Annotated[
        float, Field(description="What the service took, waiting for a thread included")
    ]


class SearchesAnswer(Answer):
    answers: Annotated[list[FoundHits], Field(description="One for each query, in their order")]
    milliseconds: float


class BitAgreement(BaseModel):
    bit: int
    agrees: bool
    on: Annotated[bool, Field(description="Whether it is on in the document")]
    words: Annotated[list[str], Field(description="What the document's side of the bit stands for")]
    in_query: Annotated[list[str], Field(description="Which of the words the query has")]
    in_document: list[str]


class Explanation(Answer):
    distance: int
    query_code: str
    document_code: str
    shared_words: Annotated[
        list[str],
        Field(description="Words of the document that were asked for, also in another form"),
    ]
    bits: list[BitAgreement]


class StoredDocument(BaseModel):
    id: ShownId
    title: str
    text: str
    metadata: dict[str, Any]
    code: str


class Documents(Answer):
    documents: list[StoredDocument]


class OneDocument(Answer):
    document: StoredDocument


class DocumentsPage(Documents):
    total: Annotated[int, Field(description="How many documents the collection has")]
    next: Annotated[int | None, Field(description="What `after` goes on with; null at the end")]


class Written(Answer):
    written: Annotated[int, Field(description="Documents; one that was sent twice is one")]


class Deleted(Answer):
    deleted: int


class Duplicate(BaseModel):
    id: ShownId
    similarity: Annotated[float, Field(description="Of its text to that of the document kept")]


class Group(BaseModel):
    size: Annotated[int, Field(description="With the document that is kept")]
    similarity: Annotated[
        float, Field(description="Of the duplicate that is least like the document kept")
    ]
    kept: Annotated[ShownId, Field(description="The id of the document to keep")]
    duplicates: Annotated[
        list[Duplicate],
        Field(max_length=MAX_LISTED_IN_GROUP, description="The others, or the first of them"),
    ]
    documents: Annotated[
        list[StoredDocument],
        Field(max_length=MAX_IN_GROUP, description="The document to keep, then the first others"),
    ]


class Duplicates(Answer):
    min_similarity: float
    keep: str
    siblings: bool
    n_groups: int
    n_extra: Annotated[int, Field(description="Documents of all groups but those to keep")]
    groups: Annotated[
        list[Group], Field(description="The most similar first, of equals the largest")
    ]


class Fields(Answer):
    fields: dict[str, list[Value]]


class Topic(BaseModel):
    words: Annotated[
        list[str], Field(description="Those that set it apart, the most telling first")
    ]
    share: Annotated[float, Field(description="Of the documents that were looked at")]


class Overview(Answer):
    documents: int
    topics: Annotated[list[Topic], Field(description="The largest first")]
    questions: Annotated[
        list[str],
        Field(
            description="One a topic: a sentence of a document by which it is found first, or two of "
            "the topic's words"
        ),
    ]


class Region(BaseModel):
    """A part of the map where points lie dense."""

    parent: Annotated[int | None, Field(description="The number of the region around it")]
    x: Annotated[int, Field(description="Where it is densest, 0 to 65535")]
    y: int
    spread: Annotated[float, Field(description="How far its points lie from there, of the width")]
    size: Annotated[int, Field(description="Points in it")]
    words: Annotated[list[str], Field(description="What sets its documents apart, best first")]


class Map(Answer):
    made: Annotated[bool, Field(description="Whether there is a map; if not, see message")]
    message: str | None = None
    places: list[int] = []
    x: Annotated[list[int], Field(description="0 to 65535")] = []
    y: list[int] = []
    regions: Annotated[
        list[Region], Field(description="Regions in regions; a parent comes before its children")
    ] = []
    region_of: Annotated[
        list[int], Field(description="For each point, the number of its smallest region, or -1")
    ] = []
    field: str | None = None
    values: Annotated[list[str], Field(description="What the colours stand for")] = []
    ordered: Annotated[bool, Field(description="Whether the values are ranges in order")] = False
    colours: Annotated[list[int], Field(description="For each point, the index of its value")] = []
    left_out: Annotated[int, Field(description="Documents that have no point")] = 0


class MapHit(Hit):
    place: Annotated[int | None, Field(description="Of its point; null if it has none")]


class MapHits(Answer):
    query: AskedFor
    total: Annotated[
        int | None, Field(description="As in a search; there only if no region is asked for")
    ] = None
    hits: list[MapHit]
    warning: str | None = None


class Passages(BaseModel):
    """How documents are cut."""

    words: Annotated[int, Field(description="About as many as a passage has")]
    passages: int


class Stats(Answer):
    documents: int
    passages: Annotated[
        Passages | None, Field(description="null if documents are not cut into passages")
    ] = None
    no_known_word: int
    bits: int
    method: str
    features: Annotated[
        int | None,
        Field(description="How long the vectors are that codes are made from; null: from words"),
    ]
    model: str
    bytes: dict[str, int]
    bytes_per_document: dict[str, float]
    writing: Annotated[bool, Field(description="Whether documents can be added and deleted")]
    version: str


class Health(BaseModel):
    status: str


class ErrorDetail(BaseModel):
    where: str
    problem: str


class ErrorBody(BaseModel):
    status: int
    code: Annotated[
        str, Field(description="What it is, for programs", json_schema_extra={"enum": [*CODES]})
    ]
    message: Annotated[str, Field(description="What to change")]
    details: list[ErrorDetail] = []


class Error(BaseModel):
    error: ErrorBody
