"""A collection as tools for assistants: ``boltzhash serve COLLECTION --mcp``, which speaks MCP.

All tools read; nothing can be written through them. Messages go over standard input and output, so an
assistant starts the program itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec

from boltzhash.collection import Answer, Collection, Facet, FilterWarning
from boltzhash.errors import needs_extra
from boltzhash.version import __version__

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp_types import ToolAnnotations
    from pydantic import Field
except ImportError:
    raise needs_extra("serve --mcp", "mcp", "mcp") from None

MOST_HITS = 100
MOST_CHARACTERS = 20_000  # of a text at once: more would fill what an assistant can read
VALUES = 10  # that the overview names of a field

P = ParamSpec("P")
Result = dict[str, Any]

Question = Annotated[
    str,
    Field(description='Words or a sentence. A phrase in "quotes" must occur, a -word must not.'),
]
Many = Annotated[int, Field(description="How many documents to find at most.", ge=1, le=MOST_HITS)]
Where = Annotated[
    dict[str, Any] | None,
    Field(
        description="Filter by metadata, such as "
        '{"year": {">=": 2020}, "lang": ["de", "en"], "tags": {"contains": "news"}}. Operators: = != < '
        '<= > >= in "not in" contains exists; $and, $or and $not combine filters. overview names fields.'
    ),
]
DocumentId = Annotated[str | int, Field(description="As search gives it: a string or an integer.")]


def serve_tools(location: str) -> None:
    """Answer on standard input and output until the input ends."""
    warnings.simplefilter("ignore", FilterWarning)  # the answer says it
    with Collection.open(location) as collection:
        tools_of(collection).run("stdio")


def tools_of(collection: Collection) -> MCPServer:
    """A server of MCP with the tools of a collection."""
    n, location = len(collection), collection.location
    server: MCPServer = MCPServer(
        "boltzhash",
        version=__version__,
        instructions=f"A collection of {n} documents, {location}. search finds documents by meaning and "
        "words; get_document reads one; similar_documents finds more like it; overview says what there "
        "is and which metadata fields can be filtered by. Nothing can be changed.",
        log_level="WARNING",
    )
    tools = Tools(collection)
    for tool in (tools.search, tools.get_document, tools.similar_documents, tools.overview):
        server.add_tool(
            tool, annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True)
        )
    return server


def explained(tool: Callable[P, Result]) -> Callable[P, Result]:
    """Tell the assistant about wrong arguments; anything else is an error of the server."""

    @wraps(tool)
    def called(*args: P.args, **kwargs: P.kwargs) -> Result:
        try:
            return tool(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise ToolError(str(error)) from error

    return called


class Tools:
    """The tools that an assistant can call."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    @explained
    def search(
        self,
        question: Question,
        k: Many = 10,
        where: Where = None,
        facets: Annotated[
            list[str] | None,
            Field(description="Metadata fields whose values are counted over all that match."),
        ] = None,
    ) -> Result:
        """Find the documents that answer a question best, by words and by meaning, best first."""
        answer = self._collection.search(question, k, where=where, facets=facets)
        found = as_result(answer)
        if facets is not None:
            found["total"] = answer.total
            found["facets"] = {name: values_of(facet) for name, facet in answer.facets.items()}
        return found

    @explained
    def get_document(
        self,
        id: DocumentId,
        start: Annotated[
            int, Field(description="The character to begin with, to read on in a long text.", ge=0)
        ] = 0,
    ) -> Result:
        """Read a document: its text, at most 20,000 characters of it at once, and its metadata."""
        document = self._collection.get(id)
        if document is None:
            raise no_such_document(id)
        text = document.text[start : start + MOST_CHARACTERS]
        return {
            "id": document.id,
            "text": text,
            "metadata": document.metadata or {},
            "characters": len(document.text),
            "next_start": start + len(text) if start + len(text) < len(document.text) else None,
        }

    @explained
    def similar_documents(self, id: DocumentId, k: Many = 10, where: Where = None) -> Result:
        """Find the documents most like one of the collection, best first, itself left out."""
        try:
            return as_result(self._collection.more_like(id, k, where=where))
        except KeyError:
            raise no_such_document(id) from None

    @explained
    def overview(self) -> Result:
        """Say what is in the collection: how many documents, and the metadata fields with the commonest
        values of each and how many documents have them."""
        with self._collection.snapshot() as now:
            n, fields = len(now), now.field_values(VALUES)
        return {
            "documents": n,
            "fields": {
                name: [{"value": one.value, "documents": one.n_documents} for one in values]
                for name, values in fields.items()
            },
        }


def no_such_document(id: str | int) -> ValueError:
    return ValueError(
        f"there is no document with the id {id!r}: ids are as search gives them, and 7 is not '7'"
    )


def as_result(answer: Answer) -> Result:
    """An answer with metadata and the line of each text that tells most, without whole texts."""
    hits = [
        {
            "id": hit.id,
            "score": shown.get("score"),
            "distance": hit.distance,
            "snippet": shown["snippet"],
            **({"passage": shown["passage"]} if "passage" in shown else {}),
            "metadata": (hit.document.metadata if hit.document is not None else None) or {},
        }
        for hit, shown in zip(answer, answer.as_json()["hits"], strict=True)
    ]
    return {"by": answer.by, "hits": hits, "warning": answer.warning}


def values_of(facet: Facet) -> Result:
    values = [{"value": one.value, "documents": one.n_documents} for one in facet.values]
    return {"values": values, "least": facet.least, "most": facet.most}
