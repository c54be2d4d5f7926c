"""The compiled parts. All are optional: without a compiler the install works, only slower."""

import sys
from pathlib import Path

from setuptools import Extension, setup

WINDOWS = sys.platform == "win32"
OPTIMISED = ["/O2", "/std:c11"] if WINDOWS else ["-O3", "-std=c11"]
# No contraction: a fused multiply-add would round differently from one machine to the next.
FLOATS = [] if WINDOWS else ["-ffp-contract=off"]
THREADS = [] if WINDOWS else ["-pthread"]
KERNEL = Path("src/boltzhash/search/kernel")

EXTENSIONS = [
    Extension(
        "boltzhash.text._tokens",
        ["src/boltzhash/text/_tokens.c"],
        depends=["src/boltzhash/text/_vocabulary.h"],
        extra_compile_args=OPTIMISED,
        optional=True,
    ),
    Extension(
        "boltzhash.text._blanks",
        ["src/boltzhash/text/_blanks.c"],
        depends=["src/boltzhash/text/_vocabulary.h"],
        extra_compile_args=OPTIMISED,
        optional=True,
    ),
    Extension(
        "boltzhash.hashers.shared._layers",
        ["src/boltzhash/hashers/shared/_layers.c"],
        extra_compile_args=OPTIMISED + FLOATS,
        optional=True,
    ),
    Extension(
        "boltzhash.search._postings",
        ["src/boltzhash/search/_postings.c"],
        extra_compile_args=OPTIMISED + FLOATS,
        optional=True,
    ),
    Extension(
        "boltzhash.search._kernel",
        sorted(str(path) for path in KERNEL.glob("*.c")),
        depends=sorted(str(path) for path in KERNEL.glob("*.h")),
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        py_limited_api=True,
        extra_compile_args=OPTIMISED + THREADS,
        extra_link_args=THREADS,
        optional=True,
    ),
]

setup(ext_modules=EXTENSIONS)
