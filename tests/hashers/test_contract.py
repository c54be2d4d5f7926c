"""One contract for all hashers, run over every one of them."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import boltzhash
from boltzhash.codes import distinct
from boltzhash.hashers import HASHERS, Hasher
from boltzhash.hashers.shared.trained import TrainedHasher
from boltzhash.training import loop
from quick_hashers import quick, separation

# Their codes depend on the documents: a seed only says where a search for eigenvectors starts.
SEEDLESS = {"SelfTaughtHashing", "SpectralHashing"}
hashers = pytest.mark.parametrize("kind", HASHERS)
trained = pytest.mark.parametrize(
    "kind", [name for name, kind in HASHERS.items() if issubclass(kind, TrainedHasher)]
)


def _checks() -> pytest.MarkDecorator:
    """All of scikit-learn's. No exceptions are needed; expected_failed_checks= would name them."""
    few = {"training__epochs": 3}
    kinds = [quick(n, **(few if "training" in kind.RECIPE else {})) for n, kind in HASHERS.items()]
    with warnings.catch_warnings():
        # Hashers keep the contract without inheriting from it: see hashers/estimator.py.
        warnings.filterwarnings("ignore", ".*does not inherit from `sklearn.base.BaseEstimator`")
        return parametrize_with_checks(kinds)


@_checks()
def test_scikit_learn_contract(estimator: Hasher, check: Any) -> None:
    check(estimator)


@hashers
def test_codes_are_packed_bytes_and_not_collapsed(kind: str, texts: list[str]) -> None:
    codes = quick(kind).fit(texts).transform(texts)
    assert codes.dtype == np.uint8
    assert codes.shape == (len(texts), 2)
    assert distinct(codes) >= 3


@hashers
def test_topics_are_nearer_than_others(kind: str, texts: list[str]) -> None:
    codes = quick(kind).fit(texts).transform(texts)
    assert separation(codes) > 2


@hashers
def test_same_seed_same_bytes(kind: str, texts: list[str]) -> None:
    one = quick(kind, random_state=3).fit(texts).transform(texts)
    again = quick(kind, random_state=3).fit(texts).transform(texts)
    other = quick(kind, random_state=4).fit(texts).transform(texts)
    assert one.tobytes() == again.tobytes()
    if kind not in SEEDLESS:
        assert one.tobytes() != other.tobytes()


@hashers
def test_global_seeds_are_neither_used_nor_changed(kind: str, texts: list[str]) -> None:
    import torch

    before = (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]
    quick(kind).fit(texts)
    after = (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]
    assert before == after


@hashers
def test_code_does_not_depend_on_the_batch(kind: str, texts: list[str]) -> None:
    hasher = quick(kind).fit(texts)
    together = hasher.transform(texts)
    alone = np.concatenate([hasher.transform([text]) for text in texts])
    assert together.tobytes() == alone.tobytes()


@hashers
def test_texts_and_their_matrix_give_the_same_codes(kind: str, texts: list[str]) -> None:
    hasher = quick(kind).fit(texts)
    assert (hasher.transform(hasher.tfidf(texts)) == hasher.transform(texts)).all()


@hashers
def test_texts_may_be_any_iterable(kind: str, texts: list[str]) -> None:
    def generated() -> Iterator[str]:
        yield from texts

    expected = quick(kind).fit(texts).transform(texts)
    hasher = quick(kind).fit(generated())
    assert (hasher.transform(generated()) == expected).all()
    assert (hasher.transform(tuple(texts)) == expected).all()
    assert (hasher.transform(np.array(texts)) == expected).all()
    assert (hasher.transform(np.array(texts, dtype=object)) == expected).all()


@hashers
def test_dense_and_every_sparse_layout_agree(kind: str, texts: list[str]) -> None:
    matrix = quick(kind).fit(texts).tfidf(texts)
    expected = quick(kind).fit(matrix).transform(matrix)
    for same in (matrix.toarray(), matrix.tocsc(), matrix.tocoo(), sparse.csr_array(matrix)):
        assert (quick(kind).fit(same).transform(same) == expected).all()


@hashers
def test_the_callers_matrix_is_left_alone(kind: str) -> None:
    """Unsorted, with a repeated entry and a stored zero: understood, but not rewritten."""
    parts = ([1.0, 2.0, 3.0, 0.0, 5.0, 1.0], [2, 0, 0, 1, 1, 0], [0, 3, 4, 6])
    matrix = sparse.csr_matrix(parts, shape=(3, 3))
    codes = quick(kind).fit(matrix).transform(matrix)
    assert [part.tolist() for part in (matrix.data, matrix.indices, matrix.indptr)] == list(parts)
    assert (quick(kind).fit(matrix.toarray()).transform(matrix.toarray()) == codes).all()


@hashers
def test_a_failed_fit_keeps_the_model_there_was(kind: str, texts: list[str]) -> None:
    hasher = quick(kind).fit(texts)
    before = hasher.transform(texts)
    with pytest.raises(ValueError, match="the corpus is empty"):
        hasher.fit([])
    assert (hasher.transform(texts) == before).all()


@hashers
def test_no_documents_give_no_codes(kind: str, texts: list[str]) -> None:
    assert quick(kind).fit(texts).transform([]).shape == (0, 2)


@hashers
def test_unknown_words_are_flagged(kind: str, texts: list[str]) -> None:
    hasher = quick(kind).fit(texts)
    queries = ["zzz qqq", "", "bread zzz butter"]
    assert hasher.known_word_counts(queries).tolist() == [0, 0, 2]
    codes = hasher.transform(queries)
    assert codes[0].tobytes() == codes[1].tobytes()


@hashers
def test_clone_and_pipeline(kind: str, texts: list[str]) -> None:
    hasher = quick(kind)
    copy = clone(hasher)
    assert copy.get_params() == hasher.get_params()
    matrix = hasher.fit(texts).tfidf(texts)
    codes = make_pipeline(MaxAbsScaler(), copy).fit_transform(matrix)
    assert codes.shape == (len(texts), 2)


@hashers
def test_save_and_load_in_a_new_process_give_the_same_bytes(
    kind: str, texts: list[str], tmp_path: Path
) -> None:
    hasher = quick(kind, text__stop_words=("ship",)).fit(texts)
    hasher.save(tmp_path / "model")
    script = (
        "import sys, boltzhash\n"
        f"codes = boltzhash.load({str(tmp_path / 'model')!r}).transform({texts[:40]!r})\n"
        "assert not {'torch', 'sklearn'}.intersection(sys.modules), 'hashing needs neither'\n"
        "sys.stdout.write(codes.tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == hasher.transform(texts[:40]).tobytes().hex()
    loaded = boltzhash.load(tmp_path / "model")
    assert loaded.fingerprint() == hasher.fingerprint()
    groups = hasher.recipe()
    assert loaded.recipe() == groups
    same = [name for name in hasher.get_params(deep=False) if name not in groups]
    assert all(getattr(loaded, name) == getattr(hasher, name) for name in same)


@hashers
def test_at_most_twelve_arguments_and_groups_that_set_params_reaches(kind: str) -> None:
    hasher = HASHERS[kind]()
    assert len(hasher.defaults()) <= 12
    before = hasher.get_params()
    for name, value in before.items():
        assert HASHERS[kind]().set_params(**{name: value}).get_params()[name] == value
    assert clone(hasher.set_params(text__stem=True)).get_params()["text__stem"] is True
    assert hasher.get_params()["text__max_words"] == before["text__max_words"]


@hashers
def test_a_saved_model_can_be_fitted_again(kind: str, texts: list[str], tmp_path: Path) -> None:
    hasher = quick(kind).fit(texts)
    hasher.save(tmp_path / "model")
    again = clone(boltzhash.load(tmp_path / "model")).fit(texts)
    assert (again.transform(texts) == hasher.transform(texts)).all()


@hashers
def test_model_fitted_on_a_matrix_refuses_texts(
    kind: str, texts: list[str], tmp_path: Path
) -> None:
    hasher = quick(kind).fit(quick(kind).fit(texts).tfidf(texts))
    hasher.save(tmp_path / "model")
    with pytest.raises(ValueError, match="fitted on a matrix and knows no words"):
        boltzhash.load(tmp_path / "model").transform(["bread"])


BAD_INPUT = {
    "no documents": ([], "the corpus is empty"),
    "one document": (["bread butter"], "at least 2 documents are needed to fit, got 1"),
    "identical": (["bread butter"] * 5, "all 5 documents are the same"),
    "only stop words": (["the of and", "is at on"], "no word is left for the vocabulary"),
    "a single string": ("bread butter", "got a single str: put it into a list"),
    "not a string": (["bread", 3, "butter"], "document 1 must be a string, got int"),
    "negative": (np.array([[1.0, 0.0], [0.0, -2.0]]), "must be 0 or more, got -2.0 in row 1"),
    "not a number": (np.array([[1.0, 0.0], [0.0, np.nan]]), "NaN"),
    "infinite": (sparse.csr_matrix([[1.0, 0.0], [0.0, np.inf]]), "infinity"),
    "no words": (sparse.csr_matrix((3, 4)), "none of the 3 documents has a word"),
}


@hashers
@pytest.mark.parametrize(("documents", "message"), BAD_INPUT.values(), ids=BAD_INPUT.keys())
def test_bad_documents_are_named(kind: str, documents: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick(kind).fit(documents)


@hashers
@pytest.mark.parametrize("n_bits", [0, -8, 12, 4104, 64.0, "64", True, None])
def test_bad_n_bits_is_named(kind: str, texts: list[str], n_bits: Any) -> None:
    with pytest.raises(
        ValueError, match=f"n_bits must be a multiple of 8 between 8 and 4096, got {n_bits!r}"
    ):
        quick(kind, n_bits=n_bits).fit(texts)


# By what is expected: wrong values, and the arguments of all hashers that they are wrong for.
ARGUMENTS: dict[str, tuple[list[Any], str]] = {
    "a positive integer": (
        [0, 2.5, "10", True, None],
        "n_components n_groups n_neighbors topic_dimensions adversary_steps graph__trees"
        " training__batch_size text__max_words text__min_df",
    ),
    "a positive integer or None": (
        [0, 1.5, "10"],
        "n_directions pretraining_epochs training__epochs training__least_steps network__networks",
    ),
    "an integer of 0 or more": (
        [-1, 2.5, "10", None],
        "n_iterations network__hidden_units objective__prior_groups graph__neighbours",
    ),
    "an integer of 0 or more or 'full'": ([-1, 2.5, "half", True], "rank"),
    "an integer of 0 or more or None": ([-1, 0.5], "neighbours__count"),
    "an integer from 0 to 8": ([-1, 9], "order"),
    "an integer from 0 to 100": ([-1, 101], "neighbours"),
    "a number above 0": (
        [0, -1, float("nan"), "fast", None],
        "C temperature adversary_rate pretraining_rate training__learning_rate objective__kl_ramp",
    ),
    "a number above 0 or None": ([0.0, "far"], "network__input_length neighbours__nearness"),
    "a number above 0( or None)?": ([0, "wide"], "initial_range"),
    "a number above 0 and below 1": ([0.0, 1.0, None], "threshold graph__correlation"),
    "a number above 0 and at most 1": ([0, 2], "text__max_df"),
    "a number of at least 0": (
        [-1, "much", None],
        "code_noise ranking pair_weight topic_weight entropy_weight false_positives far_neighbours"
        " objective__ranking neighbours__contrast graph__edge_weight",
    ),
    "a number of at least 0 or None": ([-1, "much"], "objective__label_weight"),
    "a number of at least 0 and at most 1": ([-0.1, 1.1, None], "neighbours__with_label"),
    "a number of at least 0 and below 1": ([-0.1, 1, None], "network__dropout neighbours__share"),
    "a tuple of 2 values, each a number of at least 0": (
        [0.1, (0, 1, 2), (0.5, -1), None],
        "objective__kl_weight objective__decoder_noise",
    ),
    "a tuple of values, each a positive integer": (
        [64, (8, 0), (10, 1.5)],
        "hidden_units neighbours__dimensions",
    ),
    "True or False": (
        ["yes", 1, None],
        "word_importance chosen_noise network__unigram_start objective__label_guesses",
    ),
    "True or False or None": (["yes", 0], "neighbours__second_training"),
    "one of 'codes', 'bits'": (["floats", None], "output"),
    "one of 'topics', 'questions'": (["fun", None], "purpose"),
    "one of 'cosine', 'steps'": (["never", None], "training__learning_rate_decay"),
    "one of 'tfidf', 'root-tfidf', 'words'": (["bm25", None], "objective__target"),
    "one of 'softmax', 'sigmoid'": (["probit", None], "objective__label_likelihood"),
    "one of 'rearranged', 'printed'": (["tight", None], "objective__bound"),
    "one of 'straight-through', .*'relax'": (["magic", None], "gradient objective__gradient"),
    "'bits' or 'means' or None": (["codes", True], "neighbours__contrast_codes"),
    "one of 'spanning', 'stars'": (["oak", None], "graph__tree"),
    "one of 'latent', 'tfidf'": (["bm25", None], "graph__similarity"),
    "one of .*english.*, or None .*": (["klingon"], "text__language"),
    "a list of words or None": (["english", [1]], "text__stop_words"),
    "a regular expression": (["("], "text__token_pattern"),
    '"auto" or a torch device': (["abacus"], "training__device"),
}
UNDECLARED = {"n_bits", "random_state", "verbose", "text__stem"}  # tested by themselves, or any


@hashers
def test_bad_arguments_are_named(kind: str, texts: list[str]) -> None:
    hasher = quick(kind)
    unseen = hasher.get_params().keys() - hasher.recipe().keys() - UNDECLARED
    for expected, (values, names) in ARGUMENTS.items():
        for name in unseen.intersection(names.split()):
            unseen.remove(name)
            for value in values:
                argument = name.rpartition("__")[2]
                message = rf"{argument} must be {expected}, got .*{re.escape(repr(value))}"
                with pytest.raises(ValueError, match=message):
                    clone(hasher).set_params(**{name: value}).fit(texts)
    assert not unseen


@trained
def test_on_epoch_sees_a_working_hasher(kind: str, texts: list[str]) -> None:
    seen = []
    hasher = quick(kind, training__epochs=3).fit(
        texts, on_epoch=lambda h: seen.append((h.history_[-1].epoch, h.transform(texts)))
    )
    assert [epoch for epoch, _ in seen] == [1, 2, 3]
    assert (seen[-1][1] == hasher.transform(texts)).all()


@trained
def test_an_interrupted_fit_resumes_to_the_same_bytes(
    kind: str, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    whole = quick(kind, training__epochs=6).fit(texts)
    seen: list[int] = []

    def note(hasher: Any) -> None:
        seen.append(hasher.history_[-1].epoch)
        if seen == [1, 2, 3, 4]:
            raise KeyboardInterrupt

    def fitted(**changes: Any) -> Any:
        hasher = quick(kind, training__epochs=6, **changes)
        return hasher.fit(texts, checkpoint=tmp_path / "checkpoint", on_epoch=note)

    with pytest.raises(KeyboardInterrupt):
        fitted()
    resumed = fitted()
    assert seen == [1, 2, 3, 4, 4, 5, 6]  # the fourth was interrupted before it was kept
    assert resumed.fingerprint() == whole.fingerprint()
    assert resumed.history_ == whole.history_
    assert (tmp_path / "checkpoint").is_dir()  # the caller removes it once the model is saved
    other = fitted(training__batch_size=29)
    assert seen[7:] == [1, 2, 3, 4, 5, 6]  # a checkpoint of another fit is not taken up
    assert (
        other.fingerprint()
        == quick(kind, training__epochs=6, training__batch_size=29).fit(texts).fingerprint()
    )
