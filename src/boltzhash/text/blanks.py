"""What stands between blanks, numbered: compiled if there was a compiler at install time."""

from __future__ import annotations

from array import array
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

try:
    from boltzhash.text import _blanks
except ImportError:  # no compiler: PythonTokens does it
    _blanks = None  # type: ignore[assignment]


class Numbered(NamedTuple):
    """The tokens of some texts, one text after the other.

    ``numbers`` (n_tokens,) are theirs, ``sizes`` (n_texts,) says how many each text has. The tokens of
    ``new`` had no number before, and have those that follow.
    """

    numbers: NDArray[np.int32]
    sizes: NDArray[np.int64]
    new: list[str]


class Tokens(Protocol):
    """Gives a number to every token, the next one to a token that it has not seen."""

    def number(self, texts: list[str]) -> Numbered: ...


def make_tokens() -> Tokens:
    """The fastest there is.

    >>> numbers, sizes, new = make_tokens().number(["a cat and", " a dog"])
    >>> numbers.tolist(), sizes.tolist(), new
    ([0, 1, 2, 0, 3], [3, 2], ['a', 'cat', 'and', 'dog'])
    """
    return PythonTokens() if _blanks is None else CompiledTokens()


class CompiledTokens:
    """The same in C."""

    def __init__(self) -> None:
        self._tokens = _blanks.Tokens()

    def number(self, texts: list[str]) -> Numbered:
        numbers, sizes, new = self._tokens.numbers(texts)
        return Numbered(np.frombuffer(numbers, np.int32), np.frombuffer(sizes, np.int64), new)


class PythonTokens:
    """The plain twin of :class:`CompiledTokens`."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def number(self, texts: list[str]) -> Numbered:
        known, n_before = self._known, len(self._known)
        numbers, sizes = array("i"), array("q")
        for text in texts:
            tokens = text.split()
            numbers.extend(known.setdefault(token, len(known)) for token in tokens)
            sizes.append(len(tokens))
        new = list(known)[n_before:]
        return Numbered(np.array(numbers, dtype=np.int32), np.array(sizes, dtype=np.int64), new)
