"""From results/search.json to the plots and the section "Searching" of README.md.

python benchmarks/search_report.py
"""

from __future__ import annotations

import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
BEGIN, END = "<!-- searching: written by search_report.py -->", "<!-- end of searching -->"

BATCHED = {64: 8.0, 128: 2.5, 256: 1.5}  # with AVX-512
ONE_THREAD = {"avx512": 8.0, "avx512bw": 8.0, "avx2": 5.0}  # batched, at 64 bits
SINGLE = {64: 3.0, 128: 2.0, 256: 1.3}
OF_READ = 1.15  # a single query of 10 M codes of 64 bits
TIMES_SCAN = 20.0  # by tables, a query with fewer than 1,000 hits within 3 bits or fewer


def single_bar(row: dict[str, Any]) -> float:
    """What a single query should reach: nothing is faster than reading the codes once."""
    a_read = row["faiss_single_ms"] / row["read_ms"]
    return float(min(SINGLE[row["bits"]], a_read / OF_READ))


class Bar(NamedTuple):
    """A ratio that was measured, and the least or the most it should be."""

    what: str
    measured: float
    bar: float
    at_most: bool = False

    @property
    def reached(self) -> bool:
        return self.measured <= self.bar if self.at_most else self.measured >= self.bar

    def __str__(self) -> str:
        sign, verdict = "≤" if self.at_most else "≥", "reached" if self.reached else "MISSED"
        return f"{self.what:<58} {self.measured:>7.2f}   {sign} {self.bar:<4.3g}  {verdict}"


def bars_of(results: dict[str, Any]) -> list[Bar]:
    bars = []
    for row in results["compared"]:
        what = f"{row['n'] / 1e6:g} M x {row['bits']} bits"
        bars.append(Bar(f"{what}, batched, times faiss", row["batched"], BATCHED[row["bits"]]))
        for path, bar in ONE_THREAD.items() if "one_thread" in row else ():
            if path in row["one_thread"]["times_faiss"]:
                name = f"{what}, batched, {path}, one thread, times faiss"
                bars.append(Bar(name, row["one_thread"]["times_faiss"][path], bar))
        bars.append(Bar(f"{what}, single query, times faiss", row["single"], single_bar(row)))
        if (row["n"], row["bits"]) == (10_000_000, 64):
            bars.append(
                Bar(f"{what}, single query, of a plain read", row["of_read"], OF_READ, True)
            )
    for result in results["radius"]:
        for row in result["rows"]:
            what = f"{result['n'] / 1e6:g} M {result['kind']}, radius {row['radius']}, times a scan"
            bars.append(Bar(what, row["times_scan"], TIMES_SCAN))
    return bars


def print_bars(bars: list[Bar]) -> None:
    for bar in bars:
        print(bar)


def describe_machine(threads: int) -> dict[str, Any]:
    cpu = re.search(r"model name\s*: (.*)", _text("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s+(\d+)", _text("/proc/meminfo"))
    return {
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(int(memory[1]) / 1e6, 1) if memory else None,
        "threads": threads,
        "load_before": os.getloadavg()[0],
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "faiss-cpu", "boltzhash")},
        },
    }


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def section(results: dict[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    single = ", ".join(f"{bar:g} ({bits} bits)" for bits, bar in SINGLE.items())
    parts = [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB; {versions}; kernel "
        f"path {results['kernel']}; {machine['threads']} threads each; load before the run "
        f"{machine['load_before']:.1f}. k = {results['k']}, batches of {results['batch']} queries, "
        "codes of topics within topics. What is compared takes turns; "
        f"{results['counted']} of {results['rounds']} rounds counts. The bar of a single query is "
        f"{single} times faiss, or, where that is less, what {OF_READ} times a plain read would be.",
        _table(
            "codes | bits | batched, times faiss (bar) | single, times faiss (bar) | queries/s | "
            "faiss | single, ms | faiss, ms | plain read, ms (GB/s)",
            [
                f"{row['n'] / 1e6:g} M | {row['bits']} | {row['batched']:.1f} "
                f"({BATCHED[row['bits']]:g}) | {row['single']:.1f} ({single_bar(row):.2g}) | "
                f"{row['queries_per_s']:,.0f} | {row['faiss_queries_per_s']:,.0f} | "
                f"{row['single_ms']:.2f} | {row['faiss_single_ms']:.2f} | "
                f"{row['read_ms']:.2f} ({row['read_gb_per_s']:.0f})"
                for row in results["compared"]
            ],
        ),
        _one_thread(results["compared"]),
        _of_read(results),
        _radius(results["radius"]),
        "Every path of the kernel that runs on this machine, queries per second, batched:",
        _paths_table(results["paths"]),
        "Cost of a query against the number of codes, k and the width:",
        "![cost against N, k and width](search-cost.png)",
        _memory(results["memory"]),
        _approximate(results["approximate"]),
        "![queries per second against recall](search-recall.png)",
    ]
    return "\n\n".join(parts)


def _table(head: str, rows: list[str]) -> str:
    rule = "|".join([" --- "] * (head.count("|") + 1))
    return "\n".join(f"| {line} |" if line != rule else f"|{line}|" for line in [head, rule, *rows])


def _one_thread(rows: list[dict[str, Any]]) -> str:
    measured = {f"{row['n'] / 1e6:g} M": row["one_thread"] for row in rows if "one_thread" in row}
    loads = " and ".join(f"{one['load_before']:.1f}" for one in measured.values())
    paths = list(next(iter(measured.values()))["times_faiss"])
    lines = [
        [path, *(f"{one['times_faiss'][path]:.1f}{_bar(path)}" for one in measured.values())]
        for path in paths
    ]
    table = _table(
        " | ".join(["path, 64 bits, times faiss (bar)", *measured]),
        [" | ".join(line) for line in lines],
    )
    return (
        "Batched, every path, one thread each, in CPU time, which others on the machine disturb little "
        f"(load before {loads}):\n\n{table}"
    )


def _bar(path: str) -> str:
    return f" ({ONE_THREAD[path]:g})" if path in ONE_THREAD else ""


def _of_read(results: dict[str, Any]) -> str:
    (row,) = [r for r in results["compared"] if (r["n"], r["bits"]) == (10_000_000, 64)]
    return (
        f"A single query over 10 M codes of 64 bits takes {row['of_read']:.2f} times as long as reading "
        f"them once with the same threads and doing nothing (bar: at most {OF_READ})."
    )


def _radius(results: list[dict[str, Any]]) -> str:
    table = _table(
        "codes | radius | hits of a query | scan, ms | tables, ms | times a scan (bar)",
        [
            f"{result['n'] / 1e6:g} M {result['kind']} | {row['radius']} | {row['hits']:.0f} | "
            f"{row['scan_ms']:.2f} | {row['tables_ms']:.3f} | {row['times_scan']:.0f} ({TIMES_SCAN:g})"
            for result in results
            for row in result["rows"]
        ],
    )
    made = "; ".join(
        f"of {result['kind']} in {result['build_ms']:.0f} ms, as long as "
        f"{result['build_ms'] / result['rows'][-1]['scan_ms']:.0f} scans, load before "
        f"{result['load_before']:.1f}"
        for result in results
    )
    size = results[0]["table_bytes"]
    return (
        "All codes within a radius, one query at a time, queries with fewer than 1,000 hits: by tables, "
        "which `ExactIndex` makes when enough has been asked, beside a scan. Tables take "
        f"{size / 1e6:.0f} MB and were made {made}.\n\n{table}"
    )


def _paths_table(rows: list[dict[str, Any]]) -> str:
    widths = sorted({row["bits"] for row in rows})
    names = list(dict.fromkeys(row["path"] for row in rows))
    speed = {(row["path"], row["bits"]): row["queries_per_s"] for row in rows}
    head = " | ".join(["path, 1 M codes", *(f"{bits} bits" for bits in widths)])
    return _table(
        head, [" | ".join([n, *(f"{speed[n, bits]:,.0f}" for bits in widths)]) for n in names]
    )


def _memory(rows: list[dict[str, int]]) -> str:
    lines = [
        f"{row['n'] / 1e6:g} M | {row['codes'] / 1e6:.1f} | {row['mapped'] / 1e6:.1f} | "
        f"{row['added'] / 1e6:.1f}"
        for row in rows
    ]
    table = _table("codes | their size, MB | mapped files, MB | memory a search added, MB", lines)
    return (
        "Memory of a process that maps codes from a file and searches them (256 queries, then one, then "
        "a radius); mapped files are the codes and the libraries:\n\n" + table
    )


def _approximate(result: dict[str, Any]) -> str:
    table = _table(
        "recall asked | lists looked at | recall on new queries | queries/s | times exact",
        [
            f"{s['asked']:g} | {s['probes']} of {result['lists']} | {s['recall']:.3f} | "
            f"{s['queries_per_s']:,.0f} | {s['times_exact']:.1f}"
            for s in result["steps"]
        ]
        + [f"exact | all | 1 | {result['exact_queries_per_s']:,.0f} | 1"],
    )
    return (
        f"Approximate search of {result['n'] / 1e6:g} M codes of {result['bits']} bits "
        f"({result['codes']}), built in "
        f"{result['build_s']:.0f} s, recall measured on 1,000 queries that are not in it:\n\n{table}"
    )


def plot(results: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True)
    titles = {"n": "number of codes (64 bits)", "k": "k (64 bits)", "bits": "bits of a code"}
    for axis, (name, title) in zip(axes, titles.items(), strict=True):
        rows = results["curves"][name]
        for kind in ("single", "batched"):
            axis.plot(
                [row[name] for row in rows],
                [row[f"{kind}_ms"] for row in rows],
                marker="o",
                markersize=3,
                label=kind,
            )
        axis.set(xscale="log", yscale="log", xlabel=title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ms per query")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "search-cost.png", dpi=130)

    result = results["approximate"]
    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    steps = result["steps"]
    axis.plot(
        [s["recall"] for s in steps], [s["queries_per_s"] for s in steps], "o-", label="approximate"
    )
    axis.plot(1, result["exact_queries_per_s"], "s", label="exact")
    axis.set(
        yscale="log",
        xlabel="recall of the top 100",
        ylabel="queries per second",
        title=f"{result['n'] / 1e6:g} M codes of 64 bits",
    )
    axis.grid(alpha=0.3, which="both")
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(HERE / "search-recall.png", dpi=130)


def main() -> None:
    results = json.loads((HERE / "results" / "search.json").read_text(encoding="utf-8"))
    plot(results)
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{section(results)}\n\n{END}{after}", encoding="utf-8")
    print_bars(bars_of(results))


if __name__ == "__main__":
    main()
