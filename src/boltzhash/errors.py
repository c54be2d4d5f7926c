"""Errors with a name of their own, so that callers and the command line can tell them apart."""

from __future__ import annotations


class TrainingError(RuntimeError):
    """Training ended with nothing usable: it diverged, or all documents got the same code."""


class ModelError(ValueError):
    """A folder that should hold a model or codes does not: missing, damaged, or of another version."""


class CollectionError(ValueError):
    """A folder that should hold a collection does not: missing, damaged, or of another version."""


class NoSuchCollectionError(CollectionError):
    """There is no collection at the location that was to be opened."""


class CollectionGoneError(CollectionError):
    """The collection that was opened was deleted, moved or replaced since.

    ``has_written`` if that was noticed only after something was written, which may be lost.
    """

    def __init__(self, message: str, *, has_written: bool = False) -> None:
        super().__init__(message)
        self.has_written = has_written


class CollectionBusyError(TimeoutError):
    """Another process kept writing to the collection for longer than this one would wait."""


class DuplicateIdError(ValueError):
    """A document has an id that another one already has."""


class ChangedDocumentsError(ValueError):
    """An interrupted addition cannot go on: what comes now is not what came before."""


class NotFittedError(ValueError, AttributeError):
    """A hasher is used before it is fitted; scikit-learn's error of this name if it is installed."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message says what to install."""


def needs_extra(what: str, package: str, extra: str) -> MissingExtraError:
    """
    >>> print(needs_extra("fit", "torch", "train"))
    fit needs torch, which is not installed: pip install 'boltzhash[train]'
    """
    return MissingExtraError(
        f"{what} needs {package}, which is not installed: pip install 'boltzhash[{extra}]'"
    )
