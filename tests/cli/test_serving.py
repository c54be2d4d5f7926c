"""``boltzhash serve`` with options that make no sense, and settings that travel to workers."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from boltzhash.server.settings import SETTINGS_VARIABLE, Settings
from command_line import refused, run_apart


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
        (("--allow-origin", "https://example.org/"), "got 'https://example.org/'"),
    ],
)
def test_wrong_options_are_named(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("serve", folder, *options)


@pytest.mark.parametrize("key", ["", "with space", "clé-secrète", "new\nline"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, folder: Path, key: str
) -> None:
    monkeypatch.setenv("BOLTZHASH_API_KEY", key)
    told = refused("serve", folder)
    assert "BOLTZHASH_API_KEY must be" in told
    assert not key or key not in told


def test_a_port_that_is_taken_is_named(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_apart("serve", folder, "--port", port)
    assert result.code == 5
    assert f"cannot listen on 127.0.0.1 port {port}" in result.err


def test_settings_reach_workers_and_the_key_does_not_travel_with_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BOLTZHASH_API_KEY", "secret-key")
    monkeypatch.setenv(SETTINGS_VARIABLE, "")
    settings = Settings(str(tmp_path), ("https://example.org",), False, "secret-key")
    settings.to_environment()
    assert "secret-key" not in os.environ[SETTINGS_VARIABLE]
    assert "secret-key" not in repr(settings)
    assert Settings.from_environment() == settings
