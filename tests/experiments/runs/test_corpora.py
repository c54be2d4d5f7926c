"""The corpora of the experiments: what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.runs import corpora


def test_unknown_names_and_missing_data_are_said(
    monkeypatch: pytest.MonkeyPatch, small_corpus: Callable[[str], Path]
) -> None:
    with pytest.raises(SystemExit, match="unknown corpus 'brown'"):
        corpora.corpus("brown")
    monkeypatch.delenv("BOLTZHASH_DATA")
    with pytest.raises(SystemExit, match="set BOLTZHASH_DATA"):
        corpora.corpus("reuters")
