"""Shared by hashers that learn epoch by epoch: the fit's arguments, history, checkpoints, weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from boltzhash.hashers.shared.base import Hasher
from boltzhash.hashers.shared.settings import Recipe, Training
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
    training : Training or None, default=None
        How long, how fast and where. None is the method's recipe.
    verbose : bool, default=False
        Show how far a fit is: :mod:`boltzhash.progress`.
    **shared
        The arguments of :class:`Hasher`.
    """

    fit_needs: ClassVar[str | None] = "torch"

    _progress_shown: str = "fitting"

    weights_: Arrays
    history_: list[EpochRecord]

    USUAL_EPOCHS: ClassVar[int]
    RECIPE: ClassVar[Recipe] = {
        **Hasher.RECIPE,
        "training": Training(
            epochs=None,
            least_steps=None,
            batch_size=200,
            learning_rate=0.01,
            learning_rate_decay="cosine",
            device="auto",
        ),
    }

    def __init__(
        self,
        n_bits: int = 64,
        *,
        training: Training | None = None,
        verbose: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(n_bits, **shared)
        self.training = training
        self.verbose = verbose

    @property
    def _training(self) -> Training:
        return self._group("training")  # type: ignore[no-any-return]

    def _n_epochs(self, n_documents: int) -> int:
        """For how many epochs that many documents are trained."""
        own = self._training
        if own.epochs is not None:
            return own.epochs
        least = own.least_steps or 0
        return enough_epochs(n_documents, own.batch_size, self.USUAL_EPOCHS, least)

    def _train(
        self,
        network: Module,
        step: Callable[[Batch], Terms],
        documents: Documents,
        *,
        seed: int,
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
        own = self._training
        schedule = Schedule(n_epochs, own.batch_size, own.learning_rate, own.learning_rate_decay)
        run = Run(
            seed=seed,
            device=choose_device(own.device),
            shown=self._progress_shown if self.verbose else None,
            checkpoint=checkpoint,
            fingerprint=self._fingerprint_of_fit(documents, seed),
        )
        self.history_ = train(network, step, documents, schedule, run, after_epoch)
        take()

    def _fingerprint_of_fit(self, documents: Documents, seed: int) -> str:
        """Identifies this fit: a checkpoint of another one must not be resumed."""
        settings = self._params_with_effect()
        del settings["random_state"], settings["text"]["stop_words"]  # seed and documents
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
        on = {"trained on": self._training.device}  # which a fingerprint of a model leaves out
        return fingerprint({**settings, **fit, **on}, arrays, None)

    def _arrays(self) -> Arrays:
        return self.weights_

    def _keep_arrays(self, arrays: Arrays) -> None:
        self.weights_ = arrays

    def _check_params(self) -> None:
        from boltzhash.training.loop import choose_device

        super()._check_params()
        choose_device(self._training.device)  # a missing torch is noticed before the corpus is read


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
