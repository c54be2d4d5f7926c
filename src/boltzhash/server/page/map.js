// The map: one point per document, regions with names, and beside it what one has looked for or pointed at.

import { Newest, Typed, get, post } from "./api.js";
import { Chart } from "./chart.js";
import { isDark, regionColours, rgb, valueColours } from "./colours.js";
import { announce, counted, element, failure, notice, number, sentence, shownId, skeleton } from "./dom.js";
import { Labels } from "./labels.js";
import { documentShown, hitsFound, named, overview, regionHead } from "./map_panel.js";
import { Points, STRENGTHS } from "./points.js";
import { remember } from "./state.js";

const MOST_LIT = 100;
const MOST_WITHIN = 40; // a region, for which the service looks through many more
const KEPT_CLEAR = 20; // of them, of names
const CLEAR = 10; // pixels around each
let live = null; // the map that is shown

export function mapView(main, state, { stats }) {
  const leave = () => live?.asking.abandon();
  if (live && main.contains(live.body) && live.told.field === (state.field || null)) {
    live.follow(state); // Back and Forward: the map itself stays
    return leave;
  }
  const body = element("div", {}, skeleton("for-map"));
  main.replaceChildren(element("h1", { class: "unseen" }, "Map"), body);
  start(body, state, stats);
  return leave;
}

async function start(body, state, stats) {
  try {
    const { fields } = await get("fields");
    if (!(state.field in fields)) state.field = "";
    const told = await get("map", { field: state.field });
    if (!told.made) {
      body.replaceChildren(notice("No map yet", ...commands(told.message)));
      return;
    }
    live = new MapPage(body, told, fields, state, stats);
    live.begin();
  } catch (error) {
    body.replaceChildren(failure(error, () => start(body, state, stats)));
  }
}

// Text in backquotes is something to type.
function commands(message) {
  const parts = message.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
  return [element("p", {}, ...parts)];
}

class MapPage {
  constructor(body, told, fields, state, stats) {
    Object.assign(this, { body, told, fields, state, stats });
    this.points = new Points(told.x, told.y);
    this.pointOf = new Map(told.numbers.map((number, i) => [number, i]));
    this.hidden = new Set(); // colours that the legend hides
    this.found = null;
    this.pointed = null; // a document or the members of a region that something on the page points at
    this.known = new Map();
    this.asking = new Typed(({ asked }, signal) => post("map/search", asked, signal), (...told) => this.#answered(...told));
    this.reading = new Newest();
    this.hovering = new Newest();
    this.#build();
  }

  #build() {
    const { told } = this;
    const dots = element("canvas", {
      class: "dots", tabindex: "0", role: "application", "aria-label":
        `Map of ${number(this.points.n)} documents. Arrow keys move, plus and minus zoom, Enter opens the document nearest to the centre.`,
    });
    const glow = element("canvas", { class: "glow", role: "img", "aria-label": "Where points lie dense" });
    const layer = element("div", { class: "labels", role: "group", "aria-label": "Regions in view" });
    this.tip = element("div", { class: "tip", hidden: true });
    this.controls = element("div", { class: "zoom" },
      element("button", { type: "button", "aria-label": "Zoom in", onclick: () => this.chart.zoom(1.6) }, "+"),
      element("button", { type: "button", "aria-label": "Zoom out", onclick: () => this.chart.zoom(1 / 1.6) }, "−"),
      element("button", { type: "button", onclick: () => this.chart.reset() }, "All"));
    const frame = element("div", { class: "map" }, glow, dots, layer, this.controls, this.tip);
    this.labels = new Labels(layer, told.regions, {
      onChosen: (region) => this.go({ region: region === this.state.region ? null : region, point: null }),
      onPointed: (region) => this.#pointAtRegion(region),
    });
    this.chart = new Chart({ frame, glow, dots }, this.points, this.labels, {
      hover: (point) => this.#hover(point),
      choose: (point) => {
        if (point >= 0) this.go({ point: told.numbers[point] });
      },
      settle: (at) => {
        this.state.at = at;
        remember(this.state);
      },
      taken: () => [within(this.controls, frame), ...this.#hitBoxes()],
    });
    this.panel = element("aside", { class: "beside", "aria-label": "Beside the map" });
    this.input = element("input", {
      id: "q", type: "search", name: "q", autocomplete: "off", autocapitalize: "off", spellcheck: "false", maxlength: "100000",
      "aria-label": "Search on the map", placeholder: "Search on the map", oninput: () => this.#typed(),
    });
    this.within = element("span", { class: "within" });
    this.legend = element("div", { class: "legend", role: "group", "aria-label": "Show only" });
    this.body.replaceChildren(
      element("form", { class: "toolbar map-search", role: "search", onsubmit: (event) => {
        event.preventDefault();
      } }, this.input, this.within, this.#fieldChoice()),
      element("div", { class: "atlas" }, frame, this.panel),
      this.legend,
      element("p", { class: "hint" }, "Drag to move, scroll to zoom. Click a point to read it, a name to search within it."));
  }

  #fieldChoice() {
    const names = Object.keys(this.fields);
    if (names.length === 0) return null;
    const select = element("select", { onchange: () => {
      this.state.field = select.value;
      remember(this.state);
      start(this.body, this.state, this.stats);
    } },
    element("option", { value: "" }, "region"),
    ...names.map((name) => element("option", { value: name, selected: name === this.told.field }, name)));
    return element("label", { class: "colour-by" }, "Colour by ", select);
  }

  begin() {
    this.#colour();
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => {
      if (!this.body.isConnected) return scheme.removeEventListener("change", recolour);
      this.#colour();
      this.chart.draw();
      return undefined;
    };
    scheme.addEventListener("change", recolour);
    this.chart.begin(this.state.at);
    this.#show();
    announce(`Map of ${counted(this.points.n, "document", "documents")}`);
  }

  // Go on to another state of the map; Back returns.
  go(changes) {
    Object.assign(this.state, changes);
    remember(this.state, { anew: true });
    this.#show();
    if (matchMedia("(max-width: 60rem)").matches) this.panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
  }

  follow(state) {
    const moved = state.at !== this.state.at;
    this.state = state;
    if (moved) this.chart.look(state.at);
    this.#show();
  }

  #colour() {
    const { told } = this;
    if (told.field) {
      this.points.colours.set(told.colours);
      this.chart.palette = valueColours(told);
      this.legend.replaceChildren(...this.#keys());
    } else {
      const { palette, of } = regionColours(told);
      this.points.colours.set(of);
      this.chart.palette = palette;
    }
    const style = getComputedStyle(document.documentElement);
    this.chart.paper = rgb(style.getPropertyValue("--raised"));
    this.chart.glowing = isDark() ? 0.34 : 0.3;
  }

  #keys() {
    const used = new Set(this.told.colours);
    const buttons = this.told.values.map((value, i) => {
      if (!used.has(i)) return null;
      const swatch = element("span", { class: "swatch" });
      swatch.style.backgroundColor = `rgb(${this.chart.palette[i].join(" ")})`;
      return element("button", { type: "button", class: "key", "aria-pressed": String(this.hidden.size > 0 && !this.hidden.has(i)), onclick: (event) => {
        const alone = this.hidden.size > 0 && !this.hidden.has(i);
        this.hidden = alone ? new Set() : new Set(used);
        this.hidden.delete(i);
        buttons.forEach((other) => other?.setAttribute("aria-pressed", "false"));
        event.currentTarget.setAttribute("aria-pressed", String(!alone));
        this.#strengthen();
      } }, swatch, value);
    });
    return buttons.filter(Boolean);
  }

  // The state as search, panel and points show it.
  #show() {
    const { state } = this;
    if (state.region !== null && !(state.region in this.told.regions)) state.region = null;
    if (this.input.value !== state.q) this.input.value = state.q;
    this.labels.mark(state.region);
    this.within.replaceChildren(...this.#conditions());
    this.#search();
    if (state.point !== null) this.#read(state.point);
  }

  // What the search is limited to, each with a way to lift it.
  #conditions() {
    const chip = (label, text, lift) => element("button", { type: "button", class: "chip", "aria-label": `${label}: lift`, onclick: lift }, text, " ×");
    const chips = [];
    const { region, where } = this.state;
    if (region !== null) {
      const name = named(this.told.regions[region]);
      chips.push(chip(`Within ${name}`, `within ${name}`, () => this.go({ region: null, point: null })));
    }
    for (const [name, value] of Object.entries(where)) {
      const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
      const { [name]: _, ...rest } = where;
      chips.push(chip(`Filter ${name} ${shown}`, `${name} ${shown}`, () => this.go({ where: rest })));
    }
    return chips;
  }

  #typed() {
    Object.assign(this.state, { q: this.input.value, like: null, point: null });
    remember(this.state);
    this.#search();
  }

  #search() {
    const { q, like, region, where, by } = this.state;
    const isAsked = like !== null || q.trim() !== "";
    if (!isAsked && region === null) {
      this.asking.abandon();
      this.headed = null;
      this.found = null;
      this.#list(overview(this.told, this.#acts()));
      return;
    }
    const asked = { k: region === null ? MOST_LIT : MOST_WITHIN, region, where };
    if (like !== null) asked.id = like;
    else if (isAsked) asked.text = q;
    if (isAsked && by !== "both") asked.by = by;
    if (region !== null && region !== this.headed) { // what is known of it at once
      this.#list([...regionHead(this.told, region, this.#acts()), skeleton("for-lines", 3)]);
    }
    this.headed = region;
    this.asking.put({ asked, isAsked });
  }

  #answered({ asked: { region }, isAsked }, found, error) {
    this.found = error === null && isAsked ? found : null;
    const head = region === null ? [] : regionHead(this.told, region, this.#acts());
    if (error === null) {
      const title = this.#title(found, isAsked);
      this.#list([...head, ...hitsFound(found, title, this.#acts())]);
      if (isAsked) announce(title);
    } else {
      const said = error.status === 422 ? element("p", { class: "nothing" }, sentence(error.message)) : failure(error, () => this.#search());
      this.#list([...head, said]);
    }
  }

  #title({ hits }, isAsked) {
    if (!isAsked) return "Most typical of it";
    if (hits.length === 0) return "Nothing found";
    const most = this.state.region === null ? MOST_LIT : MOST_WITHIN;
    const many = hits.length === most ? `The best ${most} documents` : counted(hits.length, "document", "documents");
    return this.state.like === null ? many : `${many} like ${shownId(this.state.like)}`;
  }

  // A list is kept while one of its documents is read.
  #list(children) {
    this.listed = children.filter(Boolean);
    if (this.state.point === null) {
      this.reading.begin();
      this.panel.replaceChildren(...this.listed);
    }
    this.#strengthen();
  }

  async #read(number) {
    const point = this.pointOf.get(number);
    this.#strengthen();
    try {
      const found = await this.#document(number, this.reading.begin());
      if (this.state.point !== number) return;
      const regionOf = point === undefined ? -1 : this.told.region_of[point];
      this.panel.replaceChildren(...documentShown(found, { ...this.#acts(), regionOf: regionOf < 0 ? null : regionOf }).filter(Boolean));
      this.panel.scrollTop = 0;
      announce(`Document ${found.title}`);
      if (point !== undefined) this.chart.reveal(point);
    } catch (error) {
      if (error.name !== "AbortError") this.panel.replaceChildren(failure(error, () => this.#read(number)));
    }
  }

  #acts() {
    return {
      chooseRegion: (region) => this.go({ region, point: null, like: null }),
      zoomTo: (region) => this.chart.lookAt(this.told.regions[region]),
      like: (id) => this.go({ like: id, q: "", region: null, point: null }),
      close: () => {
        this.go({ point: null });
        this.input.focus({ preventScroll: true });
      },
      open: (hit) => {
        if (hit.number !== null) this.go({ point: hit.number });
        else this.#readAside(hit.id);
      },
      pointAt: (number) => {
        this.pointed = number === null ? null : { number };
        this.#strengthen();
      },
      pointAtRegion: (region) => this.#pointAtRegion(region),
    };
  }

  // A document without a point.
  async #readAside(id) {
    const { documents } = await post("documents/get", { ids: [id] });
    if (documents.length) this.panel.replaceChildren(...documentShown(documents[0], { ...this.#acts(), regionOf: null }).filter(Boolean));
  }

  #pointAtRegion(region) {
    this.pointed = region === null ? null : { region };
    this.#strengthen();
  }

  // Where the best hits are: no name may cover them.
  #hitBoxes() {
    const points = (this.found?.hits ?? []).slice(0, KEPT_CLEAR).map(({ number }) => this.pointOf.get(number));
    return points.filter((point) => point !== undefined).map((point) => {
      const { x, y } = this.chart.where(point);
      return { left: x - CLEAR, top: y - CLEAR, width: 2 * CLEAR, height: 2 * CLEAR };
    });
  }

  // How strongly each point is drawn: what is hidden or outside faint, hits lit, the chosen one most.
  #strengthen() {
    const { strengths, colours, n } = this.points;
    const region = this.pointed?.region ?? this.state.region;
    this.labels.layer.classList.toggle("behind", this.found !== null);
    const inside = region === null || region === undefined ? null : this.#isInside(region);
    const base = this.found && this.pointed?.region === undefined ? STRENGTHS.FAINT : STRENGTHS.PLAIN;
    for (let i = 0; i < n; i++) {
      const isOut = this.hidden.has(colours[i]) || (inside !== null && !inside[this.told.region_of[i]]);
      strengths[i] = isOut ? STRENGTHS.FAINT : base;
    }
    for (const { number } of this.found?.hits ?? []) {
      const point = this.pointOf.get(number);
      if (point !== undefined) strengths[point] = STRENGTHS.LIT;
    }
    for (const number of [this.state.point, this.pointed?.number]) {
      const point = this.pointOf.get(number);
      if (point !== undefined) strengths[point] = STRENGTHS.CHOSEN;
    }
    this.chart.draw();
  }

  // For each region whether it is this one or lies in it.
  #isInside(chosen) {
    const inside = [];
    this.told.regions.forEach(({ parent }, i) => inside.push(i === chosen || (parent !== null && inside[parent])));
    return inside;
  }

  #hover(point) {
    clearTimeout(this.waiting);
    this.chart.canvas.style.cursor = point < 0 ? "grab" : "pointer";
    if (point < 0) {
      this.tip.hidden = true;
      return;
    }
    this.waiting = setTimeout(async () => {
      let found;
      try {
        found = await this.#document(this.told.numbers[point], this.hovering.begin());
      } catch {
        return; // deleted meanwhile, or the pointer is elsewhere by now
      }
      this.tip.replaceChildren(element("b", { dir: "auto" }, found.title), element("p", { dir: "auto" }, beginning(found)));
      this.tip.hidden = false;
      const { x, y } = this.chart.where(point);
      const { clientWidth, clientHeight } = this.chart.canvas;
      this.tip.style.left = `${Math.max(8, Math.min(x + 14, clientWidth - this.tip.offsetWidth - 8))}px`;
      const fits = y + 18 + this.tip.offsetHeight < clientHeight;
      this.tip.style.top = `${fits ? y + 18 : Math.max(8, y - this.tip.offsetHeight - 12)}px`;
    }, 30);
  }

  async #document(number, signal) {
    if (!this.known.has(number)) {
      const told = await get(`map/${number}`, {}, signal);
      this.known.set(number, told.documents[0]);
    }
    return this.known.get(number);
  }
}

// A box of the page, from the corner of the map.
function within(part, frame) {
  const [own, all] = [part.getBoundingClientRect(), frame.getBoundingClientRect()];
  return { left: own.left - all.left, top: own.top - all.top, width: own.width, height: own.height };
}

// The first words of a document, without a first paragraph that only repeats the title.
function beginning({ title, text }) {
  const words = (some) => some.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.join(" ");
  const [first, ...rest] = text.split("\n\n");
  const told = (rest.length && words(first) === words(title) ? rest.join(" ") : text).replace(/\s+/g, " ").trim();
  return told.length <= 160 ? told : `${told.slice(0, 160).replace(/\s+\S*$/, "")} …`;
}
