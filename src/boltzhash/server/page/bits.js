// Topics: what each bit tells apart, in words, and which bits go together.

import { Newest, get } from "./api.js";
import { rgb } from "./colours.js";
import { announce, counted, element, failure, skeleton } from "./dom.js";
import { hitList } from "./hits.js";
import { remember } from "./state.js";

const PAIRS = 5; // of each kind
const RELATED = 8;
const FIRST = 4; // documents of a side that are shown at once

export function bitsView(main, state, { go }) {
  const body = element("div", {}, skeleton("for-lines", 5));
  main.replaceChildren(element("h1", { class: "unseen" }, "Topics"), body);
  start(body, state, go);
}

async function start(body, state, go) {
  try {
    const told = await get("bits");
    new TopicsPage(body, told, state, go).begin();
  } catch (error) {
    body.replaceChildren(failure(error, () => start(body, state, go)));
  }
}

class TopicsPage {
  constructor(body, told, state, go) {
    Object.assign(this, { body, told, state, go });
    this.newest = new Newest();
    this.order = told.groups.flatMap((group) => group.bits);
    this.rows = new Map();
    this.opened = null;
  }

  begin() {
    const { told, state } = this;
    const isNarrow = matchMedia("(max-width: 60rem)").matches;
    const groups = told.groups.map((group, i) => this.#group(group, !isNarrow || i === 0));
    this.body.replaceChildren(
      element("p", { class: "lead" },
        `Each of the ${told.n_bits} bits of a code divides the collection in two. Here they stand in groups that go together, named by the words that set one side apart from the other.`),
      element("div", { class: "topics-view" }, this.#heatMap(), element("div", {}, ...groups)));
    if (state.bit !== null && this.rows.has(state.bit)) this.choose(state.bit, { scroll: false });
  }

  // The two sides of a bit as its group sees them: what its documents have in common comes first.
  sides(bit) {
    const { on, off, reversed, share_on: share } = this.told.bits[bit];
    return reversed ? { front: off, back: on, share: 1 - share } : { front: on, back: off, share };
  }

  name(bit, n = 3) {
    return this.sides(bit).front.slice(0, n).join(", ") || `bit ${bit}`;
  }

  // How two bits go together, seen from their front sides.
  together(matrix, one, other) {
    const turned = this.told.bits[one].reversed !== this.told.bits[other].reversed;
    return turned ? -matrix[one][other] : matrix[one][other];
  }

  #group(group, open) {
    const list = element("ul", { class: "topic-rows" }, ...group.bits.map((bit) => this.#row(bit)));
    const words = group.words.slice(0, 4).join(", ") || `bits ${group.bits.join(", ")}`;
    return element("details", { class: "topic-group", open },
      element("summary", {},
        element("h2", {}, words),
        element("span", { class: "soft" }, `${counted(group.bits.length, "bit", "bits")}${group.against.length ? `, against ${group.against.slice(0, 3).join(", ")}` : ""}`)),
      list);
  }

  #row(bit) {
    const { front, back, share } = this.sides(bit);
    const bar = element("span", { class: "share", "aria-hidden": "true" }, element("span", {}));
    bar.firstChild.style.width = `${100 * share}%`;
    const details = element("div", { class: "topic-details", hidden: true });
    const button = element("button", { type: "button", "aria-expanded": "false", onclick: () => {
      if (this.opened === bit) this.close();
      else this.choose(bit);
    } },
    element("span", { class: "side" }, front.slice(0, 4).join(", ") || "no words"),
    element("span", { class: "parts" }, bar, element("span", { class: "unseen" }, `${Math.round(100 * share)} % of the documents, against `)),
    element("span", { class: "side against" }, back.slice(0, 4).join(", ") || "no words"),
    element("span", { class: "bit-number" }, `bit ${bit}`));
    const row = element("li", {}, button, details);
    this.rows.set(bit, { row, button, details });
    return row;
  }

  close() {
    const { button, details } = this.rows.get(this.opened);
    button.setAttribute("aria-expanded", "false");
    details.hidden = true;
    this.opened = null;
    this.state.bit = null;
    remember(this.state);
  }

  async choose(bit, { scroll = true } = {}) {
    if (this.opened !== null) this.close();
    const { row, button, details } = this.rows.get(bit);
    this.opened = bit;
    this.state.bit = bit;
    remember(this.state);
    row.closest("details").open = true;
    button.setAttribute("aria-expanded", "true");
    details.hidden = false;
    const signal = this.newest.begin();
    if (!details.hasChildNodes()) details.append(...this.#details(bit));
    announce(`${this.name(bit)}, against ${this.sides(bit).back.slice(0, 3).join(", ")}`);
    if (scroll) row.scrollIntoView({ block: "nearest", behavior: "smooth" });
    await this.#fill(bit, details, signal);
  }

  // What is known of a bit at once: its words, and what goes with it.
  #details(bit) {
    const { front, back, share } = this.sides(bit);
    const turned = this.told.bits[bit].reversed;
    return [
      element("div", { class: "related" }, ...(this.told.correlations ? this.#related(bit, strongest(this.told.correlations[bit], bit)) : [])),
      element("div", { class: "both-sides" },
        this.#side(`${Math.round(100 * share)} % of the documents`, front, turned ? "off" : "on"),
        this.#side(`Against: ${Math.round(100 * (1 - share))} %`, back, turned ? "on" : "off")),
    ];
  }

  #side(title, words, state) {
    return element("section", {},
      element("h3", {}, title, element("span", { class: "soft" }, ` bit ${state}`)),
      element("p", {}, words.join(", ")),
      element("div", { class: "surest" }, skeleton("for-lines", 2)));
  }

  // The documents of both sides.
  async #fill(bit, details, signal) {
    const places = [...details.querySelectorAll(".surest")];
    if (!places[0].querySelector(".skeletons")) return; // they are there
    try {
      const found = await get(`bits/${bit}`, {}, signal);
      if (!this.told.correlations) details.querySelector(".related").replaceChildren(...this.#related(bit, found.correlated));
      const sides = found.bit.reversed ? [found.against, found.documents] : [found.documents, found.against];
      places.forEach((place, i) => place.replaceChildren(...this.#surest(sides[i])));
    } catch (error) {
      if (error.name !== "AbortError") {
        places[0].replaceChildren(failure(error, () => {
          places[0].replaceChildren(skeleton("for-lines", 2));
          this.#fill(bit, details, this.newest.begin());
        }));
      }
    }
  }

  #surest(documents) {
    const shown = (some) => hitList(some, { query: null, code: null, onBit: (bit) => this.choose(bit),
      onLike: (id) => this.go({ view: "search", like: id }) });
    const list = element("div", {}, shown(documents.slice(0, FIRST)));
    const more = documents.length > FIRST
      ? element("button", { type: "button", class: "quiet", onclick: () => {
          list.replaceChildren(shown(documents));
          more.remove();
        } }, `${documents.length - FIRST} more`)
      : null;
    return [element("h4", {}, documents.length ? "Surest of it" : "No document"), list, more].filter(Boolean);
  }

  // Bits that go with one or against it, as lines of chips.
  #related(bit, correlated) {
    const told = correlated.map(([other, value]) => {
      const turned = this.told.bits[bit].reversed !== this.told.bits[other].reversed;
      return { other, value: turned ? -value : value };
    });
    const chips = (some) => some.map(({ other, value }) =>
      element("button", { type: "button", class: "chip", onclick: () => this.choose(other) }, `${this.name(other)} `, element("span", { class: "fact-name" }, signed(value))));
    const along = told.filter(({ value }) => value > 0);
    const against = told.filter(({ value }) => value < 0);
    return [
      along.length ? element("p", { class: "goes-with" }, "Goes with ", ...chips(along)) : null,
      against.length ? element("p", { class: "goes-with" }, "Goes against ", ...chips(against)) : null,
    ].filter(Boolean);
  }

  // Which bits go together, in the order of the groups.
  #heatMap() {
    const { told, state } = this;
    const matrices = { correlations: told.correlations, couplings: told.couplings };
    const names = Object.keys(matrices).filter((name) => matrices[name]);
    if (names.length === 0) {
      return element("p", { class: "hint" }, `A heat map of ${told.n_bits} bits would be too large to see.`);
    }
    if (!names.includes(state.matrix)) state.matrix = names[0];
    const canvas = element("canvas", { class: "heat", role: "img" });
    const under = element("p", { class: "hint", "aria-hidden": "true" });
    const [along, against] = [element("ol", { class: "pairs" }), element("ol", { class: "pairs" })];
    const ends = [element("span", {}), element("span", {})];
    const say = {
      couplings: "Learned by the Boltzmann posterior: the mean of Σ over documents.",
      correlations: "Correlation of the bits over the codes of the documents.",
    };
    const draw = () => {
      const matrix = matrices[state.matrix];
      const largest = this.#drawMatrix(canvas, matrix).toPrecision(2);
      ends[0].textContent = `−${largest} against`;
      ends[1].textContent = `together +${largest}`;
      under.textContent = say[state.matrix];
      canvas.setAttribute("aria-label", `${say[state.matrix]} The strongest pairs are listed below.`);
      const pairs = this.#pairs(matrix);
      along.replaceChildren(...pairs.filter(({ value }) => value > 0).slice(0, PAIRS).map((pair) => this.#pair(pair)));
      against.replaceChildren(...pairs.filter(({ value }) => value < 0).slice(0, PAIRS).map((pair) => this.#pair(pair)));
    };
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const cut = (value) => this.order[Math.min(told.n_bits - 1, Math.max(0, Math.floor(value * told.n_bits)))];
      return [cut((event.clientY - box.top) / box.height), cut((event.clientX - box.left) / box.width)];
    };
    canvas.addEventListener("pointermove", (event) => {
      const [one, other] = at(event);
      const value = this.together(matrices[state.matrix], one, other);
      under.textContent = one === other ? this.name(one) : `${this.name(one)} ${value < 0 ? "against" : "with"} ${this.name(other)}: ${signed(value)}`;
    });
    canvas.addEventListener("pointerleave", () => { under.textContent = say[state.matrix]; });
    canvas.addEventListener("click", (event) => this.choose(at(event)[0]));
    draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      if (canvas.isConnected) draw();
    });
    return element("figure", { class: "heat-frame" }, this.#matrixChoice(names, draw), canvas,
      element("div", { class: "heat-scale", "aria-hidden": "true" }, ends[0], element("span", { class: "ramp" }), ends[1]),
      under,
      element("h2", {}, "Go together"), along,
      element("h2", {}, "Go against each other"), against);
  }

  #matrixChoice(names, draw) {
    if (names.length < 2) return null;
    return element("div", { class: "choice", role: "group", "aria-label": "What the heat map shows" },
      ...names.map((name) => element("button", { type: "button", "aria-pressed": String(name === this.state.matrix), onclick: (event) => {
        this.state.matrix = name;
        remember(this.state);
        for (const button of event.currentTarget.parentNode.children) {
          button.setAttribute("aria-pressed", String(button === event.currentTarget));
        }
        draw();
      } }, name === "couplings" ? "Learned couplings" : "Correlations")));
  }

  // All pairs, the strongest first.
  #pairs(matrix) {
    const pairs = [];
    matrix.forEach((row, one) => row.forEach((_, other) => {
      if (one < other) pairs.push({ one, other, value: this.together(matrix, one, other) });
    }));
    return pairs.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  }

  #pair({ one, other, value }) {
    const bit = (number) => element("button", { type: "button", class: "quiet", onclick: () => this.choose(number) }, this.name(number));
    return element("li", {}, bit(one), element("span", {}, value < 0 ? " against " : " with "), bit(other), " ", element("span", { class: "value" }, signed(value)));
  }

  // One square per pair, blue against, orange together, relative to the largest value off the diagonal.
  #drawMatrix(canvas, matrix) {
    const n = this.order.length;
    const cell = Math.max(1, Math.floor(768 / n));
    canvas.width = n * cell;
    canvas.height = n * cell;
    let largest = 1e-9;
    matrix.forEach((row, i) => row.forEach((value, j) => {
      if (i !== j) largest = Math.max(largest, Math.abs(value));
    }));
    const context = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const [ground, with_, against, paper] = ["--ground", "--together", "--apart", "--paper"].map((name) => rgb(style.getPropertyValue(name)));
    this.order.forEach((one, row) => this.order.forEach((other, column) => {
      const value = one === other ? 0 : this.together(matrix, one, other);
      const strength = Math.min(1, Math.abs(value) / largest) ** 0.75;
      const target = value > 0 ? with_ : against;
      context.fillStyle = `rgb(${ground.map((base, c) => Math.round(base + (target[c] - base) * strength)).join(" ")})`;
      context.fillRect(column * cell, row * cell, cell, cell);
    }));
    context.fillStyle = `rgb(${paper.join(" ")})`;
    let edge = 0;
    for (const { bits } of this.told.groups.slice(0, -1)) { // a line between groups
      edge += bits.length * cell;
      context.fillRect(edge - 1, 0, 3, canvas.height);
      context.fillRect(0, edge - 1, canvas.width, 3);
    }
    return largest;
  }
}

// The bits that are correlated most strongly with one.
function strongest(row, bit) {
  return row.map((value, other) => [other, value]).filter(([other, value]) => other !== bit && value !== 0)
    .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, RELATED);
}

function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
}
