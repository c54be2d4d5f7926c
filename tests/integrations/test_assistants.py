"""``boltzhash serve --mcp``, asked by the client of MCP's own SDK over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from boltzhash import ITQ, Collection
from boltzhash.cli.parser import main
from command_line import environment
from snapshots import Newest

TEXTS = {
    "stars": "Stars and planets. A planet goes round its star.",
    "moons": "Planets and moons. A moon goes round its planet.",
    "bread": "Bread and butter. Butter melts on warm bread.",
    "jam": "Butter and jam. Jam is made of fruit.",
    7: "x" * 50_000,
}


@pytest.fixture
def library(tmp_path: Path) -> Path:
    texts = list(TEXTS.values())
    with Collection.create(tmp_path / "library", ITQ(n_bits=16).fit(texts)) as collection:
        collection.add(
            {"id": name, "text": text, "metadata": {"shelf": i, "tags": ["all"]}}
            for i, (name, text) in enumerate(TEXTS.items())
        )
    return tmp_path / "library"


def ask(library: Path, questions: Callable[[Any], Awaitable[Any]]) -> Any:
    """What a client finds out from a server that it starts itself."""
    mcp = pytest.importorskip("mcp")
    command = ["-m", "boltzhash", "serve", str(library), "--mcp"]
    server = mcp.StdioServerParameters(command=sys.executable, args=command, env=environment())

    async def answers() -> Any:
        async with mcp.Client(server) as client:
            return await asyncio.wait_for(questions(client), 60)

    return asyncio.run(answers())


def test_tools_say_what_they_are_for_and_only_read(library: Path) -> None:
    listed = ask(library, lambda client: client.list_tools()).tools
    names = [tool.name for tool in listed]
    assert names == ["search", "get_document", "similar_documents", "overview"]
    for tool in listed:
        assert tool.description
        assert tool.annotations.read_only_hint
        for argument in tool.input_schema["properties"].values():
            assert argument["description"]
    assert listed[0].input_schema["required"] == ["question"]


def test_answers_are_those_of_the_collection(library: Path) -> None:
    async def questions(client: Any) -> Any:
        asked = {"question": "warm bread", "k": 2, "where": {"shelf": {">": 1}}, "facets": ["tags"]}
        return (
            await client.call_tool("search", asked),
            await client.call_tool("similar_documents", {"id": "stars", "k": 1}),
            await client.call_tool("overview", {}),
        )

    search, similar, overview = ask(library, questions)
    with Collection.open(library) as collection:
        hits = collection.search("warm bread", 2, where={"shelf": {">": 1}})
        like = collection.more_like("stars", 1)
    found = search.structured_content
    assert [hit["id"] for hit in found["hits"]] == hits.ids
    assert found["hits"][0]["score"] == round(hits.hits[0].score or 0, 4)
    assert found["hits"][0]["snippet"] == "Butter melts on warm bread."
    assert found["hits"][0]["metadata"] == {"shelf": 2, "tags": ["all"]}
    assert (found["by"], found["warning"], found["total"]) == ("both", None, 1)
    assert found["facets"]["tags"]["values"] == [{"value": "all", "documents": 1}]
    assert json.loads(search.content[0].text) == found  # for clients that read text alone
    assert [hit["id"] for hit in similar.structured_content["hits"]] == like.ids == ["moons"]
    assert overview.structured_content["documents"] == 5
    shelves = overview.structured_content["fields"]["shelf"]
    assert sorted(one["value"] for one in shelves) == [0, 1, 2, 3, 4]


def test_a_long_text_is_read_in_parts(library: Path) -> None:
    async def questions(client: Any) -> Any:
        parts, start = [], 0
        while start is not None:
            asked = {"id": 7, "start": start}
            part = (await client.call_tool("get_document", asked)).structured_content
            parts.append(part["text"])
            start = part["next_start"]
        return parts, part

    parts, last = ask(library, questions)
    assert [len(part) for part in parts] == [20_000, 20_000, 10_000]
    assert "".join(parts) == TEXTS[7]
    assert (last["id"], last["characters"], last["metadata"]["shelf"]) == (7, 50_000, 4)


def test_what_is_asked_wrongly_is_told(library: Path) -> None:
    async def questions(client: Any) -> Any:
        wrong = [
            ("get_document", {"id": "7"}),
            ("similar_documents", {"id": "none"}),
            ("search", {"question": "bread", "where": {"shelf": {"=>": 2}}}),
            ("search", {"question": "bread", "k": 1000}),
            ("search", {"question": ""}),
        ]
        told = [await client.call_tool(name, arguments) for name, arguments in wrong]
        empty = {"question": "bread", "where": {"shelv": 2}}
        return told, (await client.call_tool("search", empty)).structured_content

    told, empty = ask(library, questions)
    assert all(result.is_error for result in told)
    messages = [result.content[0].text for result in told]
    assert "there is no document with the id '7'" in messages[0]
    assert "there is no document with the id 'none'" in messages[1]
    assert "has the operator '=>' (here: >=)" in messages[2]
    assert "less than or equal to 100" in messages[3]
    assert messages[4]
    assert empty["hits"] == []
    assert "(is 'shelf' meant?)" in empty["warning"]


def test_it_ends_with_its_input_and_leaves_the_collection_as_it_was(library: Path) -> None:
    pytest.importorskip("mcp")
    with Collection.open(library) as collection:
        before = Newest(collection).state
    command = [sys.executable, "-m", "boltzhash", "serve", str(library), "--mcp"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, env=environment(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, b"")
    with Collection.open(library) as collection:
        assert Newest(collection).state == before


def test_options_of_the_other_service_are_refused(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(library), "--mcp", "--port", "9", "--workers", "2"]) != 0
    assert "leave out --port, --workers" in capsys.readouterr().err


def test_without_the_sdk_the_extra_is_named(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    monkeypatch.delitem(sys.modules, "boltzhash.server.assistants", raising=False)
    assert main(["serve", str(library), "--mcp"]) != 0
    assert "pip install 'boltzhash[mcp]'" in capsys.readouterr().err
