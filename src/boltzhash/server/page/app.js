// The page: which view is shown, and what all of them share.

import { get } from "./api.js";
import { counted, element, failure, notice } from "./dom.js";
import { duplicatesView } from "./duplicates.js";
import { mapView } from "./map.js";
import { searchView } from "./search.js";
import { address, entitle, read, remember } from "./state.js";

const VIEWS = { search: searchView, map: mapView, duplicates: duplicatesView };
const main = document.getElementById("main");
let stats = null;
let leave = null; // ends what the view that is shown has begun
let shows = 0;

// `focus` is where the focus goes: "main", "query", or null if it stays where it is.
async function show({ focus = null } = {}) {
  const state = read();
  const mine = ++shows;
  if (!Object.hasOwn(VIEWS, state.view)) state.view = "search";
  document.getElementById("reader").close();
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = state.view;
  try {
    stats ??= await get("stats");
  } catch (error) {
    main.replaceChildren(error.status === 503 && error.message.includes("no collection") ? noCollection() : failure(error, () => show()));
    return;
  }
  if (mine !== shows) return; // another view was asked for meanwhile
  document.getElementById("about").textContent = counted(stats.documents, "document", "documents");
  entitle(state);
  leave?.();
  leave = null;
  if (stats.documents === 0) {
    main.replaceChildren(emptyCollection());
    stats = null; // there may be some the next time
    return;
  }
  const held = document.activeElement?.id;
  leave = VIEWS[state.view](main, state, { stats, go, focus: focus === "query" }) ?? null;
  if (focus === "main") {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  } else if (held && document.activeElement === document.body) {
    document.getElementById(held)?.focus({ preventScroll: true }); // what was made anew has its old id
  }
}

// Go to another state of the page; fields that are not given have their defaults.
function go(changes) {
  const state = { ...read(), q: "", like: null, ...changes };
  remember(state, { anew: true });
  show({ focus: "main" });
}

function noCollection() {
  return notice("There is no collection yet",
    element("p", {}, "The service looks for one at the location that it was started with. Make it from your documents, one JSON object with “id” and “text” per line:"),
    element("pre", { tabindex: "0" }, "boltzhash fit documents.jsonl -o model\nboltzhash index model documents.jsonl -o COLLECTION"),
    element("p", {}, "or from the documentation of Python itself: ", element("code", {}, "boltzhash demo -o COLLECTION"), "."),
    element("p", {}, element("button", { type: "button", onclick: () => show() }, "Look again")));
}

function emptyCollection() {
  return notice("The collection is empty",
    element("p", {}, "Add documents on the command line:"),
    element("pre", { tabindex: "0" }, "boltzhash add COLLECTION documents.jsonl"),
    element("p", {}, "or over HTTP: ", element("a", { href: "docs" }, "the API"), " says how."),
    element("p", {}, element("button", { type: "button", onclick: () => show() }, "Look again")));
}

document.getElementById("views").addEventListener("click", (event) => {
  const link = event.target.closest("[data-view]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const state = read();
  history.pushState(null, "", address({ ...state, view: link.dataset.view }));
  show({ focus: event.detail > 0 ? "query" : null }); // who came with the keyboard goes on from the link
});
document.getElementById("home").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", location.pathname);
  show({ focus: event.detail > 0 ? "query" : null });
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    if (!document.getElementById("q")) go({ view: "search" });
    document.getElementById("q")?.select();
  }
});
addEventListener("popstate", () => show());
show({ focus: "query" });
