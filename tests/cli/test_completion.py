"""``boltzhash completion``: scripts that know every command and option, in the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from command_line import misused, succeed

SHELLS = ("bash", "zsh", "fish")


def in_shell(shell: str, script: str, folder: Path | None = None) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    ran = subprocess.run(
        [shell, "-c", script], capture_output=True, text=True, check=False, cwd=folder
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def completed(folder: Path, *words: str) -> list[str]:
    """What bash would offer after these words."""
    typed = " ".join(f"'{word}'" for word in words)
    script = (
        f"{succeed('completion', 'bash')}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}\n"
        '_shtab_boltzhash; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return in_shell("bash", script, folder).split()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_understands_its_script(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(succeed("completion", shell))
    assert in_shell(shell, f"{shell} -n {script}") == ""


def test_bash_completes_commands_options_choices_and_files(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    for words, expected in [
        (["re"], ["rehash"]),
        (["fit", "--ma"], ["--max-words", "--max-df", "--max-memory"]),
        (["search", "library", "--by", ""], ["both", "words", "codes"]),
        (["completion", ""], list(SHELLS)),
        (["stats", "lib"], ["library"]),
        (["index", "corpus", "-o", "lib"], ["library"]),
    ]:
        assert completed(tmp_path, "boltzhash", *words) == expected


def test_zsh_takes_the_function() -> None:
    script = f"autoload -Uz compinit; compinit -u; {succeed('completion', 'zsh')}\n"
    assert in_shell("zsh", script + "print $_comps[boltzhash]") == "_shtab_boltzhash\n"


def test_a_shell_that_is_not_known_is_refused() -> None:
    assert "invalid choice: 'tcsh'" in misused("completion", "tcsh")
