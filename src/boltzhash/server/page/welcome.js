// The page before anything is asked: what the collection is, and questions that it can answer.

import { get } from "./api.js";
import { counted, element, skeleton } from "./dom.js";
import { address, read } from "./state.js";

const QUESTIONS = 6;
const WORDS = 4; // of a topic
let overview = null; // is asked for once

export function welcome(stats, go) {
  const body = element("div", { class: "about-collection" }, skeleton("for-lines", 2));
  const found = stats.features !== null
    ? "found by their words; “More like this” also compares codes, which are made from vectors"
    : "found by their words and by what they are about";
  overview ??= get("overview");
  overview.then((told) => body.replaceChildren(...about(told, go)), () => {
    overview = null; // the next time, perhaps; searching works without
    body.replaceChildren();
  });
  return element("div", { class: "welcome" },
    element("p", { class: "lead" }, `${counted(stats.documents, "document", "documents")}, ${found}.`),
    body,
    element("h2", {}, "Look around"),
    element("ul", { class: "ways" },
      way("map", "Map", "Every document is a point, near those that are about the same.", go),
      way("duplicates", "Duplicates", "Documents that say the same, side by side.", go)),
  );
}

function about({ topics, questions }, go) {
  return [
    questions.length ? element("section", {},
      element("h2", {}, "Ask, for instance"),
      element("ul", { class: "questions" }, ...questions.slice(0, QUESTIONS).map((text) =>
        element("li", {}, leading({ view: "search", q: text }, go, { dir: "auto" }, text))))) : null,
    topics.length ? element("section", {},
      element("h2", {}, "What it is about"),
      element("ul", { class: "topics" }, ...topics.map((topic) => topicItem(topic, topics[0].share, go)))) : null,
  ].filter(Boolean);
}

// A topic by its words, with a bar for its share of the documents, relative to the largest.
function topicItem({ words, share }, largest, go) {
  const bar = element("span", { class: "share", "aria-hidden": "true" }, element("span", {}));
  bar.firstChild.style.width = `${(100 * share) / largest}%`;
  return element("li", {},
    leading({ view: "search", q: words.slice(0, 3).join(" ") }, go, {},
      element("span", { class: "topic-words", dir: "auto" }, words.slice(0, WORDS).join(", ")),
      element("span", { class: "topic-share" }, bar, `${Math.round(100 * share)} %`)));
}

function way(view, name, text, go) {
  return element("li", {}, leading({ view, q: "" }, go, {}, element("b", {}, name), element("span", {}, text)));
}

// A link to another state of the page.
function leading(state, go, attributes, ...children) {
  return element("a", { href: address({ ...read(), ...state }), ...attributes, onclick: (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(state);
  } }, ...children);
}
