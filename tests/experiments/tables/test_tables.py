"""Tables from made-up results against hand-worked cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.results import files
from experiments.tables import claims, gradients, margins, pages, paper_tables

from ..conftest import Record, rows


def test_methods_and_variants_come_from_the_runs_that_have_them(record: Record) -> None:
    for seed, value in enumerate((0.5, 0.6)):
        record("tables", "NASH", "ng20", 32, seed=seed, label_free=value)
    record("tables", "CorrSH-published", "ng20", 32, label_free=0.55)
    record("tables", "NASH", "ng20", 64, label_free=0.9)  # another length
    record("quality", "SemanticHasher", "tmc", 32, label_free=0.7)
    record(
        "ingredients", "SemanticHasher", "tmc", 32, label_free=0.65
    )  # of which the variants are made
    record("combined", "SemanticHasher-ranking", "reuters", 32, label_free=0.75)
    record("estimators", "SemanticHasher-arm", "reuters", 32, label_free=0.25)
    assert rows(pages.methods()) == [
        ["SemanticHasher", "1", "", "", ".700"],
        ["CorrSH-published", "1", ".550", "", ""],
        ["NASH", "2", ".550 (.500–.600)", "", ""],
    ]
    assert rows(pages.variants()) == [
        ["SemanticHasher", "1", "", "", ".650"],
        ["SemanticHasher-ranking", "1", "", ".750", ""],
        ["SemanticHasher-arm", "1", "", ".250", ""],
    ]


def test_the_protocol_gap_is_taken_run_by_run(record: Record) -> None:
    for seed, (validation, last) in enumerate([(0.5, 0.51), (0.6, 0.57), (0.4, 0.4)]):
        more = {"validation": validation, "label_free": last}
        record("quality", "SemanticHasher", "ng20", 16, seed=seed, **more)
    record("quality", "SemanticHasher", "tmc", 16, label_free=0.9)  # no curve was kept
    assert rows(pages.protocol_gap()) == [["ng20", "3", "", "−.007 (−.030 to +.010)", "", "", ""]]


def test_a_collapsed_seed_shows(record: Record) -> None:
    for seed in range(10):
        record(
            "quality", "SemanticHasher", "tmc", 8, seed=seed, label_free=0.2 if seed == 7 else 0.7
        )
    assert rows(pages.lowest_seeds()) == [["tmc", "10", ".200 (.650)", "", "", "", ""]]


def test_the_paper_s_table_names_recipe_and_protocol(record: Record) -> None:
    for seed in (0, 1):
        more = {"published": 0.6, "validation": 0.55, "label_free": 0.5 + seed / 10}
        record("tables", "NASH-published", "tmc", 32, seed=seed, **more)
    record("tables", "NASH", "tmc", 32, published=0.8, validation=0.8, label_free=0.7)
    record("tables", "LSH", "tmc", 32, published=0.4, validation=0.4, label_free=0.4)
    found = rows(paper_tables.paper_table("tmc"))
    assert [row for row in found if row[0] in ("NASH", "LSH")] == [
        ["LSH", "the paper's", "published", "", ".439", ".439", ".451", ".455", ".477"],
        ["LSH", "ours", "any", "1", "", "", ".400", "", ""],
        ["NASH", "the paper's", "published", "", ".585", ".657", ".692", ".655", ".600"],
        ["NASH", "as published", "published", "2", "", "", ".600 (.600–.600)", "", ""],
        ["NASH", "as published", "label-free", "2", "", "", ".550 (.500–.600)", "", ""],
        ["NASH", "defaults", "label-free", "1", "", "", ".700", "", ""],
    ]


def test_ablations_say_where_the_kl_weight_ends(record: Record) -> None:
    for name, weight in (("v0-k1-authors", 1.0), ("v0-k10-authors", 0.2), ("v0-k10-fixed", 0.1)):
        more = {"published": 0.7, "label_free": 0.6, "params": {"kl_weight": [0.0, weight]}}
        record("ablations", name, "reuters", 64, **more)
    assert rows(paper_tables.ablation_table("rank")) == [
        ["0", "1", "authors", "1", "published", "1", "", "", ".700", ""],
        ["0", "1", "authors", "1", "label-free", "1", "", "", ".600", ""],
        ["0", "10", "authors", "0.2", "published", "1", ".781", "", ".700", ""],
        ["0", "10", "authors", "0.2", "label-free", "1", "", "", ".600", ""],
        ["0", "10", "fixed", "0.1", "published", "1", "", "", ".700", ""],
        ["0", "10", "fixed", "0.1", "label-free", "1", "", "", ".600", ""],
    ]


def test_seconds_are_set_against_nash(results_folder: Path) -> None:
    for name, seconds in (("NASH", 0.05), ("v10-k10", 0.06)):
        result = {"run": name, "settings": name, "seconds_an_epoch": seconds, "hardware": "a GPU"}
        files.write("timings", result)
    assert rows(paper_tables.seconds_table())[-1] == [
        "v = 10", "k = 10", "3.768", "1.48", "0.0600", "1.20",
    ]  # fmt: skip
    assert paper_tables.seconds_summary().startswith("An epoch with v = k = 10 takes 1.20 times")


def the_papers_times(record: Record, factor: float) -> None:
    """Our tables as if everything came out at the paper's figure times a factor."""
    for (method, corpus, bits), value in claims.the_papers().items():
        name = method if method in claims.WITHOUT_EPOCHS else f"{method}-published"
        for seed in (0, 1):
            more = dict.fromkeys(("published", "label_free"), value * factor + seed / 1000)
            record("tables", name, corpus, bits, seed=seed, **more)


def test_claims_hold_where_ours_are_the_paper_s(record: Record) -> None:
    the_papers_times(record, 1.0)
    assert rows(claims.best_table())[:2] == [
        ["the paper's", "15 of 15", ""],
        ["as published, published", "15 of 15", ""],
    ]
    assert {cell for row in rows(claims.order_table()) for cell in row[2:]} == {"1.00"}
    nash = next(row for row in rows(claims.longer_table()) if row[:2] == ["ng20", "NASH"])
    assert nash[2:4] == ["−.101", "−.101"]
    theirs, ours, _ = (row for row in rows(margins.over_nash_table()) if row[0] == "ng20")
    assert [cell.strip("*").split(" ")[0] for cell in ours[2:]] == theirs[2:]
    shifts = rows(paper_tables.agreement_table())
    assert {cell for row in shifts for cell in row[2:]} == {"+.000", "+.001", ""}  # BMSH has no 8


def test_claims_fail_where_another_method_is_ahead(record: Record) -> None:
    the_papers_times(record, 0.9)
    for seed in (0, 1):
        record("tables", "NASH-published", "tmc", 8, seed=seed, published=0.95, label_free=0.1)
    found = {row[0]: row[1:] for row in rows(claims.best_table())}
    assert found["as published, published"] == ["14 of 15", "NASH"]
    assert found["as published, label-free"] == ["15 of 15", ""]
    margin = rows(margins.over_nash_table())
    assert next(r for r in margin if r[:2] == ["tmc", "as published, published"])[2].startswith(
        "**−"
    )


def test_margins_over_rbsh_name_recipe_and_protocol(record: Record) -> None:
    ahead = {"CorrSH-published": 0.1, "CorrSH-published-no-noise": 0.2, "SemanticHasher": 0.3}
    for seed in (0, 1):
        value = 0.4 + seed / 1000
        for name in ("RBSH-published", "RBSH", *ahead):
            figures = dict.fromkeys(("published", "label_free"), value + ahead.get(name, 0.0))
            record("appendix", name, "tmc-rbsh", 16, seed=seed, **figures)
    found = rows(margins.over_rbsh_table())
    assert found[0][:3] == ["ng20-rbsh", "the paper's, published", "+.020"]
    ours = [[row[1], row[3].strip("*").split(" ")[0]] for row in found[2:]]
    assert ours == [
        ["as published, published", "+.100"],
        ["as published, label-free", "+.100"],
        ["as published, no noise, published", "+.200"],
        ["as published, no noise, label-free", "+.200"],
        ["SemanticHasher, defaults, label-free", "+.300"],
    ]


def test_gradients_have_bias_with_its_error_and_variance(results_folder: Path) -> None:
    points = [
        {"estimator": name, "x": x, "bias": x / 10, "standard_error": 0.0, "variance": 1000 * x}
        for name in gradients.NAMES
        for x in (5.0, 0.1)
    ]
    files.write("gradient-estimators", {"run": "some", "points": points})
    biased = rows(gradients.bias_table())
    assert biased[0] == ["straight-through", ".010 ± .001", ".500 ± .001"]
    assert not {"ARM", "REINFORCE"} & {row[0] for row in biased}  # they have none
    assert ["ARM", "100", "5,000"] in rows(gradients.variance_table())


def test_couplings_are_set_against_the_codes(record: Record) -> None:
    learned, codes = [100, -200, 300], [300, -600, 900]
    for name, sign in (("SemanticHasher", 1), ("CorrSH-published", -1)):
        kept = {"learned_correlation": learned, "code_correlation": [sign * c for c in codes]}
        record("codes", name, "ng20", 128, label_free=0.5, **kept)
    record("codes", "NASH", "ng20", 128, label_free=0.5, code_correlation=codes)
    assert rows(claims.couplings_table()) == [
        ["CorrSH as published", ".200", ".600", "−1.00"],
        ["SemanticHasher", ".200", ".600", "+1.00"],
    ]


def test_every_table_can_be_made_of_nothing(results_folder: Path) -> None:
    tables = pages.TABLES
    assert not results_folder.exists()
    assert all(isinstance(make(), str) for make in tables.values())


def test_a_page_that_asks_for_an_unknown_table_is_refused() -> None:
    with pytest.raises(SystemExit, match="no table is called 'nothing'"):
        pages.filled("<!-- table: nothing -->\n<!-- end -->")
