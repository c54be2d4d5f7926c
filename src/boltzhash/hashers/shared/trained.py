"""Shared by hashers that learn epoch by epoch: the fit's arguments, history, checkpoints, weights."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from boltzhash.arguments import check_integer, check_number
from boltzhash.hashers.shared.base import Hasher
from boltzhash.storage.folders import Arrays, fingerprint
from boltzhash.version import __version__

if TYPE_CHECKING:
    from boltzhash.training.batches import Batch, Documents, Terms
    from boltzhash.training.loop import EpochRecord
    from boltzhash.training.tensors import Module


class TrainedHasher(Hasher):
    """A hasher that torch trains and NumPy runs.

    A subclass builds a network in ``_fit_matrix`` and says what a step minimises, hands both to
    ``_train``, and takes its weights from the network.

    Parameters
    ----------
    n_bits : int, default=64
        Length of the code, a multiple of 8.
    epochs : int or None, default=None
        None leaves it to the method.
    batch_size : int, default=200
    learning_rate : float, default=0.01
        Of Adam, at its highest.
    device : str, default="auto"
        Where to train: "auto" is a GPU when there is one. Codes are always computed by NumPy.
    verbose : bool, default=False
        Show how far a fit is: :mod:`boltzhash.progress`.
    **shared
        The arguments of :class:`Hasher`.
    """

    fit_needs: ClassVar[str | None] = "torch"

    _progress_shown: str = "fitting"

    weights_: Arrays
    history_: list[EpochRecord]

    def __init__(
        self,
        n_bits: int = 64,
        *,
        epochs: int | None = None,
        batch_size: int = 200,
        learning_rate: float = 0.01,
        device: str = "auto",
        verbose: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.verbose = verbose

    @abstractmethod
    def _n_epochs(self, n_documents: int) -> int:
        """For how many epochs that many documents are trained."""

    def _train(
        self,
        network: Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        *,
        seed: int,
        decay: str,
        checkpoint: Path | None,
        on_epoch: Callable[[Self], object] | None,
        take: Callable[[], None],
    ) -> None:
        """Train the network; ``take`` makes what it has learned this hasher's own."""
        from boltzhash.training.loop import Run, Schedule, choose_device, train

        self.history_ = []

        def after_epoch(history: list[EpochRecord]) -> None:
            self.history_ = list(history)
            if on_epoch is not None:
                take()
                on_epoch(self)

        n_epochs = self._n_epochs(documents.inputs.shape[0])
        schedule = Schedule(n_epochs, self.batch_size, self.learning_rate, decay)
        run = Run(
            seed=seed,
            device=choose_device(self.device),
            shown=self._progress_shown if self.verbose else None,
            checkpoint=checkpoint,
            fingerprint=self._fingerprint_of_fit(documents, seed),
        )
        self.history_ = train(network, step, documents, schedule, run, after_epoch)
        take()

    def _fingerprint_of_fit(self, documents: Documents, seed: int) -> str:
        """Identifies this fit: a checkpoint of another one must not be resumed."""
        settings = self._plain_params(
            leave_out=("random_state", "stop_words")
        )  # seed and documents
        fit = {"class": type(self).__name__, "boltzhash": __version__, "seed": seed}
        arrays: Arrays = {}
        for name in ("inputs", "targets", "labels"):
            matrix = getattr(documents, name)
            if matrix is None:
                continue
            if isinstance(matrix, np.ndarray):
                arrays[name] = matrix
                continue
            fit[f"shape of {name}"] = list(matrix.shape)
            for part in ("data", "indices", "indptr"):
                arrays[f"{name} {part}"] = getattr(matrix, part)
        on = {"trained on": self.device}  # which a fingerprint of a model leaves out
        return fingerprint({**settings, **fit, **on}, arrays, None)

    def _arrays(self) -> Arrays:
        return self.weights_

    def _keep_arrays(self, arrays: Arrays) -> None:
        self.weights_ = arrays

    def _check_params(self) -> None:
        from boltzhash.training.loop import choose_device

        choose_device(self.device)  # a missing torch is noticed before the corpus is read
        check_integer("batch_size", self.batch_size, 1, "a positive integer")
        if self.epochs is not None:
            check_integer("epochs", self.epochs, 1, "a positive integer or None")
        check_number("learning_rate", self.learning_rate, above=0)


def enough_epochs(
    n_documents: int, batch_size: int, usual: int, steps: int, most_steps: float = math.inf
) -> int:
    """The usual epochs; more if these are fewer than ``steps`` steps, fewer if more than the most.

    >>> enough_epochs(1000, 100, usual=15, steps=1000)
    100
    >>> enough_epochs(1_000_000, 100, usual=15, steps=1000, most_steps=50_000)
    5
    """
    steps_an_epoch = math.ceil(n_documents / batch_size)
    epochs = max(usual, math.ceil(steps / steps_an_epoch))
    return max(1, math.floor(min(epochs, most_steps / steps_an_epoch)))
