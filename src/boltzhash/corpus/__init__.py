"""What users have, read one document at a time."""

from boltzhash.corpus.reading import read_corpus
from boltzhash.corpus.records import BadRecord, CorpusError, Document

__all__ = ["BadRecord", "CorpusError", "Document", "read_corpus"]
