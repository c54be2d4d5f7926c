"""A uvicorn without the parts that the protocol is built on is named when the service starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from boltzhash.cli.parser import MISSING_EXTRA, main
from boltzhash.errors import MissingExtraError
from boltzhash.server.protocol import check_uvicorn


def test_a_part_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_uvicorn()
    monkeypatch.delattr(H11Protocol, "send_400_response")
    monkeypatch.setattr(H11Protocol, "__init__", lambda self: self.connections + self.app)
    gone = "its H11Protocol has no send_400_response, cycle, loop, transport. "
    with pytest.raises(MissingExtraError, match=rf"cannot use uvicorn 0\.\S+: {gone}.*\[serve\]"):
        check_uvicorn()


def test_the_service_does_not_start_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("boltzhash.server.run", "boltzhash.server.protocol"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn.protocols.http.h11_impl", None)
    assert main(["serve", str(tmp_path)]) == MISSING_EXTRA
    assert "serve cannot use uvicorn 0." in capsys.readouterr().err
