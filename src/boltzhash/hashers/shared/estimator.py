"""scikit-learn's contract, without its import.

Importing scikit-learn takes longer than everything else that a search needs, so hashers have its
methods, not its base class. If it is installed, its functions check matrices and errors are its own;
without it, NumPy and SciPy do the checks that are needed.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from boltzhash.arguments import check
from boltzhash.errors import MissingExtraError, NotFittedError, needs_extra
from boltzhash.hashers.shared.settings import Group, Recipe, completed, fields_of


class Estimator(ABC):  # the abstract methods are in Hasher
    """Constructor arguments as parameters: what ``clone``, pipelines and grid searches use.

    >>> class Scaled(Estimator):
    ...     def __init__(self, factor=1, offset=0):
    ...         self.factor, self.offset = factor, offset
    >>> Scaled(2), Scaled(2).get_params(), Scaled().set_params(offset=3)
    (Scaled(factor=2), {'factor': 2, 'offset': 0}, Scaled(offset=3))
    """

    RECIPE: ClassVar[Recipe] = {}  # the groups of settings, with the method's own values

    n_features_in_: int

    def recipe(self) -> dict[str, Group]:
        """The groups of settings by name, complete: what was left out is the method's own."""
        return {name: self._group(name) for name in self._own_recipe()}

    def _own_recipe(self) -> Recipe:
        """The groups as they are if nothing is changed."""
        return self.RECIPE

    def _group(self, name: str) -> Any:
        return completed(name, getattr(self, name), self._own_recipe()[name])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name; ``deep`` adds the fields of groups, ``text__stem``."""
        params = {name: getattr(self, name) for name in sorted(self.defaults())}
        if deep:
            for name, group in self.recipe().items():
                params |= {f"{name}__{field}": value for field, value in vars(group).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, and fields of groups, by name."""
        known = self.param_names()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}: it has {', '.join(known)}"
                )
        for name in sorted(params, key=lambda name: "__" in name):
            group, _, field = name.partition("__")
            value = params[name]
            if field:
                given = getattr(self, group)
                named = {} if given is None else given.named()
                value = type(self.RECIPE[group])(**{**named, field: value})
            setattr(self, group, value)
        return self

    @classmethod
    def param_names(cls) -> list[str]:
        """The names that ``set_params`` takes: arguments, and fields of groups as ``text__stem``."""
        return sorted([*cls.defaults(), *fields_of(cls.RECIPE)])

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The constructor's arguments with their defaults."""
        parameters = inspect.signature(cls).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}

    def __repr__(self) -> str:
        defaults, own = self.defaults(), self._own_recipe()
        shown = {
            name: value.beyond(own[name]) if isinstance(value, Group) else value
            for name, value in self.get_params(deep=False).items()
        }
        changed = [
            f"{name}={value!r}"
            for name, value in shown.items()
            if repr(value) != repr(defaults[name])
            and not (isinstance(value, Group) and not value.named())
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str | None:
        """How notebooks show it, alone and in a pipeline; as plain text without scikit-learn."""
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            return None
        return str(estimator_html_repr(self))

    def set_output(self, *, transform: str | None = None) -> Self:
        """What ``transform`` gives: an array (``"default"``), or a data frame of pandas or polars.

        Its columns are those of :meth:`get_feature_names_out`. None changes nothing. Until it is set,
        what ``sklearn.set_config(transform_output=…)`` says holds. A saved model does not keep it.
        """
        if transform is not None:
            check("transform", transform, *CONTAINERS)
            self._sklearn_output_config = {"transform": transform}  # where clone looks for it
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns that ``transform`` gives."""
        raise NotImplementedError

    def _contained(self, values: NDArray[Any], X: object) -> Any:
        """What ``transform`` has made of X, in the container that was asked for."""
        kind = getattr(self, "_sklearn_output_config", {}).get("transform")
        scikit_learn = sys.modules.get("sklearn")
        if kind is None and scikit_learn is not None:
            kind = scikit_learn.get_config()["transform_output"]
        if kind in (None, "default"):
            return values
        return FRAMES[kind](values, self.get_feature_names_out(), X)

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


def _pandas_frame(values: NDArray[Any], names: NDArray[np.object_], X: object) -> Any:
    """With the index of X, if it has one."""
    try:
        import pandas
    except ImportError:
        raise needs_extra("set_output(transform='pandas')", "pandas", "pandas") from None
    index = X.index if isinstance(X, pandas.DataFrame | pandas.Series) else None
    return pandas.DataFrame(values, index=index, columns=names)


def _polars_frame(values: NDArray[Any], names: NDArray[np.object_], X: object) -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtraError(
            "set_output(transform='polars') needs polars, which is not installed: pip install polars"
        ) from None
    return polars.DataFrame(values, schema=names.tolist(), orient="row")


FRAMES = {"pandas": _pandas_frame, "polars": _polars_frame}
CONTAINERS = ("default", *FRAMES)


def check_is_fitted(estimator: Estimator) -> None:
    """Raise a NotFittedError, scikit-learn's if it is installed, if the estimator is not fitted."""
    if estimator.__sklearn_is_fitted__():
        return
    message = (
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate "
        "arguments before using this estimator."
    )
    try:
        from sklearn.exceptions import NotFittedError as ScikitLearnsError
    except ImportError:
        raise NotFittedError(message) from None
    raise ScikitLearnsError(message)


def check_names_in(estimator: Estimator, input_features: Any) -> None:
    """Refuse names that are not those of the columns that ``fit`` has seen; in scikit-learn's words."""
    seen, n = getattr(estimator, "feature_names_in_", None), estimator.n_features_in_
    if seen is not None and list(seen) != list(input_features):
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(input_features) != n:
        raise ValueError(
            "input_features should have length equal to number of "
            f"features ({n}), got {len(input_features)}"
        )


def check_random_state(seed: Any) -> np.random.RandomState:
    """A seed, None or a RandomState as a RandomState, as scikit-learn understands them.

    >>> check_random_state(7).randint(100), np.random.RandomState(7).randint(100)
    (47, 47)
    """
    if seed is None or seed is np.random:
        state: np.random.RandomState = np.random.mtrand._rand  # the one that np.random.seed seeds
        return state
    if isinstance(seed, np.random.RandomState):
        return seed
    if isinstance(seed, Integral):
        return np.random.RandomState(int(seed))
    raise ValueError(f"random_state must be an integer, a RandomState or None, got {seed!r}")


def validate_rows(estimator: Estimator, X: Any, n_columns: int) -> Any:
    """A matrix to hash as CSR of float64, of shape (n_documents, n_columns), or errors about it."""
    if (
        isinstance(X, sparse.csr_matrix | sparse.csr_array)
        and X.dtype == np.float64
        and X.shape[0] > 0
        and X.shape[1] == n_columns
        and np.isfinite(X.data).all()
    ):
        return X  # as our own tf-idf is, so that a search needs no scikit-learn
    return validate_data(estimator, X, reset=False, at_least=1)


def validate_data(estimator: Estimator, X: Any, *, reset: bool, at_least: int) -> Any:
    """A matrix of at least ``at_least`` rows in float64, CSR if sparse, or errors about it.

    They are scikit-learn's if it is installed. With ``reset`` the number of columns is what the
    estimator has from now on; otherwise it must be what it has.
    """
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:
        matrix = plain_matrix(X, at_least)
    else:
        wanted = {"accept_sparse": "csr", "dtype": np.float64, "ensure_min_samples": at_least}
        return validate_data(estimator, X, reset=reset, **wanted)
    if reset:
        estimator.n_features_in_ = matrix.shape[1]
    elif matrix.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {matrix.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    return matrix


def plain_matrix(X: Any, at_least: int) -> Any:
    """The checks of :func:`validate_data` that a matrix cannot do without, by NumPy and SciPy alone.

    >>> plain_matrix([[1, 2]], at_least=1)
    array([[1., 2.]])
    >>> plain_matrix([1, 2], at_least=1)
    Traceback (most recent call last):
    ...
    ValueError: X must be a matrix, one row per document, got an array of shape (2,)
    """
    if sparse.issparse(X):
        matrix = X.tocsr()
    else:
        try:
            matrix = np.asarray(X)
        except ValueError as error:
            raise ValueError(f"X must be a matrix, one row per document, got {error}") from error
    if matrix.dtype.kind not in "biufO":
        raise ValueError(f"X must be a matrix of real numbers, got {matrix.dtype}")
    try:
        matrix = matrix.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must be a matrix of real numbers, got {error}") from error
    if matrix.ndim != 2:
        raise ValueError(
            f"X must be a matrix, one row per document, got an array of shape {matrix.shape}"
        )
    if matrix.shape[0] < at_least or matrix.shape[1] == 0:
        raise ValueError(
            f"X must have at least {at_least} rows and 1 column, got shape {matrix.shape}"
        )
    if not np.isfinite(matrix.data if sparse.issparse(matrix) else matrix).all():
        raise ValueError("X must hold finite numbers, got NaN or infinity")
    return matrix
