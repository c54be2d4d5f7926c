"""A billion documents on paper: what was measured with ten million, a hundred times.

``collection_report.py`` writes it into docs/scale.md from results/ten_million.json, search.json,
engines.json and cluster.json. Everything here is extrapolated, linearly, and says from what.
"""

from __future__ import annotations

import math
from typing import Any

from cluster import simulated

Results = dict[str, Any]

TIMES = 100  # ten million → a billion
FOLDERS = 100  # of ten million documents each, which is what was measured
CORES = 64  # of a machine that is rented by the hour; what is assumed of it is in the text
DOLLARS = 0.05  # a core-hour, as in the table of steps


def on_paper(ten_million: Results, search: Results, cluster: Results) -> str:
    """As Markdown."""
    ten = ten_million["folder, 10000000 documents"]
    (scan,) = (r for r in search["compared"] if (r["n"], r["bits"]) == (10_000_000, 64))
    rows = [
        ["", "10 million ●", "a billion ○"],
        ["---", "---", "---"],
        ["encoding (of one million ●)", *encoding(cluster)],
        ["adding: texts, codes and words", *adding(ten)],
        ["on disk", *on_disk(ten)],
        ["a search by words and codes", *searching(ten)],
        ["a search by codes alone, `ExactIndex`", *scanning(scan)],
        ["the codes", "80 MB", "8 GB, in memory"],
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "**What breaks first**, in this order:", "", *breaks(ten, cluster)]
    return "\n".join(lines)


def core_hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.1f} core-hours, {DOLLARS * hours:,.2f} dollars"


def encoding(cluster: Results) -> tuple[str, str]:
    seconds = cluster["one_process"] * 10**9 / cluster["documents"]
    driver = 60 * simulated(cluster, 10**9)
    return (
        f"{cluster['one_process'] * 10**7 / cluster['documents']:,.0f} s of CPU, reading them included",
        f"{core_hours(seconds)}; {seconds / CORES / 60:.0f} minutes on {CORES} cores, and with Ray "
        f"{driver:.0f} minutes of its driver, which puts the shards together",
    )


def adding(ten: Results) -> tuple[str, str]:
    row = ten["add"]
    alone = TIMES * row["CPU s"] / 3600
    return (
        f"{row['CPU s']:,.0f} s of CPU",
        f"{core_hours(TIMES * row['CPU s'])}; {FOLDERS} folders side by side on {CORES} cores "
        f"{math.ceil(FOLDERS / CORES) * row['CPU s'] / 60:.0f} minutes; one writer alone up to "
        f"{alone:.0f} hours",
    )


def on_disk(ten: Results) -> tuple[str, str]:
    sizes = ten["open"]["bytes"]
    parts = ", ".join(f"{name} {n / 1e9:.1f} GB" for name, n in sizes.items())
    return parts, f"{TIMES * sum(sizes.values()) / 1e9:,.0f} GB"


def searching(ten: Results) -> tuple[str, str]:
    cpu = ten["search"]["both, CPU p50 ms"]
    turns = math.ceil(FOLDERS / CORES)
    return (
        f"{cpu:.0f} ms of CPU",
        f"{TIMES * cpu / 1000:.1f} s of CPU: {FOLDERS} folders on {CORES} cores answer in about "
        f"{turns * cpu:.0f} ms, and {1000 * CORES / (TIMES * cpu):.0f} questions a second",
    )


def scanning(scan: Results) -> tuple[str, str]:
    return (
        f"{scan['single_ms']:.1f} ms on 2 cores; {scan['queries_per_s']:,.0f} a second in batches",
        f"{TIMES * scan['single_ms'] / 1000:.2f} s on 2 cores; {scan['queries_per_s'] / TIMES:.0f} a "
        "second in batches",
    )


def breaks(ten: Results, cluster: Results) -> list[str]:
    add, sizes = ten["add"], ten["open"]["bytes"]
    driver = 60 * simulated(cluster, 10**9)
    return [
        f"1. *One writer.* A folder has one, and adding takes {add['CPU s'] / 10:.0f} µs of CPU a "
        "document: at a billion that is about a day. So folders of ten million, each with a writer.",
        "2. *One question over all words.* Its time grows with the documents that have a word of it. "
        "Folders can answer side by side and their hits be merged by score, if documents are dealt out "
        "at random, so that a word is as rare in each; boltzhash has nothing that asks several folders.",
        f"3. *The disk*: {TIMES * sizes['words'] / 1e9:,.0f} GB of words and "
        f"{TIMES * sizes['database'] / 1e9:,.0f} GB of texts no longer stay in the system's memory.",
        f"4. *The driver of an encoding cluster*: {driver:.0f} minutes, whatever machines there are.",
        "",
        "The codes themselves break last: 8 GB, scanned as fast as memory is read.",
    ]
