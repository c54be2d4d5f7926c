"""TMC: small files in the competition's format, whole and damaged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from boltzhash.corpus import CorpusError
from boltzhash.datasets.tmc import read
from corpus_files import write


def row(*on: int) -> str:
    return ",".join("1" if column in on else "-1" for column in range(1, 23))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty training reports and three for the test, one of them of no category."""
    train = "".join(f"{i}~REPORT _ number{i} ON runway.\n" for i in range(1, 21))
    (tmp_path / "TrainingData.txt").write_text(train)
    (tmp_path / "TrainCategoryMatrix.csv").write_text("".join(f"{row(1, 22)}\n" for _ in range(20)))
    (tmp_path / "TestData.txt").write_text("1~A ~ B.\r\n2~C.\r\n3~D.\r\n")
    (tmp_path / "TestTruth.csv").write_text(f"{row(2)}\r\n{row()}\r\n{row(3, 5)}\r\n")
    return tmp_path


def test_parts_labels_and_texts(folder: Path) -> None:
    corpus = read(folder)
    assert corpus.label_names == ("c01", "c02", "c03", "c05", "c22")
    assert (len(corpus.train), len(corpus.val)) == (18, 2)
    assert corpus.test.ids == ["tmc-test-0", "tmc-test-2"]
    assert corpus.test.texts == ["A ~ B.", "D."]
    assert corpus.test.labels.astype(int).tolist() == [[0, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    texts = corpus.train.texts + corpus.val.texts
    first = (corpus.train.ids + corpus.val.ids).index("tmc-train-0")
    assert texts[first] == "REPORT _ number1 ON runway."


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "TrainCategoryMatrix.csv").unlink()
    with pytest.raises(CorpusError, match=r"but TrainCategoryMatrix\.csv is not there"):
        read(folder)
    (folder / "TestTruth.csv").unlink()
    expected = r"TrainCategoryMatrix\.csv and TestTruth\.csv are not there"
    with pytest.raises(CorpusError, match=expected):
        read(folder)


NO_REPORT = "line 2: expected number~text, got '"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "TestTruth.csv",
            f"{row(2)}\n{row(2)},-1\n{row(3)}\n",
            "line 2: expected 22 columns, got 23",
        ),
        ("TestTruth.csv", f"{row(2)}\n{row(2)[:-1]}x\n", "line 2: expected 1 or -1, got '-x'"),
        ("TestData.txt", "1~A\nno number\n3~C\n", NO_REPORT),
        ("TestData.txt", "1~A\nx~text\n3~C\n", NO_REPORT),
        ("TestData.txt", "1~A\n~text\n3~C\n", NO_REPORT),
        ("TestData.txt", b"1~A\n2~\xff\n3~C\n", "line 2: expected UTF-8 text, got byte 0xff"),
    ],
)
def test_a_wrong_line_is_named(folder: Path, name: str, content: str | bytes, problem: str) -> None:
    write(folder / name, content)
    with pytest.raises(CorpusError, match=rf"{re.escape(name)}, {problem}"):
        read(folder)


def test_a_line_too_few_is_named(folder: Path) -> None:
    (folder / "TestTruth.csv").write_text(f"{row(2)}\n{row(2)}\n")
    expected = r"TestData\.txt has 3 reports and .*TestTruth\.csv 2 lines"
    with pytest.raises(CorpusError, match=expected):
        read(folder)
