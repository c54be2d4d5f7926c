"""Groups of near-duplicates against all pairs of sets."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boltzhash.search import duplicates
from boltzhash.search.duplicates import HashedTexts, NearIndex, groups_of_near
from boltzhash.text.shingles import differ_in_a_field, hashed_texts, similarity


def hashed(texts: list[str]) -> HashedTexts:
    made = HashedTexts()
    made.extend(hashed_texts(texts))
    return made


def are_of_a_template(one: str, other: str) -> bool:
    these, those = hashed_texts([one, other])
    return differ_in_a_field(these.words, those.words)


def by_all_pairs(
    texts: list[str], order: list[int], least: float
) -> list[tuple[int, list[tuple[int, float]]]]:
    """The definition, word for word: join the most similar of those that are kept, or be kept."""
    kept: list[int] = []
    members: dict[int, list[tuple[int, float]]] = {}
    for row in order:
        near = [(similarity(texts[row], texts[other]), other) for other in kept]
        near = [
            (value, other)
            for value, other in near
            if value >= least and not are_of_a_template(texts[row], texts[other])
        ]
        if near:
            best = max(pair[0] for pair in near)
            first = next(other for value, other in near if value == best)
            members.setdefault(first, []).append((row, best))
        else:
            kept.append(row)
    return [(row, sorted(members[row])) for row in sorted(members)]


def edited(n: int, seed: int) -> list[str]:
    """Texts around a few originals that share a template, with any number of words edited."""
    rng = random.Random(seed)
    template = [f"t{i}" for i in range(20)]
    originals = [
        [*template, *(f"w{rng.randrange(300)}" for _ in range(rng.randrange(40)))]
        for _ in range(max(1, n // 6))
    ]
    texts = []
    for _ in range(n):
        field = f"f{rng.randrange(3)}"
        words = [field if word.endswith("7") else word for word in rng.choice(originals)]
        for _ in range(rng.choice([0, 0, 1, 1, 2, 4, 9])):
            words[rng.randrange(len(words))] = f"e{rng.randrange(50)}"
        texts.append(" ".join(words[: rng.choice([1, 2, 3, 60, 60, 60, 60])]))
    return texts


@settings(max_examples=60)
@given(
    n=st.integers(0, 60),
    least=st.sampled_from([0.05, 0.3, 0.5, 2 / 3, 0.8, 0.9, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_same_groups_as_all_pairs(n: int, least: float, seed: int) -> None:
    texts = edited(n, seed)
    order = list(range(n))
    random.Random(seed).shuffle(order)
    found = groups_of_near(hashed(texts), order, least)
    as_tuples = [(kept, [tuple(member) for member in members]) for kept, members in found]
    assert as_tuples == by_all_pairs(texts, order, least)


@pytest.mark.parametrize("least", [0.5, 0.8])
@pytest.mark.parametrize("bits", [0, 3, 24])
def test_no_pair_is_missed_however_shingles_are_counted(
    monkeypatch: pytest.MonkeyPatch, bits: int, least: float
) -> None:
    monkeypatch.setattr(duplicates, "_MOST_COUNTER_BITS", bits)
    monkeypatch.setattr(duplicates, "_COUNTED_AT_ONCE", 100)
    texts = edited(120, seed=1)
    index = NearIndex(hashed(texts), least)
    pairs = set()
    for row in range(len(texts)):
        pairs |= {(near.row, row) for near in index.near(row)}
        index.put(row)
    expected = {
        (one, other)
        for other in range(len(texts))
        for one in range(other)
        if similarity(texts[one], texts[other]) >= least
    }
    assert pairs == expected
    assert len(expected) > 100


def test_a_chain_is_not_a_group() -> None:
    """Each text is near the next one; the last has nothing of the first any more."""
    words = [f"w{i}" for i in range(60)]
    texts = [" ".join(words[start : start + 30]) for start in range(0, 31, 2)]
    groups = groups_of_near(hashed(texts), range(len(texts)), 0.8)
    assert similarity(texts[0], texts[-1]) == 0
    assert max(len(group.members) for group in groups) == 1
    for kept, members in groups:
        assert all(similarity(texts[kept], texts[row]) == near >= 0.8 for row, near in members)


def test_texts_of_a_template_are_kept_apart() -> None:
    template = "{0} is a function of many words and {0} is what it is called " + "and so on " * 20
    texts = [template.format(name) for name in ("less", "greater", "less", "equal")]
    assert similarity(texts[0], texts[1]) == 13 / 21
    groups = groups_of_near(hashed(texts), range(4), 0.5)
    assert [(kept, [row for row, _ in members]) for kept, members in groups] == [(0, [2])]


def test_many_texts_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where all share two thirds of a template."""
    rng = np.random.default_rng(0)
    template = " ".join(f"t{i}" for i in range(60))
    texts = [
        template + " " + " ".join(f"w{number}" for number in rng.integers(0, 10**6, size=40))
        for _ in range(2_000)
    ]
    texts += [texts[i].replace("t7", "edited") for i in range(50)]
    compared = 0
    similarities = HashedTexts.similarities

    def counted(sets: HashedTexts, row: int, others: duplicates.Rows) -> object:
        nonlocal compared
        compared += len(others)
        return similarities(sets, row, others)

    monkeypatch.setattr(HashedTexts, "similarities", counted)
    groups = groups_of_near(hashed(texts), range(len(texts)), 0.8)
    assert [(kept, [row for row, _ in members]) for kept, members in groups] == [
        (i, [2_000 + i]) for i in range(50)
    ]
    assert compared < 200
