"""scikit-learn's contract: its errors, seeds and checks, and what stands in for them without it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError as ScikitLearnsError
from sklearn.utils import check_random_state as scikit_learns_random_state

from boltzhash import ITQ, LSH, RBSH, SelfTaughtHashing
from boltzhash.errors import MissingExtraError, NotFittedError
from boltzhash.hashers.shared.estimator import check_random_state


@pytest.fixture
def no_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports of it fail from here on."""
    for name in [*sys.modules, "sklearn"]:
        if name.split(".")[0] == "sklearn":
            monkeypatch.setitem(sys.modules, name, None)


def test_the_error_of_an_unfitted_hasher_is_scikit_learns() -> None:
    with pytest.raises(ScikitLearnsError, match="This LSH instance is not fitted yet"):
        LSH().transform(["a text"])


@pytest.mark.usefixtures("no_scikit_learn")
def test_without_scikit_learn_the_error_is_ours_and_of_the_same_kinds() -> None:
    for kind in (NotFittedError, ValueError, AttributeError):
        with pytest.raises(kind, match="This LSH instance is not fitted yet"):
            LSH().transform(["a text"])


@pytest.mark.parametrize("seed", [0, 7, np.int64(5), True])
def test_seeds_are_scikit_learns(seed: Any) -> None:
    ours, theirs = check_random_state(seed), scikit_learns_random_state(seed)
    assert ours.randint(2**31, size=5).tolist() == theirs.randint(2**31, size=5).tolist()


def test_no_seed_is_numpys_global_state_and_a_state_is_itself() -> None:
    state = np.random.RandomState(1)
    assert check_random_state(state) is state
    assert check_random_state(None) is scikit_learns_random_state(None)
    assert check_random_state(np.random) is scikit_learns_random_state(np.random)


@pytest.mark.parametrize("seed", ["one", 1.5, np.random.default_rng(0)])
def test_other_seeds_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="random_state must be an integer, a RandomState or None"):
        check_random_state(seed)


ROWS = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 1.0, 1.0]])


@pytest.mark.parametrize(
    "matrix",
    [
        ROWS,
        ROWS.tolist(),
        ROWS.astype(np.int32),
        ROWS.astype(object),
        sparse.csr_matrix(ROWS),
        sparse.coo_array(ROWS.astype(np.float32)),
    ],
    ids=["array", "list", "integers", "objects", "csr", "coo"],
)
def test_matrices_hash_alike_with_and_without_scikit_learn(
    matrix: Any, request: pytest.FixtureRequest
) -> None:
    with_it = ITQ(8).fit(ROWS).transform(matrix)
    request.getfixturevalue("no_scikit_learn")
    without = ITQ(8).fit(matrix)
    assert without.n_features_in_ == 3
    np.testing.assert_array_equal(without.transform(matrix), with_it)


BAD = {
    "one dimension": (np.ones(3), r"an array of shape \(3,\)"),
    "three dimensions": (np.ones((2, 3, 1)), r"an array of shape \(2, 3, 1\)"),
    "ragged": ([[1.0], [1.0, 2.0]], "X must be a matrix, one row per document"),
    "complex": (ROWS.astype(complex), "real numbers, got complex128"),
    "complex and sparse": (sparse.csr_matrix(ROWS.astype(complex)), "got complex128"),
    "no numbers": (np.array([[object(), 1]]), "real numbers, got float"),
    "no row": (np.ones((0, 3)), r"at least 1 rows and 1 column, got shape \(0, 3\)"),
    "no column": (np.ones((3, 0)), "got shape"),
    "not a number": (np.where(ROWS == 3, np.nan, ROWS), "finite numbers"),
    "infinite and sparse": (sparse.csr_matrix(np.where(ROWS == 3, np.inf, ROWS)), "finite numbers"),
    "columns": (np.ones((2, 4)), "X has 4 features, but LSH is expecting 3 features as input"),
    "negative": (-ROWS, "Negative values in data"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("no_scikit_learn")
def test_bad_matrices_are_refused_without_scikit_learn(name: str) -> None:
    matrix, message = BAD[name]
    hasher = LSH(8).fit(ROWS)
    with pytest.raises(ValueError, match=message):
        hasher.transform(matrix)


@pytest.mark.parametrize("name", BAD)
def test_scikit_learn_refuses_them_too(name: str) -> None:
    hasher = LSH(8).fit(ROWS)
    with pytest.raises((ValueError, TypeError)):
        hasher.transform(BAD[name][0])


@pytest.mark.usefixtures("no_scikit_learn")
def test_a_fit_needs_two_rows_without_scikit_learn_too() -> None:
    with pytest.raises(ValueError, match=r"at least 2 rows and 1 column, got shape \(1, 3\)"):
        LSH(8).fit(ROWS[:1])


@pytest.mark.parametrize("kind", [SelfTaughtHashing, RBSH])
@pytest.mark.usefixtures("no_scikit_learn")
def test_methods_with_classifiers_say_what_to_install_before_the_corpus_is_read(kind: Any) -> None:
    def corpus() -> Any:
        raise AssertionError("the corpus was read")
        yield

    with pytest.raises(MissingExtraError, match=r"pip install 'boltzhash\[sklearn\]'"):
        kind(16).fit(corpus())


@pytest.mark.usefixtures("no_scikit_learn")
def test_notebooks_show_plain_text_without_scikit_learn() -> None:
    assert LSH(8)._repr_html_() is None
