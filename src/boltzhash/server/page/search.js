// Search as you type, or more like one document.

import { Newest, get, post } from "./api.js";
import { barcode } from "./barcode.js";
import { announce, counted, element, failure, sentence } from "./dom.js";
import { filterBar } from "./filters.js";
import { hitList } from "./hits.js";
import { remember } from "./state.js";

const PAUSE = 120; // milliseconds of not typing
const WAYS = { both: "Words and codes", words: "Words", codes: "Codes" };

export function searchView(main, state, { stats, go }) {
  const newest = new Newest();
  let timer = null;
  let fields = {};
  const input = element("input", {
    id: "q", type: "search", name: "q", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    maxlength: "100000", placeholder: "What are you looking for?", "aria-label": "Search", value: state.q,
    oninput: () => {
      state.q = input.value;
      state.like = null;
      clearTimeout(timer);
      timer = setTimeout(() => run(), PAUSE);
    },
  });
  const choosesWay = stats.keeps_words && stats.features === null;
  const hint = stats.keeps_words
    ? operators()
    : element("p", { class: "hint" }, "This collection keeps no index of words: it is searched by codes alone.");
  const filters = element("div", {});
  const like = element("div", { class: "like" });
  const results = element("div", { class: "results" });

  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      results.querySelector(".title")?.focus();
      event.preventDefault();
    }
    if (event.key === "Enter") {
      clearTimeout(timer);
      run();
    }
  });

  function showFilters() {
    filters.replaceChildren(filterBar(fields, state.where, (where) => {
      state.where = where;
      showFilters();
      run();
    }));
  }

  function showLike() {
    like.replaceChildren();
    if (state.like === null) return;
    like.append(
      element("p", {}, "More like ", element("b", {}, String(state.like)), " ",
        element("button", { type: "button", class: "quiet", onclick: () => {
          state.like = null;
          input.focus();
          run();
        } }, "New search")),
    );
  }

  const onLike = (id) => go({ ...state, view: "search", like: id, q: "" });
  const onBit = (bit) => go({ view: "bits", bit });

  async function run() {
    const signal = newest.begin();
    remember(state);
    showLike();
    hint.classList.toggle("idle", stats.keeps_words && state.by === "codes"); // codes know no operators
    if (state.like === null && state.q.trim() === "") {
      results.replaceChildren(welcome(stats, go));
      announce("");
      return;
    }
    results.setAttribute("aria-busy", "true");
    try {
      // Where codes are made from vectors, a text has none: it is asked by words, a document by both.
      const asked = { k: state.k, where: state.where, by: choosesWay ? state.by : null };
      const found = state.like !== null
        ? await post("similar", { id: state.like, ...asked }, signal)
        : await post("search", { text: state.q, ...asked }, signal);
      show(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      results.replaceChildren(error.status === 422 ? unanswerable(error) : failure(error, run));
    }
    results.removeAttribute("aria-busy");
  }

  function show(found) {
    const query = state.like !== null ? { id: state.like } : { text: state.q };
    const code = found.query.code; // null where it was a text and codes are made from vectors
    const children = [caution(found, state)];
    if (found.hits.length === 0) {
      children.push(element("p", { class: "nothing" }, nothing(found, state)));
      announce("No document found");
    } else {
      announce(`${counted(found.hits.length, "document", "documents")}, the first is ${found.hits[0].title}`);
      children.push(
        summary(found, state),
        element("h2", { class: "unseen" }, "Documents found"),
        hitList(found.hits, { query, code, onLike, onBit }),
      );
      if (found.hits.length === state.k && state.k < 100) {
        children.push(element("button", { type: "button", class: "more", onclick: () => {
          state.k = Math.min(100, state.k + 20);
          run();
        } }, "Show more"));
      }
    }
    results.replaceChildren(...children.filter(Boolean));
  }

  main.replaceChildren(
    element("h1", { class: "unseen" }, "Search"),
    element("form", { class: "search", role: "search", onsubmit: (event) => event.preventDefault() },
      input,
      element("div", { class: "options" },
        filters,
        choosesWay ? wayChoice(state, run) : null,
      ),
      hint,
    ),
    like,
    results,
  );
  showFilters();
  get("fields").then((told) => {
    fields = told.fields;
    showFilters();
  }).catch(() => {}); // searching works without
  run();
  if (state.like === null && matchMedia("(pointer: fine)").matches) input.focus({ preventScroll: true });
}

// What documents are found and ranked by: one of three.
function wayChoice(state, run) {
  const buttons = Object.entries(WAYS).map(([by, name]) =>
    element("button", { type: "button", "aria-pressed": String(by === state.by), onclick: (event) => {
      state.by = by;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      run();
    } }, name));
  return element("div", { class: "choice", role: "group", "aria-label": "Find by" }, ...buttons);
}

function operators() {
  return element("p", { class: "hint" }, element("kbd", {}, "\"a phrase\""), " in quotes must occur, ", element("kbd", {}, "-word"), " must not.");
}

// What the order of the hits is worth, if that is less than it seems.
function caution({ query }, { like }) {
  if (query.known_words !== 0 || query.by === "words") return null;
  const [unknown, code] = like !== null ? ["no word of this document", "its code"] : ["none of these words", "their code"];
  const so = query.by === "codes" ? `${code} and the order below mean nothing` : "documents were looked for by their words alone";
  return element("p", { class: "caution" }, `The model knows ${unknown}, so ${so}.`);
}

function nothing({ query }, { q, like, where }) {
  const among = Object.keys(where).length ? " that passes these filters" : "";
  if (like === null && query.by !== "codes" && /["“”„‟«»＂]|(^|\s)-\p{L}/u.test(q)) {
    return `No document${among} has what you ask for: what is in quotes must occur, and a word after a minus must not.`;
  }
  if (query.by === "words" || query.known_words === 0) {
    return like !== null ? `No other document${among} has a word of it.` : `No document${among} has any of these words.`;
  }
  return among ? `There is no document${among}.` : "There is no other document.";
}

// A query that means nothing yet, as when a quote or a minus has just been typed.
function unanswerable(error) {
  announce(error.message);
  return element("p", { class: "nothing" }, sentence(error.message));
}

// What the colours below stand for.
function summary({ query }, { like }) {
  const key = (name, text) => [element("i", { class: name }), text];
  const parts = { both: [...key("words", "words"), ...key("code", "code")], words: key("words", "words"), codes: [] }[query.by];
  return element("p", { class: "summary" },
    ...(query.code === null ? [] : [
      barcode(query.code),
      element("span", {}, like !== null ? "its code" : "the code of your words"),
      element("span", { class: "bar-key" }, ...key("same", "bits that agree"), ...key("other", "that differ")),
    ]),
    parts.length ? element("span", { class: "bar-key" }, "score: ", ...parts) : null);
}

function welcome(stats, go) {
  const codes = `A code has ${stats.bits} bits; those of documents about the same things differ in only a few.`;
  return element("div", { class: "welcome" },
    element("p", { class: "lead" }, stats.keeps_words
      ? `${counted(stats.documents, "document", "documents")}, found by their words and by what they are about.`
      : `${counted(stats.documents, "document", "documents")}, found by what they are about.`),
    element("p", {}, stats.keeps_words && stats.features !== null
      ? `Ask in a few words. Documents are ranked by which of them they have, in any form. “More like this” compares codes as well, which are made from vectors. ${codes}`
      : stats.keeps_words
      ? `Ask in a few words. Documents are ranked by which of them they have, in any form, and by how well their codes agree, which also finds what says it in other words. ${codes}`
      : `Ask in a few words: their code is compared with all the others as you type. ${codes}`),
    element("p", {}, "Or look around:"),
    element("ul", { class: "ways" },
      way("map", "Map", "Every document is a point, near those with similar codes.", go),
      way("bits", "Bits", `What each of the ${stats.bits} bits stands for, and which ones go together.`, go),
      way("duplicates", "Duplicates", "Documents that say the same, side by side.", go)),
  );
}

function way(view, name, text, go) {
  return element("li", {},
    element("a", { href: `?view=${view}`, onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go({ view });
    } }, element("b", {}, name), element("span", {}, text)));
}
