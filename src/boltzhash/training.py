"""One plain minibatch loop: batches, Adam, a record an epoch, checkpoints to go on from."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from tqdm import tqdm

from boltzhash.codes import bit_balance, distinct, pack
from boltzhash.errors import TrainingError
from boltzhash.networks import SparseRows
from boltzhash.persistence import read_checkpoint, write_checkpoint

SECONDS_BETWEEN_CHECKPOINTS = 10.0

logger = logging.getLogger("boltzhash")


class Batch(NamedTuple):
    """What one step sees: the documents, what the decoder should say of them, where we are."""

    inputs: SparseRows
    targets: SparseRows
    progress: float  # share of the epochs that are over
    generator: torch.Generator
    companions: tuple[SparseRows, ...] = ()  # further rows that belong to each document


Companions = Callable[[np.random.Generator], list[sparse.csr_matrix]]


class Terms(NamedTuple):
    """What one step reports: means over the batch, and the bits of its codes."""

    loss: Tensor
    reconstruction: Tensor
    kl: Tensor
    bits: Tensor


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    ``decay`` is "steps" (× .96 every 10,000 steps, as published) or "cosine" (up over the first
    epoch, then down to 0 along half a cosine).
    """

    epochs: int
    batch_size: int
    learning_rate: float
    decay: str

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step.

        >>> Schedule(10, 100, 1e-3, "steps").rate(20_000, steps_per_epoch=100)
        0.0009216
        >>> Schedule(10, 100, 1e-3, "cosine").rate(550, steps_per_epoch=100)
        0.0005
        """
        if self.decay == "steps":
            return self.learning_rate * 0.96 ** (step // 10_000)
        if step < steps_per_epoch:
            return self.learning_rate * (step + 1) / steps_per_epoch
        done = (step - steps_per_epoch) / (max(1, self.epochs - 1) * steps_per_epoch)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


@dataclass(frozen=True)
class EpochRecord:
    """The terms of one epoch, in nats a document, and what its codes looked like while training."""

    epoch: int
    reconstruction: float
    kl: float
    distinct_codes: int
    bit_balance: float


def generator_for(seed: int, stream: int, device: torch.device | str = "cpu") -> torch.Generator:
    """The generator of one stream (0: initial weights, e + 1: epoch e).

    A stream of its own for each epoch makes resuming exact: there is no generator state to store.
    """
    state = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0]
    return torch.Generator(device).manual_seed(int(state))


def choose_device(device: str) -> torch.device:
    """``"auto"`` is a GPU when there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f'device must be "auto" or a torch device, got {device!r}') from error


def minibatches(
    matrices: list[sparse.csr_matrix], batch_size: int, order: np.ndarray, device: torch.device
) -> Iterator[list[SparseRows]]:
    """The same rows of each matrix, ``batch_size`` at a time, in the given order.

    The rows are put in order once, so a batch is a slice, and nothing is ever dense.
    """
    shuffled = [matrix[order] for matrix in matrices]
    on_device = [
        (torch.from_numpy(m.indices).to(device), torch.from_numpy(m.data).to(device))
        for m in shuffled
    ]
    for start in range(0, len(order), batch_size):
        stop = min(start + batch_size, len(order))
        rows = []
        for matrix, (indices, values) in zip(shuffled, on_device, strict=True):
            pointers = matrix.indptr[start : stop + 1]
            first, last = int(pointers[0]), int(pointers[-1])
            offsets = torch.from_numpy((pointers - first).astype(np.int32)).to(device)
            rows.append(SparseRows(indices[first:last], values[first:last], offsets))
        yield rows


def train(
    model: nn.Module,
    step: Callable[[Batch], Terms],
    inputs: sparse.csr_matrix,
    targets: sparse.csr_matrix,
    schedule: Schedule,
    *,
    seed: int,
    device: torch.device,
    verbose: bool = False,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    on_epoch: Callable[[EpochRecord], None],
    on_resume: Callable[[list[EpochRecord]], None] = lambda records: None,
    companions: Companions | None = None,
) -> None:
    """Minimise ``step(batch).loss`` over the model's parameters with Adam.

    ``on_epoch`` gets the record of every epoch that is trained, ``on_resume`` those of the epochs
    that an interrupted run had finished.
    ``companions`` draws further matrices for an epoch, whose rows go with those of ``inputs``.
    With ``checkpoint`` a folder keeps the state of the last finished epoch (at most every
    ten seconds); a later call with the same ``fingerprint`` goes on from it, to the same bytes.
    """
    try:
        model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {str(device)!r} cannot be used: {error}") from error
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, fused=True)
    history: list[EpochRecord] = []
    if checkpoint is not None:
        history = _resume(checkpoint, fingerprint, model, optimizer)
    on_resume(list(history))
    saved_at = time.monotonic()
    with tqdm(
        total=schedule.epochs,
        initial=len(history),
        desc="fitting",
        unit="epoch",
        disable=None if verbose else True,
    ) as bar:
        for epoch in range(len(history), schedule.epochs):
            rng = np.random.default_rng([seed, epoch + 1])
            order = rng.permutation(inputs.shape[0])
            matrices = [inputs, targets, *(companions(rng) if companions is not None else [])]
            batches = minibatches(matrices, schedule.batch_size, order, device)
            generator = generator_for(seed, epoch + 1, device)
            record = _epoch(step, optimizer, batches, schedule, generator, len(order), epoch)
            history.append(record)
            bar.update()
            bar.set_postfix(nats=f"{-record.reconstruction:.1f}", codes=record.distinct_codes)
            on_epoch(record)
            due = time.monotonic() - saved_at > SECONDS_BETWEEN_CHECKPOINTS
            last = epoch + 1 == schedule.epochs
            if checkpoint is not None and (due or (last and checkpoint.exists())):
                _save(checkpoint, fingerprint, model, optimizer, history)
                saved_at = time.monotonic()


def _epoch(
    step: Callable[[Batch], Terms],
    optimizer: torch.optim.Adam,
    batches: Iterator[list[SparseRows]],
    schedule: Schedule,
    generator: torch.Generator,
    n: int,
    epoch: int,
) -> EpochRecord:
    steps_per_epoch = math.ceil(n / schedule.batch_size)
    sums = torch.zeros(2, device=generator.device)
    bits = []
    for number, (x, t, *companions) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(epoch * steps_per_epoch + number, steps_per_epoch)
        progress = epoch / schedule.epochs
        terms = step(Batch(x, t, progress, generator, tuple(companions)))
        optimizer.zero_grad(set_to_none=True)
        terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        sums += torch.stack([terms.reconstruction, terms.kl]).detach() * x.n_rows
        bits.append(terms.bits)
    reconstruction, kl = (sums / n).tolist()
    if not math.isfinite(reconstruction) or not math.isfinite(kl):
        raise TrainingError(
            f"training diverged in epoch {epoch + 1} (reconstruction {reconstruction}, KL {kl}): "
            f"learning_rate={schedule.learning_rate} is too high for this corpus, try "
            f"{schedule.learning_rate / 10:g}"
        )
    seen = torch.cat(bits).cpu().numpy()
    return EpochRecord(epoch + 1, reconstruction, kl, distinct(pack(seen)), bit_balance(seen))


def _resume(
    folder: Path, fingerprint: str, model: nn.Module, optimizer: torch.optim.Adam
) -> list[EpochRecord]:
    """Load what an interrupted run with the same settings and data left, if anything."""
    stored = read_checkpoint(folder, fingerprint)
    if stored is None:
        if folder.exists():
            logger.info("%s is of another fit (other settings or data): starting anew", folder)
        return []
    arrays, records = stored
    logger.info("going on from epoch %d, kept in %s", len(records), folder)
    state = {}
    with torch.no_grad():
        for number, (name, parameter) in enumerate(model.named_parameters()):
            parameter.copy_(torch.from_numpy(arrays[name]))
            state[number] = {
                key: torch.from_numpy(arrays[f"adam.{key}.{name}"])
                for key in ("step", "exp_avg", "exp_avg_sq")
            }
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    return [EpochRecord(**record) for record in records]


def _save(
    folder: Path,
    fingerprint: str,
    model: nn.Module,
    optimizer: torch.optim.Adam,
    history: list[EpochRecord],
) -> None:
    arrays = {}
    for name, parameter in model.named_parameters():
        arrays[name] = parameter.detach().cpu().numpy()
        for key, value in optimizer.state[parameter].items():
            arrays[f"adam.{key}.{name}"] = value.detach().cpu().numpy()
    try:
        write_checkpoint(folder, fingerprint, arrays, [asdict(record) for record in history])
    except OSError as error:  # a full disk should not end a fit that needs none to go on
        logger.warning("no checkpoint could be written: %s", error)
