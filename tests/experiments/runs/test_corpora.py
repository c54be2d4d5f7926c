"""The corpora of the experiments: what is refused."""

from __future__ import annotations

import pytest

from experiments.runs import corpora


def test_unknown_names_and_missing_data_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="unknown corpus 'brown'"):
        corpora.corpus("brown")
    monkeypatch.delenv("BOLTZHASH_DATA", raising=False)
    with pytest.raises(SystemExit, match="set BOLTZHASH_DATA"):
        corpora.corpus("reuters")
