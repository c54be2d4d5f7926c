"""A model card: what a model was fitted on, how, and how it was measured, as README.md in its folder.

A folder with one can be given away or uploaded to a hub as it is. The card has nothing of the documents'
texts; the words that a model knows are in its ``vocabulary.json``.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from boltzhash.hashers import Hasher, load
from boltzhash.storage.folders import CONFIG

NAME = "README.md"
_TAGS = ("semantic-hashing", "binary-codes", "similarity-search", "information-retrieval")
_LIST = 8  # members of a setting that are shown; more are counted


def write_card(
    folder: str | Path,
    *,
    corpus: str | None = None,
    evaluation: object = None,
    license: str | None = None,
    replace: bool = False,
) -> Path:
    """Write the card of a saved model into its folder; returns where it is.

    Parameters
    ----------
    folder : path
        What ``save`` or ``boltzhash fit`` wrote. Saving a model there again removes the card.
    corpus : str, optional
        What it was fitted on, in your words: a name, a source, a date.
    evaluation : object, optional
        How it was measured: a report of :mod:`boltzhash.metrics`, or any text.
    license : str, optional
        What others may do with it, such as ``"mit"``.
    replace : bool
        Whether a card that is there, which someone may have written on, is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from boltzhash import LSH
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> LSH(n_bits=16).fit(["stars and planets", "bread and butter"]).save(folder)
    >>> print(write_card(folder, corpus="two lines").read_text().split("\\n\\n")[1])
    # LSH, 16 bits
    """
    target = Path(folder) / NAME
    hasher = load(folder)
    if target.exists() and not replace:
        raise FileExistsError(
            f"{target} is already there: say that it is to be replaced, or move it"
        )
    saved_by = json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))["boltzhash"]
    text = model_card(
        hasher, saved_by=saved_by, corpus=corpus, evaluation=evaluation, license=license
    )
    unfinished = target.with_name(f".{NAME}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, target)
    return target


def model_card(
    hasher: Hasher,
    *,
    saved_by: str,
    corpus: str | None = None,
    evaluation: object = None,
    license: str | None = None,
) -> str:
    """The card of a fitted model, in Markdown with the header that hubs read."""
    method, groups = type(hasher).__name__, hasher.recipe()  # shown field by field
    params = {name: value for name, value in hasher.get_params().items() if name not in groups}
    settings = {f"`{name}`": _shown(value) for name, value in params.items()}
    parts = [
        _header(license),
        f"# {method}, {hasher.n_bits} bits",
        f"{type(hasher).summary()} A model of boltzhash, which makes a code of {hasher.n_bits} bits "
        f"({hasher.n_bits // 8} bytes) of a document.",
        _use(hasher),
        f"## Fitted on\n\n{_table(_fitted_on(hasher, saved_by, corpus))}",
        f"## Settings\n\n{_table(settings)}",
        f"## Measured\n\n{_measured(evaluation)}",
        "## Files\n\n`model.safetensors` has the weights, `config.json` the settings, `vocabulary.json` "
        "the words that the model knows, which are words of the documents. Loading executes nothing.",
    ]
    if reference := type(hasher).reference():
        parts.append(f"## Reference\n\n{reference}")
    return "\n\n".join(parts) + "\n"


def _header(license: str | None) -> str:
    """Strings as JSON has them, which YAML reads."""
    lines = [] if license is None else [f"license: {json.dumps(license, ensure_ascii=False)}"]
    lines += ["library_name: boltzhash", f"tags: {json.dumps(_TAGS)}"]
    return "\n".join(["---", *lines, "---"])


def _use(hasher: Hasher) -> str:
    if hasher.n_feature_columns is not None:
        call = f"hasher.encode(features=vectors)      # floats (n, {hasher.n_feature_columns})"
    elif hasher.tfidf_ is None:
        call = f"hasher.encode(tfidf)      # a matrix (n, {hasher.n_features_in_})"
    else:
        call = 'hasher.encode(["a text"])'
    return (
        "```python\nimport boltzhash      # pip install boltzhash\n\n"
        'hasher = boltzhash.load("path/to/this/folder")\n'
        f"codes = {call}\n```"
    )


def _fitted_on(hasher: Hasher, saved_by: str, corpus: str | None) -> dict[str, str]:
    facts = {} if corpus is None else {"corpus": corpus}
    facts["documents"] = f"{hasher.fitted_on_.documents:,}"
    if hasher.tfidf_ is None:
        facts["input"] = f"a matrix of {hasher.n_features_in_:,} columns"
    else:
        stemmed = (
            ", spellings of a word counted as one" if hasher.get_params()["text__stem"] else ""
        )
        language = "no language" if hasher.language is None else hasher.language
        facts["vocabulary"] = f"{len(hasher.tfidf_.words_):,} words, {language}{stemmed}"
    if hasher.n_feature_columns is not None:
        facts["codes are made from"] = f"vectors of {hasher.n_feature_columns} numbers"
    labelling = getattr(hasher, "labelling_", None)
    if labelling is not None:
        facts["labels"] = f"{labelling.labels:,}"
    facts["boltzhash"] = saved_by
    facts["fingerprint"] = f"`{hasher.fingerprint()}`"
    return facts


def _measured(evaluation: object) -> str:
    if evaluation is None:
        return "Not measured. `boltzhash evaluate COLLECTION` measures the codes of a collection."
    told = str(evaluation).strip("\n")
    longest = max(map(len, re.findall("`+", told)), default=0)
    fence = "`" * max(3, 1 + longest)
    return f"{fence}text\n{told}\n{fence}"


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple | set | frozenset) and len(value) > _LIST:
        return f"{len(value):,} of them"
    return f"`{value!r}`"


def _table(facts: dict[str, str]) -> str:
    lines = ["| | |", "| --- | --- |"]
    for name, value in facts.items():
        cell = " ".join(value.split()).replace("|", "\\|")
        lines.append(f"| {name} | {cell} |")
    return "\n".join(lines)
