"""Encoding: the same codes from every kind of corpus, in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import boltzhash
from command_line import Fitted, contents, names, refused, run, run_apart, succeed
from small_corpus import DOCUMENTS, as_jsonl, write_corpus, write_jsonl


def test_encode_as_json(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes", "--json")
    assert json.loads(out) == {
        "codes": str(tmp_path / "codes"),
        "documents": len(DOCUMENTS),
        "bits": 16,
        "no_known_word": 0,
    }


def test_encode_for_humans_says_the_same(fitted: Fitted, tmp_path: Path) -> None:
    out = succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes")
    assert out == f"wrote {tmp_path / 'codes'}: 60 codes of 16 bits\n"


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


def test_documents_without_a_known_word_are_counted_and_listed(
    fitted: Fitted, tmp_path: Path
) -> None:
    texts = ["planet", "zebra", "", "onion", "the of and"]
    corpus = write_jsonl(tmp_path / "corpus.jsonl", [{"text": text} for text in texts])
    codes = tmp_path / "codes"
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
    np.testing.assert_array_equal(stored[[0, 3]], hasher.transform(["planet", "onion"]))


def test_nothing_to_encode(fitted: Fitted, tmp_path: Path) -> None:
    message = refused("encode", fitted.model, "-", "-o", tmp_path / "codes")
    assert message == "- is empty: there is nothing to encode"
    assert names(tmp_path) == []


MANY_DOCUMENTS = """
import sys

for number in range(int(sys.argv[1])):
    print('{"id": %d, "text": "planet orbit%s"}' % (number, " ." * 1500))
"""
PEAK_MEMORY = """
import os, sys
from pathlib import Path
from boltzhash.cli.parser import main

os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # for more, some blocks are read ahead
code = main(sys.argv[1:])
status = Path("/proc/self/status").read_text()  # ru_maxrss would count the tests' own memory, too
print(status.partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_memory_does_not_grow_with_the_corpus(fitted: Fitted, tmp_path: Path) -> None:
    """3 KB a document: all at once, the larger corpus would take 48 MB more than the smaller."""
    peaks = []
    for n in (8 * 1024, 24 * 1024):
        with subprocess.Popen(
            [sys.executable, "-c", MANY_DOCUMENTS, str(n)], stdout=subprocess.PIPE
        ) as source:
            arguments = ("encode", fitted.model, "-", "-o", tmp_path / "codes")
            result = run_apart(*arguments, program=PEAK_MEMORY, stdin=source.stdout)
        assert result.code == 0
        report, peak = result.out.splitlines()
        assert report.endswith(f": {n} codes of 16 bits")
        peaks.append(int(peak) * 1024)
    assert peaks[1] - peaks[0] < 8e6
