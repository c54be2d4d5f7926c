"""The rooms of the package: who imports whom, read from the source, imports in functions included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "boltzhash"

# A room imports rooms of earlier lines and itself. datasets and metrics stand beside the way from a text
# to an answer: nothing in the package imports them, and they need little of it.
ROOMS = [
    ["arguments", "codes", "errors", "progress", "threads", "version"],
    ["corpus"],
    ["text"],
    ["storage"],
    ["training"],
    ["hashers"],
    ["encoding"],
    ["search"],
    ["collection"],
    ["datasets", "metrics", "integrations"],
    ["server"],
    ["cli"],
    ["boltzhash", "__main__"],  # what users import and run
]
TORCH_ROOM = "training"
MOST_TOP_MODULES = 8
COMPILED = {"text._tokens", "hashers.shared._layers", "search._kernel"}  # they import nothing

# Why a module of the package may be imported inside a function: who, what, and the reason.
LATE_IMPORTS = [
    ("hashers", "training", "imports torch, which only fitting needs"),
    ("boltzhash", "hashers", "public names are imported when they are first used"),
    ("__main__", "cli", "Ctrl-C is dealt with before anything else is imported"),
    ("cli", "", "a command imports what it needs when it runs, so that --help is fast"),
]


class Import(NamedTuple):
    """One module imports another, by names without the leading ``boltzhash.``."""

    by: str
    of: str
    late: bool = False  # inside a function


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return read_imports(PACKAGE)


def test_rooms_import_in_one_direction(imports: list[Import]) -> None:
    assert wrong_directions(imports) == []


def test_no_module_imports_itself_by_a_detour(imports: list[Import]) -> None:
    assert cycle(imports) == []


def test_imports_in_functions_have_a_reason(imports: list[Import]) -> None:
    assert without_reason(imports) == []


def test_every_reason_is_in_use(imports: list[Import]) -> None:
    late = [found for found in imports if found.late]
    unused = [reason for reason in LATE_IMPORTS if not any(applies(reason, one) for one in late)]
    assert unused == []


def test_torch_is_imported_in_one_room() -> None:
    outside = [
        name
        for name, path in modules_of(PACKAGE).items()
        if room_of(name) != TORCH_ROOM
        and any(found.split(".")[0] == "torch" for found, _ in imported_names(path, name))
    ]
    assert outside == []


def test_every_module_and_folder_has_its_place_in_the_order() -> None:
    placed = {room for line in ROOMS for room in line}
    assert {room_of(name) for name in modules_of(PACKAGE)} == placed


def test_few_modules_lie_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_TOP_MODULES


def test_the_rules_find_what_they_forbid(tmp_path: Path) -> None:
    """A small package with one breach of each rule."""
    sources = {
        "search/exact.py": "import boltzhash.collection.store",  # against the order
        "text/tokens.py": "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from boltzhash.text import counting",  # half of a cycle …
        "text/counting.py": "def f():\n    from .tokens import split",  # … and the other, hidden
        "server/app.py": "import importlib\n"
        "def f():\n    importlib.import_module('boltzhash.search.exact')",
        "collection/store.py": "from boltzhash.codes import pack",
        "codes.py": "",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    found = read_imports(tmp_path)
    assert wrong_directions(found) == ["search.exact imports collection.store"]
    assert set(cycle(found)) == {"text.tokens", "text.counting"}
    assert without_reason(found) == [
        "server.app imports search.exact in a function",
        "text.counting imports text.tokens in a function",
    ]


def wrong_directions(imports: list[Import]) -> list[str]:
    line = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
    return sorted(
        f"{one.by} imports {one.of}"
        for one in imports
        if room_of(one.by) != room_of(one.of) and line[room_of(one.of)] >= line[room_of(one.by)]
    )


def cycle(imports: list[Import]) -> list[str]:
    """The modules of one cycle, or nothing.

    That a module's folder is imported with it is left out: otherwise each folder whose ``__init__``
    names its modules would be a cycle.
    """
    graph: dict[str, set[str]] = {}
    for one in imports:
        graph.setdefault(one.by, set()).add(one.of)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def without_reason(imports: list[Import]) -> list[str]:
    return sorted(
        f"{one.by} imports {one.of} in a function"
        for one in imports
        if one.late and not any(applies(reason, one) for reason in LATE_IMPORTS)
    )


def applies(reason: tuple[str, str, str], late: Import) -> bool:
    by, of, _ = reason
    return room_of(late.by) == by and f"{late.of}.".startswith(f"{of}." if of else "")


def room_of(name: str) -> str:
    return name.split(".")[0]


def modules_of(package: Path) -> dict[str, Path]:
    """Every module by its name; a folder's ``__init__`` is called like the folder."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        found[".".join(parts) or "boltzhash"] = path
    return found


def read_imports(package: Path) -> list[Import]:
    """All imports between modules of the package."""
    modules = modules_of(package)
    found = set()
    for by, path in modules.items():
        for name, late in imported_names(path, by):
            of = name.removeprefix("boltzhash.")
            if name.split(".")[0] != "boltzhash" or of in COMPILED:
                continue
            while of not in modules and "." in of:  # the name of something in a module
                of = of.rpartition(".")[0]
            of = of if of in modules else "boltzhash"
            if of != by:
                found.add(Import(by, of, late))
    return sorted(found)


def imported_names(path: Path, module: str) -> Iterator[tuple[str, bool]]:
    """What a file imports, as full names, and whether it does so inside a function."""
    folder = ["boltzhash", *module.split(".")]
    if path.name != "__init__.py":
        folder.pop()
    for node, late in walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, late) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                above = folder[: len(folder) + 1 - level] if level else []
                base = ".".join([*above, *([source] if source else [])])
                yield from ((f"{base}.{alias.name}", late) for alias in names)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(function) in ("import_module", "importlib.import_module"):
                    yield name, late


def walk(node: ast.AST, late: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes below one, each with whether a function is around it."""
    for child in ast.iter_child_nodes(node):
        inside = late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield child, inside
        yield from walk(child, inside)
