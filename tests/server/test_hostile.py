"""What a service must bear: limits, hostile bodies, other sites, slow clients, being stopped."""

from __future__ import annotations

import gzip
import json
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn

from boltzhash.collection import Collection
from boltzhash.server import guard, protocol
from boltzhash.server.refusals import CODES
from boltzhash.server.settings import Settings
from services import serving_in_a_thread
from snapshots import Newest

pytestmark = pytest.mark.service

ODD = [
    "\x00",
    "a\x00b",
    "\u202e\u200d\ufeff",
    "e\u0301" * 500,
    "😀" * 1000,
    "'; DROP TABLE documents; --",
    '" OR 1=1 --',
    "<script>alert(1)</script>",
    "{{7*7}} ${7*7} %s %n",
    "../../etc/passwd",
    "\\",
    " " * 1000,
    "",
]


def refused(answer: httpx.Response, status: int) -> str:
    """The message of a refusal, which must be JSON of our form."""
    assert answer.status_code == status, answer.text[:300]
    error = answer.json()["error"]
    assert error["status"] == status
    assert isinstance(error["message"], str)
    assert error["message"]
    assert error["code"] in CODES
    return str(error["message"])


def still_well(served: Any) -> None:
    assert served.client.get("/readyz").status_code == 200
    assert served.client.get("/v1/stats").json()["documents"] == 91


# Every field of every address


def _bodies(value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Each address with the value in each field that takes something like it."""
    return [
        ("/v1/search", {"text": value}),
        ("/v1/search", {"text": "moon", "where": {"topic": value}}),
        ("/v1/search", {"text": "moon", "where": {str(value): 1}}),
        ("/v1/search", {"text": "moon", "where": {"topic": [value, 1]}}),
        ("/v1/search", {"text": "moon", "where": {"topic": {"!=": value}}}),
        ("/v1/search", {"text": "moon", "where": {"topic": {str(value): 1}}}),
        ("/v1/search", {"text": "moon", "k": value}),
        ("/v1/search", {"text": "moon", str(value): 1}),
        ("/v1/similar", {"id": value}),
        ("/v1/nearest", {"code": value}),
        ("/v1/explain", {"query": {"text": value}, "id": 7}),
        ("/v1/explain", {"query": {"id": value}, "id": value}),
        ("/v1/explain", {"query": {"code": value}, "id": 7}),
        ("/v1/documents/get", {"ids": [value]}),
    ]


@pytest.mark.parametrize("value", ODD, ids=ascii)
def test_odd_text_in_every_field(served: Any, value: str) -> None:
    for path, body in _bodies(value):
        answer = served.client.post(path, content=json.dumps(body))
        assert answer.status_code in (200, 404, 422), (path, body, answer.text[:300])
    for path in ("/v1/map", "/v1/duplicates", "/v1/map/x", "/page/x"):
        answer = served.client.get(
            path, params={"field": value, "min_similarity": value, "keep": value}
        )
        assert answer.status_code in (200, 404, 422)
    still_well(served)


@pytest.mark.parametrize(
    "text",
    [
        r'"\ud800"',
        r'"a\udfff"',
        "1e999",
        "NaN",
        "-Infinity",
        "1" * 5000,
        str(2**63),
        "1.5",
        "true",
        "null",
        "[]",
        "{}",
        '{"<": "a"}',
        "[" * 200 + "]" * 200,
    ],
    ids=lambda text: text[:20],
)
def test_odd_json_in_every_field(served: Any, text: str) -> None:
    for path, body in _bodies("HERE"):
        content = json.dumps(body).replace('"HERE"', text).replace("HERE", "x")
        answer = served.client.post(path, content=content)
        assert answer.status_code in (200, 400, 404, 422), (path, content[:200], answer.text[:300])
        if answer.status_code != 200:
            refused(answer, answer.status_code)
    still_well(served)


def test_what_is_hostile_can_be_stored_and_comes_back_as_it_was(
    serve: Callable[..., Any], folder: Path
) -> None:
    documents = [
        {"id": value or "empty", "text": value, "metadata": {value: value, "n": [value, None, 1.5]}}
        for value in ODD
    ]
    with serve(folder) as service:
        assert service.write("/v1/documents", documents=documents).status_code == 200
        ids = [document["id"] for document in documents]
        got = service.post("/v1/documents/get", ids=ids).json()["documents"]
        assert [(d["id"], d["text"], d["metadata"]) for d in got] == [
            (d["id"], d["text"], d["metadata"]) for d in documents
        ]
        for value in ODD:
            found = service.post("/v1/search", text="moon", where={value: value}).json()
            assert [hit["id"] for hit in found["hits"]] == [value or "empty"]
        for path in ("/v1/fields", "/v1/duplicates", "/v1/stats", "/v1/map"):
            assert service.client.get(path).status_code == 200
        assert service.write("/v1/documents/delete", ids=ids).json()["deleted"] == len(ids)
    with Collection.open(folder) as collection:
        Newest(collection).check()


@pytest.mark.parametrize(
    "document",
    [
        {"id": 2**63, "text": "a"},
        {"id": "x" * 1001, "text": "a"},
        {"id": True, "text": "a"},
        {"id": 1.0, "text": "a"},
        {"id": None, "text": "a"},
        {"id": 1},
        {"id": 1, "text": None},
        {"id": 1, "text": "a", "more": 1},
        {"id": 1, "text": "a", "metadata": []},
        {"id": 1, "text": "a", "metadata": {"n": 2**63}},
        {"id": 1, "text": "a" * 1_000_001},
    ],
    ids=lambda document: str(document)[:40],
)
def test_documents_that_cannot_be_kept_are_refused(served: Any, document: Any) -> None:
    refused(served.write("/v1/documents", documents=[document]), 422)
    for content in (r'{"n": "\ud800"}', r'{"\ud800": 1}', '{"n": NaN}', '{"n": 1e999}'):
        body = f'{{"documents": [{{"id": 1, "text": "a", "metadata": {content}}}]}}'
        refused(served.writer.post("/v1/documents", content=body), 422)
    still_well(served)


# Limits


def test_each_limit_says_what_it_is(served: Any) -> None:
    post = served.post
    assert "100000" in refused(post("/v1/search", text="a" * 100_001), 422)
    assert "100" in refused(post("/v1/search", text="a", k=101), 422)
    assert "1" in refused(post("/v1/search", text="a", k=0), 422)
    assert "32" in refused(post("/v1/search", text="a", where={str(i): i for i in range(33)}), 422)
    for many in ({"$or": [{}] * 33}, {"$and": [{"$or": [{"a": 1}] * 11}] * 3}):
        told = refused(post("/v1/search", text="a", where=many), 422)
        assert "a filter may have at most 32 conditions, got 33" in told
    assert "1000" in refused(post("/v1/search", text="a", where={"a": list(range(1001))}), 422)
    assert "1000" in refused(
        post("/v1/search", text="a", where={"$not": {"a": {"not in": list(range(1001))}}}), 422
    )
    assert "100" in refused(post("/v1/documents/get", ids=list(range(101))), 422)
    batch = [{"id": i, "text": ""} for i in range(1001)]
    assert "1000" in refused(served.write("/v1/documents", documents=batch), 422)
    assert "1000" in refused(served.write("/v1/documents/delete", ids=list(range(1001))), 422)
    assert "8 hexadecimal" in refused(post("/v1/nearest", code="00"), 422)
    get = served.client.get
    assert "0.5" in refused(get("/v1/duplicates", params={"min_similarity": 0.49}), 422)
    assert "1" in refused(get("/v1/duplicates", params={"min_similarity": 1.01}), 422)
    assert "'newest'" in refused(get("/v1/duplicates", params={"keep": "last"}), 422)
    assert "'=>'" in refused(post("/v1/search", text="a", where={"a": {"=>": 1}}), 422)
    assert "takes a list of" in refused(post("/v1/search", text="a", where={"$or": {"a": 1}}), 422)


def test_large_bodies_are_refused_announced_or_not(served: Any) -> None:
    ten = b'{"text": "' + b"a" * 10_000_000 + b'"}'
    assert "1048576 bytes" in refused(served.client.post("/v1/search", content=ten), 413)
    assert "8388608 bytes" in refused(served.writer.post("/v1/documents", content=ten), 413)

    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(
            b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for _ in range(11):
            connection.sendall(b"186a0\r\n" + b" " * 100_000 + b"\r\n")
        assert b" 413 " in connection.recv(1000)
    still_well(served)


@pytest.mark.parametrize("seconds", [0, 2.5], ids=["at once", "slowly"])
def test_who_sends_far_too_much_still_reads_why_it_is_refused(served: Any, seconds: float) -> None:
    """A client that sends all before it listens: hung up on, it would see a broken connection."""
    head = b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(head)
        for _ in range(10):
            connection.sendall(b" " * 10_000_000)
            time.sleep(seconds / 10)
        assert "1048576 bytes" in refusal_on(until_closed(connection), 413)
    still_well(served)


def test_who_asks_before_sending_far_too_much_is_refused_at_once(served: Any) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(
            b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
            b"content-length: 100000000\r\n\r\n"
        )
        assert "1048576 bytes" in refusal_on(until_closed(connection), 413)


@pytest.mark.parametrize("depth", [32, 500, 5_000, 400_000])
def test_deep_json_is_refused(served: Any, depth: int) -> None:
    for start, end in (("[", "]"), ('{"a":', "1" + "}")):
        deep = start * depth + end[:-1] + end[-1] * depth
        content = f'{{"text": "a", "where": {{"a": {deep}}}}}'
        answer = served.client.post("/v1/search", content=content[: 1 << 20])
        refused(answer, answer.status_code)
        assert answer.status_code in (400, 413, 422)
        body = f'{{"documents": [{{"id": 1, "text": "a", "metadata": {{"a": {deep}}}}}]}}'
        answer = served.writer.post("/v1/documents", content=body)
        assert answer.status_code in (400, 422)
        message = refused(answer, answer.status_code)
        assert depth > 32 or "at most 32 levels" in message
    still_well(served)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b"1", b'{"text": "a",}', b"\x00"]
)
def test_bodies_that_are_no_request(served: Any, content: bytes) -> None:
    answer = served.client.post("/v1/search", content=content)
    assert refused(answer, answer.status_code)
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_is_told_which_one_is_wanted(served: Any, kind: str) -> None:
    """Forms of other sites can be sent without asking, but not as JSON."""
    headers = {"content-type": kind}
    answer = served.client.post("/v1/search", content=b'{"text": "moon"}', headers=headers)
    assert "content-type: application/json" in refused(answer, 415)


def test_addresses_that_are_not_there(served: Any) -> None:
    for path in ("/nothing", "/page/../settings.py", "/page/%2e%2e%2fapp.py", "/v1/%00", "/page/"):
        assert "/docs" in refused(served.client.get(path), 404) or path.startswith("/page/")
    refused(served.client.get("/page/..%5c..%5capp.py"), 404)
    assert "/docs" in refused(served.client.get("/v1/search"), 405)
    assert "/docs" in refused(served.client.delete("/v1/documents"), 405)


# Other sites, other names


def test_security_headers_are_on_every_answer(served: Any) -> None:
    for path in ("/", "/docs", "/page/app.js", "/v1/stats", "/nothing", "/healthz"):
        headers = served.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_pages_of_other_sites_are_refused(served: Any) -> None:
    body = {"text": "moon"}
    others = ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "http://[")
    for origin in others:
        answer = served.client.post("/v1/search", json=body, headers={"origin": origin})
        assert "--allow-origin" in refused(answer, 403)
    own = {"origin": served.address}
    assert served.client.post("/v1/search", json=body, headers=own).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_pages_of_other_sites_embed_is_refused_but_not_a_link(served: Any, site: str) -> None:
    def asked(mode: str, dest: str, site: str = site) -> httpx.Response:
        names = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
        headers = dict(zip(names, (site, mode, dest), strict=True))
        answer: httpx.Response = served.client.get("/v1/duplicates", headers=headers)
        return answer

    for mode, dest in (("no-cors", "image"), ("no-cors", "script"), ("navigate", "iframe")):
        assert "--allow-origin" in refused(asked(mode, dest), 403)
    assert asked("navigate", "document").status_code == 200
    assert asked("cors", "empty", "same-origin").status_code == 200
    assert asked("navigate", "document", "none").status_code == 200


def test_requests_to_other_names_are_refused(served: Any) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "[", "localhost.evil"):
        answer = served.client.get("/v1/stats", headers={"host": host})
        assert "--allow-origin" in refused(answer, 421)
    for host in ("localhost", "127.0.0.1:9", "[::1]:8000"):
        assert served.client.get("/v1/stats", headers={"host": host}).status_code == 200


def test_a_service_for_other_machines_answers_to_the_names_it_was_told(
    serve: Callable[..., Any], folder: Path
) -> None:
    """Listening on all addresses used to switch the check off."""
    names = ("--allowed-hosts", "books.example,Shelf.example", "--allowed-hosts", "third.example")
    with (
        serve(folder, "--host", "0.0.0.0", *names) as service,
        httpx.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as client,
    ):
        for host in ("books.example:8000", "shelf.example", "THIRD.example", "10.0.0.7"):
            assert client.get("/v1/stats", headers={"host": host}).status_code == 200
        for host in ("evil.example", "sub.books.example", "books.example.evil"):
            answer = client.get("/v1/stats", headers={"host": host})
            assert "--allowed-hosts" in refused(answer, 421)
    with serve(folder, "--allowed-hosts", "*") as service:
        answer = service.client.get("/v1/stats", headers={"host": "any.example"})
        assert answer.status_code == 200


def test_an_allowed_site_may_ask(serve: Callable[..., Any], folder: Path) -> None:
    site = "https://search.example.org"
    with serve(folder, "--allow-origin", site) as service:
        before = {"origin": site, "access-control-request-method": "POST"}
        preflight = service.client.options("/v1/search", headers=before)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == site
        answer = service.client.post("/v1/search", json={"text": "moon"}, headers={"origin": site})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, site)
        large = service.client.post("/v1/search", content=b" " * 2**21, headers={"origin": site})
        refused(large, 413)
        assert large.headers["access-control-allow-origin"] == site  # so its page can read why
        named = {"host": "search.example.org", "origin": site}
        assert service.client.get("/v1/stats", headers=named).status_code == 200
        other = service.client.get("/v1/stats", headers={"origin": "https://example.org"})
        refused(other, 403)


# Slow clients, busy writers, the end


class Impatient(NamedTuple):
    """A service, in a thread of this process, that waits for bodies and readers half a second."""

    port: int
    server: uvicorn.Server

    def connect(self) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what is not read stays there
        made.settimeout(20)
        made.connect(("127.0.0.1", self.port))
        return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Impatient]:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 60)
    monkeypatch.setattr(protocol, "SEND_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    with serving_in_a_thread(Settings(str(folder))) as served:
        yield Impatient(*served)


def until_closed(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(4000), b""))


def refusal_on(wire: bytes, status: int) -> str:
    """The message of a refusal that was read from a socket."""
    head, _, body = wire.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), wire
    assert b"content-type: application/json" in head
    return str(json.loads(body)["error"]["message"])


def test_clients_that_trickle_are_sent_away(
    impatient: Impatient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers byte by byte, on a new connection and on one that was used; others are answered."""
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 2)
    with impatient.connect() as new, impatient.connect() as used:
        used.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b'{"status":"ok"}'):
            answer += used.recv(4000)
        for connection in (new, used):
            connection.setblocking(False)
        ended: dict[socket.socket, bytes] = {}
        for _ in range(200):
            for connection in {new, used} - set(ended):
                with suppress(BlockingIOError):
                    ended[connection] = connection.recv(4000)
                    continue
                connection.send(b"G")
            assert httpx.get(f"http://127.0.0.1:{impatient.port}/healthz").status_code == 200
            if len(ended) == 2:
                break
            time.sleep(0.05)
        for connection in (new, used):
            assert "within 2 s" in refusal_on(ended[connection], 408)


def test_a_body_that_does_not_come_is_given_up(impatient: Impatient) -> None:
    with impatient.connect() as connection:
        connection.sendall(
            b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900\r\n\r\n{"
        )
        assert "0.5 s" in refusal_on(until_closed(connection), 408)


@pytest.mark.parametrize(
    "framing",
    [b"content-length: 9999999999", b"transfer-encoding: chunked"],
    ids=["said", "unsaid"],
)
def test_who_does_not_stop_sending_is_hung_up_on(impatient: Impatient, framing: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\n%b\r\n\r\n" % framing)
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                connection.sendall(b"186a0\r\n" + b" " * 100_000 + b"\r\n")


@pytest.mark.parametrize("asked", [1, 12], ids=["one answer", "answers to many"])
def test_clients_that_do_not_read_are_hung_up_on(
    impatient: Impatient, folder: Path, asked: int
) -> None:
    with Collection.open(folder) as collection:
        collection.add({"id": i, "text": "moon " * 200_000} for i in range(100, 108))
    body = json.dumps({"ids": list(range(100, 108))}).encode()
    head = (
        b"POST /v1/documents/get HTTP/1.1\r\nhost: localhost\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
    )
    with impatient.connect() as connection:
        connection.sendall((head % len(body) + body) * asked)
        assert until(lambda: impatient.server.server_state.total_requests > 0)
        assert until(lambda: not impatient.server.server_state.connections)
        assert (
            len(until_closed(connection)) < 8_000_000
        )  # of eight million and more that it asked for


def until(holds: Callable[[], bool]) -> bool:
    for _ in range(400):
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_connections_that_are_too_many_are_told_so(impatient: Impatient) -> None:
    request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with ExitStack() as stack:
        held = [stack.enter_context(impatient.connect()) for _ in range(8)]
        assert until(lambda: len(impatient.server.server_state.connections) == 8)
        one_more = stack.enter_context(impatient.connect())
        one_more.sendall(request)
        assert "8 other clients" in refusal_on(until_closed(one_more), 503)
        held[0].sendall(request)
        assert b" 200 " in held[0].recv(4000)


def test_bytes_that_are_no_request_at_all(impatient: Impatient) -> None:
    for wire, told in (
        (b"\x16\x03\x01\r\n\r\n", "illegal request line"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", "illegal header line"),
    ):
        with impatient.connect() as connection:
            connection.sendall(wire)
            message = refusal_on(until_closed(connection), 400)
            assert message == f"this is not HTTP/1.1: {told}"


@pytest.mark.parametrize("ends", [True, False], ids=["whole", "endless"])
def test_headers_that_are_too_large_are_named(impatient: Impatient, ends: bool) -> None:
    """Whether they come at once or not."""
    head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
    with impatient.connect() as connection:
        connection.sendall(head + b"x-large: " + b"A" * 70_000 + (b"\r\n\r\n" if ends else b""))
        assert "64 KiB" in refusal_on(until_closed(connection), 431)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_request_without_a_host_is_told_so(impatient: Impatient, version: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/%b\r\nconnection: close\r\n\r\n" % version)
        assert "no Host header" in refusal_on(until_closed(connection), 400)


def test_two_lengths_of_a_body_are_refused_and_the_connection_is_closed(
    impatient: Impatient,
) -> None:
    """What follows the shorter of the two must not be taken for a request."""
    smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with impatient.connect() as connection:
        connection.sendall(
            b"POST /v1/search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\ntransfer-encoding: chunked\r\n\r\n" % len(smuggled) + smuggled
        )
        wire = until_closed(connection)
    assert wire.count(b"HTTP/1.1 ") == 1
    assert "send one of them" in refusal_on(wire, 400)


def test_a_compressed_body_is_told_that_it_is(served: Any) -> None:
    body = gzip.compress(b'{"text": "moon"}')
    for headers in ({"content-encoding": "gzip"}, {}):
        answer = served.client.post("/v1/search", content=body, headers=headers)
        assert "compressed (gzip)" in refused(answer, 415)
        assert answer.json()["error"]["code"] == "compressed_body"
    plain = {"content-encoding": "identity"}
    answer = served.client.post("/v1/search", content=b'{"text": "moon"}', headers=plain)
    assert answer.status_code == 200


def test_half_a_request_is_none(service: Any) -> None:
    """Even where the half that came is JSON."""
    body = b'{"documents": [{"id": "half", "text": "moon"}]}'
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(
            b"POST /v1/documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900\r\n"
            b"content-type: application/json\r\nauthorization: Bearer a-key-for-tests\r\n\r\n"
            + body
        )
    assert until(lambda: 'status="499"' in service.client.get("/metrics").text)
    assert service.post("/v1/documents/get", ids=["half"]).json()["documents"] == []
    assert "Traceback" not in service.log.read_text()


def test_a_writer_elsewhere_is_waited_for_and_then_named(
    serve: Callable[..., Any], folder: Path
) -> None:
    document = {"id": "late", "text": "moon"}
    other = sqlite3.connect(folder / "collection.sqlite", isolation_level=None)
    with serve(folder) as service:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        answer = service.write("/v1/documents", documents=[document])
        assert "Try again" in refused(answer, 503)
        assert answer.headers["retry-after"]
        assert time.monotonic() - started < 12
        assert service.post("/v1/search", text="moon").status_code == 200
        other.execute("ROLLBACK")
        assert service.write("/v1/documents", documents=[document]).status_code == 200
    other.close()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_accepted_is_finished_when_the_service_is_stopped(
    serve: Callable[..., Any], folder: Path, workers: str
) -> None:
    other = sqlite3.connect(folder / "collection.sqlite", isolation_level=None)
    body = b'{"documents": [{"id": "last", "text": "moon"}]}'
    with (
        serve(folder, "--workers", workers) as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection,
    ):
        other.execute("BEGIN IMMEDIATE")  # the write has to wait, and the stop comes meanwhile
        connection.sendall(
            b"POST /v1/documents HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
            b"authorization: Bearer a-key-for-tests\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % len(body)
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # so it is accepted
        connection.sendall(body)
        service.process.terminate()
        time.sleep(0.7)
        other.execute("ROLLBACK")
        assert until_closed(connection).startswith(b"HTTP/1.1 200 ")
        assert service.process.wait(timeout=30) == 0
    with Collection.open(folder) as collection:
        assert "last" in collection
    other.close()
