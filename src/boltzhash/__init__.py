"""boltzhash: short binary codes for documents, and search by Hamming distance."""

from pathlib import Path

from boltzhash.errors import ModelError
from boltzhash.hashers import (
    BMSH,
    GMSH,
    HASHERS,
    ITQ,
    LSH,
    NASH,
    RBSH,
    VDSH,
    CorrSH,
    Doc2hash,
    Hasher,
    SelfTaughtHashing,
    SpectralHashing,
    StackedRBM,
)
from boltzhash.storage.folders import read_model
from boltzhash.version import __version__

__all__ = [
    "BMSH",
    "GMSH",
    "ITQ",
    "LSH",
    "NASH",
    "RBSH",
    "VDSH",
    "CorrSH",
    "Doc2hash",
    "Hasher",
    "SelfTaughtHashing",
    "SpectralHashing",
    "StackedRBM",
    "__version__",
    "load",
]


def load(folder: str | Path) -> Hasher:
    """Load a model that was saved with ``save``.

    Nothing in the folder is executed. Raises :class:`boltzhash.errors.ModelError` where the folder is
    no model, is damaged, or was written by a newer boltzhash.
    """
    kind, params, arrays, words = read_model(Path(folder))
    if kind not in HASHERS:
        raise ModelError(f"{folder} holds a {kind!r}; this boltzhash knows {', '.join(HASHERS)}")
    differ = sorted(HASHERS[kind].defaults().keys() ^ params.keys())
    if differ:
        raise ModelError(
            f"{folder} is of a {kind} with other settings than this boltzhash has "
            f"({', '.join(differ)}): fit it again, or use the version that saved it"
        )
    try:
        return HASHERS[kind]._restore(params, arrays, words)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder} does not fit together: {error}") from error
