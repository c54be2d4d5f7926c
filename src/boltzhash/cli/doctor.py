"""``boltzhash doctor``: whether a collection and its machine are well, and what to do if not."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from boltzhash.cli import installed
from boltzhash.cli.arguments import add_collection, add_json
from boltzhash.cli.collections import drift_lines, drift_of, what_was_checked
from boltzhash.cli.opening import opened
from boltzhash.cli.reporting import OK, SOMETHING_TO_DO, report
from boltzhash.errors import CollectionError, NoSuchCollectionError

if TYPE_CHECKING:
    from boltzhash.collection import Snapshot

FEW_KNOWN = 0.05  # of the documents may be without a word that the model knows


class Finding(NamedTuple):
    """One thing that was looked at; ``do`` is None if it is well."""

    check: str
    says: str
    do: str | None = None


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="check a collection and the machine, and say what to do",
        description="Look at what is compiled here, at the disk, whether the collection and its model "
        "can be read and are as they were written (everything is read, as with stats --check), at what "
        "was interrupted, and whether fitting again is worth it. Exit code 1 if there is something to "
        "do.",
    )
    add_collection(parser)
    add_json(parser)
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    from boltzhash.collection.engines import parse_location

    findings = list(_findings(options.collection))
    is_well = all(finding.do is None for finding in findings)
    facts = {
        "collection": parse_location(options.collection).shown(),
        "well": is_well,
        "findings": [finding._asdict() for finding in findings],
    }
    lines = []
    for finding in findings:
        lines.append(f"{'ok' if finding.do is None else '!!'}  {finding.check:<9} {finding.says}")
        if finding.do is not None:
            lines.append(f"{'':<14}→ {finding.do}")
    report(options, facts, "\n".join(lines))
    return OK if is_well else SOMETHING_TO_DO


def _findings(location: str) -> Iterator[Finding]:
    yield _machine()
    try:
        collection = opened(location)
    except NoSuchCollectionError:
        raise  # a wrong name is no illness
    except CollectionError as error:
        yield Finding("opening", str(error), "bring back a backup, or index the documents again")
        return
    with collection, collection.snapshot() as now:
        facts = now.stats()
        yield Finding(
            "opening",
            f"{facts['documents']} documents, {facts['bits']} bits ({facts['method']}), format version "
            f"{facts['format_version']}; the model can be read",
        )
        yield from _disk(location, facts)
        yield _integrity(now, location, facts)
        yield from _interrupted(collection.location, facts)
        if facts["documents"]:
            yield _words(facts)
            yield _drift(now)


def _machine() -> Finding:
    facts = installed.gather()
    says = (
        f"boltzhash {facts['boltzhash']}, Python {facts['python']}, {facts['platform']}, search kernel "
        f"{facts['kernel']}"
    )
    if not installed.missing_parts(facts["compiled"]):
        return Finding("machine", says)
    return Finding("machine", f"{says}, not all is compiled", installed.compiled(facts["compiled"]))


def _disk(location: str, facts: dict[str, Any]) -> Iterator[Finding]:
    """Of a collection in a folder; a server's disk is not seen from here."""
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER

    if parse_location(location).kind != FOLDER:
        return
    size, free = sum(facts["bytes"].values()), shutil.disk_usage(location).free
    says = f"{size / 1e6:,.1f} MB, {free / 1e6:,.0f} MB are free"
    if not os.access(location, os.W_OK):
        yield Finding(
            "disk", f"{says}; {location} cannot be written", "only search it, or change that"
        )
    elif free < size:
        yield Finding("disk", says, "make room: a rehash or a backup needs as much as there is")
    else:
        yield Finding("disk", says)


def _integrity(collection: Snapshot, location: str, facts: dict[str, Any]) -> Finding:
    try:
        collection.check()
    except CollectionError as error:
        place = shlex.quote(collection.location)
        return Finding(
            "integrity",
            str(error),
            f"bring back a backup, or rescue what can be read: boltzhash export {place} -o saved.jsonl",
        )
    return Finding("integrity", what_was_checked(location, facts))


def _interrupted(location: str, facts: dict[str, Any]) -> Iterator[Finding]:
    if facts["unfinished"]:
        name = facts["unfinished"]["name"]
        yield Finding("unfinished", f"`{name}` was interrupted", "run the same command again")
    if facts["rehash"]:
        done = facts["rehash"]["documents"]
        yield Finding(
            "rehash",
            f"{done} of {facts['documents']} documents are done",
            f"unless it is running now: boltzhash rehash {shlex.quote(location)} MODEL, the same model",
        )


def _words(facts: dict[str, Any]) -> Finding:
    n, unknown = facts["documents"], facts["no_known_word"]
    says = f"{unknown} documents have no word that the model knows"
    return Finding(
        "words", says, "fit again, with these documents" if unknown > FEW_KNOWN * n else None
    )


def _drift(collection: Snapshot) -> Finding:
    drift = drift_of(collection)
    *says, advice = drift_lines(drift, collection)
    if not isinstance(drift, str) and drift.is_worth_fitting:
        return Finding("drift", "; ".join(says), advice)
    return Finding("drift", "; ".join([*says, advice]))
