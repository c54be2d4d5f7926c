"""The learned arrays of a model: refused if they are not of the shapes that its settings ask for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from boltzhash.errors import ModelError
from boltzhash.storage.folders import Arrays

Shapes = Mapping[str, tuple[int, ...]]


def check_shapes(arrays: Arrays, shapes: Shapes) -> None:
    """Refuse arrays if one is missing or has another shape; there may be others.

    >>> check_shapes({"offsets": np.zeros(8)}, {"offsets": (16,)})
    Traceback (most recent call last):
    ...
    boltzhash.errors.ModelError: weights 'offsets' should have shape (16,), got (8,)
    """
    for name, shape in shapes.items():
        came = arrays[name].shape if name in arrays else "nothing"
        if came != shape:
            raise ModelError(f"weights {name!r} should have shape {shape}, got {came}")


def check_numbers(arrays: Arrays) -> None:
    """Refuse arrays that hold infinities or NaN."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"weights {name!r} hold values that are not finite numbers")
