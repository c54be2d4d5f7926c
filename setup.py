"""The compiled parts. Where they cannot be built the package installs without them, and is slower."""

import sys
from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/boltzhash/search/kernel")

setup(
    ext_modules=[
        Extension(
            "boltzhash.search._kernel",
            sources=sorted(str(path) for path in KERNEL.glob("*.c")),
            depends=sorted(str(path) for path in KERNEL.glob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            py_limited_api=True,
            extra_compile_args=[] if sys.platform == "win32" else ["-std=c11", "-O3", "-pthread"],
            extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
            optional=True,
        ),
    ],
)
