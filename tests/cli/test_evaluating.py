"""How good a collection's answers are, by judged documents, and its codes, without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from boltzhash import ITQ, LSH, SemanticHasher, Training
from boltzhash.collection import Collection
from boltzhash.corpus.judgements import read_judgements, read_questions
from boltzhash.metrics import compare_hashers, evaluate_answers, evaluate_codes, ways_of_searching
from boltzhash.metrics.own_texts import documents_of
from command_line import Made, misused, refused, run, succeed
from small_corpus import make_records, write_jsonl

QUESTIONS = {"sky": "star orbit moon", "kitchen": "bake bread dough", "sea": "ship captain storm"}


class Judged(NamedTuple):
    queries: Path
    qrels: Path


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """A question for each topic, to which every document of the topic is an answer."""
    questions = [{"_id": topic, "text": text} for topic, text in QUESTIONS.items()]
    queries = write_jsonl(tmp_path / "queries.jsonl", questions)
    lines = ["query-id\tcorpus-id\tscore"]
    lines += [f"{list(QUESTIONS)[number % 3]}\t{number}\t1" for number in range(60)]
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("\n".join(lines))
    return Judged(queries, qrels)


def arguments(made: Made, judged: Judged) -> tuple[object, ...]:
    return ("evaluate", made.collection, "--queries", judged.queries, "--qrels", judged.qrels)


def test_figures_are_those_of_the_library(made: Made, judged: Judged) -> None:
    shown = json.loads(succeed(*arguments(made, judged), "--json", "-k", 20))
    with Collection.open(made.collection) as collection:
        ways = ways_of_searching(collection)
        report = evaluate_answers(
            ways, read_questions(judged.queries), judgements=read_judgements(judged.qrels), k=20
        )
    assert shown == {
        "collection": str(made.collection),
        "documents": 60,
        "k": 20,
        **report.as_json(),
    }
    assert list(shown["ways"]) == list(ways)
    assert list(shown["ways"]["codes"]) == ["nDCG@10", "recall@20", "MRR@20", "MAP@20"]
    assert shown["ways"]["codes"]["MRR@20"]["mean"] == 1  # the topics are easy to tell apart


def test_the_table(made: Made, judged: Judged) -> None:
    title, header, *rows, _ = succeed(*arguments(made, judged)).splitlines()
    assert title == "3 questions, 95 % bootstrap intervals over them in brackets"
    assert header.split() == ["nDCG@10", "recall@100", "MRR@100", "MAP@100"]
    ways = ["words", "codes", "both"]
    names = [*ways, *(f"{way} - words" for way in ways[1:])]
    assert [row.partition("  ")[0] for row in rows] == names


def test_what_is_not_there_is_counted(made: Made, judged: Judged) -> None:
    with judged.queries.open("a") as file:
        file.write('{"_id": "nobody", "text": "judged this"}\n')
    with judged.qrels.open("a") as file:
        file.write("\nunheard\t1\t1\nsky\tgone\t1\nsky\tpoor\t0\n")
    shown = json.loads(succeed(*arguments(made, judged), "--json"))
    counts = ("questions", "left_out", "unknown_questions", "missing_documents")
    assert [shown[name] for name in counts] == [3, 1, 1, 1]
    assert shown["ways"]["codes"]["recall@100"]["mean"] == pytest.approx((20 / 21 + 1 + 1) / 3)


def test_judgements_of_another_corpus(made: Made, judged: Judged) -> None:
    judged.qrels.write_text("sky\tdoc-1\t1\nsky\tdoc-2\t1\nsky\t3\t0\nunheard\t3\t1\n")
    message = refused(*arguments(made, judged))
    assert "no relevant document is in the collection" in message
    assert "'doc-1'" in message
    assert "60 documents (such as '0')" in message
    assert "--id-field" in message
    judged.qrels.write_text("moon\t1\t1\n")
    assert "such as 'sky'" in refused(*arguments(made, judged))


def test_wrong_arguments(made: Made, judged: Judged, tmp_path: Path) -> None:
    alone = refused("evaluate", made.collection, "--queries", judged.queries)
    assert alone.startswith(
        "--qrels is missing: questions and their judged documents come together"
    )
    alone = refused("evaluate", made.collection, "--qrels", judged.qrels)
    assert alone.startswith("--queries is missing")
    for option, value in (("--labels", "year"), ("--bits", "16"), ("--method", "LSH")):
        message = refused(*arguments(made, judged), option, value)
        assert message.startswith(f"{option} measures codes: leave it out")
    assert "unrecognized arguments: more" in misused(*arguments(made, judged), "more")
    assert "k must be a positive integer, got 0" in refused(*arguments(made, judged), "-k", 0)
    nothing = made._replace(collection=tmp_path / "nothing")
    assert "nothing" in refused(*arguments(nothing, judged))


def test_a_corpus_of_beir(made: Made, judged: Judged, tmp_path: Path) -> None:
    """Its documents have ``_id``, ``title`` and ``text``."""
    documents = [
        {"_id": str(record["id"]), "title": "", "text": record["text"], "metadata": {}}
        for record in make_records(60)
    ]
    corpus = tmp_path / "beir.jsonl"
    numbered = tmp_path / "numbered"  # by row, which could be taken for the ids
    rows = [{"id": row, **document} for row, document in enumerate(documents[::-1])]
    succeed("index", made.model, write_jsonl(corpus, rows), "-o", numbered)
    message = refused(*arguments(made._replace(collection=numbered), judged))
    assert message.endswith("index the corpus with --id-field _id")
    library = tmp_path / "library"
    succeed("index", made.model, write_jsonl(corpus, documents), "-o", library)
    shown = json.loads(succeed(*arguments(made._replace(collection=library), judged), "--json"))
    assert shown["ways"]["codes"]["recall@100"]["mean"] == 1


def test_codes_without_questions_and_labels(made: Made) -> None:
    shown = json.loads(succeed("evaluate", made.collection, "--json"))
    with Collection.open(made.collection) as collection:
        report = evaluate_codes(collection)
    assert shown == {"collection": str(made.collection), "documents": 60, **report.as_json()}
    assert (shown["nearest"], shown["among"], shown["labels"]) == (1, 59, None)
    assert shown["chance"] == 1 / 59
    (model,) = shown["models"]
    assert (model["method"], model["bits"], model["bytes_per_document"]) == ("ITQ", 32, 4)
    assert model["agreement"]["low"] < model["agreement"]["mean"] < model["agreement"]["high"]
    printed = succeed("evaluate", made.collection)
    title, header, row = printed.splitlines()[:3]
    assert title == "60 documents in halves, 95 % bootstrap intervals over them in brackets"
    assert header.split() == ["method", "bits", "bytes", "a", "document", "agreement"]
    assert row.split()[:4] == ["ITQ", "32", "4", f"{model['agreement']['mean']:.3f}"]


def test_lengths_and_methods_are_compared(made: Made) -> None:
    asked = ("evaluate", made.collection, "--bits", "8,64", "--method", "ITQ,LSH")
    result = run(*asked, "--labels", "year", "--json", "-q")
    assert (result.code, result.err) == (0, "")
    shown = json.loads(result.out)
    models = [(model["method"], model["bits"]) for model in shown["models"]]
    assert models == [("ITQ", 8), ("ITQ", 64), ("LSH", 8), ("LSH", 64)]
    assert (shown["halved"], shown["among"]) == (6, 54)
    with Collection.open(made.collection) as collection:
        texts, years = documents_of(collection, "year")
        report = compare_hashers([ITQ(8), LSH(64)], texts, labels=years, field="year").as_json()
    for ours, theirs in zip(report["models"], shown["models"][::3], strict=True):
        for name in ("agreement", "precision", "method", "bits"):
            assert theirs[name] == ours[name]
    assert shown["labels"] == report["labels"]


def test_what_codes_cannot_be_measured_with(made: Made, tmp_path: Path) -> None:
    assert "expected lengths of codes such as 16,32,64, got 'short'" in misused(
        "evaluate", made.collection, "--bits", "short"
    )
    assert "n_bits must be a multiple of 8" in refused("evaluate", made.collection, "--bits", "12")
    assert "got 'MD5'" in refused("evaluate", made.collection, "--method", "MD5")
    message = refused("evaluate", made.collection, "-k", 10)
    assert message == "-k is for --labels, or for --queries and --qrels: leave it out"
    message = refused("evaluate", made.collection, "--labels", "year", "-k", 0)
    assert message == "top must be a positive integer, got 0"
    vectors = np.random.default_rng(0).normal(size=(60, 4))
    texts = [record["text"] for record in make_records(60)]
    hasher = SemanticHasher(16, training=Training(epochs=2)).fit(texts, features=vectors)
    with Collection.create(tmp_path / "vectors", hasher) as collection:
        documents = [{"id": i, "text": text} for i, text in enumerate(texts)]
        collection.add(documents, features=vectors)
    for options in ((), ("--labels", "year"), ("--bits", "16")):
        message = refused("evaluate", tmp_path / "vectors", *options)
        assert "makes codes from vectors, which have no halves as texts have" in message
