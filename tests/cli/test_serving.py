"""``boltzhash serve`` with options that make no sense, and settings that travel to workers."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import httpx
import pytest

from boltzhash.server.settings import SETTINGS_VARIABLE, Settings
from command_line import refused, run_apart
from services import serving_in_a_thread


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "0"), "--workers must be at least 1, got 0"),
        (("--port", "70000"), "--port must be between 0 and 65535, got 70000"),
        (
            ("--allow-origin", "example.org"),
            "such as https://search.example.org, got 'example.org'",
        ),
        (("--allow-origin", "*"), "got '*'"),
        (("--allowed-hosts", "a.example,http://b"), "got 'http://b'"),
        (("--allowed-hosts", "a.example:80"), "a name without scheme and port"),
        (("--allowed-hosts", ""), "got ''"),
        (("--allow-origin", "https://example.org/"), "got 'https://example.org/'"),
    ],
)
def test_wrong_options_are_named(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("serve", folder, *options)


@pytest.mark.parametrize("variable", ["BOLTZHASH_API_KEY", "BOLTZHASH_READ_KEY"])
@pytest.mark.parametrize("key", ["", "with space", "clé-secrète", "new\nline"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, folder: Path, key: str, variable: str
) -> None:
    monkeypatch.setenv(variable, key)
    told = refused("serve", folder)
    assert f"{variable} must be" in told
    assert not key or key not in told


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_apart("serve", folder, "--port", port)
    assert result.code == 5
    assert f"cannot listen on 127.0.0.1 port {port}" in result.err


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("damaged", ["collection.sqlite", "models/*/model.safetensors"])
def test_a_damaged_collection_is_not_served(folder: Path, damaged: str, workers: int) -> None:
    """Two workers let connections in for 35 s, answered none, and ended with 0."""
    (file,) = folder.glob(damaged)
    file.write_bytes(b"This is not what was written." * 1000)
    result = run_apart("serve", folder, "--port", 0, "--workers", workers)
    assert (result.code, result.out) == (5, "")
    assert result.err.startswith("boltzhash: error: ")
    assert result.err.count("\n") == 1
    assert str(folder) in result.err


def test_a_collection_that_is_damaged_when_a_worker_starts_is_answered_for(folder: Path) -> None:
    """Only what the command does first would notice; a worker that ended would answer nobody."""
    (folder / "collection.sqlite").write_bytes(b"This is not a database." * 1000)
    with (
        serving_in_a_thread(Settings(str(folder))) as served,
        httpx.Client(base_url=f"http://127.0.0.1:{served.port}", timeout=30) as client,
    ):
        assert client.get("/healthz").status_code == 200
        for answer in (client.get("/readyz"), client.post("/v1/search", json={"text": "moon"})):
            assert answer.status_code == 500
            assert "see the log" in answer.json()["error"]["message"]


def test_settings_reach_workers_and_the_key_does_not_travel_with_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BOLTZHASH_API_KEY", "secret-key")
    monkeypatch.setenv("BOLTZHASH_READ_KEY", "reading-key")
    monkeypatch.setenv(SETTINGS_VARIABLE, "")
    settings = Settings(
        str(tmp_path), ("https://example.org",), ("a.example",), "secret-key", "reading-key"
    )
    settings.to_environment()
    for key in ("secret-key", "reading-key"):
        assert key not in os.environ[SETTINGS_VARIABLE]
        assert key not in repr(settings)
    assert Settings.from_environment() == settings
