"""Counts for Prometheus, of all worker processes together.

prometheus_client shares counts between processes through files in a folder that an environment variable
names before it is imported; :func:`share_between_processes` makes it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


@contextmanager
def share_between_processes() -> Iterator[None]:
    """Processes that are started before the block ends share their counts."""
    with tempfile.TemporaryDirectory(prefix="boltzhash-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER_VARIABLE]


class Metrics:
    """Requests by method, route and status, and how long they took."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry = CollectorRegistry()
        self._requests = Counter(
            "boltzhash_requests",
            "Requests that were answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "boltzhash_request_seconds",
            "From the headers of a request to the end of its answer",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "POST", "HEAD", "OPTIONS") else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, documents: int | None, generation: int | None) -> bytes:
        """The text that Prometheus reads; the two gauges are left out if there is no collection."""
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if FOLDER_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        counts = generate_latest(registry)
        lines = []
        for name, meaning, value in (
            ("boltzhash_documents", "Documents in the collection", documents),
            ("boltzhash_generation", "The collection's generation", generation),
        ):
            if value is not None:
                lines.append(f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {value}\n")
        return counts + "".join(lines).encode()
