"""Several processes take the steps that one would take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.engines

# A model without chance: then the sum of the shares' gradients is the gradient, to rounding.
PROGRAM = """
import json, sys
import numpy as np, torch
from scipy import sparse
from torch import nn
from boltzhash.batches import Documents, Terms
from boltzhash.distributed import joined
from boltzhash.training import Schedule, train

rng = np.random.default_rng(0)
rows = sparse.csr_matrix(rng.random((47, 12)) * (rng.random((47, 12)) < 0.4), dtype=np.float32)
torch.manual_seed(1)
model = nn.Linear(12, 8)

def step(batch):
    dense = torch.zeros(len(batch.inputs.offsets) - 1, 12)
    for i, (a, b) in enumerate(zip(batch.inputs.offsets[:-1], batch.inputs.offsets[1:])):
        dense[i, batch.inputs.indices[a:b].long()] = batch.inputs.values[a:b]
    out = model(dense)
    loss = ((out - 1) ** 2).sum(dim=1).mean()
    return Terms(loss, loss.detach(), loss.detach() * 2, out > 0)

with joined() as rank:
    records = []
    train(
        model, step, Documents(rows, rows), Schedule(3, 9, 0.05, "cosine"),
        seed=0, device=torch.device("cpu"), on_epoch=records.append,
    )
    weights = [p.detach().numpy().ravel().tolist() for p in model.parameters()]
    terms = [[r.reconstruction, r.kl, r.distinct_codes, r.bit_balance] for r in records]
    with open(f"{sys.argv[1]}.{rank}", "w") as file:
        json.dump([weights[0] + weights[1], terms], file)
"""


def run(folder: Path, n_processes: int) -> list[list[np.ndarray]]:
    """The weights and the records of each process."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(folder / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if n_processes > 1:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        command = [sys.executable, *launch, str(n_processes), *command[1:]]
    subprocess.run(command, check=True, timeout=200, env=environment, capture_output=True)
    out = [json.loads((folder / f"out.{rank}").read_text()) for rank in range(n_processes)]
    return [[np.array(part) for part in parts] for parts in out]


@pytest.mark.parametrize("n_processes", [2, 4])
def test_the_same_weights_as_one_process(tmp_path: Path, n_processes: int) -> None:
    """47 documents in batches of 9: shares differ, and the last batch has two."""
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    ((weights, records),) = run(tmp_path / "one", 1)
    for other_weights, other_records in run(tmp_path / "many", n_processes):
        np.testing.assert_allclose(other_weights, weights, rtol=0, atol=2e-5)
        np.testing.assert_allclose(other_records, records, rtol=1e-4)
