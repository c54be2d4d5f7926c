"""The runner: the whole path on a small corpus, what is skipped, what is refused and left alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from experiments.figures import svg
from experiments.results import files, resamples
from experiments.runs import runner, sweeps
from experiments.tables import pages

Corpus = Callable[[str], Path]


def test_every_run_has_a_name_of_its_own_and_settings_that_exist() -> None:
    all_runs = [one for several in sweeps.EXPERIMENTS.values() for one in several]
    assert len({(one.experiment, one.name) for one in all_runs}) == len(all_runs)
    for one in {r.settings.name + r.settings.method: r for r in all_runs}.values():
        hasher = runner.make(one, "cpu")
        assert hasher.n_bits == one.bits
        assert {k: hasher.get_params()[k] for k in one.settings.arguments} == one.settings.arguments


def test_protocols_choose_epochs_by_what_they_say() -> None:
    protocols = runner.protocols
    epochs = [(1, 0.5, 0.4), (2, 0.7, 0.5), (3, 0.6, 0.8), (4, 0.6, 0.3)]
    assert protocols(0.3, epochs) == {"published": 0.8, "validation": 0.5, "label-free": 0.3}
    assert set(protocols(0.2, []).values()) == {0.2}


@pytest.fixture
def main(results_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command line of the runs in this process; its workers are processes of their own."""

    def call(*arguments: str) -> None:
        monkeypatch.setattr(sys, "argv", ["runs", *arguments])
        runner.main()

    return call


def test_from_runs_to_a_figure_and_finished_runs_are_skipped(
    main: Callable[..., None],
    small_corpus: Corpus,
    results_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    small_corpus("reuters")
    main("smoke", "--device", "cpu")
    path = results_folder / "smoke.jsonl"
    written = path.read_bytes()
    results = {result["run"]: result for result in files.read_all("smoke")}
    assert list(results) == [f"{name}-reuters-16-0" for name in ("ITQ", "NASH", "SemanticHasher")]
    nash = results["NASH-reuters-16-0"]
    assert [epoch for epoch, _, _ in nash["curve"]] == [1, 2]
    assert len(resamples.deviations(nash["resamples"])) == resamples.RESAMPLES
    assert nash["posterior"] is None
    assert results["SemanticHasher-reuters-16-0"]["posterior"]["mean_abs_location"] > 0
    assert nash["precision"]["published"] == max(test for _, _, test in nash["curve"])
    capsys.readouterr()
    main("smoke", "--device", "cpu")
    assert capsys.readouterr().out == "0 runs to do\n"
    assert list(results_folder.iterdir()) == [path]
    assert path.read_bytes() == written
    shown = pages.smoke()
    assert shown.count("| reuters | 16 |") == 3
    assert svg.stale(results_folder).keys() == {"smoke"}


@pytest.mark.parametrize("damage", ["missing", "cut short", "something else"])
def test_data_that_is_missing_or_damaged_is_said_with_its_name(
    small_corpus: Corpus, damage: str
) -> None:
    path = small_corpus("reuters")
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:5000] if damage == "cut short" else b"no matrix")
    expected = (
        "a .mat file, got no such file" if damage == "missing" else "an intact .mat file, got"
    )
    itq = next(run for run in sweeps.EXPERIMENTS["smoke"] if run.settings.name == "ITQ")
    with pytest.raises(Exception, match=f"reuters.tfidf.mat: expected {expected}"):
        runner.measure(itq, "cpu")


def test_an_unknown_method_is_refused_with_those_that_are_known() -> None:
    run = sweeps.Run("smoke", sweeps.Settings("odd", "Oddhash"), "reuters", 16, 0)
    with pytest.raises(SystemExit, match=r"unknown method 'Oddhash': one of .*CorrSH"):
        runner.make(run, "cpu")


def test_one_failed_run_does_not_take_the_others_with_it(
    small_corpus: Corpus, results_folder: Path
) -> None:
    small_corpus("reuters")
    good = sweeps.Run("smoke", sweeps.Settings("ITQ", "ITQ"), "reuters", 16, 0)
    bad = sweeps.Run("smoke", sweeps.Settings("ITQ", "ITQ"), "tmc", 16, 0)
    with pytest.raises(SystemExit, match=r"failed:\nITQ-tmc-16-0: .*no such file"):
        runner.sweep([bad, good], partial(runner.measure, device="cpu"), 1)
    assert [result["run"] for result in files.read_all("smoke")] == [good.name]


def test_runs_that_time_did_not_allow_are_counted(
    results_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = sweeps.Run("smoke", sweeps.Settings("ITQ", "ITQ"), "reuters", 16, 0)
    runner.sweep([run], partial(runner.measure, device="cpu"), 1, 0.0)
    assert "1 runs not started within 0 s: the same command resumes" in capsys.readouterr().out
    assert not results_folder.exists()
