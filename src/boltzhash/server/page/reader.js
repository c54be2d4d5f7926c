// A whole document, in a dialog.

import { Newest, post } from "./api.js";
import { barcode } from "./barcode.js";
import { element, failure, skeleton } from "./dom.js";

const newest = new Newest();

export async function openReader(id, { onLike, passage }) {
  const dialog = document.getElementById("reader");
  const signal = newest.begin();
  dialog.replaceChildren(closing(dialog), element("h2", { class: "unseen", id: "reader-title" }, "A document"), skeleton("for-text"));
  if (!dialog.open) dialog.showModal();
  try {
    const { documents } = await post("documents/get", { ids: [id] }, signal);
    if (documents.length === 0) throw new Error("This document has been deleted.");
    dialog.replaceChildren(...contents(documents[0], dialog, onLike, passage));
  } catch (error) {
    if (error.name === "AbortError") return;
    dialog.replaceChildren(closing(dialog), element("h2", { class: "unseen", id: "reader-title" }, "A document"), failure(error));
  }
  dialog.querySelector(".close").focus();
  dialog.querySelector(".passage")?.scrollIntoView({ block: "center" });
}

function closing(dialog) {
  return element("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
}

function contents(found, dialog, onLike, passage) {
  const metadata = Object.entries(found.metadata);
  return [
    closing(dialog),
    element("h2", { id: "reader-title", dir: "auto" }, found.title),
    barcode(found.code),
    metadata.length
      ? element("dl", {}, ...metadata.flatMap(([name, value]) => [
          element("dt", {}, name),
          element("dd", { dir: "auto" }, typeof value === "string" ? value : JSON.stringify(value)),
        ]))
      : null,
    element("p", {}, element("button", { type: "button", onclick: () => {
      dialog.close();
      onLike(found.id);
    } }, "More like this")),
    element("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": "Text" }, ...marked(found.text, passage)),
  ].filter(Boolean);
}

// The text, with the passage that was found set off. Its ends count characters, and JavaScript counts halves of some.
function marked(text, passage) {
  const characters = passage ? [...text] : [];
  if (!passage || passage.end - passage.start >= characters.length) return [text];
  const part = (from, to) => characters.slice(from, to).join("");
  return [
    part(0, passage.start),
    element("span", { class: "passage" }, part(passage.start, passage.end)),
    part(passage.end),
  ];
}

document.getElementById("reader").addEventListener("click", (event) => {
  if (event.target.id === "reader") event.target.close(); // outside the dialog
});
document.getElementById("reader").addEventListener("close", () => newest.abandon());
