"""What a command writes, or leaves alone where it cannot write (exit code 5)."""

import os
import re
import shutil
from pathlib import Path

import pytest

from command_line import FIT, Fitted, contents, names, refused, run, run_apart, succeed


def test_others_may_read_what_is_written(fitted: Fitted, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        succeed("fit", fitted.corpus, "-o", tmp_path / "model", "--bits", 8, "--epochs", 2)
        succeed("encode", tmp_path / "model", fitted.corpus, "-o", tmp_path / "codes")
    finally:
        os.umask(mask)
    for folder in (tmp_path / "model", tmp_path / "codes"):
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
        assert modes == dict.fromkeys(modes, "0o644")
        assert oct(folder.stat().st_mode & 0o777) == "0o755"


def test_a_link_is_followed_and_leaves_nothing_behind(fitted: Fitted, tmp_path: Path) -> None:
    shutil.copytree(fitted.codes, tmp_path / "codes")
    (tmp_path / "codes" / "ids.jsonl").unlink()
    (tmp_path / "link").symlink_to("codes")
    succeed("encode", fitted.model, fitted.corpus, "-o", tmp_path / "link")
    assert contents(tmp_path / "link") == contents(fitted.codes)
    assert names(tmp_path) == ["codes", "link"]


# What is there stays


@pytest.mark.parametrize("inside", [False, True], ids=["is a file", "is inside a file"])
def test_an_output_that_cannot_be_written(fitted: Fitted, tmp_path: Path, inside: bool) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("mine")
    output = occupied / "output" if inside else occupied
    fit = refused("fit", fitted.corpus, "-o", output, "--bits", 8, "--epochs", 2, code=5)
    encode = refused("encode", fitted.model, fitted.corpus, "-o", output, code=5)
    assert str(occupied) in fit
    assert str(occupied) in encode
    assert occupied.read_text() == "mine"
    assert names(tmp_path) == ["occupied"]


@pytest.mark.parametrize("command", ["fit", "encode"])
def test_a_folder_that_is_not_ours_is_not_replaced(
    fitted: Fitted, tmp_path: Path, command: str
) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter1.txt").write_text("years of work")
    arguments: dict[str, list[object]] = {
        "fit": [fitted.corpus, "--bits", 8, "--epochs", 2],
        "encode": [fitted.model, fitted.corpus],
    }
    result = run(command, *arguments[command], "-o", mine)
    assert contents(mine) == {"chapter1.txt": b"years of work"}
    assert result.code in (2, 5)
    assert str(mine) in result.err


def test_codes_do_not_replace_their_model(fitted: Fitted, model: Path) -> None:
    result = run("encode", model, fitted.corpus, "-o", model)
    assert contents(model) == contents(fitted.model)
    assert result.code in (2, 5)
    assert str(model) in result.err


# A full disk


SMALL_FILES_ONLY = """
import resource, sys
from boltzhash.cli.parser import main

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


def fill_the_disk(limit: int, *arguments: object) -> None:
    """A run that may write so many bytes to a file and fails for that reason."""
    result = run_apart(limit, *arguments, program=SMALL_FILES_ONLY)
    assert (result.code, result.out) == (5, "")
    assert re.fullmatch(r"boltzhash: error: .*File too large.*\n", result.err)


def test_a_full_disk_leaves_the_old_model(fitted: Fitted, model: Path) -> None:
    fill_the_disk(10_000, "fit", fitted.corpus, "-o", model, *FIT, "--seed", 2, "--force")
    assert contents(model) == contents(fitted.model)
    assert names(model.parent) == ["model"]


def test_a_full_disk_leaves_the_old_codes(fitted: Fitted, tmp_path: Path) -> None:
    codes = Path(shutil.copytree(fitted.codes, tmp_path / "codes"))
    fill_the_disk(200, "encode", fitted.model, fitted.corpus, "-o", codes)
    assert contents(codes) == contents(fitted.codes)
    assert names(tmp_path) == ["codes"]
