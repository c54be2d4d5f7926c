"""From results/*.json to the tables in README.md: what the scripts print, word for word.

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

import encoding
import larger_than_memory
import training
import training_gpu

HERE = Path(__file__).parent
TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "encoding": encoding.table,
    "training": training.table,
    "training_gpu": training_gpu.table,
    "larger_than_memory": larger_than_memory.table,
}
BLOCK = re.compile(r"(<!-- results/(\w+)\.json -->\n).*?(\n<!-- end -->)", re.DOTALL)


def written(page: str) -> str:
    """The page with every block made anew from its file."""

    def block(found: re.Match[str]) -> str:
        result = json.loads((HERE / "results" / f"{found[2]}.json").read_text(encoding="utf-8"))
        return f"{found[1]}\n{TABLES[found[2]](result)}\n{found[3]}"

    return BLOCK.sub(block, page)


def main() -> None:
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    if "--check" in sys.argv:
        sys.exit("README.md is not what results/ gives" if written(text) != text else 0)
    page.write_text(written(text), encoding="utf-8")


if __name__ == "__main__":
    main()
