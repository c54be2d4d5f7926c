"""``--skip-bad``: records that are no documents are left out, counted, and kept in a file."""

from __future__ import annotations

import argparse
import json
import logging
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boltzhash.corpus import BadRecord

logger = logging.getLogger("boltzhash")


class SkippedRecords:
    """What a run leaves out; call it with each record.

    They go into a file as they come, one JSON object per line: ``where``, ``problem`` and ``content``.
    It is made with the first of them, and takes the place of one that an earlier run wrote.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reasons: Counter[str] = Counter()

    def __call__(self, bad: BadRecord) -> None:
        if not self._reasons:
            _check_ours(self.path)
        try:
            with self.path.open("a" if self._reasons else "w", encoding="utf-8") as file:
                file.write(json.dumps(bad._asdict(), ensure_ascii=False) + "\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._reasons[bad.reason] += 1

    def report(self) -> dict[str, Any]:
        """Say how many were left out, and why; the same as facts for ``--json``."""
        n = self._reasons.total()
        if n == 0:
            return {"skipped": 0}
        reasons = "; ".join(f"{count} × {reason}" for reason, count in self._reasons.most_common())
        logger.warning("%d records were left out (%s): see %s", n, reasons, self.path)
        return {"skipped": n, "skipped_to": str(self.path)}


def skipped_records(options: argparse.Namespace, output: str) -> SkippedRecords | None:
    """Where records that are left out go: beside the output; None if none may be left out."""
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER

    if not options.skip_bad:
        return None
    if getattr(options, "features", None) is not None:
        raise ValueError(
            "--skip-bad would leave vectors of --features without their documents: leave the bad "
            "records out of both files instead"
        )
    location = parse_location(output)
    beside = (
        Path(output) if location.kind == FOLDER else location.name
    )  # of a server: its name, here
    return SkippedRecords(Path(f"{beside}.skipped.jsonl"))


def _check_ours(path: Path) -> None:
    """Refuse to write over a file that no run with --skip-bad has written."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    try:
        is_ours = {"where", "problem", "content"} == set(json.loads(first))
    except (ValueError, TypeError):
        is_ours = False
    if not is_ours:
        raise FileExistsError(
            f"{path} is where --skip-bad writes the records that it leaves out, and something else is "
            "there: move it away"
        )
