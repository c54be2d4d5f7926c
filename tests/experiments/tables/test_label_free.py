"""How the measure that needs no labels ranks made-up runs, and what it picks."""

from __future__ import annotations

from experiments.tables import label_free

from ..conftest import Record, rows

AGREEMENT = {"ITQ": 0.1, "NASH": 0.2, "one-training": 0.3, "SemanticHasher": 0.4}
PRECISION = {"ITQ": 0.5, "NASH": 0.6, "one-training": 0.8, "SemanticHasher": 0.7}


def write(record: Record, corpus: str, **precision: float) -> None:
    """Runs of all lengths; longer codes agree better, and are more precise."""
    for settings, agreement in AGREEMENT.items():
        for number, bits in enumerate((8, 32, 128)):
            sweep = "quality" if settings == "SemanticHasher" else "label-free"
            more = {"agreement": agreement + number / 100, "val_precision": number / 100}
            more["val_precision"] += (PRECISION | precision)[settings]
            record(sweep, settings, corpus, bits, **more)


def test_ranks(record: Record) -> None:
    write(record, "ng20")
    record("quality", "SemanticHasher", "ng20", 8, seed=1, agreement=0.0, val_precision=1.0)
    record("quality", "SemanticHasher", "ng20", 16, agreement=0.0, val_precision=1.0)
    record("quality-unseen", "ITQ", "ng20", 8, agreement=0.9, val_precision=0.0)  # a second time
    record("label-free", "LSH", "ng20", 8, val_precision=1.0)  # of which agreement is not known
    (row,) = rows(label_free.ranks_table())
    # Four methods, the two best of which change places: 1 - 6 * 2 / (4 * 15).
    assert row[:2] == ["ng20", "12"]
    assert row[3:6] == [".80", ".80", ".80"]
    assert row[6:] == ["", "1.00"]  # two settings of SemanticHasher are too few to be ranked


def test_picks(record: Record) -> None:
    write(record, "ng20")
    write(record, "tmc", SemanticHasher=0.9, ITQ=0.95)
    assert rows(label_free.picks_table()) == [
        ["ng20", "the highest agreement", *[".100 SemanticHasher"] * 3, ".100 SemanticHasher, 128"],
        ["ng20", "the best of the other corpora", *[".300 ITQ"] * 3, ".300 ITQ, 128"],
        ["tmc", "the highest agreement", *[".050 SemanticHasher"] * 3, ".050 SemanticHasher, 128"],
        [
            "tmc",
            "the best of the other corpora",
            *[".150 SemanticHasher, one training"] * 3,
            ".150 SemanticHasher, one training, 128",
        ],
    ]
