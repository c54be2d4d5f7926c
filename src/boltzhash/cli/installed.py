"""``boltzhash info``: what is installed, compiled and found here, for people and for bug reports."""

from __future__ import annotations

import argparse
import platform
import re
import sys
from importlib import metadata
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

from boltzhash.cli.arguments import add_json
from boltzhash.cli.reporting import report
from boltzhash.version import __version__

# What setup.py compiles, and what is slower without it.
COMPILED = {
    "text._tokens": "counting words",
    "text._blanks": "indexing words",
    "training._steps": "fitting on a CPU",
    "hashers.shared._layers": "encoding",
    "search._postings": "searching by words",
    "search._kernel": "searching by codes",
}
DEVELOPERS = {
    "dev",
    "docs",
    "engines-test",
    "integrations-test",
}  # extras for work on boltzhash itself
_ITSELF = "boltzhash"
_REQUIREMENT = re.compile(r"^([\w.-]+)(?:\[([\w,\s-]+)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")


def add_parsers(subparsers: Any) -> None:
    """Hook the command into the command line."""
    parser = subparsers.add_parser(
        "info",
        help="what is installed and compiled here",
        description="Versions, which parts are compiled, how codes are searched, which extras are there "
        "and how to install the others, and which GPU torch sees.",
    )
    add_json(parser)
    parser.set_defaults(run=info)


def info(options: argparse.Namespace) -> int:
    """Print what is here."""
    facts = gather()
    return report(options, facts, describe(facts))


def gather() -> dict[str, Any]:
    """All that is told, as JSON has it."""
    from boltzhash.search.compiled import kernel_name, kernel_names

    extras = required()
    return {
        "boltzhash": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "folder": str(Path(__file__).parents[1]),
        "compiled": {name: is_compiled(name) for name in COMPILED},
        "kernel": kernel_name(),
        "kernels": kernel_names(),
        "packages": {name: installed_version(name) for name in extras.pop("")},
        "extras": {
            extra: {name: installed_version(name) for name in names}
            for extra, names in sorted(extras.items())
        },
        "gpus": gpus(),
    }


def is_compiled(name: str) -> bool:
    """Whether the part was compiled, and can be loaded; without its room, which may need torch."""
    folder = Path(__file__).parents[1].joinpath(*name.split(".")[:-1])
    spec = PathFinder.find_spec(f"boltzhash.{name}", [str(folder)])
    try:
        return spec is not None and module_from_spec(spec) is not None
    except ImportError:
        return False


def gpus() -> list[str] | None:
    """None without torch, which alone can tell."""
    try:
        from boltzhash.training.gpus import gpu_names
    except ImportError:
        return None
    return gpu_names()


def required() -> dict[str, list[str]]:
    """The packages that boltzhash needs (under ""), and those of each extra, as its metadata says."""
    lines = metadata.requires(_ITSELF) or []
    found: dict[str, list[str]] = {"": []}
    nested: dict[str, list[str]] = {}
    for line in lines:
        requirement, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        assert requirement is not None, line
        name, key = requirement[1], extra[1] if extra else ""
        if key in DEVELOPERS:
            continue
        found.setdefault(key, [])
        if name == _ITSELF:
            nested.setdefault(key, []).extend(re.split(r"[\s,]+", requirement[2]))
        else:
            found[key].append(name)
    for key, others in nested.items():
        found[key] += [name for other in others for name in found[other]]
    return found


def installed_version(package: str) -> str | None:
    """
    >>> installed_version("no-such-package") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def describe(facts: dict[str, Any]) -> str:
    """The facts for people.

    >>> print(describe(gather()).splitlines()[0].split(",")[0] == f"boltzhash {__version__}")
    True
    """
    has_all = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    return "\n".join(
        [
            f"boltzhash {facts['boltzhash']}, Python {facts['python']}, {facts['platform']}",
            f"folder    {facts['folder']}",
            f"packages  {has_all}",
            f"compiled  {compiled(facts['compiled'])}",
            f"kernel    {_kernel(facts)}",
            f"GPU       {_gpus(facts['gpus'])}",
            "extras",
            *(f"  {extra:<11} {_extra(extra, names)}" for extra, names in facts["extras"].items()),
        ]
    )


def missing_parts(parts: dict[str, bool]) -> list[str]:
    """Those that are not compiled and could be: on Windows there is no kernel."""
    missing = [name for name, is_there in parts.items() if not is_there]
    return [] if sys.platform == "win32" and missing == ["search._kernel"] else missing


def compiled(parts: dict[str, bool]) -> str:
    """Which parts are compiled, and what to do about others."""
    missing = missing_parts(parts)
    if not missing:
        if all(parts.values()):
            return f"all {len(parts)} parts"
        return "all that is on Windows, where searching by codes has no kernel"
    slower = ", ".join(COMPILED[name] for name in missing)
    return (
        f"{len(parts) - len(missing)} of {len(parts)} parts, not {', '.join(missing)}. Slower: "
        f"{slower}. With a C compiler: pip install --force-reinstall --no-deps --no-cache-dir "
        "--no-binary boltzhash -v boltzhash"
    )


def _kernel(facts: dict[str, Any]) -> str:
    others = [name for name in facts["kernels"] if name != facts["kernel"]]
    without = " (NumPy, or faiss if it is installed)" if facts["kernel"] == "none" else ""
    if not others:
        return f"none{without}"
    return f"{facts['kernel']}{without}; BOLTZHASH_KERNEL can be {', '.join(others)} as well"


def _gpus(names: list[str] | None) -> str:
    if names is None:
        return "not known without torch: pip install 'boltzhash[train]'"
    return ", ".join(names) if names else "none that torch sees"


def _extra(extra: str, packages: dict[str, str | None]) -> str:
    missing = [name for name, version in packages.items() if version is None]
    if missing:
        return f"no {', no '.join(missing)}: pip install 'boltzhash[{extra}]'"
    return ", ".join(f"{name} {version}" for name, version in packages.items())
