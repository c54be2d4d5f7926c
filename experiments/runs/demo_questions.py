"""Everyday questions to the demo's collection: does the default search find what a person means?

    boltzhash demo -o library
    python -m experiments.runs.demo_questions library

Prints, for the default search and for BM25 (bm25s with its stop words, PyStemmer's English stems) over
the same texts: for which of fifteen questions a right answer is among the first five; how often a
document asked for by the first sentence of its docstring comes first and among the first five; for the
default search alone, how often an id finds its document first, and whether a word that the model does
not know finds a document that has it. Nothing is tuned to these.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterable

from boltzhash import Collection
from boltzhash.corpus import Document
from boltzhash.metrics.asking import Way
from boltzhash.text.tokens import tokenize
from experiments.runs.retrieval import RIVAL, bm25

# What counts as right: names, as regular expressions. A module counts where it is about nothing else.
QUESTIONS = {
    "read a csv file": r"csv\.reader|csv\.DictReader|numpy\.genfromtxt|numpy\.loadtxt",
    "sort a list": r"sorted|list\.sort|numpy\.sort",
    "wait for a thread to finish": r"threading\.Thread\.join",
    "parse command line arguments": r"argparse(\.ArgumentParser(\.parse_args)?)?|getopt",
    "regular expression replace": r"re\.subn?|re\.Pattern\.sub",
    "convert string to date": r"datetime.*\.(strptime|fromisoformat)|time\.strptime"
    r"|email\.utils\.parsedate\w*",
    "random sample without replacement": r"random\.sample|numpy.*choice"
    r"|sklearn\.utils\.random\.sample_without_replacement",
    "invert a matrix": r".*linalg\.p?inv",
    "compress data with gzip": r"gzip(\.compress)?",
    "http request": r"urllib\.request(\.urlopen|\.Request)?|http\.client\.HTTPConnection\.request",
    "deep copy of an object": r"copy(\.deepcopy)?",
    "solve a linear system": r".*linalg\.(sp)?solve\w*",
    "numerical integration": r"scipy\.integrate(\.(quad|trapezoid|simpson))?",
    "clustering algorithm": r"sklearn\.cluster\.[A-Z]\w*"
    r"|sklearn\.cluster\.(k_means|dbscan|mean_shift|spectral_clustering|affinity_propagation)"
    r"|scipy\.cluster\.(vq\.kmeans2?|hierarchy\.(linkage|fcluster(data)?))",
    "temporary file": r"tempfile(\.(Temporary|NamedTemporary|SpooledTemporary)File|\.mkstemp)?",
}
FIRST = 5
SAMPLE, SEED = 500, 0
RARE = 5  # documents that have a word, at most


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("library", help="the collection that `boltzhash demo` keeps")
    options = parser.parse_args()
    with Collection.open(options.library) as collection:
        documents = list(collection)
        ways: dict[str, Way] = {
            "default": lambda text, k: collection.search(text, k).ids,
            RIVAL: bm25(documents),
        }
        for name, way in ways.items():
            print(f"{name}:")
            ask_questions(way)
            known_items(way, documents)
        own_names(ways["default"], documents)
        unknown_words(ways["default"], documents, collection.hasher.tfidf_.words_)


def ask_questions(way: Way) -> None:
    found = 0
    for question, right in QUESTIONS.items():
        ids = [str(id_) for id_ in way(question, FIRST)]
        places = [place for place, id_ in enumerate(ids, start=1) if re.fullmatch(right, id_)]
        found += bool(places)
        answer = f"{places[0]}  {ids[places[0] - 1]}" if places else f"-  {', '.join(ids)}"
        print(f"  {question:<36} {answer}")
    print(f"  a right answer among the first {FIRST}: {found} of {len(QUESTIONS)}", flush=True)


def known_items(way: Way, documents: list[Document]) -> None:
    sample = random.Random(SEED).sample(documents, SAMPLE)
    for what, titled in (("the first sentence", False), ("name and first sentence", True)):
        first = among = 0
        for document in sample:
            ids = way(first_sentence(document.text, titled=titled), FIRST)
            first += ids[:1] == [document.id]
            among += document.id in ids
        print(
            f"  {SAMPLE} documents by {what}: first {first / SAMPLE:.3f}, among the first {FIRST} "
            f"{among / SAMPLE:.3f}",
            flush=True,
        )


def first_sentence(text: str, *, titled: bool) -> str:
    """The first sentence of a docstring, after its name in words if that is wanted.

    >>> text = "str title\\n\\nReturn a version of the string.\\nMore follows."
    >>> first_sentence(text, titled=False), first_sentence(text, titled=True)
    ('Return a version of the string.', 'str title Return a version of the string.')
    """
    title, _, body = text.partition("\n\n")
    paragraph = " ".join(body.strip().partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]
    return f"{title} {sentence}" if titled else sentence


def own_names(way: Way, documents: list[Document]) -> None:
    missed = [document.id for document in documents if way(str(document.id), 1) != [document.id]]
    share = 1 - len(missed) / len(documents)
    print(
        f"every id as a query: first {share:.4f} of {len(documents)}; not: {missed[:20]}",
        flush=True,
    )


def unknown_words(way: Way, documents: list[Document], known: Iterable[str]) -> None:
    """Of words with the same stem one is as good as another, so stems are counted."""
    import Stemmer

    stem = Stemmer.Stemmer("english").stemWord
    having: dict[str, set[str | int]] = {}
    spelt: dict[str, str] = {}
    for document in documents:
        for word in set(tokenize(document.text)):
            having.setdefault(stem(word), set()).add(document.id)
            spelt[stem(word)] = min(word, spelt.get(stem(word), word))
    unknown = having.keys() - set(map(stem, known))
    rare = sorted(one for one in unknown if len(having[one]) <= RARE)
    sample = random.Random(SEED).sample(rare, SAMPLE)
    first = [one for one in sample if having[one].intersection(way(spelt[one], 1))]
    complete = [one for one in sample if having[one] <= set(way(spelt[one], FIRST))]
    print(
        f"{SAMPLE} of {len(rare)} words that the model does not know and 1 to {RARE} documents have: "
        f"one of these is first {len(first) / SAMPLE:.3f}, all are among the first {FIRST} "
        f"{len(complete) / SAMPLE:.3f}; not: {[spelt[o] for o in sample if o not in complete][:20]}",
        flush=True,
    )


if __name__ == "__main__":
    main()
