"""The demo corpus that is always there: the docstrings of the Python it runs on.

Python source is parsed, not imported, because importing a module for its docstring would run it.
Only what has no Python source, or is loaded anyway, is imported and inspected.
"""

import ast
import gc
import importlib
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from boltzhash.corpus import Document

# Shorter docstrings ("Return the next frame.") say little that their name does not. With ten words
# CPython 3.11, numpy 2.4, scipy 1.17 and scikit-learn 1.9 together give almost 9,000 documents:
# enough to search in, few enough to train on while you wait.
_MIN_WORDS = 10

# Tests, programs rather than libraries, generated tables, other projects' code in the tree, and what
# newer Pythons no longer have.
_SKIPPED_FOLDERS = (
    "test tests idlelib lib2to3 distutils turtledemo encodings site-packages dist-packages "
    "externals _external _lib _vendor _build_utils"
)
_SKIPPED_FILES = "__main__.py conftest.py setup.py"
_PARSED_PACKAGES = ("scipy", "sklearn")
_RENAMED_MODULES = {os.path.__name__: "os.path"}

# Modules with C code behind them whose import only defines names: no readline, which takes over
# the terminal, and no deprecated module, which warns.
_INSPECTED_MODULES = (
    "array atexit binascii bisect builtins bz2 cmath codecs collections contextvars csv ctypes "
    "datetime decimal errno faulthandler fcntl functools gc grp hashlib heapq io itertools json "
    "lzma marshal math mmap operator os pickle pwd queue random re resource select signal socket "
    "sqlite3 ssl statistics struct sys syslog termios threading time tracemalloc unicodedata "
    "warnings weakref zlib zoneinfo"
)
# scipy.special is first because importing it extends the docstring of numpy.sinc.
_INSPECTED_PACKAGES = (
    "scipy.special numpy numpy.char numpy.ctypeslib numpy.dtypes numpy.exceptions numpy.fft "
    "numpy.lib numpy.lib.array_utils numpy.lib.format numpy.lib.introspect numpy.lib.mixins "
    "numpy.lib.npyio numpy.lib.scimath numpy.lib.stride_tricks numpy.linalg numpy.ma "
    "numpy.polynomial numpy.polynomial.chebyshev numpy.polynomial.hermite "
    "numpy.polynomial.hermite_e numpy.polynomial.laguerre numpy.polynomial.legendre "
    "numpy.polynomial.polynomial numpy.random numpy.rec numpy.strings numpy.testing numpy.typing"
)

_NamedDoc = tuple[str, str]  # dotted public name, docstring
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def docstring_corpus() -> list[Document]:
    """The docstrings of the standard library, numpy, scipy and scikit-learn as documents.

    The id is the public dotted name; the text is that name in words, then the docstring. Documents
    come in the order of their ids, and one installation always gives the same list. A package that is
    not installed is left out.

    >>> documents = {document.id: document.text for document in docstring_corpus()}
    >>> print(documents["str.title"])
    str title
    <BLANKLINE>
    Return a version of the string where each word is titlecased.
    <BLANKLINE>
    More specifically, words start with uppercased characters and all remaining
    cased characters have lower case.
    """
    by_name: dict[str, str] = {}
    with _garbage_collection_paused():
        for name, doc in _all_docstrings():
            text = _clean(doc)
            if len(text.split()) >= _MIN_WORDS:
                # If two sources document one name (Python and C), the longer text says more.
                by_name[name] = max(by_name.get(name, ""), text, key=_by_length)
    return [
        Document(name, f"{_in_words(name)}\n\n{by_name[name]}")
        for name in _without_aliases(by_name)
    ]


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Syntax trees are millions of objects without a cycle: looking for cycles costs a second."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _all_docstrings() -> Iterator[_NamedDoc]:
    yield from _parsed_folder(Path(sysconfig.get_path("stdlib")), "")
    for package in _PARSED_PACKAGES:
        spec = importlib.util.find_spec(package)  # finds a top-level package without importing it
        for folder in (spec.submodule_search_locations or []) if spec else []:
            yield from _parsed_folder(Path(folder), package)
    for name in f"{_INSPECTED_MODULES} {_INSPECTED_PACKAGES}".split():
        yield from _inspected_module(name)


def _clean(doc: str) -> str:
    """The docstring without indentation and without the places scipy.stats fills in at run time.

    >>> _clean("A normal variable.\\n\\n    %(before_notes)s\\n\\n    Notes")
    'A normal variable.\\n\\nNotes'
    """
    return inspect.cleandoc(re.sub(r"\n\s*%\(\w+\)s *(?=\n|$)", "", doc)).strip()


def _in_words(name: str) -> str:
    """A dotted name as one would say it.

    >>> _in_words("sklearn.svm.LinearSVC.decision_function")
    'sklearn svm Linear SVC decision function'
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return re.sub(r"[._\s]+", " ", spaced).strip()


def _without_aliases(by_name: dict[str, str]) -> list[str]:
    """The shortest of the names that share one docstring, sorted.

    >>> _without_aliases({"numpy.absolute": "Size.", "numpy.abs": "Size.", "math.pow": "Power."})
    ['math.pow', 'numpy.abs']
    """
    shortest: dict[str, str] = {}
    for name in sorted(by_name, key=_by_length):
        shortest.setdefault(by_name[name], name)
    return sorted(shortest.values())


def _by_length(name: str) -> tuple[int, str]:
    return len(name), name


# What has Python source is parsed. A definition goes by the shortest name it can be imported by,
# for which re-exports are followed: scipy.linalg._decomp.eigh is scipy.linalg.eigh to its users.


class _Module(NamedTuple):
    """What is needed from a source file; its syntax tree is too big to keep."""

    name: str
    doc: str
    definitions: dict[str, list[_NamedDoc]]  # name: its docstring ("") and its methods' (".fit")
    imports: list[tuple[str, str, str]]  # module, name there (or "*"), name here
    listed: set[str]  # the names in __all__; "*" among them if some are computed


_Origin = tuple[str, str]  # the module that defines something, and its name there


def _parsed_folder(root: Path, package: str) -> Iterator[_NamedDoc]:
    """The public docstrings in the Python files under a folder that holds ``package``."""
    modules = {module.name: module for module in _parsed_modules(root, package)}
    for module in modules.values():
        if _is_public(module.name):
            yield module.name, module.doc
    for (source, defined), name in _public_names(modules).items():
        for method, doc in modules[source].definitions[defined]:
            yield name + method, doc


def _parsed_modules(root: Path, package: str) -> Iterator[_Module]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(set(subfolders).difference(_SKIPPED_FOLDERS.split()))
        for file in sorted(set(files).difference(_SKIPPED_FILES.split())):
            path = Path(folder, file)
            parts = [package, *path.relative_to(root).with_suffix("").parts]
            parts = [part for part in parts if part not in ("", "__init__")]
            if file.endswith(".py") and all(part.isidentifier() for part in parts):
                name = ".".join(parts)
                parent = name if file == "__init__.py" else name.rpartition(".")[0]
                if tree := _parse(path):
                    statements = list(_statements(tree.body))
                    yield _Module(
                        name=_RENAMED_MODULES.get(name, name),
                        doc=ast.get_docstring(tree, clean=False) or "",
                        definitions=_definitions(statements),
                        imports=list(_imports(statements, parent)),
                        listed=_listed(statements),
                    )


def _parse(path: Path) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in source that is not ours
        try:
            return ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):  # a template, for another Python, unreadable
            return None


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module or class, including those that depend on the platform."""
    for node in body:
        match node:
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                continue  # run as a program
            case ast.If() | ast.Try():
                handlers = node.handlers if isinstance(node, ast.Try) else []
                yield from _statements([*node.body, *node.orelse])
                yield from _statements(part for handler in handlers for part in handler.body)
            case _:
                yield node


def _definitions(statements: Iterable[ast.stmt]) -> dict[str, list[_NamedDoc]]:
    """The functions and classes of a module with their docstrings."""
    definitions: dict[str, list[_NamedDoc]] = {}
    for node in statements:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                definitions[node.name] = list(_documented(node, ""))
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=maker))):
                # scipy.stats: norm = norm_gen(...), and the class has the docstring.
                if maker == f"{name}_gen" and maker in definitions:
                    definitions[name] = definitions[maker]
    return definitions


def _documented(node: _Definition, name: str) -> Iterator[_NamedDoc]:
    """The docstring of a function or class and those of the public methods inside."""
    yield name, ast.get_docstring(node, clean=False) or ""
    for inner in _statements(node.body) if isinstance(node, ast.ClassDef) else []:
        if isinstance(inner, _Definition) and _is_public(inner.name):
            yield from _documented(inner, f"{name}.{inner.name}")


def _imports(statements: Iterable[ast.stmt], parent: str) -> Iterator[tuple[str, str, str]]:
    """Module, name there and name here for each ``from module import name``."""
    for node in statements:
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:  # each dot after the first is one package up
                source = f"{parent.rsplit('.', node.level - 1)[0]}.{source}".strip(".")
            for alias in node.names:
                yield source, alias.name, alias.asname or alias.name


def _listed(statements: Iterable[ast.stmt]) -> set[str]:
    """The names in ``__all__``, and "*" if any of them is only known at run time."""
    listed: set[str] = set()
    for node in statements:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
            ):
                try:
                    listed.update(ast.literal_eval(value))
                except (ValueError, TypeError):
                    listed.add("*")
    return listed


def _public_names(modules: dict[str, _Module]) -> dict[_Origin, str]:
    """The shortest public name of each definition that has one."""
    names: dict[_Origin, str] = {}
    offers: dict[str, dict[str, _Origin]] = {}
    for module in filter(_is_public, modules):
        for name, origin in _offered(module, modules, offers).items():
            candidate = f"{module}.{name}"
            if _is_public(name):
                known = names.get(origin, candidate)
                names[origin] = min(known, candidate, key=_by_length)
    return names


def _offered(
    name: str, modules: dict[str, _Module], offers: dict[str, dict[str, _Origin]]
) -> dict[str, _Origin]:
    """What can be imported from a module: what it defines and what it passes on.

    It passes on what it imports with ``*``, lists in ``__all__`` or takes from inside its package;
    other imports are for its own use. ``offers`` remembers the answers.
    """
    if name in offers or name not in modules:
        return offers.get(name, {})
    module = modules[name]
    offered = offers[name] = {defined: (name, defined) for defined in module.definitions}
    for source, there, here in module.imports:
        available = _offered(source, modules, offers)
        if there == "*" and available:
            listed = modules[source].listed or {"*"}
            offered |= {n: o for n, o in available.items() if n in listed or "*" in listed}
        elif there in available and (here in module.listed or source.startswith(f"{name}.")):
            offered[here] = available[there]
    return offered


def _is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


# What has no Python source is inspected.


def _inspected_module(name: str) -> Iterator[_NamedDoc]:
    """Docstrings of what a module defines in C, or in Python that is loaded anyway."""
    try:
        module = importlib.import_module(name)
    except ImportError:  # not every Python is built with every module, fcntl for one
        return
    prefix = "" if name == "builtins" else f"{name}."
    if prefix:
        yield name, module.__doc__ or ""
    for attribute, value in _public_members(module):
        is_replaceable = attribute.endswith("hook")  # sys.excepthook: programs set their own
        if is_replaceable or not _is_defined_in(value, name):
            continue
        yield prefix + attribute, _own_doc(value)
        if isinstance(value, type):
            for method, member in _public_members(value):
                yield f"{prefix}{attribute}.{method}", _own_doc(member)


def _public_members(owner: ModuleType | type) -> Iterator[tuple[str, object]]:
    for name, value in sorted(vars(owner).items()):
        if not name.startswith("_") and not isinstance(value, ModuleType):
            yield name, value


def _is_defined_in(value: object, module: str) -> bool:
    """Whether a module's member is its own and not just imported there.

    C code often lives in a twin with an underscore (``_socket``) or in the interpreter itself.
    """
    owner = str(getattr(value, "__module__", None) or module)
    if module in _INSPECTED_PACKAGES.split():
        return owner.split(".")[0] == module.split(".")[0]
    if module == "builtins" and inspect.isbuiltin(value):  # the owner of open() is io
        return True
    return owner in (module, f"_{module}", *sys.builtin_module_names)


def _own_doc(value: object) -> str:
    """The docstring of a function, class or property, but not one an instance has from its class.

    >>> _own_doc(3.14)
    ''
    """
    doc = getattr(value, "__doc__", None)
    is_documented = isinstance(doc, str) and doc != type(value).__doc__
    return str(doc) if is_documented else ""
