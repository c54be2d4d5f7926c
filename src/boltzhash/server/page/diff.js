// Two texts side by side: which words only one of them has, by the longest common subsequence.

import { element } from "./dom.js";

const MOST = 700; // words of each that are compared; the table below has the square of that

export function differences(one, other) {
  const left = split(one);
  const right = split(other);
  const common = alignment(left.words, right.words);
  return [render(left, common.left), render(right, common.right)];
}

function split(text) {
  const words = text.match(/\S+|\s+/g) ?? [];
  const solid = words.filter((word) => word.trim() !== "");
  return { pieces: words, words: solid.slice(0, MOST), cut: solid.length > MOST };
}

// For each word of both sides, whether it has a partner on the other side.
export function alignment(one, other) {
  const width = other.length + 1;
  const lengths = new Uint16Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i * width + j] = one[i] === other[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const left = new Array(one.length).fill(false);
  const right = new Array(other.length).fill(false);
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) {
      left[i++] = true;
      right[j++] = true;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return { left, right };
}

function render({ pieces, cut }, shared) {
  const made = element("div", { class: "text", dir: "auto", tabindex: "0", role: "group", "aria-label": "Text" });
  let seen = 0;
  for (const piece of pieces) {
    if (piece.trim() === "") made.append(piece);
    else if (seen >= shared.length) break;
    else made.append(shared[seen++] ? piece : element("mark", { class: "only" }, piece));
  }
  if (cut) made.append(" …");
  return made;
}
