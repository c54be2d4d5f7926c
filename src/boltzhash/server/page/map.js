// The map: one point per document. Drag, zoom, hover, and click for documents like one.

import { Newest, get } from "./api.js";
import { announce, counted, element, failure, notice, number } from "./dom.js";
import { Points } from "./points.js";
import { remember } from "./state.js";

const CATEGORIES = ["#3f6fd8", "#e0793a", "#2f9e68", "#c2468f", "#8a63d2", "#b8932b", "#2aa3b5", "#d0494b"];
const ORDERED = ["#30519c", "#3d6dad", "#4a8ab5", "#5ea6b3", "#80bfa5", "#aed191", "#dcd47c", "#f0c25e"];
const GREY = "#8d8a84";
const REACH = 14; // pixels around the pointer in which a point is hit
const MOST_STRETCHED = 1.7;
const MANY = 20_000; // points that are drawn coarsely while the map moves

export function mapView(main, state, { go }) {
  const body = element("div", {}, element("p", { class: "waiting" }, "Loading the map…"));
  main.replaceChildren(element("h1", { class: "unseen" }, "Map"), body);
  start(body, state, go);
}

async function start(body, state, go) {
  try {
    const { fields } = await get("fields");
    if (state.field === "") state.field = usual(fields);
    const told = await get("map", { field: state.field in fields ? state.field : null });
    if (!told.made) {
      body.replaceChildren(notice("No map yet", ...commands(told.message)));
      return;
    }
    show(body, told, fields, state, go);
  } catch (error) {
    body.replaceChildren(failure(error, () => start(body, state, go)));
  }
}

// Text in backquotes is something to type.
function commands(message) {
  const parts = message.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
  return [element("p", {}, ...parts)];
}

// A field with few values that most documents have says the most at a glance.
function usual(fields) {
  const counts = Object.entries(fields)
    .filter(([, values]) => values.length > 1 && values.length <= 12)
    .map(([name, values]) => [values.reduce((sum, value) => sum + value.count, 0), name]);
  counts.sort((a, b) => b[0] - a[0]);
  return counts.length ? counts[0][1] : "";
}

function show(body, told, fields, state, go) {
  const points = new Points(told.x, told.y, told.colours);
  const palette = colours(told);
  const shown = palette.map(() => true);
  const canvas = element("canvas", {
    tabindex: "0", role: "application", "aria-label":
      `Map of ${number(points.n)} documents. Arrow keys move, plus and minus zoom, Enter finds documents like the one at the centre.`,
  });
  const tip = element("div", { class: "tip", hidden: true });
  const frame = element("div", { class: "map" }, canvas, tip);
  const chart = new Chart(canvas, tip, points, palette, shown, told.places, (id) =>
    go({ view: "search", like: id }));
  const field = element("select", { "aria-label": "Colour by", onchange: () => {
    state.field = field.value;
    remember(state);
    body.replaceChildren(element("p", { class: "waiting" }, "Loading the map…"));
    start(body, state, go);
  } }, ...Object.keys(fields).map((name) =>
    element("option", { value: name, selected: name === told.field }, name)));
  const left = told.left_out ? `, ${number(told.left_out)} without a point` : "";
  body.replaceChildren(
    element("div", { class: "toolbar" },
      Object.keys(fields).length ? element("label", {}, "Colour by ", field) : null,
      legend(told, palette, shown, () => chart.draw()),
      element("span", { class: "zoom" },
        element("button", { type: "button", "aria-label": "Zoom in", onclick: () => chart.zoom(1.6) }, "+"),
        element("button", { type: "button", "aria-label": "Zoom out", onclick: () => chart.zoom(1 / 1.6) }, "−"),
        element("button", { type: "button", onclick: () => chart.reset() }, "All"))),
    frame,
    element("p", { class: "hint" }, `${number(points.n)} documents${left}. Nearby points have similar codes. Click one for more documents like it.`),
  );
  chart.begin();
  announce(`Map of ${counted(points.n, "document", "documents")}`);
}

function colours(told) {
  if (!told.field) return [CATEGORIES[0]].map(rgb);
  const base = told.ordered ? ORDERED : CATEGORIES;
  return told.values.map((_, i) => rgb(i < told.values.length - 2 ? base[i] : GREY));
}

function rgb(hex) {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function legend(told, palette, shown, redraw) {
  const used = new Set(told.colours);
  const buttons = told.values.map((value, i) => {
    if (!used.has(i)) return null;
    const swatch = element("span", { class: "swatch" });
    swatch.style.backgroundColor = `rgb(${palette[i].join(" ")})`;
    return element("button", { type: "button", class: "key", "aria-pressed": "false", onclick: (event) => {
      const alone = shown[i] && shown.filter(Boolean).length === 1;
      shown.fill(alone);
      shown[i] = true;
      if (alone) shown.fill(true);
      buttons.forEach((other) => other?.setAttribute("aria-pressed", "false"));
      event.currentTarget.setAttribute("aria-pressed", String(!alone));
      redraw();
    } }, swatch, value);
  });
  return element("span", { class: "legend", role: "group", "aria-label": "Show only" }, ...buttons);
}

// The first words of a document, without a first paragraph that only repeats the title.
function beginning({ title, text }) {
  const words = (some) => some.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ");
  const [first, ...rest] = text.split("\n\n");
  const told = (rest.length && words(first) === words(title) ? rest.join(" ") : text).replace(/\s+/g, " ").trim();
  return told.length <= 160 ? told : `${told.slice(0, 160).replace(/\s+\S*$/, "")} …`;
}

class Chart {
  constructor(canvas, tip, points, palette, shown, places, onChosen) {
    Object.assign(this, { canvas, tip, points, palette, shown, places, onChosen });
    this.context = canvas.getContext("2d");
    this.view = { scale: 1, stretch: 1, left: 0, top: 0 };
    this.pointers = new Map();
    this.known = new Map();
    this.newest = new Newest();
    this.waiting = null;
    this.frame = null;
    this.settle = null;
  }

  begin() {
    const resize = () => {
      if (!this.canvas.isConnected) return watching.disconnect();
      const ratio = devicePixelRatio || 1;
      const box = this.canvas.getBoundingClientRect();
      if (box.width === 0) return undefined;
      this.canvas.width = Math.round(box.width * ratio);
      this.canvas.height = Math.round(box.height * ratio);
      this.reset();
      return undefined;
    };
    const watching = new ResizeObserver(resize);
    watching.observe(this.canvas);
    const on = (name, handler, options) => this.canvas.addEventListener(name, handler, options);
    on("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), this.#at(event));
    }, { passive: false });
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#up(event));
    on("pointercancel", (event) => this.pointers.delete(event.pointerId));
    on("pointerleave", () => this.#hover(-1));
    on("keydown", (event) => this.#key(event));
  }

  reset() {
    const { width, height } = this.canvas;
    const [room, tall] = [width * 0.96, height * 0.96];
    const scale = Math.min(tall, room * MOST_STRETCHED);
    const stretch = Math.min(MOST_STRETCHED, room / scale); // the axes mean nothing: fill the frame
    this.view = { scale, stretch, left: (width - scale * stretch) / 2, top: (height - scale) / 2 };
    this.draw();
  }

  zoom(factor, around = { x: this.canvas.width / 2, y: this.canvas.height / 2 }) {
    const least = Math.min(this.canvas.width, this.canvas.height) * 0.5;
    const scale = Math.min(Math.max(this.view.scale * factor, least), least * 400);
    const ratio = scale / this.view.scale;
    this.view = {
      scale,
      stretch: this.view.stretch,
      left: around.x - (around.x - this.view.left) * ratio,
      top: around.y - (around.y - this.view.top) * ratio,
    };
    this.moving();
  }

  pan(dx, dy) {
    this.view.left += dx;
    this.view.top += dy;
    this.moving();
  }

  // Coarse while it moves if there are many points, fine when it rests.
  moving() {
    this.draw(this.points.n > MANY);
    clearTimeout(this.settle);
    this.settle = setTimeout(() => this.draw(), 140);
  }

  draw(quick = false) {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.points.draw(this.context, this.view, this.palette, this.shown, { quick });
    });
  }

  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    const ratio = this.canvas.width / box.width;
    return { x: (event.clientX - box.left) * ratio, y: (event.clientY - box.top) * ratio };
  }

  #under({ x, y }) {
    const reach = (REACH * (devicePixelRatio || 1)) / this.view.scale;
    const { scale, stretch, left, top } = this.view;
    return this.points.nearest((x - left) / (scale * stretch), (y - top) / scale, reach);
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.#at(event));
    this.travelled = 0;
  }

  #move(event) {
    const at = this.#at(event);
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) {
      this.#hover(this.#under(at), at);
      return;
    }
    this.travelled += Math.hypot(at.x - before.x, at.y - before.y);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, at);
    if (others.length === 0) this.pan(at.x - before.x, at.y - before.y);
    else {
      const spread = (place) => Math.hypot(place.x - others[0].x, place.y - others[0].y);
      const middle = { x: (at.x + others[0].x) / 2, y: (at.y + others[0].y) / 2 };
      if (spread(before) > 0) this.zoom(spread(at) / spread(before), middle);
    }
    this.#hover(-1);
  }

  #up(event) {
    const alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    const at = this.#at(event);
    if (alone && this.travelled < 6) this.#choose(this.#under(at));
  }

  #key(event) {
    const step = 60 * (devicePixelRatio || 1);
    const moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
    if (event.key in moves) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.reset();
    else if (event.key === "Enter") this.#choose(this.#under({ x: this.canvas.width / 2, y: this.canvas.height / 2 }));
    else return;
    event.preventDefault();
  }

  async #choose(point) {
    if (point < 0) return;
    const found = await this.#document(point);
    if (found) this.onChosen(found.id);
  }

  #hover(point, at = null) {
    clearTimeout(this.waiting);
    this.canvas.style.cursor = point < 0 ? "grab" : "pointer";
    if (point < 0) {
      this.tip.hidden = true;
      return;
    }
    this.waiting = setTimeout(async () => {
      const found = await this.#document(point);
      if (!found) return;
      const ratio = this.canvas.width / this.canvas.getBoundingClientRect().width;
      this.tip.replaceChildren(element("b", {}, found.title), element("p", {}, beginning(found)));
      this.tip.hidden = false;
      const room = this.canvas.clientWidth - this.tip.offsetWidth - 8;
      this.tip.style.left = `${Math.max(8, Math.min(at.x / ratio + 14, room))}px`;
      const below = at.y / ratio + 18;
      const fits = below + this.tip.offsetHeight < this.canvas.clientHeight;
      this.tip.style.top = `${fits ? below : Math.max(8, at.y / ratio - this.tip.offsetHeight - 12)}px`;
    }, 50);
  }

  async #document(point) {
    const place = this.places[point];
    if (!this.known.has(place)) {
      try {
        const told = await get(`map/${place}`, {}, this.newest.begin());
        this.known.set(place, told.documents[0]);
      } catch {
        return null; // deleted meanwhile, or the pointer is elsewhere by now
      }
    }
    return this.known.get(place);
  }
}
