"""Downloads against a server of our own: cut, resumed, changed, wrong, missing, out of reach."""

from __future__ import annotations

import hashlib
import http.server
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from boltzhash.datasets.download import DownloadError, Source, cache_folder, fetch
from command_line import names

CONTENTS = np.random.default_rng(0).bytes(300_000)
OTHER = np.random.default_rng(1).bytes(250_000)


def sha(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


@dataclass
class Shelf:
    """What the server offers and how it behaves; what it was asked for."""

    contents: bytes = CONTENTS
    tag: str | None = '"v1"'
    ranges: bool = True
    length: bool = True
    cuts: list[int] = field(default_factory=list)  # bytes to send before hanging up, in turn
    ignores_if_range: bool = False
    status: int = 200
    port: int = 0
    asked: list[str | None] = field(default_factory=list)  # Range of every request

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/file.bin"

    def source(self, sha256: str | None = sha(CONTENTS), **options: object) -> Source:
        return Source("file.bin", (self.address,), sha256, **options)  # type: ignore[arg-type]


class Handler(http.server.BaseHTTPRequestHandler):
    shelf: Shelf

    def do_GET(self) -> None:
        shelf, wanted = self.shelf, self.headers.get("Range")
        shelf.asked.append(wanted)
        if shelf.status != 200:
            self.send_error(shelf.status)
            return
        same = shelf.ignores_if_range or self.headers.get("If-Range") == shelf.tag
        start = int(re.findall(r"\d+", wanted)[0]) if wanted and shelf.ranges and same else 0
        if start >= len(shelf.contents):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            last, size = len(shelf.contents) - 1, len(shelf.contents)
            self.send_header("Content-Range", f"bytes {start}-{last}/{size}")
        if shelf.tag:
            self.send_header("ETag", shelf.tag)
        if shelf.length:
            self.send_header("Content-Length", str(len(shelf.contents) - start))
        self.end_headers()
        body = shelf.contents[start:]
        self.wfile.write(body[: shelf.cuts.pop(0)] if shelf.cuts else body)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    offered = Shelf()
    handler = type("ShelfHandler", (Handler,), {"shelf": offered})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        offered.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield offered
        server.shutdown()
        thread.join()


def test_a_file_is_downloaded_once(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    path = fetch(shelf.source(), folder)
    assert path == folder / "file.bin"
    assert path.read_bytes() == CONTENTS
    assert fetch(shelf.source(), folder) == path
    assert shelf.asked == [None]
    assert names(folder) == ["file.bin"]


def test_a_cut_download_goes_on_at_once(shelf: Shelf, tmp_path: Path) -> None:
    shelf.cuts = [100_000, 50_000]
    assert fetch(shelf.source(), tmp_path).read_bytes() == CONTENTS
    assert shelf.asked == [None, "bytes=100000-", "bytes=150000-"]
    assert names(tmp_path) == ["file.bin"]


def test_a_given_up_download_goes_on_at_the_next_call(shelf: Shelf, tmp_path: Path) -> None:
    shelf.cuts = [100_000, 0, 0, 0]
    with pytest.raises(
        DownloadError, match=r"ended after 100000 of 300000 bytes .*file\.bin\.part keeps"
    ):
        fetch(shelf.source(), tmp_path)
    assert (tmp_path / "file.bin.part").read_bytes() == CONTENTS[:100_000]
    assert not (tmp_path / "file.bin").exists()
    shelf.asked.clear()
    assert fetch(shelf.source(), tmp_path).read_bytes() == CONTENTS
    assert shelf.asked == ["bytes=100000-"]
    assert names(tmp_path) == ["file.bin"]


def give_up_after(shelf: Shelf, folder: Path, n_bytes: int) -> None:
    shelf.cuts = [n_bytes, 0, 0, 0]
    with pytest.raises(DownloadError, match=f"ended after {n_bytes} of"):
        fetch(shelf.source(), folder)
    shelf.cuts.clear()
    shelf.asked.clear()


def test_a_changed_file_starts_anew(shelf: Shelf, tmp_path: Path) -> None:
    give_up_after(shelf, tmp_path, 100_000)
    shelf.contents, shelf.tag = OTHER, '"v2"'
    assert fetch(shelf.source(sha(OTHER)), tmp_path).read_bytes() == OTHER
    assert shelf.asked == ["bytes=100000-"]  # answered with the whole file


@pytest.mark.parametrize("size", [250_000, 90_000])
def test_a_changed_file_of_a_careless_server_starts_anew(
    shelf: Shelf, tmp_path: Path, size: int
) -> None:
    """It sends a part of the new file, or says there is no such part; neither is mixed with the old."""
    give_up_after(shelf, tmp_path, 100_000)
    shelf.contents, shelf.tag, shelf.ignores_if_range = OTHER[:size], '"v2"', True
    assert fetch(shelf.source(sha(OTHER[:size])), tmp_path).read_bytes() == OTHER[:size]
    assert shelf.asked == ["bytes=100000-", None]


def test_a_server_without_ranges(shelf: Shelf, tmp_path: Path) -> None:
    shelf.ranges = False
    shelf.cuts = [100_000]
    assert fetch(shelf.source(), tmp_path).read_bytes() == CONTENTS
    assert len(shelf.asked) == 2


@pytest.mark.parametrize("tag", [None, 'W/"v1"'])
def test_without_a_tag_nothing_is_resumed(shelf: Shelf, tmp_path: Path, tag: str | None) -> None:
    """Nothing would tell that the file is still the same."""
    shelf.tag = tag
    shelf.cuts = [100_000]
    assert fetch(shelf.source(), tmp_path).read_bytes() == CONTENTS
    assert shelf.asked == [None, None]


def test_another_address_starts_anew(shelf: Shelf, tmp_path: Path) -> None:
    give_up_after(shelf, tmp_path, 100_000)
    other = Source("file.bin", (shelf.address.replace("127.0.0.1", "localhost"),), sha(CONTENTS))
    assert fetch(other, tmp_path).read_bytes() == CONTENTS
    assert shelf.asked == [None]


def test_a_wrong_checksum_leaves_nothing(shelf: Shelf, tmp_path: Path) -> None:
    shelf.contents = OTHER
    expected = f"expected sha256 {sha(CONTENTS)}, got {sha(OTHER)}; it was not kept"
    with pytest.raises(DownloadError, match=expected):
        fetch(shelf.source(), tmp_path)
    assert names(tmp_path) == []


def test_a_file_damaged_in_the_cache_is_named(shelf: Shelf, tmp_path: Path) -> None:
    path = fetch(shelf.source(), tmp_path)
    path.write_bytes(CONTENTS[:-1])
    with pytest.raises(DownloadError, match=r"expected sha256 .*; delete .*file\.bin to download"):
        fetch(shelf.source(), tmp_path)
    assert path.read_bytes() == CONTENTS[:-1]


def test_the_first_download_is_trusted(
    shelf: Shelf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "boltzhash"):
        path = fetch(shelf.source(sha256=None), tmp_path)
    assert f"It came from {shelf.address} with sha256 {sha(CONTENTS)}" in caplog.text
    known = json.loads((tmp_path / "checksums.json").read_text())
    assert known == {"file.bin": {"sha256": sha(CONTENTS), "address": shelf.address}}
    path.unlink()
    assert fetch(shelf.source(sha256=None), tmp_path).read_bytes() == CONTENTS
    path.unlink()
    shelf.contents = OTHER
    with pytest.raises(
        DownloadError, match=f"the sha256 of the first download, {sha(CONTENTS)}, got"
    ):
        fetch(shelf.source(sha256=None), tmp_path)
    assert names(tmp_path) == ["checksums.json"]


def test_damaged_checksums_are_named(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "checksums.json").write_text('{"file.bin": 3}')
    with pytest.raises(DownloadError, match=r"checksums\.json is damaged: .*delete it"):
        fetch(shelf.source(sha256=None), tmp_path)
    assert shelf.asked == []


def test_not_found(shelf: Shelf, tmp_path: Path) -> None:
    shelf.status = 404
    expected = r"file\.bin could not be downloaded \(from addresses that have not been tried"
    with pytest.raises(
        DownloadError, match=rf"{expected} with this version\): http://.*: HTTP 404 Not Found$"
    ):
        fetch(shelf.source(), tmp_path)
    assert names(tmp_path) == []


def test_the_next_address_is_tried(shelf: Shelf, tmp_path: Path) -> None:
    with socket.socket() as deaf:  # it has the port, so nobody else gets it, and does not listen
        deaf.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{deaf.getsockname()[1]}/file.bin"
        both = Source("file.bin", (closed, shelf.address), sha(CONTENTS))
        assert fetch(both, tmp_path).read_bytes() == CONTENTS
        with pytest.raises(DownloadError, match=f"{closed}: no answer: .*refused"):
            fetch(Source("none.bin", (closed,)), tmp_path)
    assert names(tmp_path) == ["file.bin"]


def test_no_network(tmp_path: Path) -> None:
    """A name that no server may have (RFC 2606)."""
    with pytest.raises(DownloadError, match="no answer: "):
        fetch(Source("x", ("http://boltzhash.invalid/x",)), tmp_path)
    assert names(tmp_path) == []


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="expected an http or https address"):
        fetch(Source("x", ("file:///etc/hostname",)), tmp_path)


@pytest.mark.parametrize("length", [True, False])
def test_sizes_are_limited(shelf: Shelf, tmp_path: Path, length: bool) -> None:
    shelf.length = length
    with pytest.raises(DownloadError, match="expected at most 1000 bytes, got"):
        fetch(shelf.source(max_bytes=1000), tmp_path)
    assert not (tmp_path / "file.bin").exists()


def test_one_process_at_a_time(shelf: Shelf, tmp_path: Path) -> None:
    part = tmp_path / "file.bin.part"
    script = (
        "import fcntl, sys\n"
        f"file = open({str(part)!r}, 'ab')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(
            DownloadError, match=r"another process is downloading to .*file\.bin\.part"
        ):
            fetch(shelf.source(), tmp_path)
        assert shelf.asked == []
        holder.communicate()
    assert fetch(shelf.source(), tmp_path).read_bytes() == CONTENTS


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BOLTZHASH_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("BOLTZHASH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "boltzhash"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path(os.path.expanduser("~/.cache/boltzhash"))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path(os.path.expanduser("~/Library/Caches/boltzhash"))
