"""What each extra weighs, and how long it takes from nothing to a first right answer with pip alone.

    python benchmarks/installing.py [EXTRA ...]

Builds a wheel and installs it in a fresh environment for each extra, with the versions of
constraints.txt: megabytes on the disk beside those of a bare install, and seconds that importing takes
(the fastest of three). In the bare one it then runs ``boltzhash demo`` and looks at the answer. Prints a
table and writes JSON. With EXTRA, these alone are measured anew.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "installing.json"
BARE = "none"
# What is imported when an extra is put to use, and what for.
IMPORTED = {
    BARE: ("boltzhash.collection, boltzhash.hashers", "index, search, keep collections"),
    "train": ("torch", "fit the methods that are networks; sklearn and approximate as well"),
    "sklearn": ("sklearn", "self-taught hashing, pipelines"),
    "approximate": ("faiss", "approximate search"),
    "parquet": ("pyarrow.parquet", "Parquet files"),
    "serve": ("fastapi, uvicorn, prometheus_client", "the service and its page"),
    "map": ("umap", "the map on the page"),
    "pandas": ("pandas", "reports as data frames"),
    "hdf5": ("h5py", "VDSH's files"),
    "postgres": ("psycopg", "collections in PostgreSQL"),
    "ray": ("ray", "encoding on a cluster"),
    "langchain": ("langchain_core.vectorstores", "a collection in LangChain"),
    "llama-index": ("llama_index.core.vector_stores", "a collection in LlamaIndex"),
    "haystack": ("haystack", "a collection in Haystack"),
    "mcp": ("mcp.server", "a collection as tools for assistants"),
}
QUESTION, ANSWER = "read a csv file", "csv"


def main() -> None:
    chosen = sys.argv[1:] or list(IMPORTED)
    with tempfile.TemporaryDirectory() as work:
        wheel = build(Path(work))
        result: dict[str, Any] = {"about": about(), "extras": {}}
        if sys.argv[1:]:
            result = json.loads(RESULT.read_text(encoding="utf-8"))
        for extra in chosen:
            result["extras"][extra] = measure(Path(work), wheel, extra)
            print(extra, result["extras"][extra], flush=True)
    bare = result["extras"][BARE]["megabytes"]
    for weighed in result["extras"].values():
        weighed["more"] = weighed["megabytes"] - bare
    print(table(result))
    RESULT.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def about() -> dict[str, Any]:
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "load": [round(load, 1) for load in os.getloadavg()],
    }


def build(work: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", work / "dist", ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (wheel,) = (work / "dist").glob("*.whl")
    return wheel


def measure(work: Path, wheel: Path, extra: str) -> dict[str, Any]:
    """One environment, which is deleted again with what holds it."""
    folder = work / extra
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    empty = megabytes(folder)
    start = time.monotonic()
    wanted = f"boltzhash[{extra}] @ {wheel.as_uri()}" if extra != BARE else str(wheel)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), wanted], check=True, cwd=work)
    installed = time.monotonic() - start
    weighed = {
        "megabytes": megabytes(folder) - empty,
        "install seconds": round(installed, 1),
        "import seconds": min(import_seconds(python, extra, work) for _ in range(3)),
    }
    if extra == BARE:
        weighed["demo seconds"] = first_answer(folder, work)
    subprocess.run(["rm", "-r", folder], check=True)
    return weighed


def megabytes(folder: Path) -> int:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return round(sum(path.stat().st_size for path in files) / 1e6)


def import_seconds(python: Path, extra: str, work: Path) -> float:
    modules = IMPORTED[extra][0]
    program = (
        f"import time; s = time.perf_counter(); import {modules}; print(time.perf_counter() - s)"
    )
    done = subprocess.run([python, "-c", program], check=True, capture_output=True, cwd=work)
    return round(float(done.stdout), 2)


def first_answer(folder: Path, work: Path) -> float:
    """Seconds of the demo, whose first hit for a question must be the right one."""
    start = time.monotonic()
    command = [str(folder / "bin" / "boltzhash"), "demo", "--output", str(work / "demo")]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=work).stdout
    seconds = round(time.monotonic() - start, 1)
    lines = shown.splitlines()
    first = lines[lines.index(QUESTION) + 1].split()
    assert (first[0], first[2].split(".")[0]) == ("1", ANSWER), first
    return seconds


def table(result: dict[str, Any]) -> str:
    """As docs/install.md shows it."""
    lines = ["| extra | for | MB more | import, s |", "| --- | --- | --- | --- |"]
    for extra, weighed in result["extras"].items():
        name = "(none)" if extra == BARE else f"`{extra}`"
        more = f"{weighed['megabytes']} in all" if extra == BARE else weighed["more"]
        lines.append(
            f"| {name} | {IMPORTED[extra][1]} | {more} | {weighed['import seconds']:.2f} |"
        )
    bare, about = result["extras"][BARE], result["about"]
    both = bare["install seconds"] + bare["demo seconds"]
    told = (
        f"From nothing to the first right answer, `pip install boltzhash` and `boltzhash demo`: "
        f"{bare['install seconds']:.0f} s and {bare['demo seconds']:.0f} s, together {both:.0f} s. "
        f"{about['machine']}; load of the machine {about['load'][0]}."
    )
    return "\n".join([*lines, "", told])


if __name__ == "__main__":
    main()
