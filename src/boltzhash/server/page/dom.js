// Elements made by functions. Text is always a text node: nothing a document holds becomes markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  made.append(...children);
  return made;
}

function set(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
}

export function announce(text) {
  document.getElementById("live").textContent = text;
}

export function number(value) {
  return Number(value).toLocaleString("en");
}

// An id as one reads it; integers that JavaScript would round come as {int64: digits}.
export function shownId(id) {
  return String(id.int64 ?? id);
}

export function counted(n, one, many) {
  return `${number(n)} ${n === 1 ? one : many}`;
}

export function notice(title, ...children) {
  return element("section", { class: "notice" }, element("h2", {}, title), ...children);
}

// The shapes of what is to come, where nothing stands yet; screen readers hear that it is loading.
export function skeleton(kind, n = 1) {
  const shape = () => element("div", { class: `skeleton ${kind}` }, element("i", {}), element("i", {}), element("i", {}));
  return element("div", { class: "skeletons", role: "status" }, element("span", { class: "unseen" }, "Loading"),
    ...Array.from({ length: n }, shape));
}

export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?:…`]$/.test(text) ? "" : "."}`;
}

// An error as the service told it, and a way to try again.
export function failure(error, again) {
  return element(
    "div",
    { class: "failure", role: "alert" },
    element("p", {}, sentence(again ? error.message.replace(/\.? Try again$/, "") : error.message)),
    again ? element("button", { type: "button", onclick: again }, "Try again") : null,
  );
}
