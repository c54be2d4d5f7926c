"""From results/*.json to the tables in README.md and docs/: what the scripts print, word for word.

    python benchmarks/report.py

The section on searching has plots as well: search_report.py writes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import busy
import cluster
import duplicates
import encoding
import fitting
import installing
import larger_than_memory
import multi_index
import training
import training_gpu

HERE = Path(__file__).parent
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "busy": busy.table,
    "cluster": cluster.table,
    "duplicates": duplicates.table,
    "encoding": encoding.table,
    "fitting": fitting.table,
    "installing": installing.table,
    "training": training.table,
    "training_gpu": training_gpu.table,
    "larger_than_memory": larger_than_memory.table,
    "multi_index": multi_index.table,
}
DOCS = HERE.parent / "docs"
PAGES = (
    HERE / "README.md",
    DOCS / "duplicates.md",
    DOCS / "install.md",
    DOCS / "large_corpora.md",
    DOCS / "models" / "mish.md",
    DOCS / "scale.md",
)
BLOCK = re.compile(r"(<!-- results/(\w+)\.json -->\n).*?(\n<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """The page with every block made anew from its file."""

    def block(found: re.Match[str]) -> str:
        result = json.loads((HERE / "results" / f"{found[2]}.json").read_text(encoding="utf-8"))
        return f"{found[1]}\n{TABLES[found[2]](result)}\n{found[3]}"

    return BLOCK.sub(block, page)


def main() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if "--check" not in sys.argv:
            page.write_text(written(text), encoding="utf-8")
        elif written(text) != text:
            sys.exit(f"{page.name} is not what results/ gives")


if __name__ == "__main__":
    main()
