// Filters on metadata: a field and one of its commonest values; each filter that is set is a chip.

import { element } from "./dom.js";

export function filterBar(fields, where, onChange) {
  const names = Object.keys(fields);
  if (names.length === 0) return element("div", { class: "filters", hidden: true });
  const bar = element("div", { class: "filters", role: "group", "aria-label": "Filters" });
  for (const [name, value] of Object.entries(where)) {
    const shown = typeof value === "object" ? JSON.stringify(value) : String(value);
    bar.append(
      element("button", { type: "button", class: "chip", "aria-label": `Remove the filter ${name} ${shown}`, onclick: () => {
        const { [name]: _, ...rest } = where;
        onChange(rest);
      } }, element("span", { class: "fact-name" }, name), ` ${shown} ×`),
    );
  }
  const free = names.filter((name) => !(name in where));
  if (free.length) bar.append(adding(fields, free, (name, value) => onChange({ ...where, [name]: value })));
  return bar;
}

function adding(fields, names, onChosen) {
  const values = element("select", { "aria-label": "Value", hidden: true, onchange: () => {
    if (values.value !== "") onChosen(field.value, JSON.parse(values.value));
  } });
  const field = element(
    "select",
    { "aria-label": "Add a filter", onchange: () => {
      values.hidden = field.value === "";
      values.replaceChildren(
        element("option", { value: "" }, "which?"),
        ...(fields[field.value] ?? []).map(({ value, count }) =>
          element("option", { value: JSON.stringify(value) }, `${value} (${count})`)),
      );
      if (!values.hidden) values.focus();
    } },
    element("option", { value: "" }, "Filter…"),
    ...names.map((name) => element("option", { value: name }, name)),
  );
  return element("span", { class: "adding" }, field, values);
}
