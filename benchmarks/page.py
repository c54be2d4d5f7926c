"""How long each interaction with the page takes in a real browser, and what fifteen questions find.

Starts ``boltzhash serve`` over a collection, drives Chromium (`make test-browser` installs it) and
measures inside the page: from the event, such as a key or a click, to the frame in which the answer
stands. Prints a table, and for each question that was typed, letter by letter, the first five hits.

    PYTHONPATH=. python benchmarks/page.py COLLECTION [--rounds 5]

COLLECTION is the demo's (`boltzhash demo -o COLLECTION`), with a map (`boltzhash map COLLECTION`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from experiments.runs.demo_questions import FIRST, QUESTIONS
from serving import served

WAIT_MS = 60_000
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync"
ANSWERED = (
    "!document.querySelector('.results[aria-busy], .skeleton') && document.querySelector('.hit')"
)

Latencies = dict[str, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("collection", help="the collection that `boltzhash demo` keeps")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with served(options.collection) as service, chromium() as browser:
        address = service.address
        latencies: Latencies = {}
        for _ in range(options.rounds):
            walk(browser, address, latencies)
        print_table(latencies)
        ask_questions(browser, address)
    print(f"load after: {os.getloadavg()[0]:.1f}")


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    if path is None:
        raise SystemExit("there is no chromium: `make test-browser` installs it, or says how")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


def walk(browser: Any, address: str, latencies: Latencies) -> None:
    """Everything that one can do, once, in a fresh profile."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()

    def took(what: str, milliseconds: float) -> None:
        latencies.setdefault(what, []).append(milliseconds)
        print(f"{milliseconds:7.0f} ms  {what}", file=sys.stderr, flush=True)

    def act(what: str, action: str, done: str = ANSWERED) -> None:
        took(what, page.evaluate(measured(action, done)))

    def opened(what: str, query: str, selector: str) -> None:
        start = time.perf_counter()
        page.goto(f"{address}/{query}")
        page.wait_for_selector(selector)
        took(what, 1000 * (time.perf_counter() - start))

    opened("open the page, until one can type", "", "#q")
    page.wait_for_selector(".questions a")
    for i in range(1, len("read a csv file") + 1):
        typed = "read a csv file"[:i]
        act("a letter typed, until its hits stand there", typing(typed), ANSWERED_OR_NOT)
    act("words instead of words and codes", click("#by-words"))
    act("codes instead of words", click("#by-codes"))
    act("words and codes again", click("#by-both"))
    act("the filters with their counts", click("#filter"), has(".choices .count"))
    act("a filter is set", click("[role=option]"), f"{ANSWERED} && {has('.chip')}")
    act("and taken away", click(".chip"), f"{ANSWERED} && !{has('.chip')}")
    act("why a hit is one: its bits", click(".hit [aria-expanded]"), has(".reasons h4"))
    act("a document is read", click(".hit .title"), has("dialog .text"))
    page.keyboard.press("Escape")
    act("twenty hits more", click(".more"), "document.querySelectorAll('.hit').length > 20")
    act("more like a hit", click(".hit .actions button"), f"{ANSWERED} && {has('.like b')}")
    act("back to the query", "history.back()", f"{ANSWERED} && !{has('.like b')}")
    other_views(page, act, opened)
    context.close()


def other_views(
    page: Any, act: Callable[..., None], opened: Callable[[str, str, str], None]
) -> None:
    opened("duplicates, where all texts were compared once", "?view=duplicates", ".group")
    move = "const s = document.querySelector('#alike'); s.value = 60; "
    act(
        "duplicates, another similarity (200 ms of it a pause)",
        move + "s.dispatchEvent(new Event('input'))",
        "document.querySelector('.lead').innerText.includes('60 %')",
    )
    opened("the map, until its names stand there", "?view=map", ".map .region")
    act(
        "a search on the map, until its hits are lit",
        typing("read a csv file"),
        has(".map-hits mark"),
    )
    act("a region is chosen", click(".map .region"), has(".within .chip"))


ANSWERED_OR_NOT = (
    "!document.querySelector('.results[aria-busy], .results > .skeletons, .welcome') && "
    "document.querySelector('.hit, .nothing')"
)


def measured(action: str, done: str) -> str:
    """JavaScript: the milliseconds from an action to the frame in which something holds."""
    return f"""(async () => {{
      const start = performance.now();
      {action};
      await new Promise((there, never) => {{
        const look = () => {{
          if ({done}) there();
          else if (performance.now() - start > {WAIT_MS}) never(new Error({action!r}));
          else requestAnimationFrame(look);
        }};
        requestAnimationFrame(look);
      }});
      return performance.now() - start;
    }})()"""


def typing(text: str) -> str:
    return (
        f"const q = document.querySelector('#q'); q.value = {text!r}; "
        "q.dispatchEvent(new Event('input', {bubbles: true}))"
    )


def click(selector: str) -> str:
    return f'document.querySelector("{selector}").click()'


def has(selector: str) -> str:
    return f'document.querySelector("{selector}")'


def print_table(latencies: Latencies) -> None:
    print("| what | times | median | worst |")
    print("| --- | ---: | ---: | ---: |")
    for what, times in latencies.items():
        median, worst = statistics.median(times), max(times)
        print(f"| {what} | {len(times)} | {median:.0f} ms | {worst:.0f} ms |")


def ask_questions(browser: Any, address: str) -> None:
    """Types each question, letter by letter, and prints what stands first."""
    page = browser.new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(address)
    page.wait_for_selector("#q")
    found = 0
    for question, right in QUESTIONS.items():
        page.locator("#q").fill("")
        page.locator("#q").press_sequentially(question)
        page.evaluate(measured("", ANSWERED))
        titles = page.locator(".hit .title").all_inner_texts()[:FIRST]
        places = [place for place, id_ in enumerate(titles, 1) if re.fullmatch(right, id_)]
        found += bool(places)
        print(f"  {question:<36} {places[0] if places else '-'}  {', '.join(titles)}", flush=True)
    print(f"  a right answer among the first {FIRST}: {found} of {len(QUESTIONS)}")


if __name__ == "__main__":
    main()
