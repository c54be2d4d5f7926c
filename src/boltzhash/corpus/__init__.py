"""What users have, read one document at a time."""

from boltzhash.corpus.reading import CorpusError, Document, read_corpus

__all__ = ["CorpusError", "Document", "read_corpus"]
