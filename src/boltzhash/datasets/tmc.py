"""TMC: the aviation safety reports of the SIAM 2007 text-mining competition.

Four files. ``TrainingData.txt`` and ``TestData.txt`` have one report per line, ``number~text``;
``TrainCategoryMatrix.csv`` and ``TestTruth.csv`` have a line for each report with 22 columns, 1 if it
belongs to the category and −1 if not. The labels are c01 to c22; reports without a category are dropped.
Test is the official test; a tenth of the official training reports, chosen by
:func:`~boltzhash.datasets.labelled.split_by_hash`, is val.
"""

from __future__ import annotations

from pathlib import Path

from boltzhash.corpus import CorpusError
from boltzhash.datasets.archives import text_lines
from boltzhash.datasets.labelled import (
    VAL_SHARE,
    Corpus,
    LabelledDocument,
    make_corpus,
    split_by_hash,
)

# Official part → its texts and its labels.
FILES = {
    "train": ("TrainingData.txt", "TrainCategoryMatrix.csv"),
    "test": ("TestData.txt", "TestTruth.csv"),
}
# The page of the data set, not tried.
PAGE = "https://c3.nasa.gov/dashlink/resources/138/"

N_CATEGORIES = 22

_ON, _OFF = ("1",), ("-1", "0")


def read(folder: Path) -> Corpus:
    """Read the four files in ``folder``."""
    missing = [name for pair in FILES.values() for name in pair if not (folder / name).is_file()]
    if missing:
        raise CorpusError(
            f"{folder}: expected the four competition files, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there"
        )
    train, test = (_read_part(folder, part) for part in ("train", "test"))
    train, val = split_by_hash(train, (1 - VAL_SHARE, VAL_SHARE))
    files = [folder / name for pair in FILES.values() for name in pair]
    return make_corpus("tmc", {"train": train, "val": val, "test": test}, files)


def _read_part(folder: Path, part: str) -> list[LabelledDocument]:
    texts_path, labels_path = (folder / name for name in FILES[part])
    texts, labels = _texts(texts_path), _labels(labels_path)
    if len(texts) != len(labels):
        raise CorpusError(
            f"{texts_path} has {len(texts)} reports and {labels_path} {len(labels)} lines: "
            "expected one line for each report"
        )
    return [
        LabelledDocument(f"tmc-{part}-{row}", text, categories)
        for row, (text, categories) in enumerate(zip(texts, labels, strict=True))
        if categories
    ]


def _texts(path: Path) -> list[str]:
    texts = []
    for number, line in text_lines(path):
        if line.strip():
            key, separator, text = line.partition("~")
            if not separator or not key.strip().isdigit():
                raise CorpusError(f"{path}, line {number}: expected number~text, got {line[:40]!r}")
            texts.append(text.strip())
    return texts


def _labels(path: Path) -> list[tuple[str, ...]]:
    rows = []
    for number, line in text_lines(path):
        if not line.strip():
            continue
        values = [value.strip() for value in line.strip().rstrip(",").split(",")]
        if len(values) != N_CATEGORIES:
            raise CorpusError(
                f"{path}, line {number}: expected {N_CATEGORIES} columns, got {len(values)}"
            )
        for value in values:
            if value not in _ON + _OFF:
                raise CorpusError(f"{path}, line {number}: expected 1 or -1, got {value!r}")
        on = [column for column, value in enumerate(values, start=1) if value in _ON]
        rows.append(tuple(f"c{column:02}" for column in on))
    return rows
