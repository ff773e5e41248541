// Controls made from the schema: kinds as menus, numbers that step through the values that work.

import { at, h } from "./dom.js";

const ABOUT = ["name", "summary", "source", "year", "expect", "initialization", "extends"];
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export class Controls {
  constructor(schema, actions) {
    this.schema = schema;
    this.actions = actions; // set(path, value), remove(path), step(path, value, direction), jump(path)
    this.box = at("controls");
    this.open = new Set([""]);
    this.shown = "";
  }

  show(spec) {
    this.spec = spec;
    if (this.box.hidden) return;
    const shown = JSON.stringify([spec.full, spec.stated]);
    if (shown === this.shown) return;
    this.shown = shown;
    const focused = document.activeElement && this.box.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const scroll = this.box.scrollTop;
    this.box.replaceChildren(...this.group(this.schema.root, spec.full, [], "Model"));
    this.box.scrollTop = scroll;
    if (focused) {
      const again = [...this.box.querySelectorAll("[data-id]")].find((each) => each.dataset.id === focused);
      if (again) again.focus();
    }
  }

  // Shows the row of a path, or of the nearest part around it.
  reveal(path, focus) {
    for (let depth = path.length; depth > 0; depth -= 1) {
      const name = path.slice(0, depth).join(".");
      const field = [...this.box.querySelectorAll("[data-id]")].find((each) => each.dataset.id === name);
      if (!field) continue;
      for (let around = field.closest("details"); around; around = around.parentElement.closest("details")) around.open = true;
      field.scrollIntoView({ block: "center" });
      for (const row of this.box.querySelectorAll(".row.linked")) row.classList.remove("linked");
      field.closest(".row").classList.add("linked");
      if (focus) field.focus();
      return;
    }
  }

  // Whether an element is a field that holds what the spec states, so that undo means the spec's.
  holds(element) {
    return this.box.contains(element) && element.value === element.defaultValue;
  }

  stated(path) {
    let part = this.spec.stated;
    for (const key of path) {
      if (part === null || typeof part !== "object" || !(key in part)) return false;
      part = part[key];
    }
    return true;
  }

  // The rows of a mapping: what is stated or required, and the rest behind a summary.
  group(mapping, value, path, title) {
    const shown = [];
    const rest = [];
    for (const [key, node] of Object.entries(mapping.properties || {})) {
      if (key === "kind" || (!path.length && ABOUT.includes(key))) continue;
      const inner = [...path, key];
      const row = this.row(node, value ? value[key] : null, inner);
      if (!row) continue;
      const first = this.stated(inner) || (mapping.required || []).includes(key);
      (first ? shown : rest).push(row);
    }
    const more = rest.length
      ? h("details", { class: "more", open: this.open.has(`+${path.join(".")}`), on: { toggle: (event) => this.toggle(`+${path.join(".")}`, event.target.open) } },
          h("summary", {}, `${rest.length} more`), rest)
      : null;
    return [h("fieldset", {}, title ? h("legend", {}, title) : null, shown, more)];
  }

  toggle(name, open) {
    if (open) this.open.add(name);
    else this.open.delete(name);
  }

  row(node, value, path) {
    const type = this.schema.type(node);
    const kinds = this.schema.kinds(node);
    const key = path[path.length - 1];
    const label = h("button", { type: "button", class: "jump name", title: node.description || "", on: { click: () => this.actions.jump(path) } }, key);
    const described = node.description ? h("small", {}, plain(node.description)) : null;
    if (kinds.length) return this.kinds(node, kinds, value, path, label, type, described);
    const control = this.control(node, value, path, type);
    if (control) return this.field(label, control, described, path);
    if (type.mapping) return this.part(node, value, path, label, described);
    return value === null || value === undefined || same(value, []) ? null : h("div", { class: "row" }, label, h("code", { class: "quiet" }, shortly(value)), described);
  }

  // A row with a control, which alone is a Tab stop: Alt+Enter in it does what a click on the name does.
  field(label, control, described, path) {
    label.tabIndex = -1;
    label.title += `${label.title && "\n"}A click, or Alt+Enter in its field, shows it in the YAML.`;
    return h("div", { class: "row", on: { keydown: (event) => {
      if (event.key !== "Enter" || !event.altKey) return;
      event.preventDefault();
      this.actions.jump(path);
    } } }, label, control, described);
  }

  kinds(node, kinds, value, path, label, type, described) {
    const kind = value && (value.kind ?? this.schema.kindOf(this.schema.mapping(node, undefined)));
    const menu = h("select", { dataset: { id: path.join(".") }, "aria-label": path.join("."), on: { change: () => {
      if (menu.value === "") this.actions.remove(path);
      else this.actions.set([...path, "kind"], menu.value);
    } } },
      type.nullable || !kind ? h("option", { value: "", selected: !kind }, "none") : null,
      kinds.map(([name, text]) => h("option", { value: name, selected: name === kind, title: text }, name)));
    const head = this.field(label, menu, described, path);
    if (!kind) return head;
    const text = (kinds.find(([name]) => name === kind) || [])[1];
    const inner = this.schema.mapping(node, kind);
    if (!inner) return head;
    const name = path.join(".");
    const open = this.open.has(name) || (!this.open.has(`-${name}`) && path.length < 5);
    return h("div", { class: "part" }, head,
      h("details", { open, on: { toggle: (event) => { this.toggle(name, event.target.open); this.toggle(`-${name}`, !event.target.open); } } },
        h("summary", {}, plain(text || kind)), this.group(inner, value, path)));
  }

  part(node, value, path, label, described) {
    const mapping = this.schema.mapping(node, undefined);
    if (!mapping || value === null || value === undefined) return null;
    if (mapping.properties) {
      return h("div", { class: "part" }, h("div", { class: "row" }, label, h("span"), described), this.group(mapping, value, path));
    }
    const entries = Object.entries(value);
    if (!entries.length) return null;
    return h("div", { class: "part" }, h("div", { class: "row" }, label, h("span"), described),
      entries.map(([name, part]) => (part && typeof part === "object" ? this.row(mapping.additionalProperties, part, [...path, name]) : null)));
  }

  control(node, value, path, type) {
    const id = { dataset: { id: path.join(".") }, "aria-label": path.join(".") };
    if (type.boolean && !type.number && !type.constants) {
      if (type.nullable) {
        const menu = h("select", { ...id, on: { change: () => (menu.value ? this.actions.set(path, menu.value === "true") : this.actions.remove(path)) } },
          ["", "true", "false"].map((word) => h("option", { value: word, selected: word === (value === null || value === undefined ? "" : String(value)) }, word || "default")));
        return menu;
      }
      const box = h("input", { ...id, type: "checkbox", checked: value === true, on: { change: () => this.actions.set(path, box.checked) } });
      return box;
    }
    if (type.number && typeof value !== "object" || (type.number && value === null)) return this.number(node, value, path, type, id);
    const words = this.schema.constants(node);
    if (words.length && !type.mapping && !type.list) {
      const menu = h("select", { ...id, on: { change: () => {
        const word = words.find(([each]) => String(each) === menu.value);
        if (word) this.actions.set(path, word[0]);
        else this.actions.remove(path);
      } } },
        type.nullable || value === null ? h("option", { value: "\0", selected: value === null }, "default") : null,
        words.map(([word, text]) => h("option", { value: String(word), title: text, selected: word === value }, String(word))));
      return menu;
    }
    if (type.string) {
      const input = h("input", { ...id, type: "text", value: value ?? "", on: { change: () => (input.value ? this.actions.set(path, input.value) : this.actions.remove(path)) } });
      return input;
    }
    return null;
  }

  number(node, value, path, type, id) {
    if (typeof value === "object" && value !== null) return null;
    const input = h("input", { ...id, type: "text", inputmode: "decimal", value: String(value ?? ""), placeholder: "default", on: {
      change: () => {
        const text = input.value.trim().replaceAll(",", "");
        if (!text) this.actions.remove(path);
        else this.actions.set(path, Number.isNaN(Number(text)) ? text : Number(text));
      },
      keydown: (event) => {
        const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!direction || typeof value !== "number") return;
        event.preventDefault();
        this.actions.step(path, value, direction);
      },
    } });
    if (typeof value !== "number") return input;
    const button = (text, direction, words) =>
      h("button", { type: "button", class: "step", tabIndex: -1, "aria-label": `${words} ${path.join(".")}`, on: { click: () => this.actions.step(path, value, direction) } }, text);
    return h("span", { class: "stepper" }, button("−", -1, "Next smaller value that works for"), input, button("+", 1, "Next larger value that works for"));
  }
}

function shortly(value) {
  if (Array.isArray(value) && typeof value[0] === "object") return `a list of ${value.length}, edited in the YAML`;
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

const plain = (text) => text.replaceAll("`", "");
