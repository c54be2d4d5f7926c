"""Kills processes that write to a collection, and compares what is left with what they acknowledged.

    python tests/collection/kill_writers.py --kills 500

A child announces each operation, does it, and acknowledges it, until SIGKILL ends it at a random moment.
Then everything acknowledged must be there, the operation under way wholly or not at all, and every
checksum, count, code and index of words right. Children are forked, so that each is a process of its
own without the time of a start.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from boltzhash import LSH
from boltzhash.collection import Collection
from boltzhash.collection import collection as verbs
from boltzhash.collection.sqlite import codes_following
from boltzhash.collection.sqlite import words as word_snapshot

WORDS = "star planet moon orbit comet bread butter oven flour sugar ship sail anchor wave".split()
MOST_MESSAGES = 12  # a child lives for some of them, however slow the machine is,
LONGEST_DELAY = 0.04  # and then for up to so many seconds
MOST_DOCUMENTS = 400
MOST_FOUND = 10_000

Documents = dict[str, dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    verbs.BATCH = 16  # so that a rehash takes many transactions
    codes_following._MANY = 20  # so that codes.map is made anew all the time
    word_snapshot._MANY = 10  # and segments of words are
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(kill_often(Path(folder) / "collection", options.kills, options.seed)))


def kill_often(path: Path, n_kills: int, seed: int) -> dict[str, int]:
    """How often what was under way when the writer was killed."""
    hashers = [LSH(32, random_state=i).fit(WORDS) for i in range(3)]
    Collection.create(path, hashers[0]).close()
    rng = random.Random(seed)
    expected: Documents = {}
    model = hashers[0].fingerprint()
    counts: Counter[str] = Counter(kills=n_kills)
    for number in range(n_kills):
        operations = killed_child(path, hashers, rng)
        under_way = None if not operations or operations[-1] == "done" else operations[-1]
        acknowledged = [one for one, then in itertools.pairwise(operations) if then == "done"]
        for operation in acknowledged:
            expected = applied(operation, expected)
            model = operation.get("model", model)
        possible = [(expected, model, "lost")]
        if under_way is not None:
            possible.append(
                (applied(under_way, expected), under_way.get("model", model), "written")
            )
        counts["acknowledged"] += len(acknowledged)
        expected, model, outcome = examine(path, hashers, possible, number)
        if under_way is not None:
            counts[f"{under_way['verb']} {outcome}"] += 1
        counts["unfinished codes.map"] += len(list(path.glob(".codes.map.*")))
        for unfinished in path.glob(".codes.map.*"):
            unfinished.unlink()
    return dict(counts)


def killed_child(path: Path, hashers: list[LSH], rng: random.Random) -> list[Any]:
    """What a child announced and acknowledged before it was killed."""
    seed = rng.random()
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receive)
            write_for_ever(path, hashers, random.Random(seed), send)
        finally:
            os._exit(1)
    os.close(send)
    with os.fdopen(receive, "rb") as messages:
        first = b"".join(messages.readline() for _ in range(rng.randint(1, MOST_MESSAGES)))
        time.sleep(rng.uniform(0, LONGEST_DELAY))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        rest = messages.read()
    if not os.WIFSIGNALED(status):
        sys.exit(f"the writer ended by itself, status {status}: {first + rest!r}")
    return [
        json.loads(line) for line in (first + rest).splitlines(keepends=True) if line[-1:] == b"\n"
    ]


def write_for_ever(path: Path, hashers: list[LSH], rng: random.Random, send: int) -> None:
    with Collection.open(path) as collection:
        here: Documents = {str(d.id): d._asdict() for d in collection}
        while True:
            operation = random_operation(rng, here, hashers)
            os.write(send, json.dumps(operation).encode() + b"\n")
            if operation["verb"] in ("add", "upsert"):
                getattr(collection, operation["verb"])(operation["documents"])
            elif operation["verb"] == "delete":
                collection.delete(operation["ids"])
            elif operation["verb"] == "rehash":
                collection.rehash(next(h for h in hashers if h.fingerprint() == operation["model"]))
            else:
                collection.store.flush()
            os.write(send, b'"done"\n')
            here = applied(operation, here)


def random_operation(rng: random.Random, here: Documents, hashers: list[LSH]) -> dict[str, Any]:
    verb = rng.choices(["add", "upsert", "delete", "rehash", "rebuild"], [4, 3, 2, 1, 2])[0]
    if verb == "rehash":
        return {"verb": verb, "model": rng.choice(hashers).fingerprint()}
    if verb == "rebuild":
        return {"verb": verb}
    if verb == "delete" or len(here) > MOST_DOCUMENTS:
        n = rng.randint(1, 200) if len(here) > MOST_DOCUMENTS else rng.randint(1, 4)
        return {"verb": "delete", "ids": rng.sample(sorted(here), min(n, len(here)))}
    ids = [f"{rng.getrandbits(48):x}" for _ in range(rng.randint(1, 15))]
    if verb == "upsert":
        ids = list(dict.fromkeys([*ids[:3], *rng.sample(sorted(here), min(8, len(here)))]))
    documents = [
        {
            "id": id_,
            "text": " ".join(rng.choices(WORDS, k=5)),
            "metadata": {"year": rng.randint(2000, 2020)},
        }
        for id_ in ids
    ]
    return {"verb": verb, "documents": documents}


def applied(operation: dict[str, Any], documents: Documents) -> Documents:
    after = dict(documents)
    for document in operation.get("documents", ()):
        after[document["id"]] = document
    for id_ in operation.get("ids", ()):
        after.pop(id_, None)
    return after


def examine(
    path: Path, hashers: list[LSH], possible: list[tuple[Documents, str, str]], number: int
) -> tuple[Documents, str, str]:
    """Which of the possible states the collection is in; ends the program where it is in none."""
    with Collection.open(path) as collection, collection.snapshot() as now:
        now.check()
        documents = [document._asdict() for document in now]
        model = now.state.model
        hasher = next(h for h in hashers if h.fingerprint() == model)
        codes = now.rows().codes
        if documents and (codes != hasher.transform([d["text"] for d in documents])).any():
            sys.exit(f"after kill {number}: codes are not those of the model")
        for word in WORDS:
            having = {d["id"] for d in documents if word in d["text"].split()}
            if set(now.search(word, MOST_FOUND, by="words").ids) != having:
                sys.exit(f"after kill {number}: {word!r} is not found where it is")
    for state in possible:
        if documents == list(state[0].values()) and model == state[1]:
            return state
    sys.exit(f"after kill {number}: {len(documents)} documents that nobody wrote so")


if __name__ == "__main__":
    main()
