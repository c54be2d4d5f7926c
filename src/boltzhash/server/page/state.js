// What the page shows is in its address, so that a link preserves it.

const DEFAULTS = {
  view: "search",
  q: "",
  like: null, // an id, as JSON: "7" and 7 are two ids
  by: "both",
  where: {},
  k: 20,
  field: "",
  alike: 80, // percent
  at: "", // what of the map is in view
  region: null, // of the map, to search within
  point: null, // of the map, the number of its document
};
const JSON_NAMES = ["like", "where"];
const WAYS = ["both", "words", "codes"];

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
    } else if (["k", "alike", "region", "point"].includes(name)) {
      const value = Number.parseInt(text, 10);
      if (Number.isFinite(value)) state[name] = value;
    } else state[name] = text;
  }
  if (state.where === null || typeof state.where !== "object" || Array.isArray(state.where)) {
    state.where = {};
  }
  if (!WAYS.includes(state.by)) state.by = DEFAULTS.by;
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
    else query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `?${text}` : location.pathname;
}

export function remember(state, { anew = false } = {}) {
  const target = address(state);
  entitle(state);
  try {
    if (anew) history.pushState(null, "", target);
    else history.replaceState(null, "", target);
  } catch (error) {
    if (error.name !== "SecurityError") throw error; // too many in a few seconds, for some browsers: the next catches up
  }
}

// The title of the window, and of the step of Back.
export function entitle({ view, q }) {
  const name = { map: "Map", duplicates: "Duplicates" }[view] ?? q.trim().slice(0, 60);
  document.title = name ? `${name} · boltzhash` : "boltzhash";
}
