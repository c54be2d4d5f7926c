// The bits: what each stands for, how often it is on, and which ones go together.

import { Newest, get } from "./api.js";
import { announce, element, failure } from "./dom.js";
import { hitList } from "./hits.js";
import { remember } from "./state.js";

export function bitsView(main, state, { go }) {
  const body = element("div", {}, element("p", { class: "waiting" }, "Reading the bits…"));
  main.replaceChildren(element("h1", { class: "unseen" }, "Bits"), body);
  start(body, state, go);
}

async function start(body, state, go) {
  try {
    show(body, await get("bits"), state, go);
  } catch (error) {
    body.replaceChildren(failure(error, () => start(body, state, go)));
  }
}

function show(body, told, state, go) {
  const details = element("section", { class: "bit-details", "aria-label": "The chosen bit" });
  const newest = new Newest();
  const choose = async (bit, { scroll = true } = {}) => {
    state.bit = bit;
    remember(state);
    table.mark(bit);
    const signal = newest.begin();
    details.replaceChildren(element("p", { class: "waiting" }, `Reading bit ${bit}…`));
    try {
      const found = await get(`bits/${bit}`, {}, signal);
      details.replaceChildren(...bitDetails(found, choose, go));
      announce(`Bit ${bit}: ${found.documents.length} documents`);
      if (scroll) details.scrollIntoView({ block: "nearest", behavior: "smooth" });
    } catch (error) {
      if (error.name !== "AbortError") details.replaceChildren(failure(error, () => choose(bit)));
    }
  };
  const table = bitTable(told, choose);
  const source = told.words_from === "decoder"
    ? "The words are those that the model's decoder makes likelier."
    : "The words are those that tell documents with the bit from those without it.";
  body.replaceChildren(
    element("p", { class: "lead" },
      `${told.n_bits} bits. Each splits the collection in two: the words of one side and those of the other. ${source}`),
    element("div", { class: "bits" }, heatMap(told, state, choose), element("div", {}, details, table.element)),
  );
  if (state.bit !== null && state.bit < told.n_bits) choose(state.bit, { scroll: false });
}

function bitTable(told, choose) {
  const rows = told.bits.map((bit) => {
    const bar = element("span", { class: "share", "aria-hidden": "true" }, element("span", {}));
    bar.firstChild.style.width = `${100 * bit.share_on}%`;
    return element("tr", {},
      element("th", { scope: "row" }, element("button", { type: "button", class: "bit-name", onclick: () => choose(bit.bit) }, String(bit.bit))),
      element("td", { class: "on-share" }, bar, `${Math.round(100 * bit.share_on)}%`),
      element("td", {}, bit.on.slice(0, 7).join(" ")),
      element("td", { class: "off" }, bit.off.slice(0, 7).join(" ")));
  });
  const made = element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table of bits" },
    element("table", {},
      element("thead", {}, element("tr", {},
        ...["Bit", "On", "When it is on", "When it is off"].map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, ...rows)));
  return {
    element: made,
    mark(bit) {
      rows.forEach((row, i) => row.classList.toggle("chosen", i === bit));
    },
  };
}

function bitDetails(found, choose, go) {
  const { bit } = found;
  return [
    element("h2", {}, `Bit ${bit.bit}`),
    element("p", {}, "On in ", element("b", {}, `${Math.round(100 * bit.share_on)}%`), " of the documents",
      bit.on.length ? ": " : ".", element("b", {}, bit.on.join(" "))),
    bit.off.length ? element("p", { class: "off" }, "Off: ", bit.off.join(" ")) : null,
    found.correlated.length
      ? element("p", { class: "goes-with" }, "Goes with ", ...found.correlated.map(([other, value]) =>
          element("button", { type: "button", class: "chip", onclick: () => choose(other) },
            `bit ${other} `, element("span", { class: "fact-name" }, value.toFixed(2).replace("-", "−")))))
      : null,
    element("h3", {}, found.documents.length ? "Documents that have it on" : "No document has it on"),
    hitList(found.documents, { query: null, code: null, onBit: choose,
      onLike: (id) => go({ view: "search", like: id }) }),
  ].filter(Boolean);
}

function heatMap(told, state, choose) {
  const matrices = { couplings: told.couplings, correlations: told.correlations };
  const names = Object.keys(matrices).filter((name) => matrices[name]);
  if (names.length === 0) {
    return element("p", { class: "hint" }, `A heat map of ${told.n_bits} bits would be too large to see.`);
  }
  if (!names.includes(state.matrix)) state.matrix = names[0];
  const canvas = element("canvas", { class: "heat", role: "img" });
  const under = element("p", { class: "hint", "aria-hidden": "true" });
  const say = {
    couplings: "Couplings learned by the Boltzmann posterior: the mean of Σ over documents.",
    correlations: "Correlation of the bits over the codes of the documents.",
  };
  const ends = [element("span", {}), element("span", {})];
  const draw = () => {
    const largest = drawMatrix(canvas, matrices[state.matrix]).toPrecision(2);
    ends[0].textContent = `−${largest} apart`;
    ends[1].textContent = `together +${largest}`;
    under.textContent = say[state.matrix];
    canvas.setAttribute("aria-label", `${say[state.matrix]} ${strongest(matrices[state.matrix])}`);
  };
  const pair = (event) => {
    const box = canvas.getBoundingClientRect();
    const cut = (value) => Math.min(told.n_bits - 1, Math.max(0, Math.floor(value * told.n_bits)));
    return [cut((event.clientY - box.top) / box.height), cut((event.clientX - box.left) / box.width)];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [one, other] = pair(event);
    const value = matrices[state.matrix][one][other];
    const named = (bit) => `bit ${bit} (${told.bits[bit].on.slice(0, 3).join(" ")})`;
    under.textContent = one === other
      ? named(one)
      : `${named(one)} and ${named(other)}: ${value.toFixed(3).replace("-", "−")}`;
  });
  canvas.addEventListener("pointerleave", () => { under.textContent = say[state.matrix]; });
  canvas.addEventListener("click", (event) => choose(pair(event)[0]));
  const choice = names.length > 1
    ? element("div", { class: "choice", role: "group", "aria-label": "What the heat map shows" },
        ...names.map((name) => element("button", { type: "button", "aria-pressed": String(name === state.matrix), onclick: (event) => {
          state.matrix = name;
          remember(state);
          for (const button of event.currentTarget.parentNode.children) {
            button.setAttribute("aria-pressed", String(button === event.currentTarget));
          }
          draw();
        } }, name === "couplings" ? "Learned couplings" : "Correlations")))
    : null;
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return element("figure", { class: "heat-frame" }, choice,
    element("div", { class: "heat-grid" }, axis("heat-top", told.n_bits), axis("heat-left", told.n_bits), canvas),
    element("div", { class: "heat-scale", "aria-hidden": "true" }, ends[0], element("span", { class: "ramp" }), ends[1]),
    under);
}

// The numbers of some bits, evenly spaced along a side.
function axis(name, n) {
  return element("div", { class: name, "aria-hidden": "true" }, ...[0, 1, 2, 3].map((part) => element("span", {}, String((part * n) / 4))));
}

function strongest(matrix) {
  let best = [0, 0, 0];
  matrix.forEach((row, i) => row.forEach((value, j) => {
    if (i < j && Math.abs(value) > Math.abs(best[2])) best = [i, j, value];
  }));
  return `The strongest is between bits ${best[0]} and ${best[1]}: ${best[2].toFixed(2)}.`;
}

// One square per pair, blue apart, orange together, relative to the largest value off the diagonal.
function drawMatrix(canvas, matrix) {
  const n = matrix.length;
  canvas.width = n;
  canvas.height = n;
  let largest = 1e-9;
  matrix.forEach((row, i) => row.forEach((value, j) => {
    if (i !== j) largest = Math.max(largest, Math.abs(value));
  }));
  const context = canvas.getContext("2d");
  const image = context.createImageData(n, n);
  const style = getComputedStyle(document.documentElement);
  const [ground, together, apart] = ["--ground", "--together", "--apart"].map((name) => parse(style.getPropertyValue(name)));
  matrix.forEach((row, i) => row.forEach((value, j) => {
    const strength = i === j ? 0 : Math.min(1, Math.abs(value) / largest) ** 0.75;
    const target = value > 0 ? together : apart;
    const at = (i * n + j) * 4;
    for (let c = 0; c < 3; c++) image.data[at + c] = ground[c] + (target[c] - ground[c]) * strength;
    image.data[at + 3] = 255;
  }));
  context.putImageData(image, 0, 0);
  return largest;
}

function parse(hex) {
  const value = Number.parseInt(hex.trim().slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
