// Search as you type, or more like one document.

import { Newest, get, post } from "./api.js";
import { barcode } from "./barcode.js";
import { announce, counted, element, failure, number } from "./dom.js";
import { filterBar } from "./filters.js";
import { hitList } from "./hits.js";
import { remember } from "./state.js";

const PAUSE = 120; // milliseconds of not typing

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
  const words = element("input", { type: "checkbox", checked: state.words, onchange: () => {
    state.words = words.checked;
    run();
  } });
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
        } }, "Back to words")),
    );
  }

  const onLike = (id) => go({ ...state, view: "search", like: id, q: "" });
  const onBit = (bit) => go({ view: "bits", bit });

  async function run() {
    const signal = newest.begin();
    remember(state);
    showLike();
    if (state.like === null && state.q.trim() === "") {
      results.replaceChildren(welcome(stats, go));
      announce("");
      return;
    }
    results.setAttribute("aria-busy", "true");
    try {
      const asked = { k: state.k, where: state.where, by: state.words ? null : "codes" };
      const found = state.like !== null
        ? await post("similar", { id: state.like, ...asked }, signal)
        : await post("search", { text: state.q, ...asked }, signal);
      show(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      results.replaceChildren(failure(error, run));
    }
    results.removeAttribute("aria-busy");
  }

  function show(found) {
    const query = state.like !== null ? { id: state.like } : { text: state.q };
    const code = found.query.code;
    const children = [];
    if (found.query.known_words === 0) {
      children.push(element("p", { class: "caution" },
        "The model knows none of these words, so their code and the order below mean nothing."));
    }
    if (found.hits.length === 0) {
      children.push(element("p", { class: "nothing" }, "No document passes these filters."));
      announce("No document found");
    } else {
      const nearest = Math.min(...found.hits.map((hit) => hit.distance));
      announce(`${counted(found.hits.length, "document", "documents")}, the nearest ${counted(nearest, "bit", "bits")} away`);
      children.push(
        element("p", { class: "summary" }, barcode(code), element("span", {}, state.like !== null ? "its code" : "the code of your words"),
          element("span", { class: "bar-key" }, element("i", { class: "same" }), "bits that agree", element("i", { class: "other" }), "bits that differ")),
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
    results.replaceChildren(...children);
  }

  main.replaceChildren(
    element("h1", { class: "unseen" }, "Search"),
    element("form", { class: "search", role: "search", onsubmit: (event) => event.preventDefault() },
      input,
      element("div", { class: "options" },
        filters,
        element("label", { class: "switch" }, words, " rank by shared words"),
      ),
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

function welcome(stats, go) {
  return element("div", { class: "welcome" },
    element("p", { class: "lead" },
      `${number(stats.documents)} documents, each kept as a code of ${stats.bits} bits. Documents about the same things have codes that differ in only a few bits.`),
    element("p", {}, "Type a few words: their code is compared with all the others as you type. Or look around:"),
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
