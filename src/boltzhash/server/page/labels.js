// Names of regions on the map: as many as fit, the largest first; none covers another.

import { element } from "./dom.js";

const MOST = 60;
const ROOM = 17_000; // square pixels of map for each of them
const APART = 6; // pixels
const LEAST_SHARE = 0.007; // of all documents, to be named where all is in view,
const FIRST = 24; // or to be among the largest
const SHOWN_WORDS = 3;
const SMALLEST = 13; // pixels of type
const LARGEST = 21;
const LARGEST_ON_A_PHONE = 17;

export class Labels {
  // `regions` as the service tells them; `layer` lies over the map.
  constructor(layer, regions, { onChosen, onPointed }) {
    Object.assign(this, { layer, onChosen, onPointed });
    this.buttons = new Map();
    this.shown = [];
    const largest = Math.max(1, ...regions.map((region) => region.size));
    const most = matchMedia("(max-width: 40rem)").matches ? LARGEST_ON_A_PHONE : LARGEST;
    this.all = regions.reduce((sum, { parent, size }) => sum + (parent === null ? size : 0), 0);
    this.candidates = regions
      .map((region, number) => ({ region, number }))
      .filter(({ region }) => region.words.length > 0 && region.size > 0)
      .sort((a, b) => b.region.size - a.region.size)
      .map(({ region, number }) => {
        const type = Math.round(SMALLEST + (most - SMALLEST) * Math.sqrt(region.size / largest));
        const lines = inLines(region.words.slice(0, SHOWN_WORDS));
        return { number, region, lines, type, x: region.x / 65535, y: region.y / 65535, box: null };
      });
  }

  // `view` in pixels of the page; `zoomed` says how far; `taken` are boxes that must stay free.
  place(view, zoomed, width, height, taken) {
    const focused = this.layer.contains(document.activeElement) ? Number(document.activeElement.dataset.region) : null;
    const seen = [];
    for (const [rank, one] of this.candidates.entries()) {
      const x = one.x * view.scale * view.stretch + view.left;
      const y = one.y * view.scale + view.top;
      if (x < 0 || y < 0 || x > width || y > height) continue;
      const isLarge = rank < FIRST * zoomed ** 2 || one.region.size * zoomed ** 2 > LEAST_SHARE * this.all;
      if (!isLarge && one.number !== focused) continue;
      const across = 2 * one.region.spread * view.scale * Math.sqrt(view.stretch);
      const turn = one.number === focused ? 0 : across > 0.7 * Math.min(width, height) ? 2 : 1;
      seen.push({ one, x, y, across, turn });
    }
    seen.sort((a, b) => a.turn - b.turn); // what fills the window leaves room to what is in it
    const placed = [];
    const boxes = [...taken];
    const most = Math.min(MOST, (width * height) / ROOM);
    for (const { one, x, y, across } of seen) {
      if (placed.length >= most) break;
      one.box ??= this.#measured(one);
      const box = spots(x, y, across, one.box, width, height).find((spot) => !boxes.some((other) => overlap(other, spot)));
      if (box === undefined) continue;
      boxes.push(box);
      placed.push({ one, box });
    }
    this.#show(placed);
  }

  // The label of a region is marked while it is chosen.
  mark(chosen) {
    this.chosen = chosen;
    for (const [number, button] of this.buttons) button.setAttribute("aria-pressed", String(number === chosen));
  }

  #show(placed) {
    const numbers = new Set(placed.map(({ one }) => one.number));
    for (const [number, button] of this.buttons) {
      if (!numbers.has(number)) {
        button.remove();
        this.buttons.delete(number);
      }
    }
    for (const { one, box } of placed) {
      if (!this.buttons.has(one.number)) {
        const button = this.#button(one);
        this.buttons.set(one.number, button);
        this.layer.append(button);
      }
      const { style } = this.buttons.get(one.number);
      style.transform = `translate(${Math.round(box.left)}px, ${Math.round(box.top)}px)`;
    }
  }

  #button(one) {
    const button = element("button", {
      type: "button", class: "region", "data-region": one.number, "aria-pressed": String(one.number === this.chosen),
      onclick: () => this.onChosen(one.number),
      onpointerenter: () => this.onPointed(one.number),
      onpointerleave: () => this.onPointed(null),
    }, ...one.lines.flatMap((line, i) => (i ? [element("br"), line] : [line])));
    button.style.fontSize = `${one.type}px`;
    return button;
  }

  #measured(one) {
    const button = this.#button(one);
    button.style.visibility = "hidden";
    this.layer.append(button);
    const box = { width: button.offsetWidth, height: button.offsetHeight };
    button.remove();
    return box;
  }
}

// Words in one line, or in the two that are least wide.
function inLines(words) {
  const whole = words.join(", ");
  if (words.length < 2 || whole.length <= 14) return [whole];
  const cuts = words.slice(1).map((_, i) => [`${words.slice(0, i + 1).join(", ")},`, words.slice(i + 1).join(", ")]);
  const width = (lines) => Math.max(...lines.map((line) => line.length));
  return cuts.reduce((best, lines) => (width(lines) < width(best) ? lines : best));
}

// Where a name may stand: in the middle of a wide region; above, below or beside a small one, which it would hide.
function spots(x, y, across, { width, height }, wide, tall) {
  const within = (value, most) => Math.max(2, Math.min(value, most - 2));
  const [left, top] = [within(x - width / 2, wide - width), within(y - height / 2, tall - height)];
  const away = Math.min(across, 40) / 2 + 5;
  const middle = [left, top];
  const beside = [[left, y - away - height], [left, y + away], [x + away, top], [x - away - width, top]];
  const fitting = beside.filter(([l, t]) => l >= 2 && t >= 2 && l + width <= wide - 2 && t + height <= tall - 2);
  const wanted = across > 0.7 * width ? [middle] : across > 0.35 * width ? [...fitting, middle] : fitting;
  return wanted.map(([l, t]) => ({ left: l, top: t, width, height }));
}

function overlap(a, b) {
  return a.left < b.left + b.width + APART && b.left < a.left + a.width + APART
    && a.top < b.top + b.height + APART && b.top < a.top + a.height + APART;
}
