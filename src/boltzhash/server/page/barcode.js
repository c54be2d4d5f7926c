// A code as a small barcode: tall bars are bits that are on, colour says which agree with the query.

import { drawing } from "./dom.js";

export function bitsOf(code) {
  const bits = [];
  for (const digit of code) {
    const value = Number.parseInt(digit, 16);
    bits.push(value & 8, value & 4, value & 2, value & 1);
  }
  return bits.map(Boolean);
}

export function barcode(code, query = null) {
  const bits = bitsOf(code);
  const asked = query === null ? null : bitsOf(query);
  const agree = bits.map((bit, i) => asked === null || bit === asked[i]);
  const n = bits.length;
  const step = n > 128 ? 2 : 3;
  const left = (i) => i * step + Math.floor(i / 8) * 2; // a little air between bytes
  const width = left(n - 1) + step - 1;
  const paths = { same: "", other: "" };
  for (let i = 0; i < n; i++) {
    const height = bits[i] ? 18 : 6;
    paths[agree[i] ? "same" : "other"] += `M${left(i)} 18v${-height}h${step - 1}v${height}z`;
  }
  const agreeing = agree.filter(Boolean).length;
  const label = asked === null ? `Code of ${n} bits` : `${agreeing} of ${n} bits agree`;
  return drawing(
    "svg",
    { class: "barcode", viewBox: `0 0 ${width} 18`, width, height: 18, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    drawing("path", { class: asked === null ? "plain" : "same", d: paths.same }),
    drawing("path", { class: "other", d: paths.other }),
  );
}
