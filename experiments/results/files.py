"""Result files: JSON Lines, a file for each sweep, a line for each run, in the order of the runs' names.

The same results always give the same bytes, in whatever order the runs end and however many processes
write: keys are sorted, the name of the run first. A file that is not understood is never replaced.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FORMAT = 2
# RESULTS names another folder, so that a trial does not touch what is committed.
FOLDER = Path(os.environ.get("RESULTS", Path(__file__).parent))

Result = dict[str, Any]


def read_all(*sweeps: str) -> list[Result]:
    """The results of these sweeps, in the order of their lines; none of a sweep that was never run."""
    return [renamed(result) for sweep in sweeps for result in _known(sweep).values()]


def write(sweep: str, *fresh: Result) -> None:
    """Put results, each named by its ``"run"``, in their places; a run that was there is replaced.

    The file is written beside and moved, so that an interrupted process loses no more than what it
    was about to write, and readers see the old file or the new one.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _one_process_at_a_time():
        path = FOLDER / f"{sweep}.jsonl"
        replaced = {result["run"] for result in fresh}
        known = {n: r for n, r in _known(sweep).items() if renamed(r)["run"] not in replaced}
        known |= {result["run"]: _in_order(result) for result in fresh}
        part = path.with_suffix(".part")
        with part.open("w") as file:
            file.writelines(json.dumps(known[run]) + "\n" for run in sorted(known))
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)


def read(path: Path) -> dict[str, Result]:
    """Results by the names of their runs, or a message that says which line is wrong, and how."""
    found: dict[str, Result] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise SystemExit(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        result = _checked(line, f"line {number} of {path}")
        if found.setdefault(result["run"], result) is not result:
            raise SystemExit(f"line {number} of {path} is a second result of {result['run']}")
    return found


def renamed(result: Result) -> Result:
    """A recorded result under today's names: what was called CorrSH may be SemanticHasher.

    >>> renamed({"run": "CorrSH-half-tmc-8-0", "settings": "CorrSH-half"})
    {'run': 'SemanticHasher-half-tmc-8-0', 'settings': 'SemanticHasher-half'}
    """
    settings, params = result.get("settings"), result.get("params", {})
    if settings is None:
        return result
    is_papers = params.get("neighbours") == 0 and params.get("contrast") == 0
    named = dict(result)
    if result.get("method") == "CorrSH" and "neighbours" in params and not is_papers:
        named["method"] = "SemanticHasher"
    if settings.split("-")[0] == "CorrSH" and not settings.startswith("CorrSH-published"):
        named["settings"] = settings.replace("CorrSH", "SemanticHasher", 1)
        named["run"] = result["run"].replace("CorrSH", "SemanticHasher", 1)
    return named


def _checked(line: bytes, place: str) -> Result:
    try:
        result = json.loads(line)
    except ValueError as error:
        raise SystemExit(f"{place} cannot be read as a result: {error}") from error
    format = result.get("format") if isinstance(result, dict) else None
    if format != FORMAT:
        raise SystemExit(
            f"{place} is a result of format {format}, this code reads {FORMAT}: move the file away and "
            "run again, or use the version that wrote it; nothing was overwritten"
        )
    if "run" not in result:
        raise SystemExit(f"{place} does not say which run it is of")
    return dict(result)


def _in_order(result: Result) -> Result:
    """As it stands in a file: the name of the run first, other keys sorted, tuples as lists.

    >>> _in_order({"seed": 0, "params": {"n": 1, "k": (2, 3)}, "run": "NASH-tmc-8-0"})
    {'run': 'NASH-tmc-8-0', 'format': 2, 'params': {'k': [2, 3], 'n': 1}, 'seed': 0}
    """
    ordered = json.loads(json.dumps({"format": FORMAT, **result}, sort_keys=True))
    return {"run": ordered["run"], **ordered}


def _known(sweep: str) -> dict[str, Result]:
    path = FOLDER / f"{sweep}.jsonl"
    return read(path) if path.exists() else {}


@contextmanager
def _one_process_at_a_time() -> Iterator[None]:
    """The lock is the folder's: a file that is replaced cannot be held on to."""
    folder = os.open(FOLDER, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


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
