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
  const shownAlike = element("output", {}, `${state.alike} %`);
  const alike = element("input", { type: "range", min: "50", max: "100", step: "5", value: String(state.alike), id: "alike", oninput: () => {
    state.alike = Number(alike.value);
    shownAlike.textContent = `${alike.value} %`;
    clearTimeout(timer);
    timer = setTimeout(() => load(0), 200);
  } });

  async function load(offset) {
    remember(state);
    const signal = newest.begin();
    if (offset === 0) groups.replaceChildren(element("p", { class: "waiting" }, "Looking for near-duplicates…"));
    try {
      const told = await get("duplicates", { min_similarity: state.alike / 100, offset, limit: PAGE }, signal);
      if (offset === 0) groups.replaceChildren();
      groups.querySelector(".more")?.remove();
      const texts = `whose texts are at least ${percent(told.min_similarity)} alike`;
      summary.textContent = told.n_groups === 0
        ? `There are no two documents ${texts}.`
        : `${counted(told.n_groups, "group", "groups")} of documents ${texts}; with one of each group there would be ${number(told.n_extra)} fewer.`;
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
    element("div", { class: "toolbar" }, element("label", { for: "alike" }, "Word trigrams in common, at least"), alike, shownAlike),
    summary,
    groups,
  );
  load(0);
}

// Rounded down: 100 % is said of the same words only.
function percent(share) {
  return `${Math.floor(100 * share + 1e-9)} %`;
}

function groupSection(group, go) {
  const pair = [0, 1]; // the one to keep comes first
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
    const row = group.documents.indexOf(found);
    const standing = row === 0 ? "to keep" : `${percent(group.duplicates[row - 1].similarity)} like the one to keep`;
    return element("article", {}, title, element("p", { class: "standing" }, standing), barcode(found.code, against),
      text,
      element("p", {}, element("button", { type: "button", class: "quiet", onclick: () =>
        openReader(found.id, { onLike: (id) => go({ view: "search", like: id }) }) }, "Read")));
  }

  draw();
  const more = group.size > group.documents.length ? `, ${number(group.documents.length)} of them here` : "";
  return element("section", { class: "group" }, element("h2", {}, `${counted(group.size, "document", "documents")}${more}`), sides);
}
