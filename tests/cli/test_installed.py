"""``boltzhash info``: what is installed and compiled here."""

from __future__ import annotations

import json
import re
import sysconfig
from importlib import import_module
from importlib.metadata import version

import pytest

import boltzhash
from boltzhash.cli import installed
from boltzhash.search.compiled import kernel_name
from command_line import succeed


def test_json_has_versions_parts_kernel_extras_and_gpus() -> None:
    facts = json.loads(succeed("info", "--json"))
    assert facts["boltzhash"] == boltzhash.__version__
    assert facts["packages"]["numpy"] == version("numpy")
    assert set(facts["compiled"]) == set(installed.COMPILED)
    assert facts["kernel"] == kernel_name()
    assert facts["extras"]["train"]["torch"] == version("torch")
    assert facts["extras"]["train"]["faiss-cpu"] == version("faiss-cpu")  # an extra in an extra
    assert isinstance(facts["gpus"], list)


def test_an_extra_that_is_not_there_comes_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["numpy>=2", 'umap-learn>=0.5; extra == "map"', 'boltzhash[map]; extra == "all"']
    monkeypatch.setattr(installed.metadata, "requires", lambda name: lines)
    monkeypatch.setattr(installed, "installed_version", lambda name: None)
    shown = succeed("info")
    assert "  map         no umap-learn: pip install 'boltzhash[map]'" in shown
    assert "  all         no umap-learn: pip install 'boltzhash[all]'" in shown


def test_what_was_not_compiled_is_named_with_what_it_costs() -> None:
    parts = dict.fromkeys(installed.COMPILED, True)
    assert installed.compiled(parts) == "all 6 parts"
    told = installed.compiled({**parts, "text._tokens": False})
    assert told.startswith("5 of 6 parts, not text._tokens. Slower: counting words.")
    assert "--no-binary boltzhash" in told


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="has no stable ABI yet"
)
@pytest.mark.parametrize("name", installed.COMPILED)
def test_compiled_parts_keep_to_the_stable_abi(name: str) -> None:
    """Otherwise the wheel, which says that it does, would not load in a later Python."""
    if not installed.is_compiled(name):
        pytest.skip("built without a compiler")
    file = import_module(f"boltzhash.{name}").__file__
    assert re.search(r"\.(abi3\.so|pyd)$", str(file)), file
