"""Without an optional dependency (exit code 3), and without importing it where it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from boltzhash.cli.learning import FEWEST
from command_line import Fitted, Run, contents, environment, run_apart, search_hits
from small_corpus import make_documents, write_jsonl


@pytest.fixture
def without(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """An environment in which a package cannot be imported."""

    def hide(package: str) -> dict[str, str]:
        folder = tmp_path / "hidden"
        folder.mkdir()
        (folder / f"{package}.py").write_text(f"raise ImportError('no {package} here')\n")
        path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        return environment(PYTHONPATH=path)

    return hide


def test_fit_without_torch_says_what_to_install(
    fitted: Fitted, tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    output = tmp_path / "model"
    result = run_apart("fit", fitted.corpus, "-o", output, env=without("torch"))
    message = "fit needs torch, which is not installed: pip install 'boltzhash[train]'"
    assert result == Run(3, "", f"boltzhash: error: {message}\n")
    assert not output.exists()


def test_index_without_torch_says_what_is_missing_and_does_without(
    tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    corpus = write_jsonl(tmp_path / "corpus.jsonl", make_documents(FEWEST))
    result = run_apart("index", corpus, "-o", tmp_path / "library", env=without("torch"))
    assert (result.code, result.err) == (
        0,
        "boltzhash: fit needs torch, which is not installed: pip install 'boltzhash[train]' for learned "
        "codes; going on with words, and the codes of ITQ, a linear method\n",
    )
    assert f"{FEWEST} documents, codes of 64 bits (ITQ)" in result.out
    assert search_hits(tmp_path / "library", "kitchen-7", "-k", 1)[0]["id"] == "kitchen-7"


def test_encode_and_search_work_without_torch(
    fitted: Fitted, tmp_path: Path, without: Callable[[str], dict[str, str]]
) -> None:
    env, codes = without("torch"), tmp_path / "codes"
    assert run_apart("encode", fitted.model, fitted.corpus, "-o", codes, env=env).code == 0
    assert contents(codes) == contents(fitted.codes)
    result = run_apart(
        *("search", fitted.model, codes, "ship sail", "--corpus", fitted.corpus), env=env
    )
    assert (result.code, result.err) == (0, "")
    assert len(result.out.splitlines()) == 11


NO_TORCH = """
import sys
from boltzhash.cli.parser import main

for arguments in sys.argv[1:]:
    code = main(arguments.split("|"))
    assert code == 0, code
heavy = {"torch", "sklearn", "matplotlib", "pandas", "pyarrow"}.intersection(sys.modules)
assert not heavy, heavy
"""


def test_only_fit_imports_torch(fitted: Fitted, tmp_path: Path) -> None:
    commands: list[list[object]] = [
        ["encode", fitted.model, fitted.corpus, "-o", tmp_path / "codes"],
        ["search", fitted.model, fitted.codes, "ship", "--corpus", fitted.corpus],
        ["explain", fitted.model],
    ]
    arguments = ["|".join(map(str, command)) for command in commands]
    result = run_apart(*arguments, program=NO_TORCH)
    assert (result.code, result.err) == (0, "")
