"""Training on a CPU: our defaults beside the published settings and beside dense PyTorch; scaling.

    BOLTZHASH_DATA=... python benchmarks/training.py            # 20 Newsgroups; up to half an hour
    python benchmarks/training.py --small                       # made-up documents, two lengths of code
    BOLTZHASH_DATA=... python benchmarks/training.py --epochs   # without scaling; ten minutes

An epoch is the fastest step times the steps of an epoch: what else the machine does can only make a step
slower. On one thread CPU seconds are counted, which other work on the machine changes least; on all of
them, seconds of the clock. The dense twin is the same model as one would write it in plain PyTorch:
``torch.nn.Linear`` on dense rows that lie ready in memory, ``log_softmax`` over the vocabulary,
``torch.optim.Adam`` as it comes; that it is the same model is checked before it is timed. Scaling is
measured in CPU seconds of one thread, each size in a process of its own, whose peak memory is read as
well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from boltzhash import CorrSH, SemanticHasher, Training
from boltzhash.datasets.vdsh import load_mat
from boltzhash.errors import TrainingError
from boltzhash.hashers.shared.boltzmann import BoltzmannHasher
from boltzhash.text.tfidf import unit_rows
from boltzhash.threads import available_cpus
from boltzhash.training.batches import Batch, Documents
from boltzhash.training.loop import PlainSteps, generator_for
from boltzhash.training.memory import kept_memory
from boltzhash.training.networks import Autoencoder, dropped_relu
from boltzhash.training.rows import Rows
from larger_than_memory import peak
from machine import machine
from synthetic import counts

RESULTS = Path(__file__).parent / "results" / "training.json"
CPU = torch.device("cpu")
Clock = Callable[[], float]
AT_MOST_PUBLISHED = 1.5  # bars: default / published,
AT_MOST_SECONDS = 1.2  # published, 64 bits on two threads,
AT_LEAST_DENSE = 3.0  # dense / default,
EXPONENT_AT_MOST = 1.1  # and of the time of an epoch in documents and in words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", action="store_true", help="fewer lengths and sizes")
    parser.add_argument("--one-thread", action="store_true", help="where the CPUs are busy")
    parser.add_argument(
        "--epochs", action="store_true", help="epochs anew; scaling stays as it was"
    )
    parser.add_argument("--one", nargs=3, type=int, metavar=("DOCUMENTS", "WORDS", "BITS"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(*options.one)))
        return
    small = options.small
    corpus, matrix = read_matrix(small)
    lengths = (32, 128) if small else (8, 16, 32, 64, 128)
    threads = [1] if small or options.one_thread else sorted({1, available_cpus()})
    documents = [1000 * 2**i for i in range(4)] if small else [10_000 * 2**i for i in range(5)]
    words = [2000, 8000] if small else [2500 * 2**i for i in range(6)]
    load = round(os.getloadavg()[0], 1)
    epochs = [epochs_of(matrix, n_bits, n, small) for n in threads for n_bits in lengths]
    result = {
        "corpus": corpus,
        "documents": matrix.shape[0],
        "words": matrix.shape[1],
        "load_average_before": load,
        "epochs": epochs,
        **(scaling_of_before() if options.epochs else scaling(documents, words, small)),
        "bars": {
            "default / published": AT_MOST_PUBLISHED,
            "published, 64 bits, two threads, s": AT_MOST_SECONDS,
            "dense / default": AT_LEAST_DENSE,
            "exponent": EXPONENT_AT_MOST,
        },
        **machine(),
    }
    result["versions"]["torch"] = torch.__version__
    print(table(result))
    if not small:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


def scaling(documents: list[int], words: list[int], small: bool) -> dict[str, Any]:
    return {
        "by_documents": [apart(n, 2000, 16) for n in documents],
        "by_words": [apart(2000 if small else 5000, n, 32) for n in words],
    }


def scaling_of_before() -> dict[str, Any]:
    before = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: before[name] for name in ("by_documents", "by_words")}


def read_matrix(small: bool) -> tuple[str, sparse.csr_matrix]:
    folder = os.environ.get("BOLTZHASH_DATA")
    if folder and not small:
        return "ng20", load_mat(Path(folder, "ng20.tfidf.mat")).train.tfidf
    return "made up", unit_rows(counts(11_292, 10_000, 100))


# Seconds per epoch


def epochs_of(
    matrix: sparse.csr_matrix, n_bits: int, n_threads: int, small: bool
) -> dict[str, Any]:
    """Seconds per epoch of default, published and dense. They take turns, a few steps each."""
    n_steps, rounds = (6, 2) if small else (12, 4)
    torch.set_num_threads(n_threads)
    clock = clock_of(n_threads)
    few = matrix[: 1 + n_steps * 200]
    take_steps = {
        "default": our_steps(
            SemanticHasher(n_bits, training=Training(device="cpu")), few, n_steps, clock
        ),
        "published": our_steps(
            CorrSH.as_published(n_bits, training__device="cpu"), few, n_steps, clock
        ),
        "dense": dense_steps(
            Composed(n_bits, training=Training(device="cpu")), few, n_steps // 2, clock
        ),
    }
    fastest = dict.fromkeys(take_steps, np.inf)
    for _ in range(rounds):
        for name, take in take_steps.items():
            fastest[name] = min(fastest[name], take())
    batch = {"default": 200, "published": 100, "dense": 200}
    seconds = {name: fastest[name] * -(-matrix.shape[0] // batch[name]) for name in batch}
    return {
        "threads": n_threads,
        "n_bits": n_bits,
        **{name: round(value, 3) for name, value in seconds.items()},
    }


def clock_of(n_threads: int) -> Clock:
    return time.process_time if n_threads == 1 else time.perf_counter


def our_steps(
    hasher: BoltzmannHasher, matrix: sparse.csr_matrix, n_steps: int, clock: Clock
) -> Callable[[], float]:
    """A function that takes steps as ``fit`` does and returns the seconds of the fastest."""
    model, documents = prepare(hasher, matrix)
    stamps: list[float] = []

    def step(batch: Batch) -> Any:
        stamps.append(clock())
        return hasher._step(model, batch)

    steps = PlainSteps(model, step, documents, hasher._training.batch_size, CPU)

    def take() -> float:
        stamps.clear()
        plan = documents.draw(np.random.default_rng(0))
        plan = plan._replace(order=plan.order[: (n_steps + 1) * hasher._training.batch_size])
        n_batches = -(-len(plan.order) // hasher._training.batch_size)
        with kept_memory():
            steps.epoch(plan, [1e-4] * n_batches, 0.0, seed=0)
        return float(np.diff(stamps).min())

    return take


def prepare(hasher: BoltzmannHasher, matrix: sparse.csr_matrix) -> tuple[Autoencoder, Documents]:
    """What ``fit`` prepares before its first step."""
    hasher.feature_scaling_ = None
    hasher._input_length = hasher._network.input_length
    inputs = hasher._network_input(matrix).astype(np.float32)
    targets = hasher._decoder_target(matrix).astype(np.float32)
    model = hasher._build(matrix.shape[1], generator_for(0, 0))
    return model, hasher._documents(Documents(inputs, targets), matrix, seed=0)


class Composed(SemanticHasher):
    """Takes its steps operation by operation, as a dense twin must."""

    def _at_once(self, model: Autoencoder, batch: Batch) -> None:
        return None


class PlainDecoder(nn.Linear):
    """Words from codes; shown to the step as the (bits × words) matrix it expects."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return found.T if name == "weight" else found


class PlainNetwork(nn.Module):
    """The inference network of torch's own parts."""

    def __init__(self, hasher: SemanticHasher, n_words: int) -> None:
        super().__init__()
        self.n = n = hasher._n_networks()
        self.sizes = {name: size // n for name, size in hasher._heads().items()}
        self.rate = hasher._network.dropout
        hidden = hasher._network.hidden_units
        self.hidden1 = nn.Linear(n_words, n * hidden)
        self.hidden2 = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(n))
        self.heads = nn.ModuleList(nn.Linear(hidden, sum(self.sizes.values())) for _ in range(n))

    def forward(self, x: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        h = dropped_relu(self.hidden1(x), self.rate, generator)
        parts = zip(self.hidden2, h.chunk(self.n, -1), strict=True)
        h = dropped_relu(
            torch.cat([layer(part) for layer, part in parts], -1), self.rate, generator
        )
        outputs = [
            layer(part).split(list(self.sizes.values()), dim=-1)
            for layer, part in zip(self.heads, h.chunk(self.n, -1), strict=True)
        ]
        return {
            name: torch.cat(of_head, -1)
            for name, of_head in zip(self.sizes, zip(*outputs, strict=True), strict=True)
        }

    def with_neighbour(
        self, x: Tensor, neighbour: Tensor, head: str, generator: torch.Generator
    ) -> tuple[dict[str, Tensor], Tensor]:
        return self(x, generator), self(neighbour, generator)[head]


def dense_twin(hasher: SemanticHasher, ours: Autoencoder, n_words: int) -> Autoencoder:
    """The same weights in torch's own layers."""
    network, decoder = PlainNetwork(hasher, n_words), PlainDecoder(hasher.n_bits, n_words)
    layers = {
        "hidden1": [network.hidden1],
        "hidden2": [*network.hidden2],
        "heads": [*network.heads],
    }
    with torch.no_grad():
        for name, side_by_side in layers.items():
            whole = getattr(ours.encoder, name)
            columns = whole.weight.chunk(len(side_by_side), -1)
            biases = whole.bias.chunk(len(side_by_side))
            for layer, weight, bias in zip(side_by_side, columns, biases, strict=True):
                layer.weight.copy_(weight.T)
                layer.bias.copy_(bias)
        decoder.weight.copy_(ours.decoder.weight)
        decoder.bias.copy_(ours.decoder.bias)
    return Autoencoder(network, decoder, ours.parts)  # type: ignore[arg-type]


def dense_steps(
    hasher: SemanticHasher, matrix: sparse.csr_matrix, n_steps: int, clock: Clock
) -> Callable[[], float]:
    ours, documents = prepare(hasher, matrix)
    twin = dense_twin(hasher, ours, matrix.shape[1])
    assert not isinstance(documents.inputs, np.ndarray)
    inputs = torch.from_numpy(documents.inputs.toarray())
    targets = torch.from_numpy(documents.targets.toarray())
    assert documents.neighbours is not None
    neighbours = torch.from_numpy(documents.neighbours[:, 0].copy())
    optimizer = torch.optim.Adam(twin.parameters(), lr=1e-4)

    def batch(rows: Tensor, generator: torch.Generator) -> Batch:
        beside = neighbours[rows]
        mixed = torch.lerp(targets[rows], targets[beside], documents.neighbour_share)
        return Batch(inputs[rows], mixed, torch.tensor(0.0), generator, (), inputs[beside])

    check_same_model(hasher, ours, twin, batch)

    def take() -> float:
        generator, seconds = torch.Generator().manual_seed(0), []
        order = torch.randperm(len(inputs), generator=generator)
        for start in range(0, n_steps * hasher._training.batch_size, hasher._training.batch_size):
            began = clock()
            rows = order[start : start + hasher._training.batch_size]
            loss = hasher._step(twin, batch(rows, generator)).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            optimizer.step()
            seconds.append(clock() - began)
        return min(seconds)

    return take


def check_same_model(
    hasher: SemanticHasher, ours: Autoencoder, twin: Autoencoder, batch: Callable[..., Batch]
) -> None:
    """Without dropout, and from the same random numbers, both give the same loss."""
    quiet = Composed(**hasher.get_params(deep=False)).set_params(network__dropout=0.0)
    rates = (ours.encoder.dropout_rate, twin.encoder.rate)
    ours.encoder.dropout_rate, twin.encoder.rate = 0.0, 0.0  # type: ignore[assignment]
    dense = batch(torch.arange(50), generator_for(0, 1))
    as_sparse = dense._replace(
        inputs=sparse_rows(dense.inputs),
        targets=sparse_rows(dense.targets),
        neighbour=sparse_rows(dense.neighbour),
        generator=generator_for(0, 1),
    )
    losses = [quiet._step(ours, as_sparse).loss, quiet._step(twin, dense).loss]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-5, atol=1e-4)
    ours.encoder.dropout_rate, twin.encoder.rate = rates


def sparse_rows(dense: Rows | None) -> Rows:
    from boltzhash.training.batches import on_device

    assert isinstance(dense, Tensor)
    return on_device(sparse.csr_matrix(dense.numpy()), CPU)


# Scaling


def apart(n_documents: int, n_words: int, n_bits: int) -> dict[str, Any]:
    """:func:`one_size` in a process of its own, on one thread."""
    command = [sys.executable, __file__, "--one", *map(str, (n_documents, n_words, n_bits))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def one_size(n_documents: int, n_words: int, n_bits: int) -> dict[str, Any]:
    matrix = unit_rows(counts(n_documents, n_words, 60))
    began = time.process_time()
    first: list[float] = []
    ends: list[float] = []

    class Timed(SemanticHasher):
        def _step(self, model: Autoencoder, batch: Batch) -> Any:
            if not first:
                first.append(time.process_time())
            return super()._step(model, batch)

    hasher = Timed(n_bits, training=Training(epochs=1, device="cpu"))
    hasher.set_params(neighbours__second_training=False)  # the first is what is timed
    before = peak()
    with contextlib.suppress(TrainingError):  # one epoch may be too few to learn anything
        hasher.fit(matrix, on_epoch=lambda _: ends.append(time.process_time()))
    return {
        "documents": n_documents,
        "words": n_words,
        "n_bits": n_bits,
        "nonzeros": int(matrix.nnz),
        "seconds_before": round(first[0] - began, 2),
        "seconds": round(ends[0] - first[0], 3),
        "peak_mb": round(peak() / 1e6),
        "peak_mb_before": round(before / 1e6),
    }


def exponent(rows: list[dict[str, Any]], by: str) -> float:
    """Of a power law through the times: 1 is linear."""
    sizes, seconds = (np.log([row[name] for row in rows]) for name in (by, "seconds"))
    return float(np.polyfit(sizes, seconds, 1)[0])


def bytes_a_value(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Slope of a line through peak memory over non-zeros, and how much of the variance it explains."""
    x = np.array([row["nonzeros"] for row in rows], dtype=float)
    y = np.array([row["peak_mb"] for row in rows]) * 1e6
    slope, _ = np.polyfit(x, y, 1)
    return float(slope), float(np.corrcoef(x, y)[0, 1] ** 2)


def table(result: dict[str, Any]) -> str:
    """As Markdown, each figure that has a bar beside it."""
    lines = [
        f"{result['documents']:,} documents of {result['corpus']}, {result['words']:,} words; "
        f"{result['cpus']} CPUs, {result['cpu']}; load {result['load_average_before']} before",
        "",
        "| threads | bits | default, s/epoch | "
        f"published (64 bits, two threads: at most {AT_MOST_SECONDS}) | dense twin | "
        f"default / published (at most {AT_MOST_PUBLISHED}) | "
        f"dense / default (at least {AT_LEAST_DENSE:g}) |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["epochs"]:
        slower, faster = row["default"] / row["published"], row["dense"] / row["default"]
        lines.append(
            f"| {row['threads']} | {row['n_bits']} | {row['default']:.2f} | {published(row)} | "
            f"{row['dense']:.2f} | {verdict(slower, slower <= AT_MOST_PUBLISHED)} | "
            f"{verdict(faster, faster >= AT_LEAST_DENSE)} |"
        )
    for by in ("documents", "words"):
        rows = result[f"by_{by}"]
        power = exponent(rows, by)
        lines += [
            "",
            f"Time in {by}: exponent {verdict(power, power <= EXPONENT_AT_MOST)} "
            f"(at most {EXPONENT_AT_MOST})",
            "",
            "| documents | words | non-zeros | CPU s/epoch | CPU s before the first | peak MB |",
            "| ---: | ---: | ---: | ---: | ---: | ---: |",
            *(
                f"| {r['documents']:,} | {r['words']:,} | {r['nonzeros']:,} | {r['seconds']:.2f} | "
                f"{r['seconds_before']:.1f} | {r['peak_mb']:,} |"
                for r in rows
            ),
        ]
    slope, explained = bytes_a_value(result["by_documents"])
    share = f"a line explains {explained:.4f} of the variance"
    lines += ["", f"Peak memory: {slope:.0f} bytes per non-zero; {share}"]
    return "\n".join(lines)


def published(row: dict[str, Any]) -> str:
    has_bar = (row["threads"], row["n_bits"]) == (2, 64)
    return verdict(row["published"], not has_bar or row["published"] <= AT_MOST_SECONDS)


def verdict(value: float, reached: bool) -> str:
    return f"{value:.2f}" + ("" if reached else " MISSED")


if __name__ == "__main__":
    main()
