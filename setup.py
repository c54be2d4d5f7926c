"""The compiled parts, and the README as an index shows it.

The compiled parts are optional: without a compiler the install works, only slower. All keep to Python's
stable ABI of 3.11, so that one wheel serves every later Python of a platform. Pythons without a global
lock have no stable ABI yet: for them a wheel serves one version.
"""

import gzip
import os
import re
import runpy
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

WINDOWS = sys.platform == "win32"
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")
# No debugging information: it names the folder of the build, and two builds would differ.
OPTIMISED = ["/O2", "/std:c11"] if WINDOWS else ["-O3", "-std=c11", "-g0"]
# No contraction: a fused multiply-add would round differently from one machine to the next.
FLOATS = [] if WINDOWS else ["-ffp-contract=off"]
THREADS = [] if WINDOWS else ["-pthread"]
TEXT = Path("src/boltzhash/text")
KERNEL = Path("src/boltzhash/search/kernel")
STEPS = Path("src/boltzhash/training/steps")


def paths(folder: Path, pattern: str) -> list[str]:
    return sorted(path.as_posix() for path in folder.glob(pattern))


def extension(name: str, sources: list[str], flags: list[str], **more: list[str]) -> Extension:
    return Extension(
        name,
        sources,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if HAS_STABLE_ABI else [],
        py_limited_api=HAS_STABLE_ABI,
        extra_compile_args=OPTIMISED + flags,
        optional=True,
        **more,
    )


EXTENSIONS = [
    extension(
        f"boltzhash.text.{name}", [f"{TEXT.as_posix()}/{name}.c"], [], depends=paths(TEXT, "*.h")
    )
    for name in ("_tokens", "_blanks")
]
EXTENSIONS += [
    extension(
        "boltzhash.hashers.shared._layers", ["src/boltzhash/hashers/shared/_layers.c"], FLOATS
    ),
    extension("boltzhash.search._postings", ["src/boltzhash/search/_postings.c"], FLOATS),
    extension(
        "boltzhash.training._steps",
        [*paths(STEPS.parent, "*.c"), *paths(STEPS, "*.c")],
        [] if WINDOWS else ["-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"],
        depends=[*paths(STEPS.parent, "*.h"), *paths(STEPS, "*.h")],
        extra_link_args=["-ldl"] if sys.platform == "linux" else [],
    ),
]
if not WINDOWS:  # it has threads of POSIX; NumPy or faiss searches there
    EXTENSIONS.append(
        extension(
            "boltzhash.search._kernel",
            paths(KERNEL, "*.c"),
            THREADS,
            depends=paths(KERNEL, "*.h"),
            extra_link_args=THREADS,
        )
    )


def readme_for_indexes() -> str:
    """The README with links and pictures that lead to the repository, at the tag of this version."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    version = runpy.run_path("src/boltzhash/version.py")["__version__"]

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}({repository}/{kind}/v{version}/{link[2]})"

    text = Path("README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)", absolute, text)


class BuildOrSay(build_ext):
    """Goes on without what cannot be compiled, and ends with what that is.

    pip shows it with -v only; `boltzhash info` says it later as well.
    """

    def run(self) -> None:
        self.failed: list[str] = []
        super().run()
        if self.failed:
            print(
                f"boltzhash: not compiled: {', '.join(self.failed)} (the compiler's words are above). "
                "Everything works without, but slower; `boltzhash info` says the same later.",
                file=sys.stderr,
            )

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception:
            self.failed.append(ext.name)
            raise  # setuptools goes on, as the extension is optional


class SameBytes(sdist):
    """If SOURCE_DATE_EPOCH is set, the same files make the same archive; setuptools sees to wheels."""

    def make_archive(self, base_name: str, format: str, *rest: str, **named: str) -> str:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, *rest, **named)

        def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid = int(epoch), 0, 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with (
            open(path, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w") as archive,
        ):
            folder = Path(named["base_dir"])
            for member in [folder, *sorted(folder.rglob("*"))]:
                archive.add(member, recursive=False, filter=anonymous)
        return path


setup(
    long_description=readme_for_indexes(),
    long_description_content_type="text/markdown",
    ext_modules=EXTENSIONS,
    cmdclass={"build_ext": BuildOrSay, "sdist": SameBytes},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HAS_STABLE_ABI else {},
)
