// What the page shows is in its address, so that a link preserves it.

const DEFAULTS = {
  view: "search",
  q: "",
  like: null, // an id, as JSON: "7" and 7 are two ids
  words: true,
  where: {},
  k: 20,
  field: "",
  bit: null,
  alike: 80, // percent
  matrix: "",
};
const JSON_NAMES = ["like", "where"];

export function read() {
  const query = new URLSearchParams(location.search);
  const state = structuredClone(DEFAULTS);
  for (const name of Object.keys(DEFAULTS)) {
    const text = query.get(name);
    if (text === null) continue;
    if (JSON_NAMES.includes(name)) {
      try {
        state[name] = JSON.parse(text);
      } catch {
        continue; // a link that was cut short
      }
    } else if (name === "words") state.words = text !== "0";
    else if (["k", "bit", "alike"].includes(name)) {
      const value = Number.parseInt(text, 10);
      if (Number.isFinite(value)) state[name] = value;
    } else state[name] = text;
  }
  if (state.where === null || typeof state.where !== "object" || Array.isArray(state.where)) {
    state.where = {};
  }
  state.k = Math.min(Math.max(state.k, 1), 100);
  state.alike = Math.min(Math.max(state.alike, 50), 100);
  return state;
}

export function address(state) {
  const query = new URLSearchParams();
  for (const [name, fallback] of Object.entries(DEFAULTS)) {
    const value = state[name];
    if (value === undefined || JSON.stringify(value) === JSON.stringify(fallback)) continue;
    if (JSON_NAMES.includes(name)) query.set(name, JSON.stringify(value));
    else query.set(name, value === false ? "0" : String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
}

export function remember(state, { anew = false } = {}) {
  const target = address(state);
  if (anew) history.pushState(null, "", target);
  else history.replaceState(null, "", target);
}
