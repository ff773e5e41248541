// The drawing: parts that lead to their keys, the part under the cursor, and the parts that the text has changed.

import { at, h, whole } from "./dom.js";

const LEAST_SCALE = 0.6; // of the text, below which a drawing scrolls instead

const starts = (path, prefix) => prefix.length <= path.length && prefix.every((key, i) => path[i] === key);

export class Drawing {
  constructor(chosen) {
    this.box = at("picture");
    this.chosen = chosen;
    this.parts = [];
    this.paths = new Map();
    this.box.addEventListener("click", (event) => {
      const part = event.target.closest("[data-keys]");
      if (part) this.choose(part);
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  // Whether the drawing is another one, whose parts are not marked yet.
  show(markup, sizes) {
    if (markup === this.markup) return false;
    this.markup = markup;
    const focused = this.box.contains(document.activeElement) ? document.activeElement.dataset.box : null;
    // Its own style serves readers of the file; here the page's colours do.
    const parsed = new DOMParser().parseFromString(markup.replace(/<style>[^<]*<\/style>/, ""), "image/svg+xml").documentElement;
    if (parsed.nodeName !== "svg") return false;
    const svg = document.importNode(parsed, true);
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "Architecture; arrow keys move between parts, Enter opens the keys of a part");
    svg.style.minWidth = `${Math.round(LEAST_SCALE * Number(svg.getAttribute("width")))}px`;
    this.box.replaceChildren(svg);
    this.parts = [...svg.querySelectorAll("[data-keys]")];
    this.paths = new Map(this.parts.map((part) => [part, part.dataset.keys.split(".")]));
    for (const part of this.parts) {
      const title = part.querySelector("title");
      const texts = [...part.children].filter((each) => each.tagName === "text").map((each) => each.textContent);
      part.setAttribute("role", "button");
      part.setAttribute("tabindex", "-1");
      part.setAttribute("aria-label", [...texts, title && title.textContent].filter(Boolean).join(", "));
      part.classList.add("part");
    }
    this.shapes = [...svg.querySelectorAll("text")]
      .filter((each) => /^B\b/.test(each.textContent))
      .map((each) => [each, each.textContent]);
    const again = this.parts.find((part) => part.dataset.box === focused);
    (again || this.parts[0])?.setAttribute("tabindex", "0");
    if (again) again.focus();
    if (sizes) this.size(sizes);
    return true;
  }

  // Shapes with the chosen sizes in place of their letters, which the legend then need not explain.
  size({ batch, length, source }) {
    const sizes = { T: length, S: source };
    const number = (text) => Number(text.replaceAll(",", ""));
    for (const [element, text] of this.shapes || []) {
      const sized = text
        .replace(/^B batch · .*/, (legend) => legend.slice(10).replace(/\b[TS] [a-z ]+ · /g, ""))
        .replace(/^B\b/, whole(batch))
        .replace(/\(([\d,]+) ([TS]) ([+-]) ([\d,]+)\)/, (_, step, letter, sign, rest) => whole(number(step) * sizes[letter] + (sign === "+" ? 1 : -1) * number(rest)))
        .replace(/ ([TS])\b/, (_, letter) => ` ${whole(sizes[letter])}`);
      if (element.textContent !== sized) element.textContent = sized; // which would be painted anew
    }
  }

  // The number of keys of the parts that hold a path of keys most closely; 0 if none does.
  depth(path) {
    return Math.max(0, ...[...this.paths.values()].filter((keys) => starts(path, keys)).map((keys) => keys.length));
  }

  choose(part) {
    for (const other of this.parts) other.setAttribute("tabindex", "-1");
    part.setAttribute("tabindex", "0");
    const keys = this.paths.get(part);
    this.link(keys, part);
    this.chosen(keys);
  }

  // Marks the part that a path of keys belongs to: that with the longest of its keys, or all below it.
  link(path, only) {
    const best = this.depth(path);
    for (const [part, keys] of this.paths) {
      const linked = only ? part === only : best ? keys.length === best && starts(path, keys) : path.length > 0 && starts(keys, path);
      part.classList.toggle("linked", linked);
    }
  }

  // Marks the parts that hold changed keys most closely, and all below changed keys.
  mark(changes) {
    const depths = changes.map((path) => this.depth(path));
    for (const [part, keys] of this.paths) {
      const changed = changes.some((path, i) => (starts(path, keys) ? keys.length === depths[i] : starts(keys, path) && path.length > 1));
      part.classList.toggle("changed", changed);
    }
    const legend = at("legend");
    if (legend.hasChildNodes() === changes.length > 0) return;
    legend.replaceChildren(...(changes.length ? [h("span", { class: "key changed" }), " differs from the base"] : []));
  }

  key(event) {
    const part = event.target.closest && event.target.closest("[data-keys]");
    if (!part) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(part);
      return;
    }
    const middle = (element) => {
      const box = element.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const direction = directions[event.key];
    if (!direction) return;
    event.preventDefault();
    const [x, y] = middle(part);
    let best = null;
    let least = Infinity;
    for (const other of this.parts) {
      const [a, b] = middle(other);
      const ahead = (a - x) * direction[0] + (b - y) * direction[1];
      const aside = Math.abs((a - x) * direction[1]) + Math.abs((b - y) * direction[0]);
      if (other !== part && ahead > 1 && ahead + 2 * aside < least) {
        best = other;
        least = ahead + 2 * aside;
      }
    }
    if (best) {
      part.setAttribute("tabindex", "-1");
      best.setAttribute("tabindex", "0");
      best.focus();
    }
  }
}
