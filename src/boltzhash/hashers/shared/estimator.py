"""scikit-learn's contract, without its import.

Importing scikit-learn takes longer than everything else that a search needs, so hashers have its
methods and not its base class. What only fitting, checking a matrix or an error needs is imported then.
"""

from __future__ import annotations

import inspect
from abc import ABC
from typing import Any, Self

import numpy as np
from scipy import sparse


class Estimator(ABC):  # noqa: B024  # what is abstract is in Hasher
    """Constructor arguments as parameters: what ``clone``, pipelines and grid searches use.

    >>> class Scaled(Estimator):
    ...     def __init__(self, factor=1, offset=0):
    ...         self.factor, self.offset = factor, offset
    >>> Scaled(2), Scaled(2).get_params(), Scaled().set_params(offset=3)
    (Scaled(factor=2), {'factor': 2, 'offset': 0}, Scaled(offset=3))
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name; ``deep`` changes nothing, as none is an estimator."""
        return {name: getattr(self, name) for name in sorted(self.defaults())}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name."""
        known = sorted(self.defaults())
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(known)}"
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The constructor's arguments with their defaults."""
        parameters = inspect.signature(cls).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}

    def __repr__(self) -> str:
        defaults = self.defaults()
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if repr(value) != repr(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """How notebooks show it, alone and in a pipeline."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(sparse=True, positive_only=True, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        raise NotImplementedError


def check_is_fitted(estimator: Estimator) -> None:
    """Raise scikit-learn's NotFittedError where it is not."""
    if not estimator.__sklearn_is_fitted__():
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)


def check_random_state(seed: Any) -> np.random.RandomState:
    """A seed, None or a RandomState as a RandomState."""
    from sklearn.utils import check_random_state

    state: np.random.RandomState = check_random_state(seed)
    return state


def validate_rows(estimator: Estimator, X: Any, n_columns: int) -> Any:
    """A matrix to hash as CSR of float64, or scikit-learn's errors about it."""
    if (
        isinstance(X, sparse.csr_matrix | sparse.csr_array)
        and X.dtype == np.float64
        and X.shape[0] > 0
        and X.shape[1] == n_columns
        and np.isfinite(X.data).all()
    ):
        return X  # as our own tf-idf is, so that a search needs no scikit-learn
    wanted = {"accept_sparse": "csr", "dtype": np.float64, "ensure_min_samples": 1}
    return validate_data(estimator, X, reset=False, **wanted)


def validate_data(estimator: Estimator, X: Any, **wanted: Any) -> Any:
    """A matrix as it is wanted, or scikit-learn's errors about it."""
    from sklearn.utils.validation import validate_data

    return validate_data(estimator, X, **wanted)
