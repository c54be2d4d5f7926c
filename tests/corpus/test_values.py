"""Values of metadata that JSON has no type for."""

import datetime
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boltzhash.corpus import read_corpus
from boltzhash.corpus.values import as_json
from corpus_files import message, write

ONE_DAY = datetime.datetime(2020, 1, 31, 12, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (np.float32("nan"), None),
        (np.datetime64("NaT"), None),
        (ONE_DAY, "2020-01-31T12:30:00+00:00"),
        (ONE_DAY.date(), "2020-01-31"),
        (datetime.time(12, 30), "12:30:00"),
        (np.datetime64("2020-01-31T12:30:00.123456789"), "2020-01-31T12:30:00.123456789"),
        (Decimal("12.50"), 12.5),
        (Decimal("7.00"), 7),
        (np.int64(7), 7),
        (np.array([1.5, 2.5]), [1.5, 2.5]),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ({"a": (Decimal("1"), {"b": float("nan")})}, {"a": [1, {"b": None}]}),
    ],
)
def test_what_json_can_say(value: object, expected: object) -> None:
    plain = as_json(value)
    assert plain == expected
    assert type(plain) is type(expected)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("inf"), "JSON has no infinity"),
        (b"x", "JSON has no bytes"),
        (datetime.timedelta(1), "JSON has no timedelta"),
        (np.timedelta64(1, "ns"), "JSON has no timedelta64"),
        (Decimal("0.12345678901234567890"), "a number of JSON would lose some of its digits"),
        ({1: "x"}, "JSON has only strings for names, not int"),
        ([object()], "JSON has no object"),
    ],
)
def test_what_json_cannot_say(value: object, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        as_json(value)


def test_missing_values_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert as_json([pandas.NA, pandas.NaT, pandas.Timestamp("2020-01-31")]) == [
        None,
        None,
        "2020-01-31T00:00:00",
    ]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("Infinity", "float inf: JSON has no infinity"),
        ("1" + "0" * 19, f"int {10**19}: a collection keeps integers of 64 bits"),
    ],
)
def test_metadata_that_cannot_be_kept_names_the_option(
    tmp_path: Path, value: str, problem: str
) -> None:
    path = write(tmp_path / "a.jsonl", f'{{"text": "x", "n": {value}, "year": NaN}}')
    assert message(path, metadata=True) == (
        f"a.jsonl, line 1: field 'n' cannot become metadata, got {problem}; name the fields to keep "
        "with metadata= (--metadata on the command line)"
    )
    (document,) = read_corpus(path, metadata=["year"])
    expected: dict[str, Any] = {"year": None}
    assert document.metadata == expected
