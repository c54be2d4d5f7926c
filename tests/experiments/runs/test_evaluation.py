"""The experiments' own code: runs, result files, measures on a device, tables of the docs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from boltzhash import VDSH, CorrSH
from boltzhash.codes import pack
from boltzhash.metrics import expected_precision
from experiments.results import files
from experiments.runs import corpora, evaluation, runner, sweeps
from experiments.tables import pages

from ..conftest import ROOT


def test_every_run_has_a_file_of_its_own_and_settings_that_exist() -> None:
    all_runs = [one for several in sweeps.EXPERIMENTS.values() for one in several]
    assert len({one.path for one in all_runs}) == len(all_runs)
    for one in {r.settings.name + r.settings.method: r for r in all_runs}.values():
        hasher = runner.make(one, "cpu")
        assert hasher.n_bits == one.bits
        assert {k: hasher.get_params()[k] for k in one.settings.arguments} == one.settings.arguments


@pytest.mark.parametrize("n_bits", [8, 32])
def test_precision_on_a_device_is_the_library_s(n_bits: int) -> None:
    rng = np.random.default_rng(n_bits)
    queries, codes = rng.random((20, n_bits)) < 0.5, rng.random((300, n_bits)) < 0.5
    query_labels, labels = rng.random((20, 5)) < 0.3, rng.random((300, 5)) < 0.3
    relevant = (query_labels.astype(int) @ labels.T.astype(int)) > 0
    found = evaluation.expected_precision_on_device(
        *map(torch.from_numpy, (queries, codes, relevant))
    )
    expected = expected_precision(pack(queries), pack(codes), query_labels, labels, k=100).mean()
    assert found == pytest.approx(expected, abs=1e-12)


def made_up_corpus(seed: int) -> Any:
    """Random words and labels."""
    rng = np.random.default_rng(seed)

    def split(n: int) -> Any:
        words = sparse.csr_matrix(rng.random((n, 40)) * (rng.random((n, 40)) < 0.2))
        return corpora.Split(words, rng.random((n, 4)) < 0.4)

    return corpora.Corpus(split(300), split(20), split(30), f"made up, {seed}")


@pytest.mark.parametrize(
    "hasher",
    [
        CorrSH(16, epochs=2, neighbours=5, hidden_units=16, device="cpu"),
        CorrSH(64, epochs=2, neighbours=5, hidden_units=16, device="cpu"),
        VDSH(16, epochs=2, hidden_units=16, device="cpu"),
    ],
    ids=["one network", "two networks", "medians"],
)
def test_curve_on_a_device_is_the_library_s_to_rounding(hasher: Any) -> None:
    """Most documents share a code, so that ties matter."""
    corpus = made_up_corpus(hasher.n_bits)
    curve = evaluation.Curve(corpus, torch.device("cpu"))
    hasher.fit(corpus.train.tfidf, on_epoch=curve)
    at_the_end = evaluation.final(hasher, corpus)[0]
    on_device = evaluation.OnDevice(corpus, torch.device("cpu"))(hasher)
    assert on_device == pytest.approx(at_the_end, abs=1e-3)
    assert curve.epochs[-1] == (2, *(round(value, 5) for value in at_the_end))


def test_medians_left_to_the_curve_are_the_library_s_at_the_end() -> None:
    corpus = made_up_corpus(3)
    settings: dict[str, Any] = {"epochs": 3, "hidden_units": 16, "device": "cpu"}
    plain = VDSH(16, **settings).fit(corpus.train.tfidf)
    curve = evaluation.Curve(corpus, torch.device("cpu"))
    curve._on_device = evaluation.OnDevice(corpus, torch.device("cpu"))
    hasher = VDSH(16, **settings)
    curve.leave_medians(hasher)
    seen = []
    hasher.fit(
        corpus.train.tfidf,
        on_epoch=lambda fitted: (curve(fitted), seen.append("medians" in fitted.weights_)),
    )
    assert seen == [False, False, True]
    assert len(curve.epochs) == 3
    np.testing.assert_array_equal(hasher.weights_["medians"], plain.weights_["medians"])


def test_protocols_choose_epochs_by_what_they_say() -> None:
    protocols = runner.protocols
    epochs = [(1, 0.5, 0.4), (2, 0.7, 0.5), (3, 0.6, 0.8), (4, 0.6, 0.3)]
    assert protocols(0.3, epochs) == {"published": 0.8, "validation": 0.5, "label-free": 0.3}
    assert set(protocols(0.2, []).values()) == {0.2}


def test_results_of_another_format_or_damaged_ones_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    files.write(path, {"value": 1})
    assert files.read(path)["value"] == 1
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written beside it
    for text, message in (
        (json.dumps({"format": 1}), "format 1, this code reads"),
        (json.dumps({"value": 2}), "format None"),
        ("[1]", "format None"),
        ('{"format":', "cannot be read as a result"),
    ):
        path.write_text(text)
        with pytest.raises(SystemExit, match=message):
            files.read(path)
        assert path.read_text() == text


def test_unknown_names_and_missing_data_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="unknown corpus 'brown'"):
        corpora.corpus("brown")
    monkeypatch.delenv("BOLTZHASH_DATA", raising=False)
    with pytest.raises(SystemExit, match="set BOLTZHASH_DATA"):
        corpora.corpus("reuters")


def test_tables_in_the_docs_are_what_the_results_give() -> None:
    command = [sys.executable, "-m", "experiments.tables", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_page_that_asks_for_an_unknown_table_is_refused() -> None:
    with pytest.raises(SystemExit, match="no table is called 'nothing'"):
        pages.filled("<!-- table: nothing -->\n<!-- end -->")
