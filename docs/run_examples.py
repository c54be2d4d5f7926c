"""Runs the scripts of examples/ and keeps what they print, for their pages on the site.

    python docs/run_examples.py [SCRIPT ...]

Writes examples/outputs/NAME.txt, a picture beside it if the script draws one, and circumstances.json,
which says where that was: with other docstrings or another processor hits may differ. What changes from
run to run is masked. With BOLTZHASH_DATA, own_corpus.py also reads the Cranfield collection.
tests/examples runs everything again and compares.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
OUTPUTS = EXAMPLES / "outputs"
CIRCUMSTANCES = OUTPUTS / "circumstances.json"
NOT_HERE = {"postgresql"}  # needs a server
MASKS = {r"boltzhash-\w{8}\b": "boltzhash-…", r"at most \d+ MB": "at most … MB"}
SET_APART = ("numpy", "scipy", "scikit-learn", "torch")


class Run(NamedTuple):
    """A script with its arguments; what it printed is in a file called ``name``."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()

    def command(self) -> str:
        return shlex.join(["python", f"{self.script}.py", *self.arguments])

    def is_possible(self) -> bool:
        return not self.arguments or "BOLTZHASH_DATA" in os.environ


# Under $BOLTZHASH_DATA/ir; the questions are the first of that collection, and one of our own.
CRANFIELD = Run(
    "own_corpus-cranfield",
    "own_corpus",
    (
        "cran/corpus.jsonl.gz",
        "what similarity laws must be obeyed when constructing aeroelastic models of heated high "
        "speed aircraft .",
        "noise of jet engines",
    ),
)


def runs() -> list[Run]:
    scripts = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in NOT_HERE)
    return [*(Run(script, script) for script in scripts), CRANFIELD]


def main() -> None:
    chosen = [run for run in runs() if not sys.argv[1:] or run.script in sys.argv[1:]]
    OUTPUTS.mkdir(exist_ok=True)
    for run in chosen:
        if not run.is_possible():
            sys.exit(f"{run.command()} reads BOLTZHASH_DATA, which is not set")
        with tempfile.TemporaryDirectory() as folder:
            print(run.command(), flush=True)
            text = printed(run, Path(folder))
            (OUTPUTS / f"{run.name}.txt").write_text(text, encoding="utf-8")
            for picture in Path(folder).glob("*.png"):
                shutil.copyfile(picture, OUTPUTS / picture.name)
    CIRCUMSTANCES.write_text(json.dumps(circumstances(), indent=2) + "\n", encoding="utf-8")


def printed(run: Run, folder: Path) -> str:
    """What it prints in an empty folder, where its temporary files go too."""
    if run.arguments:
        (folder / "cran").symlink_to(Path(os.environ["BOLTZHASH_DATA"], "ir", "cran").absolute())
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{run.script}.py", *run.arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{run.command()} ended with {done.returncode}: {done.stderr}")
    return masked(done.stdout.replace(str(folder), "/tmp"))


def masked(text: str) -> str:
    """
    >>> masked("at most 123 MB in /tmp/boltzhash-a_c4efgh/library")
    'at most … MB in /tmp/boltzhash-…/library'
    """
    for pattern, instead in MASKS.items():
        text = re.sub(pattern, instead, text)
    return text


def circumstances() -> dict[str, str]:
    """What decides which docstrings there are, and how numbers are rounded."""
    import torch
    from threadpoolctl import threadpool_info

    kernels = {pool.get("architecture", "") for pool in threadpool_info()} - {""}
    return {
        "python": platform.python_version(),
        **{package: version(package) for package in SET_APART},
        "machine": f"{platform.system()} {platform.machine()}",
        "kernels": ", ".join([torch.backends.cpu.get_cpu_capability(), *sorted(kernels)]),
    }


if __name__ == "__main__":
    main()
