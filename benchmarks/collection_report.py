"""From the result files to the tables of docs/collections.md, docs/scale.md and docs/retrieval.md.

    python benchmarks/collection_report.py            # rewrites the blocks between the marks
    python benchmarks/collection_report.py --check    # 1 where a block is not what it should be

What was measured is read from results/collection.json, engines.json, encoding.json, search.json,
ten_million.json, cluster.json and words.json; what is extrapolated is computed here and marked.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from billion import on_paper
from ten_million import BARS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
MARK = "<!-- {name}: written by benchmarks/collection_report.py -->"
END = "<!-- end of {name} -->"

DOLLARS = 0.05  # a core-hour: an assumption, no figure of ours
CORES = 2  # of the machine on which all was measured
MEASURED, EXTRAPOLATED = "●", "○"

Results = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; 1 where it would")
    options = parser.parse_args()
    stale = []
    for page, blocks in pages().items():
        path = ROOT / "docs" / page
        text = path.read_text(encoding="utf-8")
        new = text
        for name, block in blocks.items():
            new = with_block(new, name, block)
        if new != text:
            stale.append(page)
            if not options.check:
                path.write_text(new, encoding="utf-8")
    print(f"not up to date: {', '.join(stale)}" if stale else "all blocks are up to date")
    sys.exit(1 if stale and options.check else 0)


def pages() -> dict[str, dict[str, str]]:
    names = ("collection", "engines", "encoding", "search", "words", "ten_million", "cluster")
    collection, engines, encoding, search, words, ten_million, cluster = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8")) for name in names
    )
    return {
        "collections.md": {"costs": costs(collection)},
        "scale.md": {
            "steps": steps(figures(engines, encoding, search), ten_million),
            "ten million": every_step(ten_million),
            "engines": engine_table(engines),
            "billion": on_paper(ten_million, search, cluster),
        },
        "retrieval.md": {"speed": word_costs(words)},
    }


def with_block(text: str, name: str, block: str) -> str:
    """The page with what stands between the marks of ``name`` replaced."""
    begin, end = MARK.format(name=name), END.format(name=name)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"the marks {begin} and {end} are not there")
    return pattern.sub(lambda _: f"{begin}\n\n{block}\n\n{end}", text)


# docs/collections.md


def costs(one: Results) -> str:
    each = one["bytes a document"]
    load = one.get("load average of the last minutes")
    rows = {
        "on disk": f"{each['database']:.0f} bytes a document: {each['documents']:.0f} text and "
        f"metadata, {each['codes']:.0f} code, {each['index']:.0f} indexes; codes.map "
        f"{each['codes_file']:.0f} more",
        "adding": f"{one['documents a second']:,} documents a second, in {one['seconds to add']:.0f} s "
        "all of them (hashing included)",
        "opening, first search": f"{one['open, s']:.2f} s, {one['first search, s']:.2f} s (where "
        f"codes.map was lost: {one['first search without codes.map, s']:.1f} s, once)",
        "search by codes, p50 / p99": both(one["search by codes, ms"]),
        "with a filter asked before / a new one for 1 in 250 / for half": "; ".join(
            both(one[f"search by codes, {which}, ms"])
            for which in ("same filter", "new filter (1/250)", "new filter (half)")
        ),
        "the nearest 500 in the order of words": both(one["search by codes, order words, ms"]),
        "within 8 bits": both(one["within 8 bits, ms"]),
        "one document added, on disk": both(one["add one document, ms"]),
        "peak memory of the process that did all this": f"{one['peak memory, MB'] / 1000:.2f} GB",
        "load of the machine, 1, 5 and 15 minutes": ", ".join(map(str, load)) if load else "busy",
    }
    about = (
        f"{one['documents']:,} documents, {one['bits']} bits; {one['machine']}; search kernel "
        f"{one.get('kernel', 'none')}; boltzhash {one['boltzhash']}."
    )
    return "\n".join(
        [about, "", "| | |", "| --- | --- |", *(f"| {n} | {v} |" for n, v in rows.items())]
    )


def both(times: Results) -> str:
    return f"{short(times['p50'])} / {short(times['p99'])} ms"


# docs/scale.md


class Figures(NamedTuple):
    """What the larger steps are computed from; all of it was measured."""

    encoded: float  # documents a second
    added_to_postgres: float
    in_postgres: float  # bytes a document
    single: float  # ms of one query over ten million by ExactIndex
    batched: float  # queries a second


def figures(engines: Results, encoding: Results, search: Results) -> Figures:
    (ten,) = (r for r in search["compared"] if (r["n"], r["bits"]) == (10_000_000, 64))
    return Figures(
        encoding["documents_per_second"]["texts → codes, 2 threads"],
        engines["postgres, 1000000 documents"]["documents a second"],
        in_postgres(engines),
        ten["single_ms"],
        ten["queries_per_s"],
    )


def steps(of: Figures, measured: Results) -> str:
    head = ["documents", "run", "encode", "codes in memory", "on disk with texts", "a search"]
    rows = [[*head, "core-hours, dollars"], ["---"] * 7, *small_steps(measured), *large_steps(of)]
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", how_they_come_about(of)])


def small_steps(measured: Results) -> Iterator[list[str]]:
    """One folder; all of it was measured, by ten_million.py."""
    runs = {
        1_000: "`boltzhash encode` or a collection",
        100_000: "a collection in a folder",
        1_000_000: "a collection in a folder",
        10_000_000: "the same; PostgreSQL where others write too",
    }
    for n, run in runs.items():
        one = measured[f"folder, {n} documents"]
        times = one["search"]
        both, codes = (
            f"{short(times[f'{by}, p50 ms'])} ms (CPU {short(times[f'{by}, CPU p50 ms'])})"
            for by in ("both", "codes")
        )
        yield [
            documents(n),
            run,
            f"{seconds(one['encode']['s'])} {MEASURED}",
            f"{size(one['open']['bytes of codes in memory'])} {MEASURED}",
            f"{size(sum(one['open']['bytes'].values()))} {MEASURED}",
            f"{both} by words and codes, {codes} by codes {MEASURED}",
            f"{paid(one['add']['CPU s'] / CORES)} {MEASURED}" if n >= 1_000_000 else "–",
        ]


def every_step(measured: Results) -> str:
    """What all that one does with ten million documents takes, and with many in PostgreSQL."""
    folder = measured["folder, 10000000 documents"]
    in_postgres = [one for key, one in measured.items() if key.startswith("postgresql, ")]
    in_postgres.sort(key=lambda one: -int(one["about"]["documents"]))
    where = "in PostgreSQL, on the same machine as the client"
    return "\n\n".join(
        [
            step_table(folder, "in a folder", has_bars=True),
            step_table(measured["folder, 1000000 documents"], "in a folder"),
            *(step_table(one, where) for one in in_postgres),
        ]
    )


def step_table(one: Results, where: str, *, has_bars: bool = False) -> str:
    about = one["about"]
    bars = {step: bars_of(step, one[step]) if has_bars else "" for step in one}
    rows = [
        [label, figure(one[step]), bars[step], *costs_of(one[step])]
        for step, (label, figure) in STEPS.items()
        if step in one
    ]
    head = ["", "", "bar", "s", "s of CPU", "waited for a processor, s", "memory, MB", "load"]
    return "\n".join(
        [
            f"{documents(about['documents'])} documents {where}, 64 bits; {about['machine']}; search "
            f"kernel {about['kernel']}; boltzhash {about['boltzhash']}.",
            "",
            *(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]),
        ]
    )


def of_search(row: Results, name: str) -> str:
    """By the clock, and of the CPU."""
    p50, p99, cpu = (short(row[f"{name}, {which} ms"]) for which in ("p50", "p99", "CPU p50"))
    return f"{p50} / {p99} ms ({cpu})"


def bars_of(step: str, row: Results) -> str:
    """The bars of a step, and whether they were met."""
    found = []
    for (which, name), bar in BARS.items():
        if which == step and name in row:
            is_met = row[name] >= bar if name == "documents a second" else row[name] <= bar
            found.append(f"{bar:,g}{'' if is_met else ': missed'}")
    return ", ".join(found)


def costs_of(row: Results) -> list[str]:
    def whole(name: str) -> str:
        return f"{row[name]:,.0f}" if name in row else "–"

    memory = f"{row['of that its own, MB']:,}; with mapped files {row['peak MB']:,}"
    waited = whole("waited for a processor, s")
    return [whole("s"), whole("CPU s"), waited, memory, str(row["load before"])]


STEPS: dict[str, tuple[str, Callable[[Results], str]]] = {
    "add": (
        "adding, words included",
        lambda row: (
            f"{row['documents a second']:,} documents/s; slowest tenth "
            f"{row['slowest tenth, documents a second']:,}"
        ),
    ),
    "add codes": (
        "adding, codes alone",
        lambda row: (
            f"{row['documents a second']:,} documents/s; slowest tenth "
            f"{row['slowest tenth, documents a second']:,}"
        ),
    ),
    "open": (
        "opening; until the first answer by codes; by words and codes",
        lambda row: (
            f"{short(row['open, s'])}; {short(row['and search by codes, s'])}; "
            f"{short(row['and search, s'])} s"
        ),
    ),
    "search": (
        "search by words and codes; by codes: p50 / p99 (CPU time, p50)",
        lambda row: f"{of_search(row, 'both')}; {of_search(row, 'codes')}",
    ),
    "filter": (
        "the same with a filter asked before; with a new one for 1 in 250; for half",
        lambda row: "; ".join(
            f"{of_search(row, f'both, {which}')} and {of_search(row, f'codes, {which}')}"
            for which in ("asked before", "new", "new, half")
        ),
    ),
    "duplicates": (
        "near-duplicates",
        lambda row: (
            f"{row['found']:,} of {row['planted']:,} planted, {row['found beside them']:,} others"
        ),
    ),
    "map": ("map", lambda row: f"{row['points']:,} points"),
    "backup": ("backup", lambda row: size(row["bytes"])),
    "check": ("check", lambda row: "all of it"),
    "rehash": ("rehash", lambda row: f"{row['documents a second']:,} documents/s"),
    "delete": (
        "deleting a tenth",
        lambda row: (
            f"{row['deleted'] / row['s']:,.0f} documents/s; next search "
            f"{short(row['next search, s'])} s, then {of_search(row, 'both, afterwards')}"
        ),
    ),
}


def large_steps(of: Figures) -> Iterator[list[str]]:
    """Codes in memory, texts in an engine; nothing of it was tried."""
    n = 100_000_000
    yield [
        documents(n),
        "codes in `ExactIndex`, texts in an engine",
        f"{seconds(n / of.encoded)} ○",
        f"{size(8 * n)} ○",
        f"{size(n * of.in_postgres)} in PostgreSQL ○",
        f"{short(of.single * n / 1e7)} ms by `ExactIndex` ○",
        f"{paid(n / of.added_to_postgres)} ○",
    ]
    n = 1_000_000_000
    yield [
        documents(n),
        "codes in `ExactIndex`, texts in an engine",
        f"{seconds(n / of.encoded)} on {CORES} cores, "
        f"{seconds(n / of.encoded * CORES / 64)} on 64 ○",
        f"{size(8 * n)} ○",
        f"{size(n * of.in_postgres)} in PostgreSQL ○",
        f"{short(of.single * n / 1e10)} s by `ExactIndex` on {CORES} cores, "
        f"{short(n / 1e7 / of.batched)} s a query in batches ○",
        f"{paid(n / of.encoded)} to encode; {paid(n / of.added_to_postgres)} to add to PostgreSQL ○",
    ]


def how_they_come_about(of: Figures) -> str:
    return (
        "How they come about: up to 10 million each figure was measured with so many documents, and "
        "`encode` of their made-up texts; core-hours are the CPU time of adding, words included. "
        f"Beyond: encoding 20 Newsgroups at {of.encoded:,.0f} documents/s on {CORES} threads ●; "
        f"`ExactIndex` holds 8 bytes a document, takes {short(of.single)} ms for one query over 10 "
        f"million and answers {of.batched:,.0f} a second in batches ●; PostgreSQL "
        f"{of.in_postgres:.0f} bytes a document ●; adding "
        f"{of.added_to_postgres:,.0f} documents/s to PostgreSQL ●, encoding included."
    )


def paid(time: float) -> str:
    hours = CORES * time / 3600
    return f"{short(hours)}, {short(hours * DOLLARS)}"


def documents(n: int) -> str:
    """
    >>> documents(100_000), documents(10_000_000), documents(1_000_000_000)
    ('100,000', '10 million', '1 billion')
    """
    for word, factor in (("billion", 10**9), ("million", 10**6)):
        if n >= factor:
            return f"{n // factor} {word}"
    return f"{n:,}"


def in_postgres(engines: Results) -> float:
    return float(sum(engines["postgres, 1000000 documents"]["bytes a document"].values()))


def engine_table(engines: Results) -> str:
    columns = {
        "PostgreSQL, 200,000": engines["postgres, 200000 documents"],
        "PostgreSQL, 1 million": engines["postgres, 1000000 documents"],
    }

    def times(name: str) -> list[str]:
        found = [one.get(name) for one in columns.values()]
        return [f"{short(t['p50'])}, {short(t['p99'])}" if t else "–" for t in found]

    def space(one: Results) -> str:  # a result with an index has no bytes without it
        return "–" if "approximate" in one else f"{sum(one['bytes a document'].values()):.0f}"

    rows = {
        "documents added a second": [f"{one['documents a second']:,}" for one in columns.values()],
        "search, exact, ms (p50, p99)": times("search, exact, ms"),
        "search, exact, with a filter (1 of 250)": times("search, exact, filter (1/250), ms"),
        "get, ms": times("get, ms"),
        "add one document, ms": times("add one document, ms"),
        "bytes a document": [space(one) for one in columns.values()],
        "load of the machine": [str(one.get("load average", "busy")) for one in columns.values()],
    }
    slow = engines["postgres, 1000000 documents"]["search, exact, ms"]["p50"]
    after = (
        "Exact search is a scan, so its time grows with the documents and falls with cores: at 100 "
        f"million PostgreSQL would take some {slow / 10:.0f} s on {CORES} ○."
    )
    lines = [f"| | {' | '.join(columns)} |", "|" + " --- |" * (1 + len(columns))]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()]
    return "\n".join([*lines, "", after])


# docs/retrieval.md


def word_costs(found: Results) -> str:
    about, each = found["about"], found["with words"]["bytes a document"]
    plain, with_words, n = found["without words"], found["with words"], about["documents"]
    ratio, cpu_ratio = (plain[unit] / with_words[unit] for unit in ("s", "CPU s"))
    loads = [part["load before"] for name, part in found.items() if name != "about"]
    rivals = [name for name in ("tantivy", "fts5") if name in found]
    searches = {f'`by="{by}"`': found["search"][by] for by in ("both", "words", "codes")}
    searches |= {name: found[name]["search"] for name in rivals}
    taken = {
        "adding, codes only": plain,
        "adding, until the last word can be found": with_words,
        **{f"building {name}": found[name]["build"] for name in rivals},
        "first search of a process, opening included": found["first"]["open and search"],
        **{name: times for name, times in found["added"].items() if name != "load before"},
    }
    if "rebuilt" in found:
        taken["first search if the index was lost"] = found["rebuilt"]["open and search"]
    sizes = [f"{name}'s {found[name]['bytes'] / n:.0f}" for name in rivals]
    return "\n".join(
        [
            f"{n:,} documents; {about['machine']}; load of the machine {min(loads)} to {max(loads)}.",
            "",
            "| a search, ten hits | p50, ms | p99, ms | p50, ms of CPU | p99, ms of CPU |",
            "| --- | ---: | ---: | ---: | ---: |",
            *(
                f"| {name} | {' | '.join(f'{times[column]:.1f}' for column in times)} |"
                for name, times in searches.items()
            ),
            "",
            "| | s | s of CPU |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {t['s']:.2f} | {t['CPU s']:.2f} |" for name, t in taken.items()),
            "",
            f"Adding with words is {ratio:.2f} × as fast as without by the clock, {cpu_ratio:.2f} × by "
            f"CPU seconds. It took {with_words['peak MB']} MB at most, without words "
            f"{plain['peak MB']} MB. The index of words has {each['words_files']:.0f} bytes a document, "
            f"beside {each['database']:.0f} of the database; " + ", ".join(sizes) + ".",
        ]
    )


# Figures as one reads them


def short(number: float) -> str:
    """Two digits, or all before the point.

    >>> [short(number) for number in (0.0123, 0.4, 7.89, 20.78, 1101.9)]
    ['0.012', '0.4', '7.9', '21', '1,102']
    """
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def size(n_bytes: float) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{short(n_bytes / factor)} {unit}"
    return f"{n_bytes:.0f} bytes"


def seconds(time: float) -> str:
    for unit, factor in (("h", 3600), ("min", 60)):
        if time >= factor:
            return f"{short(time / factor)} {unit}"
    return f"{short(time)} s"


if __name__ == "__main__":
    main()
