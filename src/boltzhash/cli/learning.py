"""A model learned on the way from a corpus to a collection, for those who name none."""

from __future__ import annotations

import argparse
import itertools
import shlex
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boltzhash.cli.arguments import (
    add_words,
    given_words,
    read_documents,
    with_progress,
)
from boltzhash.cli.opening import opened_if_there
from boltzhash.cli.reporting import say
from boltzhash.errors import MissingExtraError, TrainingError
from boltzhash.text.stopwords import LANGUAGES

if TYPE_CHECKING:
    from boltzhash.collection import Collection
    from boltzhash.hashers import Hasher

# A batch of training: with fewer documents, learning takes half a minute to find what their words say.
FEWEST = 200
BITS, SEED = 64, 0

# The settings of every hasher that options name.
_ARGUMENTS = {"bits": "n_bits", "language": "text__language", "seed": "random_state"}
_WORDS = ("stop_words", "min_df", "max_df")


def add_learning(parser: argparse.ArgumentParser) -> None:
    """What can be said about a model that is learned on the way. Not given: None."""
    learning = parser.add_argument_group("without a MODEL")
    learning.add_argument(
        "--bits", type=int, help=f"length of a code, a multiple of 8 ({BITS} if not given)"
    )
    learning.add_argument(
        "--language",
        help=f"of the texts: {', '.join(LANGUAGES)}, or none (english if not given)",
    )
    add_words(learning)
    learning.add_argument("--seed", type=int, help=f"same seed, same codes ({SEED} if not given)")
    learning.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="such as 4GB: learn from as many documents as fit",
    )


def refuse_learning(options: argparse.Namespace) -> None:
    """A model that is there is not learned again."""
    for name in (*_ARGUMENTS, *_WORDS, "max_memory"):
        if getattr(options, name) is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} is for a model that is learned here: leave it out, or "
                f"leave out the model {options.model}"
            )


def opened_or_learned(
    options: argparse.Namespace, vectors: Any = None, passages: int | None = None
) -> Collection:
    """The collection that was begun at ``options.output``, or a new one whose model is learned first.

    With ``passages`` it is learned from passages of so many words: it is them that it will code.
    """
    from boltzhash.collection import Collection
    from boltzhash.collection.engines import parse_location
    from boltzhash.collection.locations import FOLDER
    from boltzhash.progress import heartbeat
    from boltzhash.storage.folders import try_output

    begun = opened_if_there(options.output)
    if begun is not None:
        _check_learned_so(begun, options)
        return begun
    checkpoint = None
    if parse_location(options.output).kind == FOLDER:
        output = Path(options.output)
        try_output(output.resolve(), "boltzhash collection")
        checkpoint = output.with_name(output.name + ".checkpoint")
    with heartbeat("learning"):
        learned = _learned(options, checkpoint, vectors, passages)
        collection = Collection.create(options.output, learned, passages=passages)
    if checkpoint is not None:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return collection


def _check_learned_so(begun: Collection, options: argparse.Namespace) -> None:
    params = begun.hasher.get_params()
    options_of = {argument: option for option, argument in _ARGUMENTS.items()}
    for name, value in _given(options).items():
        if params[name] != value:
            option = options_of.get(name, name.removeprefix("text__")).replace("_", "-")
            raise ValueError(
                f"{begun.location} was begun with --{option} {_shown(params[name])}, got "
                f"{_shown(value)}: give the same, or another --output"
            )


def _shown(value: object) -> str:
    return f"of {len(value)} words" if isinstance(value, tuple) else str(value or "none")


def _learned(
    options: argparse.Namespace, checkpoint: Path | None, vectors: Any, passages: int | None
) -> Hasher:
    """SemanticHasher; or ITQ, which needs neither torch nor many documents, and then it is said why.

    From vectors SemanticHasher alone: ITQ reads only words.
    """
    from boltzhash.hashers import ITQ, SemanticHasher

    texts = _texts(options, passages)
    if vectors is not None:
        return _fitted(SemanticHasher, options, texts, checkpoint, vectors)
    first = list(itertools.islice(texts, FEWEST))
    if len(first) < FEWEST:
        linear = _fitted(ITQ, options, first)
        n = f"{len(first)} {'documents' if passages is None else 'passages'}"
        say(f"{shlex.join(options.corpus)} has {n}, too few to learn codes from; {INSTEAD}")
        return linear
    try:
        return _fitted(SemanticHasher, options, itertools.chain(first, texts), checkpoint)
    except MissingExtraError as missing:
        say(f"{missing} for learned codes; {INSTEAD}")
    except TrainingError as failed:
        say(f"{failed}; {INSTEAD}")
    return _fitted(ITQ, options, _texts(options, passages))


INSTEAD = "going on with words, and the codes of ITQ, a linear method"


def _fitted(
    kind: type[Hasher],
    options: argparse.Namespace,
    texts: Iterable[str],
    checkpoint: Path | None = None,
    vectors: Any = None,
) -> Hasher:
    from boltzhash.hashers import SemanticHasher, Text

    own: dict[str, Any] = {"text": Text(stem=True)}
    if kind is SemanticHasher:
        own = {"purpose": "questions", "verbose": True}
    hasher = kind(BITS, random_state=SEED, **own).set_params(**_given(options))
    try:
        return hasher.fit(
            texts, features=vectors, max_memory=options.max_memory, checkpoint=checkpoint
        )
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.exists():
            raise KeyboardInterrupt(
                f"{checkpoint} keeps what is done; the same command resumes from there"
            ) from None
        raise


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a hasher that the options name."""
    named = {argument: getattr(options, option) for option, argument in _ARGUMENTS.items()}
    given = {name: value for name, value in named.items() if value is not None}
    chosen = {name: None if value == "none" else value for name, value in given.items()}
    return {**chosen, **given_words(options)}


def _texts(options: argparse.Namespace, passages: int | None) -> Iterator[str]:
    from boltzhash.text.passages import cut

    for document in with_progress(read_documents(options), "reading"):
        if passages is None:
            yield document.text
        else:
            yield from (document.text[start:end] for start, end in cut(document.text, passages))
