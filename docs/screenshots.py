"""Take the screenshots of docs/images from the real page, in Chromium.

    PYTHONPATH=benchmarks python docs/screenshots.py COLLECTION

The collection should be the demo's, with a map: ``make screenshots`` sees to that. PNGs are reduced to
256 colours, which a page of text and dots survives.
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from serving import served

IMAGES = Path(__file__).parent / "images"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
DESKTOP, PHONE = (1180, 760), (390, 800)


def main() -> None:
    with served(sys.argv[1]) as service:
        address = service.address
        IMAGES.mkdir(exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=FLAGS.split()
            )
            take(browser, address, "search", "?q=read+a+csv+file", DESKTOP, explained=2)
            take(browser, address, "map", "?view=map", DESKTOP)
            take(browser, address, "duplicates", "?view=duplicates", DESKTOP)
            take(browser, address, "phone", "?q=open+a+zip+archive", PHONE)
            browser.close()


def take(
    browser: Any,
    address: str,
    name: str,
    query: str,
    size: tuple[int, int],
    *,
    dark: bool = False,
    explained: int | None = None,
) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if dark else "light",
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{address}/{query}")
    page.wait_for_load_state("networkidle")
    if explained is not None:  # the rank of a hit
        page.get_by_role("button", name="Why?").nth(explained - 1).click()
        page.wait_for_selector(".reasons h4")
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(600)  # for the map to be drawn in full
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    palette = picture.quantize(256, dither=Image.Dither.NONE)
    if name == "map":  # its shading would have steps
        palette = picture.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
    palette.save(IMAGES / f"{name}.png", optimize=True)
    context.close()


if __name__ == "__main__":
    main()
