"""How many frames a second the page's map draws while it is dragged and zoomed.

    python benchmarks/page_map.py COLLECTION [N_POINTS]

The points (100,000 unless said otherwise) are made up, in 400 clumps with names, and told to the page in
place of the collection's own map; everything else is the page as it is served. Chromium draws without a
GPU. Each frame is one in which the map has moved. On a busy machine the fastest tenth of the frames says
more than the median: the others waited for a processor.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

from serving import served

FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking"
SIZES = {
    "desktop": (1280, 800, 1),
    "desktop, two pixels in one": (1280, 800, 2),
    "phone": (390, 800, 3),
}
N_CLUMPS, MOVES = 400, 120


def main() -> None:
    collection = sys.argv[1]
    n_points = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with served(collection) as service:
        answer = json.dumps(made_up_map(n_points))
        print(f"{n_points:,} points; load of the machine {os.getloadavg()[0]:.1f}")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=FLAGS.split()
            )
            for name, size in SIZES.items():
                print(f"{name}: {measure(browser, service.address, answer, size)}")
            browser.close()


def made_up_map(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    middles = rng.uniform(0.05, 0.95, (N_CLUMPS, 2))
    clump_of = rng.integers(0, N_CLUMPS, n)
    points = np.clip(middles[clump_of] + rng.normal(0, 0.015, (n, 2)), 0, 1)
    x, y = np.round(points.T * 65535).astype(int).tolist()
    sizes = np.bincount(clump_of, minlength=N_CLUMPS).tolist()
    regions = [
        {
            "parent": None,
            "x": round(middle[0] * 65535),
            "y": round(middle[1] * 65535),
            "spread": 0.02,
            "size": size,
            "words": [f"clump{i}", "made", "up"],
        }
        for i, (middle, size) in enumerate(zip(middles.tolist(), sizes, strict=True))
    ]
    nothing: dict[str, Any] = {"field": None, "values": [], "ordered": False, "colours": []}
    return {
        "generation": 1,
        "made": True,
        "numbers": list(range(1, n + 1)),
        "x": x,
        "y": y,
        "regions": regions,
        "region_of": clump_of.tolist(),
        "left_out": 0,
        **nothing,
    }


def measure(browser: Any, address: str, answer: str, size: tuple[int, int, int]) -> str:
    width, height, ratio = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=ratio
    )
    page = context.new_page()
    page.route(
        "**/v1/map",
        lambda route: route.fulfill(content_type="application/json", body=answer),
    )
    page.goto(f"{address}/?view=map")
    page.wait_for_selector(".map .region")
    box = page.locator(".map canvas.dots").bounding_box()
    told = []
    for what, events in (("dragged", DRAG), ("zoomed", ZOOM)):
        times = page.evaluate(
            events,
            {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "n": MOVES},
        )
        median, fastest = statistics.median(times), np.quantile(times, 0.1)
        told.append(
            f"{what} {1000 / median:.0f} frames a second "
            f"({median:.0f} ms, the fastest tenth {fastest:.0f} ms)"
        )
    context.close()
    return ", ".join(told)


# One event a frame, as a pointer sends them; the next is sent when the frame is drawn.
DRAG = """async ({x, y, n}) => {
  const map = document.querySelector(".map canvas.dots");
  const send = (name, dx) => map.dispatchEvent(new PointerEvent(name, {
    bubbles: true, pointerId: 1, clientX: x + dx, clientY: y, isPrimary: true }));
  map.parentNode.setPointerCapture = () => {};  // there is no real pointer to capture
  send("pointerdown", 0);
  const times = [];
  for (let i = 1; i <= n; i++) {
    const start = performance.now();
    send("pointermove", 60 * Math.sin(i / 8));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    times.push(performance.now() - start);
  }
  send("pointerup", 0);
  return times;
}"""
ZOOM = """async ({x, y, n}) => {
  const map = document.querySelector(".map canvas.dots");
  const times = [];
  for (let i = 1; i <= n; i++) {
    const start = performance.now();
    map.dispatchEvent(new WheelEvent("wheel", {
      bubbles: true, cancelable: true, clientX: x, clientY: y, deltaY: i <= n / 2 ? -30 : 30 }));
    await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    times.push(performance.now() - start);
  }
  return times;
}"""


if __name__ == "__main__":
    main()
