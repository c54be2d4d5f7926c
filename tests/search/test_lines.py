"""Lines that show why a text is a hit: the compiled way and the plain one, which must agree."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boltzhash.search.snippet import CompiledLines, PythonLines, lines_of
from boltzhash.text.words import Words

snippet = importlib.import_module("boltzhash.search.snippet")  # the function has the same name
compiled_only = pytest.mark.skipif(snippet._lines is None, reason="no compiler at install time")

WORDS = Words()

# What ends sentences and what only looks like it, headings, blanks of all kinds, names, other scripts.
_PIECES = st.sampled_from(
    [
        *("moon", "Moons", "moon_light", "MoonLight", "read_csv", "__moon__", "C++", "csv.reader"),
        *("i.e.", "e.g.", "éi.e.", "_e.g.", "(i.e.", "x.", "y!", "z?", "...", "v3.11", "''", "-"),
        *(
            " ",
            "  ",
            "\n",
            "\n\n",
            "\t",
            "\r\n",
            "\x0b",
            "\x1c",
            "\x85",
            "\xa0",
            "\u2028",
            "\u3000",
        ),
        *("===", "---", "~~", "^^^^", "***", "\n===\n", "\n ---- \n", "Title\n=====\n", "=== x"),
        *(
            "café",
            "cafe\u0301",
            "Straße",
            "机器学习",
            "月。",
            "月！",
            "？",
            "ไทย",
            "ёлка",
            "\ud800",
        ),
        "a" * 70,
        "月" * 40,
    ]
)
TEXTS = st.lists(_PIECES, max_size=40).map("".join) | st.text(max_size=200)
QUESTIONS = st.lists(
    st.sampled_from(
        ["moon", "light", "csv", "reader", "c++", "cafe", "机器", "月", "strass", "e", "x"]
    ),
    max_size=6,
).map(frozenset)


@compiled_only
@settings(max_examples=1500, deadline=None)
@given(text=TEXTS, sought=QUESTIONS, width=st.integers(1, 120))
@example(text="A\n===\nB\n---", sought=frozenset(), width=80)
@example(text=".\n\n", sought=frozenset({"x"}), width=80)
@example(text="e.g. x", sought=frozenset({"x"}), width=80)
def test_both_ways_show_the_same_line_with_the_same_marks(
    text: str, sought: frozenset[str], width: int
) -> None:
    compiled, plain = CompiledLines(WORDS), PythonLines(WORDS)
    for _ in range(2):  # tokens that are new, and tokens that are known
        line = compiled.best(text, sought, width)
        assert line == plain.best(text, sought, width)
        assert compiled.spans(line, sought) == plain.spans(line, sought)
        assert compiled.spans(text, sought) == plain.spans(text, sought)


@pytest.mark.parametrize("ways", [PythonLines, pytest.param(CompiledLines, marks=compiled_only)])
@pytest.mark.parametrize(
    ("line", "sought", "marked"),
    [
        ("Reads a read_csv file.", {"read"}, ["Reads", "read"]),
        ("os.path.join", {"os.path.join"}, ["os.path.join"]),
        ("(__init__)", {"__init__"}, ["__init__"]),
        ("见机器学习。", {"机器", "学习"}, ["机器", "学习"]),
        ("机器学", {"机器", "器学"}, ["机器学"]),
        ("Le café, Café!", {"cafe"}, ["café", "Café"]),
        ("nothing", {"read"}, []),
        ("nothing", set(), []),
    ],
)
def test_what_is_marked(
    ways: Callable[[Words], PythonLines], line: str, sought: set[str], marked: list[str]
) -> None:
    spans = ways(WORDS).spans(line, sought)
    assert [line[start:end] for start, end in spans] == marked


@compiled_only
def test_what_is_remembered_is_forgotten_before_it_fills_the_memory() -> None:
    lines, plain = CompiledLines(WORDS), PythonLines(WORDS)
    for start in range(0, 420_000, 2_000):  # twice what is remembered
        text = " ".join(f"{number}" for number in range(start, start + 2_000))
        assert f" {start + 7} " in lines.best(f"Numbers. {text}", {f"{start + 7}"}, 80)
    text = "One moon. Two moons and a sun."
    for sought in ({"moon"}, {"moon", "sun"}, {"7"}):
        assert lines.best(text, sought, 80) == plain.best(text, sought, 80)


@compiled_only
def test_threads_may_share_it() -> None:
    """The lock of Python is let go while a new token is cut into words."""
    lines, plain = CompiledLines(Words()), PythonLines(WORDS)
    texts = [f"No {i}. The moon{i % 7} of sun{i}. Moon {i}, sun {i % 5}." for i in range(400)]
    wrong: list[str] = []

    def ask(offset: int) -> None:
        for i in range(len(texts)):
            text, sought = texts[(i + offset) % len(texts)], {"moon", "sun", str(i)}
            if lines.best(text, sought, 80) != plain.best(text, sought, 80):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(50 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@compiled_only
def test_an_error_in_cutting_a_token_comes_through() -> None:
    lines = snippet._lines.Lines(lambda token: [][0])
    with pytest.raises(IndexError):
        lines.best("one", ["one"])
    with pytest.raises(TypeError, match="cut must return a list"):
        snippet._lines.Lines(lambda token: None).spans("one", ["one"], str)
    with pytest.raises(TypeError, match="word 1 must be a string"):
        lines.best("one", ["one", 2])


def test_without_a_compiler_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snippet, "_lines", None)
    assert isinstance(lines_of(Words("none")), PythonLines)
