"""boltzhash: short binary codes for documents, and search by Hamming distance."""

from boltzhash.hashers import (
    BMSH,
    GMSH,
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
    load,
)
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
