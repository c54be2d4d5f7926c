"""What ``tests/minimal_install`` runs: ``fit FOLDER`` with all extras, ``use FOLDER`` with none.

``wheel`` is for a wheel that was just built: everything in it is compiled, and it works.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import boltzhash

TEXTS = {
    "loaf": "bread and butter from the oven",
    "cake": "flour, sugar and butter for a cake in the oven",
    "sky": "a comet and a planet in the telescope",
    "moon": "the moon of a planet and its orbit",
    "ship": "the captain of the ship and the crew on deck",
    "sail": "storm and waves: the crew and the captain reef the sail",
}
CLASSICAL = ["LSH", "ITQ", "SpectralHashing"]
ABSENT = ["torch", "sklearn", "faiss"]


def fit(folder: Path) -> None:
    """A model that needs torch to be fitted, its codes of the texts, the texts as a corpus, and many."""
    short = boltzhash.Training(epochs=50)
    hasher = boltzhash.SemanticHasher(32, training=short).fit(list(TEXTS.values()))
    hasher.save(folder / "model")
    np.save(folder / "expected.npy", hasher.transform(list(TEXTS.values())))
    lines = [json.dumps({"id": name, "text": text}) for name, text in TEXTS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    more = [
        json.dumps({"id": f"{name}-{number}", "text": f"{text} {number}"})
        for number in range(50)
        for name, text in TEXTS.items()
    ]
    (folder / "many.jsonl").write_text("\n".join(more) + "\n")


def use(folder: Path) -> None:
    assert "site-packages" in str(boltzhash.__file__), boltzhash.__file__
    for package in ABSENT:
        assert find_spec(package) is None, f"{package} is installed"
    hasher = boltzhash.load(folder / "model")
    texts = [document.text for document in boltzhash.read_corpus(folder / "corpus.jsonl")]
    codes = hasher.transform(texts)
    np.testing.assert_array_equal(codes, np.load(folder / "expected.npy"))
    index = boltzhash.ExactIndex(codes, ids=list(TEXTS))
    assert index.search(codes, k=1).distances.tolist() == [[0]] * len(TEXTS)
    assert [hits.distances[0] for hits in index.within(codes, radius=0)] == [0] * len(TEXTS)
    with tempfile.TemporaryDirectory() as parent:
        collection = boltzhash.Collection.create(Path(parent, "library"), hasher)
        collection.add([{"id": name, "text": text} for name, text in TEXTS.items()])
        found = [match.id for match in collection.search("bread and butter", k=2)]
        assert found[0] == "loaf", found
    for name in CLASSICAL:
        classical = getattr(boltzhash, name)(16).fit(texts)
        assert classical.transform(texts).shape == (len(texts), 2)
        tfidf = classical.tfidf(texts).toarray()  # dense: nobody but us checks it here
        np.testing.assert_array_equal(classical.transform(tfidf), classical.transform(texts))
    refuse(lambda: boltzhash.SemanticHasher().fit(texts), "train", "torch")
    refuse(lambda: boltzhash.StackedRBM().fit(texts), "train", "torch")
    refuse(lambda: boltzhash.SelfTaughtHashing().fit(texts), "sklearn", "scikit-learn")
    approximate = importlib.import_module("boltzhash.search").ApproximateIndex
    refuse(lambda: approximate(codes), "approximate", "faiss")
    error = raised_by(lambda: boltzhash.ITQ().transform(texts), boltzhash.errors.NotFittedError)
    assert "not fitted" in str(error)


def wheel() -> None:
    from boltzhash.cli.installed import gather

    missing = {name for name, is_compiled in gather()["compiled"].items() if not is_compiled}
    assert missing == ({"search._kernel"} if sys.platform == "win32" else set()), missing
    with tempfile.TemporaryDirectory() as parent:
        hasher = boltzhash.ITQ(n_bits=16, text=boltzhash.Text(stem=True)).fit(list(TEXTS.values()))
        collection = boltzhash.Collection.create(Path(parent, "library"), hasher)
        collection.add([{"id": name, "text": text} for name, text in TEXTS.items()])
        found = [match.id for match in collection.search("bread and butter", k=2)]
        assert found[0] == "loaf", found
        collection.close()


def refuse(call: Callable[[], object], extra: str, package: str) -> None:
    """The call must say which extra to install."""
    message = str(raised_by(call, boltzhash.errors.MissingExtraError))
    assert package in message, message
    assert message.endswith(f"pip install 'boltzhash[{extra}]'"), message


def raised_by(call: Callable[[], object], kind: type[Exception]) -> Exception:
    """What ``pytest.raises`` would be for, were it installed here."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


if __name__ == "__main__":
    if sys.argv[1:] == ["wheel"]:
        wheel()
    else:
        {"fit": fit, "use": use}[sys.argv[1]](Path(sys.argv[2]).resolve())
