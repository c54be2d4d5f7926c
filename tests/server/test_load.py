"""A few seconds of the load that benchmarks/service.py makes for a minute, a killed worker included."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.service

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "service.py"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPT.parent)  # for what it imports from beside it
    specification = importlib.util.spec_from_file_location("service_benchmark", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, specification.name, module)
    specification.loader.exec_module(module)
    return module


def test_under_load_with_a_killed_worker_every_answer_is_right(
    service: ModuleType, folder: Path
) -> None:
    result = service.measure(folder, seconds=4, connections=16, workers=2, rates=False)
    assert result["explained"]
    assert result["wrong_answers"] == 0
    assert result["lost_writes"] == 0
    assert result["errors"] == []
    assert result["broken_not_by_the_kill"] == 0
    assert result["answers"] > 20
    assert result["writes_acknowledged"] > 2
    assert 0 < result["broken_connections"] <= 16
    assert result["exit_code"] == 0


def test_the_oracle_sees_a_wrong_answer_and_a_lost_write(service: ModuleType, folder: Path) -> None:
    truth = service.Truth(folder, ["moon star"])
    right = service.nearest(truth.codes, truth.codes[:, 0] >= 0, truth.queries[0], truth.ids)
    write = service.Write(added=[("new", "moon star")], generation=truth.first + 1)
    swapped = [right[1], right[0], *right[2:]]
    for generation, hits, n_wrong in (
        (truth.first, right, 0),
        (truth.first, swapped, 1),
        (truth.first, right[:-1], 1),
        (truth.first + 1, right, 1),  # the new document is missing
    ):
        answer = service.Answered(generation, 0, hits)
        assert truth.wrong_answers([write], [answer]) == n_wrong
    assert service.lost_writes([write], [], {}) == 1
    assert service.lost_writes([write], [], {"new": "moon star"}) == 0
