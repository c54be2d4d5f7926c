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

# CorrSH without what it draws at random: terms of one document, and the one that compares the documents
# of a minibatch. Then the gradients of the shares add up to that of one process, to rounding.
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np, torch
from scipy import sparse
from boltzhash import CorrSH
from boltzhash.training.batches import Documents, Terms
from boltzhash.training.distributed import joined
from boltzhash.training.loop import Schedule, train

rng = np.random.default_rng(0)
n_words = int(sys.argv[2])
shape = (47, n_words)
rows = sparse.csr_matrix(rng.random(shape) * (rng.random(shape) < 5 / n_words), dtype=np.float32)
neighbours = rng.integers(47, size=(47, 3))
hasher = CorrSH(8, rank=0, hidden_units=16, dropout=0.0)
model = hasher._build(n_words, torch.Generator().manual_seed(1))

def step(batch):
    outputs, beside = hasher._encoded(model, batch)
    words = hasher._log_likelihood(model, outputs["location"].sigmoid(), batch)
    contrast = hasher._contrast(outputs["location"], beside, batch.share)
    loss = outputs["deviation"].square().sum(-1).mean() - words.mean() + contrast
    return Terms(loss, words.mean(), 2 * words.mean(), outputs["location"] > 0)

summed = []  # how many numbers, each time

def all_reduce(numbers, send=torch.distributed.all_reduce):
    summed.append(numbers.numel())
    send(numbers)

torch.distributed.all_reduce = all_reduce

with joined() as rank:
    records = []
    train(
        model, step, Documents(rows, rows, None, neighbours, 0.2), Schedule(3, 9, 0.01, "cosine"),
        seed=0, device=torch.device("cpu"), on_epoch=records.append,
    )
    weights = torch.cat([p.detach().ravel() for p in model.parameters()]).tolist()
    terms = [[r.reconstruction, r.kl, r.distinct_codes, r.bit_balance] for r in records]
    with open(f"{sys.argv[1]}.{rank}", "w") as file:
        json.dump([weights, terms, summed], file)

# A thread of the group that is left would abort the process, now and then, while Python shuts down.
names = [task.read_text() for task in Path("/proc/self/task").glob("*/comm")]  # none where not Linux
assert not [name for name in names if "gloo" in name], names
"""


def run(folder: Path, n_processes: int, n_words: int) -> list[list[np.ndarray]]:
    """The weights and the records of each process, and how many numbers it had summed at a time."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(folder / "out"), str(n_words)]
    # Through the loopback, whatever this machine's name and network are.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    if n_processes > 1:
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        command = [sys.executable, *launch, str(n_processes), *command[1:]]
    done = subprocess.run(command, timeout=200, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    out = [json.loads((folder / f"out.{rank}").read_text()) for rank in range(n_processes)]
    return [[np.array(part) for part in parts] for parts in out]


# A batch has 9 documents and a neighbour of each, 18 rows.
N_WORDS = {"more rows than words": 12, "more words than rows": 60}


@pytest.fixture(scope="module", params=N_WORDS)
def alone(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, list[np.ndarray]]:
    """How many words there are, and the weights and the records of one process."""
    n_words = N_WORDS[request.param]
    (found,) = run(tmp_path_factory.mktemp("alone"), 1, n_words)
    return n_words, found


@pytest.mark.parametrize("n_processes", [2, 4])
def test_the_same_weights_as_one_process(
    tmp_path: Path, alone: tuple[int, list[np.ndarray]], n_processes: int
) -> None:
    """47 documents in batches of 9: shares differ, and the last batch has two."""
    n_words, (its_weights, its_records, _) = alone
    for weights, records, _ in run(tmp_path, n_processes, n_words):
        np.testing.assert_allclose(weights, its_weights, rtol=0, atol=2e-5)
        np.testing.assert_allclose(records, its_records, rtol=1e-4)


def test_parts_of_the_first_layers_gradient_are_fetched_where_it_is_larger(tmp_path: Path) -> None:
    """What is summed at a time is the gradient of all weights, or of all but those 60 × 16."""
    (_, _, summed), _ = run(tmp_path, 2, 60)
    others = 16 + 16 * 16 + 16 + 16 * 16 + 16 + 8 * 60 + 60
    assert max(summed) == others
