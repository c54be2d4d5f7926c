// Groups of near-duplicates, two of a group side by side.

import { Newest, get } from "./api.js";
import { barcode } from "./barcode.js";
import { differences } from "./diff.js";
import { announce, counted, element, failure, number } from "./dom.js";
import { openReader } from "./reader.js";
import { remember } from "./state.js";

const PAGE = 10;

export function duplicatesView(main, state, { go }) {
  const newest = new Newest();
  let timer = null;
  const groups = element("div", {});
  const summary = element("p", { class: "lead" });
  const shownRadius = element("output", {}, String(state.radius));
  const radius = element("input", { type: "range", min: "0", max: "8", value: String(state.radius), id: "radius", oninput: () => {
    state.radius = Number(radius.value);
    shownRadius.textContent = radius.value;
    clearTimeout(timer);
    timer = setTimeout(() => load(0), 200);
  } });

  async function load(offset) {
    remember(state);
    const signal = newest.begin();
    if (offset === 0) groups.replaceChildren(element("p", { class: "waiting" }, "Looking for near-duplicates…"));
    try {
      const told = await get("duplicates", { radius: state.radius, offset, limit: PAGE }, signal);
      if (offset === 0) groups.replaceChildren();
      groups.querySelector(".more")?.remove();
      const alike = told.radius === 0 ? "with the same code" : `whose codes differ in at most ${counted(told.radius, "bit", "bits")}`;
      summary.textContent = told.n_groups === 0
        ? `There are no two documents ${alike}.`
        : `${counted(told.n_groups, "group", "groups")} of documents ${alike}; with one of each group there would be ${number(told.n_extra)} fewer.`;
      announce(summary.textContent);
      groups.append(...told.groups.map((group) => groupSection(group, go)));
      const next = offset + told.groups.length;
      if (next < told.n_groups) {
        groups.append(element("button", { type: "button", class: "more", onclick: () => load(next) }, "Show more"));
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      summary.textContent = "";
      groups.replaceChildren(failure(error, () => load(offset)));
    }
  }

  main.replaceChildren(
    element("h1", { class: "unseen" }, "Near-duplicates"),
    element("div", { class: "toolbar" }, element("label", { for: "radius" }, "Bits that may differ"), radius, shownRadius),
    summary,
    groups,
  );
  load(0);
}

// The two that share most of their words are the ones to look at first.
function mostAlike(documents) {
  const words = documents.map((found) => new Set(found.text.slice(0, 20000).toLowerCase().match(/\w+/g) ?? []));
  let best = [0, 1];
  let most = -1;
  for (let i = 0; i < words.length; i++) {
    for (let j = i + 1; j < words.length; j++) {
      let shared = 0;
      for (const word of words[i]) if (words[j].has(word)) shared++;
      const alike = shared / Math.max(1, words[i].size + words[j].size - shared);
      if (alike > most) [best, most] = [[i, j], alike];
    }
  }
  return best;
}

function groupSection(group, go) {
  const pair = mostAlike(group.documents);
  const sides = element("div", { class: "sides" });
  const draw = () => {
    const [one, other] = pair.map((i) => group.documents[i]);
    const texts = differences(one.text, other.text);
    sides.replaceChildren(side(one, texts[0], null), side(other, texts[1], one.code));
  };

  function side(found, text, against) {
    const column = against === null ? 0 : 1;
    const title = group.documents.length > 2
      ? element("select", { "aria-label": column ? "Right document" : "Left document", onchange: (event) => {
          pair[column] = Number(event.currentTarget.value);
          draw();
          sides.querySelectorAll("select")[column].focus();
        } }, ...group.documents.map((candidate, i) =>
          element("option", { value: String(i), selected: candidate === found }, candidate.title)))
      : element("h3", {}, found.title);
    return element("article", {}, title, barcode(found.code, against),
      text,
      element("p", {}, element("button", { type: "button", class: "quiet", onclick: () =>
        openReader(found.id, { onLike: (id) => go({ view: "search", like: id }) }) }, "Read")));
  }

  draw();
  const more = group.size > group.documents.length ? `, ${number(group.documents.length)} of them here` : "";
  return element("section", { class: "group" }, element("h2", {}, `${counted(group.size, "document", "documents")}${more}`), sides);
}
