// What stands beside the map: its regions, the hits of a search, or one document.

import { counted, element, failure, number } from "./dom.js";

const FIRST = 20; // hits that are listed at once

// `act` is what one can do: chooseRegion, choosePlace, like, close, pointAt.
export function overview(told, act) {
  const top = inside(told, null);
  const left = told.left_out ? ` ${counted(told.left_out, "has", "have")} no point.` : "";
  return [
    element("h2", {}, "What is here"),
    element("p", { class: "soft" }, `${counted(told.numbers.length, "document", "documents")}, each a point beside those about the same things. Names say what sets a region apart; zoom in for more of them.${left}`),
    top.length ? regionList(top, act) : null,
  ];
}

function regionList(regions, act) {
  return element("ul", { class: "region-list" }, ...regions.map(({ region, i }) =>
    element("li", {},
      element("button", {
        type: "button", onclick: () => act.chooseRegion(i), onpointerenter: () => act.pointAtRegion(i), onpointerleave: () => act.pointAtRegion(null),
      }, element("span", {}, region.words.slice(0, 4).join(", ")), element("span", { class: "count" }, number(region.size))))));
}

// A region: its words, what is in it, and a way out of it.
export function regionHead(told, chosen, act) {
  const region = told.regions[chosen];
  const parts = inside(told, chosen);
  const parent = namedParent(told, region);
  return [
    parent === null ? null : element("p", { class: "up" }, "in ",
      element("button", { type: "button", class: "quiet", onclick: () => act.chooseRegion(parent) }, named(told.regions[parent]))),
    element("h2", {}, named(region)),
    element("p", { class: "soft" }, `${counted(region.size, "document", "documents")} set apart by ${region.words.join(", ")}.`),
    element("p", { class: "panel-actions" },
      element("button", { type: "button", onclick: () => act.zoomTo(chosen) }, "Zoom to it"),
      element("button", { type: "button", onclick: () => act.chooseRegion(null) }, "Leave it")),
    parts.length ? element("details", {}, element("summary", {}, counted(parts.length, "region in it", "regions in it")), regionList(parts, act)) : null,
  ];
}

// Regions with names that lie in one, or in none; through those without a name one looks further down.
function inside(told, chosen) {
  return told.regions
    .map((region, i) => ({ region, i }))
    .filter(({ region }) => region.words.length && region.size > 0 && namedParent(told, region) === chosen)
    .sort((a, b) => b.region.size - a.region.size);
}

function namedParent(told, { parent }) {
  return parent === null || told.regions[parent].words.length ? parent : namedParent(told, told.regions[parent]);
}

export function named(region) {
  return region.words.slice(0, 3).join(", ");
}

// Hits, those with a point on the map first to be seen there when pointed at.
export function hitsFound(found, title, act) {
  const list = element("ol", { class: "map-hits" });
  const show = (from, to) => list.append(...found.hits.slice(from, to).map((hit) => hitItem(hit, act)));
  show(0, FIRST);
  const more = found.hits.length > FIRST
    ? element("button", { type: "button", class: "more", onclick: () => {
        show(FIRST, found.hits.length);
        more.remove();
      } }, `Show all ${found.hits.length}`)
    : null;
  const without = found.hits.filter((hit) => hit.number === null).length;
  return [
    element("h3", {}, title),
    found.warning ? element("p", { class: "soft" }, found.warning) : null,
    without ? element("p", { class: "soft" }, `${counted(without, "of them has", "of them have")} no point on the map.`) : null,
    list,
    more,
  ];
}

function hitItem(hit, act) {
  return element("li", { onpointerenter: () => act.pointAt(hit.number), onpointerleave: () => act.pointAt(null) },
    element("button", { type: "button", class: "title", dir: "auto", onclick: () => act.open(hit) }, hit.title),
    element("p", { dir: "auto" }, ...hit.snippet.map((part) => (part.marked ? element("mark", {}, part.text) : part.text))));
}

export function documentShown(found, act) {
  const facts = Object.entries(found.metadata).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  return [
    element("button", { type: "button", class: "close", "aria-label": "Close the document", onclick: act.close }, "×"),
    element("h2", { dir: "auto" }, found.title),
    facts.length ? element("dl", {}, ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { dir: "auto" }, String(value))])) : null,
    element("p", { class: "panel-actions" },
      element("button", { type: "button", onclick: () => act.like(found.id) }, "More like this"),
      act.regionOf === null ? null
        : element("button", { type: "button", onclick: () => act.chooseRegion(act.regionOf) }, "Its region")),
    element("div", { class: "text", tabindex: "0", role: "group", "aria-label": "Text", dir: "auto" }, found.text),
  ];
}

export function failed(error, again) {
  return [failure(error, again)];
}
