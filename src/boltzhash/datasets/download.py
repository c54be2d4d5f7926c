"""Downloads into a cache: resumed where they were cut off, checked, and in place whole or not at all.

Why not pooch: it cannot resume, limit sizes or hold later downloads to the checksum of the first. Trying
several addresses and saying what went wrong would still be ours, and it would bring eight packages.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tqdm import tqdm

from boltzhash.storage.folders import sha256
from boltzhash.version import __version__

logger = logging.getLogger("boltzhash")

ATTEMPTS = 3  # in a row without a new byte
TIMEOUT = 30.0  # seconds without an answer
CHUNK = 2**16
CHECKSUMS = "checksums.json"


class DownloadError(OSError):
    """A file could not be fetched, or is not the file that was expected."""


@dataclass(frozen=True)
class Source:
    """Where a file comes from.

    ``addresses`` are tried in this order. ``sha256`` is None if the checksum is not known: then
    that of the first download is kept in the cache, and later downloads must have the same.
    """

    file: str
    addresses: tuple[str, ...]
    sha256: str | None = None
    max_bytes: int = 2**30


def cache_folder() -> Path:
    """``BOLTZHASH_CACHE``, or the platform's folder for caches."""
    if named := os.environ.get("BOLTZHASH_CACHE"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "boltzhash"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "boltzhash" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "boltzhash"


def fetch(source: Source, folder: Path | None = None) -> Path:
    """The path of a file in the cache, downloaded if it is not there yet.

    Parameters
    ----------
    source
        The file's name, addresses and checksum.
    folder
        The cache; by default :func:`cache_folder`.

    Raises
    ------
    DownloadError
        No address gives the file, or it has another checksum.
    """
    folder = folder or cache_folder()
    target = folder / source.file
    if target.is_file():
        _check(source, target, folder, f"delete {target} to download it again")
        return target
    folder.mkdir(parents=True, exist_ok=True)
    _known_checksums(folder)  # a damaged list should be noticed before the download, not after
    problems = []
    for address in source.addresses:
        try:
            part = _download(address, target, source.max_bytes)
            _accept(source, part, folder, address)
        except DownloadError as error:
            problems.append(f"{address}: {error}")
        else:
            os.replace(part, target)
            _state_path(target).unlink(missing_ok=True)
            return target
    part = _part_path(target)
    kept = f"; {part} keeps what has arrived, and the next call resumes from there"
    raise DownloadError(
        f"{source.file} could not be downloaded (from addresses that have not been tried with this "
        f"version): {'; '.join(problems)}"
        f"{kept if part.is_file() else ''}"
    )


# Checksums: known ones, or those of the first download if none is known.


def _accept(source: Source, part: Path, folder: Path, address: str) -> None:
    """Check what has arrived; a file that is not the expected one is removed."""
    try:
        digest = _check(source, part, folder, "it was not kept")
    except DownloadError:
        part.unlink()
        _state_path(folder / source.file).unlink(missing_ok=True)
        raise
    known = _known_checksums(folder)
    if source.sha256 is None and source.file not in known:
        logger.warning(
            "%s: boltzhash does not know the checksum of this file. It came from %s with sha256 %s, "
            "kept in %s: later downloads must have the same",
            *(source.file, address, digest, folder / CHECKSUMS),
        )
        known[source.file] = {"sha256": digest, "address": address}
        fresh = folder / (CHECKSUMS + ".part")
        fresh.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(fresh, folder / CHECKSUMS)


def _check(source: Source, path: Path, folder: Path, advice: str) -> str:
    digest = sha256(path)
    first = _known_checksums(folder).get(source.file, {}).get("sha256")
    expected = source.sha256 or first
    if expected is not None and digest != expected:
        kind = "sha256" if source.sha256 else "the sha256 of the first download,"
        raise DownloadError(f"{source.file}: expected {kind} {expected}, got {digest}; {advice}")
    return digest


def _known_checksums(folder: Path) -> dict[str, dict[str, str]]:
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return {name: {"sha256": entry["sha256"], **entry} for name, entry in known.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"{path} is damaged: {error!r}; delete it to start a new one") from None


# The download itself: ``file.part`` holds what has arrived, ``file.part.json`` what it is a part of.


class _Answer(NamedTuple):
    """What a server is about to send: from which byte, of how many, under which validator."""

    stream: Any  # of urllib
    start: int
    size: int | None
    validator: str | None


def _part_path(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _state_path(target: Path) -> Path:
    return target.with_name(target.name + ".part.json")


def _download(address: str, target: Path, max_bytes: int) -> Path:
    """Get the whole file as ``file.part``, resuming when cut off as long as something arrives."""
    if not address.startswith(("http://", "https://")):
        raise DownloadError("expected an http or https address")
    part, state_path, idle = _part_path(target), _state_path(target), 0
    with _locked(part) as file:
        while True:
            have = file.seek(0, os.SEEK_END)
            state = _read_state(state_path, address)
            with _ask(address, have, state.get("validator")) as answer:
                file.truncate(answer.start)
                if answer.size is not None and answer.size > max_bytes:
                    raise DownloadError(f"expected at most {max_bytes} bytes, got {answer.size}")
                state_path.write_text(
                    json.dumps({"address": address, "validator": answer.validator}),
                    encoding="utf-8",
                )
                problem = _copy(answer, file, max_bytes, target.name)
            now = file.seek(0, os.SEEK_END)
            if problem is None and now == (answer.size or now):
                os.fsync(file.fileno())
                return part
            idle = 0 if now > have else idle + 1
            if idle == ATTEMPTS:
                raise DownloadError(
                    f"the connection ended after {now} of {answer.size or 'unknown'} bytes "
                    f"({problem or 'closed'})"
                )


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """The part file, open for appending by one process at a time; an empty one is removed."""
    try:
        with part.open("ab") as file:
            with contextlib.suppress(ImportError):  # no such locks on Windows
                import fcntl

                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise DownloadError(f"another process is downloading to {part}") from None
            yield file
    finally:
        if part.stat().st_size == 0:
            part.unlink()
            part.with_name(part.name + ".json").unlink(missing_ok=True)


def _read_state(path: Path, address: str) -> dict[str, Any]:
    """What the part file is a part of; nothing if that is unknown or from another address."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and state.get("address") == address else {}


@contextlib.contextmanager
def _ask(address: str, have: int, validator: str | None) -> Iterator[_Answer]:
    """Ask for the rest of a file, or for all of it if nothing says that it is still the same.

    ``If-Range`` makes the server send all of a file that has changed.
    """
    wanted = {"Range": f"bytes={have}-", "If-Range": validator} if have and validator else {}
    with _open(address, wanted) as stream:
        answer = _answer(stream, have, validator) if stream.status != 416 else None
        if answer is not None:
            yield answer
            return
    with _open(address, {}) as stream:  # what we have is no longer a part of the file
        yield _whole(stream)


@contextlib.contextmanager
def _open(address: str, headers: dict[str, str]) -> Iterator[Any]:
    """The server's answer, which may be that it has no such range."""
    headers = {"User-Agent": f"boltzhash/{__version__}", **headers}
    request = urllib.request.Request(address, headers=headers)
    try:
        stream = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        stream = error
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"no answer: {getattr(error, 'reason', error)}") from None
    with stream:
        if stream.status not in (200, 206) and not (stream.status == 416 and "Range" in headers):
            raise DownloadError(f"HTTP {stream.status} {stream.reason}")
        yield stream


def _answer(stream: Any, have: int, validator: str | None) -> _Answer | None:
    """None if a partial answer is not the part that was asked for."""
    if stream.status != 206:
        return _whole(stream)
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", stream.headers.get("Content-Range", ""))
    if not found or int(found[1]) != have or _validator(stream) not in (None, validator):
        return None
    return _Answer(stream, have, None if found[2] == "*" else int(found[2]), validator)


def _whole(stream: Any) -> _Answer:
    length = stream.headers.get("Content-Length", "")
    return _Answer(stream, 0, int(length) if length.isdigit() else None, _validator(stream))


def _validator(stream: Any) -> str | None:
    """What tells this version of a file from others; a weak tag does not promise the same bytes."""
    etag: str = stream.headers.get("ETag") or ""
    modified: str | None = stream.headers.get("Last-Modified")
    return etag if etag and not etag.startswith("W/") else modified


def _copy(answer: _Answer, file: IO[bytes], max_bytes: int, name: str) -> str | None:
    """Append what arrives; returns why it stopped early, if it did."""
    bar = tqdm(
        desc=name, total=answer.size, initial=answer.start, unit="B", unit_scale=True, disable=None
    )
    done = answer.start
    with bar:
        try:
            while chunk := answer.stream.read(CHUNK):
                done += len(chunk)
                if done > max_bytes:
                    raise DownloadError(f"expected at most {max_bytes} bytes, got more")
                file.write(chunk)
                bar.update(len(chunk))
        except DownloadError:
            raise
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            file.flush()
    return None
