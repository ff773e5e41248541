// Elements, numbers as text, and nothing that reads markup: every text is a text node.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
export const at = (id) => document.getElementById(id);

const grouped = new Intl.NumberFormat("en-US"); // made once: it takes longer than the numbers
export const whole = (count) => grouped.format(Math.round(count));

function scaled(value, units, limit) {
  let index = 0;
  while (Math.abs(value) >= limit && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  return [value, units[index]];
}

const digits = (value) => value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0);

export function bytes(count) {
  const [value, unit] = scaled(count, ["B", "kB", "MB", "GB", "TB", "PB"], 999.95);
  return unit === "B" ? `${value.toFixed(0)} B` : `${value.toFixed(1)} ${unit}`;
}

export function count(number) {
  const [value, unit] = scaled(number, ["", " k", " M", " G", " T", " P", " E"], 999.5);
  return !unit && value === Math.round(value) ? value.toFixed(0) : digits(value) + unit;
}

export const flops = (number) => {
  const text = count(number);
  return text.includes(" ") ? `${text}FLOP` : `${text} FLOP`;
};

export function parameters(number) {
  if (Math.abs(number) < 10000) return whole(number);
  const [value, unit] = scaled(number, ["", "K", "M", "B", "T", "P"], 999.5);
  return digits(value) + unit;
}

export function seconds(value) {
  if (value >= 1) return `${digits(value)} s`;
  const [scaledValue, unit] = scaled(value * 1e6, ["µs", "ms"], 999.5);
  return `${digits(scaledValue)} ${unit}`;
}

export const unitText = (unit) =>
  unit === "bytes" ? bytes : unit === "FLOPs" ? flops : (number) => whole(number);

export function signed(now, before, text) {
  const difference = now - before;
  if (!difference) return "±0";
  return `${difference > 0 ? "+" : "−"}${text(Math.abs(difference))}`;
}

export function percent(now, before) {
  if (!before) return "";
  const change = (100 * (now - before)) / before;
  if (!change) return "";
  const size = Math.abs(change);
  return `${change > 0 ? "+" : "−"}${size < 0.1 ? "<0.1" : size < 10 ? size.toFixed(1) : size.toFixed(0)} %`;
}

export const percentText = (share) => (share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);

export function plural(number, word) {
  return `${whole(number)} ${word}${number === 1 ? "" : "s"}`;
}

let hiding = 0;
export function toast(text, bad = false) {
  const box = at("toast");
  box.textContent = text;
  box.className = bad ? "shown bad" : "shown";
  clearTimeout(hiding);
  hiding = setTimeout(() => (box.className = ""), bad ? 9000 : 3500);
}

// A table with its heading; numbers are set right.
export function table(caption, head, rows, numeric = head.slice(1)) {
  const right = head.map((name) => (numeric.includes(name) ? "number" : ""));
  return h("div", { class: "scroll" },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((name, i) => h("th", { scope: "col", class: right[i] }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => h("td", { class: right[i] }, cell)))))));
}

// The table behind a picture, whose rows are made when it is opened.
export function behind(caption, head, rows) {
  const box = h("details", { class: "behind", on: { toggle: () => box.open && box.fill() } }, h("summary", {}, "Table"));
  box.fill = () => box.querySelector("table") || box.append(table(caption, head, rows()));
  return box;
}

// Replaces the content of an element, whose tables stay open, and in which the focus stays where it was.
export function refill(element, ...content) {
  const stops = () => [...element.querySelectorAll("button, select, input, summary")];
  const focused = stops().indexOf(document.activeElement);
  const open = [...element.querySelectorAll("details")].map((each) => each.open);
  element.replaceChildren(...content.flat().filter(Boolean));
  [...element.querySelectorAll("details")].forEach((each, i) => {
    if (!open[i]) return;
    each.open = true;
    each.fill();
  });
  if (focused >= 0) stops()[focused]?.focus({ preventScroll: true });
}
