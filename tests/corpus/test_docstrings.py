"""The demo corpus: small source trees with exact answers, then the Python that runs the tests."""

import hashlib
import importlib
import inspect
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.corpus import docstrings
from boltzhash.corpus.docstrings import docstring_corpus

Corpus = dict[str, str]
CorpusOf = Callable[[dict[str, str | bytes]], Corpus]

NINE = "one two three four five six seven eight nine"


def function(name: str, mark: str = "") -> str:
    """Source of a function whose docstring is long enough and is like no other."""
    return f"def {name}():\n    '''{NINE} {mark or name}'''\n"


@pytest.fixture
def corpus_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusOf:
    """The corpus of a standard library that consists of the given files, and of nothing else."""

    def read(files: dict[str, str | bytes]) -> Corpus:
        for name, source in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source if isinstance(source, bytes) else source.encode())
        monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / name))
        for table in ("_PARSED_PACKAGES", "_INSPECTED_MODULES", "_INSPECTED_PACKAGES"):
            monkeypatch.setattr(docstrings, table, "")
        return {str(document.id): document.text for document in docstring_corpus()}

    return read


# What becomes a document


def test_modules_functions_classes_and_methods(corpus_of: CorpusOf) -> None:
    source = f"""'''{NINE} module'''
async def fetch_all():
    '''{NINE} fetch'''
class HTTPServer:
    '''
    {NINE}

        indented
    '''
    def serve(self):
        '''{NINE} serve'''
    class Inner:
        def go(self):
            '''{NINE} go'''
"""
    assert corpus_of({"stdlib/web/server.py": source}) == {
        "web.server": f"web server\n\n{NINE} module",
        "web.server.HTTPServer": f"web server HTTP Server\n\n{NINE}\n\n    indented",
        "web.server.HTTPServer.Inner.go": f"web server HTTP Server Inner go\n\n{NINE} go",
        "web.server.HTTPServer.serve": f"web server HTTP Server serve\n\n{NINE} serve",
        "web.server.fetch_all": f"web server fetch all\n\n{NINE} fetch",
    }


def test_ten_words_make_a_document(corpus_of: CorpusOf) -> None:
    source = f"def short():\n    '''{NINE}'''\ndef long():\n    '''{NINE} ten'''\ndef none(): ...\n"
    assert list(corpus_of({"stdlib/m.py": source})) == ["m.long"]


def test_private_names_are_left_out(corpus_of: CorpusOf) -> None:
    source = (
        function("_f")
        + function("f")
        + f"class _C:\n    def m(self): '''{NINE} m'''\n"
        + f"class C:\n    def _m(self): '''{NINE} _m'''\n    def __len__(self): '''{NINE} len'''\n"
    )
    assert list(corpus_of({"stdlib/m.py": source, "stdlib/_m.py": function("g")})) == ["m.f"]


@pytest.mark.parametrize(
    "path",
    "test/a.py json/tests/a.py idlelib/a.py encodings/a.py site-packages/a.py a/_vendor/b.py "
    "config-3.11/a.py a/__main__.py conftest.py a.txt".split(),
)
def test_what_is_not_the_library_is_left_out(corpus_of: CorpusOf, path: str) -> None:
    files: dict[str, str | bytes] = {f"stdlib/{path}": function("f"), "stdlib/ok.py": function("g")}
    assert list(corpus_of(files)) == ["ok.g"]


def test_definitions_that_depend_on_the_platform(corpus_of: CorpusOf) -> None:
    source = (
        "if x:\n    def a(): 'A'\nelse:\n    def b(): 'B'\n"
        "try:\n    def c(): 'C'\nexcept ImportError:\n    def d(): 'D'\nelse:\n    def e(): 'E'\n"
        "class K:\n    if x:\n        def m(self): 'M'\n"
        "if __name__ == '__main__':\n    def main(): 'N'\n"
    )
    for letter in "ABCDEMN":
        source = source.replace(f"'{letter}'", f"'{NINE} {letter}'")
    assert list(corpus_of({"stdlib/m.py": source})) == ["m.K.m", "m.a", "m.b", "m.c", "m.d", "m.e"]


def test_source_that_cannot_be_parsed_is_left_out(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/broken.py": "def f(:\n",
        "stdlib/binary.py": b"\0",
        "stdlib/latin.py": f"# coding: latin-1\ndef f(): '{NINE} é'\n".encode("latin-1"),
    }
    assert corpus_of(files) == {"latin.f": f"latin f\n\n{NINE} é"}


@pytest.mark.filterwarnings("error")
def test_invalid_escapes_in_other_peoples_source_do_not_warn(corpus_of: CorpusOf) -> None:
    assert list(corpus_of({"stdlib/m.py": f"def f(): '{NINE} \\d'\n"})) == ["m.f"]


def test_places_filled_in_at_run_time_are_removed(corpus_of: CorpusOf) -> None:
    text = f"{NINE} %(name)s\n\n    %(before)s\n\n    Notes\n    %(a)s  A.\n    %(after)s\n\n    "
    assert corpus_of({"stdlib/m.py": f"def f():\n    '''{text}'''\n"}) == {
        "m.f": f"m f\n\n{NINE} %(name)s\n\nNotes\n%(a)s  A."
    }


# Public names


def test_a_private_module_goes_by_the_package_that_exports_it(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/p/__init__.py": "from ._a import f, g as h\nfrom p._b import *\nfrom . import _c\n",
        "stdlib/p/_a.py": function("f") + function("g") + function("helper"),
        "stdlib/p/_b/__init__.py": "from .deep.er import k\nfrom ..other import o\n",
        "stdlib/p/_b/deep/er.py": function("k"),
        "stdlib/p/_c.py": function("unreachable"),
        "stdlib/p/other.py": function("o"),
    }
    assert list(corpus_of(files)) == ["p.f", "p.h", "p.k", "p.other.o"]


def test_star_imports_follow_all(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/p/__init__.py": "from ._a import *\nfrom ._b import *\nfrom ._c import *\n",
        "stdlib/p/_a.py": "__all__ = ['f']\n__all__ += ('g',)\n"
        + "".join(map(function, ["f", "g", "h"])),
        "stdlib/p/_b.py": function("i"),
        "stdlib/p/_c.py": "__all__ = [n for n in dir() if n[0] != '_']\n" + function("j"),
    }
    assert list(corpus_of(files)) == ["p.f", "p.g", "p.i", "p.j"]


def test_an_import_for_own_use_is_not_a_public_name(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/a.py": "from contextlib import f\nfrom _hidden import g, h\n__all__ = ['g']\n",
        "stdlib/contextlib.py": function("f"),
        "stdlib/_hidden.py": function("g") + function("h"),
    }
    assert list(corpus_of(files)) == ["a.g", "contextlib.f"]


def test_the_shortest_public_name_wins(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/unittest/__init__.py": "from .case import TestCase\n",
        "stdlib/unittest/case.py": f"class TestCase:\n    '''{NINE} case'''\n" + function("skip"),
    }
    assert list(corpus_of(files)) == ["unittest.TestCase", "unittest.case.skip"]


def test_imports_in_a_circle(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/p/__init__.py": "from ._a import *\n",
        "stdlib/p/_a.py": "from ._b import *\n" + function("f"),
        "stdlib/p/_b.py": "from ._a import *\nfrom . import *\n" + function("g"),
    }
    assert list(corpus_of(files)) == ["p.f", "p.g"]


def test_one_docstring_under_several_names_is_one_document(corpus_of: CorpusOf) -> None:
    source = function("absolute", "same") + function("abs", "same") + function("ab2", "same")
    assert list(corpus_of({"stdlib/m.py": source})) == ["m.ab2"]


def test_an_instance_documented_by_its_class(corpus_of: CorpusOf) -> None:
    files: dict[str, str | bytes] = {
        "stdlib/stats/__init__.py": "from ._d import *\n",
        "stdlib/stats/_d.py": f"class norm_gen:\n    '''{NINE} norm'''\nnorm = norm_gen()\n"
        "other = norm_gen()\n",
    }
    assert list(corpus_of(files)) == ["stats.norm"]


# This Python


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    for package in ("scipy", "sklearn"):
        pytest.importorskip(package)
    documents = docstring_corpus()
    by_id = {str(document.id): document.text for document in documents}
    assert list(by_id) == [document.id for document in documents], "an id came twice"
    return by_id


def fingerprint(corpus: Corpus) -> str:
    return hashlib.sha256(repr(corpus).encode()).hexdigest()


def resolve(name: str) -> object:
    """What a dotted name stands for, by importing it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        break
    else:
        value, length = importlib.import_module("builtins"), 0
    for part in parts[length:]:
        value = getattr(value, part)
    return value


def test_every_document_keeps_the_promises(corpus: Corpus) -> None:
    assert list(corpus) == sorted(corpus)
    assert 8_000 <= len(corpus) <= 10_000
    bodies = []
    for name, text in corpus.items():
        words, body = text.split("\n\n", 1)
        assert words.replace(" ", "") == name.replace(".", "").replace("_", "")
        assert len(body.split()) >= 10
        assert body == body.strip()
        assert not any(part.startswith("_") for part in name.split("."))
        bodies.append(body)
    assert len(set(bodies)) == len(bodies)


@pytest.mark.parametrize(
    "name",
    "json.dumps str.split datetime.datetime.strptime open numpy.sin numpy.random.Generator.choice "
    "scipy.special.airy scipy.stats.qmc.Sobol.random_base2 sklearn.model_selection.KFold".split(),
)
def test_well_known_names_have_their_docstring(corpus: Corpus, name: str) -> None:
    body = corpus[name].split("\n\n", 1)[1]
    assert body == inspect.cleandoc(str(resolve(name).__doc__))


def test_docstrings_that_are_completed_at_run_time(corpus: Corpus) -> None:
    assert corpus["scipy.stats.norm"].startswith(
        "scipy stats norm\n\nA normal continuous random variable."
    )
    assert "%(" not in corpus["scipy.stats.norm"]
    assert corpus["scipy.linalg.eigh"].startswith("scipy linalg eigh\n\nSolve a standard or gen")


def test_aliases_are_collapsed(corpus: Corpus) -> None:
    assert "numpy.abs" in corpus
    assert "numpy.absolute" not in corpus
    assert "open" in corpus
    assert "io.open" not in corpus


def test_ids_can_be_imported(corpus: Corpus) -> None:
    prefixes = ("numpy.", "scipy.sparse.", "scipy.stats.", "scipy.signal.", "sklearn.metrics.")
    names = [name for name in corpus if name.startswith(prefixes)]
    assert len(names) > 2000
    missing = []
    for name in names:
        try:
            resolve(name)
        except AttributeError:
            missing.append(name)
    assert len(missing) < len(names) / 200, missing


def test_another_process_gets_the_same_without_importing_what_it_parses(corpus: Corpus) -> None:
    program = """
import sys, hashlib
package = sys.modules["boltzhash"] = type(sys)("boltzhash")
package.__path__ = [sys.argv[1]]  # without what importing the whole package imports
from boltzhash.corpus.docstrings import docstring_corpus
corpus = {document.id: document.text for document in docstring_corpus()}
print(hashlib.sha256(repr(corpus).encode()).hexdigest())
print(*sys.modules)
"""
    package = str(Path(docstrings.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, package],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    digest, modules = result.stdout.splitlines()
    assert digest == fingerprint(corpus)
    programs = {"antigravity", "this", "tkinter", "turtle", "readline", "curses", "idlelib"}
    assert programs.isdisjoint(modules.split())
    assert {"sklearn", "scipy.stats", "scipy.optimize", "torch"}.isdisjoint(modules.split())
    assert result.stderr == ""
