"""``boltzhash completion``: scripts that know every command and option, in the shells they are for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from boltzhash.cli.completion import SCRIPTS, commands_of
from boltzhash.cli.parser import build_parser
from command_line import misused, succeed

SHELLS = tuple(SCRIPTS)


def in_shell(shell: str, script: str) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    ran = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def completed(*words: str) -> list[str]:
    """What bash would offer after these words."""
    typed = " ".join(f"'{word}'" for word in words)
    script = (
        f"{succeed('completion', 'bash')}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}\n"
        '_boltzhash; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return in_shell("bash", script).split()


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_there(shell: str) -> None:
    script = succeed("completion", shell)
    (subparsers,) = (a for a in build_parser()._actions if a.dest == "==SUPPRESS==" and a.choices)
    commands = commands_of(subparsers)
    assert len(commands) > 15
    for command in commands:
        assert command.name in script
        for option in command.options:
            for spelling in option.spellings:
                assert (spelling.lstrip("-") if shell == "fish" else spelling) in script


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_understands_its_script(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(succeed("completion", shell))
    assert in_shell(shell, f"{shell} -n {script}") == ""


def test_bash_completes_commands_options_and_choices() -> None:
    assert completed("boltzhash", "re") == ["rehash"]
    assert "stats" in completed("boltzhash", "")
    assert completed("boltzhash", "fit", "--ma") == ["--max-words", "--max-df", "--max-memory"]
    assert completed("boltzhash", "search", "library", "--by", "") == ["both", "words", "codes"]
    assert completed("boltzhash", "completion", "") == ["bash", "zsh", "fish"]
    assert completed("boltzhash", "stats", "lib") == []  # where bash completes files


def test_fish_completes_commands_options_and_choices(tmp_path: Path) -> None:
    script = tmp_path / "boltzhash.fish"
    script.write_text(succeed("completion", "fish"))

    def offered(typed: str) -> list[str]:
        shown = in_shell("fish", f"source {script}; complete -C {typed!r}")
        return [line.partition("\t")[0] for line in shown.splitlines()]

    assert offered("boltzhash re") == ["rehash"]
    assert set(offered("boltzhash fit --ma")) == {"--max-words", "--max-df", "--max-memory"}
    assert set(offered("boltzhash search library --by ")) == {"both", "words", "codes"}


def test_zsh_takes_the_function() -> None:
    script = f"autoload -Uz compinit; compinit -u; {succeed('completion', 'zsh')}\n"
    assert in_shell("zsh", script + "print $_comps[boltzhash]") == "_boltzhash\n"


def test_a_shell_that_is_not_known_is_refused() -> None:
    assert "invalid choice: 'tcsh'" in misused("completion", "tcsh")
