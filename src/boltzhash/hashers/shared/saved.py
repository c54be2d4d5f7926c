"""Hashers as folders: saved, loaded, and told apart by their fingerprints."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from boltzhash.errors import ModelError
from boltzhash.hashers.shared.estimator import Estimator, check_is_fitted
from boltzhash.hashers.shared.features import FeatureScaling
from boltzhash.hashers.shared.fitted_on import PREFIX, FittedOn
from boltzhash.hashers.shared.settings import Group
from boltzhash.hashers.shared.weights import Shapes, check_numbers, check_shapes
from boltzhash.storage.folders import Arrays, fingerprint, write_model
from boltzhash.text.tfidf import TfIdf


class SavedModel(Estimator):
    """A model as a folder of plain data."""

    n_bits: int
    tfidf_: TfIdf | None
    feature_scaling_: FeatureScaling | None  # None when fitted without features
    fitted_on_: FittedOn

    def save(self, folder: str | Path) -> None:
        """Write the model as a folder; one already there is replaced whole or not at all."""
        check_is_fitted(self)
        write_model(
            Path(folder),
            kind=type(self).__name__,
            params=self._plain_params(),
            arrays=self._stored_arrays(),
            words=self._words(),
        )

    def fingerprint(self) -> str:
        """Identifies the fitted model: codes belong to the model whose fingerprint they carry."""
        check_is_fitted(self)
        settings = {"class": type(self).__name__, **self._params_with_effect()}
        arrays = self._stored_arrays()
        made_of = {name: array for name, array in arrays.items() if not name.startswith(PREFIX)}
        return fingerprint(settings, made_of, self._words())

    def _plain_params(self) -> dict[str, Any]:
        """The arguments as JSON can hold them, groups complete."""
        params = {**self.get_params(deep=False), **self.recipe()}
        return {name: _plain(name, value) for name, value in params.items()}

    def _params_with_effect(self) -> dict[str, Any]:
        """Those that codes depend on."""
        params = self._plain_params()
        for name in ("output", "verbose"):
            params.pop(name, None)
        params.get("training", {}).pop("device", None)
        return params

    def _words(self) -> list[str] | None:
        return self.tfidf_.spellings_ if self.tfidf_ is not None else None

    def _stored_arrays(self) -> Arrays:
        arrays = {f"learned.{name}": array for name, array in self._arrays().items()}
        if self.tfidf_ is not None:
            arrays["tfidf.idf"] = self.tfidf_.idf_
            if self.tfidf_.columns_ is not None:
                arrays["tfidf.columns"] = self.tfidf_.columns_
        if self.feature_scaling_ is not None:
            arrays.update(self.feature_scaling_.arrays())
        arrays.update(self.fitted_on_.arrays())
        arrays["n_features"] = np.array([self.n_features_in_], dtype=np.int64)
        return arrays

    @classmethod
    def summary(cls) -> str:
        """What the method does, in one line: the first of its docstring."""
        return (inspect.getdoc(cls) or "").splitlines()[0]

    @classmethod
    def reference(cls) -> str:
        """The paper it comes from, as its docstring cites it."""
        _, _, cited = (inspect.getdoc(cls) or "").partition("References\n----------\n")
        return " ".join(cited.partition("\n\n")[0].split())

    @classmethod
    def _restore(cls, params: dict[str, Any], arrays: Arrays, words: list[str] | None) -> Self:
        hasher = cls(**{name: cls._restored(name, value) for name, value in params.items()})
        hasher.n_features_in_ = int(arrays["n_features"][0])
        hasher.feature_scaling_ = FeatureScaling.from_arrays(arrays)
        hasher.fitted_on_ = FittedOn.from_arrays(arrays, hasher.n_bits)
        hasher.tfidf_ = None
        if words is not None:
            idf, columns = arrays["tfidf.idf"], arrays.get("tfidf.columns")
            _check_vocabulary(words, columns, idf, hasher.n_features_in_)
            hasher.tfidf_ = TfIdf.from_vocabulary(
                words, columns, idf, hasher._group("text").token_pattern
            )
        prefix = "learned."
        learned = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        check_numbers(learned)
        hasher._set_arrays(learned)
        return hasher

    @classmethod
    def _restored(cls, name: str, value: Any) -> Any:
        """An argument from JSON, which has lists for tuples and objects for groups."""
        if name in cls.RECIPE:
            fields = {field: cls._restored(field, part) for field, part in value.items()}
            return type(cls.RECIPE[name])(**fields)
        return tuple(value) if isinstance(value, list) else value

    @abstractmethod
    def _arrays(self) -> Arrays:
        """The learned arrays by name."""

    @abstractmethod
    def _shapes(self) -> Shapes:
        """The shape of each array that the model needs."""

    def _set_arrays(self, arrays: Arrays) -> None:
        """Take back what :meth:`_arrays` gave."""
        check_shapes(arrays, self._shapes())
        self._keep_arrays(arrays)

    @abstractmethod
    def _keep_arrays(self, arrays: Arrays) -> None:
        """Make arrays of the right shapes the model's own."""


def _check_vocabulary(
    words: list[str], columns: NDArray[np.int32] | None, idf: NDArray[np.float64], n_features: int
) -> None:
    """Refuse a stored vocabulary that does not fit the model."""
    if columns is None:
        fits = len(words) == n_features
    else:
        fits = len(columns) == len(words) and set(columns.tolist()) == set(range(n_features))
    if not fits or len(idf) != n_features:
        raise ModelError(
            f"the vocabulary has {len(words)} words and {len(idf)} weights; "
            f"the model has {n_features}"
        )


def _plain(name: str, value: Any) -> Any:
    """A constructor argument as JSON can hold it."""
    if isinstance(value, Group):
        return {field: _plain(field, part) for field, part in vars(value).items()}
    if isinstance(value, np.random.RandomState):
        return None  # its state at the time of the fit is gone
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_plain(name, part) for part in value]
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"{name} cannot be saved: a {type(value).__name__} is not plain data")
    return value
