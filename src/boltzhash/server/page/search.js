// Search while one types, or more like one document.

import { Typed, get, post } from "./api.js";
import { barcode } from "./barcode.js";
import { announce, counted, element, failure, sentence, shownId, skeleton } from "./dom.js";
import { filterBar } from "./filters.js";
import { hitList } from "./hits.js";
import { remember } from "./state.js";
import { welcome } from "./welcome.js";

const WAYS = { both: "Words and codes", words: "Words", codes: "Codes" };
const REST = 1000; // milliseconds of not typing after which a query is one to come back to

export function searchView(main, state, { stats, go, focus }) {
  const typed = new Typed(ask, show);
  const step = steps(state);
  let answered = null;
  const input = element("input", {
    id: "q", type: "search", name: "q", autocomplete: "off", autocapitalize: "off", spellcheck: "false", dir: "auto",
    maxlength: "100000", placeholder: "What are you looking for?", "aria-label": "Search", value: state.q,
    oninput: () => {
      state.q = input.value;
      state.like = null;
      step.typed();
      run();
    },
    onchange: () => step.rest(),
  });
  // Where codes are made from vectors, a text has none: it is asked by words, a document by both.
  const choosesWay = stats.features === null;
  const hint = operators();
  const filters = filterBar({
    where: state.where,
    counts: countsNow,
    onChange: (where) => {
      state.where = where;
      step.anew();
      run();
    },
  });
  const like = element("div", { class: "like" });
  const results = element("div", { class: "results" });

  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      results.querySelector(".title")?.focus();
      event.preventDefault();
    }
    if (event.key === "Enter") {
      step.rest();
      if (answered !== JSON.stringify(question())) run();
    }
  });

  function showLike() {
    like.replaceChildren();
    if (state.like === null) return;
    like.append(
      element("p", {}, "More like ", element("b", { dir: "auto" }, shownId(state.like)), " ",
        element("button", { type: "button", class: "quiet", onclick: () => {
          state.like = null;
          step.anew();
          input.focus();
          run();
        } }, "New search")),
    );
  }

  const onLike = (id) => go({ ...state, view: "search", like: id, q: "" });

  function question() {
    const asked = { k: state.k, where: state.where, by: choosesWay ? state.by : null };
    return state.like !== null ? { id: state.like, ...asked } : { text: state.q, ...asked };
  }

  function ask(asked, signal) {
    return post("id" in asked ? "similar" : "search", { ...asked, reasons: true }, signal);
  }

  // Of the values of these fields, how many documents that match the query have each.
  async function countsNow(fields) {
    const { text, where, by } = question();
    if (text === undefined) return {}; // documents like one are not counted
    if (text.trim() === "") return null;
    const told = await post("search", { text, where, by, k: 1, facets: fields });
    return told.facets ?? {};
  }

  function run() {
    remember(state);
    showLike();
    hint.classList.toggle("idle", choosesWay && state.by === "codes"); // codes know no operators
    if (state.like === null && state.q.trim() === "") {
      typed.abandon();
      answered = null;
      results.removeAttribute("aria-busy");
      results.replaceChildren(welcome(stats, go));
      announce("");
      return;
    }
    if (results.hasChildNodes()) results.setAttribute("aria-busy", "true");
    else results.replaceChildren(skeleton("for-hit", 4));
    typed.put(question());
  }

  function show(asked, found, error, last) {
    const held = heldAt();
    if (last) results.removeAttribute("aria-busy");
    answered = error ? null : JSON.stringify(asked);
    if (error) results.replaceChildren(error.status === 422 ? unanswerable(error) : failure(error, run));
    else showHits(asked, found, last);
    if (held >= 0) focusHit(held);
  }

  // The rank from 0 of the hit that has the focus; after "Show more", that of the first to come; else −1.
  function heldAt() {
    const hits = [...results.querySelectorAll(".hit")];
    const at = hits.findIndex((hit) => hit.contains(document.activeElement));
    return at < 0 && results.contains(document.activeElement) ? hits.length : at;
  }

  // What had the focus is made anew.
  function focusHit(at) {
    const titles = results.querySelectorAll(".title");
    (titles[at] ?? titles[0] ?? input).focus({ preventScroll: true });
  }

  function showHits(asked, found, last) {
    const query = "id" in asked ? { id: asked.id } : { text: asked.text };
    const children = [caution(found, asked)];
    const { hits } = found;
    if (hits.length === 0) {
      const told = found.warning ? sentence(found.warning) : nothing(found, asked);
      children.push(element("p", { class: "nothing" }, told));
      if (last) announce(told);
    } else {
      if (last) announce(`${counted(hits.length, "document", "documents")}, the first is ${hits[0].title}`);
      children.push(
        summary(found, asked),
        element("h2", { class: "unseen" }, "Documents found"),
        hitList(hits, { query, code: found.query.code, onLike }),
      );
      if (hits.length === asked.k && asked.k < 100) {
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
        filters.element,
        choosesWay ? wayChoice(state, () => {
          step.anew();
          run();
        }) : null,
      ),
      hint,
    ),
    like,
    results,
  );
  get("fields").then((told) => filters.know(told.fields)).catch(() => {}); // searching works without
  run();
  if (focus && state.like === null && matchMedia("(pointer: fine)").matches) input.focus({ preventScroll: true });
  return () => {
    step.rest();
    typed.abandon();
  };
}

// What is a step of Back: a query on which one rested, and each filter and way of searching, but not each letter.
function steps(state) {
  let resting = true;
  let timer = null;
  return {
    typed() {
      if (resting) remember(state, { anew: true });
      resting = false;
      clearTimeout(timer);
      timer = setTimeout(() => {
        this.rest();
        remember(state);
      }, REST);
    },
    rest() {
      resting = true;
      clearTimeout(timer);
    },
    anew() {
      this.rest();
      remember(state, { anew: true });
    },
  };
}

// What documents are found and ranked by: one of three.
function wayChoice(state, onChosen) {
  const buttons = Object.entries(WAYS).map(([by, name]) =>
    element("button", { type: "button", id: `by-${by}`, "aria-pressed": String(by === state.by), onclick: (event) => {
      state.by = by;
      for (const button of buttons) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      onChosen();
    } }, name));
  return element("div", { class: "choice", role: "group", "aria-label": "Find by" }, ...buttons);
}

function operators() {
  return element("p", { class: "hint" }, element("kbd", {}, "\"a phrase\""), " in quotes must occur, ", element("kbd", {}, "-word"), " must not.");
}

// What the order of the hits is worth, if that is less than it seems.
function caution({ query, hits }, asked) {
  if (query.known_words !== 0 || query.by === "words" || hits.length === 0) return null;
  const [unknown, code] = "id" in asked ? ["no word of this document", "its code"] : ["none of these words", "their code"];
  const so = query.by === "codes" ? `${code} and the order below mean nothing` : "documents were looked for by their words alone";
  return element("p", { class: "caution" }, `The model knows ${unknown}, so ${so}.`);
}

function nothing({ query }, { text, where }) {
  const among = Object.keys(where).length ? " that passes these filters" : "";
  if (text !== undefined && query.by !== "codes" && /["“”„‟«»＂]|(^|\s)-\p{L}/u.test(text)) {
    return `No document${among} has what you ask for: what is in quotes must occur, and a word after a minus must not.`;
  }
  if (query.by === "words" || query.known_words === 0) {
    return text === undefined ? `No other document${among} has a word of it.` : `No document${among} has any of these words.`;
  }
  return among ? `There is no document${among}.` : "There is no other document.";
}

// A query that means nothing yet, as when a quote or a minus has just been typed.
function unanswerable(error) {
  announce(error.message);
  return element("p", { class: "nothing" }, sentence(error.message));
}

// What the colours below stand for.
function summary({ query }, asked) {
  const key = (name, text) => [element("i", { class: name }), text];
  const parts = { both: [...key("words", "words"), ...key("code", "code")], words: key("words", "words"), codes: [] }[query.by];
  return element("p", { class: "summary" },
    ...(query.code === null ? [] : [
      barcode(query.code),
      element("span", {}, "id" in asked ? "its code" : "the code of your words"),
      element("span", { class: "bar-key" }, ...key("same", "bits that agree"), ...key("other", "that differ")),
    ]),
    parts.length ? element("span", { class: "bar-key" }, "score: ", ...parts) : null);
}
