"""What users have, read one document at a time."""

from boltzhash.corpus.reading import read_corpus
from boltzhash.corpus.records import CorpusError, Document

__all__ = ["CorpusError", "Document", "read_corpus"]
