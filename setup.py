"""The compiled parts. All are optional: without a compiler the install works, only slower."""

import sys

from setuptools import Extension, setup

# No contraction: a fused multiply-add would round differently from one machine to the next.
FLAGS = ["/O2", "/std:c11"] if sys.platform == "win32" else ["-O3", "-std=c11", "-ffp-contract=off"]

EXTENSIONS = [
    Extension(
        "boltzhash._tokens",
        ["src/boltzhash/_tokens.c"],
        depends=["src/boltzhash/_vocabulary.h"],
        extra_compile_args=FLAGS,
        optional=True,
    ),
    Extension(
        "boltzhash._layers", ["src/boltzhash/_layers.c"], extra_compile_args=FLAGS, optional=True
    ),
]

setup(ext_modules=EXTENSIONS)
