"""The hashers, one paper a file, and the one table from their names to their classes."""

from boltzhash.hashers.base import Hasher
from boltzhash.hashers.corrsh import CorrSH

HASHERS: dict[str, type[Hasher]] = {"CorrSH": CorrSH}

__all__ = ["HASHERS", "CorrSH", "Hasher"]
