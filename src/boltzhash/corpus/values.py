"""Values of metadata as JSON can say them: Parquet, pandas and NumPy know more types than it does."""

from __future__ import annotations

import datetime
import math
import uuid
from collections.abc import Mapping
from decimal import Decimal

import numpy as np

_PLAIN = (str, bool, int, type(None))


def as_json(value: object) -> object:
    """A value as JSON can say it; what it cannot say without a loss is a ValueError that says why.

    Dates and times become text (ISO 8601), decimals numbers, NaN and the missing values of pandas null.

    >>> as_json([datetime.date(2020, 1, 31), Decimal("0.10"), float("nan")])
    ['2020-01-31', 0.1, None]
    >>> as_json(b"bytes")
    Traceback (most recent call last):
    ...
    ValueError: JSON has no bytes
    """
    if type(value) in _PLAIN:
        return value
    if _is_missing(value):
        return None
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_name(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, np.timedelta64):
        return as_json(value.tolist())
    if isinstance(value, str | int):
        return value
    raise ValueError(f"JSON has no {type(value).__name__}")


def _is_missing(value: object) -> bool:
    """NaN, NaT and pandas' NA: none of them is equal to itself, and NA cannot even say so."""
    if type(value).__name__ == "NAType":
        return True
    kinds = float | Decimal | datetime.datetime | np.datetime64
    return isinstance(value, kinds) and bool(value != value)


def _number(value: float | Decimal) -> int | float:
    """A finite number; an exact one stays exact.

    >>> _number(Decimal("7")), _number(Decimal("1.50"))
    (7, 1.5)
    """
    if not math.isfinite(value):
        raise ValueError("JSON has no infinity")
    if isinstance(value, float):
        return float(value)
    if value == value.to_integral_value():
        return int(value)
    if Decimal(repr(float(value))) != value:
        raise ValueError("a number of JSON would lose some of its digits")
    return float(value)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"JSON has only strings for names, not {type(name).__name__}")
    return name
