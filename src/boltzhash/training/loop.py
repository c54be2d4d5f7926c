"""One plain minibatch loop: batches, Adam, one record per epoch, checkpoints to resume from."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from boltzhash.codes import bit_balance, distinct, pack
from boltzhash.errors import TrainingError
from boltzhash.progress import progress
from boltzhash.storage.folders import read_checkpoint, write_checkpoint
from boltzhash.training.adam import Optimizer, adam_of
from boltzhash.training.batches import Batch, Documents, Plan, Terms, take_batch
from boltzhash.training.memory import kept_memory
from boltzhash.training.replay import ReplayedSteps
from boltzhash.training.step_threads import StepThreads

SECONDS_BETWEEN_CHECKPOINTS = 10.0

logger = logging.getLogger("boltzhash")


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
    """The terms of one epoch, in nats per document, and what its codes looked like while training."""

    epoch: int
    reconstruction: float
    kl: float
    distinct_codes: int
    bit_balance: float


def generator_for(seed: int, stream: int, device: torch.device | str = "cpu") -> torch.Generator:
    """The generator of one stream (0: initial weights, e + 1: epoch e).

    A stream of its own for each epoch makes resuming exact: there is no generator state to store.
    """
    return torch.Generator(device).manual_seed(stream_seed(seed, stream))


def stream_seed(seed: int, stream: int) -> int:
    """What seeds the generator of a stream."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0])


def choose_device(device: str) -> torch.device:
    """``"auto"`` is a GPU when there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f'device must be "auto" or a torch device, got {device!r}') from error


@dataclass(frozen=True)
class Run:
    """Where a fit runs, from which random numbers, what it shows, and what it keeps for a resumption.

    ``shown`` names its progress, which is not shown without. ``checkpoint`` is a folder that keeps the
    state of the last finished epoch, at most every ten seconds; a later run with the same
    ``fingerprint`` resumes from it, to the same bytes.
    """

    seed: int
    device: torch.device
    shown: str | None = None
    checkpoint: Path | None = None
    fingerprint: str = ""


def train(
    model: nn.Module,
    step: Callable[[Batch], Terms],
    documents: Documents,
    schedule: Schedule,
    run: Run,
    on_epoch: Callable[[list[EpochRecord]], None],
) -> list[EpochRecord]:
    """Minimise ``step(batch).loss`` over the model's parameters with Adam.

    ``on_epoch`` is called after every epoch that is trained, with the records of all so far, those of an
    interrupted run included; all records are returned.
    """
    try:
        model.to(run.device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {str(run.device)!r} cannot be used: {error}") from error
    given = (model, step, documents, schedule.batch_size, run.device)
    steps: Steps = ReplayedSteps(*given) if run.device.type == "cuda" else PlainSteps(*given)
    history: list[EpochRecord] = []
    folder = run.checkpoint
    if folder is not None:
        history = _resume(folder, run.fingerprint, model, steps.optimizer)
    saved_at, is_shown = time.monotonic(), run.shown is not None
    with (
        kept_memory(),
        progress(
            run.shown or "", "epochs", total=schedule.epochs, done=len(history), is_shown=is_shown
        ) as bar,
    ):
        for epoch in range(len(history), schedule.epochs):
            record = _epoch(steps, documents, schedule, run.seed, epoch)
            history.append(record)
            bar.update()
            bar.set_postfix(nats=f"{-record.reconstruction:.1f}", codes=record.distinct_codes)
            on_epoch(history)
            due = time.monotonic() - saved_at > SECONDS_BETWEEN_CHECKPOINTS
            last = epoch + 1 == schedule.epochs
            if folder is not None and (due or (last and folder.exists())):
                _save(folder, run.fingerprint, model, steps.optimizer, history)
                saved_at = time.monotonic()
    return history


def _epoch(
    steps: Steps, documents: Documents, schedule: Schedule, seed: int, epoch: int
) -> EpochRecord:
    plan = documents.draw(np.random.default_rng([seed, epoch + 1]))
    n = len(plan.order)
    n_steps = math.ceil(n / schedule.batch_size)
    rates = [schedule.rate(epoch * n_steps + number, n_steps) for number in range(n_steps)]
    sums, bits = steps.epoch(plan, rates, epoch / schedule.epochs, stream_seed(seed, epoch + 1))
    reconstruction, kl = (sums / n).tolist()
    if not math.isfinite(reconstruction) or not math.isfinite(kl):
        raise TrainingError(
            f"training diverged in epoch {epoch + 1} (reconstruction {reconstruction}, KL {kl}): "
            f"learning_rate={schedule.learning_rate} is too high for this corpus, try "
            f"{schedule.learning_rate / 10:g}"
        )
    seen = bits.cpu().numpy()
    return EpochRecord(epoch + 1, reconstruction, kl, distinct(pack(seen)), bit_balance(seen))


class Steps(Protocol):
    """Runs epochs: sums of reconstruction and KL over the documents, and the bits of each."""

    optimizer: Optimizer

    def epoch(
        self, plan: Plan, rates: list[float], progress: float, seed: int
    ) -> tuple[Tensor, Tensor]: ...


class PlainSteps:
    """One step after another, run by Python; sparse on a CPU."""

    def __init__(
        self,
        model: nn.Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        batch_size: int,
        device: torch.device,
    ) -> None:
        self.optimizer = adam_of(model, device)
        self._step = step
        self._documents = documents
        self._batch_size = batch_size
        self._device = device
        self._threads = StepThreads()
        self._n_bits = 1  # until a step has shown it

    def epoch(
        self, plan: Plan, rates: list[float], progress: float, seed: int
    ) -> tuple[Tensor, Tensor]:
        generator = torch.Generator(self._device).manual_seed(seed)
        so_far = torch.tensor(progress, device=self._device)
        sums = torch.zeros(2, device=self._device)
        bits = []
        for rate, rows in zip(rates, plan.batches(self._batch_size), strict=True):
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            with self._threads.step(len(rows), self._n_bits):
                batch = take_batch(self._documents, plan, rows, so_far, generator)
                terms = self._step(batch)
                self.optimizer.zero_grad()
                terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
                self.optimizer.step()
            sums += torch.stack([terms.reconstruction, terms.kl]).detach() * len(terms.bits)
            bits.append(terms.bits)
            self._n_bits = terms.bits.shape[1]
        return sums, torch.cat(bits)


def _resume(
    folder: Path, fingerprint: str, model: nn.Module, optimizer: Optimizer
) -> list[EpochRecord]:
    """Load what an interrupted run with the same settings and data left, if anything."""
    stored = read_checkpoint(folder, fingerprint)
    if stored is None:
        if folder.exists():
            logger.info("%s is from another fit (other settings or data): starting over", folder)
        return []
    arrays, records = stored
    logger.info("resuming from epoch %d, kept in %s", len(records), folder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(arrays[name]))
            if f"adam.step.{name}" not in arrays:  # a method took its steps itself
                continue
            optimizer.state[parameter] = {
                key: torch.from_numpy(arrays[f"adam.{key}.{name}"]).to(parameter.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
            }
    return [EpochRecord(**record) for record in records]


def _save(
    folder: Path,
    fingerprint: str,
    model: nn.Module,
    optimizer: Optimizer,
    history: list[EpochRecord],
) -> None:
    arrays = {}
    for name, parameter in model.named_parameters():
        arrays[name] = parameter.detach().cpu().numpy()
        for key, value in optimizer.state[parameter].items():
            arrays[f"adam.{key}.{name}"] = value.detach().cpu().numpy()
    try:
        write_checkpoint(folder, fingerprint, arrays, [asdict(record) for record in history])
    except OSError as error:  # a full disk should not end a fit that can continue without one
        logger.warning("no checkpoint could be written: %s", error)
