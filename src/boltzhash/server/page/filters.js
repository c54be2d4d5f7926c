// Filters on metadata, found by typing a field or a value; each filter that is set is a chip.

import { element, number } from "./dom.js";

const FEW = 4; // values of a field while nothing is typed
const MANY = 8; // values of a field that have what was typed
const MOST_COUNTED = 10; // fields, as many as the service counts at once
const NUMBER = String.raw`[-−]?\d+(?:\.\d+)?`;

// `counts(names)` promises how many documents that match the query have each value, as the service counts
// facets; null if nothing is asked for, and the whole collection is counted.
export function filterBar({ where, counts, onChange }) {
  let set = where;
  let fields = {};
  let known = {}; // the same with the counts of the query
  let shown = [];
  let active = -1;
  let asked = 0;
  const chips = element("span", { class: "chips" });
  const list = element("div", { id: "filter-choices", class: "choices", role: "listbox", "aria-label": "Filters", hidden: true });
  const range = element("div", { class: "choices range", hidden: true });
  const input = element("input", {
    id: "filter", type: "text", role: "combobox", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    "aria-label": "Add a filter", "aria-autocomplete": "list", "aria-controls": "filter-choices", "aria-expanded": "false",
    placeholder: "Filter…", maxlength: "200", oninput: () => (list.hidden ? open() : draw()), onclick: () => open(),
  });
  const adding = element("span", { class: "adding", hidden: true }, input, list, range);
  const bar = element("div", { class: "filters", role: "group", "aria-label": "Filters" }, chips, adding);
  adding.addEventListener("focusout", (event) => {
    if (!adding.contains(event.relatedTarget)) close();
  });
  input.addEventListener("keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move !== undefined) {
      event.preventDefault();
      if (list.hidden) open();
      else activate((active + move + shown.length) % Math.max(1, shown.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (!list.hidden && shown.length) choose(shown[Math.max(0, active)]);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    }
  });

  function change(next) {
    set = next;
    showChips();
    onChange(next);
  }

  function showChips() {
    chips.replaceChildren(...Object.entries(set).map(([name, value], i) => {
      const label = described(value);
      return element("button", { type: "button", class: "chip", "aria-label": `Remove the filter ${name} ${label}`, onclick: () => {
        const { [name]: _, ...rest } = set;
        change(rest);
        const left = chips.querySelectorAll(".chip");
        (left[Math.min(i, left.length - 1)] ?? input).focus();
        close();
      } }, element("span", { class: "fact-name" }, name), " ", element("bdi", {}, label), " ×");
    }));
    adding.hidden = Object.keys(fields).every((name) => Object.hasOwn(set, name));
  }

  // Counts are those of the query: until they are there, none are shown.
  async function open() {
    if (!list.hidden) return;
    range.hidden = true;
    const mine = ++asked;
    const free = Object.keys(fields).filter((name) => !Object.hasOwn(set, name)).slice(0, MOST_COUNTED);
    known = counted(fields, {});
    draw();
    try {
      const told = await counts(free);
      if (mine !== asked) return;
      known = told === null ? fields : counted(fields, told);
      draw();
    } catch {
      // a query that cannot be answered yet has no counts; its own message says why
    }
  }

  function draw() {
    const before = shown[active];
    shown = choices(known, set, input.value);
    active = -1;
    input.removeAttribute("aria-activedescendant");
    shown.forEach((option, i) => { option.element = optionElement(option, i, choose); });
    list.replaceChildren(...grouped(shown).map(([name, options]) =>
      element("div", { role: "group", "aria-label": name },
        element("div", { class: "choices-of", role: "presentation" }, name),
        ...options.map((option) => option.element))));
    if (shown.length === 0) list.replaceChildren(element("div", { class: "choices-of", role: "option", "aria-disabled": "true" }, "No field or value has this"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    const again = shown.findIndex(({ field, label }) => field === before?.field && label === before?.label);
    if (again >= 0) activate(again);
  }

  function activate(i) {
    active = i;
    shown.forEach((option, j) => option.element.setAttribute("aria-selected", String(j === i)));
    const chosen = shown[i]?.element;
    if (!chosen) return;
    input.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  function close() {
    asked++;
    list.hidden = true;
    range.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(option) {
    if (option.range) {
      close();
      askRange(option);
      return;
    }
    input.value = "";
    change({ ...set, [option.field]: option.condition });
    (adding.hidden ? chips.lastElementChild : input).focus();
    close();
  }

  // From and to, each of which may be left out.
  function askRange({ field, least, most }) {
    const end = (name, placeholder) => element("input", { type: "number", step: "any", "aria-label": `${field}, ${name}`, placeholder: String(placeholder ?? "") });
    const [from, to] = [end("from", least), end("to", most)];
    const apply = () => {
      const condition = {};
      if (from.value !== "") condition[">="] = Number(from.value);
      if (to.value !== "") condition["<="] = Number(to.value);
      if (Object.keys(condition).length) choose({ field, condition });
    };
    const keys = (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        apply();
      }
      if (event.key === "Escape") {
        input.focus();
        close();
      }
    };
    range.replaceChildren(element("span", { class: "choices-of" }, field), from, "to", to,
      element("button", { type: "button", onclick: apply }, "Apply"));
    range.onkeydown = keys;
    range.hidden = false;
    from.focus();
  }

  showChips();
  return {
    element: bar,
    // The fields there are: {name: [{value, count}]}.
    know(told) {
      fields = Object.fromEntries(Object.entries(told).map(([name, values]) => [name, { values, ...limits(values) }]));
      showChips();
    },
  };
}

function limits(values) {
  const numbers = values.map(({ value }) => value).filter((value) => typeof value === "number");
  return { numeric: numbers.length > 0, least: null, most: null };
}

// The fields with the counts of the current query; a field that was not counted says no counts.
function counted(fields, told) {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, Object.hasOwn(told, name)
    ? { ...told[name], numeric: field.numeric || told[name].least !== null }
    : { ...field, values: field.values.map(({ value }) => ({ value })) }]));
}

// What may be chosen for a typed text: values, ranges of numbers, and texts that have it as a part.
function choices(fields, where, typed) {
  const text = typed.trim();
  const free = Object.entries(fields).filter(([name]) => !Object.hasOwn(where, name));
  const named = free.filter(([name]) => begins(text, name)).flatMap(([name, field]) =>
    choicesOf(name, field, text, text.slice(name.length).replace(/^\s*[:=]?\s*/, "")));
  return named.length ? named : free.flatMap(([name, field]) => choicesOf(name, field, text, text));
}

// Whether a text begins with the name of a field, as a word.
function begins(text, name) {
  const lower = text.toLowerCase();
  return lower.startsWith(name.toLowerCase()) && !/^[\p{L}\p{N}_]/u.test(text.slice(name.length));
}

// `text` is all that was typed, `rest` what was typed after the name of this field.
function choicesOf(name, field, text, rest) {
  const lower = text.toLowerCase();
  const named = rest !== text;
  const wanted = rest.toLowerCase();
  const found = [];
  if (field.numeric) {
    const condition = parsedRange(rest);
    if (condition !== null) found.push({ field: name, label: described(condition), condition });
    else if (rest === "" || name.toLowerCase().includes(lower)) {
      const span = field.least === null ? "" : ` (${field.least} to ${field.most})`;
      found.push({ field: name, label: `from … to …${span}`, range: true, least: field.least, most: field.most });
    }
  }
  const all = wanted === "" || (!named && name.toLowerCase().includes(lower));
  const values = field.values.filter(({ value }) => all || String(value).toLowerCase().includes(wanted));
  for (const { value, count } of values.slice(0, all ? FEW : MANY)) {
    found.push({ field: name, label: String(value), count, condition: value });
  }
  const has = field.values.some(({ value }) => typeof value === "string");
  if (wanted !== "" && !all && has && !values.some(({ value }) => value === rest)) {
    found.push({ field: name, label: `has “${rest}”`, condition: { contains: rest } });
  }
  return found;
}

// "2019 to 2021", "2019..2021", ">= 2019", "2019": a condition on a number, or null.
function parsedRange(text) {
  const value = (digits) => Number(digits.replace("−", "-"));
  const between = text.match(new RegExp(`^(${NUMBER})\\s*(?:to|\\.\\.|–|-|\\s)\\s*(${NUMBER})$`));
  if (between) return { ">=": value(between[1]), "<=": value(between[2]) };
  const one = text.match(new RegExp(`^(>=|<=|>|<|=|≥|≤)?\\s*(${NUMBER})$`));
  if (!one) return null;
  const sign = { "≥": ">=", "≤": "<=" }[one[1]] ?? one[1] ?? "=";
  return sign === "=" ? value(one[2]) : { [sign]: value(one[2]) };
}

function grouped(options) {
  const groups = new Map();
  for (const option of options) groups.set(option.field, [...(groups.get(option.field) ?? []), option]);
  return [...groups];
}

function optionElement(option, i, choose) {
  return element("div", { role: "option", id: `choice-${i}`, "aria-selected": "false",
    onpointerdown: (event) => event.preventDefault(), // the focus stays where it is
    onclick: () => choose(option) },
  element("bdi", {}, option.label),
  option.count === undefined ? null : element("span", { class: "count" }, number(option.count)));
}

// A condition as people would say it.
function described(condition) {
  if (condition === null) return "missing";
  if (Array.isArray(condition)) return condition.map(described).join(" or ");
  if (typeof condition !== "object") return String(condition);
  const { ">=": least, "<=": most, ...others } = condition;
  if (Object.keys(others).length === 0 && least !== undefined && most !== undefined) return `${least} to ${most}`;
  const signs = { ">=": "≥", "<=": "≤", "!=": "≠", contains: "has", in: "one of", "not in": "none of" };
  const said = (value) => (typeof value === "string" ? `“${value}”` : Array.isArray(value) ? value.join(", ") : String(value));
  const parts = Object.entries(condition);
  if (!parts.every(([sign]) => Object.hasOwn(signs, sign) || ["<", ">", "="].includes(sign))) return JSON.stringify(condition);
  return parts.map(([sign, value]) => `${signs[sign] ?? sign} ${said(value)}`).join(", ");
}
