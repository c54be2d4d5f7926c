"""The command line held to its word: real runs, their output, exit codes and what they leave."""

import argparse
import contextlib
import csv
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import boltzhash
from boltzhash import CorrSH
from boltzhash.cli import demo
from boltzhash.cli import parser as cli
from boltzhash.cli.parser import build_parser, main
from boltzhash.collection import Collection
from boltzhash.corpus import Document
from boltzhash.hashers import HASHERS
from boltzhash.hashers.shared.deep import DEFAULT_EPOCHS
from boltzhash.storage.folders import FORMAT_VERSION
from boltzhash.training import loop as training

TOPICS = {
    "stars": "star planet moon orbit galaxy comet telescope nebula asteroid eclipse sky rocket",
    "bread": "bread butter flour oven yeast dough jam salt sugar bake crust honey",
    "court": "judge law jury trial verdict lawyer appeal crime witness evidence prison bail",
}
N_DOCUMENTS = 60
FIT = ("--bits", "16", "--epochs", "20")
DEADLINE = 60.0  # seconds after which something that should have happened did not


def make_documents(n: int = N_DOCUMENTS) -> list[dict[str, str]]:
    rng = random.Random(0)
    documents = []
    for number in range(n):
        topic = list(TOPICS)[number % 3]
        words = rng.choices(TOPICS[topic].split(), k=rng.randint(4, 10))
        documents.append({"id": f"{topic}-{number}", "text": " ".join(words) + "."})
    return documents


DOCUMENTS = make_documents()


def as_jsonl(documents: list[dict[str, str]]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


class Run(NamedTuple):
    """What a run of the command gave back."""

    code: int
    out: str
    err: str


def run(*arguments: object, stdin: str = "") -> Run:
    """The command in this process."""
    out, err = io.StringIO(), io.StringIO()
    here = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as stopped:  # argparse's way
                code = int(stopped.code or 0)
    finally:
        sys.stdin = here
    return Run(code, out.getvalue(), err.getvalue())


def succeed(*arguments: object, stdin: str = "") -> str:
    """What a run that must succeed, and have nothing to remark, prints."""
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.err) == (0, "")
    return result.out


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **variables}


def run_apart(*arguments: object, program: str | None = None, **options: Any) -> Run:
    """The command, or a program around it, in a process of its own."""
    how = ["-m", "boltzhash"] if program is None else ["-c", program]
    options = {"stdin": subprocess.DEVNULL, "env": environment(), **options}
    if "input" in options:
        del options["stdin"]
    done = subprocess.run(
        [sys.executable, *how, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
        **options,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def wait_for(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + DEADLINE
    while not what():
        assert process.poll() is None, f"ended too early: {process.communicate()}"
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.002)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """As in the processes that are compared with this one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Fitted(NamedTuple):
    """A corpus, a model of it and its codes; tests only read them."""

    corpus: Path
    model: Path
    codes: Path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    folder = tmp_path_factory.mktemp("fitted")
    fitted = Fitted(folder / "corpus.jsonl", folder / "model", folder / "codes")
    fitted.corpus.write_text(as_jsonl(DOCUMENTS))
    succeed("fit", fitted.corpus, "-o", fitted.model, *FIT)
    succeed("encode", fitted.model, fitted.corpus, "-o", fitted.codes)
    return fitted


@pytest.fixture(scope="module")
def other_model(fitted: Fitted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same but for the seed."""
    model = tmp_path_factory.mktemp("other") / "model"
    succeed("fit", fitted.corpus, "-o", model, *FIT, "--seed", 1)
    return model


@pytest.fixture(scope="module")
def fitted_apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    """The same in a process of its own, from another kind of corpus, and what it printed."""
    folder = tmp_path_factory.mktemp("apart")
    corpus = write_corpus("csv", folder)
    return run_apart("fit", corpus, "-o", folder / "model", *FIT), folder / "model"


@pytest.fixture
def model(fitted: Fitted, tmp_path: Path) -> Path:
    """A copy of the model, to be damaged."""
    return Path(shutil.copytree(fitted.model, tmp_path / "model"))


def search_hits(*arguments: object, stdin: str = "") -> list[dict[str, Any]]:
    """The hits of a search for one query."""
    (line,) = succeed("search", *arguments, "--json", stdin=stdin).splitlines()
    hits: list[dict[str, Any]] = json.loads(line)["hits"]
    return hits


# Fit, encode, search


@pytest.mark.parametrize("topic", TOPICS)
def test_search_finds_documents_of_the_topic(fitted: Fitted, topic: str) -> None:
    query = " ".join(TOPICS[topic].split()[:4])
    hits = search_hits(fitted.model, fitted.codes, query)
    assert len(hits) == 10
    assert sum(hit["id"].startswith(topic) for hit in hits) >= 8


def test_search_prints_rank_distance_and_id(fitted: Fitted) -> None:
    hits = search_hits(fitted.model, fitted.codes, "judge jury")
    first, *lines = succeed("search", fitted.model, fitted.codes, "judge jury").splitlines()
    assert first == "judge jury"
    assert lines == [f"{hit['rank']:>4} {hit['distance']:>4}  {hit['id']}" for hit in hits]
    assert [hit["rank"] for hit in hits] == list(range(1, 11))
    distances = [hit["distance"] for hit in hits]
    assert distances == sorted(distances)


def test_search_with_the_corpus_shows_the_text(fitted: Fitted) -> None:
    out = succeed(
        "search", fitted.model, fitted.codes, "judge jury", "-k", 5, "--corpus", fitted.corpus
    )
    texts = {document["id"]: document["text"] for document in DOCUMENTS}
    for line in out.splitlines()[1:]:
        _, _, name, shown = line.split(maxsplit=3)
        assert shown == texts[name]


def test_distances_are_those_of_the_stored_codes(fitted: Fitted) -> None:
    codes = np.load(fitted.codes / "codes.npy")
    query = boltzhash.load(fitted.model).transform(["comet sky"])[0]
    distances = np.unpackbits(codes ^ query, axis=1).sum(axis=1)
    order = np.argsort(distances, kind="stable")[:10]
    expected = [(DOCUMENTS[row]["id"], distances[row]) for row in order]
    hits = search_hits(fitted.model, fitted.codes, "comet sky")
    assert [(hit["id"], hit["distance"]) for hit in hits] == expected


def test_queries_come_one_a_line_from_standard_input(fitted: Fitted) -> None:
    stdin = "judge jury\n\n   \n  Brot und butter \nзвезда planet"
    lines = succeed("search", fitted.model, fitted.codes, "--json", stdin=stdin).splitlines()
    queries = ["judge jury", "Brot und butter", "звезда planet"]
    assert [json.loads(line)["query"] for line in lines] == queries
    given = succeed("search", fitted.model, fitted.codes, *queries, "--json")
    assert given.splitlines() == lines


def test_answers_to_several_queries_are_set_apart(fitted: Fitted) -> None:
    out = succeed("search", fitted.model, fitted.codes, "judge", "oven", "-k", 2)
    first, second = out.rstrip("\n").split("\n\n")
    assert first + "\n" == succeed("search", fitted.model, fitted.codes, "judge", "-k", 2)
    assert second + "\n" == succeed("search", fitted.model, fitted.codes, "oven", "-k", 2)


def test_no_queries_give_no_output(fitted: Fitted) -> None:
    result = run("search", fitted.model, fitted.codes, stdin="\n \n")
    assert result == Run(0, "", "boltzhash: no query came on standard input\n")


def test_a_query_may_follow_the_options(fitted: Fitted) -> None:
    expected = succeed("search", fitted.model, fitted.codes, "judge", "jury", "-k", "3")
    assert succeed("search", fitted.model, fitted.codes, "-k", "3", "judge", "jury") == expected
    assert succeed("search", "-k", "3", fitted.model, fitted.codes, "judge", "jury") == expected


def test_more_hits_than_documents_give_a_short_answer(fitted: Fitted) -> None:
    hits = search_hits(fitted.model, fitted.codes, "judge", "-k", 1000)
    assert sorted(hit["id"] for hit in hits) == sorted(document["id"] for document in DOCUMENTS)


def test_a_shorter_answer_is_the_beginning_of_a_longer_one(fitted: Fitted) -> None:
    ten = succeed("search", fitted.model, fitted.codes, "judge jury", "-k", 10).splitlines()
    three = succeed("search", fitted.model, fitted.codes, "judge jury", "-k", 3).splitlines()
    assert [line.split() for line in three] == [line.split() for line in ten[:4]]
    assert (len(three), len(ten)) == (4, 11)


# Rerank


def plain_tfidf(texts: list[str]) -> tuple[Any, Callable[[str], Any]]:
    """Rows of tf · idf of length 1, and the same for a query: no shared code."""
    counts = [Counter(text.rstrip(".").split()) for text in texts]
    vocabulary = sorted(set().union(*counts))
    frequency = np.array([sum(word in count for count in counts) for word in vocabulary])
    idf = np.log((1 + len(texts)) / (1 + frequency)) + 1

    def weigh(count: Counter[str]) -> Any:
        row = np.array([count[word] for word in vocabulary]) * idf
        return row / np.linalg.norm(row)

    return np.stack([weigh(count) for count in counts]), lambda text: weigh(Counter(text.split()))


@pytest.mark.parametrize("candidates", [12, 40, 500])
def test_rerank_orders_the_nearest_by_cosine(fitted: Fitted, candidates: int) -> None:
    query = "judge jury evidence"
    rows, weigh = plain_tfidf([document["text"] for document in DOCUMENTS])
    cosine = (rows @ weigh(query)).round(12)
    place = {document["id"]: row for row, document in enumerate(DOCUMENTS)}
    nearest = search_hits(fitted.model, fitted.codes, query, "-k", candidates)
    expected = sorted(nearest, key=lambda hit: -cosine[place[hit["id"]]])[:10]

    hits = search_hits(
        fitted.model,
        fitted.codes,
        query,
        "--corpus",
        fitted.corpus,
        "--rerank",
        "--candidates",
        candidates,
    )
    assert [(hit["id"], hit["distance"]) for hit in hits] == [
        (hit["id"], hit["distance"]) for hit in expected
    ]
    assert [hit["id"] for hit in expected] != [hit["id"] for hit in nearest[:10]]


def test_rerank_has_a_default_number(fitted: Fitted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "CANDIDATES", 12)
    arguments = (fitted.model, fitted.codes, "oven salt", "--corpus", fitted.corpus, "--rerank")
    assert search_hits(*arguments) == search_hits(*arguments, "--candidates", 12)
    assert search_hits(*arguments) != search_hits(*arguments, "--candidates", 60)


def test_rerank_needs_the_corpus(fitted: Fitted) -> None:
    result = run("search", fitted.model, fitted.codes, "judge", "--rerank")
    assert (result.code, result.out) == (2, "")
    message = "--rerank compares texts: give the encoded corpus with --corpus"
    assert result.err == f"boltzhash: error: {message}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", 0], "k must be at least 1, got 0"),
        (["-k", -3], "k must be at least 1, got -3"),
        (["-k", 0, "--rerank"], "k must be at least 1, got 0"),
        (["-k", -3, "--rerank"], "k must be at least 1, got -3"),
        (["--rerank", "--candidates", 0], "--candidates must be at least 1, got 0"),
        (["--rerank", "--candidates", -5], "--candidates must be at least 1, got -5"),
    ],
)
def test_numbers_of_hits_must_be_positive(
    fitted: Fitted, options: list[object], message: str
) -> None:
    arguments = (fitted.model, fitted.codes, "judge", "--corpus", fitted.corpus, *options)
    result = run("search", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            [*DOCUMENTS[:7], {**DOCUMENTS[7], "id": "new"}, *DOCUMENTS[8:]],
            "document 7 has the id 'new', the codes expect 'bread-7'",
        ),
        (
            [*DOCUMENTS, {"id": "extra", "text": "jam"}],
            "document 60 has the id 'extra', the codes expect no more",
        ),
        (DOCUMENTS[:-1], "it has 59 documents, the codes 60"),
    ],
    ids=["another id", "more", "fewer"],
)
def test_a_corpus_that_changed_since_is_refused(
    fitted: Fitted, tmp_path: Path, changed: list[dict[str, str]], problem: str
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(as_jsonl(changed))
    result = run("search", fitted.model, fitted.codes, "judge", "--corpus", corpus)
    assert (result.code, result.out) == (2, "")
    message = f"the corpus is not the one that was encoded: {problem}"
    assert result.err == f"boltzhash: error: {message}\n"


def test_standard_input_cannot_be_both_corpus_and_queries(fitted: Fitted) -> None:
    arguments = ("search", fitted.model, fitted.codes, "--corpus", "-")
    assert "standard input" in refused(*arguments, stdin="judge\n")


# JSON


def test_fit_as_json(fitted: Fitted, tmp_path: Path) -> None:
    report = json.loads(succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--json"))
    assert list(report) == [
        *("model", "method", "bits", "words", "distinct_codes", "bit_balance", "seconds"),
        *("epochs", "reconstruction", "kl"),
    ]
    n_words = len({word for words in TOPICS.values() for word in words.split()})
    assert report["model"] == str(tmp_path / "model")
    assert (report["bits"], report["words"], report["epochs"]) == (16, n_words, 20)
    assert report["reconstruction"] < 0 < report["kl"]
    assert 3 <= report["distinct_codes"] <= N_DOCUMENTS
    assert 0 < report["bit_balance"] <= 1
    assert report["seconds"] >= 0


def test_fit_for_humans_says_the_same(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)
    assert re.fullmatch(
        rf"wrote {re.escape(str(tmp_path / 'model'))}: CorrSH, 16 bits, 36 words, [\d.]+ s\n"
        r"\d+ distinct codes, bit balance 0\.\d\d\n"
        r"20 epochs: reconstruction -[\d.]+ and KL -?[\d.]+ nats a document\n",
        out,
    )


def test_methods_are_listed_with_their_papers() -> None:
    rows = [json.loads(line) for line in succeed("methods", "--json").splitlines()]
    assert [row["method"] for row in rows] == list(HASHERS)
    for row in rows:
        assert re.search(r"\((19|20)\d\d\)", row["reference"])
        assert row["summary"].endswith(".")
        kind = HASHERS[row["method"]]
        assert row["fit_needs"] == ("torch" if kind.needs_torch else None)
        assert row["summary"] in succeed("methods")


def test_every_method_can_be_chosen(fitted: Fitted, tmp_path: Path) -> None:
    output = tmp_path / "model"
    out = succeed("fit", fitted.corpus, "-o", output, "--method", "ITQ", "--bits", 16)
    assert out.startswith(f"wrote {output}: ITQ, 16 bits")
    assert succeed("encode", output, fitted.corpus, "-o", tmp_path / "codes")
    hits = search_hits(output, tmp_path / "codes", "planet orbit", "-k", 3)
    assert len(hits) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "Magic"], "--method must be one of CorrSH, "),
        (["--method", "ITQ", "--rank", 3], "--rank is no argument of ITQ"),
        (["--method", "LSH", "--epochs", 3], "--epochs is no argument of LSH"),
        (["--method", "NASH", "--published"], "--published is for CorrSH, got --method NASH"),
    ],
)
def test_a_method_that_is_none_or_lacks_the_option(
    fitted: Fitted, tmp_path: Path, options: list[Any], message: str
) -> None:
    result = run("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert names(tmp_path) == []


def test_hits_with_no_known_word_are_flagged(fitted: Fitted, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": "odd", "text": "zzzz qqqq"}, {"id": "fine", "text": "planet orbit"}]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    hits = search_hits(fitted.model, tmp_path / "codes", "planet", "-k", 2)
    assert {hit["id"]: hit.get("no_known_word") for hit in hits} == {"odd": True, "fine": None}
    out = succeed("search", fitted.model, tmp_path / "codes", "planet")
    assert re.search(r"odd +\(no word of it is known\)", out)


def test_encode_as_json(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes", "--json")
    assert json.loads(out) == {
        "codes": str(tmp_path / "codes"),
        "documents": N_DOCUMENTS,
        "bits": 16,
        "no_known_word": 0,
    }


def test_encode_for_humans_says_the_same(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes")
    assert out == f"wrote {tmp_path / 'codes'}: 60 codes of 16 bits\n"


def test_search_as_json(fitted: Fitted) -> None:
    out = succeed("search", fitted.model, fitted.codes, "judge", "oven", "--json")
    for line in out.splitlines():
        answer = json.loads(line)
        assert list(answer) == ["query", "known_words", "hits"]
        assert answer["known_words"] == 1
        assert {tuple(hit) for hit in answer["hits"]} == {("rank", "distance", "id")}
    hits = search_hits(fitted.model, fitted.codes, "judge", "--corpus", fitted.corpus)
    assert {tuple(hit) for hit in hits} == {("rank", "distance", "id", "snippet")}


def test_explain_as_json(fitted: Fitted) -> None:
    bits = [json.loads(line) for line in succeed("explain", fitted.model, "--json").splitlines()]
    assert [bit["bit"] for bit in bits] == list(range(16))
    for bit in bits:
        assert list(bit) == ["bit", "up", "down"]
        up, down = ([weight for _, weight in bit[side]] for side in ("up", "down"))
        assert (len(up), len(down)) == (8, 8)
        assert up == sorted(up, reverse=True)
        assert down == sorted(down)
        assert up[-1] > down[-1]


def test_explain_for_humans_says_the_same(fitted: Fitted) -> None:
    out = succeed("explain", fitted.model, "--words", 3)
    bits = map(json.loads, succeed("explain", fitted.model, "--words", 3, "--json").splitlines())
    lines = []
    for bit in bits:
        up, down = (" ".join(word for word, _ in bit[side]) for side in ("up", "down"))
        lines += [f"bit {bit['bit']:<4} on:  {up}", f"         off: {down}"]
    assert out.splitlines() == lines


def test_explain_wants_a_positive_number_of_words(fitted: Fitted) -> None:
    result = run("explain", fitted.model, "--words", -1)
    assert (result.code, result.out) == (2, "")
    assert "-1" in result.err


# Demo


def test_the_demo_answers_its_questions_and_mine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    documents = [Document(d["id"], f"name in words\n\n{d['text']}") for d in DOCUMENTS]
    monkeypatch.setattr(demo, "docstring_corpus", lambda: documents)
    monkeypatch.setattr(demo, "CorrSH", lambda **settings: CorrSH(**settings, epochs=10))
    kept = str(tmp_path / "kept")
    lines = succeed("demo", "planet orbit", "--output", kept).splitlines()
    assert lines[0].startswith("60 docstrings read in ")
    for question in (*demo.QUESTIONS, "planet orbit"):
        assert lines.count(question) == 1
    last = lines[lines.index("planet orbit") + 1 :]
    hits = [line.split() for line in last if re.match(r" +\d+ +\d+  \w+-\d+ +\w", line)]
    assert [int(hit[0]) for hit in hits] == [1, 2, 3, 4, 5] * 2
    assert {"planet", "orbit"}.intersection(word.rstrip(".") for word in hits[5][3:])
    assert lines[-1].endswith(f"boltzhash serve {kept}")
    with Collection.open(kept) as collection:
        assert [(d.id, d.text) for d in collection] == [(d.id, d.text) for d in documents]
    monkeypatch.setattr(demo, "CorrSH", None)  # what was learned is used again
    again = succeed("demo", "planet orbit", "--output", kept).splitlines()
    assert again[again.index("planet orbit") :] == lines[lines.index("planet orbit") :]
    monkeypatch.setattr(demo, "docstring_corpus", lambda: documents[1:])
    refused = run("demo", "--output", kept)
    assert (refused.code, "something else" in refused.err) == (5, True)


# Corpora


def write_corpus(kind: str, folder: Path) -> Path:
    path = folder / f"corpus.{kind}"
    if kind == "jsonl":
        path.write_text(as_jsonl(DOCUMENTS))
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(as_jsonl(DOCUMENTS).encode()))
    elif kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["id", "text"])
            writer.writeheader()
            writer.writerows(DOCUMENTS)
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(DOCUMENTS), path)
    else:
        path.mkdir()
        for number, document in enumerate(DOCUMENTS):
            (path / f"{number:03}.txt").write_text(document["text"])
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "parquet", "folder"])
def test_every_kind_of_corpus_gives_the_same_codes(
    fitted: Fitted, tmp_path: Path, kind: str
) -> None:
    codes = tmp_path / "codes"
    succeed("encode", fitted.model, write_corpus(kind, tmp_path), "-o", codes)
    expected = contents(fitted.codes)
    if kind == "folder":
        expected["ids.jsonl"] = b"".join(b'"%03d.txt"\n' % number for number in range(60))
    assert contents(codes) == expected


def test_standard_input_gives_the_same_codes(fitted: Fitted, tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    succeed("encode", fitted.model, "-", "-o", codes, stdin=as_jsonl(DOCUMENTS))
    assert contents(codes) == contents(fitted.codes)


def test_the_fields_can_be_named(fitted: Fitted, tmp_path: Path) -> None:
    renamed = [{"name": d["id"], "body": d["text"], "text": "not this"} for d in DOCUMENTS]
    fields = ("--text-field", "body", "--id-field", "name")
    codes = tmp_path / "codes"
    succeed("encode", fitted.model, "-", "-o", codes, *fields, stdin=as_jsonl(renamed))
    assert contents(codes) == contents(fitted.codes)


def test_an_encoding_can_be_named(fitted: Fitted, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    line = json.dumps({"id": "é", "text": "jam"}, ensure_ascii=False)
    corpus.write_text(line + "\n", encoding="latin-1")
    result = run("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    assert result.code == 2
    assert "line 1: expected utf-8 text" in result.err
    succeed("encode", fitted.model, corpus, "-o", tmp_path / "codes", "--encoding", "latin-1")
    assert (tmp_path / "codes" / "ids.jsonl").read_text() == '"é"\n'


# Same seed, same bytes


def test_the_same_seed_gives_the_same_bytes(
    fitted: Fitted, fitted_apart: tuple[Run, Path], tmp_path: Path
) -> None:
    _, model = fitted_apart
    assert contents(model) == contents(fitted.model)
    codes = tmp_path / "codes"
    assert run_apart("encode", model, fitted.corpus, "-o", codes).code == 0
    assert contents(codes) == contents(fitted.codes)


def test_a_bound_on_memory_with_room_for_all_changes_nothing(
    fitted: Fitted, tmp_path: Path
) -> None:
    succeed("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--max-memory", "2GB")
    assert contents(tmp_path / "model") == contents(fitted.model)


def test_another_seed_gives_others(fitted: Fitted, other_model: Path, tmp_path: Path) -> None:
    succeed("encode", other_model, fitted.corpus, "-o", tmp_path / "codes")
    one, other = contents(fitted.model), contents(other_model)
    assert one["model.safetensors"] != other["model.safetensors"]
    assert one["vocabulary.json"] == other["vocabulary.json"]
    assert contents(fitted.codes)["codes.npy"] != contents(tmp_path / "codes")["codes.npy"]


def test_others_may_read_what_is_written(fitted: Fitted, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        succeed("fit", fitted.corpus, "-o", tmp_path / "model", "--bits", 8, "--epochs", 2)
        succeed("encode", tmp_path / "model", fitted.corpus, "-o", tmp_path / "codes")
    finally:
        os.umask(mask)
    for folder in (tmp_path / "model", tmp_path / "codes"):
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
        assert modes == dict.fromkeys(modes, "0o644")
        assert oct(folder.stat().st_mode & 0o777) == "0o755"


# Documents and queries without a known word


def test_documents_without_a_known_word_are_counted_and_listed(
    fitted: Fitted, tmp_path: Path
) -> None:
    texts = ["planet", "zebra", "", "jam", "the of and"]
    corpus, codes = tmp_path / "corpus.jsonl", tmp_path / "codes"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    result = run("encode", fitted.model, corpus, "-o", codes, "--json")
    assert (result.code, json.loads(result.out)["no_known_word"]) == (0, 3)
    assert result.err == (
        "boltzhash: 3 documents have no word that the model knows; they share the code of the "
        "empty document and are listed in no_known_word.npy\n"
    )
    assert np.load(codes / "no_known_word.npy").tolist() == [1, 2, 4]
    stored = np.load(codes / "codes.npy")
    hasher = boltzhash.load(fitted.model)
    np.testing.assert_array_equal(stored[[1, 2, 4]], np.repeat(hasher.transform([""]), 3, axis=0))
    np.testing.assert_array_equal(stored[[0, 3]], hasher.transform(["planet", "jam"]))


def test_a_query_without_a_known_word_says_so(fitted: Fitted) -> None:
    _, note, *hits = succeed("search", fitted.model, fitted.codes, "zebra").splitlines()
    assert note == "  (the model knows no word of this query: these hits mean nothing)"
    assert len(hits) == 10
    answer = json.loads(succeed("search", fitted.model, fitted.codes, "zebra", "--json"))
    assert (answer["known_words"], len(answer["hits"])) == (0, 10)


# Exit code 2: wrong arguments, bad input


def refused(*arguments: object, stdin: str = "", code: int = 2) -> str:
    """The message of a run that must fail, in one line and without a traceback."""
    result = run(*arguments, stdin=stdin)
    assert (result.code, result.out) == (code, "")
    prefix = "boltzhash: error: "
    assert result.err.startswith(prefix)
    assert result.err.count("\n") == 1
    return result.err.removeprefix(prefix).rstrip("\n")


GOOD_LINE = '{"text": "planet orbit"}\n'
BAD_CORPORA = {
    "broken JSON": (
        GOOD_LINE * 2 + '{"text": \n',
        "{corpus}, line 3: not valid JSON: Expecting value (column 9)",
    ),
    "a missing field": (
        GOOD_LINE + '{"body": "x"}\n',
        "{corpus}, line 2: expected a field 'text', got the fields: 'body'",
    ),
    "a text that is none": (
        '{"text": 7}\n',
        "{corpus}, line 1: field 'text' must be a string, got int 7",
    ),
}


@pytest.mark.parametrize("command", ["fit", "encode"])
@pytest.mark.parametrize("problem", BAD_CORPORA)
def test_a_bad_record_is_named(fitted: Fitted, tmp_path: Path, command: str, problem: str) -> None:
    content, message = BAD_CORPORA[problem]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(content)
    arguments = [corpus] if command == "fit" else [fitted.model, corpus]
    expected = message.format(corpus=corpus)
    assert refused(command, *arguments, "-o", tmp_path / "output") == expected
    assert names(tmp_path) == ["corpus.jsonl"]


def test_a_missing_corpus_is_named(fitted: Fitted, tmp_path: Path) -> None:
    gone = tmp_path / "gone.jsonl"
    message = f"{gone}: expected a file or a folder, got no such path"
    assert refused("fit", gone, "-o", tmp_path / "model") == message
    assert refused("encode", fitted.model, gone, "-o", tmp_path / "codes") == message
    assert refused("search", fitted.model, fitted.codes, "jam", "--corpus", gone) == message
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("", "the corpus is empty: at least 2 documents are needed"),
        (GOOD_LINE, "at least 2 documents are needed to fit, got 1"),
        ('{"text": "the"}\n{"text": "of"}\n', "no word is left for the vocabulary"),
        ('{"text": ""}\n{"text": "!"}\n', "2 documents"),
    ],
    ids=["empty", "one document", "stop words", "no words"],
)
def test_a_corpus_to_learn_nothing_from(tmp_path: Path, documents: str, message: str) -> None:
    assert message in refused("fit", "-", "-o", tmp_path / "model", stdin=documents)
    assert names(tmp_path) == []


@pytest.mark.parametrize("n", [2, 50])
def test_identical_documents_are_refused(tmp_path: Path, n: int) -> None:
    message = refused("fit", "-", "-o", tmp_path / "model", stdin=GOOD_LINE * n)
    assert f"{n} documents" in message
    assert names(tmp_path) == []


def test_nothing_to_encode(fitted: Fitted, tmp_path: Path) -> None:
    message = refused("encode", fitted.model, "-", "-o", tmp_path / "codes")
    assert message == "- is empty: there is nothing to encode"
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bits", 12], "n_bits must be a multiple of 8 between 8 and 4096, got 12"),
        (["--bits", 0], "n_bits must be a multiple of 8 between 8 and 4096, got 0"),
        (["--rank", -1], 'rank must be an integer of 0 or more, or "full", got -1'),
        (["--rank", "half"], "rank must be an integer of 0 or more, or \"full\", got 'half'"),
        (["--published", "--rank", "half"], 'rank must be an integer of 0 or more, or "full"'),
        (["--published", "--rank", -10], 'rank must be an integer of 0 or more, or "full"'),
        (["--epochs", 0], "epochs must be a positive integer or None, got 0"),
        (["--learning-rate", 0], "learning_rate must be a number above 0, got 0.0"),
        (["--learning-rate", "nan"], "learning_rate must be a number above 0, got nan"),
        (["--max-words", 0], "max_words must be a positive integer, got 0"),
        (["--max-memory", "lots"], "max_memory must be a number of bytes or like"),
        (["--max-memory", "50MB"], "max_memory must be at least "),
        (["--language", "klingon"], "language must be one of dutch, english, "),
        (["--device", "abacus"], "device must be \"auto\" or a torch device, got 'abacus'"),
        (["--text-field", "body"], "line 1: expected a field 'body'"),
        (["--encoding", "klingon"], "encoding: expected one that Python knows, got 'klingon'"),
    ],
)
def test_a_wrong_argument_of_fit_is_named(
    fitted: Fitted, tmp_path: Path, options: list[object], message: str
) -> None:
    assert message in refused("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert names(tmp_path) == []


def test_a_full_rank_fit_as_published(fitted: Fitted, tmp_path: Path) -> None:
    options = ("--bits", 8, "--epochs", 20, "--published", "--rank", "full")
    succeed("fit", fitted.corpus, "-o", tmp_path / "model", *options)
    assert boltzhash.load(tmp_path / "model").get_params()["rank"] == "full"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_named(fitted: Fitted, tmp_path: Path) -> None:
    message = refused("fit", fitted.corpus, "-o", tmp_path / "model", "--device", "cuda")
    assert "device" in message


@pytest.mark.parametrize("command", [["encode"], ["search"], ["explain"]])
def test_what_is_not_a_model_folder(fitted: Fitted, tmp_path: Path, command: list[str]) -> None:
    arguments: dict[str, list[object]] = {
        "encode": [fitted.corpus, "-o", tmp_path / "codes"],
        "search": [fitted.codes, "judge"],
        "explain": [],
    }
    empty, gone = tmp_path / "empty", tmp_path / "gone"
    empty.mkdir()
    expected = {
        empty: f"{empty} is not a boltzhash model folder: config.json is missing",
        gone: f"{gone} is not a folder; expected a boltzhash model folder",
        fitted.corpus: f"{fitted.corpus} is not a folder; expected a boltzhash model folder",
        fitted.codes: f"{fitted.codes} holds a 'boltzhash codes'; expected a 'boltzhash model'",
    }
    for folder, message in expected.items():
        assert refused(*command, folder, *arguments[command[0]]) == message
    assert names(tmp_path) == ["empty"]


def test_codes_of_another_model(fitted: Fitted, other_model: Path) -> None:
    assert refused("search", other_model, fitted.codes, "judge") == (
        f"{fitted.codes} was encoded by another model: encode the corpus again with this one"
    )


def damage_weights(model: Path, change: Callable[[bytes], bytes]) -> None:
    path = model / "model.safetensors"
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights[:1000],
        lambda weights: b"",
        lambda weights: weights[:-1] + bytes([weights[-1] ^ 1]),
        lambda weights: weights + b"\0",
    ],
    ids=["truncated", "emptied", "one bit", "one byte more"],
)
def test_damaged_weights(fitted: Fitted, model: Path, change: Callable[[bytes], bytes]) -> None:
    damage_weights(model, change)
    message = refused("search", model, fitted.codes, "judge")
    assert message == (
        f"{model / 'model.safetensors'} is damaged: its contents are not those that were saved "
        "with config.json"
    )


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.json"])
def test_a_model_that_is_not_whole(fitted: Fitted, model: Path, name: str) -> None:
    (model / name).unlink()
    message = refused("search", model, fitted.codes, "judge")
    assert message == f"{model} is not a whole model: {name} is missing"


def test_a_changed_vocabulary(fitted: Fitted, model: Path) -> None:
    path = model / "vocabulary.json"
    path.write_text(path.read_text().replace("judge", "juror"))
    assert f"{path} is damaged" in refused("search", model, fitted.codes, "judge")


def change_config(model: Path, **changes: object) -> None:
    """With None, a key is taken out."""
    path = model / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: v for key, v in config.items() if v is not None}))


def test_a_model_of_a_newer_format(fitted: Fitted, model: Path) -> None:
    change_config(model, format_version=FORMAT_VERSION + 1)
    assert refused("search", model, fitted.codes, "judge") == (
        f"{model} has format version {FORMAT_VERSION + 1}; this boltzhash reads up to "
        f"{FORMAT_VERSION}. Update boltzhash"
    )


@pytest.mark.parametrize("key", ["format", "format_version", "class", "params", "sha256"])
def test_a_config_with_something_missing(fitted: Fitted, model: Path, key: str) -> None:
    change_config(model, **{key: None})
    assert str(model) in refused("search", model, fitted.codes, "judge")


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "Unheard"},
        {"class": 7},
        {"params": {"unheard": 1}},
        {"params": {"n_bits": 8}},
        {"params": []},
        {"sha256": []},
    ],
    ids=str,
)
def test_a_config_that_does_not_fit(
    fitted: Fitted, model: Path, changes: dict[str, object]
) -> None:
    change_config(model, **changes)
    assert str(model) in refused("search", model, fitted.codes, "judge")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unheard"],
        ["fit"],
        ["fit", "corpus.jsonl"],
        ["fit", "corpus.jsonl", "-o", "model", "--bits", "many"],
        ["fit", "corpus.jsonl", "-o", "model", "--unheard"],
        ["encode", "model"],
        ["search", "model"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_is_none(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("usage: boltzhash")


# Exit code 3: something is not installed


@pytest.fixture
def without(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """An environment in which a package cannot be imported."""

    def hide(package: str) -> dict[str, str]:
        folder = tmp_path / "hidden"
        folder.mkdir()
        (folder / f"{package}.py").write_text(f"raise ImportError('no {package} here')\n")
        path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        return environment(PYTHONPATH=path)

    return hide


def test_fit_without_torch_says_what_to_install(
    fitted: Fitted, tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    output = tmp_path / "model"
    result = run_apart("fit", fitted.corpus, "-o", output, env=without("torch"))
    message = "fit needs torch, which is not installed: pip install 'boltzhash[train]'"
    assert result == Run(3, "", f"boltzhash: error: {message}\n")
    assert not output.exists()


def test_encode_and_search_work_without_torch(
    fitted: Fitted, tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    env, codes = without("torch"), tmp_path / "codes"
    assert run_apart("encode", fitted.model, fitted.corpus, "-o", codes, env=env).code == 0
    assert contents(codes) == contents(fitted.codes)
    result = run_apart(
        *("search", fitted.model, codes, "judge jury", "--corpus", fitted.corpus, "--rerank"),
        env=env,
    )
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) == 11


NO_TORCH = """
import sys
from boltzhash.cli.parser import main

for arguments in sys.argv[1:]:
    code = main(arguments.split("|"))
    assert code == 0, code
heavy = {"torch", "sklearn", "matplotlib", "pandas", "pyarrow"}.intersection(sys.modules)
assert not heavy, heavy
"""


def test_only_fit_imports_torch(fitted: Fitted, tmp_path: Path) -> None:
    commands: list[list[object]] = [
        ["encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes"],
        ["search", fitted.model, fitted.codes, "judge", "--corpus", fitted.corpus, "--rerank"],
        ["explain", fitted.model],
    ]
    arguments = ["|".join(map(str, command)) for command in commands]
    result = run_apart(*arguments, program=NO_TORCH)
    assert (result.code, result.err) == (0, "")


def test_parquet_without_pyarrow_says_what_to_install(
    fitted: Fitted, tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    corpus = tmp_path / "corpus.parquet"
    corpus.touch()
    arguments = ("encode", fitted.model, corpus, "-o", tmp_path / "codes")
    result = run_apart(*arguments, env=without("pyarrow"))
    message = "Parquet needs pyarrow, which is not installed: pip install 'boltzhash[parquet]'"
    assert result == Run(3, "", f"boltzhash: error: {message}\n")
    assert not (tmp_path / "codes").exists()


# Exit code 4: training failed


@pytest.mark.parametrize("rate", ["1", "100", "1e6", "1e20"])
def test_an_absurd_learning_rate_is_named_and_writes_nothing(
    fitted: Fitted, tmp_path: Path, rate: str
) -> None:
    arguments = ("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--learning-rate", rate)
    assert "learning_rate" in refused(*arguments, code=4)
    assert not (tmp_path / "model").exists()


def test_a_failed_fit_leaves_no_checkpoint_to_go_on_from(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command would only fail again."""
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", -1)
    arguments = ("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--learning-rate", "1e20")
    refused(*arguments, code=4)
    assert names(tmp_path) == []


# Exit code 5: a file cannot be read or written


@pytest.mark.parametrize("inside", [False, True], ids=["is a file", "is inside a file"])
def test_an_output_that_cannot_be_written(fitted: Fitted, tmp_path: Path, inside: bool) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("mine")
    output = occupied / "output" if inside else occupied
    fit = refused("fit", fitted.corpus, "-o", output, "--bits", 8, "--epochs", 2, code=5)
    encode = refused("encode", fitted.model, fitted.corpus, "-o", output, code=5)
    assert str(occupied) in fit
    assert str(occupied) in encode
    assert occupied.read_text() == "mine"
    assert names(tmp_path) == ["occupied"]


def test_an_output_that_cannot_be_written_is_refused_before_training(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not after hours of it."""
    trained = []
    monkeypatch.setattr(training, "train", lambda *_, **__: trained.append(1))
    (tmp_path / "occupied").write_text("mine")
    with contextlib.suppress(Exception):
        run("fit", fitted.corpus, "-o", tmp_path / "occupied", *FIT)
    assert not trained


@pytest.mark.parametrize("command", ["fit", "encode"])
def test_a_folder_that_is_not_ours_is_not_replaced(
    fitted: Fitted, tmp_path: Path, command: str
) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1.txt").write_text("years of work")
    arguments: dict[str, list[object]] = {
        "fit": [fitted.corpus, "--bits", 8, "--epochs", 2],
        "encode": [fitted.model, fitted.corpus],
    }
    result = run(command, *arguments[command], "-o", mine)
    assert contents(mine) == {"chapter1.txt": b"years of work"}
    assert result.code in (2, 5)
    assert str(mine) in result.err


def test_codes_do_not_replace_their_model(fitted: Fitted, model: Path) -> None:
    result = run("encode", model, fitted.corpus, "-o", model)
    assert contents(model) == contents(fitted.model)
    assert result.code in (2, 5)
    assert str(model) in result.err


def test_an_empty_folder_is_filled(fitted: Fitted, tmp_path: Path) -> None:
    (tmp_path / "codes").mkdir()
    succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes")
    assert contents(tmp_path / "codes") == contents(fitted.codes)


def test_a_link_is_followed_and_leaves_nothing_behind(fitted: Fitted, tmp_path: Path) -> None:
    shutil.copytree(fitted.codes, tmp_path / "codes")
    (tmp_path / "codes" / "ids.jsonl").unlink()
    (tmp_path / "link").symlink_to("codes")
    succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "link")
    assert contents(tmp_path / "link") == contents(fitted.codes)
    assert names(tmp_path) == ["codes", "link"]


SMALL_FILES_ONLY = """
import resource, sys
from boltzhash.cli.parser import main

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


def test_a_full_disk_leaves_the_old_model(fitted: Fitted, model: Path) -> None:
    arguments = (10_000, "fit", fitted.corpus, "-o", model, *FIT, "--seed", 2)
    result = run_apart(*arguments, program=SMALL_FILES_ONLY)
    assert contents(model) == contents(fitted.model)
    assert names(model.parent) == ["model"]
    assert (result.code, result.out) == (5, "")
    assert re.fullmatch(r"boltzhash: error: .*File too large.*\n", result.err)


def test_a_full_disk_leaves_the_old_codes(fitted: Fitted, tmp_path: Path) -> None:
    codes = Path(shutil.copytree(fitted.codes, tmp_path / "codes"))
    arguments = (200, "encode", fitted.model, fitted.corpus, "-o", codes)
    result = run_apart(*arguments, program=SMALL_FILES_ONLY)
    assert contents(codes) == contents(fitted.codes)
    assert names(tmp_path) == ["codes"]
    assert (result.code, result.out) == (5, "")
    assert re.fullmatch(r"boltzhash: error: .*File too large.*\n", result.err)


def test_a_model_that_could_not_be_saved_need_not_be_fitted_again(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint may go when the model is on the disk, and not before."""
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", -1)
    arguments = ("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(CorrSH, "save", full_disk)
        assert run(*arguments).code == 5
    assert names(tmp_path) == ["model.checkpoint"]

    epochs = count_epochs(monkeypatch)
    assert run(*arguments).code == 0
    assert len(epochs) < 20
    assert contents(tmp_path / "model") == contents(fitted.model)
    assert names(tmp_path) == ["model"]


def count_epochs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by one with every epoch that is trained from here on."""
    epochs: list[int] = []
    epoch = training._epoch

    def counted(*arguments: Any) -> Any:
        epochs.append(1)
        return epoch(*arguments)

    monkeypatch.setattr(training, "_epoch", counted)
    return epochs


# Exit code 130: interrupted

INTERRUPTIBLE = """
import signal, sys
from boltzhash.training import loop as training
from boltzhash.cli.parser import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored in the background
training.SECONDS_BETWEEN_CHECKPOINTS = -1
sys.exit(main(sys.argv[1:]))
"""


def start(*arguments: object, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def test_an_interrupted_fit_goes_on_to_the_same_model(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_epochs = 200
    options = ("--bits", 8, "--epochs", n_epochs)
    model, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    with start("fit", fitted.corpus, "-o", model, *options) as process:
        wait_for(checkpoint.exists, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (130, "")
    assert err == (
        f"boltzhash: {checkpoint} keeps what is done; the same command goes on from there\n"
        "boltzhash: interrupted\n"
    )
    assert names(tmp_path) == ["model.checkpoint"]
    done = len(json.loads((checkpoint / "config.json").read_text())["history"])
    assert 0 < done < n_epochs

    epochs = count_epochs(monkeypatch)
    resumed = run("fit", fitted.corpus, "-o", model, *options, "--json")
    assert resumed.code == 0
    assert len(epochs) == n_epochs - done
    assert str(checkpoint) in resumed.err
    assert json.loads(resumed.out)["epochs"] == n_epochs
    assert names(tmp_path) == ["model"]

    whole = tmp_path / "whole"
    report = json.loads(succeed("fit", fitted.corpus, "-o", whole, *options, "--json"))
    assert len(epochs) == n_epochs - done + n_epochs
    assert contents(model) == contents(whole)
    different = {"model", "seconds"}
    assert {k: v for k, v in json.loads(resumed.out).items() if k not in different} == {
        k: v for k, v in report.items() if k not in different
    }


def test_a_checkpoint_of_another_fit_is_not_gone_on_from(
    fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "SECONDS_BETWEEN_CHECKPOINTS", -1)
    epoch = training._epoch

    def interrupted(*arguments: Any) -> Any:
        if arguments[-1] == 3:
            raise KeyboardInterrupt
        return epoch(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training, "_epoch", interrupted)
        assert run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT, "--seed", 3).code == 130
    assert names(tmp_path) == ["model.checkpoint"]
    assert run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT).code == 0
    assert contents(tmp_path / "model") == contents(fitted.model)


def test_a_damaged_checkpoint_is_named(fitted: Fitted, tmp_path: Path) -> None:
    checkpoint = tmp_path / "model.checkpoint"
    checkpoint.mkdir()
    result = run("fit", fitted.corpus, "-o", tmp_path / "model", *FIT)
    assert result.code == 2
    assert f"error: {checkpoint} is not a boltzhash checkpoint folder" in result.err
    assert names(tmp_path) == ["model.checkpoint"]


def test_an_interrupted_encode_leaves_nothing(fitted: Fitted, tmp_path: Path) -> None:
    arguments = ("encode", fitted.model, "-", "-o", tmp_path / "codes")
    with start(*arguments, stdin=subprocess.PIPE) as process:
        wait_for(lambda: names(tmp_path), process)  # the folder under construction
        process.send_signal(signal.SIGINT)
        # Standard input stays open: only the signal can end this.
        code = process.wait(timeout=DEADLINE)
        out, err = process.communicate()
    assert (code, out, err) == (130, "", "boltzhash: interrupted\n")
    assert names(tmp_path) == []


# Memory

MANY_DOCUMENTS = """
import sys

for number in range(int(sys.argv[1])):
    print('{"id": %d, "text": "planet orbit%s"}' % (number, " ." * 1500))
"""
PEAK_MEMORY = """
import resource, sys
from boltzhash.cli.parser import main

code = main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""


def test_memory_does_not_grow_with_the_corpus(fitted: Fitted, tmp_path: Path) -> None:
    """3 KB a document: all at once, the larger corpus would take 21 MB more than the smaller."""
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = []
    for n in (1024, 8 * 1024):
        with subprocess.Popen(
            [sys.executable, "-c", MANY_DOCUMENTS, str(n)], stdout=subprocess.PIPE
        ) as source:
            arguments = ("encode", fitted.model, "-", "-o", tmp_path / "codes")
            result = run_apart(*arguments, program=PEAK_MEMORY, stdin=source.stdout)
        assert result.code == 0
        report, peak = result.out.splitlines()
        assert report.endswith(f": {n} codes of 16 bits")
        peaks.append(int(peak) * unit)
    assert peaks[1] - peaks[0] < 8e6


# Pipes and terminals


def test_in_a_pipe_there_is_no_progress_bar(fitted_apart: tuple[Run, Path]) -> None:
    result, model = fitted_apart
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"wrote {model}: CorrSH, 16 bits")


def test_on_a_terminal_there_is_a_progress_bar(fitted: Fitted, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "boltzhash", "encode"),
                *(fitted.model, fitted.corpus, "-o", tmp_path / "codes"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment(),
            timeout=DEADLINE,
            check=True,
        )
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "encoding: " in shown
    assert "60 documents" in shown
    assert done.stdout.decode() == f"wrote {tmp_path / 'codes'}: 60 codes of 16 bits\n"


@pytest.mark.parametrize("lines_read", [0, 1])
def test_a_reader_that_has_seen_enough(fitted: Fitted, tmp_path: Path, lines_read: int) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("judge jury\n" * 2000)  # the answers are larger than the buffer of a pipe
    with (
        queries.open() as stdin,
        subprocess.Popen(
            [sys.executable, "-m", "boltzhash", "search", fitted.model, fitted.codes],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines_read):
            assert process.stdout.readline() == "judge jury\n"
        process.stdout.close()
        err = process.stderr.read()
        code = process.wait(timeout=DEADLINE)
    assert (code, err) == (0, "")


def test_a_short_answer_that_nobody_reads(fitted: Fitted) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "boltzhash", "explain", fitted.model],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            timeout=DEADLINE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_answer_that_cannot_be_written(fitted: Fitted) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "boltzhash", "explain", fitted.model],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            timeout=DEADLINE,
            check=False,
        )
    assert done.returncode == 5
    assert done.stderr == "boltzhash: error: [Errno 28] No space left on device\n"


CLOSED_STREAMS = """
import sys
from boltzhash.cli.parser import main

sys.stdin = sys.stdout = None  # what Python makes of streams that are closed when it starts
sys.exit(main(sys.argv[1:]))
"""


def test_without_standard_output_there_is_no_traceback(fitted: Fitted, tmp_path: Path) -> None:
    arguments = ("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes")
    result = run_apart(*arguments, program=CLOSED_STREAMS)
    assert (result.code, result.err) == (0, "")
    assert contents(tmp_path / "codes") == contents(fitted.codes)


# Help


def commands() -> dict[str, argparse.ArgumentParser]:
    (choices,) = (
        action.choices
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(choices)


@pytest.mark.parametrize("command", ["fit", "encode", "search", "explain", "demo"])
def test_every_option_of_a_command_has_a_help_text(command: str) -> None:
    parser = commands()[command]
    helps = {action.dest: action.help for action in parser._actions}
    assert len(helps) > 1
    assert [name for name, text in helps.items() if not text] == []
    shown = "".join(succeed(command, "--help").split())
    for text in helps.values():
        assert "".join(str(text).split()) in shown


@pytest.mark.parametrize("command", ["fit", "encode", "search", "explain"])
def test_defaults_in_the_help_are_the_defaults(command: str) -> None:
    defaults, named = {}, {}
    for action in commands()[command]._actions:
        in_brackets = re.search(r"\(([^()]*)\)$", action.help or "")
        if in_brackets and action.default is not None:
            defaults[action.dest] = str(action.default)
            named[action.dest] = in_brackets[1]
    assert named == defaults
    assert named


def test_defaults_of_fit_in_the_help_are_those_of_the_model() -> None:
    helps = {action.dest: action.help or "" for action in commands()["fit"]._actions}
    params = CorrSH().get_params()
    for name in ("rank", "learning_rate", "max_words", "language"):
        assert helps[name].endswith(f"({params[name]})")
    assert f"({DEFAULT_EPOCHS}, more" in helps["epochs"]


def test_help_lists_commands_and_exit_codes() -> None:
    shown = succeed("--help")
    for command in commands():
        assert re.search(rf"^    {command}\s+\w", shown, re.MULTILINE)
    codes = re.findall(r"^  (\d+)  \S", shown.partition("exit codes:\n")[2], re.MULTILINE)
    assert codes == ["0", "2", "3", "4", "5", "130"]


def test_version() -> None:
    assert succeed("--version") == f"boltzhash {boltzhash.__version__}\n"


def test_the_command_as_a_process_of_its_own(fitted: Fitted) -> None:
    arguments = ("search", fitted.model, fitted.codes, "--json")
    result = run_apart(*arguments, input="judge jury\n\nhoney\n")
    assert result == Run(0, succeed(*arguments, stdin="judge jury\n\nhoney\n"), "")
    result = run_apart("search", fitted.corpus, fitted.codes, "judge")
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err
