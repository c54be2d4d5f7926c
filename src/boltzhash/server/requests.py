"""Requests: their fields and limits, which are also their OpenAPI description."""

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
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from boltzhash.codes import MAX_BITS
from boltzhash.collection.filters import (
    COMBINATIONS,
    OneOf,
    conditions_on_fields,
    parse_where,
)
from boltzhash.search.order import ORDERS, check_order
from boltzhash.server.settings import (
    MAX_BATCH,
    MAX_CONDITIONS,
    MAX_DEPTH,
    MAX_FACETS,
    MAX_FEATURES,
    MAX_FIELD,
    MAX_K,
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


def _integer_of(value: Any) -> Any:
    """The integer that a :class:`LargeId` stands for; anything else as it is."""
    if isinstance(value, dict) and value.keys() == {"int64"}:
        return int(LargeId.model_validate(value).int64)
    return value


Id = Annotated[
    StringId | IntegerId,
    BeforeValidator(_integer_of),
    WithJsonSchema(
        {"anyOf": [TypeAdapter(kind).json_schema() for kind in (StringId, IntegerId, LargeId)]}
    ),
]
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
    """Refuse a filter that is wrong, or too large to be answered quickly."""
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
        "is not computed",
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
