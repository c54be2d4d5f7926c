"""Result files: one JSON a run, written whole or not at all, read only where they are understood."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FORMAT = 2
# RESULTS names another folder, so that a trial does not touch what is committed.
FOLDER = Path(os.environ.get("RESULTS", Path(__file__).parent))


def write(path: Path, result: dict[str, Any], indent: int | None = 1) -> None:
    """Write beside and move, so that an interrupted run leaves no half a result.

    ``indent=None`` puts all on one line: for files of thousands of numbers.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    text = json.dumps({"format": FORMAT, **result}, indent=indent, sort_keys=True)
    part.write_text(text + "\n")
    part.replace(path)


def rounded(value: Any) -> Any:
    """Six digits, so that a file does not change with the last bit of a sum.

    >>> rounded({"tv": (0.12345678, 1)})
    {'tv': [0.123457, 1]}
    """
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def read(path: Path) -> dict[str, Any]:
    """A result, or a message that names the file and what is wrong with it."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as a result: {error}") from error
    found = result.get("format") if isinstance(result, dict) else None
    if found != FORMAT:
        raise SystemExit(
            f"{path} is a result of format {found}, this code reads {FORMAT}: move it away and run "
            "again, or use the version that wrote it; nothing was overwritten"
        )
    return dict(result)


def read_all(experiment: str) -> list[dict[str, Any]]:
    """All results of an experiment, in the order of their file names."""
    return [read(path) for path in sorted((FOLDER / experiment).glob("*.json"))]
