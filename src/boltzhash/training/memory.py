"""Memory that steps of training use again instead of asking the system for it each time.

A step makes gradients and logits of tens of megabytes and drops them. The C library gives blocks of that
size back to the system at once, which must fill the next ones with zeros, page by page: a fifth of the
time of a step on a CPU. While a model is trained it keeps them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

# Numbers of glibc's malloc.h, and the largest threshold that it would choose by itself.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT, USUAL = 1 << 30, 32 << 20


@contextmanager
def kept_memory() -> Iterator[None]:
    """Blocks that are dropped stay with the process until the end; elsewhere than on glibc as ever."""
    try:
        library = ctypes.CDLL(None)
        set_option, give_back = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield
        return
    set_option(MMAP_THRESHOLD, KEPT)
    set_option(TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        set_option(MMAP_THRESHOLD, USUAL)
        set_option(TRIM_THRESHOLD, 2 * USUAL)  # twice the other, as it would choose
        give_back(0)
