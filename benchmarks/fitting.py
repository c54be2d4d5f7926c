"""How long a default fit takes, from a thousand documents to ten million, and how much memory.

    BOLTZHASH_DATA=... python benchmarks/fitting.py                        # all of it, about an hour
    BOLTZHASH_DATA=... python benchmarks/fitting.py --small                # 1,000 documents, printed
    BOLTZHASH_DATA=... python benchmarks/fitting.py --only posts pages     # some rows

Each row is fitted in a process of its own, with the library's own choice of threads. Texts are written
to a file before the clock starts and read from it while it runs, as `boltzhash fit` reads them. Rows
that were measured before are kept unless they are measured again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from boltzhash import SemanticHasher, Training
from larger_than_memory import peak
from synthetic import texts

RESULTS = Path(__file__).parent / "results" / "fitting.json"
PAGE = 3_400  # characters of a long page


class Row(NamedTuple):
    """What is fitted, how many of it, and the seconds that this may take."""

    what: str
    n_documents: int
    bar: float


ROWS = {
    "posts": Row("posts of 20 Newsgroups", 1_000, 15),
    "pages": Row(f"pages of {PAGE:,} characters and more, made of such posts", 5_000, 120),
    "million": Row("made-up documents of 50 words", 1_000_000, 600),
    "ten-million": Row("made-up documents of 50 words", 10_000_000, 1_800),
}


def documents(name: str, n_documents: int) -> Iterator[str]:
    if name == "posts":
        return posts()
    return pages() if name == "pages" else texts(n_documents, length=50)


def posts() -> Iterator[str]:
    with gzip.open(Path(os.environ["BOLTZHASH_DATA"]) / "ng20.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def pages() -> Iterator[str]:
    page = ""
    for post in posts():
        page += post + "\n"
        if len(page) >= PAGE:
            yield page
            page = ""


def write_texts(name: str, n_documents: int, path: Path) -> None:
    """One document a line, as JSON, since posts have lines of their own."""
    some = (text for _, text in zip(range(n_documents), documents(name, n_documents), strict=False))
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(text) + "\n" for text in some)


def fit_file(path: Path, n_bits: int) -> None:
    """What the process of a row does; prints its figures as JSON."""
    load = os.getloadavg()[0]
    start, cpu = time.perf_counter(), time.process_time()
    with path.open(encoding="utf-8") as lines:
        hasher = SemanticHasher(n_bits, random_state=0, training=Training(device="cpu")).fit(
            map(json.loads, lines)
        )
    figures = {
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_gb": round(peak() / 1e9, 2),
        "trainings": 1
        + bool(hasher.neighbour_choice_ and hasher.neighbour_choice_.second_training),
        "load_average": round(load, 1),
    }
    print(json.dumps(figures))


def measure(name: str) -> dict[str, Any]:
    row = ROWS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts"
        write_texts(name, row.n_documents, path)
        command = [sys.executable, __file__, "--fit", str(path)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {"documents": row.n_documents, **json.loads(printed.splitlines()[-1])}


def table(result: dict[str, Any]) -> str:
    """As Markdown."""
    head = "| documents | | s | at most | CPU s | peak, GB | trainings | load before |"
    lines = [
        f"| {found['documents']:,} | {ROWS[name].what} | {found['seconds']:,.0f} | "
        f"{ROWS[name].bar:,.0f} | {found['cpu_seconds']:,.0f} | {found['peak_gb']} | "
        f"{found['trainings']} | {found['load_average']} |"
        for name, found in result.items()
    ]
    return "\n".join([head, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="print the first row, write nothing")
    parser.add_argument("--only", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--fit", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_file(options.fit, 64)
        return
    if options.small:
        print(table({"posts": measure("posts")}))
        return
    before = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name in options.only:
        before[name] = measure(name)
        result = {name: before[name] for name in ROWS if name in before}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(table({name: before[name]}).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
