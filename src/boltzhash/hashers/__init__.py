"""The hashers, one paper a file, and the one table from their names to their classes."""

from boltzhash.hashers.bmsh import BMSH
from boltzhash.hashers.corrsh import CorrSH
from boltzhash.hashers.doc2hash import Doc2hash
from boltzhash.hashers.gmsh import GMSH
from boltzhash.hashers.itq import ITQ
from boltzhash.hashers.lsh import LSH
from boltzhash.hashers.nash import NASH
from boltzhash.hashers.rbsh import RBSH
from boltzhash.hashers.self_taught import SelfTaughtHashing
from boltzhash.hashers.shared.base import Hasher
from boltzhash.hashers.spectral import SpectralHashing
from boltzhash.hashers.stacked_rbm import StackedRBM
from boltzhash.hashers.vdsh import VDSH

HASHERS: dict[str, type[Hasher]] = {
    "CorrSH": CorrSH,
    "NASH": NASH,
    "BMSH": BMSH,
    "VDSH": VDSH,
    "GMSH": GMSH,
    "Doc2hash": Doc2hash,
    "RBSH": RBSH,
    "ITQ": ITQ,
    "LSH": LSH,
    "SelfTaughtHashing": SelfTaughtHashing,
    "SpectralHashing": SpectralHashing,
    "StackedRBM": StackedRBM,
}

__all__ = [
    "BMSH",
    "GMSH",
    "HASHERS",
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
]
