// Groups of near-duplicates, the most similar first, two of a group side by side.

import { Newest, get } from "./api.js";
import { barcode } from "./barcode.js";
import { differences } from "./diff.js";
import { announce, counted, element, failure, number, skeleton } from "./dom.js";
import { openReader } from "./reader.js";
import { remember } from "./state.js";

const PAGE = 10;
const PAUSE = 200; // milliseconds without the slider being moved: all texts are compared

export function duplicatesView(main, state, { go }) {
  const newest = new Newest();
  let timer = null;
  const groups = element("div", {});
  const summary = element("p", { class: "lead" });
  const shownAlike = element("output", { for: "alike" }, `${state.alike} %`);
  const alike = element("input", { type: "range", min: "50", max: "100", step: "5", value: String(state.alike), id: "alike", oninput: () => {
    state.alike = Number(alike.value);
    shownAlike.textContent = `${alike.value} %`;
    clearTimeout(timer);
    timer = setTimeout(() => load(0), PAUSE);
  } });

  async function load(offset) {
    remember(state);
    const signal = newest.begin();
    if (offset === 0 && !groups.hasChildNodes()) groups.replaceChildren(skeleton("for-sides", 2));
    groups.setAttribute("aria-busy", "true");
    try {
      show(await get("duplicates", { min_similarity: state.alike / 100, offset, limit: PAGE }, signal), offset);
    } catch (error) {
      if (error.name === "AbortError") return;
      summary.textContent = "";
      groups.replaceChildren(failure(error, () => load(0)));
    }
    groups.removeAttribute("aria-busy");
  }

  function show(told, offset) {
    const held = groups.contains(document.activeElement); // on what is taken away now
    if (offset === 0) groups.replaceChildren();
    groups.querySelector(".more")?.remove();
    summary.textContent = said(told);
    announce(summary.textContent);
    const sections = told.groups.map((group, i) => groupSection(group, offset + i + 1, go));
    groups.append(...sections);
    const next = offset + told.groups.length;
    if (next < told.n_groups) {
      groups.append(element("button", { type: "button", class: "more", onclick: () => load(next) }, "Show more"));
    }
    if (held) sections[0]?.querySelector("h2").focus({ preventScroll: true });
  }

  main.replaceChildren(
    element("h1", { class: "unseen" }, "Near-duplicates"),
    element("div", { class: "toolbar" }, element("label", { for: "alike" }, "Alike by at least"), alike, shownAlike,
      element("span", { class: "hint" }, "of all runs of three words in two texts, the share that both have")),
    summary,
    groups,
  );
  load(0);
  return () => {
    clearTimeout(timer);
    newest.abandon();
  };
}

// What is true of the groups: each document is compared with the one to keep, not with all the others.
function said({ n_groups: n, n_extra: extra, min_similarity: least }) {
  const all = n === 0
    ? `No document repeats another by ${percent(least)} or more.`
    : `${counted(n, "group", "groups")}: in each, the others are at least ${percent(least)} like the one to keep. Without them there would be ${counted(extra, "document", "documents")} fewer.`;
  return `${all} Texts that merely share a template are not counted.`;
}

// Rounded down: 100 % is said of the same words only.
function percent(share) {
  return `${Math.floor(100 * share + 1e-9)} %`;
}

function groupSection(group, rank, go) {
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
      : element("h3", { dir: "auto" }, found.title);
    const row = group.documents.indexOf(found);
    const likeness = row === 0 ? "to keep" : `${percent(group.duplicates[row - 1].similarity)} like the one to keep`;
    return element("article", {}, title, element("p", { class: "likeness" }, likeness), barcode(found.code, against),
      text,
      element("p", {}, element("button", { type: "button", class: "quiet", onclick: () =>
        openReader(found.id, { onLike: (id) => go({ view: "search", like: id }) }) }, "Read")));
  }

  draw();
  const more = group.size > group.documents.length ? `, ${number(group.documents.length)} of them here` : "";
  return element("section", { class: "group" },
    element("h2", { tabindex: "-1" },
      element("span", { class: "rank" }, `${rank}.`), " ",
      element("b", {}, percent(group.similarity)), ` alike, ${counted(group.size, "document", "documents")}${more}`),
    sides);
}
