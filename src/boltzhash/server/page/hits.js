// A list of hits: what each says, why it is one, and where it leads.

import { post } from "./api.js";
import { barcode } from "./barcode.js";
import { announce, counted, element, failure, skeleton } from "./dom.js";
import { openReader } from "./reader.js";

// `query` is {text} or {id}.
export function hitList(hits, { query, code, onLike }) {
  const list = element("ol", { class: "hits" });
  const longest = Math.max(0, ...hits.map(({ parts }) => (parts ? parts.words + Math.max(0, parts.code) : 0)));
  hits.forEach((hit, i) => {
    const place = placeOf(hit, i + 1, longest);
    list.append(hitItem(hit, { place, query, code, onLike }));
  });
  list.addEventListener("keydown", (event) => moveWithKeys(event, list));
  return list;
}

// Its rank, and under it what gave it that rank: the parts of its score, or its distance.
function placeOf(hit, rank, longest) {
  return element("div", { class: "place" },
    element("span", { class: "rank" }, String(rank)),
    hit.score === null
      ? element("span", { class: "unit" }, counted(hit.distance, "bit", "bits"), element("span", { class: "unseen" }, " away"))
      : scoreBar(hit, longest));
}

// Words and code as one bar, as long as the score; what a code that disagrees takes away is shown hollow.
function scoreBar(hit, longest) {
  const { words, code } = hit.parts;
  const parts = code < 0
    ? { words: Math.max(0, words + code), taken: Math.min(words, -code) }
    : { words, code };
  const label = scored(hit);
  const bar = element("span", { class: "score", role: "img", "aria-label": label, title: label });
  for (const [name, value] of Object.entries(parts)) {
    const part = element("span", { class: name });
    part.style.width = longest > 0 ? `${(100 * value) / longest}%` : "0";
    bar.append(part);
  }
  return bar;
}

function scored({ score, parts }) {
  const said = (value) => Math.abs(value).toFixed(2);
  if (parts.code === 0) return `Score ${said(score)}, for its words`;
  return `Score ${score < 0 ? "−" : ""}${said(score)}: ${said(parts.words)} for its words, ${parts.code < 0 ? "less" : "and"} ${said(parts.code)} for its code`;
}

function hitItem(hit, { place, query, code, onLike }) {
  const item = element("li", { class: "hit" });
  const reasons = element("div", { class: "reasons", hidden: true });
  const why = element(
    "button",
    { type: "button", class: "quiet", "aria-expanded": "false", onclick: () => toggle(why, reasons, explain) },
    "Why?",
  );
  const explain = () => explanation(reasons, hit, query);
  const title = element(
    "button",
    { type: "button", class: "title", onclick: () => openReader(hit.id, { onLike, passage: hit.passage }) },
    hit.title,
  );
  title.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "m") onLike(hit.id);
    if (event.key === "w" && code !== null) why.click();
  });
  const parts = [
    place,
    element("h3", { dir: "auto" }, title),
    element("p", { class: "snippet", dir: "auto" }, ...hit.snippet.map(piece)),
    hit.reasons ? reason(hit.reasons) : null,
    element(
      "div",
      { class: "facts" },
      barcode(hit.code, code),
      ...facts(hit),
      element(
        "span",
        { class: "actions" },
        element("button", { type: "button", class: "quiet", onclick: () => onLike(hit.id) }, "More like this"),
        code !== null ? why : null,
      ),
    ),
    reasons,
  ];
  item.append(...parts.filter(Boolean));
  return item;
}

// Why it is a hit, in words: those that both have, and those of the document that are near in topic.
function reason({ shared, near }) {
  const said = (words, tag) => words.flatMap((word, i) => [i ? ", " : "", element(tag, {}, word)]);
  return element("p", { class: "reason" },
    ...(shared.length ? ["Both speak of ", ...said(shared, "b")] : ["No word in common"]),
    ...(near.length ? ["; near in topic: ", ...said(near, "bdi")] : []),
    ".");
}

function piece(part) {
  return part.marked ? element("mark", {}, part.text) : part.text;
}

function facts(hit) {
  return Object.entries(hit.metadata)
    .filter(([name, value]) => ["string", "number", "boolean"].includes(typeof value) && String(value) !== hit.title && String(value).length <= 40 && name !== "title")
    .slice(0, 4)
    .map(([name, value]) =>
      element("span", { class: "fact" }, element("span", { class: "fact-name" }, `${name} `), element("bdi", {}, String(value))),
    );
}

function toggle(button, region, fill) {
  const opens = region.hidden;
  region.hidden = !opens;
  button.setAttribute("aria-expanded", String(opens));
  if (opens && !region.hasChildNodes()) fill();
}

async function explanation(region, hit, query) {
  region.append(skeleton("for-lines", 2));
  try {
    const told = await post("explain", { query, id: hit.id, code: hit.code });
    region.replaceChildren(...reasons(told, hit));
    announce(`${told.bits.length - told.distance} of ${told.bits.length} bits agree`);
  } catch (error) {
    region.replaceChildren(failure(error, () => {
      region.replaceChildren();
      explanation(region, hit, query);
    }));
  }
}

function reasons(told, hit) {
  const inBoth = (bit) => bit.in_query.filter((word) => bit.in_document.includes(word)).length;
  const evidence = (bit) => 4 * inBoth(bit) + 2 * bit.in_query.length + bit.in_document.length;
  const agreeing = told.bits.filter((bit) => bit.agrees).sort((a, b) => evidence(b) - evidence(a));
  const differing = told.bits.filter((bit) => !bit.agrees).sort((a, b) => evidence(b) - evidence(a));
  const differ = `${told.distance} of ${counted(told.bits.length, "bit", "bits")} of its code differ.`;
  return [
    element("p", { class: "figures" }, hit.score === null ? differ : `${scored(hit)}. ${differ}`),
    bitTable(`${counted(agreeing.length, "bit agrees", "bits agree")}`, agreeing),
    differing.length ? bitTable(`${counted(differing.length, "bit differs", "bits differ")}`, differing) : null,
  ].filter(Boolean);
}

function bitTable(title, bits) {
  const rows = bits.map((bit, i) =>
    element(
      "li",
      { hidden: i >= 5 },
      element("span", { class: "bit-name" }, `bit ${bit.bit}`),
      element("span", { class: "bit-side" }, bit.on ? "on" : "off"),
      element("span", { class: "bit-words" }, ...words(bit)),
    ),
  );
  const more = rows.length > 5
    ? element("button", { type: "button", class: "quiet", onclick: () => {
        rows.forEach((row) => { row.hidden = false; });
        more.remove();
      } }, `and ${rows.length - 5} more`)
    : null;
  return element("section", {}, element("h4", {}, title), element("ul", { class: "bit-rows" }, ...rows), more);
}

function words(bit) {
  if (bit.words.length === 0) return ["no words"];
  const said = (word) => bit.in_document.includes(word) || bit.in_query.includes(word);
  const saidFirst = [...bit.words.filter(said), ...bit.words.filter((word) => !said(word))];
  return saidFirst.slice(0, 8).flatMap((word, i) => [i ? " " : "", said(word) ? element("mark", {}, word) : word]);
}

function moveWithKeys(event, list) {
  if (!event.target.classList.contains("title")) return;
  const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  const titles = [...list.querySelectorAll(".title")];
  const next = titles.indexOf(event.target) + step;
  event.preventDefault();
  if (next < 0) document.getElementById("q")?.focus();
  else titles[Math.min(next, titles.length - 1)].focus();
}
