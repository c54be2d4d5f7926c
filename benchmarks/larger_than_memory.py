"""A corpus larger than memory: fit and encode it under a bound, and see what the process took.

    python benchmarks/larger_than_memory.py                     # 5 million documents, 4 GB
    python benchmarks/larger_than_memory.py --small             # 50,000 documents, 0.9 GB

The documents are made up as they are read and are nowhere kept. Peak memory is what the system says the
process had at most. Fitting takes few epochs: memory does not depend on how many.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from boltzhash import SemanticHasher, Training
from boltzhash.text.sampling import parse_memory
from synthetic import texts

RESULTS = Path(__file__).parent / "results" / "larger_than_memory.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="fewer documents, less memory")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--max-memory")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--length", type=int, default=25, help="words per document")
    options = parser.parse_args()
    n_documents = options.documents or (50_000 if options.small else 5_000_000)
    bound = options.max_memory or ("1.1 GB" if options.small else "4 GB")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    start = time.perf_counter()
    hasher = SemanticHasher(64, training=Training(epochs=options.epochs, device="cpu"))
    hasher.fit(texts(n_documents, length=options.length), max_memory=bound)
    fitted, after_fit = time.perf_counter() - start, peak()
    start = time.perf_counter()
    blocks = hasher.transform_blocks(texts(n_documents, length=options.length))
    n_encoded = sum(len(block.codes) for block in blocks)
    assert n_encoded == n_documents
    result = {
        "documents": n_documents,
        "words_a_document": options.length,
        "bound_gb": parse_memory(bound) / 1e9,
        "peak_gb_fit": round(after_fit / 1e9, 2),
        "peak_gb": round(peak() / 1e9, 2),
        "epochs": options.epochs,
        "seconds_fit": round(fitted),
        "seconds_encode": round(time.perf_counter() - start),
        "load_average": round(os.getloadavg()[0], 1),
    }
    print(table(result))
    if not options.small:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    assert peak() <= parse_memory(bound), "over the bound"


def table(result: dict[str, Any]) -> str:
    """As Markdown."""
    fit = f"fit, {result['epochs']} epoch, 64 bits, s"
    return "\n".join(
        [
            f"Load {result['load_average']}.",
            "",
            f"| documents | words each | bound, GB | peak, GB | {fit} | encode, s |",
            "| ---: | ---: | ---: | ---: | ---: | ---: |",
            f"| {result['documents']:,} | {result['words_a_document']} | {result['bound_gb']:g} | "
            f"{result['peak_gb']} | {result['seconds_fit']:,} | {result['seconds_encode']:,} |",
        ]
    )


def peak() -> int:
    """Bytes that this process had in memory at most; ``ru_maxrss`` counts what started it, too."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
